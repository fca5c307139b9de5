//! Tasks that return rows incrementally, and stop when a page is full or its budget is used
//! up.
//!
//! Each step has its position, its rows and what was read up to it, so a merge of the steps
//! of several partitions can end a page after any of them.

use std::fmt;
use std::ops::ControlFlow;
use std::rc::Rc;

use bytes::Bytes;
use model::position::Lsn;
use query::{Ledger, PartialGroups, QueryError, Run, STEPS_MAX};

use super::{
    Candidate, ExecuteError, Executor, LONG_STEPS_MAX, OutputRow, PartialPage, PartitionQuery,
    ScanEnd, ScanStats, Snapshot, Task, TimeSlice,
};
use crate::query::request::{ScanBudget, ScanProgress, ScanStep};

/// Whether the page would be full, if all of its rows came from this partition.
struct Fullness<'b> {
    budget: &'b ScanBudget,
    progress: ScanProgress,
}

impl<'b> Fullness<'b> {
    fn new(budget: &'b ScanBudget) -> Fullness<'b> {
        Fullness { budget, progress: budget.progress }
    }

    /// Counts a row. Breaks if no further one is needed.
    fn add(&mut self, bytes: usize) -> ControlFlow<()> {
        let (budget, progress) = (self.budget, &mut self.progress);
        progress.made += 1;
        if progress.made <= budget.skip {
            return ControlFlow::Continue(());
        }
        let fits =
            progress.rows < budget.rows && progress.bytes.saturating_add(bytes) <= budget.bytes;
        if progress.rows > 0 && !fits {
            return ControlFlow::Break(());
        }
        progress.rows += 1;
        progress.bytes = progress.bytes.saturating_add(bytes);
        let is_enough = budget.is_last && progress.rows >= budget.rows;
        if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Whether even the shortest row would not fit.
    fn is_full(&self) -> bool {
        let ScanProgress { rows, bytes, .. } = self.progress;
        let fits = bytes.saturating_add(1) <= self.budget.bytes;
        rows > 0 && !(rows < self.budget.rows && fits)
    }

    /// Whether the look-ahead after a full page is used up.
    fn is_enough(&mut self) -> bool {
        self.progress.looked_ahead += u64::from(self.is_full());
        self.progress.looked_ahead > self.budget.look_ahead
    }
}

/// The position of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepPosition {
    pub position: Bytes,
    /// Whether it is all candidates of the partition whose positions have this prefix.
    pub is_shared: bool,
}

/// A resumable scan. In the same process it is kept open between two requests; a remote
/// client sends a new query, which starts after the last step.
pub struct OpenScan<'p> {
    executor: Executor<'p>,
    run: Run<'p>,
    fullness: Fullness<'p>,
    is_begun: bool,
}

