//! Why a request failed, named by what the client does about it.
//!
//! Texts are those that the service's clients know, as far as they are independent of the
//! protocol. Status codes, and texts that name headers, are up to each protocol.

use cluster::{ClusterError, ThrottleRefusal};
use model::json::{JsonError, Object, Value};
use model::limits::{ITEM_ID_BYTES_MAX, NAME_CHARS_MAX};
use model::name::NameError;
use model::partition_key::KeyError;
use model::policy::{PolicyError, ReplaceError};
use model::position::Lsn;
use model::throughput::ThroughputError;
use partition::{DocumentError, PartitionError, PatchError};
use query::QueryError;
use script::Fault;
use storage::StorageError;

use crate::response::QueryPlan;
use crate::scripts::texts;

#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// No or wrong credentials.
    #[error("The request carries no valid credentials.")]
    Unauthorised,
    /// The credentials do not allow this.
    #[error("The credentials of the request allow reading only, and not of permissions.")]
    Forbidden,
    /// The permission of the credentials is for something else.
    #[error("The permission that the request presents does not cover what it asks for.")]
    NotPermitted,
    /// No role allows this.
    #[error("No role allows this: it takes a key of the account.")]
    ControlPlane,
    /// The roles of the bearer of a token do not allow this there.
    #[error(
        "Request is blocked because principal [{principal}] does not have required RBAC permissions to perform action \
         [{action}] on resource [{resource}]."
    )]
    NotInRole { principal: String, action: &'static str, resource: String },
    /// The request is invalid.
    #[error("{message}")]
    Invalid { message: String },
    /// The query is wrong or cannot be answered. `report` lists why, as clients parse it.
    #[error("{report}")]
    Query { report: Value },
    /// A cross-partition query that its sender did not enable.
    #[error("The query asks several partitions, which its sender has not agreed to.")]
    AcrossPartitions,
    /// The query has to be sent to each partition and its rows merged, as the plan says.
    #[error("The rows that partitions have for this query must be merged by its sender.")]
    NeedsMerge { plan: Box<QueryPlan> },
    /// The partition key is not that of the container or of the document.
    #[error(
        "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition \
         key field values specified in the document."
    )]
    KeyMismatch,
    /// A document lacks one of the values of a hierarchical key.
    #[error("The document lacks a value of the partition key that was given with it.")]
    KeyLacking,
    /// It was not begun, because an earlier one failed.
    #[error("Another operation of the batch failed.")]
    Dependency,
    /// The container was dropped and recreated since the client looked at it.
    #[error("The container is not the one that was intended: it was dropped and recreated.")]
    ContainerRecreated,
    /// What is named does not exist.
    #[error("Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found")]
    NotFound,
    /// What contains the named resource does not exist.
    #[error("Owner resource does not exist")]
    OwnerNotFound,
    /// The name or a unique value is taken.
    #[error("{message}")]
    Conflict { message: &'static str },
    /// The resource has changed since the client read it.
    #[error(
        "One of the specified pre-condition is not met. Learn more: https://aka.ms/CosmosDB/sql/errors/precondition-failed"
    )]
    Precondition,
    #[error("{message}")]
    TooLarge { message: String },
    /// The operations of one request return more than an answer can have. Ask for fewer.
    #[error("{message}")]
    ResponseTooLarge { message: String },
    /// The client has seen more than this server has. Try again.
    #[error("The read session is not available for the input session token.")]
    SessionNotAvailable,
    /// The named physical partition does not exist, or no longer. Refresh the map.
    #[error("PartitionKeyRange with id '{range}' in collection '{container}' doesn't exist.")]
    RangeGone { range: u32, container: String },
    /// The named physical partition is being split or merged. Refresh the map, then send
    /// the same again.
    #[error(
        "PartitionKeyRange with id '{range}' in collection '{container}' is being split or merged."
    )]
    RangeSwitching { range: u32, container: String },
    /// The change feed never reached the client's position: this is a restored copy. Read
    /// it from its beginning, or from now on.
    #[error(
        "The change feed of this partition ends at position {end}, before {after}: the data was restored from a backup \
         after that position was given out. Read the change feed anew, from its beginning or from now on."
    )]
    NoSuchPosition { after: Lsn, end: Lsn },
    /// The container's partitions were merged, and the client does not declare that it can
    /// follow that. Use a newer one.
    #[error(
        "The partitions of this container have been merged, which this client does not follow."
    )]
    MergeUnaware,
    /// The logical partition is full. Delete something, or use another key.
    #[error("{message}")]
    KeyFull { message: String },
    /// A quota of the account or container is used up.
    #[error("{message}")]
    Quota { message: String },
    /// The throughput is used up. Nothing was done; try again after the given time.
    #[error(
        "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request \
         later. Learn more: http://aka.ms/cosmosdb-error-429"
    )]
    Throttled { refusal: ThrottleRefusal },
    /// An earlier change of the throughput is still being carried out. Try again later.
    #[error("Another scaling operation is in progress for this resource. Please retry later.")]
    Scaling,
    /// Another operation of the same batch failed; this one was not done.
    #[error("operation {at} of the batch failed")]
    Batch {
        at: usize,
        #[source]
        error: Box<ServiceError>,
    },
    /// A script failed, and nothing that it did was kept. `log` is what it printed.
    #[error("{}", texts::message(script, fault))]
    Script { script: String, fault: Box<Fault>, log: String },
    /// Others kept writing what a script wrote, and nothing of it was kept. Try again.
    #[error("Conflicting request to resource has been attempted. Retry to avoid conflicts.")]
    ScriptConflict,
    /// Too many scripts are running or waiting. Nothing was done; try again later.
    #[error(
        "The request rate is too large: too many scripts are running at once. Please retry this \
         request later."
    )]
    ScriptsBusy,
    /// A query took too long and cannot be answered in part. Ask for less.
    #[error("The query could not be finished in time. Narrow it down by a filter.")]
    TimedOut,
    /// Too much is waiting. Nothing was done; try again later.
    #[error("The request rate is too large for this partition. Please retry later.")]
    Busy,
    /// The database is shutting down. Nothing was done.
    #[error("The server is stopping.")]
    Stopping,
    /// Other requests hold so much memory that there is none for this one. Nothing was
    /// done; try again later.
    #[error("There is no memory left for the request at the moment. Please retry later.")]
    OutOfMemory,
    /// The disk is full. Nothing was done; try again later.
    #[error(
        "No space left on device: the server's disk is full, so no changes were made. Writes go on when there is space again; \
         dropping containers makes some."
    )]
    DiskFull,
    /// It may or may not have been done. Read before trying again.
    #[error("The outcome of the request is not known. Please read before trying again.")]
    Unknown,
    /// The clock is far behind the time of the last write. Nothing was written.
    #[error("{message}")]
    ClockBehind { message: String },
    /// An internal error. The log has the details.
    #[error("An internal error occurred.")]
    Internal {
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// What a client does about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Send another request.
    Correct,
    /// Read, then decide.
    Reread,
    /// Refresh what was cached about partitions, then send the same again.
    Refresh,
    /// Send the same again, later.
    Retry,
    /// Ask the operator.
    Operator,
}

