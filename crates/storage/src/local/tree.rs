//! The tables of one store: writing, merging and dropping them.
//!
//! Nothing here is for readers: see `snapshot.rs`. So the engine's own memtable stays empty,
//! and of its list of tables only the newest version is kept.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lsm_tree::compaction::Leveled;
use lsm_tree::config::{
    BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry, PinningPolicy,
    RestartIntervalPolicy,
};
use lsm_tree::merge::Merger;
use lsm_tree::mvcc_stream::MvccStream;
use lsm_tree::{AbstractTree, AnyTree, Cache, CompressionType, Config};

use super::LocalConfig;
use super::disk_space::{BRAKE_BYTES, MERGE_BYTES_MAX};
use super::memtable::Memtable;
use super::run_filter::{RunFilter, RunFilters, key_hash};
use super::snapshot::Tables;
use super::upkeep::{Upkeep, Watch};
use super::write_back::WriteBack;
use crate::{KeyRange, StorageError};

/// Runs of small tables from which on a compaction is due. Each of them is one more place
/// where a reader looks; but whatever is there when they are merged into the next level is
/// rewritten with it, so that the more of them are merged at once, the less is written.
/// Fewer are merged when the load is over (`upkeep.rs`).
const SMALL_RUNS_DUE: u8 = 12;

/// The same while disk space is short: old versions and deletions are dropped sooner, and a
/// compaction takes less space.
const SMALL_RUNS_DUE_SHORT: u8 = 4;

/// Free bytes below which disk space is short: several of the largest compactions.
const SHORT_BYTES: u64 = 4 * MERGE_BYTES_MAX;

/// Snapshots have their own memtables and tables, so no older write of a key, and no older
/// list of tables, is ever asked for.
const NOTHING_OLDER: u64 = u64::MAX;

pub(super) fn small_runs_due(free: u64) -> u8 {
    if free < SHORT_BYTES { SMALL_RUNS_DUE_SHORT } else { SMALL_RUNS_DUE }
}

/// Free bytes that the next compaction needs, whichever it is.
pub(super) fn merge_needs(table_bytes: u64) -> u64 {
    table_bytes.min(MERGE_BYTES_MAX) + BRAKE_BYTES
}

/// The tables of an open store.
pub(super) struct Tree {
    /// The store, for errors.
    store: PathBuf,
    folder: PathBuf,
    inner: AnyTree,
    table_bytes: u64,
    /// Of the tables that were flushed since it was opened.
    filters: Mutex<RunFilters>,
    /// Flushes and compactions that are under way.
    writing: AtomicUsize,
}

impl Tree {
    /// Makes an empty tree.
    pub(super) fn create(
        store: &Path,
        folder: &Path,
        config: &LocalConfig,
    ) -> Result<(), StorageError> {
        Tree::open(store, folder, config, None).map(drop)
    }

    /// Opens the tree in `folder`, which removes files that its list does not name.
    pub(super) fn open(
        store: &Path,
        folder: &Path,
        config: &LocalConfig,
        upkeep: Option<&Arc<Upkeep>>,
    ) -> Result<Tree, StorageError> {
        let engine = Config::new(folder, Default::default(), Default::default())
            .use_cache(Arc::new(Cache::with_capacity_bytes(config.cache_bytes)))
            .with_compaction_filter_factory(upkeep.map(|upkeep| Watch::over(upkeep, folder)));
        let inner = shaped(engine).open().map_err(|error| explain(store, error))?;
        let (store, folder) = (store.to_owned(), folder.to_owned());
        let (table_bytes, writing) = (config.table_bytes, AtomicUsize::new(0));
        Ok(Tree { store, folder, inner, table_bytes, filters: Mutex::default(), writing })
    }

    /// The tables that there are now.
    pub(super) fn tables(&self) -> Tables {
        Tables::of(&self.inner, &mut self.filters())
    }

    /// Makes a table of memtables. One at a time.
    pub(super) fn flush(&self, memtables: &[Arc<Memtable>]) -> Result<(), StorageError> {
        self.write(|tree| {
            let sources = memtables.iter().map(|memtable| memtable.all().map(Ok)).collect();
            // Of each key only the newest write.
            let rows = MvccStream::new(Merger::new(sources));
            let (mut hashes, mut back) = (Vec::new(), WriteBack::new(&self.folder));
            let rows = rows.inspect(|row| {
                if let Ok(row) = row {
                    hashes.push(key_hash(&row.key.user_key));
                    back.add(row.key.user_key.len() + row.value.len());
                }
            });
            let Some((tables, _)) = tree.flush_to_tables(rows)? else { return Ok(()) };
            let filter = Arc::new(RunFilter::of(&hashes));
            // No one lists the new tables without it.
            let mut filters = self.filters();
            tree.register_tables(&tables, None, None, &[], NOTHING_OLDER)?;
            filters.extend(tables.iter().map(|table| (table.id(), Arc::clone(&filter))));
            Ok(())
        })
    }

