//! Promises of the door that need threads, folders or a second handle to show.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use runtime::{Runtime, TaskHandle};
use storage::local::{self, LocalConfig};
use storage::{
    CommitStatus, Direction, Durability, KeyRange, ScanLimit, StorageError, Store, View,
    WriteBatch, memory,
};
use tempfile::TempDir;

fn put(key: impl AsRef<str>, value: impl AsRef<str>) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(key.as_ref().to_owned(), value.as_ref().to_owned());
    batch
}

fn create(folder: &TempDir) -> Arc<dyn Store> {
    local::create(folder.path(), LocalConfig::default(), &Runtime::real()).unwrap()
}

fn open(folder: &Path) -> Result<Arc<dyn Store>, StorageError> {
    local::open(folder, LocalConfig::default(), &Runtime::real())
}

fn write(store: &dyn Store, key: &str, value: &str) {
    assert_eq!(store.write_session().submit(put(key, value)).wait(), CommitStatus::Durable);
}

fn read(store: &dyn Store, key: &str) -> Option<String> {
    let value = store.view().unwrap().get(key.as_bytes()).unwrap();
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn spawn(body: impl FnOnce() + Send + 'static) -> TaskHandle {
    Runtime::real().tasks.spawn("test", Box::new(body)).unwrap()
}

#[test]
fn a_closed_store_opens_with_everything_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(&folder);
    write(store.as_ref(), "a", "1");
    store.close().unwrap();
    assert!(matches!(store.view(), Err(StorageError::Closed)));
    assert_eq!(store.write_session().submit(put("b", "2")).wait(), CommitStatus::Refused);
    let store = open(folder.path()).unwrap();
    assert_eq!(read(store.as_ref(), "a").as_deref(), Some("1"));
    assert_eq!(read(store.as_ref(), "b"), None);
}

/// Many ways to copy a folder leave out empty ones.
#[test]
fn a_copy_without_the_empty_folder_of_the_journal_opens_and_is_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(&folder);
    write(store.as_ref(), "a", "1");
    store.close().unwrap();
    std::fs::remove_dir(folder.path().join("journal")).unwrap();
    let store = open(folder.path()).unwrap();
    write(store.as_ref(), "b", "2");
    assert_eq!(read(store.as_ref(), "a").as_deref(), Some("1"));
}

#[test]
fn a_dropped_store_opens_with_everything_in_it() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let store = if round == 0 { create(&folder) } else { open(folder.path()).unwrap() };
        for before in 0..round {
            assert_eq!(read(store.as_ref(), &format!("key{before}")).as_deref(), Some("x"));
        }
        let ticket = store.write_session().submit(put(format!("key{round}"), "x"));
        drop(store);
        assert_eq!(ticket.wait(), CommitStatus::Durable);
    }
}

#[test]
fn creating_and_opening_are_never_mixed_up() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    assert!(matches!(open(&missing), Err(StorageError::NotFound { .. })));
    assert!(!missing.exists());
    assert!(matches!(open(folder.path()), Err(StorageError::NotFound { .. })));
    let store = create(&folder);
    let again = local::create(folder.path(), LocalConfig::default(), &Runtime::real());
    assert!(matches!(again, Err(StorageError::AlreadyExists { .. })));
    assert!(matches!(open(folder.path()), Err(StorageError::InUse { .. })));
    assert!(matches!(local::destroy(folder.path()), Err(StorageError::InUse { .. })));
    drop(store);
    drop(open(folder.path()).unwrap());
    local::destroy(folder.path()).unwrap();
    assert!(matches!(open(folder.path()), Err(StorageError::NotFound { .. })));
}

#[test]
fn a_folder_that_is_no_store_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("thesis.txt");
    std::fs::write(&file, "important").unwrap();
    let created = local::create(folder.path(), LocalConfig::default(), &Runtime::real());
    assert!(matches!(created, Err(StorageError::AlreadyExists { .. })));
    assert!(matches!(local::destroy(folder.path()), Err(StorageError::NotFound { .. })));
    assert!(file.exists());
}