impl ServiceError {
    #[must_use]
    pub fn remedy(&self) -> Remedy {
        match self {
            ServiceError::Unauthorised
            | ServiceError::Forbidden
            | ServiceError::NotPermitted
            | ServiceError::ControlPlane
            | ServiceError::NotInRole { .. }
            | ServiceError::Invalid { .. }
            | ServiceError::Query { .. }
            | ServiceError::AcrossPartitions
            | ServiceError::NeedsMerge { .. }
            | ServiceError::TimedOut
            | ServiceError::Script { .. }
            | ServiceError::KeyMismatch
            | ServiceError::KeyLacking
            | ServiceError::Dependency
            | ServiceError::TooLarge { .. }
            | ServiceError::ResponseTooLarge { .. }
            | ServiceError::MergeUnaware
            | ServiceError::NoSuchPosition { .. }
            | ServiceError::KeyFull { .. }
            | ServiceError::Quota { .. } => Remedy::Correct,
            ServiceError::NotFound
            | ServiceError::OwnerNotFound
            | ServiceError::Conflict { .. }
            | ServiceError::Precondition
            | ServiceError::Unknown => Remedy::Reread,
            ServiceError::RangeGone { .. }
            | ServiceError::RangeSwitching { .. }
            | ServiceError::ContainerRecreated => Remedy::Refresh,
            ServiceError::SessionNotAvailable
            | ServiceError::Busy
            | ServiceError::ScriptsBusy
            | ServiceError::ScriptConflict
            | ServiceError::Stopping
            | ServiceError::OutOfMemory
            | ServiceError::DiskFull
            | ServiceError::Throttled { .. }
            | ServiceError::Scaling => Remedy::Retry,
            ServiceError::Batch { error, .. } => error.remedy(),
            ServiceError::ClockBehind { .. } | ServiceError::Internal { .. } => Remedy::Operator,
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> ServiceError {
        ServiceError::Invalid { message: message.into() }
    }

    /// A token that no page of this request ended with.
    pub(crate) fn bad_continuation() -> ServiceError {
        ServiceError::invalid("Invalid Continuation Token")
    }

    /// What is wrong with a query of that text.
    pub(crate) fn query(error: &QueryError, text: &str) -> ServiceError {
        ServiceError::Query { report: error.to_value(text) }
    }

    /// Why a query is refused, as one text.
    pub(crate) fn query_refused(message: &str) -> ServiceError {
        ServiceError::Query { report: Object::from_iter([("Errors", vec![message])]).into() }
    }

    pub(crate) fn internal(
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> ServiceError {
        ServiceError::Internal { source: source.into() }
    }
}

impl From<ClusterError> for ServiceError {
    fn from(error: ClusterError) -> ServiceError {
        match error {
            ClusterError::Command { error, .. } => error.problem.into(),
            ClusterError::Read(problem) => problem.into(),
            ClusterError::Busy => ServiceError::Busy,
            ClusterError::ScriptsBusy => ServiceError::ScriptsBusy,
            // Whose script it was is known where it is run.
            ClusterError::ScriptLate => ServiceError::TimedOut,
            ClusterError::Stopping => ServiceError::Stopping,
            ClusterError::Full | ClusterError::Storage(StorageError::Full { .. }) => {
                ServiceError::DiskFull
            }
            ClusterError::Throttled { refusal, .. } => ServiceError::Throttled { refusal },
            ClusterError::Unknown => ServiceError::Unknown,
            ClusterError::NoContainer(_) => ServiceError::OwnerNotFound,
            ClusterError::NoRange(range) => {
                ServiceError::RangeGone { range: range.0, container: String::new() }
            }
            ClusterError::Switching(range) => {
                ServiceError::RangeSwitching { range: range.0, container: String::new() }
            }
            ClusterError::Layout(_) | ClusterError::Indivisible { .. } => {
                ServiceError::invalid(error.to_string())
            }
            ClusterError::Internal
            | ClusterError::System(_)
            | ClusterError::Map(_)
            | ClusterError::Storage(_) => ServiceError::internal(error),
        }
    }
}

impl From<PartitionError> for ServiceError {
    fn from(problem: PartitionError) -> ServiceError {
        match problem {
            PartitionError::Exists => ServiceError::Conflict {
                message: "Resource with specified id or name already exists. Learn more: https://aka.ms/cosmosdb-tsg-conflict",
            },
            PartitionError::UniqueKey => {
                ServiceError::Conflict { message: "Unique index constraint violation." }
            }
            PartitionError::NotFound => ServiceError::NotFound,
            PartitionError::Precondition => ServiceError::Precondition,
            PartitionError::TooLarge { .. } => {
                ServiceError::TooLarge { message: problem.to_string() }
            }
            PartitionError::GivesTooMuch { .. } => {
                ServiceError::ResponseTooLarge { message: problem.to_string() }
            }
            PartitionError::KeyFull { .. } => {
                ServiceError::KeyFull { message: problem.to_string() }
            }
            PartitionError::ContainerFull { .. } => {
                ServiceError::Quota { message: problem.to_string() }
            }
            PartitionError::Patch(_)
            | PartitionError::Empty
            | PartitionError::TooMany { .. }
            | PartitionError::NoHistory
            | PartitionError::HistoryGone { .. } => ServiceError::invalid(problem.to_string()),
            PartitionError::NoSuchPosition { after, end } => {
                ServiceError::NoSuchPosition { after, end }
            }
            PartitionError::ClockBehind { .. } => {
                ServiceError::ClockBehind { message: problem.to_string() }
            }
            PartitionError::Gone | PartitionError::OutOfOrdinals => ServiceError::Busy,
            PartitionError::Storage(StorageError::Full { .. }) => ServiceError::DiskFull,
            PartitionError::Record(_) | PartitionError::Storage(_) | _ => {
                ServiceError::internal(problem)
            }
        }
    }
}

impl From<DocumentError> for ServiceError {
    fn from(error: DocumentError) -> ServiceError {
        let message = error.to_string();
        match error {
            DocumentError::TooLarge { .. } => ServiceError::TooLarge { message },
            DocumentError::Id(error) => name_error(error, ITEM_ID_BYTES_MAX + 1),
            DocumentError::Json(_)
            | DocumentError::NotAnObject
            | DocumentError::MissingId
            | DocumentError::IdType
            | DocumentError::Ttl(_) => ServiceError::Invalid { message },
        }
    }
}

impl From<ThroughputError> for ServiceError {
    fn from(error: ThroughputError) -> ServiceError {
        ServiceError::invalid(error.to_string())
    }
}

impl From<KeyError> for ServiceError {
    fn from(error: KeyError) -> ServiceError {
        if matches!(error, KeyError::Mismatch { .. }) {
            return ServiceError::KeyMismatch;
        }
        ServiceError::invalid(error.to_string())
    }
}

impl From<JsonError> for ServiceError {
    fn from(error: JsonError) -> ServiceError {
        ServiceError::invalid(format!("The request body is not valid JSON: {error}"))
    }
}

impl From<NameError> for ServiceError {
    fn from(error: NameError) -> ServiceError {
        name_error(error, NAME_CHARS_MAX)
    }
}

/// Clients look for the service's wording, which says "less than" for both limits and means
/// it for that of items only.
fn name_error(error: NameError, less_than: usize) -> ServiceError {
    let advice = match error {
        NameError::Empty | NameError::TooLong { .. } => format!(
            " Ensure to provide a unique non-empty string less than '{less_than}' characters."
        ),
        NameError::Character { .. } | NameError::TrailingBlank => String::new(),
    };
    ServiceError::invalid(format!("{error}{advice}"))
}

/// Errors that only have a text.
macro_rules! invalid_from {
    ($($error:ty),*) => {$(
        impl From<$error> for ServiceError {
            fn from(error: $error) -> ServiceError {
                ServiceError::invalid(error.to_string())
            }
        }
    )*};
}

invalid_from!(PolicyError, ReplaceError, PatchError);
