//! Tasks that give rows as the scan goes along, and stop when a page is full or has cost
//! enough.
//!
//! Each step says where it is, what it took to get there and which rows it made, so whoever
//! merges the steps of several partitions can end a page after any of them.

use std::ops::ControlFlow;

use bytes::Bytes;
use query::{PartialGroups, QueryError, Run, STEPS_MAX};

use super::{Candidate, ExecuteError, Executor, LONG_STEPS_MAX, OutputRow, PartialPage, ScanEnd};
use crate::query::request::{ScanBudget, ScanProgress, ScanStep};

/// Bytes of a position that a cursor can keep; see [`super::super::SORT_KEY_BYTES_MAX`].
pub const POSITION_BYTES_MAX: usize = 560;

/// Whether the page would be full, if all of its rows came from here.
struct Fullness<'b> {
    budget: &'b ScanBudget,
    progress: ScanProgress,
}

impl<'b> Fullness<'b> {
    fn new(budget: &'b ScanBudget) -> Fullness<'b> {
        Fullness { budget, progress: budget.progress }
    }

    /// Counts a row. Breaks if it is the last that anybody wants.
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

    /// Whether there is no room for the shortest row.
    fn is_full(&self) -> bool {
        let ScanProgress { rows, bytes, .. } = self.progress;
        let fits = bytes.saturating_add(1) <= self.budget.bytes;
        rows > 0 && !(rows < self.budget.rows && fits)
    }

    /// Whether enough was looked at after the page was full.
    fn is_enough(&mut self) -> bool {
        self.progress.looked_ahead += u64::from(self.is_full());
        self.progress.looked_ahead > self.budget.look_ahead
    }
}

impl Executor<'_> {
    /// Rows in the order of the scan.
    pub(super) fn scan(mut self, mut page: PartialPage) -> Result<PartialPage, ExecuteError> {
        let budget = &self.query.budget;
        let (mut run, mut fullness) = (self.run(budget.steps), Fullness::new(budget));
        let steps = run.steps_left();
        let end = loop {
            let before = run.steps_left();
            let Some(candidate) = self.candidates.next()? else { break ScanEnd::Exhausted };
            let mut flow = ControlFlow::Continue(());
            let made = self.scan_step(&mut run, candidate, &mut fullness, &mut flow);
            let step = match usable(made)? {
                Ok(step) => step,
                Err(end) => break end,
            };
            let is_cut = step.position.len() > POSITION_BYTES_MAX && !budget.stops_anywhere;
            let evaluated = before.saturating_sub(run.steps_left());
            self.push(&mut page, ScanStep { evaluated, ..step });
            if flow.is_break() {
                break ScanEnd::Budget;
            }
            let is_enough = fullness.is_enough();
            let Some(end) = self.end_of(&run, is_enough) else { continue };
            if !is_cut {
                break end;
            }
            // The next page would begin with the same items.
            self.slice.go_on_to_the_end()?;
        };
        let evaluated = steps.saturating_sub(run.steps_left());
        let page = PartialPage { progress: fullness.progress, evaluated, ..page };
        Ok(self.finished(page, end))
    }

    /// Why a scan that can end anywhere should end, if it should.
    fn end_of(&mut self, run: &Run<'_>, is_enough: bool) -> Option<ScanEnd> {
        if self.is_time_to_look(run) && !self.slice.may_go_on() {
            return Some(ScanEnd::Time);
        }
        let costs_enough = self.candidates.scanned >= self.query.budget.candidates;
        (is_enough || costs_enough || run.steps_left() < STEPS_MAX / 2).then_some(ScanEnd::Budget)
    }

