//! Fan-out: has partitions execute queries, one after the other or in parallel.
//!
//! Queries to partitions and their answers are plain data, so a [`Channel`] may serialise
//! both, as it would for a partition in another process.
//!
//! Independent units of work run on the query's own thread and, while a run slot is free,
//! on another thread of the pool. Results are consumed in order, so nothing depends on
//! timing.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use model::epk::EpkRange;
use partition::{
    ExecuteError, OpenScan, PartialPage, PartitionError, PartitionQuery, RecordError, ScanProgress,
    ScanStart, ScanStats, ScanTimes, StatisticsQuery, TimeSlice,
};
use query::Watch;

use super::memory::PageMemory;
use super::snapshots::PartitionSnapshot;
use super::threads::Turn;
use super::{QUERY_TIME_MAX, QueryFailure};
use crate::error::ClusterError;

/// Items from which on running in parallel pays: half a millisecond.
pub(super) const SIDE_BY_SIDE_ITEMS: u64 = 500;

/// How partitions are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Channel {
    /// They are in this process.
    #[default]
    Direct,
    /// They are as well, but queries and answers are serialised.
    Bytes,
}

impl Channel {
    pub(super) fn statistics(
        self,
        part: &PartitionSnapshot,
        within: &[EpkRange],
        query: &StatisticsQuery,
    ) -> Result<u64, PartitionError> {
        match self {
            Channel::Direct => part.snapshot.statistics(within, query),
            Channel::Bytes => {
                let query =
                    StatisticsQuery::from_bytes(&query.to_bytes()).ok_or_else(unreadable)?;
                part.snapshot.statistics(within, &query)
            }
        }
    }

    fn execute(
        self,
        part: &PartitionSnapshot,
        query: &PartitionQuery,
        slice: &QuerySlice,
        memory: &Arc<PageMemory>,
    ) -> Result<PartialPage, QueryFailure> {
        let answered = match self {
            Channel::Direct => part.snapshot.execute(query, slice, &memory.ledger()),
            Channel::Bytes => through_bytes(part, query, slice, memory),
        };
        answered.map_err(|error| slice.failure(error))
    }
}

fn through_bytes(
    part: &PartitionSnapshot,
    query: &PartitionQuery,
    slice: &QuerySlice,
    memory: &Arc<PageMemory>,
) -> Result<PartialPage, ExecuteError> {
    let bytes = query.to_bytes().ok_or_else(unreadable)?;
    let question = (bytes.as_slice(), query.bound.functions().cloned());
    let answered = part.snapshot.execute_bytes(question, slice, &memory.ledger())?;
    Ok(PartialPage::from_bytes(&answered).ok_or_else(unreadable)?)
}

/// A message that was serialised cannot be read again.
fn unreadable() -> PartitionError {
    RecordError::Malformed { what: "query" }.into()
}

/// A query for one partition, by its index among the contacted ones.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) part: usize,
    pub(super) query: PartitionQuery,
}

/// Independent units of work, and what is known about their duration.
pub(super) struct Units {
    units: Vec<Unit>,
    length: Length,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    /// Waking another thread would take as long.
    Short,
    Long,
    /// The first one shows it.
    Unknown,
}

impl Units {
    pub(super) fn short(units: Vec<Unit>) -> Units {
        Units { units, length: Length::Short }
    }

    pub(super) fn long(units: Vec<Unit>) -> Units {
        Units { units, length: Length::Long }
    }

    pub(super) fn of_unknown_length(units: Vec<Unit>) -> Units {
        Units { units, length: Length::Unknown }
    }
}

/// An incremental scan of one partition, a few candidates at a time. Its counts begin with
/// the scan.
pub(super) enum PartitionScan<'p> {
    /// In this process it stays open where it stopped.
    Open { scan: Box<OpenScan<'p>>, slice: &'p QuerySlice },
    /// A remote one keeps no state between two queries: it continues after the last step.
    Asked(Box<AskedScan<'p>>),
}

/// The last query to a partition.
pub(super) struct AskedScan<'p> {
    unit: Unit,
    fanout: &'p Fanout<'p>,
    progress: ScanProgress,
    evaluated: usize,
    taken: ScanStats,
    times: ScanTimes,
    /// Position of the last step.
    last: Option<(Bytes, bool)>,
}

impl<'p> PartitionScan<'p> {
    /// The scan itself, if it is open in this process.
    pub(super) fn as_open(&mut self) -> Option<(&mut OpenScan<'p>, &'p QuerySlice)> {
        match self {
            PartitionScan::Open { scan, slice } => Some((scan, slice)),
            PartitionScan::Asked(_) => None,
        }
    }

    /// The steps of the next `candidates` at most. The groups of an open scan are not
    /// repeated in each answer.
    pub(super) fn next_page(&mut self, candidates: u64) -> Result<PartialPage, QueryFailure> {
        match self {
            PartitionScan::Open { scan, slice } => {
                scan.next_page(candidates).map_err(|error| slice.failure(error))
            }
            PartitionScan::Asked(asked) => asked.next_page(candidates),
        }
    }
}

