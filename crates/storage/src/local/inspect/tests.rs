use runtime::Runtime;

use super::super::journal::testing::batch;
use super::super::watermark::WatermarkFile;
use super::super::{LocalConfig, create, open};
use super::*;
use crate::{Durability, Loss};

/// An empty store with journals of these commits, each a run `first..=last`.
fn store_with(journals: &[(u64, &[u64])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = create(folder.path(), LocalConfig::default(), &Runtime::real()).unwrap();
    store.close().unwrap();
    std::fs::remove_file(folder.path().join("0.jnl")).unwrap();
    for (id, commits) in journals {
        let bytes: Vec<u8> =
            commits.iter().flat_map(|commit| batch(*commit, commit * 10)).collect();
        std::fs::write(folder.path().join(format!("{id}.jnl")), bytes).unwrap();
    }
    folder
}

fn append(folder: &Path, journal: u64, bytes: &[u8]) {
    let path = folder.join(format!("{journal}.jnl"));
    let before = std::fs::read(&path).unwrap();
    std::fs::write(&path, [before.as_slice(), bytes].concat()).unwrap();
}

fn inspect(folder: &Path) -> Result<u64, String> {
    Inspection::of(folder).map(|found| found.commit).map_err(|error| error.to_string())
}

#[test]
fn sealed_journals_chain_up_and_replay() {
    let folder = store_with(&[(3, &[1, 2]), (4, &[3]), (5, &[4, 5])]);
    assert_eq!(inspect(folder.path()), Ok(5));
    let store = open(folder.path(), LocalConfig::default(), &Runtime::real()).unwrap();
    let value = store.view().unwrap().get(b"key").unwrap();
    assert_eq!(value.as_deref(), Some(b"5".as_slice()));
    store.close().unwrap();
    assert_eq!(inspect(folder.path()), Ok(5));
    assert_eq!(journal::list(folder.path()).unwrap().len(), 1, "the others are not needed");
}

#[test]
fn missing_journals_are_noticed() {
    let middle = store_with(&[(3, &[1, 2]), (5, &[4, 5])]);
    let error = inspect(middle.path()).unwrap_err();
    assert!(error.contains("the journal before 5 is missing"), "{error}");
    let oldest = store_with(&[(4, &[3]), (5, &[4, 5])]);
    let error = inspect(oldest.path()).unwrap_err();
    assert!(error.contains("commit 3 in journal 4 is out of order"), "{error}");
    let newest = store_with(&[(3, &[1, 2]), (4, &[3])]);
    let found = Inspection::of(newest.path()).unwrap();
    let watermark = CommitWatermark { commit: 5, durability: Durability::Full };
    let error = found.check_watermark(Some(watermark)).unwrap_err().to_string();
    assert!(error.contains("commit 5 was acknowledged but only commit 3"), "{error}");
    assert!(found.check_watermark(None).is_err());
    found.check_watermark(Some(CommitWatermark { commit: 3, ..watermark })).unwrap();
}

#[test]
fn lost_writes_can_be_accepted_once_and_for_all() {
    let folder = store_with(&[(0, &[1, 2])]);
    let mut watermark = WatermarkFile::open(folder.path(), Durability::Full).unwrap();
    watermark.advance(8).unwrap();
    watermark.advance(9).unwrap();
    let open = |accept_lost_writes| {
        let config = LocalConfig { accept_lost_writes, ..LocalConfig::default() };
        open(folder.path(), config, &Runtime::real())
    };
    let error = open(false).unwrap_err().to_string();
    assert!(error.contains("commit 9 was acknowledged but only commit 2"), "{error}");
    assert!(error.contains("accept lost writes to open it with commit 2"), "{error}");
    let accepted = open(true).unwrap();
    let loss = accepted.loss().unwrap();
    assert_eq!(loss, Loss { found: 2, acknowledged: 9 });
    let said = "commit 9 was acknowledged, 2 found: the last 7 commits are lost";
    assert_eq!(loss.to_string(), said);
    accepted.close().unwrap();
    let again = open(false).unwrap();
    assert_eq!(again.loss(), None);
    again.close().unwrap();
}

/// Opens a store with inconsistent journals and returns the value of the newest commit, and
/// the loss. With full durability this requires accepting the loss.
fn open_relaxed(folder: &Path, acknowledged: u64) -> (Option<String>, Loss) {
    let runtime = Runtime::real();
    let mut watermark = WatermarkFile::open(folder, Durability::Full).unwrap();
    watermark.start_from(acknowledged).unwrap();
    let before = testing_files(folder);
    open(folder, LocalConfig::default(), &runtime).unwrap_err();
    assert_eq!(testing_files(folder), before, "a refused folder is left as it was");
    WatermarkFile::open(folder, Durability::Os).unwrap().start_from(acknowledged).unwrap();
    let store = open(folder, LocalConfig::default(), &runtime).unwrap();
    let value = store.view().unwrap().get(b"key").unwrap();
    let loss = store.loss().unwrap();
    store.close().unwrap();
    assert_eq!(inspect(folder), Ok(loss.found));
    (value.map(|value| String::from_utf8(value.to_vec()).unwrap()), loss)
}

fn testing_files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = files::list(folder).unwrap().into_iter().filter(|(_, is_folder)| !is_folder);
    files.map(|(name, _)| (name.clone(), std::fs::read(folder.join(name)).unwrap())).collect()
}