impl<'p> OpenScan<'p> {
    /// Opens the scan of a query for rows ([`Task::Scan`]) or for rows and groups that are
    /// distinguished by values ([`Task::Values`]). Nothing is read yet.
    #[must_use]
    pub fn new(
        snapshot: &'p Snapshot,
        query: &'p PartitionQuery,
        slice: &'p dyn TimeSlice,
        ledger: &Rc<Ledger>,
    ) -> OpenScan<'p> {
        OpenScan::of(Executor::new(snapshot, query, slice, ledger))
    }

    pub(super) fn of(executor: Executor<'p>) -> OpenScan<'p> {
        let query = executor.query;
        let steps = if query.task == Task::Values { LONG_STEPS_MAX } else { query.budget.steps };
        let (run, fullness) = (executor.run(steps), Fullness::new(&query.budget));
        OpenScan { executor, run, fullness, is_begun: false }
    }

    /// The position of the next step, whose items are not loaded for that.
    pub fn position(&mut self) -> Result<Option<StepPosition>, ExecuteError> {
        let Some(position) = self.executor.candidates.position()? else { return Ok(None) };
        let shared = self.executor.shared(&position);
        Ok(Some(StepPosition { is_shared: shared.is_some(), position: shared.unwrap_or(position) }))
    }

    #[must_use]
    pub fn lsn(&self) -> Lsn {
        self.executor.lsn
    }

    /// What was read so far, without what was only loaded ahead.
    #[must_use]
    pub fn stats(&self) -> ScanStats {
        self.executor.candidates.stats()
    }

    /// The steps of the next `candidates` at most. Counts begin where the scan was opened.
    pub fn next_page(&mut self, candidates: u64) -> Result<PartialPage, ExecuteError> {
        let (query, ledger) = (self.executor.query, Rc::clone(&self.executor.ledger));
        let (kept, steps) = (ledger.kept(), self.run.steps_left());
        let until = self.executor.candidates.scanned.saturating_add(candidates);
        // One more row, to detect a next page.
        let ScanBudget { skip, rows, is_last, .. } = query.budget;
        let wanted = skip.saturating_add(rows as u64).saturating_add(u64::from(!is_last));
        self.executor.candidates.expect(wanted.min(candidates));
        let mut page = self.executor.empty_page();
        let end = if query.task == Task::Values {
            self.values(&mut page, until)?
        } else {
            self.scan(&mut page, until)?
        };
        // The memory that was kept for the steps is theirs now.
        ledger.release(ledger.kept() - kept);
        let progress = self.fullness.progress;
        let evaluated = steps.saturating_sub(self.run.steps_left());
        let times = self.executor.watch.times();
        let page = self.executor.finished(page, end);
        Ok(PartialPage { progress, evaluated, times, ..page })
    }

    /// Rows in the order of the scan.
    fn scan(&mut self, page: &mut PartialPage, until: u64) -> Result<ScanEnd, ExecuteError> {
        let OpenScan { executor, run, fullness, .. } = self;
        loop {
            let before = run.steps_left();
            let Some(candidate) = executor.candidates.next()? else {
                return Ok(ScanEnd::Exhausted);
            };
            let mut flow = ControlFlow::Continue(());
            let made = executor.scan_step(run, candidate, fullness, &mut flow);
            let step = match usable(made)? {
                Ok(step) => step,
                Err(end) => return Ok(end),
            };
            let evaluated = before.saturating_sub(run.steps_left());
            executor.push(page, ScanStep { evaluated, ..step });
            if flow.is_break() {
                return Ok(ScanEnd::Budget);
            }
            let is_enough = fullness.is_enough();
            if let Some(end) = executor.end_of(run, is_enough, until) {
                return Ok(end);
            }
        }
    }

    /// Groups, and distinct rows, along an index whose order is that of their values. Items
    /// with the same values are neighbours there, so a row is complete as soon as the next
    /// value comes. Of distinct rows one item is loaded, where entries contain its values
    /// (a skip scan).
    fn values(&mut self, page: &mut PartialPage, until: u64) -> Result<ScanEnd, ExecuteError> {
        let OpenScan { executor, run, fullness, is_begun } = self;
        let budget = &executor.query.budget;
        if !executor.query.bound.is_aggregated() {
            executor.candidates.expect(1);
        }
        loop {
            let before = run.steps_left();
            let Some(first) = executor.candidates.next()? else { return Ok(ScanEnd::Exhausted) };
            let made = executor.values_step(run, first);
            let mut step = match usable(made)? {
                Ok(step) => step,
                Err(end) => return Ok(end),
            };
            step.evaluated = before.saturating_sub(run.steps_left());
            // Some rows of the first value may belong to a previous page.
            let is_told = std::mem::replace(is_begun, true) || executor.query.points.is_empty();
            let groups = if is_told { step.aggregate.len() } else { 0 };
            for bytes in step.rows.iter().map(|row| row.text.len()).chain((0..groups).map(|_| 0)) {
                let _ = fullness.add(bytes);
            }
            page.steps.push(step);
            // A group may yield no row, so whether the page is too full is not known here.
            if fullness.is_full() && budget.is_last {
                return Ok(ScanEnd::Budget);
            }
            if fullness.is_full() {
                let has_more = executor.candidates.has_more(budget.look_ahead)?;
                if let Some(last) = page.steps.last_mut() {
                    last.stats = executor.candidates.stats();
                }
                return Ok(if has_more { ScanEnd::Budget } else { ScanEnd::Exhausted });
            }
            if let Some(end) = executor.end_of(run, false, until) {
                return Ok(end);
            }
        }
    }
}

