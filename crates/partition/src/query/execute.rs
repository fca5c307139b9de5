//! Executes a query over the buckets of one partition.
//!
//! Candidates come one after the other along the access path, in time slices that let other
//! queries run, and a run of the query makes rows of each. There are few tasks for the
//! rows: they are returned as they come, in scan order or along an index of the order
//! (`steps.rs`); the first ones in an order are kept in a top-N heap, distinct ones in a
//! map, groups in the run itself (`whole.rs`).

mod steps;
mod whole;

pub use steps::{OpenScan, StepPosition};

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;
use std::rc::Rc;

use index::{encode_order, encode_ordinal, encode_sort_values};
use model::position::{Lsn, Ordinal};
use model::rid::ContainerRid;
use query::{
    AddedProperties, DocumentView, Ledger, PartialGroups, QueryError, Row, RowSink, Run, STEPS_MAX,
};

use super::bucket_merge::Candidate;
use super::candidates::Candidates;
use super::request::{
    ExecuteError, OutputRow, PartialPage, PartitionQuery, ScanEnd, ScanTimes, Task, TimeSlice,
};
use super::scan::ScanStats;
use super::snapshot::Snapshot;
use super::stopwatch::{Activity, Stopwatch};
use crate::record::Item;

/// Candidates, and evaluation steps, between two checks of the clock: a hundredth of a
/// second.
const PACE_CANDIDATES: u64 = 16;
const PACE_STEPS: usize = STEPS_MAX / 100;

/// Steps of a query that cannot stop half-way. It is stopped by the clock long before.
pub const LONG_STEPS_MAX: usize = STEPS_MAX * 1_000;

/// Whether the consumer of rows wants more.
type Flow = Result<ControlFlow<()>, QueryError>;

const MORE: Flow = Ok(ControlFlow::Continue(()));

/// Executes a query on what a partition held at one moment.
pub(super) fn execute(
    snapshot: &Snapshot,
    query: &PartitionQuery,
    slice: &dyn TimeSlice,
    ledger: &Rc<Ledger>,
) -> Result<PartialPage, ExecuteError> {
    let executor = Executor::new(snapshot, query, slice, ledger);
    let (empty, watch) = (executor.empty_page(), Rc::clone(&executor.watch));
    let page = match query.task {
        Task::Scan | Task::Values => {
            return OpenScan::of(executor).next_page(query.budget.candidates);
        }
        Task::TopRows(bounds) => executor.top_rows(empty, bounds),
        Task::Distinct { rows, enough } => executor.distinct(empty, rows, enough),
        Task::Aggregate => executor.aggregate(empty),
        Task::Documents => executor.documents(empty),
    }?;
    Ok(PartialPage { times: watch.times(), ..page })
}

/// Makes rows of candidates.
struct Executor<'p> {
    lsn: Lsn,
    container: ContainerRid,
    query: &'p PartitionQuery,
    candidates: Candidates<'p>,
    /// Counts the memory that is kept.
    ledger: Rc<Ledger>,
    slice: &'p dyn TimeSlice,
    watch: Rc<Stopwatch<'p>>,
    /// Evaluation steps that were left at the last check of the clock.
    paced_at: usize,
    /// Candidates that the steps so far account for.
    told: u64,
}

