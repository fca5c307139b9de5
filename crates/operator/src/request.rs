//! Requests: what is asked at which path, and who may ask.

use std::fmt;

use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use service::identity::AccountKeys;
use service::{Link, PartitionId};

use crate::error::OperatorError;

/// Something that only the holder of the account key may ask. Queries carry the query
/// string of their URL; the arguments of a change are in its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorRequest {
    ReadVersion,
    ReadCounters,
    ReadMetrics,
    /// The physical partitions of a container.
    ListPartitions(String),
    Split,
    Merge,
    /// How throughput is divided between physical partitions.
    ReadThroughput(String),
    Redistribute,
    /// The state of the running backup, or the result of the last one.
    ReadBackup,
    BeginBackup,
    /// The scripts of a container, without their texts.
    ListScripts(String),
    /// One script with its text.
    ReadScript(String),
    StoreScript,
    DeleteScript,
    RunProcedure,
    /// What time it is.
    ReadClock,
    AdvanceClock,
    /// Which keys the account has.
    ReadKeys,
    RotateKey,
    /// What bearers of tokens may do.
    ListRoles,
    ChangeRoles,
}

/// A path that exists but takes other methods.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OtherMethods(pub(crate) &'static str);

impl OperatorRequest {
    /// What a path below the root of the protocol asks for; none if there is no such path.
    pub(crate) fn at(
        path: &str,
        method: &Method,
        query: Option<&str>,
    ) -> Result<Option<OperatorRequest>, OtherMethods> {
        use OperatorRequest::{
            AdvanceClock, BeginBackup, ChangeRoles, DeleteScript, ListPartitions, ListRoles,
            ListScripts, Merge, ReadBackup, ReadClock, ReadCounters, ReadKeys, ReadMetrics,
            ReadScript, ReadThroughput, ReadVersion, Redistribute, RotateKey, RunProcedure, Split,
            StoreScript,
        };
        let query = || query.unwrap_or_default().to_owned();
        let (read, change) = match path {
            "/version" => (Some(ReadVersion), None),
            "/counters" => (Some(ReadCounters), None),
            "/metrics" => (Some(ReadMetrics), None),
            "/partitions" => (Some(ListPartitions(query())), None),
            "/split" => (None, Some(Split)),
            "/merge" => (None, Some(Merge)),
            "/throughput" => (Some(ReadThroughput(query())), Some(Redistribute)),
            "/backup" => (Some(ReadBackup), Some(BeginBackup)),
            "/scripts" => (Some(ListScripts(query())), Some(StoreScript)),
            "/script" => (Some(ReadScript(query())), None),
            "/scripts/delete" => (None, Some(DeleteScript)),
            "/scripts/run" => (None, Some(RunProcedure)),
            "/clock" => (Some(ReadClock), Some(AdvanceClock)),
            "/keys" => (Some(ReadKeys), Some(RotateKey)),
            "/roles" => (Some(ListRoles), Some(ChangeRoles)),
            _ => return Ok(None),
        };
        let allowed = match (&read, &change) {
            (Some(_), None) => "GET, HEAD",
            (None, _) => "POST",
            (Some(_), Some(_)) => "GET, HEAD, POST",
        };
        let asked = match *method {
            Method::GET | Method::HEAD => read,
            Method::POST => change,
            _ => None,
        };
        asked.map(Some).ok_or(OtherMethods(allowed))
    }

    /// Whether it changes something, and so must not be dropped before it completes.
    #[must_use]
    pub fn is_change(&self) -> bool {
        match self {
            OperatorRequest::Split
            | OperatorRequest::Merge
            | OperatorRequest::Redistribute
            | OperatorRequest::BeginBackup
            | OperatorRequest::StoreScript
            | OperatorRequest::DeleteScript
            | OperatorRequest::RunProcedure
            | OperatorRequest::AdvanceClock
            | OperatorRequest::RotateKey
            | OperatorRequest::ChangeRoles => true,
            OperatorRequest::ReadVersion
            | OperatorRequest::ReadCounters
            | OperatorRequest::ReadMetrics
            | OperatorRequest::ListPartitions(_)
            | OperatorRequest::ReadThroughput(_)
            | OperatorRequest::ReadBackup
            | OperatorRequest::ListScripts(_)
            | OperatorRequest::ReadScript(_)
            | OperatorRequest::ReadClock
            | OperatorRequest::ReadKeys
            | OperatorRequest::ListRoles => false,
        }
    }
}

/// The account key, which operators present as a bearer token. Never shown.
#[derive(Clone)]
pub struct OperatorKey(String);

impl OperatorKey {
    #[must_use]
    pub fn new(key: &str) -> OperatorKey {
        OperatorKey(key.to_owned())
    }

    pub(crate) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

/// Whether a request bears a full key of the account.
pub(crate) fn is_borne(keys: &AccountKeys, headers: &HeaderMap) -> bool {
    let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some((scheme, token)) = given.and_then(|value| value.split_once(' ')) else {
        return false;
    };
    scheme.eq_ignore_ascii_case("bearer") && keys.is_full_key(token.trim().as_bytes())
}

impl fmt::Debug for OperatorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OperatorKey")
    }
}

/// Parses a body; on failure the error includes an example.
pub(crate) fn parse<'a, T: Deserialize<'a>>(
    body: &'a [u8],
    example: &str,
) -> Result<T, OperatorError> {
    serde_json::from_slice(body).map_err(|error| {
        OperatorError::malformed(format!("{error}. The body looks like {example}"))
    })
}

/// The container that a query names.
pub(crate) fn container(query: &str) -> Result<String, OperatorError> {
    parameter(query, "container").ok_or_else(|| {
        OperatorError::malformed("Name a container: ?container=dbs/DATABASE/colls/CONTAINER")
    })
}

pub(crate) fn link(text: &str) -> Result<Link, OperatorError> {
    let malformed =
        || OperatorError::malformed(format!("'{text}' is not like dbs/DATABASE/colls/CONTAINER"));
    Link::parse(text).ok_or_else(malformed)
}

pub(crate) fn range(text: &str) -> Result<PartitionId, OperatorError> {
    let malformed = |_| OperatorError::malformed(format!("'{text}' is not a range id"));
    text.parse().map(PartitionId).map_err(malformed)
}

pub(crate) fn ranges<'a>(
    texts: impl Iterator<Item = &'a str>,
) -> Result<Vec<PartitionId>, OperatorError> {
    texts.map(|text| range(text.trim())).collect()
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

    #[test]
    fn a_key_is_never_shown() {
        assert_eq!(format!("{:?}", OperatorKey::new("c2VjcmV0")), "OperatorKey");
    }
}
