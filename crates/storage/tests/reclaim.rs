//! Discarding a range and compacting the store gives the disk its space back, and changes
//! nothing else.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use runtime::{Random, Runtime, SeededRandom};
use storage::local::{self, LocalConfig};
use storage::{
    CommitStatus, Direction, Durability, KeyRange, ScanLimit, StorageError, Store, WriteBatch,
    memory,
};

const SEED: u64 = 20_261_116;

/// Rows of each prefix, 1 KB each.
const ROWS: u64 = 8_192;
const ROWS_PER_BATCH: u64 = 256;

/// What is left on the disk of nothing but a few rows: catalogue, lists and filters.
const SMALL_BYTES: u64 = 256 << 10;

fn config() -> LocalConfig {
    LocalConfig { memtable_bytes: 512 << 10, table_bytes: 1 << 20, ..LocalConfig::default() }
}

fn create(folder: &Path) -> Arc<dyn Store> {
    local::create(folder, config(), &Runtime::real()).unwrap()
}

/// Fills prefixes in turns, so that what is flushed together belongs to all of them.
/// Values do not compress.
fn fill(store: &dyn Store, prefixes: &[&str]) {
    let random = SeededRandom::new(SEED);
    let mut session = store.write_session();
    for first in (0..ROWS).step_by(usize::try_from(ROWS_PER_BATCH).unwrap()) {
        for prefix in prefixes {
            let mut batch = WriteBatch::new();
            for row in first..first + ROWS_PER_BATCH {
                let mut value = vec![0; 1_000];
                random.fill(&mut value);
                // Spread over the prefix, as hashed keys are.
                let spread = (row * 0x9E37_79B1) & 0xFFFF_FFFF;
                batch.put(format!("{prefix}{spread:08x}"), value);
            }
            assert_eq!(session.submit(batch).wait(), CommitStatus::Durable);
        }
    }
}

const ALL: ScanLimit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };

fn rows(store: &dyn Store, range: &KeyRange) -> Vec<(Bytes, Bytes)> {
    store.view().unwrap().scan(range, Direction::Forward, ALL).unwrap().rows
}

/// Discards a range as its owner has to. Returns how many rows were left to delete.
fn give_up(store: &dyn Store, range: &KeyRange) -> usize {
    store.discard(range).unwrap();
    let left = rows(store, range);
    let mut batch = WriteBatch::new();
    left.iter().for_each(|(key, _)| batch.delete(key.clone()));
    assert_eq!(store.write_session().submit(batch).wait(), CommitStatus::Durable);
    assert_eq!(rows(store, range), []);
    left.len()
}

fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let size = |entry: std::fs::DirEntry| match entry.metadata().unwrap() {
        kind if kind.is_dir() => folder_bytes(&entry.path()),
        file => file.len(),
    };
    entries.map(size).sum()
}

#[test]
fn a_range_that_was_given_up_leaves_the_disk() {
    println!("seed {SEED}");
    let folder = tempfile::tempdir().unwrap();
    let store = create(folder.path());
    fill(store.as_ref(), &["a/", "b/", "c/"]);
    let (before, range) = (rows(store.as_ref(), &KeyRange::new("c", "d")), KeyRange::new("a", "c"));
    let bytes_before = store.table_bytes().unwrap();
    // Settles into tables of their own, most of which then go as they are.
    store.compact().unwrap();
    let left = give_up(store.as_ref(), &range);
    println!("{bytes_before} bytes before, {left} of {} rows left to delete", 2 * ROWS);
    assert!((left as u64) < ROWS / 2, "the tables around the ends are left, {left} rows");
    store.compact().unwrap();
    assert_eq!(rows(store.as_ref(), &KeyRange::all()), before);
    let kept = ROWS * 1_000;
    let bytes = store.table_bytes().unwrap();
    assert!((kept..kept * 11 / 10).contains(&bytes), "{bytes} bytes for {kept} of rows");
    store.verify().unwrap();
    store.close().unwrap();
    let bytes = folder_bytes(folder.path());
    assert!(bytes < kept * 11 / 10 + SMALL_BYTES, "{bytes} bytes in the folder");
    let store = local::open(folder.path(), config(), &Runtime::real()).unwrap();
    assert_eq!(rows(store.as_ref(), &KeyRange::all()), before);
}

/// On an idle store, where nothing else makes the engine look.
#[test]
fn tables_of_a_discarded_range_go_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(folder.path());
    fill(store.as_ref(), &["a/", "b/"]);
    store.compact().unwrap();
    store.close().unwrap();
    let store = local::open(folder.path(), config(), &Runtime::real()).unwrap();
    let (tables, bytes) = (folder.path().join("tree/tables"), ROWS * 1_000);
    assert!(folder_bytes(&tables) > 2 * bytes);
    give_up(store.as_ref(), &KeyRange::prefix(b"a/"));
    store.compact().unwrap();
    assert!(folder_bytes(&tables) < bytes * 11 / 10, "{}", folder_bytes(&tables));
    give_up(store.as_ref(), &KeyRange::prefix(b"b/"));
    store.compact().unwrap();
    assert!(folder_bytes(&tables) < SMALL_BYTES, "{}", folder_bytes(&tables));
    store.close().unwrap();
    assert!(folder_bytes(folder.path()) < SMALL_BYTES, "{}", folder_bytes(folder.path()));
}

