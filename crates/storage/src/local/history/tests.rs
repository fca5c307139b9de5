use runtime::Runtime;

use super::super::journal::testing::record;
use super::super::watermark::WatermarkFile;
use super::super::{LocalConfig, create, open};
use super::*;
use crate::{CommitStatus, Store, WriteBatch};

/// An empty store with segments of these commits.
fn store_with(segments: &[(u64, &[u64])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = create(folder.path(), LocalConfig::default(), &Runtime::real()).unwrap();
    store.close().unwrap();
    for (id, commits) in segments {
        let bytes: Vec<u8> = commits.iter().flat_map(|commit| record(*id, *commit)).collect();
        append(folder.path(), *id, &bytes);
    }
    folder
}

fn append(folder: &Path, segment: u64, bytes: &[u8]) {
    let path = folder.join(journal::FOLDER).join(segment.to_string());
    let before = std::fs::read(&path).unwrap_or_default();
    std::fs::write(&path, [before.as_slice(), bytes].concat()).unwrap();
}

fn acknowledge(folder: &Path, commit: u64, durability: Durability) {
    WatermarkFile::open(folder, durability).unwrap().start_from(commit).unwrap();
}

fn commit_of(folder: &Path) -> Result<u64, String> {
    let history = History::of(folder, Layout::Ours, false);
    history.map(|found| found.commit).map_err(|error| error.to_string())
}

fn open_store(
    folder: &Path,
    accept_lost_writes: bool,
) -> Result<std::sync::Arc<dyn Store>, String> {
    let config = LocalConfig { accept_lost_writes, ..LocalConfig::default() };
    open(folder, config, &Runtime::real()).map_err(|error| error.to_string())
}

fn value(store: &dyn Store) -> Option<String> {
    let value = store.view().unwrap().get(b"key").unwrap();
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn write(store: &dyn Store, value: &str) {
    let mut batch = WriteBatch::new();
    batch.put("key", value.to_owned());
    assert_eq!(store.write_session().submit(batch).wait(), CommitStatus::Durable);
}

#[test]
fn segments_follow_each_other_whatever_their_numbers() {
    let folder = store_with(&[(3, &[1, 2]), (9, &[3]), (5, &[4, 5])]);
    assert_eq!(commit_of(folder.path()), Ok(5));
    let store = open_store(folder.path(), false).unwrap();
    assert_eq!(value(store.as_ref()).as_deref(), Some("5"));
    write(store.as_ref(), "6");
    store.close().unwrap();
    assert_eq!(commit_of(folder.path()), Ok(6));
    assert_eq!(journal::list(folder.path()).unwrap(), [], "the tables have everything");
}

#[test]
fn what_is_missing_is_noticed() {
    let middle = store_with(&[(3, &[1, 2]), (5, &[4, 5])]);
    let error = commit_of(middle.path()).unwrap_err();
    assert!(error.contains("commit 5 is in the journal, but commit 3 cannot be read"), "{error}");
    let oldest = store_with(&[(4, &[3]), (5, &[4, 5])]);
    let error = commit_of(oldest.path()).unwrap_err();
    assert!(error.contains("but commit 1 cannot be read"), "{error}");
    let newest = store_with(&[(3, &[1, 2]), (4, &[3])]);
    acknowledge(newest.path(), 5, Durability::Full);
    let error = commit_of(newest.path()).unwrap_err();
    assert!(error.contains("commit 5 was acknowledged but only commit 3"), "{error}");
    acknowledge(newest.path(), 3, Durability::Full);
    assert_eq!(commit_of(newest.path()), Ok(3));
    std::fs::remove_file(newest.path().join("WITNESS")).unwrap();
    assert!(commit_of(newest.path()).unwrap_err().contains("WITNESS"));
}

#[test]
fn lost_writes_can_be_accepted_once_and_for_all() {
    let folder = store_with(&[(1, &[1, 2])]);
    acknowledge(folder.path(), 9, Durability::Full);
    let error = open_store(folder.path(), false).unwrap_err();
    assert!(error.contains("commit 9 was acknowledged but only commit 2"), "{error}");
    assert!(error.contains("accept lost writes to open it with commit 2"), "{error}");
    let accepted = open_store(folder.path(), true).unwrap();
    let loss = accepted.loss().unwrap();
    assert_eq!(loss, Loss { found: 2, acknowledged: 9 });
    let said = "commit 9 was acknowledged, 2 found: the last 7 commits are lost";
    assert_eq!(loss.to_string(), said);
    accepted.close().unwrap();
    let again = open_store(folder.path(), false).unwrap();
    assert_eq!(again.loss(), None);
    again.close().unwrap();
}

/// Opens a store with a gap and returns the value of the newest commit, and the loss. With
/// full durability this requires accepting the loss.
fn open_relaxed(folder: &Path, acknowledged: u64) -> (Option<String>, Loss) {
    acknowledge(folder, acknowledged, Durability::Full);
    let before = all_files(folder);
    open_store(folder, false).unwrap_err();
    assert_eq!(all_files(folder), before, "a refused folder is left as it was");
    acknowledge(folder, acknowledged, Durability::Os);
    let store = open_store(folder, false).unwrap();
    let (value, loss) = (value(store.as_ref()), store.loss().unwrap());
    store.close().unwrap();
    assert_eq!(commit_of(folder), Ok(loss.found));
    (value, loss)
}

fn all_files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for (name, is_folder) in files::list(folder).unwrap() {
        let path = folder.join(name);
        match is_folder {
            true => found.extend(all_files(&path)),
            false => found.push((path.clone(), std::fs::read(path).unwrap())),
        }
    }
    found
}

#[test]
fn without_waiting_for_the_disk_the_longest_unbroken_history_is_kept() {
    // Pages of a segment in any order: 3 did not get there, 4 and 5 did.
    let folder = store_with(&[(3, &[1, 2])]);
    let tail = [vec![0; record(3, 3).len()], record(3, 4), record(3, 5)].concat();
    append(folder.path(), 3, &tail);
    let (value, loss) = open_relaxed(folder.path(), 1);
    assert_eq!((value.as_deref(), loss), (Some("2"), Loss { found: 2, acknowledged: 4 }));
    // A segment is unfinished and the next one has data.
    let folder = store_with(&[(3, &[1, 2]), (4, &[4, 5])]);
    append(folder.path(), 3, &record(3, 3)[..20]);
    let (value, loss) = open_relaxed(folder.path(), 5);
    assert_eq!((value.as_deref(), loss), (Some("2"), Loss { found: 2, acknowledged: 5 }));
    // The newest segment is missing, and nothing is left of the others either.
    let folder = store_with(&[]);
    let (value, loss) = open_relaxed(folder.path(), 7);
    assert_eq!((value, loss), (None, Loss { found: 0, acknowledged: 7 }));
}

/// The numbers of what was lost are used again, and must not come back with it.
#[test]
fn what_was_lost_does_not_come_back() {
    let folder = store_with(&[(3, &[1, 2]), (4, &[4, 5, 6])]);
    acknowledge(folder.path(), 2, Durability::Full);
    let store = open_store(folder.path(), true).unwrap();
    write(store.as_ref(), "new 3");
    let copy = tempfile::tempdir().unwrap();
    for (path, bytes) in all_files(folder.path()) {
        let target = copy.path().join(path.strip_prefix(folder.path()).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::write(target, bytes).unwrap();
    }
    // As after a kill.
    assert_eq!(commit_of(copy.path()), Ok(3));
    let store = open_store(copy.path(), false).unwrap();
    assert_eq!(value(store.as_ref()).as_deref(), Some("new 3"));
}

#[test]
fn what_the_tables_have_may_be_missing_or_come_back() {
    let folder = store_with(&[]);
    let store = open_store(folder.path(), false).unwrap();
    for value in ["1", "2", "3"] {
        write(store.as_ref(), value);
    }
    store.close().unwrap();
    assert_eq!(tables::newest_commit(folder.path(), &folder.path().join("tree")).unwrap(), 3);
    append(folder.path(), 1, &[vec![7; 999], record(1, 2)].concat());
    append(folder.path(), 2, &record(2, 4));
    let store = open_store(folder.path(), false).unwrap();
    assert_eq!((store.loss(), value(store.as_ref()).as_deref()), (None, Some("4")));
    store.close().unwrap();
    // A commit after a gap that nothing fills is a loss.
    append(folder.path(), 7, &record(7, 6));
    assert!(open_store(folder.path(), false).is_err());
}

#[test]
fn an_unfinished_record_is_no_loss() {
    let folder = store_with(&[(3, &[1, 2]), (4, &[3])]);
    append(folder.path(), 4, &record(4, 4)[..30]);
    append(folder.path(), 3, &record(3, 3)[..30]);
    assert_eq!(commit_of(folder.path()), Ok(3));
    let store = open_store(folder.path(), false).unwrap();
    assert_eq!((store.loss(), value(store.as_ref()).as_deref()), (None, Some("3")));
}
