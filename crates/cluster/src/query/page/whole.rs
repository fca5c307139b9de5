//! Blocking operators, whose every row depends on all items: sorting without an index,
//! DISTINCT, groups, and subqueries in FROM over everything.
//!
//! Nothing is kept between pages, so each page computes the whole result again and skips
//! the rows that were returned. They are identified by value (keyset pagination): sorted
//! rows by their sort keys, groups by their keys, distinct rows by their values. So what is
//! written between two pages neither repeats nor hides another row. Partitions return
//! sorted runs and partial groups, bucket by bucket and in parallel.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::rc::Rc;

use bytes::Bytes;
use model::json::Raw;
use partition::{
    LONG_STEPS_MAX, OutputRow, PartialPage, Point, ROW_BYTES, ScanBudget, Task, TopBounds,
    ordinal_at, value_sort_key,
};
use query::{Ledger, QueryError, Row, Run, STEPS_MAX};

use super::builder::{More, PageBuilder};
use super::execution::Execution;
use super::order_tracker::OrderTracker;
use super::ordered::rows_of;
use super::scan_tracker::ScanTracker;
use super::{Filled, MORE};
use crate::query::QueryFailure;
use crate::query::cursor::ResumePoint;
use crate::query::merge::{
    MergeEnd, PartRow, StepMerge, distinct_runs, merge_runs, sort_runs, without_given,
};

/// Steps of a query over all documents at once, which does not check the clock.
const GATHERED_STEPS_MAX: usize = STEPS_MAX * 5;

/// Sorted runs of several units, each with its partition.
#[derive(Default)]
struct Runs {
    rows: Vec<(usize, Vec<OutputRow>)>,
    among: Vec<(usize, Vec<OutputRow>)>,
}

/// The first rows after the cursor, sorted out of all: a top-N sort.
pub(super) fn sort(execution: &mut Execution<'_>, page: &mut PageBuilder<'_>) -> Filled {
    let top = top_of(execution, page.top_bounds(0))?;
    let among = without_given(&execution.points, merge_runs(top.among));
    let rows = among.into_iter().chain(top.rows);
    let mut tracker = OrderTracker::new(execution);
    let more = rows.into_iter().try_for_each(|row| {
        page.hits += 1;
        tracker.offer(page, row)
    });
    Ok(more.break_value().flatten())
}

/// The first rows after the cursor in the order of creation, for queries without an order.
pub(super) fn sort_by_creation(
    execution: &mut Execution<'_>,
    page: &mut PageBuilder<'_>,
) -> Filled {
    let given = usize::try_from(execution.rows_given()).unwrap_or(usize::MAX);
    let tracker = ScanTracker::new(execution);
    sort_from(execution, page, tracker, given)
}

/// The same for the rest of a page that has come to an item by a scan in that order.
pub(super) fn sort_rest(
    execution: &mut Execution<'_>,
    page: &mut PageBuilder<'_>,
    tracker: ScanTracker<'_>,
) -> Filled {
    execution.read_in_sequence(&tracker.passed());
    sort_from(execution, page, tracker, 0)
}

fn sort_from(
    execution: &mut Execution<'_>,
    page: &mut PageBuilder<'_>,
    mut tracker: ScanTracker<'_>,
    given: usize,
) -> Filled {
    let top = top_of(execution, page.top_bounds(given))?;
    let mut last = None;
    let more = top.rows.into_iter().try_for_each(|row| {
        let ordinal = ordinal_at(&row.row.sort_key);
        page.hits += u64::from(last.replace(ordinal) != Some(ordinal));
        tracker.offer(page, ordinal, row)
    });
    Ok(more.break_value().flatten())
}

/// The first rows of several units.
#[derive(Default)]
struct Top {
    rows: Vec<PartRow>,
    among: Vec<(usize, Vec<OutputRow>)>,
}

/// The first rows of all, as many as the page can need. Those of each unit are merged with
/// the ones before at once, so that no more of them are kept.
fn top_of(execution: &mut Execution<'_>, bounds: TopBounds) -> Result<Top, QueryFailure> {
    let units = execution.units_of_all(Task::TopRows(bounds))?;
    let (fanout, mut top, mut largest) = (execution.fanout, Top::default(), 0);
    fanout.all(units, |unit, answered| {
        execution.ledger.keep(answered.footprint())?;
        execution.note_page(unit.part, &answered);
        let texts = answered.rows.iter().map(|row| row.text.len());
        largest = texts.max().unwrap_or(0).max(largest);
        top.rows.extend(answered.rows.into_iter().map(|row| PartRow { row, part: unit.part }));
        sort_runs(&mut top.rows);
        let mut bytes: usize = top.rows.iter().map(|row| row.row.text.len()).sum();
        while let Some(last) = top.rows.last() {
            bytes -= last.row.text.len();
            if !bounds.is_beyond(top.rows.len(), bytes, largest) {
                break;
            }
            execution.ledger.release(last.row.footprint());
            top.rows.pop();
        }
        top.among.push((unit.part, answered.among));
        Ok(())
    })?;
    Ok(top)
}

