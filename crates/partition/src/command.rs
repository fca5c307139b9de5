//! Commands of a partition, and their outcomes.

use bytes::Bytes;
use model::charge::Work;
use model::epk::Epk;
use model::etag::Etag;
use model::name::ItemId;
use model::position::{Lsn, Timestamp};
use model::system_properties::ItemStamp;

use crate::document::Document;
use crate::patch::{Patch, PatchError};
use crate::record::RecordError;
use storage::StorageError;

/// One operation on one item.
#[derive(Clone, Debug)]
pub enum Operation {
    Create { document: Document },
    Upsert { document: Document, if_match: Option<EtagMatch> },
    Read { id: ItemId, if_none_match: Option<EtagMatch> },
    Replace { id: ItemId, document: Document, if_match: Option<EtagMatch> },
    Delete { id: ItemId, if_match: Option<EtagMatch> },
    Patch { id: ItemId, patch: Patch, if_match: Option<EtagMatch> },
}

impl Operation {
    /// The work that it is charged for when it fails.
    #[must_use]
    pub fn attempt(&self) -> Work {
        match self {
            Operation::Read { .. } => Work::Probe,
            Operation::Create { .. }
            | Operation::Upsert { .. }
            | Operation::Replace { .. }
            | Operation::Delete { .. }
            | Operation::Patch { .. } => Work::RefusedWrite,
        }
    }

    /// The document that it writes as a whole, if it does.
    #[must_use]
    pub fn document(&self) -> Option<&Document> {
        match self {
            Operation::Create { document }
            | Operation::Upsert { document, .. }
            | Operation::Replace { document, .. } => Some(document),
            Operation::Read { .. } | Operation::Delete { .. } | Operation::Patch { .. } => None,
        }
    }

    /// The id of its item.
    #[must_use]
    pub fn id(&self) -> &ItemId {
        match self {
            Operation::Create { document } | Operation::Upsert { document, .. } => document.id(),
            Operation::Read { id, .. }
            | Operation::Replace { id, .. }
            | Operation::Delete { id, .. }
            | Operation::Patch { id, .. } => id,
        }
    }
}

/// The value of an `If-Match` or `If-None-Match`: an etag, or `*` for any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtagMatch(pub String);

impl EtagMatch {
    #[must_use]
    pub fn matches(&self, etag: &Etag) -> bool {
        etag.matches(&self.0)
    }
}

/// A transaction: operations in one logical partition, all done or none.
///
/// A single write is a command of one operation.
#[derive(Clone, Debug)]
pub struct Command {
    pub position: Epk,
    pub operations: Vec<Operation>,
}

/// What a command is for, as far as its bounds are concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    #[default]
    Any,
    /// The writes of a script, which were tried on a snapshot before (see [`crate::Trial`]).
    /// There may be more of them than in a batch, and their texts are not given back.
    Script,
    /// Frees space, so that it may use space which is reserved for this (see
    /// [`storage::WriteBatch::for_relief`]).
    Relief,
}

/// The results of a command's operations, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The partition's position after the command.
    pub lsn: Lsn,
    pub effects: Vec<Effect>,
}

/// The result of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    pub kind: EffectKind,
    /// The position of the item's last write, which may be its removal.
    pub lsn: Lsn,
    /// What the database knows of the item's present version; none after a delete.
    pub stamp: Option<ItemStamp>,
    /// The item as it is now, without system properties; none after a delete or when it was
    /// not modified.
    pub text: Option<Bytes>,
    /// The work that it is charged for.
    pub work: Work,
}

