//! What a partition is asked, and what it answers: plain data.
//!
//! A [`PartitionQuery`] says which buckets to look at, how to find items in them, what to
//! make of them and when to stop; a [`PartialPage`] is what one partition has come to. Both
//! mean the same wherever the partition is: nothing in them points into its memory. Pages
//! are cut and cursors are made by whoever asks; a partition only stops early enough.

use std::ops::{AddAssign, Range};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use index::EntryOrder;
use model::epk::EpkRange;
use model::partition_key::PartitionKey;
use model::position::{Lsn, Timestamp};
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
    /// How items are found, the same in every partition.
    pub path: AccessPath,
    /// How the entries lie that are scanned in the order of the query, if they are.
    pub along: Option<EntryOrder>,
    /// Whether the filter keeps every candidate, so that it need not be asked.
    pub covers_filter: bool,
    /// For each key of the order, or of the values by which rows are told apart, whether it
    /// descends.
    pub order: Vec<bool>,
    /// Whether rows are told apart by their values, in the order of which they are then.
    pub by_value: bool,
    /// The parts of the ring to look at, in order and apart from each other.
    pub within: Vec<EpkRange>,
    /// The ordinals that items there can have.
    pub ordinals: Range<u64>,
    /// What the keys of items begin with, where the client named a prefix.
    pub prefix: Option<Arc<PartitionKey>>,
    /// The part of the ring that was being read, where items are read bucket by bucket: what
    /// is before it is done, and `starts` are positions in it.
    pub current: Option<EpkRange>,
    /// Where the scan starts: after all of these.
    pub starts: Vec<ScanStart>,
    /// Rows count only after all of these.
    pub points: Vec<Point>,
    pub now: Timestamp,
    pub budget: ScanBudget,
    /// Tells apart the random numbers of parts of one query.
    pub part: u64,
    /// Whether somebody wants to know where the time goes.
    pub is_timed: bool,
}

/// What to make of the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Rows in the order of the scan, until the budget is used up.
    Scan,
    /// The first rows of all in the order of the query.
    TopRows { rows: usize },
    /// As `TopRows`, of rows that are told apart by their values. Any will do where there
    /// are `enough`: so many rows, of no more than so many bytes.
    Distinct { rows: usize, enough: Option<(usize, usize)> },
    /// Groups of all items.
    Aggregate,
    /// Rows that are told apart by values, or groups, along an index of the values.
    Values,
    /// The items themselves.
    Documents,
}

/// Where a scan stops at the latest. It stops where a page would be full if it had rows of
/// nobody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanBudget {
    /// Rows before the first one on the page.
    pub skip: u64,
    /// Rows at the beginning whose texts nobody reads.
    pub textless: u64,
    /// Rows on the page.
    pub rows: usize,
    /// Bytes of rows on the page; a single row may be larger.
    pub bytes: usize,
    /// Whether there is no page after this one, so that nobody wants to know of more rows.
    pub is_last: bool,
    /// Items to look at, whether they give a row or not.
    pub candidates: u64,
    /// Items to look at after the page is full, to see whether there is another row.
    pub look_ahead: u64,
    /// Steps of evaluation.
    pub steps: usize,
    /// What earlier parts of the scan have come to.
    pub progress: ScanProgress,
    /// Whether items that give no row can be told of together.
    pub coalesces: bool,
    /// Whether the scan may stop where a position is too long for a cursor.
    pub stops_anywhere: bool,
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
            stops_anywhere: true,
        }
    }
}

/// How full a page would be that had rows of nobody else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanProgress {
    /// Rows that were made.
    pub made: u64,
    /// Those of them that are on the page, and their bytes.
    pub rows: usize,
    pub bytes: usize,
    /// Items that were looked at when it was full.
    pub looked_ahead: u64,
}

/// What one partition has come to.
#[derive(Clone, Debug, PartialEq)]
pub struct PartialPage {
    /// How far the partition was.
    pub lsn: Lsn,
    /// The parts of the ring that steps are in.
    pub groups: Vec<EpkRange>,
    pub steps: Vec<ScanStep>,
    /// A sorted run.
    pub rows: Vec<OutputRow>,
    /// Rows of which some were given before; which ones is known when those of all
    /// partitions are there. Sorted.
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
    /// The number of the group that it is in.
    pub group: usize,
    /// Where in the group: the key without what names its bucket. Of several candidates, that
    /// of the last one, or what all of their positions begin with.
    pub position: Bytes,
    /// Whether it is all candidates of the partition whose positions begin so.
    pub is_shared: bool,
    /// Whether it has one row at most, which any of the candidates would give, in whichever
    /// partition.
    pub is_one: bool,
    /// How many steps it stands for, of which all but the last one have no rows.
    pub steps: u64,
    /// How many items were looked at for it.
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
    /// Where it belongs in the order: the sort keys, then the item, in the direction of
    /// the first key, then the number of the row; or the values by which rows are told
    /// apart. Empty where rows need not be sorted.
    pub sort_key: Vec<u8>,
    pub text: String,
    /// What DISTINCT compares where there is an order; empty otherwise.
    pub identity: String,
}

/// What a kept row takes besides its texts: a list that grows has up to twice the room
/// that it needs.
pub const ROW_BYTES: usize = 2 * (size_of::<OutputRow>() + size_of::<usize>());

impl OutputRow {
    /// What it takes in memory.
    #[must_use]
    pub fn footprint(&self) -> usize {
        self.sort_key.capacity() + self.text.capacity() + self.identity.capacity() + ROW_BYTES
    }
}

impl PartialPage {
    /// What it takes in memory.
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
    /// The time of the page is over.
    Time,
    /// The next item cannot be evaluated.
    Failed(QueryError),
}

/// Where the time of a partition went, for clients that want to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanTimes {
    /// Going along indexes.
    pub finding: Duration,
    /// Reading items.
    pub loading: Duration,
    /// Making texts of rows.
    pub writing: Duration,
}

impl AddAssign for ScanTimes {
    fn add_assign(&mut self, other: ScanTimes) {
        self.finding += other.finding;
        self.loading += other.loading;
        self.writing += other.writing;
    }
}

/// Why a partition gives no answer.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    #[error(transparent)]
    Partition(#[from] PartitionError),
    #[error(transparent)]
    Query(#[from] QueryError),
    /// Whoever asked wants no more of it.
    #[error("the query was interrupted")]
    Interrupted,
}

/// The thread that a query runs on, which others want to run on, too.
pub trait TimeSlice {
    /// Lets others run if it is their turn. Whether a page that can end anywhere may go on.
    fn may_go_on(&self) -> bool;

    /// The same for work that cannot stop half-way.
    fn go_on_to_the_end(&self) -> Result<(), ExecuteError>;

    /// For evaluation, which takes its time between two candidates.
    fn watch(&self) -> Option<Arc<dyn Watch>>;

    /// The time since some moment.
    fn elapsed(&self) -> Duration;
}
