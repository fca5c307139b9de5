//! Physical partitions over HTTP, for whoever runs the server: `/_orrery/split`,
//! `/_orrery/merge` and `/_orrery/partitions`.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};
use service::{
    Halve, LayoutChange, Link, PartitionInfo, Principal, RangeId, Remedy, Service, ServiceError,
};

use crate::backups::Backups;
use crate::http::service::{Answer, json as answer_json, problem};
use crate::{statistics, throughput};

/// Keys that are named of each partition: as many as the service's own charts show.
const KEYS_DEFAULT: usize = 3;
const KEYS_MAX: usize = 1_000;

/// Something that somebody asks for. Questions have the query of their URL, changes
/// are in the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The physical partitions of a container.
    List(String),
    Split,
    Merge,
    /// How throughput is divided between partitions.
    ShowThroughput(String),
    Redistribute,
    /// How far the backup is that runs, or how the last one ended.
    ShowBackup,
    Backup,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Split {
    container: String,
    range: String,
    #[serde(default)]
    halve: What,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Merge {
    container: String,
    ranges: Vec<String>,
}

/// What a split halves.
#[derive(Clone, Copy, Debug, Default, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum What {
    /// The hashes, and with them the throughput.
    #[default]
    Hashes,
    /// The bytes that are stored.
    Bytes,
}

impl What {
    pub(crate) fn name(self) -> &'static str {
        match self {
            What::Hashes => "hashes",
            What::Bytes => "bytes",
        }
    }
}

impl Order {
    /// The order that is given at a path, if it is one for orders; or the methods
    /// that it takes.
    pub(crate) fn at(
        path: &str,
        method: &Method,
        query: Option<&str>,
    ) -> Result<Option<Order>, &'static str> {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        let changes = *method == Method::POST;
        let query = || query.unwrap_or_default().to_owned();
        match path {
            "/partitions" if reads => Ok(Some(Order::List(query()))),
            "/partitions" => Err("GET, HEAD"),
            "/split" if changes => Ok(Some(Order::Split)),
            "/merge" if changes => Ok(Some(Order::Merge)),
            "/split" | "/merge" => Err("POST"),
            "/throughput" if reads => Ok(Some(Order::ShowThroughput(query()))),
            "/throughput" if changes => Ok(Some(Order::Redistribute)),
            "/backup" if reads => Ok(Some(Order::ShowBackup)),
            "/backup" if changes => Ok(Some(Order::Backup)),
            "/throughput" | "/backup" => Err("GET, HEAD, POST"),
            _ => Ok(None),
        }
    }

    /// Does what the query or the body says.
    pub(crate) async fn carry_out(
        self,
        service: &Arc<Service>,
        backups: &Arc<Backups>,
        body: &Bytes,
    ) -> Answer {
        let done = match self {
            Order::List(query) => list(service, &query).await,
            Order::Split => split(service, body).await,
            Order::Merge => merge(service, body).await,
            Order::ShowThroughput(query) => throughput::show(service, &query).await,
            Order::Redistribute => throughput::redistribute(service, body).await,
            Order::ShowBackup => Ok(backups.describe()),
            Order::Backup => backups.begin(service, body),
        };
        done.map_or_else(|refusal| refusal.answer(), |done| answer_json(StatusCode::OK, &done))
    }
}

/// The physical partitions of the container that the query names, with as many of
/// their largest keys as it asks for.
async fn list(service: &Service, query: &str) -> Result<Value, Refusal> {
    let container = container(query)?;
    let keys_max = match parameter(query, "keys") {
        None => KEYS_DEFAULT,
        Some(count) => count.parse().ok().filter(|count| *count <= KEYS_MAX).ok_or_else(|| {
            Refusal::malformed(format!("'{count}' is not a number of keys up to {KEYS_MAX}"))
        })?,
    };
    let partitions =
        service.operator(Principal::Account).statistics(&link(&container)?, keys_max).await?;
    let partitions: Vec<Value> = partitions.iter().map(statistics::describe).collect();
    Ok(json!({ "container": container, "partitions": partitions }))
}

/// The container that a query names.
pub(crate) fn container(query: &str) -> Result<String, Refusal> {
    parameter(query, "container").ok_or_else(|| {
        Refusal::malformed("Name a container: ?container=dbs/DATABASE/colls/CONTAINER")
    })
}

