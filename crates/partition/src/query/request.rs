//! Queries to a partition and its answers: plain data.
//!
//! A [`PartitionQuery`] has the buckets to scan, the access path, the task and the budget;
//! a [`PartialPage`] is the answer of one partition. Both mean the same wherever the
//! partition is: nothing in them points into its memory. The caller cuts pages and makes
//! cursors; a partition only stops early enough.

use std::ops::{AddAssign, Range};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use index::EntryOrder;
use model::epk::EpkRange;
use model::partition_key::PartitionKey;
use model::position::{Lsn, Timestamp};
use model::system_properties::SystemProperties;
use query::{Bound, PartialGroups, QueryError, Watch};

use super::access::AccessPath;
use super::point::Point;
use super::scan::{ScanStart, ScanStats};
use crate::command::PartitionError;

/// A query for one partition.
#[derive(Clone, Debug)]
pub struct PartitionQuery {
    pub bound: Arc<Bound>,
    pub task: Task,
    /// The access path, the same in every partition.
    pub path: Arc<AccessPath>,
    /// The order of the entries that are scanned in the order of the query, if they are.
    pub along: Option<EntryOrder>,
    /// Whether the access path covers the filter, so that no residual filter is evaluated.
    pub covers_filter: bool,
    /// For each key of the order, or of the values that distinguish rows, whether it
    /// descends.
    pub order: Vec<bool>,
    /// Whether rows are distinguished by their values, and in their order.
    pub by_value: bool,
    /// The parts of the ring to scan, in order and disjoint.
    pub within: Vec<EpkRange>,
    /// The ordinals to scan.
    pub ordinals: Range<u64>,
    /// The prefix of the items' partition keys, where the client named one.
    pub prefix: Option<Arc<PartitionKey>>,
    /// Where the scan starts: after all of these.
    pub starts: Vec<ScanStart>,
    /// Rows count only after all of these.
    pub points: Vec<Point>,
    pub now: Timestamp,
    pub budget: ScanBudget,
    /// The system properties that documents are shown with.
    pub system: Option<Arc<SystemProperties>>,
    /// Distinguishes the random numbers of parts of one query.
    pub part: u64,
    /// Whether the client asked for timings.
    pub is_timed: bool,
}

/// How many of the first rows a page can need. It is full after a number of rows, or of
/// bytes, whichever comes first; a single row may be larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopBounds {
    /// Rows, with those that are skipped.
    pub rows: usize,
    /// Rows before the first one on the page, whose bytes do not count.
    pub skip: usize,
    /// Bytes of rows on the page.
    pub bytes: usize,
}

impl TopBounds {
    /// All rows.
    pub const NONE: TopBounds = TopBounds { rows: usize::MAX, skip: 0, bytes: usize::MAX };

    /// Whether the last one of `rows` is beyond the page. `before` counts the bytes of all
    /// others, of which `largest` is the longest: those that are skipped have no more than
    /// that each.
    #[must_use]
    pub fn is_beyond(&self, rows: usize, before: usize, largest: usize) -> bool {
        let skipped = self.skip.saturating_mul(largest);
        rows > self.rows || before > self.bytes.saturating_add(skipped)
    }
}

/// What to compute from the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Rows in the order of the scan, until the budget is used up.
    Scan,
    /// The first rows of all in the order of the query, as many as a page can need.
    TopRows(TopBounds),
    /// As `TopRows`, of rows that are distinguished by their values. Any will do once there
    /// are `enough`: a number of rows, of no more than a number of bytes.
    Distinct { rows: usize, enough: Option<(usize, usize)> },
    /// Groups of all items.
    Aggregate,
    /// Rows that are distinguished by values, or groups, along an index of the values.
    Values,
    /// The items themselves.
    Documents,
}

/// The limits of a scan. It stops where a page would be full if all its rows came from this
/// partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanBudget {
    /// Rows before the first one on the page.
    pub skip: u64,
    /// Rows at the beginning whose texts are not needed.
    pub textless: u64,
    /// Rows on the page.
    pub rows: usize,
    /// Bytes of rows on the page; a single row may be larger.
    pub bytes: usize,
    /// Whether there is no page after this one, so that no look-ahead is needed.
    pub is_last: bool,
    /// Items to scan, whether or not they yield a row.
    pub candidates: u64,
    /// Items to scan after the page is full, to find whether there is another row.
    pub look_ahead: u64,
    /// Steps of evaluation.
    pub steps: usize,
    /// What earlier parts of the scan have produced.
    pub progress: ScanProgress,
    /// Whether steps of items without a row can be combined.
    pub coalesces: bool,
}

impl Default for ScanBudget {
    /// No bounds.
    fn default() -> ScanBudget {
        ScanBudget {
            skip: 0,
            textless: 0,
            rows: usize::MAX,
            bytes: usize::MAX,
            is_last: false,
            candidates: u64::MAX,
            look_ahead: u64::MAX,
            steps: usize::MAX,
            progress: ScanProgress::default(),
            coalesces: false,
        }
    }
}

