//! Random commands against a reference model.
//!
//! The same commands run on every backend, one at a time and with many in
//! flight, with and without restarts: the answers must be the model's, and the
//! stores must end up the same to the byte.
//!
//! `ORRERY_COMMANDS` sets the number of commands of each run, `ORRERY_SEED` the seed.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[allow(dead_code, reason = "shared between tests, each uses a part")]
mod common {
    pub(crate) mod fixture;
    pub(crate) mod gate;
    pub(crate) mod model;
    pub(crate) mod traffic;
}

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use common::fixture::{self, Backend, EPOCH_MILLIS, Home, json};
use common::gate::Gate;
use common::model::{Model, Request, Stamp, Step, perform};
use common::traffic::{self, Dice, Shape, Traffic};
use model::epk::{Epk, EpkRange};
use model::json::Value;
use model::name::ItemId;
use model::position::Timestamp;
use partition::{
    Application, Bucket, BucketNumber, Move, Partition, PartitionConfig, PartitionError, Position,
    Reader,
};
use storage::{CommitStatus, Store, Ticket, WriteBatch};

const COMMANDS_DEFAULT: u64 = 1_000;
const SEED_DEFAULT: u64 = 20_200_101;

/// A configuration of a run.
#[derive(Clone, Copy, Debug)]
struct Way {
    backend: Backend,
    /// Commands that may wait for the disk at a time.
    in_flight: usize,
    /// Restarts in a thousand commands.
    restarts: u64,
    /// Steps of moving a bucket in a thousand commands.
    moves: u64,
}

const WAYS: [Way; 9] = [
    Way { backend: Backend::Memory, in_flight: 0, restarts: 0, moves: 0 },
    Way { backend: Backend::Memory, in_flight: 40, restarts: 0, moves: 0 },
    Way { backend: Backend::Memory, in_flight: 40, restarts: 5, moves: 0 },
    Way { backend: Backend::Local, in_flight: 0, restarts: 0, moves: 0 },
    Way { backend: Backend::Local, in_flight: 64, restarts: 0, moves: 0 },
    Way { backend: Backend::Local, in_flight: 64, restarts: 1, moves: 0 },
    Way { backend: Backend::Memory, in_flight: 0, restarts: 0, moves: 300 },
    Way { backend: Backend::Memory, in_flight: 40, restarts: 20, moves: 300 },
    Way { backend: Backend::Local, in_flight: 64, restarts: 5, moves: 300 },
];

#[test]
fn every_way_gives_the_answers_of_the_model_and_the_same_bytes() {
    let commands = from_env("ORRERY_COMMANDS", COMMANDS_DEFAULT);
    let seed = from_env("ORRERY_SEED", SEED_DEFAULT);
    for shape in Shape::ALL {
        let mut first: Option<Vec<(Bytes, Bytes)>> = None;
        for way in WAYS {
            println!("{commands} commands to a {shape:?} container, {way:?}, ORRERY_SEED={seed}");
            let mut run = Run::new(shape, way, seed);
            (0..commands).for_each(|at| run.command(at));
            let dump = run.finish();
            match &first {
                None => first = Some(dump),
                Some(first) if way.moves > 0 => assert_same(&homeless(first), &homeless(&dump)),
                Some(first) => assert_same(first, &dump),
            }
        }
    }
}

fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn assert_same(one: &[(Bytes, Bytes)], other: &[(Bytes, Bytes)]) {
    for (one, other) in one.iter().zip(other) {
        assert_eq!(one, other, "{}", partition::describe_key(&one.0));
    }
    assert_eq!(one.len(), other.len());
}

/// The rows without the numbers of their buckets and without heads: the same whatever
/// moved.
fn homeless(rows: &[(Bytes, Bytes)]) -> Vec<(Bytes, Bytes)> {
    const HEAD: u8 = 1;
    const PREFIX_BYTES: usize = 8;
    let rest = rows.iter().map(|(key, value)| (key.slice(PREFIX_BYTES..), value.clone()));
    let mut rows: Vec<_> = rest.filter(|(key, _)| key[0] != HEAD).collect();
    rows.sort();
    rows
}

