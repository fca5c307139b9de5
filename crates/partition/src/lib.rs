//! One physical partition as a deterministic state machine.
//!
//! A partition owns a run of buckets and is their sequencer: it alone decides the order of
//! their writes. [`Partition::apply`] takes one [`Command`] at a time, executes it on top
//! of everything it has applied before, durable or not, and submits the result as one
//! atomic batch: the item, its index entries, its log entry, its unique values, the
//! statistics and the head. The same commands with the same times give the same bytes.
//!
//! [`Reader`] is the other half: it serves clients from views, which show only what is
//! durable, without asking the sequencer.
//!
//! Must not know: other partitions, network, wall clock.

mod bucket_writer;
mod changes;
mod check;
mod command;
mod config;
mod derived;
mod document;
mod dual_write;
mod expire;
mod history;
mod items;
mod key;
mod moving;
mod ordinal_blocks;
mod overlay;
mod patch;
mod query;
mod read;
mod record;
mod reindex;
mod rows;
mod sequencer;
mod sizes;
mod time;
mod transaction;
mod trial;
pub mod upgrade;
mod write_set;

pub use changes::{ChangePage, Changes};
pub use check::{Finding, Report, check_bucket};
pub use command::{
    Command, CommandError, Effect, EffectKind, EtagMatch, Operation, Outcome, PartitionError,
    PartitionRemedy, Purpose,
};
pub use config::{Bucket, Move, PartitionConfig};
pub use document::{Document, DocumentError};
pub use expire::Passed;
pub use history::{
    History, HistoryKind, HistoryPage, HistoryRecord, HistoryRow, Outdated, VersionMark,
};
pub use key::{BucketNumber, ContainerNumber, bucket_prefix, container_prefix, describe_key};
pub use moving::Copied;
pub use patch::{Patch, PatchError};
pub use query::{
    AccessPath, AccessPlan, Approach, ExecuteError, Given, KEYS_MAX, LONG_STEPS_MAX, MARKS_MAX,
    OpenScan, OrderError, OrdinalSet, OutputRow, PartialPage, PartitionQuery, Point, ROW_BYTES,
    SORT_KEY_BYTES_MAX, ScanBudget, ScanEnd, ScanProgress, ScanStart, ScanStats, ScanStep,
    ScanTimes, Snapshot, Statistics, StatisticsQuery, StepPosition, Task, TimeSlice, TopBounds,
    ordinal_at, overlapping, value_sort_key,
};
pub use read::{ItemPage, Position, Reader};
pub use record::{Head, Item, KeyStatistics, RecordError};
pub use sequencer::{Application, Partition, Size};
pub use trial::{Trial, Tried};