    /// One candidate; or, where entries do not tell items apart that the order does, all of
    /// those.
    fn scan_step(
        &mut self,
        run: &mut Run<'_>,
        candidate: Candidate,
        fullness: &mut Fullness<'_>,
        flow: &mut ControlFlow<()>,
    ) -> Result<ScanStep, ExecuteError> {
        let position = candidate.position.clone();
        let cut = self.query.along.as_ref().and_then(|along| along.cut_of(&position));
        let Some(shared) =
            cut.filter(|cut| *cut <= position.len()).map(|cut| position.slice(..cut))
        else {
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
        // Of these some were given before; which ones is not known here.
        let is_among =
            |row: &&OutputRow| self.query.points.iter().any(|point| point.is_among(&row.sort_key));
        for row in rows.iter().filter(|row| !is_among(row)) {
            *flow = fullness.add(row.text.len());
        }
        Ok(ScanStep { is_shared: true, ..self.step(shared, rows) })
    }

    fn step(&mut self, position: Bytes, rows: Vec<OutputRow>) -> ScanStep {
        let told = std::mem::replace(&mut self.told, self.candidates.scanned);
        ScanStep {
            group: self.candidates.begun.len().saturating_sub(1),
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
            if self.query.budget.coalesces
                && is_empty(last)
                && is_empty(&step)
                && last.group == step.group
            {
                step.steps += last.steps;
                step.candidates += last.candidates;
                step.evaluated += last.evaluated;
                *last = step;
                return;
            }
        }
        page.steps.push(step);
    }

    /// Groups, and rows that are all different, along an index in the order of whose entries
    /// their values are. Items with the same values are neighbours there, so rows are whole
    /// as soon as the next values come. Of rows that are all different one item is looked at,
    /// where entries tell its values.
    pub(super) fn values(mut self, mut page: PartialPage) -> Result<PartialPage, ExecuteError> {
        let budget = &self.query.budget;
        let (mut run, mut fullness) = (self.run(LONG_STEPS_MAX), Fullness::new(budget));
        let steps = run.steps_left();
        if !self.query.bound.is_aggregated() {
            self.candidates.one_by_one();
        }
        let end = loop {
            let before = run.steps_left();
            let Some(first) = self.candidates.next()? else { break ScanEnd::Exhausted };
            let made = self.values_step(&mut run, first);
            let mut step = match usable(made)? {
                Ok(step) => step,
                Err(end) => break end,
            };
            step.evaluated = before.saturating_sub(run.steps_left());
            // Of the first values a page before may have had some.
            let is_told = self.query.points.is_empty() || !page.steps.is_empty();
            let groups = if is_told { step.aggregate.len() } else { 0 };
            for bytes in step.rows.iter().map(|row| row.text.len()).chain((0..groups).map(|_| 0)) {
                let _ = fullness.add(bytes);
            }
            page.steps.push(step);
            // Groups may give no row, so whether there are too many is not known here.
            if fullness.is_full() && budget.is_last {
                break ScanEnd::Budget;
            }
            if fullness.is_full() {
                let has_more = self.candidates.has_more(budget.look_ahead)?;
                if let Some(last) = page.steps.last_mut() {
                    last.stats = self.candidates.stats();
                }
                break if has_more { ScanEnd::Budget } else { ScanEnd::Exhausted };
            }
            if let Some(end) = self.end_of(&run, false) {
                break end;
            }
        };
        let evaluated = steps.saturating_sub(run.steps_left());
        let page = PartialPage { progress: fullness.progress, evaluated, ..page };
        Ok(self.finished(page, end))
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

/// A step, unless an item cannot be evaluated: then the scan ends before it, and whoever
/// comes to its end is told why.
fn usable(made: Result<ScanStep, ExecuteError>) -> Result<Result<ScanStep, ScanEnd>, ExecuteError> {
    match made {
        Ok(step) => Ok(Ok(step)),
        Err(ExecuteError::Query(QueryError::Stopped)) => Err(ExecuteError::Interrupted),
        Err(ExecuteError::Query(error)) => Ok(Err(ScanEnd::Failed(error))),
        Err(other) => Err(other),
    }
}