impl<'p> AskedScan<'p> {
    fn new(fanout: &'p Fanout<'p>, unit: Unit) -> AskedScan<'p> {
        AskedScan {
            unit,
            fanout,
            progress: ScanProgress::default(),
            evaluated: 0,
            taken: ScanStats::default(),
            times: ScanTimes::default(),
            last: None,
        }
    }

    /// Continues after the last step.
    fn next_page(&mut self, candidates: u64) -> Result<PartialPage, QueryFailure> {
        let (query, last) = (&mut self.unit.query, self.last.take());
        let is_first = last.is_none();
        query.budget.candidates = candidates;
        if let Some((position, is_shared)) = last {
            query.budget.progress = self.progress;
            query.budget.steps = query.budget.steps.saturating_sub(self.evaluated);
            go_on_after(query, &position, is_shared);
        }
        let mut page = self.fanout.execute(&self.unit)?;
        (self.progress, self.evaluated) = (page.progress, page.evaluated);
        if !is_first {
            // The first candidates were counted before.
            self.taken -= page.opening;
        }
        for stats in page.steps.iter_mut().map(|step| &mut step.stats).chain([&mut page.stats]) {
            *stats += self.taken;
        }
        if let Some(step) = page.steps.last() {
            self.taken = step.stats;
            self.last = Some((step.position.clone(), step.is_shared));
        }
        self.times += page.times;
        page.times = self.times;
        Ok(page)
    }
}

/// Makes a query continue after the last step of its scan.
pub(super) fn go_on_after(query: &mut PartitionQuery, position: &Bytes, is_shared: bool) {
    let key = position.to_vec();
    let start = if is_shared { ScanStart::AfterPrefix(key) } else { ScanStart::After(key) };
    query.starts.push(start);
}

/// The partitions of a page, and the context for querying them.
pub(super) struct Fanout<'p> {
    pub(super) parts: &'p [PartitionSnapshot],
    channel: Channel,
    turn: &'p Arc<Turn>,
    pub(super) memory: Arc<PageMemory>,
    /// Of the thread that the page is made on.
    slice: QuerySlice,
}

