//! Rows in the order of creation, for queries without an order, until the page is full or
//! its budget is used up.
//!
//! Such a page covers one partition, so usually there is one scan, which keeps to the
//! page's own budget. A full scan that finds few rows is cut into pieces that run in
//! parallel (`pieces.rs`).

use std::iter;

use partition::Task;

use super::Filled;
use super::builder::{More, PageBuilder};
use super::execution::Execution;
use super::ordered::Cost;
use super::pieces;
use super::scan_tracker::ScanTracker;
use crate::query::cursor::ResumePoint;
use crate::query::merge::{MergeEnd, MergedStep, PartRow, StepMerge};

pub(super) fn fill(execution: &mut Execution<'_>, page: &mut PageBuilder<'_>) -> Filled {
    if pieces::can_cut(execution) {
        return pieces::fill(execution, page);
    }
    let units = execution.merged_units(Task::Scan, execution.budget(page));
    let mut merge = StepMerge::new(execution.fanout, &units, false)?;
    let filled = take_steps(execution, page, &mut merge);
    execution.note_all(&merge);
    filled
}

fn take_steps(
    execution: &Execution<'_>,
    page: &mut PageBuilder<'_>,
    merge: &mut StepMerge<'_>,
) -> Filled {
    let mut taker = StepTaker::new(execution);
    loop {
        match merge.next()? {
            Ok(step) => {
                if let More::Break(point) = taker.take(execution, page, step) {
                    return Ok(point);
                }
            }
            Err(MergeEnd::Exhausted) => return Ok(None),
            Err(MergeEnd::Stopped) => return Ok(Some(taker.tracker.after())),
        }
    }
}

/// Adds the rows of steps to a page.
pub(super) struct StepTaker<'p> {
    pub(super) tracker: ScanTracker<'p>,
    pub(super) cost: Cost,
}

impl<'p> StepTaker<'p> {
    pub(super) fn new(execution: &Execution<'p>) -> StepTaker<'p> {
        StepTaker { tracker: ScanTracker::new(execution), cost: Cost::default() }
    }

    /// Takes a step; returns the resume point if the page ends with it.
    pub(super) fn take(
        &mut self,
        execution: &Execution<'_>,
        page: &mut PageBuilder<'_>,
        step: MergedStep,
    ) -> ControlFlow {
        self.cost.add(&step);
        let MergedStep { position, first, others, .. } = step;
        let (ordinal, mut is_hit) = (partition::ordinal_at(&position), false);
        for (part, step) in iter::once(first).chain(others) {
            for row in step.rows {
                page.hits += u64::from(!std::mem::replace(&mut is_hit, true));
                self.tracker.offer(page, ordinal, PartRow { row, part })?;
            }
        }
        if !is_hit {
            self.tracker.pass_item(ordinal);
        }
        if !self.cost.may_go_on(execution, page) {
            return More::Break(Some(self.tracker.after()));
        }
        More::Continue(())
    }
}

type ControlFlow = std::ops::ControlFlow<Option<ResumePoint>>;
