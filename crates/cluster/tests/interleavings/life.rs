//! A history of a cluster: writers and transitions, a crash in the middle, and the history
//! after it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use cluster::{Cluster, ClusterError, Container, ContainerMap, Halve, PartitionId, SystemWrite};
use model::json::{self, Value};
use model::limits::Limits;
use partition::{Command, ContainerNumber, Document, Operation, Outcome, PartitionError};
use runtime::{Random, Runtime, SeededRandom, SeededTasks, TaskHandle, Tasks, Trace, reschedule};
use storage::{CommitStatus, Direction, KeyRange, ScanLimit, Store, WriteBatch, memory};
use testkit::faulty::{FaultRates, FaultyStore};
use testkit::wait::block_on;

use crate::common;
use crate::reference::{Model, Number};
use crate::yielding::Yielding;

const CONTAINER: u32 = 1;
const WRITERS: u64 = 3;
const KEYS_PER_WRITER: u64 = 6;
const WRITES_PER_WRITER: u64 = 20;
const TRANSITIONS: u64 = 5;
const DIVISIONS: u64 = 10;

/// Turns of the crashing task until it crashes: up to about the end of all other tasks.
const TURNS_MAX: u64 = 600;

/// The partitions that a container begins with: with few they have bounds to split at, with
/// many they soon have none.
const PARTITIONS: [u32; 3] = [1, 2, 5];

/// Of 1,000 submissions.
const FAULTS: FaultRates = FaultRates {
    refuse: 8,
    fence: 0,
    unknown_written: 8,
    unknown_not_written: 8,
    lose: 0,
    read: 0,
};

/// Times something is read from a disk that fails now and then.
const READS_MAX: usize = 20;

/// Ordinals in a block, and those that are left of it.
const BLOCK: u64 = 1 << 24;
const FEW: u64 = 2;

/// The result of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Story {
    traces: [Trace; 2],
    /// The model at the end of the first history, and at the end of the second.
    models: [Model; 2],
    /// The partitions at the end of each.
    partitions: [Vec<u32>; 2],
}

impl Story {
    pub(crate) fn steps(&self) -> u64 {
        self.traces.iter().map(|trace| trace.steps).sum()
    }

    pub(crate) fn hash(&self) -> u64 {
        self.traces[1].hash ^ self.traces[0].hash.rotate_left(1)
    }
}

/// What a crash leaves: the rows on the disk, and what had been acknowledged by then.
struct Wreck {
    rows: Vec<(Bytes, Bytes)>,
    model: Model,
}

/// Runs a history, crashes at a moment that the seed decides, and continues after it. The
/// first history is completed as well, as if nothing had happened. In half of the histories
/// before the crash the disk fails now and then.
pub(crate) fn live(seed: u64) -> Story {
    let ((wreck, (model, partitions)), trace) = SeededTasks::run(seed, |tasks| {
        let rates = if seed.is_multiple_of(2) { FaultRates::default() } else { FAULTS };
        let store = memory::create_with_committer(&runtime_of(tasks, seed)).unwrap();
        create_container(&store, &runtime_of(tasks, seed));
        let world = World::new(tasks, seed, store, rates);
        let wreck = world.run(tasks);
        (wreck, world.end())
    });
    let ((after, partitions_after), trace_after) = SeededTasks::run(!seed, |tasks| {
        let store = memory::create_with_committer(&runtime_of(tasks, !seed)).unwrap();
        load(store.as_ref(), &wreck.rows);
        let world = World::new(tasks, !seed, store, FaultRates::default());
        *world.model() = wreck.model;
        world.recover();
        world.run(tasks);
        world.end()
    });
    Story {
        traces: [trace, trace_after],
        models: [model, after],
        partitions: [partitions, partitions_after],
    }
}

fn runtime_of(tasks: &SeededTasks, seed: u64) -> Runtime {
    Runtime { tasks: Arc::new(tasks.clone()), ..Runtime::simulated(seed) }
}

/// Creates the container, with so few ordinals that more are allocated all the time.
fn create_container(store: &Arc<dyn Store>, runtime: &Runtime) {
    let cluster = Cluster::open(Arc::clone(store), runtime.clone(), Arc::default()).unwrap();
    let at = runtime.random.next_u64() % PARTITIONS.len() as u64;
    let partitions = PARTITIONS[usize::try_from(at).unwrap()];
    let creating = cluster.create_container(common::spec(CONTAINER), partitions, Vec::new());
    block_on(creating).unwrap();
    let id = format!("map:{CONTAINER}");
    let mut text = cluster.read_system(&id).unwrap().unwrap().json().text().to_owned();
    for partition in 0..u64::from(partitions) {
        let (start, end) = (partition * BLOCK + 1, (partition + 1) * BLOCK + 1);
        let (from, few) = (format!("[{start},{end}]"), format!("[{start},{}]", start + FEW));
        assert!(text.contains(&from), "{from} is not in {text}");
        text = text.replace(&from, &few);
    }
    let Value::Object(mut body) = json::parse(text.as_bytes()).unwrap() else { panic!("{text}") };
    body.remove("id");
    let write = SystemWrite::Replace { id, body, if_match: None };
    block_on(cluster.write_system(vec![write])).unwrap();
}

