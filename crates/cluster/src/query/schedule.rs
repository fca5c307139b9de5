//! Scheduling of queries: which one runs next.
//!
//! Queries that have run least so far come first (least attained service): a small one is
//! done after a slice or two, however many long ones there are, and it need not be known
//! beforehand which is which. So that a stream of small ones does not starve the long ones,
//! every now and then a turn goes to the query that has waited longest.
//!
//! Only the decisions are here, without threads and clocks: `threads.rs` executes them.

use std::collections::BTreeMap;
use std::time::Duration;

/// Queries that run at the same moment: two cores are the norm, and commands and
/// connections need them, too.
pub(super) const TURNS: usize = 2;

/// Queries that may wait for their first turn. Further ones are refused, to be retried
/// later.
pub(super) const QUEUE_MAX: usize = 256;

/// Running time from which on a query counts as heavy.
pub(super) const HEAVY_AFTER: Duration = Duration::from_millis(250);

/// Heavy queries that are under way at a time: each holds a thread, a view and the rows
/// that it keeps. One that becomes heavy beyond that is refused, to be retried later.
pub(super) const HEAVY_MAX: usize = 64;

/// One turn in this many goes to the query that has waited longest.
const PATIENCE: u64 = 8;

/// A number that identifies a query.
pub(super) type Number = u64;

#[derive(Debug)]
pub(super) struct Schedule {
    jobs: BTreeMap<Number, Job>,
    free: usize,
    /// Numbers the queries, and the times at which they began to wait.
    next: u64,
    grants: u64,
}

#[derive(Debug)]
struct Job {
    attained: Duration,
    state: State,
    /// The query that it helps, which is charged for what it runs.
    helps: Option<Number>,
    /// Whether it may be refused when it turns out to be heavy.
    is_refusable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Has not run yet.
    New {
        since: u64,
    },
    Waiting {
        since: u64,
    },
    Running,
    /// Waits for something other than a turn.
    Parked,
}

/// A turn that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) number: Number,
    /// Whether it is the first one.
    pub(super) is_first: bool,
}

/// The limit of queries of that kind is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

impl Default for Schedule {
    fn default() -> Schedule {
        Schedule { jobs: BTreeMap::new(), free: TURNS, next: 0, grants: 0 }
    }
}

impl Schedule {
    /// Admits a query, which waits for its first turn.
    pub(super) fn admit(&mut self) -> Result<Number, Full> {
        let is_new = |job: &&Job| matches!(job.state, State::New { .. });
        if self.jobs.values().filter(is_new).count() >= QUEUE_MAX {
            return Err(Full);
        }
        Ok(self.insert(Duration::ZERO, None, true))
    }

    /// Admits work that is not refused however many wait or are heavy.
    pub(super) fn take_in(&mut self) -> Number {
        self.insert(Duration::ZERO, None, false)
    }

    /// Admits a helper of a query. Both are scheduled as one: it comes when the query
    /// would, having run for as long, and its running time counts as the query's.
    pub(super) fn take_in_helper(&mut self, query: Number) -> Number {
        let attained = self.jobs.get(&query).map_or(Duration::ZERO, |job| job.attained);
        self.insert(attained, Some(query), false)
    }

    fn insert(&mut self, attained: Duration, helps: Option<Number>, is_refusable: bool) -> Number {
        let number = self.tick();
        let state = State::New { since: number };
        self.jobs.insert(number, Job { attained, state, helps, is_refusable });
        number
    }

    /// Takes the turn of a query that waits for its helpers. Those wait for nothing else,
    /// so it does not stay like that.
    pub(super) fn park(&mut self, number: Number) {
        if let Some(job) = self.jobs.get_mut(&number).filter(|job| job.state == State::Running) {
            job.state = State::Parked;
            self.free += 1;
        }
    }

    /// Makes a query wait for a turn again.
    pub(super) fn unpark(&mut self, number: Number) {
        let since = self.tick();
        if let Some(job) = self.jobs.get_mut(&number).filter(|job| job.state == State::Parked) {
            job.state = State::Waiting { since };
        }
    }

    /// Gives a free turn to the query that is due, to a new one only if it can begin.
    pub(super) fn grant(&mut self, can_begin: bool) -> Option<Grant> {
        if self.free == 0 {
            return None;
        }
        let longest = (self.grants + 1).is_multiple_of(PATIENCE);
        let due = |(number, job): (&Number, &Job)| {
            let (since, is_first) = match job.state {
                State::New { since } if can_begin => (since, true),
                State::Waiting { since } => (since, false),
                State::New { .. } | State::Running | State::Parked => return None,
            };
            let attained = if longest { Duration::ZERO } else { job.attained };
            Some(((attained, since), Grant { number: *number, is_first }))
        };
        let (_, grant) = self.jobs.iter().filter_map(due).min_by_key(|(rank, _)| *rank)?;
        self.jobs.get_mut(&grant.number)?.state = State::Running;
        self.free -= 1;
        self.grants += 1;
        Some(grant)
    }

    /// Takes the turn of a query that has run for some time; it waits for the next one.
    pub(super) fn pause(&mut self, number: Number, ran: Duration) -> Result<(), Full> {
        let is_heavy = |job: &&Job| job.attained >= HEAVY_AFTER && job.helps.is_none();
        let heavy = self.jobs.values().filter(is_heavy).count();
        let since = self.tick();
        let Some(job) = self.jobs.get_mut(&number) else { return Ok(()) };
        let (was_heavy, helps) = (job.attained >= HEAVY_AFTER, job.helps);
        job.attained += ran;
        if let Some(query) = helps {
            job.state = State::Waiting { since };
            self.free += 1;
            if let Some(query) = self.jobs.get_mut(&query) {
                query.attained += ran;
            }
            return Ok(());
        }
        let becomes_heavy = !was_heavy && job.attained >= HEAVY_AFTER;
        if becomes_heavy && heavy >= HEAVY_MAX && job.is_refusable {
            return Err(Full);
        }
        job.state = State::Waiting { since };
        self.free += 1;
        Ok(())
    }

