//! Rows in the order of the query along an index, until the page is full or its budget is
//! used up: scans of all partitions, merged by position.

use partition::{ScanStep, Task};
use query::STEPS_MAX;

use super::Filled;
use super::builder::{More, PageBuilder};
use super::execution::{Execution, LOOK_AHEAD_MAX};
use super::order_tracker::OrderTracker;
use crate::query::merge::{MergeEnd, MergedStep, PartRow, StepMerge, without_given};

pub(super) fn fill(execution: &mut Execution<'_>, page: &mut PageBuilder<'_>) -> Filled {
    let units = execution.merged_units(Task::Scan, execution.budget(page));
    let backwards = execution.plan.access.is_backwards();
    let mut merge = StepMerge::new(execution.fanout, &units, backwards)?;
    let filled = take_steps(execution, page, &mut merge);
    execution.note_all(&merge);
    filled
}

fn take_steps(
    execution: &Execution<'_>,
    page: &mut PageBuilder<'_>,
    merge: &mut StepMerge<'_>,
) -> Filled {
    if execution.plan.along.is_none() {
        return Ok(None);
    }
    let (mut tracker, mut cost) = (OrderTracker::new(execution), Cost::default());
    loop {
        let step = match merge.next()? {
            Ok(step) => step,
            Err(MergeEnd::Exhausted) => return Ok(None),
            Err(MergeEnd::Stopped) => return Ok(Some(tracker.after())),
        };
        cost.add(&step);
        let position = step.position.clone();
        if let More::Break(point) = take_rows(execution, page, &mut tracker, step) {
            return Ok(point);
        }
        tracker.pass_entry(position);
        if !cost.may_go_on(execution, page) {
            return Ok(Some(tracker.after()));
        }
    }
}

fn take_rows(
    execution: &Execution<'_>,
    page: &mut PageBuilder<'_>,
    tracker: &mut OrderTracker<'_>,
    step: MergedStep,
) -> More {
    if step.is_shared {
        let rows = rows_of(execution, step);
        page.hits += u64::from(!rows.is_empty());
        return rows.into_iter().try_for_each(|row| tracker.offer(page, row));
    }
    let (part, ScanStep { rows, .. }) = step.first;
    page.hits += u64::from(!rows.is_empty());
    rows.into_iter().try_for_each(|row| tracker.offer(page, PartRow { row, part }))
}

/// The rows of a step, in order and without those that previous pages returned.
pub(super) fn rows_of(execution: &Execution<'_>, step: MergedStep) -> Vec<PartRow> {
    let is_shared = step.is_shared;
    let tagged = step
        .into_steps()
        .flat_map(|(part, step)| step.rows.into_iter().map(move |row| PartRow { row, part }));
    let mut rows: Vec<PartRow> = tagged.collect();
    if !is_shared {
        return rows;
    }
    rows.sort_unstable();
    without_given(&execution.points, rows)
}

/// The cost of the steps of a page so far.
#[derive(Default)]
pub(super) struct Cost {
    scanned: u64,
    evaluated: usize,
    looked_ahead: u64,
    last: u64,
}

impl Cost {
    pub(super) fn add(&mut self, step: &MergedStep) {
        self.scanned += step.candidates;
        self.last = step.count;
        self.evaluated += step.evaluated();
    }

    /// Whether a page that can end anywhere may scan more: its budget is not used up, and
    /// if it is full, neither is the look-ahead for another row.
    pub(super) fn may_go_on(&mut self, execution: &Execution<'_>, page: &PageBuilder<'_>) -> bool {
        if page.is_full() {
            self.looked_ahead += self.last;
        }
        self.is_affordable(execution) && self.looked_ahead <= LOOK_AHEAD_MAX
    }

    /// Whether its budget is not used up.
    pub(super) fn is_affordable(&self, execution: &Execution<'_>) -> bool {
        self.scanned < execution.query.bounds.scanned && self.evaluated <= STEPS_MAX / 2
    }
}
