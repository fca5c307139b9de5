//! Everything that is checked before the engine may touch a folder.
//!
//! The engine repairs as it opens: it cuts journals at the first bytes that it
//! cannot read, and deletes keyspaces, lists and tables that nothing refers to.
//! On a damaged folder that turns damage into loss. So what can be known is found
//! out first, on files opened for reading only, and a folder that does not add up
//! is refused as it was found.

use std::path::{Path, PathBuf};

use super::journal::{Journal, JournalBatch, Scan, Tail};
use super::tables::{self, Reach};
use super::witness::Testimony;
use super::{files, journal};
use crate::{Durability, StorageError};

/// Sequence numbers stay below this. The engine stops working at 2^63, and
/// nobody gets here by counting: a number above it is damage.
const SEQUENCE_MAX: u64 = 1 << 62;

/// What a closed folder holds.
#[derive(Debug)]
pub(super) struct Inspection {
    folder: PathBuf,
    /// The newest commit in tables or journals, 0 for none.
    pub(super) commit: u64,
    /// Whether the tables hold everything, so that no journal is needed.
    settled: bool,
    journals: Vec<Journal>,
    /// A journal with an unfinished batch at its end, and where that begins.
    torn: Option<(PathBuf, u64)>,
}

impl Inspection {
    pub(super) fn of(folder: &Path) -> Result<Inspection, StorageError> {
        check_shape(folder)?;
        let reach = tables::reach(folder, &folder.join(super::DATA_FOLDER))?;
        let journals = journal::list(folder)?;
        let mut chain = Chain::new(folder, reach);
        for (index, journal) in journals.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|index| journals.get(index));
            if before.is_some_and(|before| before.id + 1 != journal.id) {
                return Err(chain.damaged(format!("the journal before {} is missing", journal.id)));
            }
            chain.append(journal, &Scan::of(&journal.path)?)?;
        }
        let newest = chain.last.map_or(0, |batch| batch.commit);
        Ok(Inspection {
            folder: folder.to_owned(),
            commit: newest.max(reach.commit),
            settled: newest <= reach.commit,
            journals,
            torn: chain.torn,
        })
    }

    /// Compares with the highest commit that anyone was told is durable.
    pub(super) fn check_witness(
        &self,
        testimony: Option<Testimony>,
        accept_lost_writes: bool,
    ) -> Result<(), StorageError> {
        let detail = match testimony {
            Some(witness) if witness.commit <= self.commit => return Ok(()),
            Some(witness) => self.lost(witness),
            None => "the file WITNESS is missing or cannot be read, so nobody can tell whether \
                     acknowledged writes are missing (accept_lost_writes opens it as it is)"
                .to_owned(),
        };
        if accept_lost_writes {
            tracing::warn!(folder = %self.folder.display(), detail, "opened as told");
            return Ok(());
        }
        Err(StorageError::Damaged { path: self.folder.clone(), detail })
    }

    fn lost(&self, witness: Testimony) -> String {
        let cause = match witness.durability {
            Durability::Full => "",
            Durability::Os => " The store ran with durability `os`, where a power cut does this.",
        };
        format!(
            "commit {} was acknowledged but only commit {} was found, so acknowledged writes are \
             lost (accept_lost_writes opens it without them).{cause}",
            witness.commit, self.commit
        )
    }

    /// Takes away what was never acknowledged or is no longer needed, so that the
    /// engine finds nothing to repair and little to replay. Only to be called
    /// once the witness agrees.
    pub(super) fn tidy(&self) -> Result<(), StorageError> {
        if self.settled {
            return self.empty_journals();
        }
        let Some((path, end)) = &self.torn else {
            return Ok(());
        };
        tracing::warn!(journal = %path.display(), end, "cut off a batch that was never finished");
        files::truncate(path, *end)
    }

    /// Leaves one empty journal: without any, the engine takes the store for new,
    /// counts from zero again and does not see what is in the tables.
    fn empty_journals(&self) -> Result<(), StorageError> {
        let Some((active, sealed)) = self.journals.split_last() else {
            return files::write_whole(&self.folder.join("0.jnl"), &[]);
        };
        // The oldest goes first, so that a crash in between leaves no hole.
        for journal in sealed {
            std::fs::remove_file(&journal.path)
                .map_err(|source| files::during("remove", &journal.path, source))?;
        }
        files::truncate(&active.path, 0)?;
        files::sync_folder(&self.folder)
    }
}