impl Effect {
    /// The etag of the item's present version.
    #[must_use]
    pub fn etag(&self) -> Option<&Etag> {
        self.stamp.as_ref().map(|stamp| &stamp.etag)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectKind {
    Created,
    Replaced,
    Deleted,
    Read,
    NotModified,
}

/// Why a command failed. Nothing of it has been written.
#[derive(Debug, thiserror::Error)]
#[error("operation {at} failed: {problem}")]
pub struct CommandError {
    /// The operation that failed; the others failed with it.
    pub at: usize,
    pub problem: PartitionError,
    /// The partition's position that the refusal rests on.
    pub lsn: Lsn,
    /// The work that the failed attempt is charged for.
    pub work: Work,
}

/// The reasons, grouped by what the caller does about them (see [`PartitionError::remedy`]).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionError {
    #[error("Resource with specified id or name already exists.")]
    Exists,
    #[error("Unique index constraint violation.")]
    UniqueKey,
    #[error("Resource Not Found.")]
    NotFound,
    #[error("One of the specified pre-condition is not met.")]
    Precondition,
    #[error("The item would have {bytes} bytes, at most {max} are allowed")]
    TooLarge { bytes: usize, max: usize },
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// The logical partition is full: only operations that make it smaller are accepted.
    #[error(
        "Partition key reached maximum size of {gib} GB. Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk"
    )]
    KeyFull { gib: u64 },
    /// The container is full and cannot grow: only operations that make it smaller are
    /// accepted.
    #[error("The container reached its maximum size of {gib} GB.")]
    ContainerFull { gib: u64 },
    #[error("Batch request has no operations.")]
    Empty,
    #[error("Batch request has more operations than what is supported.")]
    TooMany { count: usize, max: usize },
    #[error("Response size is too large: the operations of a batch give back at most {max} bytes.")]
    GivesTooMuch { max: usize },
    /// The partition does not hold this key (any more): the caller's map was outdated.
    #[error("the partition does not own the key")]
    Gone,
    /// A position in the log that this partition has never reached: it was given out by one
    /// that went further, of which this is a restored copy. Start over.
    #[error("position {after} is beyond the last one, {end}")]
    NoSuchPosition { after: Lsn, end: Lsn },
    /// The container has no retention for all versions and deletes.
    #[error(
        "The change feed of all versions and deletes needs a container whose changeFeedPolicy has a \
         retentionDuration above 0."
    )]
    NoHistory,
    /// Changes after this position were not kept, or are not kept any more.
    #[error(
        "All versions and deletes are known after position {horizon} only, not after {after}: the \
         position is older than the retention of the change feed policy. Start from now."
    )]
    HistoryGone { after: Lsn, horizon: Lsn },
    /// The last write was made under a clock that was far ahead of the present one.
    #[error(
        "The last write to this partition was made at {}, which is {} seconds ahead of the server's clock ({}), so no time \
         can be given to another one. Correct the clock of the server, or stop it and run `orrery check --reset-time`.",
        recorded.secs(), recorded.secs().saturating_sub(now.secs()), now.secs()
    )]
    ClockBehind { recorded: Timestamp, now: Timestamp },
    /// The blocks of ordinals are used up: allocate another and try again.
    #[error("the ordinals are used up")]
    OutOfOrdinals,
    /// An upgrade read something else than the head of a bucket says: items and bytes. The
    /// old store is not consistent.
    #[error(
        "bucket {bucket} of container {container} has {} items of {} bytes, and its head says \
         {} of {}: check the old store with the version that wrote it",
        found.0, found.1, recorded.0, recorded.1
    )]
    Miscounted { container: u32, bucket: u32, recorded: (u64, u64), found: (u64, u64) },
    #[error("stored data cannot be read")]
    Record(#[from] RecordError),
    #[error("storage failed")]
    Storage(#[from] StorageError),
}

/// What to do about a [`PartitionError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionRemedy {
    /// The request must change.
    Correct,
    /// Read again, then decide.
    Reread,
    /// Ask the map again, then try again.
    Reroute,
    /// Allocate ordinals, then try again.
    AllocateOrdinals,
    /// Try again later; an operator may have to look.
    Operator,
}

impl PartitionError {
    /// The work that an operation is charged for when it fails with this error. A client
    /// pays for the attempt of a request that cannot succeed, but not for failures of the
    /// database.
    #[must_use]
    pub fn work(&self, attempt: Work) -> Work {
        match self.remedy() {
            PartitionRemedy::Correct | PartitionRemedy::Reread => attempt,
            PartitionRemedy::Reroute
            | PartitionRemedy::AllocateOrdinals
            | PartitionRemedy::Operator => Work::Nothing,
        }
    }

    #[must_use]
    pub fn remedy(&self) -> PartitionRemedy {
        match self {
            PartitionError::TooLarge { .. }
            | PartitionError::GivesTooMuch { .. }
            | PartitionError::KeyFull { .. }
            | PartitionError::ContainerFull { .. }
            | PartitionError::Patch(_)
            | PartitionError::Empty
            | PartitionError::TooMany { .. }
            | PartitionError::NoSuchPosition { .. }
            | PartitionError::NoHistory
            | PartitionError::HistoryGone { .. } => PartitionRemedy::Correct,
            PartitionError::Exists
            | PartitionError::UniqueKey
            | PartitionError::NotFound
            | PartitionError::Precondition => PartitionRemedy::Reread,
            PartitionError::Gone => PartitionRemedy::Reroute,
            PartitionError::OutOfOrdinals => PartitionRemedy::AllocateOrdinals,
            PartitionError::ClockBehind { .. }
            | PartitionError::Miscounted { .. }
            | PartitionError::Record(_)
            | PartitionError::Storage(_) => PartitionRemedy::Operator,
        }
    }
}