fn load(store: &dyn Store, rows: &[(Bytes, Bytes)]) {
    let mut session = store.write_session();
    for (key, value) in rows {
        let mut batch = WriteBatch::new();
        batch.put(key.clone(), value.clone());
        assert_eq!(session.submit(batch).wait(), CommitStatus::Durable);
    }
}

#[derive(Clone)]
struct World {
    /// With faults, and with a point at each call where other tasks may run.
    store: Arc<dyn Store>,
    cluster: Arc<Cluster>,
    model: Arc<Mutex<Model>>,
    random: Arc<SeededRandom>,
    tasks: SeededTasks,
    /// Whether the disk fails now and then.
    is_faulty: bool,
}

impl World {
    fn new(tasks: &SeededTasks, seed: u64, store: Arc<dyn Store>, rates: FaultRates) -> World {
        let faulty = FaultyStore::seeded(Arc::clone(&store), seed, rates);
        let door = Arc::new(Yielding(faulty));
        let cluster = Cluster::open(door, runtime_of(tasks, seed), Arc::default()).unwrap();
        cluster.attach(common::spec(CONTAINER)).unwrap();
        World {
            store,
            cluster: Arc::new(cluster.observed_by(|_| reschedule())),
            model: Arc::default(),
            random: Arc::new(SeededRandom::new(seed)),
            tasks: tasks.clone(),
            is_faulty: rates != FaultRates::default(),
        }
    }