/// The sorted runs that partitions return for a task.
fn runs_of(execution: &mut Execution<'_>, task: Task) -> Result<Runs, QueryFailure> {
    let (units, fanout) = (execution.units_of_all(task)?, execution.fanout);
    let mut runs = Runs::default();
    fanout.all(units, |unit, answered| {
        execution.ledger.keep(answered.footprint())?;
        execution.note_page(unit.part, &answered);
        runs.rows.push((unit.part, answered.rows));
        runs.among.push((unit.part, answered.among));
        Ok(())
    })?;
    Ok(runs)
}

/// Distinct rows: the first ones after the cursor, in the order of their values. Where any
/// will do and all of them fit on the page, it terminates early.
pub(super) fn distinct(execution: &mut Execution<'_>, page: &mut PageBuilder<'_>) -> Filled {
    let wanted = page.wanted();
    let is_unordered = execution.query.bound.order().is_empty();
    let enough = page.last_page_rows().filter(|_| is_unordered);
    let task = Task::Distinct { rows: wanted, enough };
    let runs = match enough {
        Some(enough) => enough_of(execution, task, enough)?,
        None => runs_of(execution, task)?,
    };
    let among = without_given(&execution.points, distinct_runs(runs.among, usize::MAX));
    let rows = among.into_iter().chain(distinct_runs(runs.rows, wanted));
    let mut tracker = OrderTracker::new(execution);
    let more = rows.into_iter().try_for_each(|row| tracker.offer(page, row));
    page.hits = page.rows.len() as u64;
    Ok(more.break_value().flatten())
}

