//! The queries of a page to its partitions, and what was read for it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use index::{EntryOrder, Seek, entry_part_of_values};
use model::charge::Scanned;
use model::partition_key::PartitionKeyDefinition;
use model::position::Timestamp;
use partition::{
    AccessPlan, PartialPage, PartitionQuery, Point, ScanBudget, ScanStart, ScanStats, ScanTimes,
    StatisticsQuery, Task, overlapping,
};
use query::{Ledger, Run, STEPS_MAX};

use super::Strategy;
use super::builder::PageBuilder;
use crate::cluster::Served;
use crate::query::cursor::RowPosition;
use crate::query::fanout::{Fanout, SIDE_BY_SIDE_ITEMS, Unit, Units};
use crate::query::merge::{PartStats, StepMerge};
use crate::query::{PageQuery, QueryFailure};

/// Items that are scanned to find whether there is another row after a full page
/// (look-ahead).
pub(super) const LOOK_AHEAD_MAX: u64 = 32;

/// One page of a query under way.
pub(super) struct Execution<'p> {
    pub(super) query: &'p PageQuery,
    pub(super) plan: &'p AccessPlan,
    pub(super) fanout: &'p Fanout<'p>,
    pub(super) now: Timestamp,
    pub(super) key: &'p PartitionKeyDefinition,
    /// Rows are after all of these.
    pub(super) points: Vec<&'p Point>,
    /// For each key of the order, whether it descends.
    pub(super) order: Vec<bool>,
    /// What the page keeps in memory.
    pub(super) ledger: Rc<Ledger>,
    starts: Vec<ScanStart>,
    done: BTreeMap<usize, PartStats>,
}

impl<'p> Execution<'p> {
    pub(super) fn new(
        query: &'p PageQuery,
        plan: &'p AccessPlan,
        fanout: &'p Fanout<'p>,
        (now, key): (Timestamp, &'p PartitionKeyDefinition),
        strategy: Strategy,
    ) -> Execution<'p> {
        let (points, order) = (strategy.points(query), query.descends());
        let starts = starts(query, plan, &points, &order);
        let (ledger, done) = (fanout.memory.ledger(), BTreeMap::new());
        Execution { query, plan, fanout, now, key, points, order, ledger, starts, done }
    }