/// A partition and its model under traffic.
struct Run {
    way: Way,
    traffic: Traffic,
    /// Decides about restarts and waiting, so that the traffic is the same without.
    dice: Dice,
    home: Home,
    gate: Arc<Gate>,
    config: Arc<PartitionConfig>,
    partition: Partition,
    model: Model,
    now_millis: u64,
    tickets: VecDeque<Ticket>,
    rids: BTreeSet<String>,
    shape: Shape,
    /// Items of the moving bucket that were not handed to the sequencer yet.
    uncopied: Vec<Position>,
}

impl Run {
    fn new(shape: Shape, way: Way, seed: u64) -> Run {
        let home = Home::new(way.backend);
        let config = Arc::new(shape.config());
        let (gate, partition) = open(&home, &config, way);
        Run {
            way,
            traffic: Traffic::new(shape, seed),
            dice: Dice::new(!seed),
            home,
            gate,
            config,
            partition,
            model: Model { rules: shape.rules(), ..Model::default() },
            now_millis: EPOCH_MILLIS,
            tickets: VecDeque::new(),
            rids: BTreeSet::new(),
            shape,
            uncopied: Vec::new(),
        }
    }

    fn command(&mut self, at: u64) {
        self.pass_time();
        if self.traffic.dice.chance(4) {
            self.change_policies();
        }
        if self.dice.chance(self.way.restarts) {
            self.restart();
        }
        if self.dice.chance(self.way.moves) {
            self.move_on();
        }
        let request = self.traffic.request(&self.model);
        let now = self.skewed_now();
        let command = self.traffic.command(&request, &self.config.limits);
        let application = self.partition.apply(Timestamp::from_millis(now), &command);
        self.compare(at, now, &request, &application);
        self.tickets.push_back(application.ticket);
        self.wait_for_some();
        if self.tickets.is_empty() {
            self.read_back(request.key, &request.steps[0].id());
        }
    }

    fn pass_time(&mut self) {
        if self.traffic.dice.chance(200) {
            self.now_millis += self.traffic.dice.below(3_000);
        }
        if self.traffic.dice.chance(5) {
            self.now_millis += 15_000;
        }
    }

    /// A clock that is sometimes set back.
    fn skewed_now(&mut self) -> u64 {
        if self.traffic.dice.chance(50) { self.now_millis - 2_000 } else { self.now_millis }
    }

