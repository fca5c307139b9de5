//! Random operations on every backend against the simplest model there is.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use runtime::Runtime;
use storage::local::{self, LocalConfig};
use storage::{
    CommitStatus, Direction, Durability, KeyRange, ScanLimit, Store, View, WriteBatch, memory,
};
use tempfile::TempDir;

type Model = BTreeMap<Bytes, Bytes>;

#[derive(Clone, Debug)]
enum Operation {
    Submit(Vec<(Bytes, Option<Bytes>)>),
    /// Keeps a view for later comparison.
    Keep,
    Get(Bytes),
    Scan {
        start: Bytes,
        end: Option<Bytes>,
        backward: bool,
        rows: usize,
    },
    /// Discards a range, as its owner has to.
    Discard(KeyRange),
    Compact,
    /// Ends and opens the store again: with a clean stop, or by dropping it.
    Reopen {
        close: bool,
    },
}

/// Few and short keys, so that operations collide.
fn key() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(prop::sample::select(&[0_u8, 1, 0x61, 0xFE, 0xFF][..]), 1..4).prop_map(
        |mut key| {
            if key[0] == 0xFF {
                key[0] = 0x62;
            }
            Bytes::from(key)
        },
    )
}

fn value() -> impl Strategy<Value = Bytes> {
    (any::<u8>(), 0..600_usize).prop_map(|(byte, len)| Bytes::from(vec![byte; len]))
}

fn operation() -> impl Strategy<Value = Operation> {
    let writes = prop::collection::vec((key(), prop::option::weighted(0.7, value())), 0..12);
    let scan = (key(), prop::option::of(key()), any::<bool>(), 1..8_usize)
        .prop_map(|(start, end, backward, rows)| Operation::Scan { start, end, backward, rows });
    prop_oneof![
        8 => writes.prop_map(Operation::Submit),
        1 => Just(Operation::Keep),
        4 => key().prop_map(Operation::Get),
        4 => scan,
        2 => (key(), key()).prop_map(|(one, other)| {
            Operation::Discard(KeyRange::new(one.clone().min(other.clone()), one.max(other)))
        }),
        1 => Just(Operation::Compact),
        1 => any::<bool>().prop_map(|close| Operation::Reopen { close }),
    ]
}

struct World {
    folder: Option<TempDir>,
    store: Option<Arc<dyn Store>>,
    kept: Vec<(Box<dyn View>, Model)>,
}

impl World {
    fn memory() -> World {
        World { folder: None, store: Some(memory::create()), kept: Vec::new() }
    }

    fn local() -> World {
        let folder = tempfile::tempdir().unwrap();
        let store = local::create(folder.path(), config(), &Runtime::real()).unwrap();
        World { folder: Some(folder), store: Some(store), kept: Vec::new() }
    }

    fn store(&self) -> &dyn Store {
        self.store.as_deref().unwrap()
    }

    fn apply(&mut self, operation: &Operation, model: &Model) {
        match operation {
            Operation::Submit(writes) => {
                let ticket = self.store().write_session().submit(batch(writes));
                assert_eq!(ticket.wait(), CommitStatus::Durable);
            }
            Operation::Keep => self.kept.push((self.store().view().unwrap(), model.clone())),
            Operation::Get(key) => {
                let found = self.store().view().unwrap().get(key).unwrap();
                assert_eq!(found.as_ref(), model.get(key));
            }
            Operation::Scan { start, end, backward, rows } => {
                let range = KeyRange { start: start.clone(), end: end.clone() };
                let view = self.store().view().unwrap();
                check_scan(view.as_ref(), &range, *backward, *rows, model);
            }
            Operation::Discard(range) => self.discard(range),
            Operation::Compact => self.store().compact().unwrap(),
            Operation::Reopen { close } => self.reopen(*close),
        }
    }

    fn discard(&self, range: &KeyRange) {
        self.store().discard(range).unwrap();
        let view = self.store().view().unwrap();
        let left = view.scan(range, Direction::Forward, ScanLimit::rows(usize::MAX)).unwrap();
        let writes: Vec<_> = left.rows.into_iter().map(|(key, _)| (key, None)).collect();
        let ticket = self.store().write_session().submit(batch(&writes));
        assert_eq!(ticket.wait(), CommitStatus::Durable);
    }

    fn reopen(&mut self, close: bool) {
        self.check_kept();
        if let Some(folder) = &self.folder {
            if close {
                self.store().close().unwrap();
            }
            self.store = None;
            self.store = Some(local::open(folder.path(), config(), &Runtime::real()).unwrap());
        }
    }

    fn check_kept(&mut self) {
        for (view, model) in self.kept.drain(..) {
            check_scan(view.as_ref(), &KeyRange::all(), false, 7, &model);
        }
    }
}

/// A memtable of a few batches, so that the engine flushes and compacts, and tables of
/// a few keys, so that some hold nothing but keys of a range.
fn config() -> LocalConfig {
    LocalConfig {
        memtable_bytes: 8 << 10,
        table_bytes: 1 << 10,
        durability: Durability::Os,
        ..LocalConfig::default()
    }
}

fn batch(writes: &[(Bytes, Option<Bytes>)]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for (key, value) in writes {
        match value {
            Some(value) => batch.put(key.clone(), value.clone()),
            None => batch.delete(key.clone()),
        }
    }
    batch
}

fn change(model: &mut Model, operation: &Operation) {
    match operation {
        Operation::Submit(writes) => {
            for (key, value) in writes {
                match value {
                    Some(value) => model.insert(key.clone(), value.clone()),
                    None => model.remove(key),
                };
            }
        }
        Operation::Discard(range) => model.retain(|key, _| !range.contains(key)),
        Operation::Keep
        | Operation::Get(_)
        | Operation::Scan { .. }
        | Operation::Compact
        | Operation::Reopen { .. } => {}
    }
}

fn check_scan(view: &dyn View, range: &KeyRange, backward: bool, rows: usize, model: &Model) {
    let inside = |key: &Bytes| range.contains(key);
    let mut expected: Vec<(Bytes, Bytes)> = model
        .range((Bound::Included(range.start.clone()), Bound::Unbounded))
        .filter(|(key, _)| inside(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let direction = if backward { Direction::Backward } else { Direction::Forward };
    if backward {
        expected.reverse();
    }
    let mut found = Vec::new();
    let mut rest = Some(range.clone());
    while let Some(range) = rest {
        let chunk = view.scan(&range, direction, ScanLimit::rows(rows)).unwrap();
        assert!(chunk.rows.len() <= rows);
        assert!(chunk.rest.is_none() || !chunk.rows.is_empty(), "a rest after no row");
        found.extend(chunk.rows);
        rest = chunk.rest;
    }
    assert_eq!(found, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_backend_is_a_map(operations in prop::collection::vec(operation(), 1..60)) {
        let mut worlds = [World::memory(), World::local()];
        let mut model = Model::new();
        for operation in &operations {
            change(&mut model, operation);
            worlds.iter_mut().for_each(|world| world.apply(operation, &model));
        }
        for world in &mut worlds {
            world.check_kept();
            world.reopen(true);
            let view = world.store().view().unwrap();
            check_scan(view.as_ref(), &KeyRange::all(), true, 5, &model);
            prop_assert_eq!(world.store().verify().unwrap().rows, model.len() as u64);
        }
    }
}