    pub(super) fn is_running(&self, number: Number) -> bool {
        self.jobs.get(&number).is_some_and(|job| job.state == State::Running)
    }

    /// Forgets a query, and takes its turn if it has one.
    pub(super) fn end(&mut self, number: Number) {
        if self.jobs.remove(&number).is_some_and(|job| job.state == State::Running) {
            self.free += 1;
        }
    }

    fn tick(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Duration = Duration::from_millis(2);

    /// Lets the query that is due run for a slice, `count` times; returns which ones ran.
    fn slices(schedule: &mut Schedule, count: usize) -> Vec<Number> {
        let mut ran = Vec::new();
        for _ in 0..count {
            let Some(Grant { number, .. }) = schedule.grant(true) else { break };
            schedule.pause(number, SLICE).unwrap();
            ran.push(number);
        }
        ran
    }

    #[test]
    fn a_small_query_runs_at_once_beside_many_heavy_ones() {
        let mut schedule = Schedule::default();
        let heavy: Vec<Number> = (0..48).map(|_| schedule.admit().unwrap()).collect();
        // Each of them has run for a while.
        assert_eq!(slices(&mut schedule, 4_800).len(), 4_800);
        for _ in 0..100 {
            let small = schedule.admit().unwrap();
            let first = slices(&mut schedule, 2);
            assert!(first.contains(&small), "{first:?}");
            schedule.end(small);
        }
        assert!(heavy.iter().all(|number| schedule.jobs.contains_key(number)));
    }

    #[test]
    fn heavy_queries_share_alike_and_none_starves() {
        let mut schedule = Schedule::default();
        let heavy: Vec<Number> = (0..16).map(|_| schedule.admit().unwrap()).collect();
        let mut turns: BTreeMap<Number, usize> = BTreeMap::new();
        // Small queries come as quickly as they are done.
        for _ in 0..16 * 8 * 10 {
            let small = schedule.admit().unwrap();
            for number in slices(&mut schedule, 1) {
                *turns.entry(number).or_default() += 1;
            }
            schedule.end(small);
        }
        let had: Vec<usize> = heavy.iter().map(|number| turns[number]).collect();
        assert!(had.iter().all(|turns| (9..=12).contains(turns)), "{had:?}");
    }

    #[test]
    fn a_query_pays_for_its_helper_and_waits_without_a_turn() {
        let mut schedule = Schedule::default();
        let query = schedule.admit().unwrap();
        schedule.grant(true).unwrap();
        let helper = schedule.take_in_helper(query);
        assert_eq!(schedule.grant(true), Some(Grant { number: helper, is_first: true }));
        schedule.park(query);
        assert_eq!(schedule.free, 1);
        schedule.pause(helper, SLICE).unwrap();
        assert_eq!((schedule.jobs[&query].attained, schedule.free), (SLICE, TURNS));
        assert_eq!(schedule.grant(true), Some(Grant { number: helper, is_first: false }));
        assert!(schedule.grant(true).is_none(), "whoever is parked gets no turn");
        schedule.unpark(query);
        assert_eq!(schedule.grant(true), Some(Grant { number: query, is_first: false }));
        schedule.end(helper);
        schedule.end(query);
        assert_eq!((schedule.free, schedule.jobs.len()), (TURNS, 0));
    }

    #[test]
    fn never_more_turns_are_given_than_there_are() {
        let mut schedule = Schedule::default();
        let all: Vec<Number> = (0..5).map(|_| schedule.admit().unwrap()).collect();
        let granted: Vec<Grant> = std::iter::from_fn(|| schedule.grant(true)).collect();
        assert_eq!(granted.len(), TURNS);
        assert!(granted.iter().all(|grant| grant.is_first));
        schedule.end(all[0]);
        assert!(schedule.grant(false).is_none(), "the others cannot begin");
        assert_eq!(schedule.grant(true), Some(Grant { number: all[2], is_first: true }));
        assert!(schedule.grant(true).is_none());
        for number in all {
            schedule.end(number);
        }
        assert_eq!((schedule.free, schedule.jobs.len()), (TURNS, 0));
    }

    #[test]
    fn there_is_room_for_so_many_and_no_more() {
        let mut schedule = Schedule::default();
        let all: Vec<Number> = (0..QUEUE_MAX).map(|_| schedule.admit().unwrap()).collect();
        assert_eq!(schedule.admit(), Err(Full));
        let mut refused = 0;
        for number in all {
            // As if each had run for long.
            schedule.grant(true).unwrap();
            let running = schedule.jobs.iter().find(|(_, job)| job.state == State::Running);
            let running = *running.unwrap().0;
            if schedule.pause(running, HEAVY_AFTER) == Err(Full) {
                refused += 1;
                schedule.end(running);
            }
            let _ = number;
        }
        assert_eq!(refused, QUEUE_MAX - schedule.jobs.len());
        // Its client waits for something that cannot be taken back.
        let needed = schedule.take_in();
        schedule.grant(true).unwrap();
        assert_eq!(schedule.pause(needed, HEAVY_AFTER), Ok(()));
        schedule.end(needed);
        let heavy = schedule.jobs.values().filter(|job| job.attained >= HEAVY_AFTER).count();
        assert_eq!(heavy, HEAVY_MAX);
    }
}
