//! A full disk is no trap: writes are refused with the cause and resume by themselves when
//! there is space, and what frees space works meanwhile.
//!
//! The disk is a quota at the door here, the same for every machine; what the engine does
//! when it meets a disk that others have filled is tested on a real small one, where the
//! machine allows mounting it.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use runtime::{Random, Runtime, SeededRandom};
use storage::local::{self, LocalConfig};
use storage::{
    CommitStatus, Direction, KeyRange, ScanLimit, StorageError, Store, WriteBatch, WriteSession,
    memory,
};

const DISK: u64 = 48 << 20;
const VALUE_BYTES: usize = 64 << 10;
/// Far more than fits, so that a store which is never full ends the test.
const WRITES_MAX: usize = 4_096;

fn config() -> LocalConfig {
    LocalConfig {
        memtable_bytes: 1 << 20,
        table_bytes: 2 << 20,
        disk_bytes_max: Some(DISK),
        reserve_bytes: 1 << 20,
        ..LocalConfig::default()
    }
}

fn open(folder: &Path) -> Arc<dyn Store> {
    local::open(folder, config(), &Runtime::real()).unwrap()
}

fn batch(key: &str, random: &SeededRandom) -> (Bytes, WriteBatch) {
    let mut value = vec![0; VALUE_BYTES];
    random.fill(&mut value);
    let (value, mut batch) = (Bytes::from(value), WriteBatch::new());
    batch.put(key.to_owned(), value.clone());
    (value, batch)
}

/// Writes prefixes in turns until the store is full. Returns what was acknowledged.
fn fill(store: &dyn Store, prefixes: &[&str]) -> BTreeMap<String, Bytes> {
    let (random, mut ledger, mut session) =
        (SeededRandom::new(7), BTreeMap::new(), store.write_session());
    for at in 0..WRITES_MAX {
        let key = format!("{}{:08x}", prefixes[at % prefixes.len()], at * 0x9E37 % 0xFFFF);
        let (value, batch) = batch(&key, &random);
        match session.submit(batch).wait() {
            CommitStatus::Durable => drop(ledger.insert(key, value)),
            CommitStatus::Full => return ledger,
            other @ (CommitStatus::Refused | CommitStatus::Fenced | CommitStatus::Unknown) => {
                panic!("{other:?} after {at} writes")
            }
        }
    }
    panic!("never full");
}

/// Fills until nothing more fits. Compactions in progress give something back after a
/// refusal; new keys each time, as compactions would make space for old ones again and
/// again.
fn fill_up(store: &dyn Store, prefixes: &[&str]) -> BTreeMap<String, Bytes> {
    let mut ledger = fill(store, prefixes);
    for round in 0.. {
        let more = fill(store, &[&format!("b/{round}/")]);
        if more.is_empty() {
            break;
        }
        ledger.extend(more);
    }
    ledger
}

fn submit(store: &dyn Store, key: &str) -> CommitStatus {
    store.write_session().submit(batch(key, &SeededRandom::new(1)).1).wait()
}

fn is_there(store: &dyn Store, ledger: &BTreeMap<String, Bytes>) {
    let view = store.view().unwrap();
    for (key, value) in ledger {
        assert_eq!(view.get(key.as_bytes()).unwrap().as_ref(), Some(value), "{key}");
    }
}

/// What a sweep does with a range that is no longer read.
fn give_up(store: &dyn Store, range: &KeyRange) {
    store.discard(range).unwrap();
    let mut rest = Some(range.clone());
    while let Some(range) = rest {
        let view = store.view().unwrap();
        let chunk = view.scan(&range, Direction::Forward, ScanLimit::default()).unwrap();
        drop(view);
        let mut batch = WriteBatch::new().for_relief(true);
        chunk.rows.into_iter().for_each(|(key, _)| batch.delete(key));
        assert_eq!(store.write_session().submit(batch).wait(), CommitStatus::Durable);
        rest = chunk.rest;
    }
}

