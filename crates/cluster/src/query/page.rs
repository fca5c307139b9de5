//! One page of a query: which partitions to query and for what, and how to combine their
//! answers.
//!
//! Partitions execute the query (`partition::Snapshot`), the page merges their answers and
//! takes rows until it is full (`builder.rs`). There are few strategies. Most queries
//! *stream*: rows come in the order of creation, or *in order* along an index. Groups, and distinct
//! rows, come *by value* along an index. Blocking operators, which must see everything
//! first, compute the result as a *whole*, again for each page.

mod builder;
mod by_value;
mod execution;
mod order_tracker;
mod ordered;
mod pieces;
mod scan_tracker;
mod stream;
mod whole;

use std::ops::ControlFlow;
use std::sync::Arc;

use model::position::Timestamp;
use partition::{AccessPath, AccessPlan, Approach, Point};
use query::{IndexUse, QueryError};

use self::builder::PageBuilder;
use self::execution::Execution;
use super::cursor::{CursorError, ResumePoint};
use super::fanout::{Channel, Fanout};
use super::scope::PageScope;
use super::snapshots::{self, PartitionSnapshot, QueryStatistics};
use super::threads::Turn;
use super::{PageQuery, QueryFailure, QueryPage, QueryReport};
use crate::layout::container::Container;

/// For callbacks that consume rows one by one.
const MORE: Result<ControlFlow<()>, QueryError> = Ok(ControlFlow::Continue(()));

/// Executes a page.
pub(super) fn answer(
    container: &Container,
    now: Timestamp,
    mut query: PageQuery,
    turn: &Arc<Turn>,
) -> Result<QueryPage, QueryFailure> {
    if !is_own_cursor(&query) {
        return Err(CursorError::OtherQuery.into());
    }
    let beyond = narrow(&mut query, container);
    let parts = snapshots::take(container, &query.within)?;
    answer_on(&parts, (now, beyond), query, turn)
}

/// Executes a page on snapshots. What lies beyond them begins at `beyond`.
pub(super) fn answer_on(
    parts: &[PartitionSnapshot],
    (now, beyond): (Timestamp, Option<ResumePoint>),
    query: PageQuery,
    turn: &Arc<Turn>,
) -> Result<QueryPage, QueryFailure> {
    if !is_own_cursor(&query) {
        return Err(CursorError::OtherQuery.into());
    }
    let begun = turn.elapsed();
    let query = &query;
    let plan = plan(query, parts, turn.channel())?;
    let chosen = turn.elapsed();
    let fanout = Fanout::new(parts, turn, query.bounds.time);
    let strategy = Strategy::of(query, Some(&plan));
    let mut execution = Execution::new(query, &plan, &fanout, now, strategy);
    let mut builder = PageBuilder::new(query, parts.len());
    let mut resume = None;
    if !builder.is_last() {
        resume = strategy.fill(&mut execution, &mut builder)?;
    }
    if !builder.is_last() {
        resume = resume.or(beyond);
    }
    let mut page = finished(&execution, builder, resume);
    let times = &mut page.report.times;
    times.total = turn.elapsed();
    times.choosing = chosen.saturating_sub(begun);
    times.running = times.total.saturating_sub(chosen);
    Ok(page)
}

/// Whether the cursor of a query was made by it, or by one with other filters whose rows
/// come in the same order.
fn is_own_cursor(query: &PageQuery) -> bool {
    let Some(after) = &query.after else { return true };
    let fits = match &after.resume {
        ResumePoint::AfterRow(row) => row.serves(&query.scope),
        ResumePoint::AfterItem(_) => query.bound.streams(),
        ResumePoint::FromEpk(_) | ResumePoint::Recount => true,
    };
    fits && after.query == query.fingerprint
}

/// Restricts the query to the partition that this page covers. Returns where the rest
/// begins.
fn narrow(query: &mut PageQuery, container: &Container) -> Option<ResumePoint> {
    // A query that streams with any access path needs no rows of other partitions.
    if Strategy::of(query, None) != Strategy::Stream {
        return None;
    }
    let resume = query.after.as_ref().map(|after| &after.resume);
    let scope = PageScope::next(container.layout().map(), &query.within, resume);
    query.within = scope.within;
    scope.beyond.map(ResumePoint::FromEpk)
}

fn plan(
    query: &PageQuery,
    parts: &[PartitionSnapshot],
    channel: Channel,
) -> Result<AccessPlan, QueryFailure> {
    let Some(part) = parts.first() else { return Ok(AccessPlan::nothing()) };
    let (asked, statistics) =
        ((&*query.bound, query.approach), QueryStatistics::new(parts, query, channel));
    Ok(part.snapshot.reader().plan(asked, &statistics)??)
}

