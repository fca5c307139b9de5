//! Why the cluster refused or failed a request, grouped by what the caller does about it.

use model::partition_key::PartitionKey;
use partition::{CommandError, DocumentError, PartitionError};
use storage::StorageError;

use crate::layout::map::{LayoutError, MapError, PartitionId};
use crate::throughput::budget::ThrottleRefusal;

/// Exhaustive on purpose: code that translates it must consider every new variant.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The partition refused the command and nothing was written. See its problem.
    #[error("{error}")]
    Command {
        range: PartitionId,
        #[source]
        error: CommandError,
    },
    /// Reading failed. See the problem.
    #[error(transparent)]
    Read(#[from] PartitionError),
    /// Too much is waiting already. Nothing was written; try again later.
    #[error("too many requests are waiting for this partition")]
    Busy,
    /// Too many scripts are running or waiting. Nothing was written; try again later.
    #[error("too many scripts are running")]
    ScriptsBusy,
    /// A script did not end when its time was over. Nothing was written.
    #[error("the script did not end in time")]
    ScriptLate,
    /// The disk is full. Nothing was written; try again later.
    #[error("no space left on device")]
    Full,
    /// The throughput of the physical partition is used up for the moment.
    #[error("the throughput of range {range} is used up")]
    Throttled { range: PartitionId, refusal: ThrottleRefusal },
    /// The write may or may not have happened. Read before trying again.
    #[error("the outcome of the write is not known")]
    Unknown,
    /// The container does not exist (any more).
    #[error("there is no container {0}")]
    NoContainer(u32),
    /// A named physical partition does not exist (any more): the caller's map is outdated.
    #[error("there is no range {0}")]
    NoRange(PartitionId),
    /// A named physical partition was being replaced when the request came. Try
    /// again with the new map.
    #[error("range {0} is being split or merged")]
    Switching(PartitionId),
    /// The range cannot be cut: all it holds is one logical partition, or there is
    /// nothing to cut.
    #[error("range {range} cannot be divided: {}", indivisible(key.as_ref()))]
    Indivisible { range: PartitionId, key: Option<PartitionKey> },
    /// The layout cannot be changed like this.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The database is shutting down.
    #[error("the database is stopping")]
    Stopping,
    /// An invariant did not hold while the command was applied. The partition was reopened
    /// from the disk; nothing was written.
    #[error("internal error while applying a command")]
    Internal,
    /// A catalogue or map entry cannot be stored, for instance because it is too large.
    #[error("a catalogue entry cannot be stored")]
    System(#[source] DocumentError),
    #[error(transparent)]
    Map(#[from] MapError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl ClusterError {
    /// Whether only another owner of the key can serve the request.
    pub(crate) fn is_about_ownership(&self) -> bool {
        match self {
            ClusterError::Switching(_) => true,
            ClusterError::Command { error, .. } => matches!(error.problem, PartitionError::Gone),
            ClusterError::Read(_)
            | ClusterError::Busy
            | ClusterError::ScriptsBusy
            | ClusterError::ScriptLate
            | ClusterError::Full
            | ClusterError::Throttled { .. }
            | ClusterError::Unknown
            | ClusterError::NoContainer(_)
            | ClusterError::NoRange(_)
            | ClusterError::Indivisible { .. }
            | ClusterError::Layout(_)
            | ClusterError::Stopping
            | ClusterError::Internal
            | ClusterError::System(_)
            | ClusterError::Map(_)
            | ClusterError::Storage(_) => false,
        }
    }
}

fn indivisible(key: Option<&PartitionKey>) -> String {
    match key {
        Some(key) => format!("all it holds has the partition key {key}, which stays together"),
        None => "there is nothing to divide".to_owned(),
    }
}
