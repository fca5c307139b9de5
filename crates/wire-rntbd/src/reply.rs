//! From what the service returned to the frame of an answer.
//!
//! Clients rely on tokens that an answer seems not to need: without a position a read that finds
//! nothing is repeated for many seconds, without a count a page is an exception. So what every
//! answer has is written in one place, errors included, and the rest around it in the order of ids.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use model::charge::Charge;
use model::etag::Etag;
use model::position::Lsn;
use model::session::SINGLE_REGION_VERSION;
use protocol::address::{Addressed, REPLICAS};
use protocol::error::WireError;
use service::{Owner, PartitionId, ResponseMeta};

use crate::codec::{FrameWriter, Guid, TooLong, response};

/// The version of the resource schemas that goes with the version of the protocol.
const SCHEMA_VERSION: &str = "1.19";

/// Of as many replicas as there are addresses, the number that makes a write durable.
const WRITE_QUORUM: u32 = 3;

/// Where an answer is said to stand that no partition gave. Clients take zero for no answer, and
/// every partition begins with this one.
const FIRST: Lsn = Lsn::from_u64(1);

/// What a head has at most in an answer without long texts.
const HEAD_BYTES: usize = 512;

/// Statuses of requests that are wrong wherever they are sent. Clients ask the other replicas
/// first unless they are told so.
const WRONG_ANYWHERE: [StatusCode; 3] =
    [StatusCode::BAD_REQUEST, StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];

/// A frame that goes back. Head and payload are written one after the other.
#[derive(Debug)]
pub struct DirectAnswer {
    pub status: StatusCode,
    pub head: Vec<u8>,
    pub payload: Bytes,
}

/// An answer under construction.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    substatus: u32,
    payload: Bytes,
    etag: Option<Etag>,
    /// The etag of a change feed, which is a position.
    feed_etag: Option<String>,
    item_count: Option<u32>,
    continuation: Option<String>,
    retry_after_ms: Option<u32>,
    script_log: Option<String>,
    query_execution_info: Option<String>,
    query_metrics: Option<String>,
    index_use: Option<String>,
    served_by: Option<(PartitionId, Lsn)>,
    item_lsn: Option<Lsn>,
    owner: Option<Owner>,
    charge: Charge,
}

/// What an answer takes from its request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Echo {
    pub(crate) activity_id: Guid,
    pub(crate) request_id: u32,
    /// `None` where the request did not say so.
    pub(crate) addressed: Option<Addressed>,
}

impl Reply {
    pub(crate) fn ok() -> Reply {
        Reply::of(StatusCode::OK, Bytes::new())
    }

    pub(crate) fn of(status: StatusCode, payload: impl Into<Bytes>) -> Reply {
        Reply { status, payload: payload.into(), ..Reply::default() }
    }

