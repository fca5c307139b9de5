//! Random histories: commands, splits, merges, moves and restarts against a simple model.
//! `ORRERY_SEED` and `ORRERY_STEPS` repeat one or make it longer.

use std::collections::BTreeMap;
use std::sync::Arc;

use cluster::{ClusterError, Container, Halve, PartitionId};
use model::epk::EpkRange;
use model::limits::Limits;
use model::position::Lsn;
use partition::{Command, Document, EffectKind, Operation, PartitionError, Position};
use runtime::{Random, Runtime, SeededRandom};
use storage::local::{self, LocalConfig};
use storage::{Durability, Store, memory};
use testkit::wait::block_on;

use crate::common::{self, Fixture, id};

const SEED: u64 = 4_2026;

/// Steps of the history in memory.
const STEPS: u64 = 10_000;

/// Steps of the history on a disk, which takes longer for each.
const STEPS_ON_DISK: u64 = 2_000;

const KEYS: u64 = 40;
const IDS: u64 = 6;

/// Ranges from which on they are merged again.
const RANGES_MAX: usize = 12;

/// Everything is compared with the model once in this many steps.
const REVIEW: u64 = 500;

struct Life {
    fixture: Fixture,
    random: SeededRandom,
    /// What is stored: key and id → the number that was written last.
    model: BTreeMap<(String, String), u64>,
    /// The highest position that each key was seen at.
    seen: BTreeMap<String, Lsn>,
    /// A list that is being read, page by page, across everything else.
    reading: Option<Position>,
    turn: u64,
    changes: u64,
}

#[test]
fn a_life_in_memory() {
    live("memory", memory::create(), setting("ORRERY_STEPS", STEPS));
}

#[test]
fn a_life_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let config = LocalConfig { durability: Durability::Os, ..LocalConfig::default() };
    let store = local::create(folder.path(), config, &Runtime::real()).unwrap();
    live("disk", store, setting("ORRERY_STEPS", STEPS_ON_DISK));
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn live(place: &str, store: Arc<dyn Store>, steps: u64) {
    let seed = setting("ORRERY_SEED", SEED);
    println!("repeat with ORRERY_SEED={seed} ORRERY_STEPS={steps}");
    let mut fixture = Fixture::new(store);
    fixture.create_container(1, 1);
    let mut life = Life {
        fixture,
        random: SeededRandom::new(seed),
        model: BTreeMap::new(),
        seen: BTreeMap::new(),
        reading: None,
        turn: 0,
        changes: 0,
    };
    for _ in 0..steps {
        life.step();
    }
    life.review();
    println!("{place}: {steps} steps, {} changes of the layout", life.changes);
    assert!(life.changes > steps / 50, "layouts change all the time");
}

impl Life {
    fn draw(&self, among: u64) -> u64 {
        self.random.next_u64() % among
    }

    fn container(&self) -> Arc<Container> {
        self.fixture.container(1)
    }

    fn step(&mut self) {
        self.turn += 1;
        match self.draw(100) {
            0..=69 => self.command(),
            70..=84 => self.read_page(),
            85..=94 => self.change_layout(),
            95..=97 => self.sweep(),
            _ => self.fixture.reopen(),
        }
        if self.turn.is_multiple_of(REVIEW) {
            self.review();
        }
    }

    /// One to three operations on one key, all or nothing.
    fn command(&mut self) {
        let key = format!("key-{}", self.draw(KEYS));
        let operations: Vec<_> = (0..=self.draw(3)).map(|_| self.operation(&key)).collect();
        let mut after = self.model.clone();
        let expected: Result<Vec<EffectKind>, ()> =
            operations.iter().map(|operation| predict(&mut after, &key, operation)).collect();
        let command = Command { position: common::position(&key), operations };
        let answer = block_on(self.fixture.cluster.apply(&self.container(), command));
        match (expected, answer) {
            (Ok(kinds), Ok(answer)) => {
                let done: Vec<_> = answer.value.effects.iter().map(|effect| effect.kind).collect();
                assert_eq!(done, kinds, "step {}", self.turn);
                self.saw(&key, answer.range, answer.lsn);
                self.model = after;
            }
            (Err(()), Err(ClusterError::Command { range, error })) => {
                let known =
                    matches!(error.problem, PartitionError::Exists | PartitionError::NotFound);
                assert!(known, "step {}: {error}", self.turn);
                self.saw(&key, range, error.lsn);
            }
            (expected, answer) => panic!("step {}: {expected:?}, not {answer:?}", self.turn),
        }
    }