#[test]
fn a_view_keeps_what_is_discarded_and_rewritten() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(folder.path());
    fill(store.as_ref(), &["a/", "b/"]);
    let view = store.view().unwrap();
    let show = || view.scan(&KeyRange::all(), Direction::Forward, ALL).unwrap().rows;
    let before = show();
    for _ in 0..2 {
        give_up(store.as_ref(), &KeyRange::prefix(b"a/"));
        assert!(show() == before, "a view never changes");
        store.compact().unwrap();
        assert!(show() == before, "a view never changes");
    }
}

/// Tables of a few rows, values that are replaced and deleted at random, and ranges that
/// are discarded: some drops uncover what was replaced before, and no view may show it.
#[test]
fn whatever_is_given_up_is_gone_and_the_rest_stays() {
    let seed = std::env::var("ORRERY_SEED").map_or(SEED, |text| text.parse().expect("a number"));
    println!("repeat with ORRERY_SEED={seed}");
    let folder = tempfile::tempdir().unwrap();
    let config = LocalConfig {
        memtable_bytes: 32 << 10,
        table_bytes: 1 << 10,
        durability: Durability::Os,
        // Where space is short, tables are merged often.
        disk_bytes_max: Some(1 << 30),
        ..LocalConfig::default()
    };
    let mut life = Life {
        store: local::create(folder.path(), config.clone(), &Runtime::real()).unwrap(),
        model: BTreeMap::new(),
        random: SeededRandom::new(seed),
        dropped: 0,
        uncovered: 0,
    };
    for round in 0..150 {
        life.write();
        match life.random.next_u64() % 8 {
            0 => life.store.compact().unwrap(),
            1 => {
                life.store.close().unwrap();
                life.store = local::open(folder.path(), config.clone(), &Runtime::real()).unwrap();
            }
            2..=4 => life.give_up_some(),
            _ => {}
        }
        let found = rows(life.store.as_ref(), &KeyRange::all());
        assert!(found.into_iter().eq(life.model.clone()), "round {round}");
    }
    life.store.verify().unwrap();
    println!("{} rows went with their tables, {} were uncovered", life.dropped, life.uncovered);
    assert!(life.dropped > 0, "some tables held nothing but what was given up");
}

/// A store and what it must hold.
struct Life {
    store: Arc<dyn Store>,
    model: BTreeMap<Bytes, Bytes>,
    random: SeededRandom,
    /// Rows that a discard dropped, and older ones that it uncovered.
    dropped: usize,
    uncovered: usize,
}

impl Life {
    fn key(&self) -> u64 {
        self.random.next_u64() % 400
    }

    /// Replaces some rows and deletes some.
    fn write(&mut self) {
        let mut batch = WriteBatch::new();
        for _ in 0..100 {
            let key = Bytes::from(format!("{:04}", self.key()));
            if self.random.next_u64().is_multiple_of(4) {
                batch.delete(key.clone());
                self.model.remove(&key);
            } else {
                let value = format!("{:x}", self.random.next_u64());
                let value = Bytes::from(value.repeat(1 + value.len() % 24));
                batch.put(key.clone(), value.clone());
                self.model.insert(key, value);
            }
        }
        assert_eq!(self.store.write_session().submit(batch).wait(), CommitStatus::Durable);
    }

    fn give_up_some(&mut self) {
        let first = self.key();
        let range = KeyRange::new(format!("{first:04}"), format!("{:04}", first + 80));
        let (view, before) = (self.store.view().unwrap(), self.model.clone());
        self.store.discard(&range).unwrap();
        let left: BTreeMap<Bytes, Bytes> = rows(self.store.as_ref(), &range).into_iter().collect();
        let held = self.model.iter().filter(|(key, _)| range.contains(key));
        self.dropped += held.filter(|(key, _)| !left.contains_key(*key)).count();
        self.uncovered +=
            left.iter().filter(|(key, value)| self.model.get(*key) != Some(value)).count();
        give_up(self.store.as_ref(), &range);
        self.model.retain(|key, _| !range.contains(key));
        let kept = view.scan(&KeyRange::all(), Direction::Forward, ALL).unwrap().rows;
        assert!(kept.into_iter().eq(before), "a view never changes");
    }
}

#[test]
fn a_closed_store_gives_nothing_back() {
    let folder = tempfile::tempdir().unwrap();
    for store in [memory::create(), create(folder.path())] {
        store.discard(&KeyRange::all()).unwrap();
        store.compact().unwrap();
        store.close().unwrap();
        assert!(matches!(store.discard(&KeyRange::all()), Err(StorageError::Closed)));
        assert!(matches!(store.compact(), Err(StorageError::Closed)));
        assert!(matches!(store.table_bytes(), Err(StorageError::Closed)));
    }
}
