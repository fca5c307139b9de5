//! From a service's reply to status, headers and body.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderName, HeaderValue, Response as HttpResponse, StatusCode};
use model::charge::Charge;
use model::etag::Etag;
use model::position::{Lsn, Timestamp};
use percent_encoding::{CONTROLS, utf8_percent_encode};
use service::{PartitionId, QueryReport, ResponseMeta};

use crate::headers::{ACTIVITY_ID, CONTINUATION, RANGE_ID, SESSION_TOKEN};
use crate::{error, query, scripts, usage};
use protocol::auth::rfc1123;
use protocol::error::WireError;

const CHARGE: &str = "x-ms-request-charge";
pub(crate) const ITEM_COUNT: &str = "x-ms-item-count";

/// The version of the protocol that is spoken, whichever one a client asks for.
const API_VERSION: &str = "2020-07-15";
/// The version of the resource schemas that goes with it.
const SCHEMA_VERSION: &str = "1.19";

/// The headers with a partition's position. The service distinguishes what one replica, a
/// quorum and all regions have; here a write is answered when the only copy is on the disk,
/// so all of them are equal.
const PARTITION_LSNS: [&str; 5] = [
    "lsn",
    "x-ms-cosmos-llsn",
    "x-ms-quorum-acked-lsn",
    "x-ms-cosmos-quorum-acked-llsn",
    "x-ms-global-committed-lsn",
];
/// The headers with the position of an item's last write.
const ITEM_LSNS: [&str; 2] = ["x-ms-item-lsn", "x-ms-cosmos-item-llsn"];

/// What all headers together may have; .NET accepts 64 KB, with the status line.
const HEADER_BYTES_MAX: usize = 60 << 10;

/// The metrics of a query, the potentially longest first.
const METRICS: [&str; 4] = [
    "x-ms-cosmos-index-utilization",
    "x-orrery-query-explain",
    "x-ms-cosmos-query-advice",
    "x-ms-documentdb-query-metrics",
];

/// An answer under construction.
#[derive(Debug)]
pub(crate) struct Answer {
    response: HttpResponse<Bytes>,
    partition: Option<PartitionId>,
    charge: Charge,
    /// What a query did.
    report: Option<Box<QueryReport>>,
}

impl Answer {
    pub(crate) fn empty(status: StatusCode) -> Answer {
        let mut response = HttpResponse::new(Bytes::new());
        *response.status_mut() = status;
        Answer { response, partition: None, charge: Charge::ZERO, report: None }
    }

    pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Answer {
        let mut answer = Answer::empty(status);
        *answer.response.body_mut() = body.into();
        answer
    }

    /// There is nothing new. Clients of feeds read the count whatever the status is.
    pub(crate) fn unchanged() -> Answer {
        let mut answer = Answer::empty(StatusCode::NOT_MODIFIED);
        answer.set(ITEM_COUNT, "0");
        answer
    }

    /// An answer in an encoding that its reader recognises by its first bytes.
    pub(crate) fn binary(status: StatusCode, body: impl Into<Bytes>) -> Answer {
        let mut answer = Answer::json(status, body);
        let content_type = HeaderValue::from_static("application/octet-stream");
        answer.response.headers_mut().insert(CONTENT_TYPE, content_type);
        answer
    }

    /// An error response. Clients read `message` from every such body.
    pub(crate) fn error(error: &WireError, activity_id: &str) -> Answer {
        let mut answer = Answer::json(error.status, error::body(error, activity_id));
        if error.substatus != 0 {
            answer.set("x-ms-substatus", &error.substatus.to_string());
        }
        if let Some(ms) = error.retry_after_ms {
            answer.set("x-ms-retry-after-ms", &ms.to_string());
        }
        if let Some(log) = &error.script_log {
            answer.set(scripts::LOG, log);
        }
        match &error.meta {
            Some(meta) => answer.with_meta(meta),
            None => answer,
        }
    }

