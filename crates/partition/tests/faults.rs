//! A store that refuses, forgets and fails silently, with many commands in flight.
//!
//! The promises: a command whose ticket resolves as durable is there, a refused one is not,
//! an unknown one is there wholly or not at all; whatever was computed on top of a lost
//! command is lost with it; and the partition recovers by itself.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[allow(dead_code, reason = "shared between tests, each uses a part")]
mod common {
    pub(crate) mod fixture;
    pub(crate) mod gate;
    pub(crate) mod model;
    pub(crate) mod traffic;
}

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use common::fixture::{self, Backend, EPOCH_MILLIS, Home};
use common::gate::Gate;
use common::model::{Model, Request, Stamp};
use common::traffic::{self, Dice, Shape, Traffic};
use model::epk::EpkRange;
use model::position::Timestamp;
use partition::{Command, Partition, PartitionConfig, Reader};
use storage::{CommitStatus, Store, Ticket, WriteBatch};
use testkit::faulty::{Fault, FaultRates, FaultyStore};

const ROUNDS_DEFAULT: u64 = 150;
const SEED_DEFAULT: u64 = 20_200_101;

const RATES: FaultRates = FaultRates {
    refuse: 10,
    fence: 5,
    unknown_written: 10,
    unknown_not_written: 10,
    lose: 8,
    read: 1,
};

#[test]
fn what_was_promised_is_kept_whatever_the_store_does() {
    let rounds = from_env("ORRERY_COMMANDS", ROUNDS_DEFAULT * 10) / 10;
    let seed = from_env("ORRERY_SEED", SEED_DEFAULT);
    let ways =
        Backend::ALL.into_iter().flat_map(|backend| Shape::ALL.map(|shape| (backend, shape)));
    for (backend, shape) in ways {
        println!("{rounds} rounds on {backend:?} with a {shape:?} container, ORRERY_SEED={seed}");
        let mut run = Run::new(backend, shape, seed);
        (0..rounds).for_each(|_| run.round());
        let faults = run.faulty.log().iter().filter(|fault| **fault != Fault::Pass).count();
        println!("{} commands, {faults} faults, {:?}", run.commands, run.fates);
        assert!(faults > 20, "only {faults} faults");
        assert!(run.fates.values().all(|count| *count > 0) && run.fates.len() >= 4);
    }
}

fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// A command that was applied and whose status is not known yet.
struct Pending {
    request: Request,
    now_millis: u64,
    /// None where the answer was a refusal or the store failed.
    stamps: Option<Vec<Stamp>>,
    lsn: Option<u64>,
    ticket: Ticket,
}

struct Run {
    home: Home,
    faulty: Arc<FaultyStore>,
    gate: Arc<Gate>,
    config: Arc<PartitionConfig>,
    partition: Partition,
    traffic: Traffic,
    dice: Dice,
    now_millis: u64,
    /// What is durable for sure.
    confirmed: Model,
    /// What the partition believes.
    believed: Model,
    pending: VecDeque<Pending>,
    acknowledged_lsn: u64,
    commands: u64,
    fates: BTreeMap<String, u64>,
}

impl Run {
    fn new(backend: Backend, shape: Shape, seed: u64) -> Run {
        let home = Home::new(backend);
        let faulty = FaultyStore::seeded(Arc::clone(&home.store), seed, RATES);
        let below: Arc<dyn Store> = Arc::<FaultyStore>::clone(&faulty);
        let gate = Gate::new(below);
        gate.hold();
        let config = Arc::new(shape.config());
        let store: Arc<dyn Store> = Arc::<Gate>::clone(&gate);
        let model = Model { rules: shape.rules(), ..Model::default() };
        Run {
            partition: Partition::open(Arc::clone(&config), store).unwrap(),
            traffic: Traffic::new(shape, seed),
            dice: Dice::new(!seed),
            confirmed: model.clone(),
            believed: model,
            now_millis: EPOCH_MILLIS,
            pending: VecDeque::new(),
            acknowledged_lsn: 0,
            commands: 0,
            fates: BTreeMap::new(),
            home,
            faulty,
            gate,
            config,
        }
    }

