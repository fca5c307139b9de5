//! A store that is opened for reading stays as it is: every byte, name and timestamp of it.
//! `damage.rs` compares what is found in damaged ones with what opening finds.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use runtime::Runtime;
use storage::local::{self, LocalConfig};
use storage::{CommitStatus, ContentsVersion, KeyRange, StorageError, Store, WriteBatch};

/// Memtables so small that there are tables.
fn config() -> LocalConfig {
    LocalConfig { memtable_bytes: 48 << 10, ..LocalConfig::default() }
}

fn fill(store: &dyn Store, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let mut batch = WriteBatch::new();
        batch.put(format!("key {number:04}"), format!("{number} ").repeat(200));
        assert_eq!(store.write_session().submit(batch).wait(), CommitStatus::Durable);
    }
}

/// Everything about a folder that could have changed.
fn state(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        if path.is_dir() {
            found.extend(state(&path));
            found.insert(path, (Vec::new(), modified));
        } else {
            found.insert(path.clone(), (fs::read(&path).unwrap(), modified));
        }
    }
    let modified = fs::metadata(folder).unwrap().modified().unwrap();
    found.insert(folder.to_owned(), (Vec::new(), modified));
    found
}

/// Copies a folder as a snapshot of the file system would.
fn snapshot(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            snapshot(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[cfg(unix)]
fn set_mode(folder: &Path, (folders, files): (u32, u32)) {
    use std::os::unix::fs::PermissionsExt as _;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            set_mode(&path, (folders, files));
        } else {
            fs::set_permissions(&path, fs::Permissions::from_mode(files)).unwrap();
        }
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(folders)).unwrap();
}

#[test]
fn reading_leaves_every_byte_name_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let (stopped, running) = (folder.path().join("stopped"), folder.path().join("running"));
    let store = local::create(&stopped, config(), &Runtime::real()).unwrap();
    fill(store.as_ref(), 0..500);
    // The last writes are in the journal of this one and in no table.
    snapshot(&stopped, &running);
    store.close().unwrap();
    for place in [&stopped, &running] {
        #[cfg(unix)]
        set_mode(place, (0o555, 0o444));
        let before = state(place);
        let store = local::open_read_only(place, ContentsVersion::default()).unwrap();
        let report = store.verify().unwrap();
        assert_eq!(report.rows, 500, "{}", place.display());
        assert!(report.files > 0 || place == &running, "tables were checked");
        assert!(matches!(store.discard(&KeyRange::all()), Err(StorageError::ReadOnly)));
        assert!(matches!(store.compact(), Err(StorageError::ReadOnly)));
        let mut batch = WriteBatch::new();
        batch.put("key", "value");
        assert_eq!(store.write_session().submit(batch).wait(), CommitStatus::Refused);
        store.close().unwrap();
        drop(store);
        assert_eq!(state(place), before, "{}", place.display());
        #[cfg(unix)]
        set_mode(place, (0o755, 0o644));
        let store = local::open(place, config(), &Runtime::real()).unwrap();
        assert_eq!(store.verify().unwrap().rows, 500);
    }
}

#[test]
fn a_store_in_use_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = local::create(folder.path(), config(), &Runtime::real()).unwrap();
    fill(store.as_ref(), 0..10);
    let refused = local::open_read_only(folder.path(), ContentsVersion::default()).map(drop);
    assert!(matches!(refused, Err(StorageError::InUse { .. })), "{refused:?}");
    store.close().unwrap();
    let reading = local::open_read_only(folder.path(), ContentsVersion::default()).unwrap();
    let refused = local::open(folder.path(), config(), &Runtime::real()).map(drop);
    assert!(matches!(refused, Err(StorageError::InUse { .. })), "{refused:?}");
    drop(reading);
    drop(local::open(folder.path(), config(), &Runtime::real()).unwrap());
}

#[test]
fn what_is_no_store_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let refused = local::open_read_only(folder.path(), ContentsVersion::default()).map(drop);
    assert!(matches!(refused, Err(StorageError::NotFound { .. })), "{refused:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