#[test]
fn without_waiting_for_the_disk_the_longest_unbroken_history_is_kept() {
    let hole = |len: usize| vec![0; len];
    // Pages of a journal in any order: 3 did not get there, 4 and 5 did.
    let folder = store_with(&[(3, &[1, 2])]);
    let tail = [hole(batch(3, 30).len()), batch(4, 40), batch(5, 50)].concat();
    append(folder.path(), 3, &tail);
    let (value, loss) = open_relaxed(folder.path(), 1);
    assert_eq!((value.as_deref(), loss), (Some("2"), Loss { found: 2, acknowledged: 4 }));
    // A sealed journal is unfinished and the next one has data.
    let folder = store_with(&[(3, &[1, 2]), (4, &[4, 5])]);
    append(folder.path(), 3, &batch(3, 30)[..40]);
    let (value, loss) = open_relaxed(folder.path(), 5);
    assert_eq!((value.as_deref(), loss), (Some("2"), Loss { found: 2, acknowledged: 5 }));
    // The newest journal is missing, and nothing is left of the others either.
    let folder = store_with(&[]);
    let (value, loss) = open_relaxed(folder.path(), 7);
    assert_eq!((value, loss), (None, Loss { found: 0, acknowledged: 7 }));
}

/// With full durability as well: a journal is emptied when it is no longer needed, and the
/// power may be cut meanwhile.
#[test]
fn a_hole_in_what_the_tables_have_costs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::real();
    let store = create(folder.path(), LocalConfig::default(), &runtime).unwrap();
    let mut write = crate::WriteBatch::new();
    write.put("other", "1");
    assert_eq!(store.write_session().submit(write).wait(), crate::CommitStatus::Durable);
    store.close().unwrap();
    let reach = tables::reach(folder.path(), &folder.path().join(crate::local::DATA_FOLDER));
    assert_eq!(reach.unwrap().commit, 1);
    let journal = [&[0; 999], batch(2, 20).as_slice(), &batch(3, 30)].concat();
    append(folder.path(), 0, &journal);
    assert!(inspect(folder.path()).is_err());
    let store = open(folder.path(), LocalConfig::default(), &runtime).unwrap();
    assert_eq!(store.loss(), None);
    assert_eq!(store.view().unwrap().get(b"key").unwrap().as_deref(), Some(b"3".as_slice()));
    store.close().unwrap();
    // A batch after a hole that nothing fills is a loss.
    append(folder.path(), 0, &[&[0; 999], batch(5, 50).as_slice()].concat());
    assert!(open(folder.path(), LocalConfig::default(), &runtime).is_err());
}

#[test]
fn a_journal_that_came_back_is_no_reason_to_refuse() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::real();
    let store = create(folder.path(), LocalConfig::default(), &runtime).unwrap();
    for value in ["1", "2", "3"] {
        let mut write = crate::WriteBatch::new();
        write.put("key", value);
        assert_eq!(store.write_session().submit(write).wait(), crate::CommitStatus::Durable);
    }
    store.close().unwrap();
    std::fs::rename(folder.path().join("0.jnl"), folder.path().join("2.jnl")).unwrap();
    std::fs::write(folder.path().join("0.jnl"), batch(1, 0)).unwrap();
    let store = open(folder.path(), LocalConfig::default(), &runtime).unwrap();
    assert_eq!(store.view().unwrap().get(b"key").unwrap().as_deref(), Some(b"3".as_slice()));
}

#[test]
fn an_unfinished_batch_is_cut_off_at_the_very_end_only() {
    let last = store_with(&[(3, &[1, 2]), (4, &[3])]);
    append(last.path(), 4, &batch(4, 40)[..30]);
    let found = Inspection::of(last.path()).unwrap();
    assert_eq!(found.commit, 3);
    found.tidy().unwrap();
    let whole = batch(3, 30);
    assert_eq!(std::fs::read(last.path().join("4.jnl")).unwrap(), whole);

    let before = store_with(&[(3, &[1, 2]), (4, &[3])]);
    append(before.path(), 3, &batch(3, 30)[..30]);
    let error = inspect(before.path()).unwrap_err();
    assert!(error.contains("the journal before 4 is unfinished"), "{error}");
}

#[test]
fn numbers_out_of_order_are_noticed() {
    let rewrite = |sequences: [u64; 3]| {
        let folder = store_with(&[(0, &[])]);
        let batches = [1, 2, 3].into_iter().zip(sequences);
        let bytes: Vec<u8> =
            batches.flat_map(|(commit, sequence)| batch(commit, sequence)).collect();
        append(folder.path(), 0, &bytes);
        inspect(folder.path())
    };
    assert_eq!(rewrite([1, 5, 9]), Ok(3));
    assert!(rewrite([5, 1, 9]).is_err());
    assert!(rewrite([1, 1, 9]).is_err());
    assert!(rewrite([1, 5, SEQUENCE_MAX]).is_err());
    let repeated = store_with(&[(0, &[1, 2, 2])]);
    assert!(inspect(repeated.path()).is_err());
}
