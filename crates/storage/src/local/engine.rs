//! The local engine below the committer: a commit goes to the journal, then into the
//! memtable, then it is shown.
//!
//! Nothing becomes readable before it is durable. When the memtable is full it is sealed,
//! with the segments of the journal that hold its commits, and a new one of each begins.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::LocalConfig;
use super::disk_space::{FLOOR_BYTES, MERGE_BYTES_MAX, RELIEF_BYTES};
use super::history::History;
use super::journal::{Segment, Writer};
use super::published::Published;
use super::tree::{Tree, merge_needs, small_runs_due};
use super::upkeep::Upkeep;
use super::watermark::WatermarkFile;
use crate::committer::{Engine, MergedBatch};
use crate::{Durability, StorageError};

/// Memtables that are being flushed while another one is filled. When that is full as well,
/// writers wait.
const SEALED_MEMTABLES_MAX: usize = 1;

/// Runs of small tables from which on writers wait for a compaction.
const SMALL_RUNS_MAX: usize = 40;

/// How often to wait for a running compaction that occupies the space that is asked for: it
/// gives back more. At 10 ms each, half a minute is some gigabytes; writers wait as they do
/// for a slow disk.
const SPACE_WAITS_MAX: usize = 3_000;

/// Bytes in the journal from which on a flush is worth the space that it gives back.
const JOURNAL_BYTES_MIN: u64 = 8 << 20;

/// Replays what the tables of a store do not have. Each full memtable is sealed with its
/// segments; those of the last one are returned.
fn replay(
    published: &Published,
    history: &History,
    config: &LocalConfig,
    upkeep: &Upkeep,
) -> Result<Vec<Segment>, StorageError> {
    let mut segments: Vec<Segment> = Vec::new();
    for part in history.parts() {
        part.replay(|commit, writes| {
            published.commit(commit, &writes);
        })?;
        segments.push(part.segment().clone());
        if published.memtable_bytes() >= config.memtable_bytes && published.rotate() {
            upkeep.want_flush(std::mem::take(&mut segments));
        }
    }
    published.check_commit(history.commit)?;
    Ok(segments)
}

/// Opens a store for reading only: its tree in `folder`, a copy, and the journal where it is.
pub(super) fn open_copy(
    store: &Path,
    folder: &Path,
    history: &History,
    config: &LocalConfig,
) -> Result<Published, StorageError> {
    let published = Published::new(store, &Tree::open(store, folder, config, None)?);
    for part in history.parts() {
        part.replay(|commit, writes| {
            published.commit(commit, &writes);
        })?;
    }
    published.check_commit(history.commit)?;
    Ok(published)
}

pub(super) struct LocalEngine {
    tree: Arc<Tree>,
    published: Arc<Published>,
    upkeep: Arc<Upkeep>,
    /// Bytes in the memtable.
    memtable: u64,
    /// Where commits are written. It is begun with the first one.
    writer: Option<Writer>,
    /// Further segments with commits of the memtable.
    segments: Vec<Segment>,
    commit: u64,
    watermark: WatermarkFile,
    config: LocalConfig,
    /// Free bytes, as last looked up.
    free: u64,
}

impl LocalEngine {
    /// Brings a store up to the history that was found.
    pub(super) fn open(
        (tree, published, upkeep): (Arc<Tree>, Arc<Published>, Arc<Upkeep>),
        history: &History,
        mut watermark: WatermarkFile,
        config: LocalConfig,
    ) -> Result<LocalEngine, StorageError> {
        if upkeep.disk.free() < RELIEF_BYTES {
            upkeep.disk.give_up_reserve();
        }
        let segments = replay(&published, history, &config, &upkeep)?;
        watermark.start_from(history.commit)?;
        Ok(LocalEngine {
            memtable: published.memtable_bytes(),
            tree,
            published,
            upkeep,
            writer: None,
            segments,
            commit: history.commit,
            watermark,
            config,
            free: u64::MAX,
        })
    }

    /// Seals the memtable, so that it is flushed.
    pub(super) fn rotate(&mut self) {
        if self.published.rotate() {
            self.memtable = 0;
            let mut segments = std::mem::take(&mut self.segments);
            segments.extend(self.writer.take().map(|writer| writer.segment().clone()));
            self.upkeep.want_flush(segments);
        }
    }

    /// Waits until flushes and compactions have caught up.
    fn await_upkeep(&mut self) -> Result<(), StorageError> {
        loop {
            self.upkeep.check()?;
            let tables = self.published.tables()?;
            if tables.small_runs >= usize::from(small_runs_due(self.free)) {
                self.upkeep.want_merge();
            }
            let is_full = self.memtable >= self.config.memtable_bytes;
            if is_full && self.published.sealed_count() < SEALED_MEMTABLES_MAX {
                self.rotate();
                continue;
            }
            let is_behind = tables.small_runs > SMALL_RUNS_MAX;
            if !is_full && !is_behind {
                return Ok(());
            }
            let needed = merge_needs(tables.bytes);
            let blocked = !self.upkeep.is_merging() && self.upkeep.disk.free() < needed;
            if self.upkeep.is_flush_blocked() || (is_behind && blocked) {
                return Err(self.upkeep.disk.full(needed));
            }
            self.upkeep.await_progress();
        }
    }

