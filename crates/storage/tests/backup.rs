//! A backup is a state that existed, and nothing else is taken for one.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use runtime::Runtime;
use storage::backup::{self, Progress};
use storage::local::{self, LocalConfig};
use storage::{
    CommitStatus, ContentsVersion, Direction, KeyRange, ScanLimit, StorageError, Store, View,
    WriteBatch, memory,
};

const CONTENTS: ContentsVersion = ContentsVersion(7);

/// Memtables and tables so small that there are several.
fn config() -> LocalConfig {
    LocalConfig { memtable_bytes: 48 << 10, table_bytes: 64 << 10, ..LocalConfig::default() }
}

fn stores(folder: &Path) -> [Arc<dyn Store>; 2] {
    let disk = local::create(&folder.join("store"), config(), &Runtime::real()).unwrap();
    [disk, memory::create()]
}

fn submit(store: &dyn Store, batch: WriteBatch) {
    assert_eq!(store.write_session().submit(batch).wait(), CommitStatus::Durable);
}

fn fill(store: &dyn Store, word: &str) {
    for part in 0..10 {
        let mut batch = WriteBatch::new();
        for number in 0..100 {
            let key = format!("{part}{number:03}");
            batch.put(key.clone(), format!("{word} {key} ").repeat(20));
        }
        submit(store, batch);
    }
}

fn rows(view: &dyn View) -> Vec<(Bytes, Bytes)> {
    let limit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
    view.scan(&KeyRange::all(), Direction::Forward, limit).unwrap().rows
}

fn written(store: &dyn Store, folder: &Path) -> Progress {
    backup::write((store, CONTENTS), folder, |_| true).unwrap()
}

fn load(folder: &Path) -> Result<Vec<(Bytes, Bytes)>, StorageError> {
    let store = memory::create();
    backup::load(folder, (store.as_ref(), CONTENTS), |_| {})?;
    Ok(rows(store.view().unwrap().as_ref()))
}

/// The backup is written in steps; between two of them everything is replaced, removed
/// and discarded.
#[test]
fn a_backup_is_the_moment_at_which_it_began() {
    let folder = tempfile::tempdir().unwrap();
    for (number, store) in stores(folder.path()).into_iter().enumerate() {
        fill(store.as_ref(), "before");
        // Enough for several chunks.
        let mut batch = WriteBatch::new();
        (0..40).for_each(|at| batch.put(format!("z{at:02}"), vec![at; 100_000]));
        submit(store.as_ref(), batch);
        store.compact().unwrap();
        let expected = rows(store.view().unwrap().as_ref());
        let place = folder.path().join(format!("backup {number}"));
        let mut steps = Vec::new();
        let progress = backup::write((store.as_ref(), CONTENTS), &place, |progress| {
            if steps.is_empty() {
                let mut batch = WriteBatch::new();
                expected.iter().for_each(|(key, _)| batch.delete(key.clone()));
                submit(store.as_ref(), batch);
                store.discard(&KeyRange::all()).unwrap();
                store.compact().unwrap();
                fill(store.as_ref(), "after");
            }
            steps.push(progress);
            true
        });
        assert!(steps.len() > 2, "{} steps", steps.len());
        assert_eq!(Some(&progress.unwrap()), steps.last());
        assert_eq!(steps.last().unwrap().rows, expected.len() as u64);
        assert!(load(&place).unwrap() == expected, "backend {number}");
        // Nothing is held any more.
        store.discard(&KeyRange::all()).unwrap();
        store.close().unwrap();
    }
}

#[test]
fn an_empty_store_has_a_backup_too() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("backup");
    assert_eq!(written(memory::create().as_ref(), &place), Progress::default());
    assert_eq!(load(&place).unwrap(), []);
}

#[test]
fn a_restored_store_on_disk_holds_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let store = memory::create();
    fill(store.as_ref(), "word");
    let (place, copy) = (folder.path().join("backup"), folder.path().join("copy"));
    written(store.as_ref(), &place);
    let restored = local::create(&copy, config(), &Runtime::real()).unwrap();
    backup::load(&place, (restored.as_ref(), CONTENTS), |_| {}).unwrap();
    restored.close().unwrap();
    let restored = local::open(&copy, config(), &Runtime::real()).unwrap();
    assert_eq!(rows(restored.view().unwrap().as_ref()), rows(store.view().unwrap().as_ref()));
}

#[test]
fn every_damaged_byte_of_a_backup_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let store = memory::create();
    let mut batch = WriteBatch::new();
    (0..5).for_each(|number| batch.put(format!("key {number}"), format!("value {number}")));
    submit(store.as_ref(), batch);
    let place = folder.path().join("backup");
    written(store.as_ref(), &place);
    let (file, good) = (place.join("rows"), fs::read(place.join("rows")).unwrap());
    let refuses = |bytes: &[u8], what: String| {
        fs::write(&file, bytes).unwrap();
        let refused = load(&place);
        assert!(matches!(refused, Err(StorageError::Backup { .. })), "{what}: {refused:?}");
    };
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            refuses(&bad, format!("byte {at} bit {bit}"));
        }
        refuses(&good[..at], format!("cut to {at}"));
    }
    refuses(&[good.as_slice(), &[0]].concat(), "one byte more".to_owned());
    fs::write(&file, &good).unwrap();
    assert_eq!(load(&place).unwrap().len(), 5);
}

#[test]
fn what_was_not_finished_is_no_backup() {
    let folder = tempfile::tempdir().unwrap();
    let store = memory::create();
    fill(store.as_ref(), "word");
    let place = folder.path().join("backup");
    let stopped = backup::write((store.as_ref(), CONTENTS), &place, |_| {
        let refused = backup::probe(&place, CONTENTS).unwrap_err().to_string();
        assert!(refused.contains("it was never finished"), "{refused}");
        false
    });
    assert!(matches!(stopped, Err(StorageError::Stopped)), "{stopped:?}");
    assert!(!place.exists(), "nothing is left");
    fs::create_dir(&place).unwrap();
    let refused = backup::write((store.as_ref(), CONTENTS), &place, |_| true);
    assert!(matches!(refused, Err(StorageError::AlreadyExists { .. })), "{refused:?}");
    assert!(place.exists(), "what somebody else made stays");
    assert!(matches!(backup::probe(&place, CONTENTS), Err(StorageError::Backup { .. })));
}

#[test]
fn a_backup_of_other_contents_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("backup");
    written(memory::create().as_ref(), &place);
    let refused =
        |contents| backup::probe(&place, ContentsVersion(contents)).unwrap_err().to_string();
    let older = refused(8);
    assert!(older.contains("contents version 7, and this build reads 8"), "{older}");
    assert!(older.contains("then upgrade the data folder"), "{older}");
    assert!(refused(6).contains("or a newer one"), "{}", refused(6));
    // The version before did not name its contents.
    let mut head = b"ORRERYBK\x01\0\0\0".to_vec();
    head.extend_from_slice(&crc32fast::hash(&head).to_le_bytes());
    fs::write(place.join("rows"), head).unwrap();
    assert!(refused(2).contains("contents version 1, and this build reads 2"), "{}", refused(2));
}