    pub(crate) fn with_body(mut self, body: impl Into<Bytes>) -> Answer {
        *self.response.body_mut() = body.into();
        self
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// The physical partition that gave it, if one did.
    pub(crate) fn partition(&self) -> Option<PartitionId> {
        self.partition
    }

    pub(crate) fn charge(&self) -> Charge {
        self.charge
    }

    /// The access path of a query.
    pub(crate) fn plan(&self) -> Option<String> {
        self.report.as_deref().map(query::explained)
    }

    pub(crate) fn with_report(self, report: Box<QueryReport>) -> Answer {
        Answer { report: Some(report), ..self }
    }

    /// Sets a header. A value that HTTP cannot carry is left out.
    pub(crate) fn set(&mut self, name: &'static str, value: &str) {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }

    pub(crate) fn with_etag(mut self, etag: Option<&Etag>) -> Answer {
        if let Some(value) = etag.and_then(|etag| HeaderValue::from_str(etag.as_str()).ok()) {
            self.response.headers_mut().insert(ETAG, value);
        }
        self
    }

    /// Sets the charge, the session token, and the partition.
    pub(crate) fn with_meta(mut self, meta: &ResponseMeta) -> Answer {
        self.set(CHARGE, &meta.charge.to_string());
        self.charge = meta.charge;
        self.partition = meta.served_by().map(|(range, _)| range);
        if let Some(token) = meta.session() {
            self.set(SESSION_TOKEN, &token.to_string());
        }
        if let Some((range, lsn)) = meta.served_by() {
            self.set(RANGE_ID, &range.to_string());
            self.set("x-ms-cosmos-physical-partition-id", &range.to_string());
            self.set_lsns(&PARTITION_LSNS, lsn);
        }
        if let Some(lsn) = meta.item_lsn {
            self.set_lsns(&ITEM_LSNS, lsn);
        }
        for (name, text) in meta.holding.iter().flat_map(usage::of) {
            self.set(name, &text);
        }
        if let Some(owner) = &meta.owner {
            if !owner.rid.is_empty() {
                self.set("x-ms-content-path", &owner.rid);
            }
            self.set("x-ms-alt-content-path", &alternate_path(&owner.link));
        }
        self
    }

    fn set_lsns(&mut self, names: &[&'static str], lsn: Lsn) {
        let text = lsn.to_string();
        for name in names {
            self.set(name, &text);
        }
    }

    pub(crate) fn with_continuation(mut self, token: Option<&str>) -> Answer {
        if let Some(token) = token {
            self.set(CONTINUATION, token);
        }
        self
    }

    /// Removes metrics of a query, the longest first, until all headers together are within
    /// what clients accept. The page itself is never cut.
    fn cut_metrics(&mut self) {
        let length = |headers: &HeaderMap| -> usize {
            headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
        };
        for name in METRICS {
            if length(self.response.headers()) <= HEADER_BYTES_MAX {
                return;
            }
            self.response.headers_mut().remove(name);
        }
    }

    /// Adds what every answer has.
    pub(crate) fn finish(
        mut self,
        activity_id: &str,
        elapsed: Duration,
        now: Timestamp,
    ) -> HttpResponse<Bytes> {
        self.set(ACTIVITY_ID, activity_id);
        // What never reached the service cost nothing.
        self.response.headers_mut().entry(CHARGE).or_insert(HeaderValue::from_static("0"));
        self.set("x-ms-version", API_VERSION);
        self.set("x-ms-schemaversion", SCHEMA_VERSION);
        self.set("x-ms-request-duration-ms", &format!("{:.3}", elapsed.as_secs_f64() * 1000.0));
        self.set("x-ms-gatewayversion", "version=2.14.0");
        self.set("x-ms-serviceversion", concat!("version=orrery ", env!("CARGO_PKG_VERSION")));
        self.set("date", &rfc1123(now));
        if !self.response.body().is_empty() {
            let headers = self.response.headers_mut();
            headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
        }
        self.cut_metrics();
        self.response
    }
}

/// A link by names, encoded for a header: what is not ASCII is percent-encoded.
fn alternate_path(link: &str) -> Cow<'_, str> {
    utf8_percent_encode(link, CONTROLS).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_cut_before_clients_refuse_the_answer() {
        let finished = |bytes: usize| {
            let mut answer = Answer::json(StatusCode::OK, "{}");
            for name in METRICS {
                answer.set(name, &"x".repeat(bytes));
            }
            answer.set(CONTINUATION, "token");
            let now = Timestamp::from_millis(0);
            answer.finish("id", Duration::ZERO, now).headers().clone()
        };
        let left = |bytes| METRICS.map(|name| finished(bytes).contains_key(name));
        assert_eq!(left(10 << 10), [true; 4]);
        assert_eq!(left(19 << 10), [false, true, true, true]);
        assert_eq!(left(25 << 10), [false, false, true, true]);
        assert_eq!(left(61 << 10), [false; 4]);
        assert_eq!(finished(61 << 10).get(CONTINUATION).unwrap(), "token");
    }
}
