//! fjall behind the committer: one keyspace, one batch per commit.
//!
//! A batch with a durability set is synced before the engine inserts it into
//! memory, so nothing becomes readable before it is durable. What the engine does
//! not give is an exact snapshot at any moment: finishing a flush or a compaction
//! moves the visible sequence number past a batch that is still being inserted,
//! and a snapshot taken then sees it grow. Between two commits there is no such
//! batch, so the committer takes a snapshot there and views are clones of it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use fjall::compaction::Leveled;
use fjall::config::{
    BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry, PartitioningPolicy,
};
use fjall::{
    AbstractTree, CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode,
    Readable, Snapshot,
};

use super::inspect::Inspection;
use super::view::LocalView;
use super::witness::Witness;
use super::{LocalConfig, files, record};
use crate::committer::{Engine, Joined};
use crate::{Durability, KeyRange, StorageError};

const DATA_NAME: &str = "data";

/// The engine stalls commits without end at four waiting memtables, also when
/// the thread that would flush them is gone. We stall before it, where that shows.
const SEALED_MEMTABLES_MAX: usize = 2;

/// The same for runs of small tables, where the engine's limit is 30.
const SMALL_RUNS_MAX: usize = 24;

/// How long to wait before looking again whether the engine has caught up.
const STALL_STEP: Duration = Duration::from_millis(2);

/// Waits in real time, simulated or not, because the engine's threads live in it.
fn step() {
    std::thread::park_timeout(STALL_STEP);
}

/// Journals kept before the engine forces a flush. Bounds the replay after a
/// crash; the engine takes no less than 64 MiB.
const JOURNALS_BYTES_MAX: u64 = 128 << 20;

/// Makes the engine's part of a new store.
pub(super) fn create(path: &Path, config: &LocalConfig) -> Result<(), StorageError> {
    let database = database(path, config).map_err(|error| explain(path, error))?;
    let data = database.keyspace(DATA_NAME, || options(config));
    data.map_err(|error| explain(path, error))?;
    Ok(())
}

/// The engine's files that never change after creation.
pub(super) fn fixed_files(path: &Path) -> Result<Vec<String>, StorageError> {
    let catalogue = path.join("keyspaces/0");
    let pointer = files::read(&catalogue.join("current"))?;
    let version = pointer.first_chunk().map_or(0, |id| u64::from_le_bytes(*id));
    let mut names = vec!["version".to_owned(), "keyspaces/0/current".to_owned()];
    names.push(format!("keyspaces/0/v{version}"));
    for (name, _) in files::list(&catalogue.join("tables"))? {
        names.push(format!("keyspaces/0/tables/{name}"));
    }
    Ok(names)
}

fn database(path: &Path, config: &LocalConfig) -> fjall::Result<Database> {
    Database::builder(path)
        .cache_size(config.cache_bytes)
        .max_journaling_size(JOURNALS_BYTES_MAX)
        .worker_threads(config.worker_threads.max(1))
        .open()
}

/// Settings that the engine keeps with the keyspace.
///
/// Filters stay on at every level: creating an item looks for a key that is
/// usually not there. Tables are compressed from the third level on, where most
/// of the data is; above, they are rewritten too soon to be worth it.
///
/// What a table is found by, its filter and its index, is megabytes long. In the first
/// level it stays in memory; below it is cut into blocks of its own, because there a
/// look into a table would otherwise read all of it, whenever it is not in the cache.
/// (Pinning does not help: the engine forgets it for these levels when it is opened.)
fn options(config: &LocalConfig) -> KeyspaceCreateOptions {
    use CompressionType::{Lz4, None};
    let filter = |rate| FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(rate));
    let strategy = Leveled::default().with_table_target_size(config.table_bytes);
    KeyspaceCreateOptions::default()
        .compaction_strategy(Arc::new(strategy))
        .max_memtable_size(config.memtable_bytes)
        .filter_policy(FilterPolicy::new([filter(14.0), filter(10.0)]))
        .filter_block_partitioning_policy(PartitioningPolicy::new([false, true]))
        .index_block_partitioning_policy(PartitioningPolicy::new([false, true]))
        .data_block_compression_policy(CompressionPolicy::new([None, None, Lz4]))
}

/// What readers see: the newest state that is durable and whole.
pub(super) struct Published {
    pub(super) path: PathBuf,
    state: RwLock<Option<State>>,
}

struct State {
    handles: Handles,
    /// None before the first commit.
    snapshot: Option<Snapshot>,
}

/// The engine of an open store. It runs on as long as there is a handle, so whoever
/// takes one lets go of it before the store is closed.
#[derive(Clone)]
pub(super) struct Handles {
    path: PathBuf,
    database: Database,
    data: Keyspace,
    table_bytes: u64,
}

