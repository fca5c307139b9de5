//! The one mapping of errors to status codes and texts.

use http::StatusCode;
use model::json::{Object, Value};
use model::partition_key::KeyError;
use service::{Failure, Fault, Reason, ResponseMeta, ServiceError};

use crate::auth::Refused;
use crate::binary_json::BinaryJsonError;
use crate::plan;

/// Sub-statuses that clients act on.
mod substatus {
    pub(super) const KEY_MISMATCH: u32 = 1001;
    pub(super) const SESSION_NOT_AVAILABLE: u32 = 1002;
    pub(super) const RANGE_GONE: u32 = 1002;
    pub(super) const OWNER_NOT_FOUND: u32 = 1003;
    pub(super) const NEEDS_MERGE: u32 = 1004;
    pub(super) const QUOTA: u32 = 1005;
    pub(super) const RANGE_SWITCHING: u32 = 1007;
    pub(super) const KEY_FULL: u32 = 1014;
    pub(super) const CONTAINER_RECREATED: u32 = 1024;
    pub(super) const SCRIPTS_BUSY: u32 = 3084;
    pub(super) const OVERLOADED: u32 = 3092;
    pub(super) const THROTTLED: u32 = 3200;
    pub(super) const BUCKET_THROTTLED: u32 = 3212;
    pub(super) const BUCKET_CHANGED: u32 = 3213;
    pub(super) const RESPONSE_TOO_LARGE: u32 = 3402;
    pub(super) const NOT_DATA_PLANE: u32 = 5300;
    pub(super) const NOT_IN_ROLE: u32 = 5301;
}

/// A status of the protocol's own: the same again is likely to succeed.
const RETRY_WITH: StatusCode = match StatusCode::from_u16(449) {
    Ok(status) => status,
    Err(_) => StatusCode::SERVICE_UNAVAILABLE,
};

/// What the account is called.
pub const ACCOUNT: &str = "orrery";

/// Headers that texts name, whatever carried the request: the service does the same.
const ACROSS_PARTITIONS: &str = "x-ms-documentdb-query-enablecrosspartition";
const CAPABILITIES: &str = "x-ms-cosmos-sdk-supportedcapabilities";
const PARTITION_KEY: &str = "x-ms-documentdb-partitionkey";

/// An error response.
#[derive(Clone, Debug, PartialEq)]
pub struct WireError {
    pub status: StatusCode,
    pub substatus: u32,
    pub message: String,
    pub detail: Detail,
    /// When to try again, where trying again helps.
    pub retry_after_ms: Option<u64>,
    /// What a script printed, for clients that asked for it.
    pub script_log: Option<String>,
    /// Where it happened and what it cost, if the request reached the service.
    pub meta: Option<Box<ResponseMeta>>,
}

/// What a body says besides a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Detail {
    #[default]
    None,
    /// What is wrong with a query, as clients parse it. Replaces the message.
    Query(Value),
    /// The same, for a query whose plan was requested.
    Unplanned(Value),
    /// The plan by which the client can run its query itself.
    Plan(Value),
}

impl Detail {
    fn of(error: &ServiceError) -> Detail {
        if let ServiceError::Query { report } = error {
            return Detail::Query(report.clone());
        }
        if let ServiceError::NeedsMerge { plan } = error {
            return Detail::Plan(plan::value(plan));
        }
        Detail::None
    }
}

/// How long a client waits when a queue was full: a few fsyncs.
const BUSY_RETRY_MS: u64 = 20;

/// The same when too many scripts were running: some of them take seconds.
const SCRIPTS_RETRY_MS: u64 = 500;

impl WireError {
    pub fn new(status: StatusCode, substatus: u32, message: impl Into<String>) -> WireError {
        WireError {
            status,
            substatus,
            message: message.into(),
            detail: Detail::None,
            retry_after_ms: None,
            script_log: None,
            meta: None,
        }
    }

    pub fn bad_request(message: impl Into<String>) -> WireError {
        WireError::new(StatusCode::BAD_REQUEST, 0, message)
    }

    pub fn key(error: KeyError) -> WireError {
        ServiceError::from(error).into()
    }

    /// Part of the protocol, but not implemented yet.
    pub fn later(what: &str) -> WireError {
        WireError::bad_request(format!("{what}: not supported by this version of Orrery yet."))
    }

    pub fn not_found() -> WireError {
        ServiceError::NotFound.into()
    }

    pub fn too_large() -> WireError {
        WireError::new(StatusCode::PAYLOAD_TOO_LARGE, 0, "Request size is too large")
    }

    /// The same of a request, which some messages name.
    #[must_use]
    pub fn of_request(self, method: &str, path: &str) -> WireError {
        if self.substatus != substatus::NOT_DATA_PLANE {
            return self;
        }
        let reason = format!(
            "The given request [{method} {path}] cannot be authorized by AAD token in data plane."
        );
        WireError { message: blocked(&reason), ..self }
    }

