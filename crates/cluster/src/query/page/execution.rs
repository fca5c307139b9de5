//! The queries of a page to its partitions, and what was read for it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use index::{EntryOrder, Seek, entry_part_of_values};
use model::charge::Scanned;
use model::epk::EpkRange;
use model::position::Timestamp;
use partition::{
    AccessPath, AccessPlan, PartialPage, PartitionQuery, Point, ScanBudget, ScanStart, ScanStats,
    ScanTimes, StatisticsQuery, Task, overlapping,
};
use query::{Ledger, Run, STEPS_MAX};

use super::Strategy;
use super::builder::PageBuilder;
use crate::cluster::Served;
use crate::query::cursor::AfterItem;
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
    /// Rows are after all of these.
    pub(super) points: Vec<&'p Point>,
    /// For each key of the order, whether it descends.
    pub(super) order: Vec<bool>,
    /// What the page keeps in memory.
    pub(super) ledger: Rc<Ledger>,
    path: Arc<AccessPath>,
    starts: Vec<ScanStart>,
    /// The same as a point, for rows that are sorted by creation.
    creation: Option<Point>,
    done: BTreeMap<usize, PartStats>,
}

impl<'p> Execution<'p> {
    pub(super) fn new(
        query: &'p PageQuery,
        plan: &'p AccessPlan,
        fanout: &'p Fanout<'p>,
        now: Timestamp,
        strategy: Strategy,
    ) -> Execution<'p> {
        let (points, order) = (strategy.points(query), query.descends());
        let starts = starts(query, plan, &points, &order);
        let is_sorted = strategy == Strategy::Created;
        let creation = query.after_item().filter(|_| is_sorted).map(point_after);
        let (ledger, done) = (fanout.memory.ledger(), BTreeMap::new());
        let path = Arc::clone(&plan.access);
        Execution { query, plan, fanout, now, points, order, ledger, path, starts, creation, done }
    }

    /// Reads all items in the order of their keys from here on, and makes rows of those that
    /// were created after this one.
    pub(super) fn read_in_sequence(&mut self, after: &AfterItem) {
        self.path = Arc::new(AccessPath::Items);
        self.starts.clear();
        self.creation = Some(point_after(after));
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
            path: Arc::clone(&self.path),
            along: plan.along.clone(),
            covers_filter: plan.covers_filter,
            order: self.order.clone(),
            by_value: query.value_order().is_some(),
            within: query.within.clone(),
            ordinals: 0..u64::MAX,
            prefix: query.prefix.clone(),
            starts: self.starts.clone(),
            points: self.points.iter().copied().chain(&self.creation).cloned().collect(),
            now: self.now,
            budget,
            part: part as u64,
            system: query.system.clone(),
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
        let given = self.rows_given();
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
            ..ScanBudget::default()
        }
    }

    /// Rows of the first item that previous pages returned.
    pub(super) fn rows_given(&self) -> u64 {
        u64::from(self.query.after_item().and_then(|after| after.rows).unwrap_or_default())
    }

    /// The part of the ring that a page in the order of creation covers: what is asked of
    /// one partition, or what was when the query came to it.
    pub(super) fn group(&self) -> EpkRange {
        if let Some(after) = self.query.after_item() {
            return after.group.clone();
        }
        let within = &self.query.within;
        let ends = within.first().zip(within.last());
        ends.map_or_else(EpkRange::full, |(first, last)| {
            EpkRange::new(first.min.clone(), last.max.clone())
        })
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
        let query = Some(query).filter(|_| plan.access.is_by_creation());
        return query.and_then(PageQuery::after_item).map(start_after).into_iter().collect();
    };
    let start = if query.value_order().is_some() { start_at_value } else { start_along };
    points.iter().map(|point| start(along, point, order)).collect()
}

fn start_after(after: &AfterItem) -> ScanStart {
    let position = after.ordinal.to_be_bytes().to_vec();
    match after.rows {
        Some(_) => ScanStart::At(position),
        None => ScanStart::After(position),
    }
}

/// As [`start_after`], among sort keys.
fn point_after(after: &AfterItem) -> Point {
    let (sort_key, past) = (after.ordinal.to_be_bytes().to_vec(), after.rows.is_none());
    Point { sort_key, past, given: None }
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