    /// Applies some commands, then lets some of the waiting ones reach the store.
    fn round(&mut self) {
        for _ in 0..1 + self.dice.below(20) {
            self.apply();
        }
        let release = self.dice.below(30);
        self.release(usize::try_from(release).unwrap());
        self.settle();
    }

    /// Lets submissions pass, and waits until the store below has dealt with them.
    fn release(&self, count: usize) {
        self.gate.release(count);
        assert_eq!(
            self.home.store.write_session().submit(WriteBatch::new()).wait(),
            CommitStatus::Durable
        );
        self.faulty.forget_lost();
    }

    fn apply(&mut self) {
        self.commands += 1;
        self.now_millis += self.traffic.dice.below(400);
        let request = self.traffic.request(&self.believed);
        let command: Command = self.traffic.command(&request, &self.config.limits);
        let now = Timestamp::from_millis(self.now_millis);
        let application = self.partition.apply(now, &command);
        let mut pending = Pending {
            request,
            now_millis: self.now_millis,
            stamps: None,
            lsn: None,
            ticket: application.ticket,
        };
        match &application.result {
            Ok(outcome) => {
                let stamps = traffic::stamps(outcome);
                let predicted = self.believed.apply(self.now_millis, &pending.request, &stamps);
                assert_eq!(Ok(traffic::done(outcome)), predicted, "{:?}", pending.request);
                let lsn = outcome.lsn.get();
                assert!(lsn >= self.acknowledged_lsn, "the log went back to {lsn}");
                (pending.stamps, pending.lsn) = (Some(stamps), Some(lsn));
            }
            Err(error) => {
                if let Some(why) = traffic::why(&error.problem) {
                    let predicted = self.believed.apply(self.now_millis, &pending.request, &[]);
                    assert_eq!(predicted, Err((error.at, why)), "{:?}", pending.request);
                }
            }
        }
        self.pending.push_back(pending);
    }

    /// Collects the statuses that are known by now, in order.
    fn settle(&mut self) {
        while let Some(fate) = self.pending.front().and_then(|front| front.ticket.outcome()) {
            let pending = self.pending.pop_front().unwrap();
            *self.fates.entry(format!("{fate:?}")).or_default() += 1;
            match fate {
                CommitStatus::Durable => self.confirm(&pending),
                CommitStatus::Refused | CommitStatus::Full | CommitStatus::Fenced => {
                    return self.break_off(None);
                }
                CommitStatus::Unknown => return self.break_off(Some(&pending)),
            }
        }
        if self.pending.is_empty() {
            assert_eq!(self.stored(), contents(&self.confirmed));
        }
    }

    fn confirm(&mut self, pending: &Pending) {
        if let Some(stamps) = &pending.stamps {
            self.confirmed.apply(pending.now_millis, &pending.request, stamps).unwrap();
        }
        self.acknowledged_lsn = self.acknowledged_lsn.max(pending.lsn.unwrap_or(0));
    }

    /// A command did not become durable. Everything after it must be refused.
    fn break_off(&mut self, unknown: Option<&Pending>) {
        self.release(usize::MAX);
        for behind in self.pending.drain(..) {
            let fate = behind.ticket.outcome();
            // A refusal by a store that failed to read rests on nothing.
            let rests_on_nothing = behind.stamps.is_none() && fate == Some(CommitStatus::Durable);
            assert!(fate == Some(CommitStatus::Refused) || rests_on_nothing, "{fate:?}");
            *self.fates.entry(format!("{:?}", fate.unwrap())).or_default() += 1;
        }
        let stored = self.stored();
        if stored != contents(&self.confirmed) {
            let unknown = unknown.expect("a refused command left something behind");
            self.confirm(unknown);
            assert_eq!(stored, contents(&self.confirmed), "half of {:?}", unknown.request);
        }
        fixture::assert_clean(&self.config, self.home.store.as_ref());
        self.believed = self.confirmed.clone();
    }