#[test]
fn an_interrupted_creation_is_named_and_can_be_destroyed() {
    let folder = tempfile::tempdir().unwrap();
    create(&folder).close().unwrap();
    std::fs::remove_file(folder.path().join("FORMAT")).unwrap();
    assert!(matches!(open(folder.path()), Err(StorageError::Damaged { .. })));
    local::destroy(folder.path()).unwrap();
    assert!(!folder.path().exists());
}

#[test]
fn a_lost_witness_is_refused_until_a_person_decides() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(&folder);
    write(store.as_ref(), "a", "1");
    store.close().unwrap();
    std::fs::remove_file(folder.path().join("WITNESS")).unwrap();
    let error = open(folder.path()).unwrap_err();
    assert!(error.to_string().contains("WITNESS"), "{error}");
    let config = LocalConfig { accept_lost_writes: true, ..LocalConfig::default() };
    let store = local::open(folder.path(), config, &Runtime::real()).unwrap();
    assert_eq!(read(store.as_ref(), "a").as_deref(), Some("1"));
    store.close().unwrap();
    assert_eq!(read(open(folder.path()).unwrap().as_ref(), "a").as_deref(), Some("1"));
}

#[test]
fn closing_twice_and_closing_an_empty_store_are_fine() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(&folder);
    store.close().unwrap();
    store.close().unwrap();
    open(folder.path()).unwrap().close().unwrap();
}

#[test]
fn a_view_outlives_changes_and_the_store() {
    for (store, _folder) in both_backends() {
        write(store.as_ref(), "a", "1");
        let view = store.view().unwrap();
        write(store.as_ref(), "a", "2");
        write(store.as_ref(), "b", "2");
        store.close().unwrap();
        assert_eq!(view.get(b"a").unwrap().as_deref(), Some(b"1".as_slice()));
        assert_eq!(view.get(b"b").unwrap(), None);
    }
}

#[test]
fn a_callback_may_submit_again() {
    for (store, _folder) in both_backends() {
        let (sender, receiver) = sync_channel(1);
        let mut again = store.write_session();
        store.write_session().submit(put("a", "1")).on_done(move |outcome| {
            assert_eq!(outcome, CommitStatus::Durable);
            let ticket = again.submit(put("b", "2"));
            sender.send(ticket).expect("the test waits");
        });
        assert_eq!(receiver.recv().unwrap().wait(), CommitStatus::Durable);
        assert_eq!(read(store.as_ref(), "b").as_deref(), Some("2"));
    }
}

#[test]
fn the_stores_own_keys_do_not_show() {
    for (store, _folder) in both_backends() {
        write(store.as_ref(), "a", "1");
        let view = store.view().unwrap();
        assert_eq!(view.get(b"\xFFcommit").unwrap(), None);
        for direction in [Direction::Forward, Direction::Backward] {
            let chunk = view.scan(&KeyRange::all(), direction, ScanLimit::default()).unwrap();
            assert_eq!((chunk.rows.len(), chunk.rest), (1, None));
        }
        let mut batch = WriteBatch::new();
        batch.put(b"\xFFcommit".as_slice(), "mine");
        assert_eq!(store.write_session().submit(batch).wait(), CommitStatus::Refused);
    }
}