    /// Free bytes without which nothing more is written: space for all memtables to be
    /// flushed, and for all tables to be compacted then, those of the memtables among them.
    /// Their journal is given back in between; how long that is matters only where `free`
    /// does not suffice anyway.
    fn needs(&self, relief: bool, free: u64) -> Result<u64, StorageError> {
        if relief {
            return Ok(RELIEF_BYTES);
        }
        let sealed = self.published.sealed_count() as u64 * self.config.memtable_bytes;
        let (unflushed, tables) = (self.memtable + sealed, self.published.tables()?.bytes);
        let all = (tables + unflushed).min(MERGE_BYTES_MAX) + unflushed + FLOOR_BYTES;
        if free >= all {
            return Ok(all);
        }
        Ok(all - self.upkeep.segments.bytes().min(unflushed))
    }

    /// Checks for `bytes` free bytes beyond what is needed anyway, and frees space where
    /// that is possible.
    fn find_space(&mut self, bytes: u64, relief: bool) -> Result<(), StorageError> {
        let (mut waits, mut tried) = (0, false);
        loop {
            self.upkeep.check()?;
            let free = self.upkeep.disk.free();
            let needed = self.needs(relief, free)? + bytes;
            self.free = free;
            if free >= needed {
                if !relief {
                    self.upkeep.disk.restore_reserve(free - needed);
                }
                return Ok(());
            }
            if !tried {
                tried = true;
                self.give_back()?;
            } else if self.upkeep.may_give_back() && waits < SPACE_WAITS_MAX {
                waits += 1;
                self.upkeep.await_progress();
            } else if !(relief && self.upkeep.disk.give_up_reserve()) {
                return Err(self.upkeep.disk.full(needed));
            }
        }
    }

    /// Has everything given back that can be: a spare segment, and the journal, by a flush.
    /// What was flushed since the last commit may make a compaction due.
    fn give_back(&mut self) -> Result<(), StorageError> {
        self.upkeep.segments.drop_ready()?;
        if self.upkeep.segments.bytes() >= JOURNAL_BYTES_MIN {
            self.rotate();
        }
        self.upkeep.want_merge();
        Ok(())
    }

    /// Frees space for a full compaction, as far as that is possible.
    pub(super) fn make_space(&mut self) -> Result<(), StorageError> {
        let needed = merge_needs(self.published.tables()?.bytes);
        if self.upkeep.disk.free() < needed {
            self.upkeep.segments.drop_ready()?;
        }
        if self.upkeep.disk.free() < needed {
            self.upkeep.disk.give_up_reserve();
        }
        Ok(())
    }

    /// The segment that the next commit goes to.
    fn writer(&mut self) -> Result<&mut Writer, StorageError> {
        if self.writer.is_none() {
            self.writer = Some(self.upkeep.segments.start()?);
        }
        self.writer.as_mut().ok_or(StorageError::Closed)
    }

    /// Flushes everything and removes the journal.
    fn settle(&mut self) -> Result<(), StorageError> {
        self.rotate();
        self.upkeep.flush(&self.tree, &self.published)?;
        self.upkeep.segments.clear()
    }
}

impl Engine for LocalEngine {
    fn admit(&mut self, bytes: usize, relief: bool) -> Result<(), StorageError> {
        // Once in the journal and once in a table.
        self.find_space(2 * bytes as u64, relief)?;
        if self.upkeep.is_flush_blocked() {
            self.upkeep.want_flush(Vec::new());
        }
        Ok(())
    }

    fn commit(&mut self, writes: &MergedBatch) -> Result<(), StorageError> {
        self.await_upkeep()?;
        let (commit, durability) = (self.commit + 1, self.config.durability);
        self.writer()?.append(commit, writes, durability)?;
        self.commit = commit;
        self.memtable = self.published.commit(commit, writes);
        self.watermark.advance(commit)
    }

    fn syncs_per_commit(&self) -> u64 {
        match self.config.durability {
            Durability::Full => 1,
            Durability::Os => 0,
        }
    }

    /// Leaves a folder that opens without a replay, unless there is no space for that: then
    /// everything is in the journal.
    fn close(&mut self) -> Result<(), StorageError> {
        let settled = match self.upkeep.check() {
            Ok(()) => self.settle(),
            Err(failed) => Err(failed),
        };
        self.published.close();
        match settled {
            Ok(()) => self.watermark.end_with(self.commit),
            Err(StorageError::Full { .. }) => {
                tracing::warn!("closed without tidying up: no space left on device");
                self.writer.as_ref().map_or(Ok(()), Writer::sync)?;
                self.watermark.sync()
            }
            Err(error) => Err(error),
        }
    }
}

impl fmt::Debug for LocalEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalEngine").field("commit", &self.commit).finish_non_exhaustive()
    }
}