    /// What is wrong, as clients parse it.
    pub fn report(&self) -> Value {
        match &self.detail {
            Detail::Query(report) | Detail::Unplanned(report) => report.clone(),
            Detail::None | Detail::Plan(_) => {
                Object::from_iter([("Errors", vec![self.message.as_str()])]).into()
            }
        }
    }
}

impl From<ServiceError> for WireError {
    fn from(error: ServiceError) -> WireError {
        // A batch fails with the error of the operation that made it fail.
        let cause = if let ServiceError::Batch { error, .. } = &error { error } else { &error };
        let (status, substatus) = status_of(cause);
        let retry_after_ms = retry_after_ms(cause);
        let detail = Detail::of(cause);
        WireError { detail, retry_after_ms, ..WireError::new(status, substatus, message(cause)) }
    }
}

impl From<Failure> for WireError {
    fn from(Failure { error, meta }: Failure) -> WireError {
        WireError { meta: Some(meta), ..WireError::from(error) }
    }
}

/// The message that clients of this protocol get: mostly the service's, otherwise the same
/// in terms of headers.
fn message(error: &ServiceError) -> String {
    if let ServiceError::AcrossPartitions = error {
        return format!(
            "Cross partition query is required but disabled. Please set {ACROSS_PARTITIONS} to true, \
             specify {PARTITION_KEY}, or revise your query to avoid this exception."
        );
    }
    if let ServiceError::Forbidden | ServiceError::NotPermitted = error {
        return "Insufficient permissions provided in the authorization header for the corresponding request. \
                Please retry with another authorization header."
            .to_owned();
    }
    if let ServiceError::NeedsMerge { .. } = error {
        return "The provided cross partition query can not be directly served by the gateway."
            .to_owned();
    }
    if let ServiceError::KeyLacking = error {
        return "PartitionKey extracted from document doesn't match the one specified in the header."
            .to_owned();
    }
    if let ServiceError::NotInRole { .. } = error {
        return blocked(&error.to_string());
    }
    if let ServiceError::MergeUnaware = error {
        return format!(
            "The partitions of this container have been merged, which this client does not declare to support. \
             Update the SDK, or set bit 1 of {CAPABILITIES}."
        );
    }
    error.to_string()
}

/// As the service says that roles do not allow something.
fn blocked(reason: &str) -> String {
    format!(
        "Request blocked by Auth {ACCOUNT} : {reason} Learn more: https://aka.ms/cosmos-native-rbac."
    )
}

/// How long a client should wait, where waiting helps.
fn retry_after_ms(error: &ServiceError) -> Option<u64> {
    if let ServiceError::Throttled { refusal } = error {
        // Rounded up: a client that returns a moment too early is refused again.
        let wait = refusal.retry_after.as_micros().div_ceil(1_000);
        return Some(u64::try_from(wait).unwrap_or(u64::MAX));
    }
    if matches!(error, ServiceError::ScriptsBusy) {
        return Some(SCRIPTS_RETRY_MS);
    }
    let waiting_helps = matches!(
        error,
        ServiceError::Busy | ServiceError::OutOfMemory | ServiceError::ScriptConflict
    );
    waiting_helps.then_some(BUSY_RETRY_MS)
}