/// Where the next page begins, unless this one completes its scope.
type Filled = Result<Option<ResumePoint>, QueryFailure>;

/// How a page produces its rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strategy {
    /// In the order of creation, for queries without an order.
    Stream,
    /// The same, sorted.
    Created,
    InOrder,
    Sort,
    /// For groups, and distinct rows, along an index of their values.
    ByValue,
    Distinct,
    DistinctInOrder,
    /// For groups, too.
    Aggregate,
    /// For subqueries in FROM that need all items, and for queries that need none.
    Gather,
}

impl Strategy {
    /// The strategy that a query needs, or with an access path the one that it allows.
    fn of(query: &PageQuery, plan: Option<&AccessPlan>) -> Strategy {
        let (bound, is_by_value) = (&query.bound, query.value_order().is_some());
        let is_along = plan.is_some_and(|plan| plan.along.is_some());
        let is_ordered = plan.is_some_and(|plan| plan.ordered);
        let is_sorted = plan.is_some_and(|plan| !plan.ordered);
        if !bound.reads_documents() || bound.gathers_documents() {
            Strategy::Gather
        } else if is_along && is_by_value {
            Strategy::ByValue
        } else if bound.is_aggregated() {
            Strategy::Aggregate
        } else if bound.is_distinct() && is_by_value {
            Strategy::Distinct
        } else if bound.is_distinct() {
            Strategy::DistinctInOrder
        } else if bound.order().is_empty() && is_sorted {
            Strategy::Created
        } else if bound.order().is_empty() {
            Strategy::Stream
        } else if is_ordered {
            Strategy::InOrder
        } else {
            Strategy::Sort
        }
    }

    /// The points that all rows must be after.
    fn points(self, query: &PageQuery) -> Vec<&Point> {
        let past = query.after_row().map(|after| &after.point);
        match self {
            Strategy::InOrder | Strategy::Sort => past.into_iter().chain(&query.resume).collect(),
            Strategy::ByValue | Strategy::Distinct | Strategy::Aggregate => {
                past.into_iter().collect()
            }
            // Its cursor is not a position of rows but of the values that they share.
            Strategy::DistinctInOrder => query.resume.iter().collect(),
            Strategy::Stream | Strategy::Created | Strategy::Gather => Vec::new(),
        }
    }

    fn fill(self, execution: &mut Execution<'_>, page: &mut PageBuilder<'_>) -> Filled {
        match self {
            Strategy::Stream => stream::fill(execution, page),
            Strategy::Created => whole::sort_by_creation(execution, page),
            Strategy::InOrder => ordered::fill(execution, page),
            Strategy::Sort => whole::sort(execution, page),
            Strategy::ByValue => by_value::fill(execution, page),
            Strategy::Distinct => whole::distinct(execution, page),
            Strategy::DistinctInOrder => whole::distinct_in_order(execution, page),
            Strategy::Aggregate => whole::aggregate(execution, page),
            Strategy::Gather => whole::gather(execution, page),
        }
    }
}

/// The indexes that the query uses, and those that it lacks. A forced scan uses none, nor
/// does a query that no item can match.
fn index_use(execution: &Execution<'_>) -> IndexUse {
    let query = execution.query;
    let is_none = query.approach == Approach::Scan || *execution.plan.access == AccessPath::Nothing;
    match execution.fanout.parts.first() {
        Some(part) if query.names_indexes && !is_none => {
            part.snapshot.reader().index_use(&query.bound)
        }
        Some(_) | None => IndexUse::default(),
    }
}

fn finished(
    execution: &Execution<'_>,
    page: PageBuilder<'_>,
    resume: Option<ResumePoint>,
) -> QueryPage {
    let rest = resume.map(|resume| page.cursor(resume));
    let (served, sum) = execution.served(&page);
    let mut report = QueryReport {
        access: execution.plan.to_string(),
        entries: sum.entries,
        items: sum.items,
        bytes: sum.bytes,
        hits: page.hits,
        rows: page.rows.len() as u64,
        row_bytes: page.bytes as u64,
        partitions: served.iter().map(|part| part.range).collect(),
        backwards: execution.query.bound.order().first().is_some_and(|key| key.descending),
        usage: index_use(execution),
        ..QueryReport::default()
    };
    let times = execution.times();
    report.times.finding = times.finding;
    report.times.loading = times.loading;
    report.times.writing = times.writing;
    QueryPage { rows: page.rows, rest, served, report }
}