/// How many share one depends on the machine; that what gathers during a commit is merged
/// is a test of the committer.
#[test]
fn every_commit_of_many_writers_is_one_sync() {
    const WRITERS: usize = 64;
    const BATCHES: usize = 20;
    let folder = tempfile::tempdir().unwrap();
    let store = create(&folder);
    let writers: Vec<TaskHandle> = (0..WRITERS)
        .map(|writer| {
            let mut session = store.write_session();
            spawn(move || {
                for batch in 0..BATCHES {
                    let ticket = session.submit(put(format!("{writer:02}/{batch:02}"), "x"));
                    assert_eq!(ticket.wait(), CommitStatus::Durable);
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let counters = store.counters();
    let batches = (WRITERS * BATCHES) as u64;
    assert_eq!((counters.batches_durable, counters.keys), (batches, batches));
    assert_eq!(counters.syncs, counters.commits);
    assert!((1..=batches).contains(&counters.commits), "{counters:?}");
    println!("{batches} batches in {} commits", counters.commits);
    assert_eq!(store.verify().unwrap().rows, batches);
}

#[test]
fn relaxed_durability_asks_for_no_sync() {
    let folder = tempfile::tempdir().unwrap();
    let config = LocalConfig { durability: Durability::Os, ..LocalConfig::default() };
    let store = local::create(folder.path(), config, &Runtime::real()).unwrap();
    write(store.as_ref(), "a", "1");
    let counters = store.counters();
    assert_eq!((counters.commits, counters.syncs), (1, 0));
    drop(store);
    assert_eq!(read(open(folder.path()).unwrap().as_ref(), "a").as_deref(), Some("1"));
}

/// Every batch writes the same number under all keys, so a view that mixes numbers
/// shows half a batch, and one that changes its number is no snapshot. Small
/// memtables keep the engine flushing, which is when its own snapshots are not
/// exact: the sync leaves a wide gap between numbering a batch and inserting it.
#[test]
fn a_view_shows_whole_batches_and_never_changes() {
    const KEYS: usize = 40;
    const BATCHES: u32 = 600;
    let folder = tempfile::tempdir().unwrap();
    let config = LocalConfig { memtable_bytes: 32 << 10, ..LocalConfig::default() };
    let store = local::create(folder.path(), config, &Runtime::real()).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (store, done) = (Arc::clone(&store), Arc::clone(&done));
        spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let view = store.view().unwrap();
                let first = distinct_values(view.as_ref());
                assert!(first.len() <= 1, "half a batch: {first:?}");
                let commits = store.counters().commits;
                while store.counters().commits <= commits && !done.load(Ordering::Relaxed) {
                    assert_eq!(distinct_values(view.as_ref()), first);
                }
                assert_eq!(distinct_values(view.as_ref()), first);
            }
        })
    };
    let mut session = store.write_session();
    for number in 0..BATCHES {
        let mut batch = WriteBatch::new();
        let value = format!("{number:0>200}");
        (0..KEYS).for_each(|key| batch.put(format!("{key:02}"), value.clone()));
        assert_eq!(session.submit(batch).wait(), CommitStatus::Durable);
    }
    done.store(true, Ordering::Relaxed);
    reader.join().unwrap();
}

/// The engine flushes on threads of its own. When that fails the store must say so, take no
/// more writes, and still close.
#[test]
fn a_flush_that_fails_fails_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let config = LocalConfig { memtable_bytes: 16 << 10, ..LocalConfig::default() };
    let store = local::create(folder.path(), config, &Runtime::real()).unwrap();
    write(store.as_ref(), "before", "1");
    let view = store.view().unwrap();
    std::fs::remove_dir_all(folder.path().join("tree/tables")).unwrap();
    let mut session = store.write_session();
    let outcome = loop {
        let outcome = session.submit(put("big", "x".repeat(4_000))).wait();
        if outcome != CommitStatus::Durable {
            break outcome;
        }
    };
    // Noticed before the write or by it.
    assert!(matches!(outcome, CommitStatus::Refused | CommitStatus::Unknown), "{outcome:?}");
    assert_eq!(store.write_session().submit(put("after", "1")).wait(), CommitStatus::Refused);
    let error = store.health().unwrap_err();
    assert!(error.to_string().contains("restart"), "{error}");
    assert!(view.get(b"before").unwrap().is_some(), "what is durable stays readable");
    assert!(matches!(store.close(), Err(StorageError::Failed { .. })));
    drop(view);
    let store = open(folder.path()).unwrap();
    assert_eq!(read(store.as_ref(), "before").as_deref(), Some("1"));
    assert!(read(store.as_ref(), "big").is_some());
}

fn distinct_values(view: &dyn View) -> BTreeSet<Vec<u8>> {
    let chunk = view.scan(&KeyRange::all(), Direction::Forward, ScanLimit::default()).unwrap();
    chunk.rows.into_iter().map(|(_, value)| value.to_vec()).collect()
}

fn both_backends() -> Vec<(Arc<dyn Store>, Option<TempDir>)> {
    let folder = tempfile::tempdir().unwrap();
    vec![(memory::create(), None), (create(&folder), Some(folder))]
}
