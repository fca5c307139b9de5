//! Brings tables to the disk while they are being written.
//!
//! The engine syncs a table when it is complete. Until then tens of megabytes wait in the
//! operating system, and when they go to the disk all at once, a commit that syncs a few
//! kilobytes waits for them. So flushes and compactions sync what they have written now and
//! then.
//!
//! That is no more than a hint: what counts is the engine's own sync, which also returns
//! the errors of these.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::files;

/// Bytes of rows between two syncs: what a disk writes in a few milliseconds.
const SYNC_EVERY_BYTES: usize = 4 << 20;

/// Tables that are written at the same time: by a flush, and by a compaction that has just
/// begun another one.
const TABLES_AT_ONCE: usize = 3;

/// Counts what is written to tables, and syncs.
#[derive(Debug)]
pub(super) struct WriteBack {
    tables: PathBuf,
    written: usize,
}

impl WriteBack {
    /// For the tree in `folder`.
    pub(super) fn new(folder: &Path) -> WriteBack {
        WriteBack { tables: folder.join("tables"), written: 0 }
    }

    /// Counts a row.
    pub(super) fn add(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written >= SYNC_EVERY_BYTES {
            self.written = 0;
            self.sync();
        }
    }

    /// Syncs the newest tables, among which are those that are being written.
    fn sync(&self) {
        let names = files::list(&self.tables).unwrap_or_default();
        let mut ids: Vec<u64> = names.iter().filter_map(|(name, _)| name.parse().ok()).collect();
        ids.sort_unstable();
        for id in ids.iter().rev().take(TABLES_AT_ONCE) {
            let synced = File::open(self.tables.join(id.to_string())).and_then(|t| t.sync_data());
            tracing::trace!(table = id, ?synced, "synced a table ahead of time");
        }
    }
}
