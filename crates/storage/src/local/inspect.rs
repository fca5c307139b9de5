//! Everything that is checked before the engine may touch a folder.
//!
//! The engine repairs as it opens: it cuts journals at the first unreadable byte, and
//! deletes keyspaces, lists and tables that nothing refers to. On a damaged folder that
//! turns damage into loss. So everything is inspected first, on files opened for reading
//! only, and an inconsistent folder is refused as it was found.

use std::path::{Path, PathBuf};

use super::journal::{Journal, JournalBatch, Scan, Tail};
use super::tables::{self, Reach};
use super::watermark::CommitWatermark;
use super::{files, journal};
use crate::StorageError;

/// Sequence numbers stay below this. The engine stops working at 2^63, which no amount of
/// writing reaches: a number above this is damage.
pub(super) const SEQUENCE_MAX: u64 = 1 << 62;

/// What a closed folder holds.
#[derive(Debug)]
pub(super) struct Inspection {
    folder: PathBuf,
    /// The newest commit in tables or journals, 0 for none.
    pub(super) commit: u64,
    /// Whether the tables hold everything, so that no journal is needed.
    settled: bool,
    journals: Vec<Journal>,
    /// The journal with the newest batch, and where that begins.
    newest: Option<(PathBuf, u64)>,
    /// A journal with an unfinished batch at its end, and where that begins.
    torn: Option<(PathBuf, u64)>,
}

impl Inspection {
    pub(super) fn of(folder: &Path) -> Result<Inspection, StorageError> {
        check_shape(folder)?;
        let reach = tables::reach(folder, &folder.join(super::DATA_FOLDER))?;
        let journals = journal::list(folder)?;
        let mut chain = Chain::new(folder, reach);
        let mut newest_batch = None;
        for (index, journal) in journals.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|index| journals.get(index));
            if before.is_some_and(|before| before.id + 1 != journal.id) {
                chain.skip_to(journal)?;
            }
            let scan = Scan::of(&journal.path)?;
            chain.append(journal, &scan)?;
            if !scan.batches.is_empty() {
                newest_batch = Some((journal.path.clone(), scan.start));
            }
        }
        let newest = chain.last.map_or(0, |batch| batch.commit);
        Ok(Inspection {
            folder: folder.to_owned(),
            commit: newest.max(reach.commit),
            settled: newest <= reach.commit,
            journals,
            newest: newest_batch,
            torn: chain.torn,
        })
    }

    /// Removes a commit whose failure left open whether it was written. While the process
    /// lives it was acknowledged to no one, and others have continued without it: it must
    /// not reappear.
    pub(super) fn without_commits_after(self, commit: u64) -> Result<Inspection, StorageError> {
        match &self.newest {
            Some((path, start)) if self.commit == commit + 1 && !self.settled => {
                files::truncate(path, *start)?;
                Inspection::of(&self.folder)
            }
            Some(_) | None => Ok(self),
        }
    }

    /// Compares with the highest commit that was acknowledged.
    pub(super) fn check_watermark(
        &self,
        watermark: Option<CommitWatermark>,
    ) -> Result<(), StorageError> {
        let detail = match watermark {
            Some(watermark) if watermark.commit <= self.commit => return Ok(()),
            Some(watermark) => format!(
                "commit {} was acknowledged but only commit {} was found, so acknowledged writes \
                 are lost",
                watermark.commit, self.commit
            ),
            None => "the file WITNESS is missing or cannot be read, so it is unknown whether \
                     acknowledged writes are missing"
                .to_owned(),
        };
        Err(StorageError::Damaged { path: self.folder.clone(), detail })
    }

    /// Removes what was never acknowledged or is no longer needed, so that the engine finds
    /// nothing to repair and little to replay. Only to be called once the watermark agrees.
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

    /// The engine removes journals whose content is in the tables, and a power cut may
    /// bring back any of them: one is not missing when all that came before it is in the
    /// tables.
    fn skip_to(&mut self, journal: &Journal) -> Result<(), StorageError> {
        if self.last.is_some_and(|last| last.commit > self.reach.commit) {
            return Err(self.damaged(format!("the journal before {} is missing", journal.id)));
        }
        self.last = None;
        Ok(())
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
        // The engine skips in its replay what seems to be in the tables.
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

/// The engine panics on a folder name that is no number, and deletes keyspaces that it does
/// not expect.
pub(super) fn check_shape(folder: &Path) -> Result<(), StorageError> {
    let keyspaces = files::list(&folder.join("keyspaces")).unwrap_or_default();
    let folders = keyspaces.iter().filter(|(_, is_folder)| *is_folder).map(|(name, _)| name);
    if !folders.eq(["0", "1"]) {
        let detail = "the folder keyspaces does not hold exactly 0 and 1".to_owned();
        return Err(StorageError::Damaged { path: folder.to_owned(), detail });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