async fn split(service: &Service, body: &Bytes) -> Result<Value, Refusal> {
    let wanted: Split = parse(body, r#"{"container":"dbs/D/colls/C","range":"0"}"#)?;
    let halve = match wanted.halve {
        What::Hashes => Halve::Hashes,
        What::Bytes => Halve::Bytes,
    };
    let container = link(&wanted.container)?;
    let change = service
        .operator(Principal::Account)
        .split(&container, range(&wanted.range)?, halve)
        .await?;
    Ok(report(&wanted.container, &change))
}

async fn merge(service: &Service, body: &Bytes) -> Result<Value, Refusal> {
    let wanted: Merge = parse(body, r#"{"container":"dbs/D/colls/C","ranges":["1","2"]}"#)?;
    let ranges = wanted.ranges.iter().map(|id| range(id)).collect::<Result<Vec<_>, _>>()?;
    let change =
        service.operator(Principal::Account).merge(&link(&wanted.container)?, &ranges).await?;
    Ok(report(&wanted.container, &change))
}

pub(crate) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8], example: &str) -> Result<T, Refusal> {
    serde_json::from_slice(body)
        .map_err(|error| Refusal::malformed(format!("{error}. The body looks like {example}")))
}

pub(crate) fn link(text: &str) -> Result<Link, Refusal> {
    let malformed =
        || Refusal::malformed(format!("'{text}' is not like dbs/DATABASE/colls/CONTAINER"));
    Link::parse(text).ok_or_else(malformed)
}

pub(crate) fn range(text: &str) -> Result<RangeId, Refusal> {
    let id = text.parse().map_err(|_| Refusal::malformed(format!("'{text}' is not a range id")))?;
    Ok(RangeId(id))
}

fn report(container: &str, change: &LayoutChange) -> Value {
    json!({
        "container": container,
        "old": change.old.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "new": change.new.iter().map(describe).collect::<Vec<_>>(),
        "pauseMs": change.pause.as_secs_f64() * 1_000.0,
    })
}

pub(crate) fn describe(partition: &PartitionInfo) -> Value {
    json!({
        "id": partition.id.to_string(),
        "minInclusive": partition.range.min.to_string(),
        "maxExclusive": partition.range.max.to_string(),
        "parents": partition.parents.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "lsn": partition.lsn.get(),
        "items": partition.items,
        "bytes": partition.bytes,
    })
}

/// Why nothing was done.
#[derive(Debug)]
pub(crate) enum Refusal {
    Malformed(String),
    /// Something else is in the way.
    Conflict(String),
    Service(ServiceError),
}

impl Refusal {
    pub(crate) fn malformed(message: impl Into<String>) -> Refusal {
        Refusal::Malformed(message.into())
    }

    fn answer(&self) -> Answer {
        match self {
            Refusal::Malformed(message) => problem(StatusCode::BAD_REQUEST, "BadRequest", message),
            Refusal::Conflict(message) => problem(StatusCode::CONFLICT, "Conflict", message),
            Refusal::Service(ServiceError::Scaling) => {
                let message = ServiceError::Scaling.to_string();
                problem(StatusCode::LOCKED, "Locked", &message)
            }
            Refusal::Service(error @ ServiceError::Throttled { .. }) => {
                problem(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", &error.to_string())
            }
            Refusal::Service(error) => {
                let (status, code) = match error.remedy() {
                    Remedy::Correct => (StatusCode::BAD_REQUEST, "BadRequest"),
                    Remedy::Reread | Remedy::Refresh => (StatusCode::NOT_FOUND, "NotFound"),
                    Remedy::Retry => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
                    Remedy::Operator => (StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError"),
                };
                problem(status, code, &error.to_string())
            }
        }
    }
}

impl From<ServiceError> for Refusal {
    fn from(error: ServiceError) -> Refusal {
        Refusal::Service(error)
    }
}

/// A parameter of a query, decoded.
pub(crate) fn parameter(query: &str, name: &str) -> Option<String> {
    let (_, value) = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(found, _)| *found == name)?;
    let is_code = |after: &str| {
        let digits = after.as_bytes().first_chunk::<2>();
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let spaced = value.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8().ok()?;
    spaced.split('%').skip(1).all(is_code).then(|| decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = "x=1&container=dbs%2Fmy+d%C3%A4ta/colls/c&y";
        assert_eq!(parameter(query, "container").as_deref(), Some("dbs/my däta/colls/c"));
        for broken in ["container=%", "container=%4", "container=%zz", "container=%FF", "", "y"] {
            assert_eq!(parameter(broken, "container"), None, "{broken}");
        }
    }
}