    fn operation(&self, key: &str) -> Operation {
        let name = format!("{}", self.draw(IDS));
        let body = format!(r#"{{"id":"{name}","pk":"{key}","n":{}}}"#, self.turn);
        let document = Document::parse(body.into(), &Limits::default()).unwrap();
        match self.draw(5) {
            0 => Operation::Create { document },
            1 => Operation::Replace { id: id(&name), document, if_match: None },
            2 => Operation::Delete { id: id(&name), if_match: None },
            3 => common::read_op(&name),
            _ => Operation::Upsert { document, if_match: None },
        }
    }

    /// Every answer comes from the range that owns the key, and no key goes back.
    fn saw(&mut self, key: &str, range: PartitionId, lsn: Lsn) {
        let owner = self.container().map().range_of(&common::position(key)).unwrap().id;
        assert_eq!(range, owner, "step {}", self.turn);
        let before = self.seen.entry(key.to_owned()).or_insert(lsn);
        assert!(lsn >= *before, "step {}: {key} at {lsn} after {before}", self.turn);
        *before = lsn;
    }

    /// A page of a list that began long ago: what comes is there, and in order.
    fn read_page(&mut self) {
        let (container, full) = (self.container(), EpkRange::full());
        let page = block_on(self.fixture.cluster.list(
            &container,
            (&full, None),
            self.reading.as_ref(),
            (5, u64::MAX),
        ))
        .unwrap();
        let Some(page) = page else {
            self.reading = None;
            return;
        };
        for item in &page.value.items {
            let (key, name) = (text(item, "pk"), text(item, "id"));
            let number = item.json().get("n").unwrap().text().parse().unwrap();
            assert_eq!(self.model.get(&(key.clone(), name)), Some(&number), "step {}", self.turn);
            let behind =
                self.reading.as_ref().is_none_or(|from| from.epk <= common::position(&key));
            assert!(behind, "step {}: a list went back", self.turn);
        }
        self.reading = page.value.rest;
    }

    fn change_layout(&mut self) {
        let container = self.container();
        let ids: Vec<_> = container.map().ranges().iter().map(|record| record.id).collect();
        let at = usize::try_from(self.draw(ids.len() as u64)).unwrap();
        let merges = ids.len() >= RANGES_MAX || self.draw(5) < 2;
        let changed = if merges {
            let run = ids.iter().copied().skip(at).take(2 + usize::from(self.draw(2) == 0));
            block_on(self.fixture.cluster.merge(&container, &run.collect::<Vec<_>>()))
        } else {
            let halve = if self.draw(2) == 0 { Halve::Hashes } else { Halve::Bytes };
            block_on(self.fixture.cluster.split(&container, ids[at], halve))
        };
        match changed {
            Ok(_) => self.changes += 1,
            // One range alone cannot be merged, one key or nothing cannot be split.
            Err(ClusterError::Layout(_) | ClusterError::Indivisible { .. }) => {}
            Err(error) => panic!("step {}: {error}", self.turn),
        }
    }

    fn sweep(&mut self) {
        for prefix in block_on(self.fixture.cluster.retired()).unwrap() {
            block_on(self.fixture.cluster.sweep(prefix)).unwrap();
        }
    }

    /// Everything there is, by list and by point read, and what the store says of itself.
    fn review(&self) {
        let container = self.container();
        let mut listed = BTreeMap::new();
        let mut after = None;
        loop {
            let full = EpkRange::full();
            let page = block_on(self.fixture.cluster.list(
                &container,
                (&full, None),
                after.as_ref(),
                (100, u64::MAX),
            ))
            .unwrap();
            let page = page.unwrap().value;
            for item in &page.items {
                let number: u64 = item.json().get("n").unwrap().text().parse().unwrap();
                let name = (text(item, "pk"), text(item, "id"));
                assert!(listed.insert(name, number).is_none(), "step {}", self.turn);
            }
            after = page.rest;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(listed, self.model, "step {}", self.turn);
        for (key, name) in self.model.keys() {
            let epk = common::position(key);
            let read =
                block_on(self.fixture.cluster.read(&container, (&epk, &id(name)), None)).unwrap();
            assert!(read.value.is_ok(), "step {}", self.turn);
        }
        let report = self.fixture.check();
        assert!(report.is_clean(), "step {}: {report:?}", self.turn);
    }
}

/// What an operation does to the model.
fn predict(
    model: &mut BTreeMap<(String, String), u64>,
    key: &str,
    operation: &Operation,
) -> Result<EffectKind, ()> {
    let name = (key.to_owned(), operation.id().as_str().to_owned());
    let number = |document: &Document| document.json().get("n").unwrap().text().parse().unwrap();
    match operation {
        Operation::Create { document } => match model.insert(name, number(document)) {
            None => Ok(EffectKind::Created),
            Some(_) => Err(()),
        },
        Operation::Upsert { document, .. } => match model.insert(name, number(document)) {
            None => Ok(EffectKind::Created),
            Some(_) => Ok(EffectKind::Replaced),
        },
        Operation::Replace { document, .. } => match model.get_mut(&name) {
            Some(stored) => {
                *stored = number(document);
                Ok(EffectKind::Replaced)
            }
            None => Err(()),
        },
        Operation::Delete { .. } => model.remove(&name).map(|_| EffectKind::Deleted).ok_or(()),
        Operation::Read { .. } => model.get(&name).map(|_| EffectKind::Read).ok_or(()),
        Operation::Patch { .. } => unreachable!("this life has no patches"),
    }
}

fn text(item: &partition::Item, name: &str) -> String {
    item.json().get(name).unwrap().as_str().unwrap().into_owned()
}
