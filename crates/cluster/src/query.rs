//! Queries over the items of a container, page by page (scatter-gather with keyset
//! pagination).
//!
//! Partitions execute a query, each on a snapshot of its own, and return plain data: steps
//! of a scan with their rows, sorted runs, partial groups. This module chooses the
//! partitions of a page (`scope.rs`, `snapshots.rs`), fans the query out to them
//! (`fanout.rs`), merges their answers (`merge.rs`), cuts pages and makes cursors
//! (`page.rs`, `cursor.rs`).

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

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::charge::Scanned;
use model::epk::EpkRange;
use model::partition_key::PartitionKey;
use model::position::Timestamp;
use model::system_properties::SystemProperties;
pub use partition::Point;
use partition::{Approach, OrderError, PartitionError};
use query::{Bound, IndexUse, QueryError, ValueKey};

use cursor::{AfterItem, AfterRow, ResumePoint};
pub use cursor::{Cursor, CursorError};
pub use function_times::FunctionTimes;
pub use snapshots::OwnerSnapshot;
pub(crate) use threads::QueryThreads;
pub use threads::{QueryQueue, Turn};

use crate::cluster::{Cluster, Served};
use crate::error::ClusterError;
use crate::layout::container::Container;
use crate::layout::map::PartitionId;

/// Time limit of a query that cannot end before it has seen everything.
const QUERY_TIME_MAX: Duration = Duration::from_secs(60);

/// One page of a query.
#[derive(Clone, Debug)]
pub struct PageQuery {
    pub bound: Arc<Bound>,
    /// A fingerprint that all pages of a query share, and that queries to which its cursors
    /// mean nothing most likely do not have.
    pub fingerprint: u32,
    /// The part of the ring that the client names, whatever the filter says.
    pub scope: EpkRange,
    /// The parts of the ring to scan, in order and disjoint.
    pub within: Vec<EpkRange>,
    /// The prefix of the items' partition keys, where the client named one.
    pub prefix: Option<Arc<PartitionKey>>,
    pub after: Option<Cursor>,
    /// The resume point, for clients that name it themselves. Only rows after it count.
    pub resume: Option<Point>,
    pub bounds: PageBounds,
    pub approach: Approach,
    /// Whether the client asked for timings.
    pub is_timed: bool,
    /// The system properties that documents are shown with.
    pub system: Option<Arc<SystemProperties>>,
    /// Whether the client asked which indexes the query uses.
    pub names_indexes: bool,
}

impl PageQuery {
    /// The item where the previous page ended, in the order of creation.
    fn after_item(&self) -> Option<&AfterItem> {
        match &self.after.as_ref()?.resume {
            ResumePoint::AfterItem(after) => Some(after),
            ResumePoint::Recount | ResumePoint::FromEpk(_) | ResumePoint::AfterRow(_) => None,
        }
    }

    /// The position in the order where the previous page ended.
    fn after_row(&self) -> Option<&AfterRow> {
        match &self.after.as_ref()?.resume {
            ResumePoint::AfterRow(after) => Some(after),
            ResumePoint::Recount | ResumePoint::FromEpk(_) | ResumePoint::AfterItem(_) => None,
        }
    }

    /// For each key of the order, or of the values that distinguish rows, whether it
    /// descends.
    fn descends(&self) -> Vec<bool> {
        match self.value_order() {
            Some(values) => values.iter().map(|key| key.descending).collect(),
            None => self.bound.order().iter().map(|key| key.descending).collect(),
        }
    }

    /// The values that distinguish rows, unless the client names the resume point.
    fn value_order(&self) -> Option<Vec<ValueKey>> {
        self.bound.value_order().filter(|_| self.resume.is_none())
    }

    /// Number of rows still to be skipped by OFFSET, and of rows returned by previous
    /// pages.
    fn counted(&self) -> (u64, u64) {
        let (offset, _) = self.bound.window();
        self.after.as_ref().map_or((offset as u64, 0), |after| (after.skip, after.given))
    }