impl Published {
    pub(super) fn new(path: &Path) -> Published {
        Published { path: path.to_owned(), state: RwLock::new(None) }
    }

    pub(super) fn view(&self) -> Result<LocalView, StorageError> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let state = state.as_ref().ok_or(StorageError::Closed)?;
        let data = state.handles.data.clone();
        Ok(LocalView::new(self.path.clone(), data, state.snapshot.clone()))
    }

    pub(super) fn handles(&self) -> Result<Handles, StorageError> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.as_ref().map(|state| state.handles.clone()).ok_or(StorageError::Closed)
    }

    pub(super) fn table_bytes(&self) -> Result<u64, StorageError> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.as_ref().map(|state| state.handles.data.disk_space()).ok_or(StorageError::Closed)
    }

    /// Asks the engine whether one of its threads has failed.
    pub(super) fn check_engine(&self) -> Result<(), StorageError> {
        // Under the lock: a handle of our own could outlive closing, and the engine
        // runs on as long as there is a handle.
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        match state.as_ref() {
            Some(state) => state.handles.check(),
            None => Err(StorageError::Closed),
        }
    }

    fn publish(&self, state: Option<State>) {
        // The old state is dropped outside the lock: it may be the last handle.
        let mut slot = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *slot, state);
        drop(slot);
        drop(before);
    }
}

impl fmt::Debug for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Published").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Handles {
    /// Persisting what is persisted already costs next to nothing and is the one call
    /// that tells of a failed flush or compaction.
    fn check(&self) -> Result<(), StorageError> {
        self.explained(self.database.persist(PersistMode::Buffer))
    }

    /// Turns what is in memory into tables.
    pub(super) fn flush(&self) -> Result<(), StorageError> {
        self.explained(self.data.rotate_memtable())?;
        while self.data.tree.sealed_memtable_count() > 0 {
            self.check()?;
            step();
        }
        Ok(())
    }

    /// Waits until the engine has caught up with flushing and compacting.
    fn await_room(&self) -> Result<(), StorageError> {
        while self.data.tree.sealed_memtable_count() > SEALED_MEMTABLES_MAX
            || self.data.tree.l0_run_count() > SMALL_RUNS_MAX
        {
            self.check()?;
            step();
        }
        Ok(())
    }

    /// Drops the tables that hold nothing but keys of `range`. Whether there were any.
    ///
    /// The table with the commit record is never among them, as no range has the
    /// reserved keys in it; so the tables go as far as they did.
    pub(super) fn drop_tables(&self, range: &KeyRange) -> Result<bool, StorageError> {
        let Some((start, end)) = range.visible() else {
            return Ok(false);
        };
        let version = self.data.tree.current_version();
        let inside = version.iter_tables().any(|table| {
            let keys = &table.metadata.key_range;
            **keys.min() >= *start && **keys.max() < *end
        });
        drop(version);
        if inside {
            // What was written about the range first has to be as durable as its end.
            self.explained(self.database.persist(PersistMode::SyncAll))?;
            let dropped = self.data.tree.drop_range(start..end);
            self.explained(dropped.map_err(fjall::Error::from))?;
        }
        Ok(inside)
    }

    /// Merges all tables, without what no view can ask for any more.
    pub(super) fn merge_tables(&self) -> Result<(), StorageError> {
        let tracker = &self.database.supervisor.snapshot_tracker;
        let merged = self.data.tree.major_compact(self.table_bytes, tracker.get_seqno_safe_to_gc());
        self.explained(merged.map_err(fjall::Error::from))
    }

    fn explained<T>(&self, result: fjall::Result<T>) -> Result<T, StorageError> {
        result.map_err(|error| explain(&self.path, error))
    }
}

pub(super) struct LocalEngine {
    published: Arc<Published>,
    open: Option<Handles>,
    commit: u64,
    witness: Witness,
    durability: Durability,
}

impl LocalEngine {
    /// Opens the engine and holds it to what the inspection found.
    pub(super) fn open(
        published: &Arc<Published>,
        commit: u64,
        mut witness: Witness,
        config: &LocalConfig,
    ) -> Result<LocalEngine, StorageError> {
        let path = &published.path;
        restore_engine_lock(path)?;
        let database = database(path, config).map_err(|error| explain(path, error))?;
        if !database.keyspace_exists(DATA_NAME) {
            return Err(damaged(path, "the engine lost its keyspace".to_owned()));
        }
        let data = database.keyspace(DATA_NAME, || options(config));
        let data = data.map_err(|error| explain(path, error))?;
        let found = last_commit(path, &database, &data)?;
        if found != commit {
            let detail = format!("commit {commit} was found before opening, {found} after");
            return Err(damaged(path, detail));
        }
        witness.start_from(commit)?;
        let table_bytes = config.table_bytes;
        let engine = LocalEngine {
            published: Arc::clone(published),
            open: Some(Handles { path: path.clone(), database, data, table_bytes }),
            commit,
            witness,
            durability: config.durability,
        };
        engine.publish();
        Ok(engine)
    }