/// The batches of all journals, which must follow each other and the tables.
#[derive(Debug)]
struct Chain<'a> {
    folder: &'a Path,
    reach: Reach,
    last: Option<JournalBatch>,
    torn: Option<(PathBuf, u64)>,
}

impl Chain<'_> {
    fn new(folder: &Path, reach: Reach) -> Chain<'_> {
        Chain { folder, reach, last: None, torn: None }
    }

    fn append(&mut self, journal: &Journal, scan: &Scan) -> Result<(), StorageError> {
        if self.torn.is_some() && !scan.batches.is_empty() {
            return Err(self.damaged(format!("the journal before {} is unfinished", journal.id)));
        }
        for &batch in &scan.batches {
            self.link(journal, batch)?;
        }
        match scan.tail {
            Tail::Clean => {}
            Tail::Torn => self.torn = Some((journal.path.clone(), scan.end)),
            Tail::Interrupted => {
                let (id, end) = (journal.id, scan.end);
                return Err(self.damaged(format!("journal {id} is unreadable from byte {end}")));
            }
        }
        Ok(())
    }

    fn link(&mut self, journal: &Journal, batch: JournalBatch) -> Result<(), StorageError> {
        let follows = match self.last {
            Some(last) => batch.commit == last.commit + 1 && batch.sequence > last.sequence,
            None => batch.commit >= 1 && batch.commit <= self.reach.commit + 1,
        };
        // The engine leaves out of the replay what seems to be in the tables.
        let replays = batch.sequence > self.reach.sequence || self.reach.commit == 0;
        let is_new = batch.commit > self.reach.commit;
        if !follows || replays != is_new || batch.sequence >= SEQUENCE_MAX {
            let (id, commit) = (journal.id, batch.commit);
            return Err(self.damaged(format!("commit {commit} in journal {id} is out of order")));
        }
        self.last = Some(batch);
        Ok(())
    }

    fn damaged(&self, detail: String) -> StorageError {
        StorageError::Damaged { path: self.folder.to_owned(), detail }
    }
}

/// The engine panics over a folder name that is no number, and deletes keyspaces
/// that it does not expect.
fn check_shape(folder: &Path) -> Result<(), StorageError> {
    let keyspaces = files::list(&folder.join("keyspaces")).unwrap_or_default();
    let folders = keyspaces.iter().filter(|(_, is_folder)| *is_folder).map(|(name, _)| name);
    if !folders.eq(["0", "1"]) {
        let detail = "the folder keyspaces does not hold exactly 0 and 1".to_owned();
        return Err(StorageError::Damaged { path: folder.to_owned(), detail });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use runtime::Runtime;

    use super::super::journal::testing::batch;
    use super::super::witness::Witness;
    use super::super::{LocalConfig, create, open};
    use super::*;

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
        let witness = Testimony { commit: 5, durability: Durability::Full };
        let error = found.check_witness(Some(witness), false).unwrap_err().to_string();
        assert!(error.contains("commit 5 was acknowledged but only commit 3"), "{error}");
        found.check_witness(Some(witness), true).unwrap();
        assert!(found.check_witness(None, false).is_err());
        found.check_witness(Some(Testimony { commit: 3, ..witness }), false).unwrap();
    }

    #[test]
    fn lost_writes_can_be_accepted_once_and_for_all() {
        let folder = store_with(&[(0, &[1, 2])]);
        let mut witness = Witness::open(folder.path(), Durability::Full).unwrap();
        witness.testify(8).unwrap();
        witness.testify(9).unwrap();
        let open = |accept_lost_writes| {
            let config = LocalConfig { accept_lost_writes, ..LocalConfig::default() };
            open(folder.path(), config, &Runtime::real())
        };
        assert!(matches!(open(false), Err(StorageError::Damaged { .. })));
        open(true).unwrap().close().unwrap();
        open(false).unwrap().close().unwrap();
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
}