/// Collects as many rows as are needed, from no more partitions than it takes (early
/// termination).
fn enough_of(
    execution: &mut Execution<'_>,
    task: Task,
    (rows, bytes): (usize, usize),
) -> Result<Runs, QueryFailure> {
    let units = execution.units(task, ScanBudget::default());
    let (fanout, mut runs, mut texts) = (execution.fanout, Runs::default(), BTreeMap::new());
    fanout.each(units, |unit, answered| {
        execution.ledger.keep(answered.footprint())?;
        execution.note_page(unit.part, &answered);
        for row in &answered.rows {
            texts.entry(row.sort_key.clone()).or_insert(row.text.len());
        }
        runs.rows.push((unit.part, answered.rows));
        runs.among.push((unit.part, answered.among));
        let is_enough = texts.len() >= rows && texts.values().sum::<usize>() <= bytes;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(runs)
}

/// The first row of each value, in the order of the query, without those of previous pages.
pub(super) fn distinct_in_order(
    execution: &mut Execution<'_>,
    page: &mut PageBuilder<'_>,
) -> Filled {
    if !execution.plan.ordered {
        let top = top_of(execution, TopBounds::NONE)?;
        return first_of_each(execution, page, top.rows, OrderTracker::by_keys(execution));
    }
    // How much it has to scan to fill the page is not known beforehand.
    let budget = ScanBudget {
        candidates: (page.wanted() as u64).saturating_add(ROWS_SPARE),
        steps: LONG_STEPS_MAX,
        ..ScanBudget::default()
    };
    let units = execution.merged_units(Task::Scan, budget);
    let backwards = execution.plan.access.is_backwards();
    let mut merge = StepMerge::new(execution.fanout, &units, backwards)?;
    let filled = distinct_steps(execution, page, &mut merge);
    execution.note_all(&merge);
    filled
}

/// Rows that are fetched beyond those of a page, as some will be duplicates.
const ROWS_SPARE: u64 = 64;

fn distinct_steps(
    execution: &Execution<'_>,
    page: &mut PageBuilder<'_>,
    merge: &mut StepMerge<'_>,
) -> Filled {
    let mut distinct = Distinct::new(&execution.ledger);
    let tracker = OrderTracker::by_keys(execution);
    let mut results = Results::new(execution, tracker);
    loop {
        let step = match merge.next()? {
            Ok(step) => step,
            Err(MergeEnd::Exhausted) => return Ok(results.finish(page)),
            Err(MergeEnd::Stopped) => return Err(QueryFailure::TimedOut),
        };
        for row in rows_of(execution, step) {
            if distinct.is_new(&row.row)? && results.take(page, row).is_break() {
                return Ok(results.finish(page));
            }
        }
    }
}

/// The first row of each value, out of a complete list in order.
fn first_of_each(
    execution: &Execution<'_>,
    page: &mut PageBuilder<'_>,
    rows: Vec<PartRow>,
    tracker: OrderTracker<'_>,
) -> Filled {
    let mut distinct = Distinct::new(&execution.ledger);
    let mut results = Results::new(execution, tracker);
    for row in rows {
        execution.ledger.release(row.row.footprint());
        if distinct.is_new(&row.row)? && results.take(page, row).is_break() {
            break;
        }
    }
    Ok(results.finish(page))
}

/// One row of all items, or of each group.
pub(super) fn aggregate(execution: &mut Execution<'_>, page: &mut PageBuilder<'_>) -> Filled {
    let bound = &execution.query.bound;
    let mut run = execution.run(LONG_STEPS_MAX);
    let (units, fanout) = (execution.units_of_all(Task::Aggregate)?, execution.fanout);
    fanout.all(units, |unit, mut answered: PartialPage| {
        execution.note_page(unit.part, &answered);
        run.merge(std::mem::take(&mut answered.aggregate))?;
        Ok(())
    })?;
    if bound.is_distinct() && bound.orders_groups() {
        return distinct_groups(execution, &mut run, page);
    }
    let mut first = First::new(execution, page);
    let _ = run.finish(&mut |row: Row<'_, '_>| {
        let sort_key = value_sort_key(bound, &execution.order, &row)?;
        if !first.wants(&sort_key) {
            return MORE;
        }
        let Some(text) = row.text()? else { return MORE };
        first.add(OutputRow { sort_key, text, identity: String::new() })?;
        MORE
    })?;
    Ok(first.fill(execution, page))
}

/// The first of groups with equal rows, in the order of the query.
fn distinct_groups(
    execution: &Execution<'_>,
    run: &mut Run<'_>,
    page: &mut PageBuilder<'_>,
) -> Filled {
    let (mut rows, bound) = (Vec::new(), &execution.query.bound);
    let _ = run.finish(&mut |row: Row<'_, '_>| {
        let Some(text) = row.text()? else { return MORE };
        let sort_key = value_sort_key(bound, &execution.order, &row)?;
        let row = OutputRow { sort_key, text, identity: row.identity() };
        execution.ledger.keep(row.footprint())?;
        rows.push(PartRow { row, part: 0 });
        MORE
    })?;
    rows.sort_unstable();
    first_of_each(execution, page, rows, OrderTracker::new(execution))
}

/// The first rows after the cursor, out of rows that their sort keys distinguish: a top-N
/// set.
struct First<'p> {
    rows: BTreeMap<Vec<u8>, OutputRow>,
    wanted: usize,
    point: Option<&'p Point>,
    /// Rows that begin like the truncated resume point. Some of them were returned; which
    /// ones is known when all are there.
    among: BTreeMap<Vec<u8>, OutputRow>,
    ledger: Rc<Ledger>,
}

impl<'p> First<'p> {
    fn new(execution: &Execution<'p>, page: &PageBuilder<'_>) -> First<'p> {
        let (rows, among) = (BTreeMap::new(), BTreeMap::new());
        let (point, ledger) = (execution.point(), Rc::clone(&execution.ledger));
        First { rows, wanted: page.wanted(), point, among, ledger }
    }

    /// Whether a row belongs to them, as far as is known.
    fn wants(&self, sort_key: &[u8]) -> bool {
        let is_last = || self.rows.last_key_value().is_some_and(|(last, _)| **last < *sort_key);
        let is_beyond = self.rows.len() >= self.wanted && is_last();
        let is_given = self.point.is_some_and(|point| point.is_after(sort_key));
        let is_there = self.rows.contains_key(sort_key) || self.among.contains_key(sort_key);
        !is_beyond && !is_given && !is_there
    }

    fn add(&mut self, row: OutputRow) -> Result<(), QueryError> {
        let bytes = |row: &OutputRow| row.footprint() + row.sort_key.len();
        self.ledger.keep(bytes(&row))?;
        if self.point.is_some_and(|point| point.is_among(&row.sort_key)) {
            self.among.insert(row.sort_key.clone(), row);
            return Ok(());
        }
        self.rows.insert(row.sort_key.clone(), row);
        if self.rows.len() > self.wanted {
            self.ledger.release(self.rows.pop_last().map_or(0, |(_, last)| bytes(&last)));
        }
        Ok(())
    }

    /// Adds them to the page. Returns where the next one begins.
    fn fill(self, execution: &Execution<'_>, page: &mut PageBuilder<'_>) -> Option<ResumePoint> {
        let part_row = |row: OutputRow| PartRow { row, part: 0 };
        let mut tracker = OrderTracker::new(execution);
        let among = self.among.into_values().map(part_row).collect();
        let more = without_given(&execution.points, among)
            .into_iter()
            .chain(self.rows.into_values().map(part_row))
            .try_for_each(|row| tracker.offer(page, row));
        page.hits = page.rows.len() as u64;
        more.break_value().flatten()
    }
}