    /// A run of the query over the answers of partitions, with at most `steps` steps.
    pub(super) fn run(&self, steps: usize) -> Run<'p> {
        Run::within(&self.query.bound, steps, Rc::clone(&self.ledger))
    }

    /// The queries to each partition.
    pub(super) fn units(&self, task: Task, budget: ScanBudget) -> Vec<Unit> {
        let parts = 0..self.fanout.parts.len();
        parts.map(|part| Unit { part, query: self.partition_query(part, task, budget) }).collect()
    }

    /// The same, for scans whose steps are merged: of several partitions, each step counts.
    pub(super) fn merged_units(&self, task: Task, mut budget: ScanBudget) -> Vec<Unit> {
        if self.fanout.parts.len() > 1 {
            budget.coalesces = false;
            budget.textless = 0;
        }
        self.units(task, budget)
    }

    fn partition_query(&self, part: usize, task: Task, budget: ScanBudget) -> PartitionQuery {
        let (query, plan) = (self.query, self.plan);
        PartitionQuery {
            bound: Arc::clone(&query.bound),
            task,
            path: plan.access.clone(),
            along: plan.along.clone(),
            covers_filter: plan.covers_filter,
            order: self.order.clone(),
            by_value: query.value_order().is_some(),
            within: query.within.clone(),
            ordinals: query.ordinals.clone(),
            prefix: query.prefix.clone(),
            current: query.after_entry().map(|after| after.group.clone()),
            starts: self.starts.clone(),
            points: self.points.iter().map(|point| (*point).clone()).collect(),
            now: self.now,
            budget,
            part: part as u64,
            is_timed: query.is_timed,
        }
    }

    /// The queries of a task that scans everything: bucket by bucket, if they hold enough.
    pub(super) fn units_of_all(&self, task: Task) -> Result<Units, QueryFailure> {
        let all = self.units(task, ScanBudget::default());
        let is_counted = self.plan.covers_filter && self.query.bound.counts_documents();
        if is_counted {
            return Ok(Units::of_unknown_length(all));
        }
        let buckets = self.units_of_buckets(&all);
        if buckets.len() < 2 || self.items()? < SIDE_BY_SIDE_ITEMS {
            return Ok(Units::short(all));
        }
        Ok(Units::long(buckets))
    }

    fn units_of_buckets(&self, units: &[Unit]) -> Vec<Unit> {
        let mut buckets = Vec::new();
        for unit in units {
            let Some(part) = self.fanout.parts.get(unit.part) else { continue };
            for bucket in part.snapshot.reader().buckets() {
                let within = overlapping(&self.query.within, &bucket.range).iter();
                let within: Vec<_> =
                    within.filter_map(|within| within.intersect(&bucket.range)).collect();
                if !within.is_empty() {
                    let part = buckets.len() as u64;
                    let query = PartitionQuery { within, part, ..unit.query.clone() };
                    buckets.push(Unit { part: unit.part, query });
                }
            }
        }
        buckets
    }

    /// The number of items in the buckets concerned.
    pub(super) fn items(&self) -> Result<u64, QueryFailure> {
        let (mut items, within) = (0, &self.query.within);
        for part in self.fanout.parts {
            items += self.fanout.statistics(part, within, &StatisticsQuery::Items)?;
        }
        Ok(items)
    }

    /// The budget of scans that produce rows for this page.
    pub(super) fn budget(&self, page: &PageBuilder<'_>) -> ScanBudget {
        let resumed = self.query.after_entry().and_then(|after| after.position.rows);
        let given = u64::from(resumed.unwrap_or_default());
        let (rows, is_last) = page.rows_left();
        ScanBudget {
            skip: page.skip.saturating_add(given),
            textless: if given == 0 { page.skip } else { 0 },
            rows,
            bytes: self.query.bounds.bytes,
            is_last,
            candidates: self.query.bounds.scanned,
            look_ahead: LOOK_AHEAD_MAX,
            steps: STEPS_MAX,
            coalesces: true,
            stops_anywhere: self.plan.along.is_some(),
            ..ScanBudget::default()
        }
    }

    /// The resume point of queries whose rows are identified by their values.
    pub(super) fn point(&self) -> Option<&'p Point> {
        self.query.after_row().map(|after| &after.point)
    }

    /// Records what a partition did.
    pub(super) fn note(&mut self, part: usize, done: PartStats) {
        let sum = self.done.entry(part).or_insert(PartStats {
            stats: ScanStats::default(),
            times: ScanTimes::default(),
            ..done
        });
        sum.stats += done.stats;
        sum.times += done.times;
        sum.lsn = sum.lsn.min(done.lsn);
    }

    pub(super) fn note_page(&mut self, part: usize, page: &PartialPage) {
        let PartialPage { stats, times, lsn, .. } = *page;
        self.note(part, PartStats { stats, times, lsn });
    }

    pub(super) fn note_all(&mut self, merge: &StepMerge<'_>) {
        for (part, done) in merge.stats() {
            self.note(part, done);
        }
    }

    /// What each contacted partition did, and where the time went.
    pub(super) fn served(&self, page: &PageBuilder<'_>) -> (Vec<Served<Scanned>>, ScanStats) {
        let (mut served, mut sum) = (Vec::new(), ScanStats::default());
        for (at, PartStats { stats, lsn, .. }) in &self.done {
            let Some(part) = self.fanout.parts.get(*at) else { continue };
            sum += *stats;
            let output_bytes = page.output.get(*at).copied().unwrap_or_default();
            let value = Scanned { items: stats.items, entries: stats.entries, output_bytes };
            served.push(Served { range: part.range, lsn: *lsn, value });
        }
        (served, sum)
    }

    pub(super) fn times(&self) -> ScanTimes {
        let mut sum = ScanTimes::default();
        self.done.values().for_each(|done| sum += done.times);
        sum
    }
}

/// Start positions of scans. Rows before the points need not be scanned, where candidates
/// are in the order of rows.
fn starts(
    query: &PageQuery,
    plan: &AccessPlan,
    points: &[&Point],
    order: &[bool],
) -> Vec<ScanStart> {
    let Some(along) = &plan.along else {
        let after = query.after_entry();
        return after.map(|after| start_after(&after.position)).into_iter().collect();
    };
    let start = if query.value_order().is_some() { start_at_value } else { start_along };
    points.iter().map(|point| start(along, point, order)).collect()
}

fn start_after(position: &RowPosition) -> ScanStart {
    let key = position.key.clone();
    match position.rows {
        Some(_) => ScanStart::At(key),
        None if position.cut => ScanStart::AfterPrefix(key),
        None => ScanStart::After(key),
    }
}

/// The first entry that can have a row after a point.
fn start_along(along: &EntryOrder, point: &Point, descends: &[bool]) -> ScanStart {
    let Seek { key, whole } = along.seek(&point.sort_key, descends);
    if point.past && whole { ScanStart::AfterPrefix(key) } else { ScanStart::At(key) }
}

/// The same for rows that are distinguished by values.
fn start_at_value(along: &EntryOrder, point: &Point, descends: &[bool]) -> ScanStart {
    let (part, is_all) = entry_part_of_values(&point.sort_key);
    let Seek { key, whole } = along.seek_values(part, descends);
    if point.past && whole && is_all { ScanStart::AfterPrefix(key) } else { ScanStart::At(key) }
}