    fn change_policies(&mut self) {
        let dice = &self.traffic.dice;
        let mut container = self.shape.container();
        if self.shape == Shape::Ruled {
            container.default_ttl = dice.pick(&[None, Some(-1), Some(5), Some(20)]);
        }
        let policies = [
            r#"{"excludedPaths":[{"path":"/s/*"}],"includedPaths":[{"path":"/*"}]}"#,
            r#"{"excludedPaths":[{"path":"/*"}],"includedPaths":[{"path":"/n/?"},{"path":"/list/[]/?"}],
                "compositeIndexes":[[{"path":"/n"},{"path":"/s","order":"descending"}]]}"#,
        ];
        container.indexing = dice.chance(700).then(|| json(dice.pick(&policies)));
        self.model.rules.default_ttl = container.default_ttl;
        let limits = Arc::clone(&self.config.limits);
        self.config = Arc::new(PartitionConfig { limits, ..container.reconfigured(&self.config) });
        self.partition.reconfigure(Arc::clone(&self.config));
    }

    /// One step of moving a bucket: begin, copy a few items, or end.
    fn move_on(&mut self) {
        let Some(moving) = self.config.moves.first().cloned() else {
            self.begin_move();
            return;
        };
        if self.uncopied.is_empty() {
            self.end_move(&moving);
            return;
        }
        let count = 1 + usize::try_from(self.dice.below(5)).unwrap();
        let names: Vec<Position> = self.uncopied.drain(..count.min(self.uncopied.len())).collect();
        let copied = self.partition.copy(&names).unwrap();
        self.drain();
        assert_eq!(copied.ticket.wait(), CommitStatus::Durable);
        fixture::assert_clean(&self.config, self.gate.as_ref());
    }

    /// Cuts a bucket at one of the keys in it.
    fn begin_move(&mut self) {
        let bucket = self.dice.pick(&self.config.buckets);
        let keys: Vec<Epk> = self.traffic.keys().map(|(_, key)| key.clone()).collect();
        let inside = |epk: &Epk| bucket.range.contains(epk) && *epk != bucket.range.min;
        let Some(cut) = keys.into_iter().find(inside) else { return };
        let next = 1 + self.config.buckets.iter().map(|bucket| bucket.number.0).max().unwrap();
        let part = |number, min: &Epk, max: &Epk| Bucket {
            number: BucketNumber(number),
            range: EpkRange { min: min.clone(), max: max.clone() },
        };
        let EpkRange { min, max } = &bucket.range;
        let into = vec![part(next, min, &cut), part(next + 1, &cut, max)];
        let moves = vec![Move { from: bucket.number, into }];
        self.config = Arc::new(PartitionConfig { moves, ..self.config.as_ref().clone() });
        self.partition.reconfigure(Arc::clone(&self.config));
        self.list_uncopied(bucket.number);
    }

    /// The listing must see what was submitted before the move was known.
    fn list_uncopied(&mut self, bucket: BucketNumber) {
        self.drain();
        let (view, reader) = (self.gate.view().unwrap(), Reader::new(Arc::clone(&self.config)));
        self.uncopied = reader.names(view.as_ref(), bucket, None, usize::MAX).unwrap();
    }

    fn end_move(&mut self, moving: &Move) {
        let complete = self.partition.complete_move(moving.from).unwrap();
        self.drain();
        assert_eq!(complete.expect("all was copied").wait(), CommitStatus::Durable);
        let mut config = self.config.as_ref().clone();
        config.moves.clear();
        let at = config.buckets.iter().position(|bucket| bucket.number == moving.from).unwrap();
        config.buckets.splice(at..=at, moving.into.iter().cloned());
        self.config = Arc::new(config);
        self.remove_bucket(moving.from);
        self.partition =
            Partition::open(Arc::clone(&self.config), Arc::clone(&self.gate) as Arc<dyn Store>)
                .unwrap();
        assert_eq!(self.partition.lsn().get(), self.model.commits);
    }

    fn remove_bucket(&mut self, bucket: BucketNumber) {
        let mut batch = WriteBatch::new();
        let dead = |key: &Bytes| key[4..8] == bucket.0.to_be_bytes();
        for (key, _) in fixture::dump(self.gate.as_ref()).into_iter().filter(|(key, _)| dead(key)) {
            batch.delete(key);
        }
        let ticket = self.gate.write_session().submit(batch);
        self.drain();
        assert_eq!(ticket.wait(), CommitStatus::Durable);
    }

    fn restart(&mut self) {
        self.drain();
        // Nothing may hold on to the old store.
        let placeholder = Gate::new(storage::memory::create());
        self.partition = Partition::open(Arc::clone(&self.config), placeholder.clone()).unwrap();
        self.gate = placeholder;
        self.home.reopen();
        let (gate, partition) = open(&self.home, &self.config, self.way);
        assert_eq!(partition.lsn().get(), self.model.commits);
        (self.gate, self.partition) = (gate, partition);
        // A copier starts over: its progress is not remembered.
        if let Some(from) = self.config.moves.first().map(|moving| moving.from) {
            self.list_uncopied(from);
        }
    }

    fn compare(&mut self, at: u64, now: u64, request: &Request, application: &Application) {
        let said = application.result.as_ref();
        let stamps: Vec<Stamp> = said.map_or(Vec::new(), traffic::stamps);
        let predicted = self.model.apply(now, request, &stamps);
        let said_words = match said {
            Ok(outcome) => Ok(traffic::done(outcome)),
            Err(error) => Err((error.at, traffic::why(&error.problem).expect("the store is fine"))),
        };
        assert_eq!(said_words, predicted, "command {at} at {now}: {request:?}");
        let Ok(outcome) = said else { return };
        assert_eq!(outcome.lsn.get(), self.model.commits, "command {at}");
        assert_eq!(self.partition.lsn(), outcome.lsn);
        self.check_stamps(at, request, &stamps, said_words.unwrap_or_default());
    }

    /// New items have a resource id that never was; changed ones keep theirs.
    /// Every write has an etag of its own.
    fn check_stamps(
        &mut self,
        at: u64,
        request: &Request,
        stamps: &[Stamp],
        done: Vec<common::model::Done>,
    ) {
        let mut etags = BTreeSet::new();
        for ((step, stamp), done) in request.steps.iter().zip(stamps).zip(done) {
            match done {
                common::model::Done::Created(_) => {
                    assert!(
                        self.rids.insert(stamp.rid.clone()),
                        "command {at} reuses {}",
                        stamp.rid
                    );
                    assert!(etags.insert(&stamp.etag), "command {at}");
                }
                common::model::Done::Replaced(_) => {
                    assert!(self.rids.contains(&stamp.rid), "command {at}: {step:?}");
                    assert!(etags.insert(&stamp.etag), "command {at}");
                }
                common::model::Done::Deleted
                | common::model::Done::Read(_)
                | common::model::Done::NotModified => {}
            }
        }
    }

    fn wait_for_some(&mut self) {
        if self.tickets.len() <= self.way.in_flight {
            return;
        }
        let count = 1 + self.dice.below(self.tickets.len() as u64);
        self.gate.release(usize::try_from(count).unwrap());
        for ticket in self.tickets.drain(..usize::try_from(count).unwrap()) {
            assert_eq!(ticket.wait(), CommitStatus::Durable);
        }
    }

    fn drain(&mut self) {
        self.gate.release(usize::MAX);
        for ticket in self.tickets.drain(..) {
            assert_eq!(ticket.wait(), CommitStatus::Durable);
        }
    }

    /// A client's read of what is durable, which at this moment is everything.
    fn read_back(&self, key: usize, id: &str) {
        let view = self.gate.view().unwrap();
        let (epk, id) = (&self.traffic.position(key), ItemId::parse(id).unwrap());
        let now = Timestamp::from_millis(self.now_millis);
        let reader = Reader::new(Arc::clone(&self.config));
        let read = reader.read(view.as_ref(), now, (epk, &id), None);
        match (read, self.model.live(key, id.as_str(), now.secs())) {
            (Err(PartitionError::NotFound), None) => {}
            (Ok(effect), Some(entry)) => {
                let text = effect.text.unwrap();
                assert_eq!(traffic::own_body(&text).to_string(), entry.body.to_string());
                assert_eq!(effect.stamp.unwrap().ts.secs(), entry.ts_secs);
            }
            (read, entry) => panic!("read {read:?}, expected {entry:?}"),
        }
    }

    /// Compares everything that can be read, and returns everything that is stored.
    fn finish(mut self) -> Vec<(Bytes, Bytes)> {
        while !self.config.moves.is_empty() {
            self.move_on();
        }
        self.drain();
        for (key, _) in self.traffic.keys() {
            Traffic::ids().for_each(|id| self.read_back(key, &id));
        }
        self.compare_listing();
        self.compare_sizes();
        fixture::assert_clean(&self.config, self.gate.as_ref());
        fixture::dump(self.gate.as_ref())
    }

    fn compare_listing(&self) {
        let (view, now) = (self.gate.view().unwrap(), Timestamp::from_millis(self.now_millis));
        let reader = Reader::new(Arc::clone(&self.config));
        let mut listed = BTreeSet::new();
        let mut after = None;
        loop {
            let range = EpkRange::full();
            let page = reader
                .list(view.as_ref(), now, (&range, None), after.as_ref(), (7, u64::MAX))
                .unwrap();
            assert!(page.items.len() <= 7);
            for item in page.items {
                assert!(listed.insert(item.etag().to_string()), "listed twice");
            }
            after = page.rest;
            if after.is_none() {
                break;
            }
        }
        let items = self.model.items.iter();
        let live = items.flat_map(|(key, items)| items.keys().map(move |id| (*key, id)));
        let live = live.filter_map(|(key, id)| self.model.live(key, id, now.secs()));
        let expected: BTreeSet<String> = live.map(|entry| entry.stamp.etag.clone()).collect();
        assert_eq!(listed, expected);
    }

    /// Sizes count what is stored, also what has expired.
    fn compare_sizes(&self) {
        let (view, reader) = (self.gate.view().unwrap(), Reader::new(Arc::clone(&self.config)));
        let (mut items, mut bytes) = (0, 0);
        for (key, position) in self.traffic.keys() {
            let stored = reader.key_statistics(view.as_ref(), position).unwrap();
            let entries = self.model.items.get(&key).map_or(0, |items| items.len() as u64);
            let sizes = self.model.items.get(&key).into_iter().flat_map(|items| items.values());
            let sum: u64 = sizes.map(|entry| entry.stamp.bytes).sum();
            assert_eq!((stored.items, stored.bytes), (entries, sum), "key {key}");
            (items, bytes) = (items + entries, bytes + sum);
        }
        let head = reader.size(view.as_ref()).unwrap();
        assert_eq!((head.items, head.bytes, head.lsn), (items, bytes, self.model.commits));
        assert_eq!(head.ts_millis, self.model.last_commit_millis);
    }
}

