//! Has partitions execute queries, one after the other or side by side.
//!
//! What a partition is asked and what it answers is plain data, so a [`Channel`] may write
//! both to bytes and read them again, as it would for a partition in another process.
//!
//! Units of work that are independent of each other run on the query's own thread and, while
//! there is a handle to run in, on another one of the pool. Their results are taken in order,
//! so nothing depends on who was faster.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::epk::EpkRange;
use partition::{
    ExecuteError, PartialPage, PartitionError, PartitionQuery, RecordError, StatisticsQuery,
    TimeSlice,
};
use query::Watch;

use super::memory::PageMemory;
use super::snapshots::PartitionSnapshot;
use super::threads::Turn;
use super::{QUERY_TIME_MAX, QueryFailure};
use crate::error::ClusterError;

/// How partitions are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Channel {
    /// They are in this process.
    #[default]
    Direct,
    /// They are as well, but what is asked and answered goes there and back as bytes.
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
        answered.map_err(|error| match error {
            ExecuteError::Partition(problem) => problem.into(),
            ExecuteError::Query(error) => error.into(),
            ExecuteError::Interrupted => slice.interruption(),
        })
    }
}

fn through_bytes(
    part: &PartitionSnapshot,
    query: &PartitionQuery,
    slice: &QuerySlice,
    memory: &Arc<PageMemory>,
) -> Result<PartialPage, ExecuteError> {
    let query = query.to_bytes().ok_or_else(unreadable)?;
    let answered = part.snapshot.execute_bytes(&query, slice, &memory.ledger())?;
    Ok(PartialPage::from_bytes(&answered).ok_or_else(unreadable)?)
}

/// What was written cannot be read.
fn unreadable() -> PartitionError {
    RecordError::Malformed { what: "query" }.into()
}

/// A query for one partition, by its place among those that are asked.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) part: usize,
    pub(super) query: PartitionQuery,
}

/// The partitions of a page, and what it takes to ask them.
pub(super) struct Fanout<'p> {
    pub(super) parts: &'p [PartitionSnapshot],
    pub(super) channel: Channel,
    pub(super) turn: &'p Arc<Turn>,
    pub(super) memory: Arc<PageMemory>,
    /// How long a page may take that can end anywhere.
    pub(super) time: Duration,
}

impl Fanout<'_> {
    /// Asks one partition, on this thread.
    pub(super) fn execute(&self, unit: &Unit) -> Result<PartialPage, QueryFailure> {
        let part = self.parts.get(unit.part).ok_or(ClusterError::Internal)?;
        let slice = QuerySlice { turn: Arc::clone(self.turn), time: self.time, work: None };
        self.channel.execute(part, &unit.query, &slice, &self.memory)
    }

    /// Asks for one unit after the other and hands on the answers in order, until `consume`
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

    /// As `each`, with units side by side: some may be executed that nobody asks for in the
    /// end.
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
            time: self.time,
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
    /// The first unit that nobody has taken.
    next: AtomicUsize,
    results: Mutex<Vec<Option<Answered>>>,
    /// Told when a result is there.
    ready: Condvar,
    /// Nobody wants the rest.
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

/// A unit that somebody has taken. Whoever waits for it hears of its end, also of a panic.
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

/// Says that nobody wants the rest, however the page ends.
struct Cancels<'w>(&'w Work);

impl Drop for Cancels<'_> {
    fn drop(&mut self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }
}

/// The pace of a thread of the pool.
struct QuerySlice {
    turn: Arc<Turn>,
    time: Duration,
    /// What it is a part of, which may be cancelled.
    work: Option<Arc<Work>>,
}

impl QuerySlice {
    fn is_cancelled(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.cancelled.load(Ordering::Relaxed))
    }

    /// Why a query ends that cannot stop half-way.
    fn interruption(&self) -> QueryFailure {
        match self.turn.check() {
            Err(error) => error.into(),
            Ok(()) => QueryFailure::TimedOut,
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