    /// All items by key and id, with their etags: also expired ones.
    fn stored(&self) -> Vec<(String, String)> {
        let mut container = Shape::Plain.container();
        container.default_ttl = None;
        let config = container.reconfigured(&self.config);
        let (view, reader) = (self.home.store.view().unwrap(), Reader::new(Arc::new(config)));
        let now = Timestamp::from_millis(self.now_millis);
        let page = reader
            .list(view.as_ref(), now, (&EpkRange::full(), None), None, (usize::MAX, u64::MAX))
            .unwrap();
        assert_eq!(page.rest, None);
        let mut items: Vec<(String, String)> = page
            .items
            .iter()
            .map(|item| (item.etag().to_string(), traffic::own_body(&item.text).to_string()))
            .collect();
        items.sort();
        items
    }
}

fn contents(model: &Model) -> Vec<(String, String)> {
    let entries = model.items.values().flat_map(|items| items.values());
    let mut items: Vec<(String, String)> =
        entries.map(|entry| (entry.stamp.etag.clone(), entry.body.to_string())).collect();
    items.sort();
    items
}

/// The answer to a command that only read rests on the writes before it: it must not be
/// given before they are durable.
#[test]
fn a_read_waits_for_the_writes_it_saw() {
    let mut run = Run::quiet();
    run.apply_until(|application| application.stamps.is_some());
    let seen = run.pending.back().unwrap().request.steps[0].id();
    let key = run.pending.back().unwrap().request.key;
    let read = common::model::Step::Read { id: seen, if_none_match: None };
    let request = Request { key, steps: vec![read] };
    let command = run.traffic.command(&request, &run.config.limits);
    let application = run.partition.apply(Timestamp::from_millis(run.now_millis), &command);
    assert!(application.result.is_ok());
    assert_eq!(application.ticket.outcome(), None, "told too early");
    run.faulty.script([Fault::Refuse]);
    run.gate.release(usize::MAX);
    assert_eq!(application.ticket.wait(), CommitStatus::Refused);
    // And now there is nothing to read.
    let again = run.partition.apply(Timestamp::from_millis(run.now_millis), &command);
    assert!(matches!(again.result.unwrap_err().problem, partition::PartitionError::NotFound));
    assert_eq!(again.ticket.wait(), CommitStatus::Durable);
    assert_eq!(run.partition.lsn().get(), 0);
}

impl Run {
    /// Nothing fails unless the test asks for it.
    fn quiet() -> Run {
        let mut run = Run::new(Backend::Memory, Shape::Plain, SEED_DEFAULT);
        run.faulty = FaultyStore::new(Arc::clone(&run.home.store));
        let below: Arc<dyn Store> = Arc::<FaultyStore>::clone(&run.faulty);
        run.gate = Gate::new(below);
        run.gate.hold();
        let store: Arc<dyn Store> = Arc::<Gate>::clone(&run.gate);
        run.partition = Partition::open(Arc::clone(&run.config), store).unwrap();
        run
    }

    fn apply_until(&mut self, wanted: impl Fn(&Pending) -> bool) {
        loop {
            self.apply();
            if self.pending.back().is_some_and(&wanted) {
                return;
            }
        }
    }
}

/// The store cannot be read when the partition has to recover: it says so, and
/// recovers when the store is back.
#[test]
fn a_recovery_that_fails_is_tried_again() {
    let mut run = Run::quiet();
    run.apply_until(|pending| pending.stamps.is_some());
    run.faulty.script([Fault::Refuse]);
    run.gate.release(usize::MAX);
    run.faulty.fail_reads(1);
    let request = run.pending.back().unwrap().request.clone();
    let command = run.traffic.command(&request, &run.config.limits);
    let now = Timestamp::from_millis(run.now_millis);
    let application = run.partition.apply(now, &command);
    let problem = application.result.unwrap_err().problem;
    assert!(matches!(problem, partition::PartitionError::Storage(_)), "{problem:?}");
    let application = run.partition.apply(now, &command);
    assert_eq!(application.result.unwrap().lsn.get(), 1);
    run.gate.release(usize::MAX);
    assert_eq!(application.ticket.wait(), CommitStatus::Durable);
}
