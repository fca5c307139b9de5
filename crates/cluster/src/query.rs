//! Queries over the items of a container, page by page.
//!
//! Partitions execute a query, each on a snapshot of its own, and answer with plain data:
//! steps of a scan with their rows, sorted runs, partial groups. Here it is decided which
//! partitions a page asks (`scope.rs`, `snapshots.rs`), they are asked (`fanout.rs`), what they answer is merged
//! (`merge.rs`), pages are cut and cursors are made (`page.rs`, `cursor.rs`).

mod cursor;
mod fanout;
mod function_times;
mod memory;
mod merge;
mod page;
mod schedule;
mod scope;
mod snapshots;
mod threads;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::charge::Scanned;
use model::epk::EpkRange;
use model::partition_key::PartitionKey;
use model::position::Timestamp;
pub use partition::Point;
use partition::{Approach, OrderError, PartitionError};
use query::{Bound, IndexUse, QueryError, ValueKey};

use cursor::{AfterEntry, AfterRow, ResumePoint};
pub use cursor::{Cursor, CursorError};
pub use function_times::FunctionTimes;
pub(crate) use threads::QueryThreads;
pub use threads::Turn;

use crate::cluster::{Cluster, Served};
use crate::error::ClusterError;
use crate::layout::container::Container;
use crate::layout::map::PartitionId;

/// How long a query may take that cannot end before it has seen everything.
const QUERY_TIME_MAX: Duration = Duration::from_secs(60);

/// One page of a query.
#[derive(Clone, Debug)]
pub struct PageQuery {
    pub bound: Arc<Bound>,
    /// A number that all pages of a query share, and those whose cursors mean nothing to it
    /// most likely not.
    pub fingerprint: u32,
    /// The part of the ring that the client asks about, whatever the filter says.
    pub scope: EpkRange,
    /// The parts of the ring to look at, in order and apart from each other.
    pub within: Vec<EpkRange>,
    /// The ordinals that items there can have.
    pub ordinals: Range<u64>,
    /// What the keys of items begin with, where the client named a prefix.
    pub prefix: Option<Arc<PartitionKey>>,
    pub after: Option<Cursor>,
    /// Where in the order to begin, for clients that name it themselves. Only rows behind
    /// it count.
    pub resume: Option<Point>,
    pub bounds: PageBounds,
    pub approach: Approach,
    /// Whether somebody wants to know where the time goes.
    pub is_timed: bool,
}

impl PageQuery {
    /// Where on its access path the page before ended, if it was on one.
    fn after_entry(&self) -> Option<&AfterEntry> {
        match &self.after.as_ref()?.resume {
            ResumePoint::AfterEntry(after) => Some(after),
            ResumePoint::Recount | ResumePoint::FromEpk(_) | ResumePoint::AfterRow(_) => None,
        }
    }

    /// Where in the order the page before ended.
    fn after_row(&self) -> Option<&AfterRow> {
        match &self.after.as_ref()?.resume {
            ResumePoint::AfterRow(after) => Some(after),
            ResumePoint::Recount | ResumePoint::FromEpk(_) | ResumePoint::AfterEntry(_) => None,
        }
    }

    /// For each key of the order, or of the values by which rows are told apart, whether it
    /// descends.
    fn descends(&self) -> Vec<bool> {
        match self.value_order() {
            Some(values) => values.iter().map(|key| key.descending).collect(),
            None => self.bound.order().iter().map(|key| key.descending).collect(),
        }
    }

    /// The values by which rows are told apart, if nothing else is said about where to begin.
    fn value_order(&self) -> Option<Vec<ValueKey>> {
        self.bound.value_order().filter(|_| self.resume.is_none())
    }

    /// How many rows are left out by OFFSET from here on, and how many were given.
    fn counted(&self) -> (u64, u64) {
        let (offset, _) = self.bound.window();
        self.after.as_ref().map_or((offset as u64, 0), |after| (after.skip, after.given))
    }

