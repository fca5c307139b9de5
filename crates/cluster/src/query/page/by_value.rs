//! Groups, and distinct rows, along an index whose order is that of their values, until the
//! page is full or its budget is used up: scans of all partitions, merged by value.
//!
//! Items with the same values are neighbours there, in each partition, so a group is
//! complete as soon as the next value comes.

use std::ops::ControlFlow;

use partition::{LONG_STEPS_MAX, OutputRow, Task, value_sort_key};
use query::{PartialGroups, Row, Run};

use super::builder::{More, PageBuilder};
use super::execution::Execution;
use super::order_tracker::OrderTracker;
use super::ordered::Cost;
use super::{Filled, MORE};
use crate::query::QueryFailure;
use crate::query::merge::{MergeEnd, MergedStep, PartRow, StepMerge, distinct_runs, without_given};

pub(super) fn fill(execution: &mut Execution<'_>, page: &mut PageBuilder<'_>) -> Filled {
    let units = execution.merged_units(Task::Values, execution.budget(page));
    let backwards = execution.plan.access.is_backwards();
    let mut merge = StepMerge::new(execution.fanout, &units, backwards)?;
    let filled = take_values(execution, page, &mut merge);
    execution.note_all(&merge);
    filled
}

fn take_values(
    execution: &Execution<'_>,
    page: &mut PageBuilder<'_>,
    merge: &mut StepMerge<'_>,
) -> Filled {
    if execution.plan.along.is_none() {
        return Ok(None);
    }
    let (mut tracker, mut cost) = (OrderTracker::new(execution), Cost::default());
    let run = &mut execution.run(LONG_STEPS_MAX);
    loop {
        let step = match merge.next()? {
            Ok(step) => step,
            Err(MergeEnd::Exhausted) => return Ok(None),
            Err(MergeEnd::Stopped) => return Ok(Some(tracker.after())),
        };
        let position = step.position.clone();
        cost.add(&step);
        for row in rows_of(execution, run, step)? {
            page.hits += 1;
            if let More::Break(point) = tracker.offer(page, row) {
                return Ok(point);
            }
        }
        tracker.pass_entry(position);
        if page.is_full() {
            return Ok(merge.has_more()?.then(|| tracker.after()));
        }
        if !cost.is_affordable(execution) {
            return Ok(Some(tracker.after()));
        }
    }
}

/// The rows with the same values, in order and without those that previous pages returned.
fn rows_of(
    execution: &Execution<'_>,
    run: &mut Run<'_>,
    step: MergedStep,
) -> Result<Vec<PartRow>, QueryFailure> {
    if !execution.query.bound.is_aggregated() {
        let runs = step.into_steps().map(|(part, step)| (part, step.rows)).collect();
        return Ok(without_given(&execution.points, distinct_runs(runs, usize::MAX)));
    }
    let groups = step.into_steps().map(|(_, step)| step.aggregate);
    group_rows(execution, run, groups)
}

/// The rows of groups that are after the points, in order.
fn group_rows(
    execution: &Execution<'_>,
    run: &mut Run<'_>,
    groups: impl Iterator<Item = PartialGroups>,
) -> Result<Vec<PartRow>, QueryFailure> {
    for partial in groups {
        run.merge(partial)?;
    }
    let mut rows = Vec::new();
    let _ = run.finish(&mut |row: Row<'_, '_>| {
        let sort_key = value_sort_key(&execution.query.bound, &execution.order, &row)?;
        if execution.points.iter().any(|point| point.is_after(&sort_key)) {
            return MORE;
        }
        let Some(text) = row.text()? else { return MORE };
        let row = OutputRow { sort_key, text, identity: String::new() };
        rows.push(PartRow { row, part: 0 });
        Ok(ControlFlow::Continue(()))
    })?;
    rows.sort_unstable();
    Ok(without_given(&execution.points, rows))
}
