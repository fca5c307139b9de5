//! What can be kept of a folder with inconsistent journals, and keeping it.
//!
//! With durability `os` pages of a journal may have reached the disk in any order before
//! the power was cut: there may be holes, a sealed journal may be unfinished while the next
//! one has data, and the watermark may name commits that are nowhere. The longest unbroken
//! history is what the tables hold, since the engine syncs those itself, and every commit
//! that follows without a hole, wherever it is. That is a state which existed. It is
//! written into one new journal, and the others are removed, before the engine sees any of
//! it: what the engine would cut off by itself is decided by luck.
//!
//! With full durability the same is done when an operator accepts the loss.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::inspect::{self, SEQUENCE_MAX};
use super::journal::{self, Journal, Placed};
use super::{files, tables};
use crate::StorageError;

/// What can be kept of a folder.
#[derive(Debug)]
pub(super) struct Salvage {
    folder: PathBuf,
    /// The newest commit that can be kept, 0 for none.
    pub(super) commit: u64,
    /// The newest commit that was found at all, in what cannot be kept.
    pub(super) newest_seen: u64,
    journals: Vec<Journal>,
    /// Parts of journals with the commits that the tables do not have, in order.
    kept: Vec<(PathBuf, Range<u64>)>,
}

impl Salvage {
    /// Reads and changes nothing.
    pub(super) fn of(folder: &Path) -> Result<Salvage, StorageError> {
        inspect::check_shape(folder)?;
        let reach = tables::reach(folder, &folder.join(super::DATA_FOLDER))?;
        let journals = journal::list(folder)?;
        let mut found: Vec<(Placed, &Path)> = Vec::new();
        for journal in &journals {
            let placed = journal::find_batches(&journal.path)?;
            found.extend(placed.into_iter().map(|placed| (placed, journal.path.as_path())));
        }
        found.sort_by_key(|(placed, _)| placed.batch.commit);
        let newest_seen = found.last().map_or(0, |(placed, _)| placed.batch.commit);
        let (mut last, mut kept) = (reach, Vec::new());
        for (Placed { batch, range }, path) in found {
            let is_next = batch.commit == last.commit + 1;
            // The engine replays what is newer than its tables, by this number.
            let replays = batch.sequence > last.sequence || last.commit == 0;
            if is_next && replays && batch.sequence < SEQUENCE_MAX {
                last = tables::Reach { commit: batch.commit, sequence: batch.sequence };
                kept.push((path.to_owned(), range));
            }
        }
        Ok(Salvage { folder: folder.to_owned(), commit: last.commit, newest_seen, journals, kept })
    }

    /// Whether holes are only where the tables have everything, and nothing that was seen
    /// or `acknowledged` is missing: a journal that is no longer needed is emptied, and the
    /// power may be cut meanwhile.
    pub(super) fn is_complete(&self, acknowledged: u64) -> bool {
        self.commit >= acknowledged.max(self.newest_seen)
    }

    /// Leaves one journal with what is kept. If interrupted, it can be repeated: nothing
    /// that is kept is removed before it has been copied.
    pub(super) fn perform(&self) -> Result<(), StorageError> {
        let id = self.journals.last().map_or(0, |journal| journal.id);
        let path = self.folder.join(format!("{id}.jnl"));
        files::write_whole_by(&path, |file| {
            self.kept.iter().try_for_each(|(from, range)| copy(from, range, file))
        })?;
        for journal in self.journals.iter().filter(|journal| journal.id != id) {
            std::fs::remove_file(&journal.path)
                .map_err(|source| files::during("remove", &journal.path, source))?;
        }
        // Commit numbers are reused from here on: what had them must not come back.
        files::sync_folder(&self.folder)
    }
}

fn copy(from: &Path, range: &Range<u64>, to: &mut File) -> io::Result<()> {
    let mut file = File::open(from)?;
    file.seek(SeekFrom::Start(range.start))?;
    let len = range.end - range.start;
    if io::copy(&mut file.take(len), to)? == len {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}