#[test]
fn a_full_store_refuses_goes_on_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = local::create(folder.path(), config(), &Runtime::real()).unwrap();
    let mut ledger = fill_up(store.as_ref(), &["a/", "b/"]);
    println!("full after {} writes of {VALUE_BYTES} bytes on {DISK}", ledger.len());
    assert!(ledger.len() * VALUE_BYTES * 3 > usize::try_from(DISK).unwrap(), "{}", ledger.len());
    let health = store.health().unwrap_err();
    assert!(matches!(health, StorageError::Full { .. }), "{health}");
    assert!(health.to_string().contains("no space left on device"), "{health}");
    is_there(store.as_ref(), &ledger);

    // Everything that is done on the full disk works: a stop, a start, a compaction.
    store.close().unwrap();
    let store = open(folder.path());
    store.compact().unwrap();
    is_there(store.as_ref(), &ledger);
    drop(store);
    let store = open(folder.path());
    let more = fill(store.as_ref(), &["c/"]);
    assert!(more.len() < ledger.len() / 2, "{} more after {}", more.len(), ledger.len());
    ledger.extend(more);

    let mut mark = WriteBatch::new().for_relief(true);
    mark.put("retired", "a/");
    assert_eq!(
        store.write_session().submit(mark).wait(),
        CommitStatus::Durable,
        "room is kept for it"
    );
    give_up(store.as_ref(), &KeyRange::prefix(b"a/"));
    ledger.retain(|key, _| !key.starts_with("a/"));
    assert_eq!(submit(store.as_ref(), "d/"), CommitStatus::Durable, "writes go on by themselves");
    store.health().unwrap();
    is_there(store.as_ref(), &ledger);
    drop(store);
    let store = open(folder.path());
    is_there(store.as_ref(), &ledger);
    store.verify().unwrap();
    let left = store.view().unwrap();
    let left = left.scan(&KeyRange::prefix(b"a/"), Direction::Forward, ScanLimit::default());
    assert_eq!(left.unwrap().rows, []);
}

/// A large range goes by compaction and not by deletes, which would need space first.
#[test]
fn a_large_range_needs_no_deletes() {
    let folder = tempfile::tempdir().unwrap();
    let store = local::create(folder.path(), config(), &Runtime::real()).unwrap();
    let filled = fill(store.as_ref(), &["a/", "b/"]).len();
    let keys = store.counters().keys;
    give_up(store.as_ref(), &KeyRange::prefix(b"a/"));
    let deleted = usize::try_from(store.counters().keys - keys).unwrap();
    assert!(deleted < filled / 4, "{deleted} of {filled} keys deleted one by one");
}

/// A view keeps what it shows, not the journal, which is emptied while it is there.
#[test]
fn views_outlive_and_survive_what_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let store = local::create(folder.path(), config(), &Runtime::real()).unwrap();
    assert_eq!(submit(store.as_ref(), "first"), CommitStatus::Durable);
    let view = store.view().unwrap();
    let ledger = fill(store.as_ref(), &["a/"]);
    assert!(view.get(b"first").unwrap().is_some());
    assert!(view.get(ledger.keys().next().unwrap().as_bytes()).unwrap().is_none());
    drop(view);
    println!("{} writes beside a view", ledger.len());
    assert!(ledger.len() * VALUE_BYTES * 3 > usize::try_from(DISK).unwrap(), "{}", ledger.len());
    is_there(store.as_ref(), &ledger);
}

#[test]
fn both_backends_refuse_a_session_for_want_of_room_alike() {
    let folder = tempfile::tempdir().unwrap();
    let local = local::create(folder.path(), config(), &Runtime::real()).unwrap();
    for store in [local, memory::create_within(4 << 20)] {
        fill_up(store.as_ref(), &["a/"]);
        let mut session: Box<dyn WriteSession> = store.write_session();
        let random = SeededRandom::new(2);
        assert_eq!(session.submit(batch("b/1", &random).1).wait(), CommitStatus::Full);
        let later = WriteBatch::new().for_relief(true);
        assert_eq!(session.submit(later).wait(), CommitStatus::Full, "the session is broken");
        let mut small = WriteBatch::new().for_relief(true);
        small.put("b/2", "2");
        assert_eq!(store.write_session().submit(small).wait(), CommitStatus::Durable);
        assert_eq!(
            store.write_session().submit(WriteBatch::new()).wait(),
            CommitStatus::Durable,
            "a barrier"
        );
        let view = store.view().unwrap();
        assert_eq!(view.get(b"b/1").unwrap(), None, "surely not written");
        assert_eq!(view.get(b"b/2").unwrap().as_deref(), Some(b"2".as_slice()));
    }
}
