//! The checker of histories, put to the test with a database that is ten lines long: what
//! isolates snapshots is found clean, and what does not is found out. `ORRERY_SEED` sets where
//! the seeds begin.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;

use lab::histories::{CycleKind, History, ListId, Outcome, Step, TransactionId, Value, check};
use runtime::{Random, SeededRandom};

const SEED_DEFAULT: u64 = 20_260_405;
const HISTORIES: u64 = 300;
const TRANSACTIONS: usize = 60;
const LISTS: [ListId; 3] = [1, 2, 3];
/// Transactions at the same time.
const OPEN_MAX: usize = 4;

/// What is left out of snapshot isolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// A transaction is committed though a list that it wrote has changed since its snapshot.
    NoPrecondition,
    /// Reads are of the newest state, not of the snapshot.
    NoSnapshot,
    /// What was refused is written all the same.
    NoRollback,
}

/// Lists with their versions.
type State = BTreeMap<ListId, Vec<Value>>;

/// A transaction that is under way.
struct Open {
    id: TransactionId,
    snapshot: State,
    /// What it has still to do.
    plan: Vec<Step>,
    done: Vec<Step>,
    written: BTreeMap<ListId, Vec<Value>>,
}

struct Simulation {
    random: SeededRandom,
    broken: Broken,
    state: State,
    history: History,
    next_value: Value,
    /// Updates of others that a commit has overwritten.
    overwritten: usize,
}

impl Simulation {
    fn new(seed: u64, broken: Broken) -> Simulation {
        Simulation {
            random: SeededRandom::new(seed),
            broken,
            state: State::new(),
            history: History::default(),
            next_value: 0,
            overwritten: 0,
        }
    }

    fn below(&self, limit: u64) -> u64 {
        self.random.next_u64() % limit
    }

    /// Random transactions, of which a random one goes on at a time.
    fn run(mut self) -> (History, usize) {
        let (mut open, mut left) = (Vec::new(), TRANSACTIONS);
        while left > 0 || !open.is_empty() {
            if left > 0 && open.len() < OPEN_MAX {
                left -= 1;
                open.push(self.begin());
                continue;
            }
            let at = usize::try_from(self.below(open.len() as u64)).unwrap();
            if !self.go_on(&mut open[at]) {
                let ended = open.swap_remove(at);
                self.end(ended);
            }
        }
        let plan = LISTS.map(|list| Step::Read { list, found: Vec::new() }).to_vec();
        let mut last = self.open(plan);
        while self.go_on(&mut last) {}
        self.end(last);
        (self.history, self.overwritten)
    }

    fn begin(&mut self) -> Open {
        let steps = 1 + self.below(4);
        let plan = (0..steps).map(|_| {
            let list = LISTS[usize::try_from(self.below(LISTS.len() as u64)).unwrap()];
            if self.below(2) == 0 {
                return Step::Read { list, found: Vec::new() };
            }
            self.next_value += 1;
            Step::Append { list, value: self.next_value }
        });
        let plan = plan.collect();
        self.open(plan)
    }

    fn open(&mut self, plan: Vec<Step>) -> Open {
        let appends = plan.iter().filter(|step| matches!(step, Step::Append { .. }));
        let id = self.history.begin(appends.cloned().collect());
        let (snapshot, mut plan) = (self.state.clone(), plan);
        plan.reverse();
        Open { id, snapshot, plan, done: Vec::new(), written: BTreeMap::new() }
    }

    /// Does the next step. Returns whether there was one.
    fn go_on(&self, open: &mut Open) -> bool {
        let Some(mut step) = open.plan.pop() else { return false };
        let seen = |list| {
            let of = if self.broken == Broken::NoSnapshot { &self.state } else { &open.snapshot };
            open.written.get(list).or(of.get(list)).cloned().unwrap_or_default()
        };
        match &mut step {
            Step::Read { list, found } => *found = seen(list),
            Step::Append { list, value } => {
                let mut values = seen(list);
                values.push(*value);
                open.written.insert(*list, values);
            }
        }
        open.done.push(step);
        true
    }

    fn end(&mut self, open: Open) {
        let changed =
            open.written.keys().filter(|list| self.state.get(list) != open.snapshot.get(list));
        let changed = changed.count();
        let refused = changed > 0 && self.broken != Broken::NoPrecondition;
        if refused && self.broken != Broken::NoRollback {
            return self.history.end(open.id, Outcome::Aborted, appends(open.done));
        }
        self.overwritten += changed;
        self.state.extend(open.written);
        if refused {
            return self.history.end(open.id, Outcome::Aborted, appends(open.done));
        }
        self.history.end(open.id, Outcome::Committed, open.done);
    }
}

fn appends(steps: Vec<Step>) -> Vec<Step> {
    steps.into_iter().filter(|step| matches!(step, Step::Append { .. })).collect()
}

/// Seeds of the simulations, after `ORRERY_SEED`. Each test names the one that it fails with.
fn seeds() -> impl Iterator<Item = u64> {
    let seed = std::env::var("ORRERY_SEED")
        .map_or(SEED_DEFAULT, |text: String| text.parse().expect("a number"));
    (0..HISTORIES).map(move |number| seed.wrapping_mul(HISTORIES) + number)
}

#[test]
fn snapshot_isolation_is_clean() {
    let (mut aborted, mut write_skews) = (0, 0);
    for seed in seeds() {
        let (history, overwritten) = Simulation::new(seed, Broken::Nothing).run();
        let verdict = check(&history);
        assert!(verdict.is_clean() && overwritten == 0, "seed {seed}: {verdict:?}");
        aborted += verdict.aborted;
        write_skews += verdict.write_skews;
    }
    assert!(aborted > 0 && write_skews > 0, "{aborted} aborted, {write_skews} write skews");
}

#[test]
fn without_the_precondition_every_overwritten_update_is_noticed() {
    let mut overwritten = 0;
    for seed in seeds() {
        let (history, lost) = Simulation::new(seed, Broken::NoPrecondition).run();
        assert_eq!(check(&history).is_clean(), lost == 0, "seed {seed}: {lost} lost");
        overwritten += lost;
    }
    assert!(overwritten > 0);
}

#[test]
fn without_a_snapshot_reads_are_fractured() {
    let mut kinds = 0;
    for seed in seeds() {
        let (history, _) = Simulation::new(seed, Broken::NoSnapshot).run();
        let verdict = check(&history);
        kinds += verdict.cycles.iter().filter(|it| it.kind() == CycleKind::ReadSkew).count();
    }
    assert!(kinds as u64 > HISTORIES / 10, "{kinds} of {HISTORIES}");
}

#[test]
fn without_a_rollback_aborted_values_are_read() {
    let found = seeds().filter(|seed| {
        let (history, _) = Simulation::new(*seed, Broken::NoRollback).run();
        !check(&history).contradictions.is_empty()
    });
    let found = found.count() as u64;
    assert!(found > HISTORIES / 2, "{found} of {HISTORIES}");
}