    pub(crate) fn error(error: &WireError) -> Reply {
        let reply = Reply {
            substatus: error.substatus,
            retry_after_ms: error.retry_after_ms.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX)),
            script_log: error.script_log.clone(),
            ..Reply::of(error.status, error.report().to_string())
        };
        match &error.meta {
            Some(meta) => reply.with_meta(meta),
            None => reply,
        }
    }

    pub(crate) fn with_payload(self, payload: Bytes) -> Reply {
        Reply { payload, ..self }
    }

    pub(crate) fn with_etag(self, etag: Option<Etag>) -> Reply {
        Reply { etag, ..self }
    }

    pub(crate) fn with_feed_etag(self, etag: String) -> Reply {
        Reply { feed_etag: Some(etag), ..self }
    }

    pub(crate) fn with_metrics(self, query: Option<String>, indexes: Option<String>) -> Reply {
        Reply { query_metrics: query, index_use: indexes, ..self }
    }

    pub(crate) fn with_count(self, count: usize) -> Reply {
        Reply { item_count: Some(u32::try_from(count).unwrap_or(u32::MAX)), ..self }
    }

    pub(crate) fn with_continuation(self, continuation: Option<String>) -> Reply {
        Reply { continuation, ..self }
    }

    pub(crate) fn with_query_execution_info(self, info: String) -> Reply {
        Reply { query_execution_info: Some(info), ..self }
    }

    pub(crate) fn with_meta(self, meta: &ResponseMeta) -> Reply {
        Reply {
            served_by: meta.served_by(),
            item_lsn: meta.item_lsn,
            owner: meta.owner.clone(),
            charge: meta.charge,
            ..self
        }
    }

    /// The partition that answered, where it was not asked to do anything.
    pub(crate) fn at(self, range: PartitionId, lsn: Lsn) -> Reply {
        Reply { served_by: Some((range, lsn)), ..self }
    }

    /// The frame. Texts that do not fit are left out, one of them perhaps being all that the
    /// client asked for: then it is told that the answer is too large.
    pub(crate) fn finish(self, echo: Echo, elapsed: Duration) -> DirectAnswer {
        match self.write(echo, elapsed) {
            Ok(answer) => answer,
            Err(TooLong { .. }) => {
                let error = WireError::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    0,
                    "The answer has a text that is too long for direct mode.",
                );
                let short = Reply { served_by: self.served_by, ..Reply::error(&error) };
                short.write(echo, elapsed).expect("its texts are short")
            }
        }
    }

    fn write(&self, echo: Echo, elapsed: Duration) -> Result<DirectAnswer, TooLong> {
        let mut head = Vec::with_capacity(HEAD_BYTES);
        let status = u32::from(self.status.as_u16());
        let mut frame = FrameWriter::response(&mut head, status, echo.activity_id);
        self.put_results(&mut frame)?;
        self.put_position(&mut frame, echo)?;
        self.put_rest(&mut frame, echo, elapsed)?;
        let payload = (!self.payload.is_empty()).then_some(self.payload.len());
        frame.finish(payload)?;
        Ok(DirectAnswer { status: self.status, head, payload: self.payload.clone() })
    }

    /// Tokens up to 0F.
    fn put_results(&self, frame: &mut FrameWriter<'_>) -> Result<(), TooLong> {
        frame.put(response::PAYLOAD_PRESENT, u8::from(!self.payload.is_empty()))?;
        if let Some(continuation) = &self.continuation {
            frame.put(response::CONTINUATION_TOKEN, continuation)?;
        }
        let etag = self.etag.as_ref().map(Etag::as_str);
        if let Some(etag) = etag.or(self.feed_etag.as_deref()) {
            frame.put(response::E_TAG, etag)?;
        }
        if let Some(ms) = self.retry_after_ms {
            frame.put(response::RETRY_AFTER_MS, ms)?;
        }
        Ok(())
    }

    /// Tokens from 10 to 30: what every answer has.
    fn put_position(&self, frame: &mut FrameWriter<'_>, echo: Echo) -> Result<(), TooLong> {
        let lsn = number(self.lsn());
        frame.put(response::SCHEMA_VERSION, SCHEMA_VERSION)?;
        frame.put(response::LSN, lsn)?;
        if let Some(count) = self.item_count {
            frame.put(response::ITEM_COUNT, count)?;
        }
        frame.put(response::REQUEST_CHARGE, self.charge.request_units())?;
        self.put_owner(frame)?;
        frame.put(response::QUORUM_ACKED_LSN, lsn)?;
        if WRONG_ANYWHERE.contains(&self.status) {
            frame.put(response::REQUEST_VALIDATION_FAILURE, 1)?;
        }
        if self.substatus != 0 {
            frame.put(response::SUB_STATUS, self.substatus)?;
        }
        frame.put(response::CURRENT_WRITE_QUORUM, WRITE_QUORUM)?;
        let replicas = u32::try_from(REPLICAS.len()).unwrap_or(u32::MAX);
        frame.put(response::CURRENT_REPLICA_SET_SIZE, replicas)?;
        if let Some(range) = self.range(echo) {
            frame.put(response::PARTITION_KEY_RANGE_ID, &range.to_string())?;
        }
        if let Some(log) = &self.script_log {
            frame.put(response::LOG_RESULTS, log)?;
        }
        if let Some(metrics) = &self.query_metrics {
            frame.put(response::QUERY_METRICS, metrics)?;
        }
        frame.put(response::GLOBAL_COMMITTED_LSN, lsn)?;
        // Of regions besides the one where everything is written.
        frame.put(response::NUMBER_OF_READ_REGIONS, 0)
    }

    fn put_owner(&self, frame: &mut FrameWriter<'_>) -> Result<(), TooLong> {
        let Some(owner) = &self.owner else { return Ok(()) };
        frame.put(response::OWNER_FULL_NAME, &owner.link)?;
        if owner.rid.is_empty() {
            return Ok(());
        }
        frame.put(response::OWNER_ID, &owner.rid)
    }

    /// Tokens from 32 on.
    fn put_rest(
        &self,
        frame: &mut FrameWriter<'_>,
        echo: Echo,
        elapsed: Duration,
    ) -> Result<(), TooLong> {
        let lsn = number(self.lsn());
        let item_lsn = self.item_lsn.map(number);
        if let Some(item_lsn) = item_lsn {
            frame.put(response::ITEM_LSN, item_lsn)?;
        }
        frame.put(response::TRANSPORT_REQUEST_ID, echo.request_id)?;
        frame.put(response::LOCAL_LSN, lsn)?;
        frame.put(response::QUORUM_ACKED_LOCAL_LSN, lsn)?;
        if let Some(item_lsn) = item_lsn {
            frame.put(response::ITEM_LOCAL_LSN, item_lsn)?;
        }
        let range = self.range(echo);
        if range.is_some() {
            let token = format!("{SINGLE_REGION_VERSION}#{lsn}");
            frame.put(response::SESSION_TOKEN, &token)?;
        }
        if let Some(indexes) = &self.index_use {
            frame.put(response::INDEX_UTILIZATION, indexes)?;
        }
        if let Some(info) = &self.query_execution_info {
            frame.put(response::QUERY_EXECUTION_INFO, info)?;
        }
        frame.put(response::BACKEND_REQUEST_DURATION_MS, elapsed.as_secs_f64() * 1_000.0)?;
        if let Some(range) = range {
            frame.put(response::PHYSICAL_PARTITION_ID, &range.to_string())?;
        }
        Ok(())
    }

    fn lsn(&self) -> Lsn {
        self.served_by.map_or(FIRST, |(_, lsn)| lsn.max(FIRST))
    }

    /// The range that answered, or else the one that was asked; none at the master partition.
    fn range(&self, echo: Echo) -> Option<PartitionId> {
        match echo.addressed? {
            Addressed::Master => None,
            Addressed::Range(_, range) => Some(self.served_by.map_or(range, |(served, _)| served)),
        }
    }
}

fn number(lsn: Lsn) -> i64 {
    i64::try_from(lsn.get()).unwrap_or(i64::MAX)
}