    /// How many rows the page can need.
    fn rows_wanted(&self) -> u64 {
        let ((skip, given), (_, limit)) = (self.counted(), self.bound.window());
        let left = (limit as u64).saturating_sub(given);
        skip.saturating_add(left.min(self.bounds.rows as u64))
    }
}

/// Where a page ends at the latest.
#[derive(Clone, Copy, Debug)]
pub struct PageBounds {
    pub rows: usize,
    /// Bytes of all rows together; a single row may be larger.
    pub bytes: usize,
    pub time: Duration,
    /// Items that are scanned, whether they give a row or not: what a page can
    /// cost.
    pub scanned: u64,
}

/// Some rows, and where to go on.
#[derive(Debug)]
pub struct QueryPage {
    /// JSON texts.
    pub rows: Vec<Bytes>,
    pub rest: Option<Cursor>,
    /// What each partition that was asked did.
    pub served: Vec<Served<Scanned>>,
    pub report: QueryReport,
}

/// What is told about a page besides its rows.
#[derive(Clone, Debug, Default)]
pub struct QueryReport {
    /// How items were found, in words.
    pub access: String,
    /// Index entries that were looked at.
    pub entries: u64,
    /// Items that were looked into, and the bytes of their texts.
    pub items: u64,
    pub bytes: u64,
    /// Items that gave a row.
    pub hits: u64,
    pub rows: u64,
    pub row_bytes: u64,
    /// The partitions that were asked.
    pub partitions: Vec<PartitionId>,
    /// Whether rows that the order leaves open come in descending order of resource ids.
    pub backwards: bool,
    pub usage: IndexUse,
    pub times: QueryTimes,
}

/// Where the time went.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryTimes {
    /// From the text to a tree.
    pub parsing: Duration,
    /// From the tree to what can be run.
    pub binding: Duration,
    /// Finding out where to look.
    pub aiming: Duration,
    /// Choosing how to find items.
    pub choosing: Duration,
    /// Running: what follows is a part of it.
    pub running: Duration,
    /// Going along indexes.
    pub finding: Duration,
    /// Reading items.
    pub loading: Duration,
    /// Calls of the language's functions, and of those that users have stored.
    pub system_functions: Duration,
    pub user_functions: Duration,
    /// Making texts of rows.
    pub writing: Duration,
    /// From the beginning of the page to its end, without waiting for a thread.
    pub total: Duration,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum QueryFailure {
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Order(#[from] OrderError),
    #[error(transparent)]
    Cursor(#[from] CursorError),
    #[error("the query could not be finished within {} seconds", QUERY_TIME_MAX.as_secs())]
    TimedOut,
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl From<PartitionError> for QueryFailure {
    fn from(problem: PartitionError) -> QueryFailure {
        QueryFailure::Cluster(problem.into())
    }
}

impl Cluster {
    /// Does something that may take time on a thread for queries, where it shares turns
    /// with all others. Dropping the future stops it.
    pub async fn take_turns<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Turn>) -> T + Send + 'static,
    ) -> Result<T, ClusterError> {
        self.query_threads().run(work).await
    }

    /// From now on, has all that queries ask of partitions written to bytes and read again,
    /// and the answers as well, as if partitions were elsewhere. For tests.
    pub fn query_through_bytes(&self) {
        self.query_threads().write_bytes();
    }

    /// Ends all queries that run or wait, and refuses further ones.
    pub fn stop_queries(&self) {
        self.query_threads().stop();
    }
}

impl Turn {
    /// Answers one page of a query, within the memory that all of them share.
    pub fn answer(
        self: &Arc<Self>,
        container: &Container,
        now: Timestamp,
        query: PageQuery,
    ) -> Result<QueryPage, QueryFailure> {
        let page = page::answer(container, now, query, self);
        self.check()?;
        page
    }
}