impl Executor<'_> {
    /// Why a scan that can end anywhere should end, if it should.
    fn end_of(&mut self, run: &Run<'_>, is_enough: bool, until: u64) -> Option<ScanEnd> {
        if self.is_time_to_look(run) && !self.slice.may_go_on() {
            return Some(ScanEnd::Time);
        }
        let costs_enough = self.candidates.scanned >= until;
        (is_enough || costs_enough || run.steps_left() < STEPS_MAX / 2).then_some(ScanEnd::Budget)
    }

    /// One candidate; or, where entries do not distinguish items that the order does, all
    /// of those.
    fn scan_step(
        &mut self,
        run: &mut Run<'_>,
        candidate: Candidate,
        fullness: &mut Fullness<'_>,
        flow: &mut ControlFlow<()>,
    ) -> Result<ScanStep, ExecuteError> {
        let position = candidate.position.clone();
        let Some(shared) = self.shared(&position) else {
            let mut rows = Vec::new();
            let textless = self.query.budget.textless;
            self.make(run, candidate.item.as_ref(), &mut |mut row| {
                *flow = fullness.add(row.text.len());
                if fullness.progress.made <= textless {
                    row.text = String::new();
                }
                rows.push(row);
                Ok(*flow)
            })?;
            return Ok(self.step(position, rows));
        };
        let rows = self.rows_like(run, candidate, &shared)?;
        // Some of these were returned by previous pages; which ones is not known here.
        let is_among =
            |row: &&OutputRow| self.query.points.iter().any(|point| point.is_among(&row.sort_key));
        for row in rows.iter().filter(|row| !is_among(row)) {
            *flow = fullness.add(row.text.len());
        }
        Ok(ScanStep { is_shared: true, ..self.step(shared, rows) })
    }

    /// The prefix of the positions of all candidates that form one step with the given one,
    /// if there may be others.
    fn shared(&self, position: &Bytes) -> Option<Bytes> {
        let along = self.query.along.as_ref()?;
        let bytes = if self.query.task == Task::Values {
            Some(along.values(position).0.len())
        } else {
            along.cut_of(position)
        };
        bytes.filter(|bytes| *bytes <= position.len()).map(|bytes| position.slice(..bytes))
    }

    fn step(&mut self, position: Bytes, rows: Vec<OutputRow>) -> ScanStep {
        let told = std::mem::replace(&mut self.told, self.candidates.scanned);
        ScanStep {
            position,
            is_shared: false,
            is_one: false,
            steps: 1,
            candidates: self.candidates.scanned - told,
            rows,
            aggregate: PartialGroups::default(),
            stats: self.candidates.stats(),
            evaluated: 0,
        }
    }

    /// Adds a step to the page, or to the step before it if neither has rows.
    fn push(&self, page: &mut PartialPage, mut step: ScanStep) {
        if let Some(last) = page.steps.last_mut() {
            let is_empty = |step: &ScanStep| step.rows.is_empty() && !step.is_shared;
            if self.query.budget.coalesces && is_empty(last) && is_empty(&step) {
                step.steps += last.steps;
                step.candidates += last.candidates;
                step.evaluated += last.evaluated;
                *last = step;
                return;
            }
        }
        page.steps.push(step);
    }

    fn values_step(
        &mut self,
        run: &mut Run<'_>,
        first: Candidate,
    ) -> Result<ScanStep, ExecuteError> {
        let Some(along) = &self.query.along else {
            return Ok(self.step(first.position, Vec::new()));
        };
        let (shared, is_told) = along.values(&first.position);
        let is_one = is_told && along.width() == self.query.order.len();
        let shared = first.position.slice(..shared.len());
        let (mut rows, mut aggregate) = (Vec::new(), PartialGroups::default());
        if self.query.bound.is_aggregated() {
            aggregate = self.groups_like(run, first, &shared)?;
        } else {
            rows = self.distinct_like(run, first, (&shared, is_one))?;
        }
        let is_one = is_one && !self.query.bound.is_aggregated();
        Ok(ScanStep { is_shared: true, is_one, aggregate, ..self.step(shared, rows) })
    }
}

impl fmt::Debug for OpenScan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenScan")
            .field("progress", &self.fullness.progress)
            .finish_non_exhaustive()
    }
}

/// A step, unless an item cannot be evaluated: then the scan ends before it, with the error
/// as the reason.
fn usable(made: Result<ScanStep, ExecuteError>) -> Result<Result<ScanStep, ScanEnd>, ExecuteError> {
    match made {
        Ok(step) => Ok(Ok(step)),
        Err(ExecuteError::Query(QueryError::Stopped)) => Err(ExecuteError::Interrupted),
        Err(ExecuteError::Query(error)) => Ok(Err(ScanEnd::Failed(error))),
        Err(other) => Err(other),
    }
}