impl<'p> Fanout<'p> {
    /// `time` is the time limit of a page that can end anywhere.
    pub(super) fn new(
        parts: &'p [PartitionSnapshot],
        turn: &'p Arc<Turn>,
        time: Duration,
    ) -> Fanout<'p> {
        let slice = QuerySlice { turn: Arc::clone(turn), time, work: None };
        let memory = PageMemory::new(turn.memory());
        Fanout { parts, channel: turn.channel(), turn, memory, slice }
    }

    /// Queries one partition, on this thread.
    pub(super) fn execute(&self, unit: &Unit) -> Result<PartialPage, QueryFailure> {
        let part = self.parts.get(unit.part).ok_or(ClusterError::Internal)?;
        self.channel.execute(part, &unit.query, &self.slice, &self.memory)
    }

    /// Opens a scan of one partition.
    pub(super) fn open(&'p self, unit: &'p Unit) -> Result<PartitionScan<'p>, QueryFailure> {
        let part = self.parts.get(unit.part).ok_or(ClusterError::Internal)?;
        Ok(match self.channel {
            Channel::Direct => {
                let (slice, ledger) = (&self.slice, self.memory.ledger());
                let scan = OpenScan::new(&part.snapshot, &unit.query, slice, &ledger);
                PartitionScan::Open { scan: Box::new(scan), slice }
            }
            Channel::Bytes => PartitionScan::Asked(Box::new(AskedScan::new(self, unit.clone()))),
        })
    }

    /// Answers a question of the planner, or one about all items.
    pub(super) fn statistics(
        &self,
        part: &PartitionSnapshot,
        within: &[EpkRange],
        query: &StatisticsQuery,
    ) -> Result<u64, PartitionError> {
        self.channel.statistics(part, within, query)
    }

    /// Executes one unit after the other and hands on the answers in order, until `consume`
    /// wants no more.
    pub(super) fn each(
        &self,
        units: Vec<Unit>,
        mut consume: impl FnMut(Unit, PartialPage) -> Result<ControlFlow<()>, QueryFailure>,
    ) -> Result<(), QueryFailure> {
        for unit in units {
            let page = self.execute(&unit)?;
            if consume(unit, page)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Executes all units and hands on the answers in order: in parallel where that pays.
    pub(super) fn all(
        &self,
        Units { mut units, length }: Units,
        mut consume: impl FnMut(Unit, PartialPage) -> Result<(), QueryFailure>,
    ) -> Result<(), QueryFailure> {
        let mut is_long = length == Length::Long;
        if length == Length::Unknown && units.len() > 1 {
            let rest = units.split_off(1);
            self.each(std::mem::replace(&mut units, rest), |unit, page| {
                is_long = page.stats.items + page.stats.entries >= SIDE_BY_SIDE_ITEMS;
                consume(unit, page).map(ControlFlow::Continue)
            })?;
        }
        let consume = |unit, page| consume(unit, page).map(ControlFlow::Continue);
        if is_long { self.side_by_side(units, consume) } else { self.each(units, consume) }
    }

    /// As `each`, with units in parallel: some may be executed speculatively.
    pub(super) fn side_by_side(
        &self,
        units: Vec<Unit>,
        mut consume: impl FnMut(Unit, PartialPage) -> Result<ControlFlow<()>, QueryFailure>,
    ) -> Result<(), QueryFailure> {
        if units.len() < 2 {
            return self.each(units, consume);
        }
        let work = Arc::new(Work {
            parts: self.parts.to_vec(),
            channel: self.channel,
            memory: Arc::clone(&self.memory),
            time: self.slice.time,
            results: Mutex::new(units.iter().map(|_| None).collect()),
            next: AtomicUsize::new(0),
            cancelled: AtomicBool::new(false),
            ready: Condvar::new(),
            units,
        });
        let helped = Arc::clone(&work);
        self.turn.spawn_helper(move |turn| while helped.run_next(turn) {});
        let ended = Cancels(&work);
        for (at, unit) in work.units.iter().enumerate() {
            while !work.is_done(at) {
                if !work.run_next(self.turn) {
                    self.turn.while_parked(|| work.wait_for(at));
                    break;
                }
            }
            let page = work.take(at).unwrap_or(Err(ClusterError::Internal.into()))?;
            if consume(unit.clone(), page)?.is_break() {
                break;
            }
        }
        drop(ended);
        Ok(())
    }
}

type Answered = Result<PartialPage, QueryFailure>;

/// Units that several threads take from.
struct Work {
    parts: Vec<PartitionSnapshot>,
    channel: Channel,
    memory: Arc<PageMemory>,
    time: Duration,
    units: Vec<Unit>,
    /// The first unit that no thread has taken.
    next: AtomicUsize,
    results: Mutex<Vec<Option<Answered>>>,
    /// Notified when a result is ready.
    ready: Condvar,
    /// The rest is not needed.
    cancelled: AtomicBool,
}

impl Work {
    fn results(&self) -> MutexGuard<'_, Vec<Option<Answered>>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_done(&self, at: usize) -> bool {
        self.results().get(at).is_some_and(Option::is_some)
    }

    fn take(&self, at: usize) -> Option<Answered> {
        self.results().get_mut(at)?.take()
    }

    fn wait_for(&self, at: usize) {
        let mut results = self.results();
        while results.get(at).is_some_and(Option::is_none) {
            results = self.ready.wait(results).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Executes the next unit; false if there is none.
    fn run_next(self: &Arc<Self>, turn: &Arc<Turn>) -> bool {
        if self.cancelled.load(Ordering::Relaxed) {
            return false;
        }
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(unit) = self.units.get(at) else { return false };
        let mut claim = Claim { work: self, at, answered: Err(ClusterError::Internal.into()) };
        if let Some(part) = self.parts.get(unit.part) {
            let (turn, work) = (Arc::clone(turn), Some(Arc::clone(self)));
            let slice = QuerySlice { turn, time: self.time, work };
            claim.answered = self.channel.execute(part, &unit.query, &slice, &self.memory);
        }
        true
    }
}

/// A unit that a thread has taken. Its waiter is notified of its end, also of a panic.
struct Claim<'w> {
    work: &'w Work,
    at: usize,
    answered: Answered,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let failed = Err(ClusterError::Internal.into());
        if let Some(result) = self.work.results().get_mut(self.at) {
            *result = Some(std::mem::replace(&mut self.answered, failed));
        }
        self.work.ready.notify_all();
    }
}

/// Cancels the remaining units, however the page ends.
struct Cancels<'w>(&'w Work);

impl Drop for Cancels<'_> {
    fn drop(&mut self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }
}

/// The slice of a thread of the pool.
pub(super) struct QuerySlice {
    turn: Arc<Turn>,
    time: Duration,
    /// What it is a part of, which may be cancelled.
    work: Option<Arc<Work>>,
}

impl QuerySlice {
    fn is_cancelled(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.cancelled.load(Ordering::Relaxed))
    }

    /// Why a query ends without an answer.
    pub(super) fn failure(&self, error: ExecuteError) -> QueryFailure {
        match error {
            ExecuteError::Partition(problem) => problem.into(),
            ExecuteError::Query(error) => error.into(),
            // It could not stop half-way.
            ExecuteError::Interrupted => match self.turn.check() {
                Err(error) => error.into(),
                Ok(()) => QueryFailure::TimedOut,
            },
        }
    }
}

impl TimeSlice for QuerySlice {
    fn may_go_on(&self) -> bool {
        !self.is_cancelled() && self.turn.go_on(self.time)
    }

    fn go_on_to_the_end(&self) -> Result<(), ExecuteError> {
        let may_go_on = !self.is_cancelled() && self.turn.go_on(QUERY_TIME_MAX);
        if may_go_on { Ok(()) } else { Err(ExecuteError::Interrupted) }
    }

    fn watch(&self) -> Option<Arc<dyn Watch>> {
        Some(self.turn.watch())
    }

    fn elapsed(&self) -> Duration {
        self.turn.elapsed()
    }
}