fn status_of(error: &ServiceError) -> (StatusCode, u32) {
    match error {
        ServiceError::Unauthorised => (StatusCode::UNAUTHORIZED, 0),
        ServiceError::Forbidden | ServiceError::NotPermitted => (StatusCode::FORBIDDEN, 0),
        ServiceError::ControlPlane => (StatusCode::FORBIDDEN, substatus::NOT_DATA_PLANE),
        ServiceError::NotInRole { .. } => (StatusCode::FORBIDDEN, substatus::NOT_IN_ROLE),
        ServiceError::Invalid { .. }
        | ServiceError::Query { .. }
        | ServiceError::AcrossPartitions
        | ServiceError::MergeUnaware => (StatusCode::BAD_REQUEST, 0),
        ServiceError::NeedsMerge { .. } => (StatusCode::BAD_REQUEST, substatus::NEEDS_MERGE),
        ServiceError::KeyMismatch | ServiceError::KeyLacking => {
            (StatusCode::BAD_REQUEST, substatus::KEY_MISMATCH)
        }
        ServiceError::Dependency => (StatusCode::FAILED_DEPENDENCY, 0),
        ServiceError::ContainerRecreated => {
            (StatusCode::BAD_REQUEST, substatus::CONTAINER_RECREATED)
        }
        ServiceError::NotFound => (StatusCode::NOT_FOUND, 0),
        ServiceError::OwnerNotFound => (StatusCode::NOT_FOUND, substatus::OWNER_NOT_FOUND),
        ServiceError::Conflict { .. } => (StatusCode::CONFLICT, 0),
        ServiceError::Precondition => (StatusCode::PRECONDITION_FAILED, 0),
        ServiceError::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, 0),
        ServiceError::ResponseTooLarge { .. } => {
            (StatusCode::PAYLOAD_TOO_LARGE, substatus::RESPONSE_TOO_LARGE)
        }
        ServiceError::SessionNotAvailable => {
            (StatusCode::NOT_FOUND, substatus::SESSION_NOT_AVAILABLE)
        }
        ServiceError::RangeGone { .. } => (StatusCode::GONE, substatus::RANGE_GONE),
        ServiceError::RangeSwitching { .. } => (StatusCode::GONE, substatus::RANGE_SWITCHING),
        // Without a sub-status: those of 410 make clients refresh the ranges and send the
        // same position again, some of them without end.
        ServiceError::NoSuchPosition { .. } => (StatusCode::GONE, 0),
        ServiceError::KeyFull { .. } => (StatusCode::FORBIDDEN, substatus::KEY_FULL),
        ServiceError::Quota { .. } => (StatusCode::FORBIDDEN, substatus::QUOTA),
        ServiceError::Throttled { refusal } => {
            let substatus = match refusal.reason {
                Reason::Rate => substatus::THROTTLED,
                Reason::Bucket => substatus::BUCKET_THROTTLED,
                Reason::BucketChange => substatus::BUCKET_CHANGED,
            };
            (StatusCode::TOO_MANY_REQUESTS, substatus)
        }
        ServiceError::Script { fault, .. } => status_of_script(fault),
        ServiceError::ScriptConflict => (RETRY_WITH, 0),
        ServiceError::ScriptsBusy => (StatusCode::TOO_MANY_REQUESTS, substatus::SCRIPTS_BUSY),
        ServiceError::Scaling => (StatusCode::LOCKED, 0),
        ServiceError::Busy => (StatusCode::TOO_MANY_REQUESTS, substatus::OVERLOADED),
        // A status on which clients retry, in another region first if they know one.
        ServiceError::Stopping
        | ServiceError::OutOfMemory
        | ServiceError::DiskFull
        | ServiceError::ClockBehind { .. } => (StatusCode::SERVICE_UNAVAILABLE, 0),
        // The client cannot know whether it happened, and its retry rules for this status
        // are made for exactly that.
        ServiceError::Unknown | ServiceError::TimedOut => (StatusCode::REQUEST_TIMEOUT, 0),
        // Batches do not nest.
        ServiceError::Batch { .. } | ServiceError::Internal { .. } => {
            (StatusCode::INTERNAL_SERVER_ERROR, 0)
        }
    }
}

/// Status and sub-status of a failed script: a number that it gave to its error is the
/// latter.
fn status_of_script(fault: &Fault) -> (StatusCode, u32) {
    match fault {
        Fault::OutOfTime | Fault::OutOfSteps => (StatusCode::REQUEST_TIMEOUT, 0),
        Fault::ResultTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, 0),
        Fault::Thrown(thrown) | Fault::Aborted(thrown) => {
            let number = thrown.number.and_then(|number| u32::try_from(number).ok());
            (StatusCode::BAD_REQUEST, number.unwrap_or_default())
        }
        Fault::Syntax { .. }
        | Fault::NotAFunction
        | Fault::SourceTooLarge { .. }
        | Fault::Arguments { .. }
        | Fault::OutOfMemory
        | Fault::StackOverflow
        | Fault::Unsettled => (StatusCode::BAD_REQUEST, 0),
    }
}

impl From<Refused> for WireError {
    fn from(refused: Refused) -> WireError {
        let status = match refused {
            Refused::Missing
            | Refused::Malformed
            | Refused::Scheme(_)
            | Refused::Date
            | Refused::Signature { .. }
            | Refused::Token
            | Refused::Bearer(_) => StatusCode::UNAUTHORIZED,
            Refused::Skewed { .. } | Refused::Expired { .. } => StatusCode::FORBIDDEN,
        };
        WireError::new(status, 0, refused.to_string())
    }
}

impl From<BinaryJsonError> for WireError {
    fn from(error: BinaryJsonError) -> WireError {
        if matches!(error, BinaryJsonError::TooLarge) {
            return WireError::too_large();
        }
        WireError::bad_request(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_cannot_run_now_may_be_sent_again() {
        let told = |error: ServiceError| {
            let WireError { status, substatus, retry_after_ms, .. } = error.into();
            (status.as_u16(), substatus, retry_after_ms.is_some())
        };
        assert_eq!(told(ServiceError::ScriptsBusy), (429, 3084, true));
        assert_eq!(told(ServiceError::ScriptConflict), (449, 0, true));
    }
}