impl<'p> Executor<'p> {
    fn new(
        snapshot: &'p Snapshot,
        query: &'p PartitionQuery,
        slice: &'p dyn TimeSlice,
        ledger: &Rc<Ledger>,
    ) -> Executor<'p> {
        let watch = Rc::new(Stopwatch::new(slice, query.is_timed));
        Executor {
            lsn: snapshot.lsn(),
            container: snapshot.container(),
            query,
            candidates: Candidates::new(snapshot, query, &watch),
            ledger: Rc::clone(ledger),
            slice,
            watch,
            paced_at: usize::MAX,
            told: 0,
        }
    }

    fn empty_page(&self) -> PartialPage {
        PartialPage {
            lsn: self.lsn,
            steps: Vec::new(),
            rows: Vec::new(),
            among: Vec::new(),
            aggregate: PartialGroups::default(),
            documents: Vec::new(),
            opening: ScanStats::default(),
            stats: ScanStats::default(),
            candidates: 0,
            progress: self.query.budget.progress,
            evaluated: 0,
            end: ScanEnd::Exhausted,
            times: ScanTimes::default(),
        }
    }

    /// A run of the query that may take this many evaluation steps.
    fn run(&self, steps: usize) -> Run<'p> {
        let part = (self.query.part, self.slice.watch());
        Run::of_part(&self.query.bound, steps, Rc::clone(&self.ledger), part)
    }

    /// The page, completed by what was read for the candidates.
    fn finished(&self, page: PartialPage, end: ScanEnd) -> PartialPage {
        PartialPage {
            opening: self.candidates.opening,
            stats: self.candidates.stats(),
            candidates: self.candidates.scanned,
            end,
            ..page
        }
    }

    /// Passes the rows of all items to `keep`, with their sort keys, for as long as it
    /// wants more.
    fn each_row(
        &mut self,
        run: &mut Run<'_>,
        mut keep: impl FnMut(OutputRow) -> Flow,
    ) -> Result<(), ExecuteError> {
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue()
            && let Some(candidate) = self.candidates.next()?
        {
            self.make(run, candidate.item.as_ref(), &mut |row| {
                flow = keep(row)?;
                Ok(flow)
            })?;
            self.keep_pace(run)?;
        }
        Ok(())
    }

    /// Yields to other queries now and then, where everything has to be scanned.
    fn keep_pace(&mut self, run: &Run<'_>) -> Result<(), ExecuteError> {
        if self.is_time_to_look(run) { self.slice.go_on_to_the_end() } else { Ok(()) }
    }

    /// Whether it is time to check the clock.
    fn is_time_to_look(&mut self, run: &Run<'_>) -> bool {
        let left = run.steps_left();
        let many_steps = self.paced_at.saturating_sub(left) >= PACE_STEPS;
        let is_time = many_steps || self.candidates.scanned.is_multiple_of(PACE_CANDIDATES);
        if is_time {
            self.paced_at = left;
        }
        is_time
    }

    /// The rows of all items whose positions have this prefix, sorted.
    fn rows_like(
        &mut self,
        run: &mut Run<'_>,
        first: Candidate,
        shared: &[u8],
    ) -> Result<Vec<OutputRow>, ExecuteError> {
        let (mut kept, mut next) = (SortBuffer::new(&self.ledger), Some(first));
        while let Some(Candidate { item, .. }) = next {
            let mut sink = |row| kept.add(row).map(ControlFlow::Continue);
            self.make(run, item.as_ref(), &mut sink)?;
            self.slice.go_on_to_the_end()?;
            next = self.candidates.next_like(shared)?;
        }
        Ok(kept.sorted())
    }

    /// The groups of all items whose positions have this prefix.
    fn groups_like(
        &mut self,
        run: &mut Run<'_>,
        first: Candidate,
        shared: &[u8],
    ) -> Result<PartialGroups, ExecuteError> {
        let mut next = Some(first);
        while let Some(Candidate { item, .. }) = next {
            if let Some(item) = &item {
                self.run_on(run, item, &mut |_| MORE)?;
            }
            self.keep_pace(run)?;
            next = self.candidates.next_like(shared)?;
        }
        Ok(run.take_partial())
    }

    /// The distinct rows of all items whose positions have this prefix. If there can be
    /// only one, the search ends at the first item that has it (early termination).
    fn distinct_like(
        &mut self,
        run: &mut Run<'_>,
        first: Candidate,
        (shared, is_one): (&[u8], bool),
    ) -> Result<Vec<OutputRow>, ExecuteError> {
        let (mut rows, mut next, ledger) = (BTreeMap::new(), Some(first), Rc::clone(&self.ledger));
        while let Some(Candidate { item, .. }) = next {
            self.make(run, item.as_ref(), &mut |row| {
                // Equal rows may differ in their text.
                if let Entry::Vacant(place) = rows.entry(row.sort_key.clone()) {
                    ledger.keep(row.footprint())?;
                    place.insert(row);
                }
                MORE
            })?;
            self.keep_pace(run)?;
            if is_one && !rows.is_empty() {
                self.candidates.skip(shared)?;
                break;
            }
            next = self.candidates.next_like(shared)?;
        }
        Ok(rows.into_values().collect())
    }

    /// Passes the rows of an item to `sink`, with their sort keys if they are sorted.
    fn make(
        &self,
        run: &mut Run<'_>,
        item: Option<&Item>,
        sink: &mut dyn FnMut(OutputRow) -> Flow,
    ) -> Result<(), ExecuteError> {
        let Some(item) = item else { return Ok(()) };
        let (is_distinct, mut number) = (self.query.bound.is_distinct(), 0_u32);
        self.run_on(run, item, &mut |row: Row<'_, '_>| {
            number += 1;
            let sort_key = self.sort_key(&row, item.ordinal, number)?;
            if self.query.points.iter().any(|point| point.is_after(&sort_key)) {
                return MORE;
            }
            let Some(text) = self.watch.measure(Activity::Writing, || row.text())? else {
                return MORE;
            };
            let compares = is_distinct && !self.query.by_value;
            let identity = if compares { row.identity() } else { String::new() };
            sink(OutputRow { sort_key, text, identity })
        })
    }

    /// Runs the query on an item, with its system properties.
    fn run_on(
        &self,
        run: &mut Run<'_>,
        item: &Item,
        sink: RowSink<'_>,
    ) -> Result<(), ExecuteError> {
        let Some(system) = &self.query.system else {
            let _ = run.document(item.json().into(), sink)?;
            return Ok(());
        };
        let write = || {
            let mut out = String::new();
            system.write(&item.stamp(self.container), &mut out);
            out
        };
        let _ =
            run.document(DocumentView::new(item.json(), &AddedProperties::new(&write)), sink)?;
        Ok(())
    }

    /// The sort key of an item's row.
    fn sort_key(
        &self,
        row: &Row<'_, '_>,
        ordinal: Ordinal,
        number: u32,
    ) -> Result<Vec<u8>, QueryError> {
        let PartitionQuery { bound, order, by_value, task, .. } = self.query;
        if *by_value {
            return value_sort_key(bound, order, row);
        }
        let mut sort_key = Vec::new();
        // What is scanned without an order is in that of creation already.
        if order.is_empty() && *task == Task::Scan {
            return Ok(sort_key);
        }
        for (key, descends) in row.keys()?.iter().zip(order) {
            encode_order(key.as_ref(), *descends, &mut sort_key);
        }
        encode_ordinal(ordinal.as_u64(), order.first() == Some(&true), &mut sort_key);
        sort_key.extend(number.to_be_bytes());
        Ok(sort_key)
    }
}

/// The sort key of a row that is distinguished by its values.
pub fn value_sort_key(
    bound: &query::Bound,
    order: &[bool],
    row: &Row<'_, '_>,
) -> Result<Vec<u8>, QueryError> {
    let values = row.values()?;
    let in_order = bound.orders_groups() || !bound.order().is_empty();
    let values = values.iter().map(Option::as_ref).zip(order.iter().copied());
    Ok(encode_sort_values(values, in_order))
}

/// Rows that are kept for sorting. Their memory is counted until the execution is done.
struct SortBuffer {
    rows: Vec<OutputRow>,
    ledger: Rc<Ledger>,
}

impl SortBuffer {
    fn new(ledger: &Rc<Ledger>) -> SortBuffer {
        SortBuffer { rows: Vec::new(), ledger: Rc::clone(ledger) }
    }

    fn add(&mut self, row: OutputRow) -> Result<(), QueryError> {
        self.ledger.keep(row.footprint())?;
        self.rows.push(row);
        Ok(())
    }

    fn sorted(mut self) -> Vec<OutputRow> {
        self.rows.sort_unstable();
        self.rows
    }
}