    fn draw(&self, below: u64) -> u64 {
        self.random.next_u64() % below
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn container(&self) -> Arc<Container> {
        self.cluster.container(ContainerNumber(CONTAINER)).unwrap()
    }

    /// Runs all tasks, and keeps what a crash at some moment would leave.
    fn run(&self, tasks: &SeededTasks) -> Wreck {
        let spawn = |name: &str, body: Box<dyn FnOnce(World) + Send>| {
            let world = self.clone();
            tasks.spawn(name, Box::new(move || body(world))).unwrap()
        };
        let mut started: Vec<TaskHandle> = (0..WRITERS)
            .map(|writer| {
                spawn(&format!("writer-{writer}"), Box::new(move |world| world.write_on(writer)))
            })
            .collect();
        started.push(spawn("transitions", Box::new(|world| world.change_on())));
        started.push(spawn("divisions", Box::new(|world| world.divide_on())));
        for _ in 0..self.draw(TURNS_MAX) {
            reschedule();
        }
        // No other task runs while this is done.
        let wreck = Wreck { rows: rows(self.store.as_ref()), model: self.model().clone() };
        started.into_iter().for_each(|task| task.join().unwrap());
        wreck
    }

    fn write_on(&self, writer: u64) {
        let container = self.container();
        for turn in 0..WRITES_PER_WRITER {
            let key = format!("w{writer}-{}", self.draw(KEYS_PER_WRITER));
            let is_there = self.model().acknowledged(&key).is_some();
            let number = if is_there && self.draw(4) == 0 { None } else { Some(self.draw(1_000)) };
            self.model().begin(&key, number);
            self.write(&container, &key, number);
            if turn % 4 == 0 {
                let found = self.read(&container, &key);
                self.model().check(&key, found);
            }
        }
    }

    fn write(&self, container: &Container, key: &str, number: Number) {
        let answer = block_on(self.cluster.apply(container, write(key, number)));
        match &answer {
            Ok(written) => {
                let lsn = written.lsn.get();
                self.tasks.note(&format!("{key} {number:?} {} {lsn}", written.range));
                let map = container.map();
                let parents = map.range(written.range).map(|record| &record.parents[..]);
                let parents: Vec<u32> = parents.unwrap_or_default().iter().map(|id| id.0).collect();
                self.model().acknowledge(key, (written.range.0, lsn), &parents);
            }
            Err(ClusterError::Busy) if self.is_faulty => {
                let found = self.read(container, key);
                self.model().undo(key, found);
            }
            Err(ClusterError::Unknown) if self.is_faulty => {
                let found = self.read(container, key);
                self.model().settle(key, found);
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn change_on(&self) {
        let container = self.container();
        for _ in 0..TRANSITIONS {
            let ranges: Vec<PartitionId> =
                container.map().ranges().iter().map(|record| record.id).collect();
            let at = usize::try_from(self.draw(ranges.len() as u64)).unwrap();
            let pair = ranges.get(at..at + 2).filter(|_| self.draw(2) == 0);
            let halve = if self.draw(2) == 0 { Halve::Hashes } else { Halve::Bytes };
            let done = match pair {
                Some(pair) => block_on(self.cluster.merge(&container, pair)),
                None => block_on(self.cluster.split(&container, ranges[at], halve)),
            };
            match done {
                Ok(done) => self.tasks.note(&format!("{:?} {:?}", done.from, done.into)),
                // Too little in it to be cut.
                Err(ClusterError::Indivisible { .. }) => {}
                // The disk did not say whether it was done, or whether a move before it was.
                Err(ClusterError::Busy | ClusterError::Unknown | ClusterError::Layout(_))
                    if self.is_faulty => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Divides the throughput now and then, which changes the map, too.
    fn divide_on(&self) {
        let container = self.container();
        for division in 0..DIVISIONS {
            let layout = container.layout();
            let map = match division % 2 {
                0 => layout.map().divided_by_inheritance(),
                _ => layout.map().divided_evenly(),
            };
            match block_on(self.cluster.divide(&container, (&layout, map), Vec::new())) {
                // Another change was faster, or the disk has failed.
                Ok(()) | Err(ClusterError::Busy | ClusterError::Unknown) => {}
                Err(error) => panic!("{error}"),
            }
            for _ in 0..self.draw(TURNS_MAX / DIVISIONS) {
                reschedule();
            }
        }
    }

    /// Continues after a crash: everything acknowledged is there, before and after moves
    /// that were under way are finished.
    fn recover(&self) {
        let container = self.container();
        let keys = self.model().keys();
        for key in &keys {
            let found = self.read(&container, key);
            self.model().settle(key, found);
        }
        block_on(self.cluster.relieve(|_| true)).unwrap();
        assert_eq!(container.map().moves(), []);
        for key in &keys {
            let found = self.read(&container, key);
            self.model().check(key, found);
        }
        for retired in block_on(self.cluster.retired()).unwrap() {
            block_on(self.cluster.sweep(retired)).unwrap();
        }
    }

    /// Completes a history; returns the model at its end, and its partitions.
    fn end(self) -> (Model, Vec<u32>) {
        let container = self.container();
        let keys = self.model().keys();
        for key in &keys {
            let found = self.read(&container, key);
            assert_eq!(found, self.model().acknowledged(key), "{key}");
        }
        let report = self.cluster.check(&[], |_| {}).unwrap();
        assert!(report.is_clean(), "{report:?}");
        let stored = self.cluster.read_system(&format!("map:{CONTAINER}")).unwrap().unwrap();
        let stored = ContainerMap::parse(CONTAINER, stored.json()).unwrap();
        assert_eq!(*container.map(), stored, "what is in force is what is stored");
        let partitions = container.map().ranges().iter().map(|record| record.id.0).collect();
        (self.model().clone(), partitions)
    }

    /// Reads by the sequencer, which has the latest state, until the disk does not fail.
    fn read(&self, container: &Container, key: &str) -> Number {
        for _ in 0..READS_MAX {
            let operations = vec![common::read_op("1")];
            let command = Command { position: common::position(key), operations };
            match block_on(self.cluster.apply(container, command)) {
                Ok(served) => return Some(number_in(&served.value)),
                Err(ClusterError::Command { error, .. })
                    if matches!(error.problem, PartitionError::NotFound) =>
                {
                    return None;
                }
                Err(ClusterError::Busy | ClusterError::Unknown) if self.is_faulty => {}
                Err(error) => panic!("{error}"),
            }
        }
        panic!("{key} cannot be read");
    }
}

fn number_in(outcome: &Outcome) -> u64 {
    let text = outcome.effects[0].text.clone().unwrap();
    let value = json::parse(&text).unwrap();
    value.get("n").unwrap().to_string().parse().unwrap()
}

fn write(key: &str, number: Number) -> Command {
    let operation = match number {
        Some(number) => {
            let body = format!(r#"{{"id":"1","pk":"{key}","n":{number}}}"#);
            let document = Document::parse(body.into(), &Limits::default()).unwrap();
            Operation::Upsert { document, if_match: None }
        }
        None => Operation::Delete { id: common::id("1"), if_match: None },
    };
    Command { position: common::position(key), operations: vec![operation] }
}

/// All rows on the disk.
fn rows(store: &dyn Store) -> Vec<(Bytes, Bytes)> {
    let (view, mut rest, mut rows) = (store.view().unwrap(), Some(KeyRange::all()), Vec::new());
    while let Some(range) = rest.take() {
        let chunk = view.scan(&range, Direction::Forward, ScanLimit::default()).unwrap();
        rows.extend(chunk.rows);
        rest = chunk.rest;
    }
    rows
}