/// The rows of a result in the order of their sort keys, from the cursor on.
struct Results<'p> {
    point: Option<&'p Point>,
    tracker: OrderTracker<'p>,
    /// Rows that begin like a truncated resume point, which does not name those that were
    /// returned one by one.
    held: Vec<PartRow>,
    rest: Option<ResumePoint>,
}

impl<'p> Results<'p> {
    fn new(execution: &Execution<'p>, tracker: OrderTracker<'p>) -> Results<'p> {
        Results { point: execution.point(), tracker, held: Vec::new(), rest: None }
    }

    /// Takes the next row; whether the page takes more.
    fn take(&mut self, page: &mut PageBuilder<'_>, row: PartRow) -> ControlFlow<()> {
        if self.point.is_some_and(|point| point.is_after(&row.row.sort_key)) {
            return ControlFlow::Continue(());
        }
        if self.point.is_some_and(|point| point.is_among(&row.row.sort_key)) {
            self.held.push(row);
            return ControlFlow::Continue(());
        }
        self.release(page)?;
        self.put(page, row)
    }

    /// Adds the held rows, once all of them are there.
    fn release(&mut self, page: &mut PageBuilder<'_>) -> ControlFlow<()> {
        let held = std::mem::take(&mut self.held);
        let sort_keys = held.iter().map(|row| &*row.row.sort_key);
        let done = self.point.map_or(0, |point| point.done(sort_keys));
        held.into_iter().skip(done).try_for_each(|row| self.put(page, row))
    }

    fn put(&mut self, page: &mut PageBuilder<'_>, row: PartRow) -> ControlFlow<()> {
        match self.tracker.offer(page, row) {
            More::Continue(()) => ControlFlow::Continue(()),
            More::Break(rest) => {
                self.rest = rest;
                ControlFlow::Break(())
            }
        }
    }

    fn finish(mut self, page: &mut PageBuilder<'_>) -> Option<ResumePoint> {
        let _ = self.release(page);
        page.hits = page.rows.len() as u64;
        self.rest
    }
}

/// Runs the query over all documents at once, where it must see all of them or none.
pub(super) fn gather(execution: &mut Execution<'_>, page: &mut PageBuilder<'_>) -> Filled {
    let bound = &execution.query.bound;
    let mut documents: Vec<Bytes> = Vec::new();
    if bound.reads_documents() {
        let (units, fanout) = (execution.units_of_all(Task::Documents)?, execution.fanout);
        fanout.all(units, |unit, mut answered| {
            execution.ledger.keep(answered.footprint())?;
            execution.note_page(unit.part, &answered);
            documents.append(&mut answered.documents);
            Ok(())
        })?;
    }
    let texts = documents.iter().map(|text| std::str::from_utf8(text).unwrap_or_default());
    // OFFSET was applied to the rows already.
    let mut rest = Rest { before: page.given, page, resume: None };
    bound.execute_each(
        texts.map(Raw::trusted),
        GATHERED_STEPS_MAX,
        &execution.ledger,
        &mut |row| rest.take(&row),
    )?;
    Ok(rest.finish())
}

/// The rows of a whole result after those that were returned, added to the page one by one:
/// the result itself is never in memory at once. Nothing but their count identifies the
/// last one.
struct Rest<'s, 'q> {
    page: &'s mut PageBuilder<'q>,
    /// Rows that are still to be skipped.
    before: u64,
    resume: Option<ResumePoint>,
}

impl Rest<'_, '_> {
    fn take(&mut self, row: &Row<'_, '_>) -> Result<ControlFlow<()>, QueryError> {
        let Some(text) = row.text()? else { return MORE };
        if self.before > 0 {
            self.before -= 1;
            return MORE;
        }
        match self.page.put((0, text), || ResumePoint::Recount) {
            ControlFlow::Continue(()) => MORE,
            ControlFlow::Break(rest) => {
                self.resume = rest;
                Ok(ControlFlow::Break(()))
            }
        }
    }

    fn finish(self) -> Option<ResumePoint> {
        self.page.hits = self.page.rows.len() as u64;
        self.resume
    }
}

/// What rows are compared with.
struct Distinct {
    seen: BTreeSet<String>,
    ledger: Rc<Ledger>,
}

impl Distinct {
    fn new(ledger: &Rc<Ledger>) -> Distinct {
        Distinct { seen: BTreeSet::new(), ledger: Rc::clone(ledger) }
    }

    fn is_new(&mut self, row: &OutputRow) -> Result<bool, QueryError> {
        if self.seen.contains(&row.identity) {
            return Ok(false);
        }
        self.ledger.keep(row.identity.len() + ROW_BYTES)?;
        Ok(self.seen.insert(row.identity.clone()))
    }
}
