//! Queries over the items of one partition.
//!
//! The planner chooses an [`AccessPath`] once for all partitions: a full scan, the entries
//! of one index, or the zig-zag intersection of several. A [`Snapshot`] of a partition then
//! [executes](Snapshot::execute) the query over its buckets. Bucket scans follow the access
//! path and yield *positions*: keys without the bucket's prefix. Positions of several
//! buckets can be compared, so their candidates are merged into one order, and a scan can
//! start after any position, so a query resumes with its next page.
//!
//! Queries and answers are plain data (`request.rs`), so it does not matter where the
//! partition is. How the answers of several partitions are combined is not known here.

mod absent;
mod access;
mod bucket_merge;
mod by_value;
mod candidates;
mod codec;
mod composite;
mod execute;
mod indexes;
mod planner;
mod point;
mod request;
mod scan;
mod set_cursor;
mod snapshot;
mod stopwatch;

pub use access::{AccessPath, OrdinalSet};
pub use execute::{LONG_STEPS_MAX, OpenScan, StepPosition, value_sort_key};
pub use planner::{AccessPlan, OrderError, Statistics};
pub(crate) use planner::{index_use, plan};
pub use point::{Given, MARKS_MAX, Point, SORT_KEY_BYTES_MAX};
pub use request::{
    ExecuteError, OutputRow, PartialPage, PartitionQuery, ROW_BYTES, ScanBudget, ScanEnd,
    ScanProgress, ScanStep, ScanTimes, Task, TimeSlice, TopBounds,
};
pub use scan::{KEYS_MAX, ScanStart, ScanStats, ordinal_at};
pub use snapshot::{Snapshot, StatisticsQuery, overlapping};

/// How a query finds its items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approach {
    /// Using the index, where that helps.
    #[default]
    Index,
    /// By a full scan, whatever the index could do: the reference that answers are compared
    /// with.
    Scan,
}