fn open(home: &Home, config: &Arc<PartitionConfig>, way: Way) -> (Arc<Gate>, Partition) {
    let gate = Gate::new(Arc::clone(&home.store));
    // Memory is durable at once; to have something in flight it must be held back.
    if way.backend == Backend::Memory && way.in_flight > 0 {
        gate.hold();
    }
    let store: Arc<dyn Store> = Arc::<Gate>::clone(&gate);
    (gate, Partition::open(Arc::clone(config), store).unwrap())
}

/// A patch leaves the same bytes as reading, editing and replacing.
#[test]
fn a_patch_is_a_read_an_edit_and_a_replace() {
    let seed = from_env("ORRERY_SEED", SEED_DEFAULT);
    println!("ORRERY_SEED={seed}");
    let traffic = Traffic::new(Shape::Plain, seed);
    let (mut done, mut refused) = (0, 0);
    for _ in 0..400 {
        let body = traffic.body(0, "x");
        let edits: Vec<_> = (0..1 + traffic.dice.below(3)).map(|_| traffic.edit()).collect();
        let mut edited = body.clone();
        let possible = edits.iter().try_for_each(|edit| perform(&mut edited, edit)).is_some();
        let patch = Step::Patch { id: "x".into(), edits, condition: None, if_match: None };
        let replace = Step::Replace { id: "x".into(), body: edited.clone(), if_match: None };
        let patched = after(&traffic, &body, &patch);
        match patched {
            Ok(stored) if possible => {
                assert_eq!(Ok(stored), after(&traffic, &body, &replace), "{patch:?}");
                done += 1;
            }
            Ok(_) => panic!("{body} should have refused {patch:?}"),
            // Too large, no valid ttl, or a forbidden path.
            Err(_) => refused += 1,
        }
    }
    assert!(done > 100 && refused > 20, "{done} done, {refused} refused");
}

/// What is stored after creating `body` and then doing `step`.
fn after(traffic: &Traffic, body: &Value, step: &Step) -> Result<Vec<(Bytes, Bytes)>, String> {
    let config = Arc::new(Shape::Plain.config());
    let store = storage::memory::create();
    let mut partition = Partition::open(Arc::clone(&config), Arc::clone(&store)).unwrap();
    for (step, seconds) in [(&Step::Create { body: body.clone() }, 0), (step, 1)] {
        let request = Request { key: 0, steps: vec![step.clone()] };
        let now = Timestamp::from_millis(EPOCH_MILLIS + seconds * 1000);
        let application = partition.apply(now, &traffic.command(&request, &config.limits));
        application.result.map_err(|error| error.to_string())?;
        assert_eq!(application.ticket.wait(), CommitStatus::Durable);
    }
    fixture::assert_clean(&config, store.as_ref());
    Ok(fixture::dump(store.as_ref()))
}