/// How full a page would be if all its rows came from this partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanProgress {
    /// Rows that were made.
    pub made: u64,
    /// Those of them that are on the page, and their bytes.
    pub rows: usize,
    pub bytes: usize,
    /// Items that were scanned after it was full.
    pub looked_ahead: u64,
}

/// The answer of one partition.
#[derive(Clone, Debug, PartialEq)]
pub struct PartialPage {
    /// The LSN of the partition.
    pub lsn: Lsn,
    pub steps: Vec<ScanStep>,
    /// A sorted run.
    pub rows: Vec<OutputRow>,
    /// Rows that begin like a truncated resume point. Some were returned before; which ones
    /// is known when those of all partitions are there. Sorted.
    pub among: Vec<OutputRow>,
    pub aggregate: PartialGroups,
    /// Texts of items.
    pub documents: Vec<Bytes>,
    /// What was read to find the first candidates.
    pub opening: ScanStats,
    pub stats: ScanStats,
    pub candidates: u64,
    pub progress: ScanProgress,
    /// Steps of evaluation.
    pub evaluated: usize,
    pub end: ScanEnd,
    pub times: ScanTimes,
}

/// One candidate, or several that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanStep {
    /// Its ordinal, or its key without its bucket's prefix. Of several candidates,
    /// that of the last one, or the prefix that all of them share.
    pub position: Bytes,
    /// Whether it is all candidates of the partition whose positions have this prefix.
    pub is_shared: bool,
    /// Whether it has one row at most, which any of the candidates would yield, in
    /// whichever partition.
    pub is_one: bool,
    /// Number of steps that it stands for, of which all but the last one have no rows.
    pub steps: u64,
    /// Number of items that were scanned for it.
    pub candidates: u64,
    pub rows: Vec<OutputRow>,
    /// Groups, where rows are made of them.
    pub aggregate: PartialGroups,
    /// What was read and evaluated up to here.
    pub stats: ScanStats,
    pub evaluated: usize,
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutputRow {
    /// Its position in the order: the sort values, then the item, in the direction of the
    /// first key, then the number of the row; or the values that distinguish rows. Empty
    /// where rows need not be sorted.
    pub sort_key: Vec<u8>,
    pub text: String,
    /// What DISTINCT compares where there is an order; empty otherwise.
    pub identity: String,
}

/// Memory of a kept row besides its texts: a growing list has up to twice the capacity that
/// it needs.
pub const ROW_BYTES: usize = 2 * (size_of::<OutputRow>() + size_of::<usize>());

impl OutputRow {
    /// Its size in memory.
    #[must_use]
    pub fn footprint(&self) -> usize {
        self.sort_key.capacity() + self.text.capacity() + self.identity.capacity() + ROW_BYTES
    }
}

impl PartialPage {
    /// Its size in memory.
    #[must_use]
    pub fn footprint(&self) -> usize {
        let rows = |rows: &[OutputRow]| rows.iter().map(OutputRow::footprint).sum::<usize>();
        let step = |step: &ScanStep| {
            let groups = step.aggregate.footprint();
            size_of::<ScanStep>() + step.position.len() + rows(&step.rows) + groups
        };
        let documents: usize = self.documents.iter().map(|text| text.len() + ROW_BYTES).sum();
        let steps: usize = self.steps.iter().map(step).sum();
        rows(&self.rows) + rows(&self.among) + self.aggregate.footprint() + documents + steps
    }
}

/// Why a scan stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanEnd {
    /// There is nothing left.
    Exhausted,
    /// The budget is used up.
    Budget,
    /// The time slice of the page is over.
    Time,
    /// The next item cannot be evaluated.
    Failed(QueryError),
}

/// Timings of a partition, for clients that ask for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanTimes {
    /// Reading index entries.
    pub finding: Duration,
    /// Loading items.
    pub loading: Duration,
    /// Serialising rows.
    pub writing: Duration,
}

impl AddAssign for ScanTimes {
    fn add_assign(&mut self, other: ScanTimes) {
        self.finding += other.finding;
        self.loading += other.loading;
        self.writing += other.writing;
    }
}

/// Why a partition has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    #[error(transparent)]
    Partition(#[from] PartitionError),
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The caller cancelled the query.
    #[error("the query was interrupted")]
    Interrupted,
}

/// The time slices of the thread that a query runs on, which it shares with others.
pub trait TimeSlice {
    /// Yields if it is another query's turn. Returns whether a page that can end anywhere
    /// may continue.
    fn may_go_on(&self) -> bool;

    /// The same for work that cannot stop half-way.
    fn go_on_to_the_end(&self) -> Result<(), ExecuteError>;

    /// For evaluation, which may take long between two candidates.
    fn watch(&self) -> Option<Arc<dyn Watch>>;

    /// The time since some moment.
    fn elapsed(&self) -> Duration;
}