    fn handles(&self) -> Result<&Handles, StorageError> {
        self.open.as_ref().ok_or(StorageError::Closed)
    }

    /// Takes the snapshot that views get from now on. Called between commits only.
    fn publish(&self) {
        let state = self.open.as_ref().map(|handles| {
            let snapshot = handles.database.snapshot();
            // Number 0 means "none" to the engine when it looks for the oldest snapshot:
            // while one is open, it lets go of what later ones show.
            let snapshot = (snapshot.seqno() > 0).then_some(snapshot);
            State { handles: handles.clone(), snapshot }
        });
        self.published.publish(state);
    }

    fn write(&self, writes: &Joined, commit: u64) -> Result<(), StorageError> {
        let Handles { database, data, .. } = self.handles()?;
        let mut batch = database.batch().durability(Some(match self.durability {
            Durability::Full => PersistMode::SyncData,
            Durability::Os => PersistMode::Buffer,
        }));
        for (key, value) in writes {
            match value {
                Some(value) => batch.insert(data, key.clone(), value.clone()),
                None => batch.remove(data, key.clone()),
            }
        }
        batch.insert(data, Bytes::from_static(record::KEY), record::encode(commit));
        batch.commit().map_err(|error| explain(&self.published.path, error))
    }
}

impl Engine for LocalEngine {
    fn commit(&mut self, writes: &Joined) -> Result<(), StorageError> {
        self.handles()?.await_room()?;
        let commit = self.commit + 1;
        self.write(writes, commit)?;
        self.commit = commit;
        self.publish();
        self.witness.testify(commit)
    }

    fn syncs_per_commit(&self) -> u64 {
        match self.durability {
            Durability::Full => 1,
            Durability::Os => 0,
        }
    }

    /// Leaves a folder that opens without replaying anything.
    fn close(&mut self) -> Result<(), StorageError> {
        let flushed = self.handles().and_then(Handles::flush);
        self.published.publish(None);
        self.open = None;
        self.witness.sync()?;
        flushed?;
        let inspection = Inspection::of(&self.published.path)?;
        if inspection.commit != self.commit {
            let (found, commit) = (inspection.commit, self.commit);
            let detail = format!("commit {commit} was written but {found} was found on closing");
            return Err(damaged(&self.published.path, detail));
        }
        inspection.tidy()
    }
}

impl fmt::Debug for LocalEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalEngine").field("commit", &self.commit).finish_non_exhaustive()
    }
}

/// Read through a snapshot, as views do: the engine may hold data that it does not
/// show.
fn last_commit(path: &Path, database: &Database, data: &Keyspace) -> Result<u64, StorageError> {
    let found = database.snapshot().get(data, record::KEY);
    match found.map_err(|error| explain(path, error))? {
        None => Ok(0),
        Some(value) => record::decode(&value)
            .ok_or_else(|| damaged(path, "the commit record cannot be read".to_owned())),
    }
}

/// The engine's lock file is empty, so a lost one is as good as new. Ours is held.
fn restore_engine_lock(path: &Path) -> Result<(), StorageError> {
    let lock = path.join("lock");
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(&lock);
    opened.map(drop).map_err(|source| files::during("create", &lock, source))
}

fn damaged(path: &Path, detail: String) -> StorageError {
    StorageError::Damaged { path: path.to_owned(), detail }
}

/// The engine's errors by what to do about them.
pub(super) fn explain(path: &Path, error: fjall::Error) -> StorageError {
    use fjall::Error::{Io, Locked, Poisoned, Storage};
    if let Io(source) | Storage(fjall::LsmError::Io(source)) = error {
        return explain_io(path, source);
    }
    if matches!(error, Locked) {
        return StorageError::InUse { path: path.to_owned() };
    }
    if matches!(error, Poisoned) {
        let detail = "a flush or compaction of the engine failed".to_owned();
        return StorageError::Failed { detail };
    }
    damaged(path, error.to_string())
}

/// A file that is missing or too short is damage, not a mood of the system.
fn explain_io(path: &Path, source: std::io::Error) -> StorageError {
    use std::io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
    if matches!(source.kind(), InvalidData | NotFound | UnexpectedEof) {
        return damaged(path, source.to_string());
    }
    StorageError::io(format!("use the files in {}", path.display()), source)
}

#[cfg(test)]
mod tests {
    use super::super::DATA_FOLDER;
    use super::*;

    #[test]
    fn data_is_where_the_format_says() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), &LocalConfig::default()).unwrap();
        assert!(folder.path().join(DATA_FOLDER).join("current").exists());
        let fixed = fixed_files(folder.path()).unwrap();
        assert!(fixed.len() >= 4, "{fixed:?}");
    }
}