    /// Upper bound of the rows that the page needs.
    fn rows_wanted(&self) -> u64 {
        let ((skip, given), (_, limit)) = (self.counted(), self.bound.window());
        let left = (limit as u64).saturating_sub(given);
        skip.saturating_add(left.min(self.bounds.rows as u64))
    }
}

/// The limits of a page.
#[derive(Clone, Copy, Debug)]
pub struct PageBounds {
    pub rows: usize,
    /// Bytes of all rows together; a single row may be larger.
    pub bytes: usize,
    pub time: Duration,
    /// Items that are scanned, whether or not they yield a row: what a page can cost.
    pub scanned: u64,
}

/// Some rows, and the cursor of the next page.
#[derive(Debug)]
pub struct QueryPage {
    /// JSON texts.
    pub rows: Vec<Bytes>,
    pub rest: Option<Cursor>,
    /// What each contacted partition did.
    pub served: Vec<Served<Scanned>>,
    pub report: QueryReport,
}

/// Metadata of a page.
#[derive(Clone, Debug, Default)]
pub struct QueryReport {
    /// The access path, as text.
    pub access: String,
    /// Index entries that were read.
    pub entries: u64,
    /// Items that were loaded, and the bytes of their texts.
    pub items: u64,
    pub bytes: u64,
    /// Items that yielded a row.
    pub hits: u64,
    pub rows: u64,
    pub row_bytes: u64,
    /// The contacted partitions.
    pub partitions: Vec<PartitionId>,
    /// Whether rows that compare equal come in descending order of resource ids.
    pub backwards: bool,
    /// Empty unless the client asked for it.
    pub usage: IndexUse,
    pub times: QueryTimes,
}

/// Where the time went.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryTimes {
    /// Parsing the text.
    pub parsing: Duration,
    /// Binding the tree.
    pub binding: Duration,
    /// Finding the ranges to scan.
    pub aiming: Duration,
    /// Choosing the access path.
    pub choosing: Duration,
    /// Execution: what follows is a part of it.
    pub running: Duration,
    /// Reading index entries.
    pub finding: Duration,
    /// Loading items.
    pub loading: Duration,
    /// Calls of the language's functions, and of those that users have stored.
    pub system_functions: Duration,
    pub user_functions: Duration,
    /// Serialising rows.
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
    /// Runs long work on a query thread, where it shares time slices with all other
    /// queries. Dropping the future stops it.
    pub async fn take_turns<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Turn>) -> T + Send + 'static,
    ) -> Result<T, ClusterError> {
        self.query_threads().run(work).await
    }

    /// The same for work that is never refused under load: what clients wait for already,
    /// as changes of the catalogue that have begun, or pages that have been read.
    pub async fn take_turns_always<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Turn>) -> T + Send + 'static,
    ) -> Result<T, ClusterError> {
        self.query_threads().run_always(work).await
    }

    /// From now on, serialises all queries to partitions and their answers and reads them
    /// again, as if partitions were in other processes. For tests.
    pub fn query_through_bytes(&self) {
        self.query_threads().write_bytes();
    }

    /// The queue of the query threads, for other threads that wait.
    #[must_use]
    pub fn query_queue(&self) -> QueryQueue {
        self.query_threads().queue_for_threads()
    }

    /// Ends all queries and scripts that run or wait, and refuses further ones.
    pub fn stop_queries(&self) {
        self.script_threads().stop();
        self.function_pool().stop();
        self.query_threads().stop();
    }
}

impl Turn {
    /// Executes one page of a query, within the memory that all of them share.
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

    /// The same for a query on one logical partition, of which there is a snapshot already.
    pub fn answer_on(
        self: &Arc<Self>,
        snapshot: &OwnerSnapshot,
        now: Timestamp,
        query: PageQuery,
    ) -> Result<QueryPage, QueryFailure> {
        let page = page::answer_on(&[snapshot.part()], (now, None), query, self);
        self.check()?;
        page
    }
}
