//! What a closed folder holds: the commits in its tables, and those in the journal that
//! follow them.
//!
//! Commits are numbered without a gap and written one after the other, each synced before
//! the next. So the newest commit that can be reached without a gap is the state of the
//! store, and three things can be said of what is beyond it:
//!
//! - *Nothing is there.* A record that was cut off by the end of the process had been
//!   acknowledged to no one.
//! - *The watermark is higher*: acknowledged commits are missing.
//! - *A later record is intact*: the ones before it had been synced, so they were damaged.
//!
//! The last two are refused with the folder as it was found, unless the last run did not
//! wait for the disk (durability `os`), where pages reach it in any order and a power cut
//! leaves such a folder, or an operator accepts the loss. The unbroken history, a state
//! that once existed, is what is opened then.

use std::path::{Path, PathBuf};

use super::journal::{self, Record, Segment};
use super::layout::Layout;
use super::watermark::CommitWatermark;
use super::{files, tables};
use crate::committer::MergedBatch;
use crate::{Durability, Loss, StorageError};

/// A folder that can be opened.
#[derive(Debug)]
pub(super) struct History {
    folder: PathBuf,
    layout: Layout,
    /// The newest commit that is reached without a gap, 0 for none.
    pub(super) commit: u64,
    /// What is missing although it was acknowledged.
    pub(super) loss: Option<Loss>,
    /// Why there is a loss.
    reason: Option<String>,
    /// All segments, with the records that follow the tables, and where in each begins what
    /// is beyond the history.
    segments: Vec<FoundSegment>,
}

#[derive(Debug)]
struct FoundSegment {
    segment: Segment,
    kept: Vec<Record>,
    beyond: Option<usize>,
}

impl History {
    /// Reads, and changes nothing.
    pub(super) fn of(
        folder: &Path,
        layout: Layout,
        accept_lost_writes: bool,
    ) -> Result<History, StorageError> {
        let watermark = CommitWatermark::load(folder)?;
        let in_tables = tables::newest_commit(folder, &folder.join(layout.tree()))?;
        let mut segments = Vec::new();
        for segment in layout.segments(folder)? {
            segments.push((layout.records(&segment, in_tables)?, segment));
        }
        let commit = unbroken(in_tables, &segments);
        let seen = segments.iter().flat_map(|(records, _)| records).map(|record| record.commit);
        let newest_seen = seen.max().unwrap_or(0);
        let relaxed = watermark.is_some_and(|watermark| watermark.durability == Durability::Os);
        let reason = missing(commit, newest_seen, watermark);
        let loss = match &reason {
            None => relaxed.then_some(Loss { found: commit, acknowledged: commit }),
            Some(_) if relaxed || accept_lost_writes => {
                // The newest commit that was seen may never have been acknowledged, but the
                // one before it was.
                let recorded = watermark.map_or(0, |watermark| watermark.commit);
                let acknowledged = commit.max(recorded).max(newest_seen.saturating_sub(1));
                Some(Loss { found: commit, acknowledged })
            }
            Some(detail) => {
                let detail =
                    format!("{detail} (accept lost writes to open it with commit {commit})");
                return Err(StorageError::Damaged { path: folder.to_owned(), detail });
            }
        };
        let segments = segments.into_iter().map(|(records, segment)| {
            let beyond = records.iter().position(|record| record.commit > commit);
            let mut kept = records;
            let beyond = beyond.map(|at| kept.split_off(at));
            let beyond = beyond.and_then(|records| Some(records.first()?.range.start));
            FoundSegment { segment, kept, beyond }
        });
        let segments = segments.collect();
        let folder = folder.to_owned();
        Ok(History { folder, layout, commit, loss, reason, segments })
    }

    pub(super) fn segments(&self) -> Vec<Segment> {
        self.segments.iter().map(|found| found.segment.clone()).collect()
    }

    /// Makes the history durable, which the last run may not have waited for. Removes what is
    /// beyond it, whose commit numbers are going to be used again, and segments that the
    /// tables have all of. Reports what is lost.
    pub(super) fn settle(&self) -> Result<(), StorageError> {
        let folder = self.folder.display();
        match (&self.loss, &self.reason) {
            (Some(loss), Some(reason)) => tracing::warn!(%folder, reason, "{loss}"),
            (Some(loss), None) => tracing::info!(%folder, "{loss}"),
            (None, _) => {}
        }
        for FoundSegment { segment, kept, beyond } in &self.segments {
            match beyond {
                _ if kept.is_empty() => segment.remove()?,
                Some(len) => segment.cut(*len)?,
                None => segment.sync()?,
            }
        }
        // An empty folder may not have come along with a copy.
        let journal = self.folder.join(journal::FOLDER);
        std::fs::create_dir_all(&journal)
            .map_err(|source| files::during("create", &journal, source))?;
        files::sync_folder(&journal)
    }

    /// The parts of the journal that the tables do not have, in order.
    pub(super) fn parts(&self) -> Vec<JournalPart<'_>> {
        let with_records = self.segments.iter().filter(|found| !found.kept.is_empty());
        let part = |found| JournalPart { layout: self.layout, found };
        let mut parts: Vec<JournalPart<'_>> = with_records.map(part).collect();
        // Segments are begun in the order of their commits, which is not always that of
        // their numbers.
        parts.sort_by_key(|part| part.found.kept.first().map(|record| record.commit));
        parts
    }
}

/// Commits of one segment that the tables do not have.
#[derive(Clone, Copy, Debug)]
pub(super) struct JournalPart<'a> {
    layout: Layout,
    found: &'a FoundSegment,
}

impl JournalPart<'_> {
    pub(super) fn segment(&self) -> &Segment {
        &self.found.segment
    }

    /// Calls `apply` with each commit.
    pub(super) fn replay(&self, apply: impl FnMut(u64, MergedBatch)) -> Result<(), StorageError> {
        self.layout.replay(&self.found.segment, &self.found.kept, apply)
    }
}

/// The newest commit that follows the tables without a gap.
fn unbroken(in_tables: u64, segments: &[(Vec<Record>, Segment)]) -> u64 {
    let commits = segments.iter().flat_map(|(records, _)| records).map(|record| record.commit);
    let mut commits: Vec<u64> = commits.collect();
    commits.sort_unstable();
    commits.into_iter().fold(in_tables, |last, commit| last + u64::from(commit == last + 1))
}

/// Why acknowledged commits are known to be missing, or may be.
fn missing(commit: u64, newest_seen: u64, watermark: Option<CommitWatermark>) -> Option<String> {
    match watermark {
        None => Some(
            "the file WITNESS is missing or cannot be read, so it is unknown whether \
             acknowledged writes are missing"
                .to_owned(),
        ),
        Some(watermark) if watermark.commit > commit => Some(format!(
            "commit {} was acknowledged but only commit {commit} was found, so acknowledged \
             writes are lost",
            watermark.commit
        )),
        Some(_) if newest_seen > commit => Some(format!(
            "commit {newest_seen} is in the journal, but commit {} cannot be read",
            commit + 1
        )),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests;