    fn filters(&self) -> MutexGuard<'_, RunFilters> {
        self.filters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the compaction that is most due, where runs of small tables are due from this
    /// many on.
    pub(super) fn merge(&self, small_runs: u8) -> Result<(), StorageError> {
        let strategy = Leveled::default()
            .with_l0_threshold(small_runs)
            .with_table_target_size(self.table_bytes);
        self.write(|tree| tree.compact(Arc::new(strategy), NOTHING_OLDER))
    }

    /// Compacts all tables, dropping what was replaced and deleted.
    pub(super) fn merge_all(&self) -> Result<(), StorageError> {
        self.write(|tree| tree.major_compact(self.table_bytes, NOTHING_OLDER))
    }

    /// Drops the tables that hold nothing but keys of `range`.
    ///
    /// The table with the commit record is never among them, as no range contains the
    /// reserved keys; so the newest commit in the tables stays the same.
    pub(super) fn drop_tables(&self, range: &KeyRange) -> Result<(), StorageError> {
        let Some((start, end)) = range.visible() else {
            return Ok(());
        };
        self.explained(self.inner.drop_range(start..end))
    }

    /// Writes tables, and leaves nothing of those that could not be finished.
    fn write(
        &self,
        write: impl FnOnce(&AnyTree) -> lsm_tree::Result<()>,
    ) -> Result<(), StorageError> {
        self.writing.fetch_add(1, Ordering::AcqRel);
        let first = self.inner.get_next_table_id();
        let written = write(&self.inner);
        let alone = self.writing.fetch_sub(1, Ordering::AcqRel) == 1;
        if written.is_err() && alone {
            self.remove_leftovers(first);
        }
        self.explained(written)
    }

    /// Removes the files of a flush or compaction that failed: tables that were numbered
    /// since and are not in the list. When another one is under way, its tables are not in
    /// the list either: then they stay until the store is opened the next time.
    fn remove_leftovers(&self, first: u64) {
        let (next, tables) = (self.inner.get_next_table_id(), self.tables());
        for id in first..next {
            let path = self.folder.join("tables").join(id.to_string());
            if tables.iter().all(|table| table.id() != id) && path.exists() {
                let removed = std::fs::remove_file(&path);
                tracing::info!(table = id, ?removed, "removed an unfinished table");
            }
        }
    }

    fn explained<T>(&self, result: lsm_tree::Result<T>) -> Result<T, StorageError> {
        result.map_err(|error| explain(&self.store, error))
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// How tables are written.
///
/// Filters stay on at every level: creating an item looks for a key that is
/// usually not there. All tables are compressed. `docs/design/engine.md` has the figures.
///
/// A table's filter and index are megabytes long. In the first level they stay in memory;
/// below they are partitioned into blocks, because there a lookup would otherwise read all
/// of them whenever they are not in the cache. (Pinning does not help: the engine forgets
/// it for these levels when it is opened.)
fn shaped(config: Config) -> Config {
    let filter = |rate| FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(rate));
    config
        .data_block_restart_interval_policy(RestartIntervalPolicy::new([10, 16]))
        .filter_policy(FilterPolicy::new([filter(14.0), filter(10.0)]))
        .filter_block_partitioning_policy(PinningPolicy::new([false, true]))
        .index_block_partitioning_policy(PinningPolicy::new([false, true]))
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
}

pub(super) fn damaged(path: &Path, detail: String) -> StorageError {
    StorageError::Damaged { path: path.to_owned(), detail }
}

/// The engine's errors by remedy.
pub(super) fn explain(path: &Path, error: lsm_tree::Error) -> StorageError {
    use std::io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
    let lsm_tree::Error::Io(source) = error else {
        return damaged(path, error.to_string());
    };
    // A file that is missing or too short is damage, not a transient error.
    if matches!(source.kind(), InvalidData | NotFound | UnexpectedEof) {
        return damaged(path, source.to_string());
    }
    StorageError::io(format!("use the files in {}", path.display()), source)
}
