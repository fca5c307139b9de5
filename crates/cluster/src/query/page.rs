//! One page of a query.
//!
//! Items are met on the way that was chosen to them, a run of the query makes rows of
//! them (`source.rs`), and the page takes rows until it is full (`sheet.rs`). How it gets
//! them is one of few strategies. Most queries *stream*: rows come as their items are
//! met, or *in order* along an index. Where no index has the order that is asked for, the
//! first rows behind the cursor are *sorted* out of all. Groups, and rows that are all
//! different, come *by value* along an index. And what must see everything first is made as
//! a *whole*, again for each page.

mod by_value;
mod ordered;
mod sheet;
mod sort;
mod source;
mod stream;
mod trail;
mod whole;

use std::cell::OnceCell;

use model::charge::Scanned;
use model::position::Timestamp;
use partition::Choice;
use query::STEPS_MAX;

use self::sheet::Sheet;
use self::source::Source;
use super::cursor::{CursorError, Place};
use super::layout::{Layout, Scene};
use super::ledger;
use super::point::Point;
use super::portion::Portion;
use super::stopwatch::Stopwatch;
use super::threads::Turn;
use super::{PageQuery, QueryFailure, QueryPage, QueryReport};
use crate::cluster::Served;
use crate::container::Container;

/// Steps of a query that cannot stop half-way. It is stopped by the clock long before.
const LONG_STEPS_MAX: usize = STEPS_MAX * 1_000;

/// Answers a page.
pub(super) fn answer(
    container: &Container,
    now: Timestamp,
    mut query: PageQuery,
    turn: &Turn,
) -> Result<QueryPage, QueryFailure> {
    if !is_own_cursor(&query) {
        return Err(CursorError::OtherQuery.into());
    }
    let begun = turn.elapsed();
    let beyond = narrow(&mut query, container);
    let query = &query;
    let layout = Layout::of(container, now, &query.within)?;
    let choice = choose(query, &layout)?;
    let chosen = turn.elapsed();
    let watch = Stopwatch::new(turn, query.is_timed);
    let strategy = Strategy::of(query, Some(&choice));
    let (ledger, points) = (ledger::open(turn.memory()), strategy.points(query));
    let mut source = Source::new(query, &layout, &choice, ledger, (turn, &watch), points);
    let mut sheet = Sheet::new(query, layout.parts.len());
    let mut place = None;
    if !sheet.is_last() {
        place = strategy.fill(&mut source, &mut sheet)?;
    }
    if !sheet.is_last() {
        place = place.or(beyond);
    }
    let mut page = finished(source, sheet, place);
    let times = &mut page.report.times;
    times.total = turn.elapsed();
    times.choosing = chosen.saturating_sub(begun);
    times.running = times.total.saturating_sub(chosen);
    watch.add_to(times);
    Ok(page)
}

/// Whether the cursor of a query was made by it, or by one with other filters whose rows
/// come in the same order.
fn is_own_cursor(query: &PageQuery) -> bool {
    let Some(after) = &query.after else { return true };
    let fits = match &after.place {
        Place::Past(past) => past.serves(&query.scope),
        Place::Behind(_) => query.bound.order().is_empty(),
        Place::From(_) | Place::Again => true,
    };
    fits && after.query == query.fingerprint
}

/// Has the query look at no more than one page is about. Says where the rest begins.
fn narrow(query: &mut PageQuery, container: &Container) -> Option<Place> {
    // What streams whatever order items come in needs no rows of other partitions.
    if Strategy::of(query, None) != Strategy::Stream {
        return None;
    }
    let place = query.after.as_ref().map(|after| &after.place);
    let portion = Portion::next(container.layout().map(), &query.within, place);
    query.within = portion.within;
    portion.beyond.map(Place::From)
}

/// The way to the items: the one of the page before, if it was on one.
fn choose(query: &PageQuery, layout: &Layout) -> Result<Choice, QueryFailure> {
    let Some(part) = layout.parts.first() else { return Ok(Choice::nothing()) };
    let came = query.behind().map(|behind| (behind.way, &*behind.position.key));
    let asked = (&*query.bound, query.approach);
    Ok(part.reader.choose(asked, &Scene { layout, query, items: OnceCell::new() }, came)??)
}

/// Where the next page begins, unless nothing is left of what this one is about.
type Filled = Result<Option<Place>, QueryFailure>;

/// How a page gets its rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strategy {
    Stream,
    InOrder,
    Sort,
    /// For groups, and rows that are all different, along an index of their values.
    ByValue,
    Distinct,
    DistinctInOrder,
    /// For groups, too.
    Aggregate,
    /// For subqueries in FROM that need all items, and for queries that need none.
    Gather,
}

impl Strategy {
    /// What a query needs, and with the way to the items, what it comes to.
    fn of(query: &PageQuery, choice: Option<&Choice>) -> Strategy {
        let (bound, is_by_value) = (&query.bound, query.value_order().is_some());
        let is_along = choice.is_some_and(|choice| choice.along.is_some());
        let is_ordered = choice.is_some_and(|choice| choice.ordered);
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
        } else if bound.order().is_empty() {
            Strategy::Stream
        } else if is_ordered {
            Strategy::InOrder
        } else {
            Strategy::Sort
        }
    }

    /// The points that all rows must be behind.
    fn points(self, query: &PageQuery) -> Vec<&Point> {
        let past = query.past().map(|past| &past.point);
        match self {
            Strategy::InOrder | Strategy::Sort => past.into_iter().chain(&query.resume).collect(),
            Strategy::ByValue | Strategy::Distinct | Strategy::Aggregate => {
                past.into_iter().collect()
            }
            // Its cursor is not about rows but about what they have in common.
            Strategy::DistinctInOrder => query.resume.iter().collect(),
            Strategy::Stream | Strategy::Gather => Vec::new(),
        }
    }

    fn fill(self, source: &mut Source<'_>, sheet: &mut Sheet<'_>) -> Filled {
        match self {
            Strategy::Stream => stream::fill(source, sheet),
            Strategy::InOrder => ordered::fill(source, sheet),
            Strategy::Sort => sort::fill(source, sheet),
            Strategy::ByValue => by_value::fill(source, sheet),
            Strategy::Distinct => whole::distinct(source, sheet),
            Strategy::DistinctInOrder => whole::distinct_in_order(source, sheet),
            Strategy::Aggregate => whole::aggregate(source, sheet),
            Strategy::Gather => whole::gather(source, sheet),
        }
    }
}

fn finished(source: Source<'_>, sheet: Sheet<'_>, next: Option<Place>) -> QueryPage {
    let rest = next.map(|place| sheet.cursor(place));
    let mut report = QueryReport {
        access: source.choice.to_string(),
        hits: sheet.hits,
        rows: sheet.rows.len() as u64,
        row_bytes: sheet.bytes as u64,
        backwards: source.query.bound.order().first().is_some_and(|key| key.descending),
        usage: source.choice.usage.clone(),
        ..QueryReport::default()
    };
    let (layout, mut served) = (source.layout, Vec::new());
    for (at, effort) in source.candidates.efforts() {
        let Some(part) = layout.parts.get(at) else { continue };
        report.entries += effort.entries;
        report.items += effort.items;
        report.bytes += effort.bytes;
        report.partitions.push(part.range);
        let output_bytes = sheet.output.get(at).copied().unwrap_or_default();
        let value = Scanned { items: effort.items, entries: effort.entries, output_bytes };
        served.push(Served { range: part.range, lsn: part.lsn, value });
    }
    QueryPage { rows: sheet.rows, rest, served, report }
}
