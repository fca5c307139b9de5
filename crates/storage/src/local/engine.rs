//! fjall below the committer: one keyspace, one batch per commit.
//!
//! A batch with a durability set is synced before the engine inserts it into
//! memory, so nothing becomes readable before it is durable. What the engine does
//! not give is an exact snapshot at any moment: finishing a flush or a compaction
//! moves the visible sequence number past a batch that is still being inserted,
//! and a snapshot taken then sees it grow. Between two commits there is no such
//! batch, so the committer takes a snapshot there and views are clones of it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

use bytes::Bytes;
use fjall::compaction::Leveled;
use fjall::compaction::filter::Factory;
use fjall::config::{
    BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry, PartitioningPolicy,
};
use fjall::{
    AbstractTree, CompressionType, Database, DatabaseBuilder, Keyspace, KeyspaceCreateOptions,
    PersistMode, Readable, Snapshot,
};

use super::disk_space::{self, BRAKE_BYTES, FLOOR_BYTES, MERGE_BYTES_MAX, RELIEF_BYTES};
use super::inspect::Inspection;
use super::upkeep::{Upkeep, Watch};
use super::view::LocalView;
use super::watermark::{CommitWatermark, WatermarkFile};
use super::{LocalConfig, files, journal, record};
use crate::committer::{Engine, MergedBatch};
use crate::{Durability, KeyRange, StorageError, VerifyReport};

const DATA_NAME: &str = "data";

/// Memtables that may wait to be flushed while another one fills. The engine itself stalls
/// commits at four of them, without end even when the thread that would flush them is gone;
/// we stall before it, where it can be observed.
const SEALED_MEMTABLES_MAX: usize = 1;

/// The same for runs of small tables, where the engine's limit is 30.
const SMALL_RUNS_MAX: usize = 24;

/// Runs of small tables from which on a compaction is due. Each of them is one more place
/// where a reader looks; but whatever is there when they are merged into the next level is
/// rewritten with it, so that the more of them are merged at once, the less is written.
const SMALL_RUNS_DUE: u8 = 12;

/// The same while disk space is short: old versions and deletions are dropped sooner, and a
/// compaction takes less space.
const SMALL_RUNS_DUE_SHORT: u8 = 4;

/// Free bytes below which disk space is short: several of the largest compactions.
const SHORT_BYTES: u64 = 4 * MERGE_BYTES_MAX;

fn small_runs_due(free: u64) -> u8 {
    if free < SHORT_BYTES { SMALL_RUNS_DUE_SHORT } else { SMALL_RUNS_DUE }
}

/// How long to wait before looking again whether the engine has caught up.
const STALL_STEP: Duration = Duration::from_millis(2);

/// Steps to wait for a running compaction that occupies the space that is asked for: it
/// gives back more. Half a minute is some gigabytes; writers wait as they do for a slow
/// disk.
const MERGE_STEPS_MAX: usize = 15_000;

/// Steps to wait for another user of the files.
const BUSY_STEPS_MAX: usize = 20;

/// Steps to wait for readers before the engine is reopened: first alongside new ones, then
/// blocking them. Views are short-lived, so this is rarely used up.
const READERS_STEPS_MAX: usize = 250;

/// Bytes in journals from which on emptying them is worth reopening the engine.
const JOURNALS_BYTES_MIN: u64 = 8 << 20;

/// Bytes written between two measurements of the tables, each of which asks every table.
const LOOK_EVERY_BYTES: u64 = 1 << 20;

/// Waits in real time, simulated or not, because the engine's threads live in it.
fn step() {
    std::thread::park_timeout(STALL_STEP);
}

/// Journals kept before the engine forces a flush. Bounds the replay after a
/// crash; the engine takes no less than 64 MiB.
const JOURNALS_BYTES_MAX: u64 = 256 << 20;

/// Makes the engine's part of a new store.
pub(super) fn create(path: &Path, config: &LocalConfig) -> Result<(), StorageError> {
    let builder = builder(path, config, config.worker_threads.max(1));
    let database = builder.open().map_err(|error| explain(path, error))?;
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

/// Without threads, the engine neither flushes nor compacts.
fn builder(path: &Path, config: &LocalConfig, threads: usize) -> DatabaseBuilder<Database> {
    Database::builder(path)
        .cache_size(config.cache_bytes)
        .max_journaling_size(JOURNALS_BYTES_MAX)
        .worker_threads_unchecked(threads)
}

/// A strategy by which the engine never compacts by itself: at its largest threshold and
/// with tables of a tebibyte, nothing is ever due. `upkeep.rs` says why.
fn idle() -> Leveled {
    Leveled::default().with_l0_threshold(u8::MAX).with_table_target_size(1 << 40)
}

/// Opens a copy of the store at `path` for reading only.
pub(super) fn show(
    path: &Path,
    copy: &Path,
    commit: u64,
    config: &LocalConfig,
) -> Result<Published, StorageError> {
    let handles = Handles::open_in(path, copy, config, builder(copy, config, 0))?;
    handles.check_commit(commit)?;
    let published = Published::new(path);
    published.publish(Availability::Open(handles.state()));
    Ok(published)
}

/// Settings that the engine keeps with the keyspace.
///
/// Filters stay on at every level: creating an item looks for a key that is
/// usually not there. Tables are compressed from the second level on; those of the first
/// are rewritten too soon to be worth it. `docs/design/engine.md` has the figures.
///
/// A table's filter and index are megabytes long. In the first level they stay in memory;
/// below they are partitioned into blocks, because there a lookup would otherwise read all
/// of them whenever they are not in the cache. (Pinning does not help: the engine forgets
/// it for these levels when it is opened.)
fn options(config: &LocalConfig) -> KeyspaceCreateOptions {
    use CompressionType::{Lz4, None};
    let filter = |rate| FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(rate));
    KeyspaceCreateOptions::default()
        .compaction_strategy(Arc::new(idle()))
        .max_memtable_size(config.memtable_bytes)
        .filter_policy(FilterPolicy::new([filter(14.0), filter(10.0)]))
        .filter_block_partitioning_policy(PartitioningPolicy::new([false, true]))
        .index_block_partitioning_policy(PartitioningPolicy::new([false, true]))
        .data_block_compression_policy(CompressionPolicy::new([None, Lz4]))
}

/// What readers see: the newest durable and complete state.
pub(super) struct Published {
    pub(super) path: PathBuf,
    availability: RwLock<Availability>,
}

enum Availability {
    Open(State),
    /// The engine could not be reopened yet, for want of disk space.
    Down,
    Closed,
}

struct State {
    handles: Handles,
    /// None before the first commit.
    snapshot: Option<Snapshot>,
}

/// The engine of an open store. It runs as long as there is a handle, so a handle must be
/// dropped before the store is closed.
#[derive(Clone)]
pub(super) struct Handles {
    path: PathBuf,
    database: Database,
    data: Keyspace,
    table_bytes: u64,
    /// Held by every handle and every view, so that they can be counted.
    users: Arc<()>,
}

impl Published {
    pub(super) fn new(path: &Path) -> Published {
        Published { path: path.to_owned(), availability: RwLock::new(Availability::Closed) }
    }

    pub(super) fn view(&self) -> Result<LocalView, StorageError> {
        self.with(|state| {
            let Handles { data, users, .. } = &state.handles;
            let (data, users) = (data.clone(), Arc::clone(users));
            LocalView::new(self.path.clone(), data, state.snapshot.clone(), users)
        })
    }

    pub(super) fn handles(&self) -> Result<Handles, StorageError> {
        self.with(|state| state.handles.clone())
    }

    pub(super) fn table_bytes(&self) -> Result<u64, StorageError> {
        self.with(|state| state.handles.data.disk_space())
    }

    /// Reads every byte of every table and every row.
    pub(super) fn verify(&self) -> Result<VerifyReport, StorageError> {
        let view = self.view()?;
        let files = view.check_tables()?;
        Ok(VerifyReport { files, ..crate::scan::verify_rows(&view)? })
    }

    /// Shows nothing from now on.
    pub(super) fn close(&self) {
        self.publish(Availability::Closed);
    }

    /// Asks the engine whether one of its threads has failed.
    pub(super) fn check_engine(&self) -> Result<(), StorageError> {
        // Under the lock: a handle of our own could outlive closing, and the engine runs as
        // long as there is a handle.
        self.with(|state| state.handles.check())?
    }

    fn with<T>(&self, work: impl FnOnce(&State) -> T) -> Result<T, StorageError> {
        match &*self.availability.read().unwrap_or_else(PoisonError::into_inner) {
            Availability::Open(state) => Ok(work(state)),
            Availability::Down => {
                Err(StorageError::Full { detail: "the store could not be opened again".to_owned() })
            }
            Availability::Closed => Err(StorageError::Closed),
        }
    }

    fn publish(&self, availability: Availability) {
        // The old state is dropped outside the lock: it may be the last handle.
        let mut slot = self.availability.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *slot, availability);
        drop(slot);
        drop(before);
    }

    /// Waits until only the committer uses the engine, and blocks all others from then on.
    /// `None` when that takes too long: someone may hold a view and wait for another one.
    fn quiet(&self) -> Option<RwLockWriteGuard<'_, Availability>> {
        /// The engine's own handle and the published one.
        const OURS: usize = 2;
        let is_quiet = |availability: &Availability| match availability {
            Availability::Open(state) => Arc::strong_count(&state.handles.users) <= OURS,
            Availability::Down | Availability::Closed => true,
        };
        let lock = || self.availability.write().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..READERS_STEPS_MAX {
            let availability = lock();
            if is_quiet(&availability) {
                return Some(availability);
            }
            drop(availability);
            step();
        }
        let availability = lock();
        for _ in 0..READERS_STEPS_MAX {
            if is_quiet(&availability) {
                return Some(availability);
            }
            step();
        }
        None
    }
}

impl fmt::Debug for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Published").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Handles {
    /// Opens the engine's part of a store that was inspected.
    fn open(
        path: &Path,
        config: &LocalConfig,
        upkeep: &Arc<Upkeep>,
    ) -> Result<Handles, StorageError> {
        let watch: Arc<dyn Factory> = Arc::new(Watch(Arc::clone(upkeep)));
        let assign = move |name: &str| (name == DATA_NAME).then(|| Arc::clone(&watch));
        let builder = builder(path, config, config.worker_threads.max(1));
        let builder = builder.with_compaction_filter_factories(Arc::new(assign));
        Handles::open_in(path, path, config, builder)
    }

    /// Opens the engine in `folder`, and reports errors for `path`.
    fn open_in(
        path: &Path,
        folder: &Path,
        config: &LocalConfig,
        builder: DatabaseBuilder<Database>,
    ) -> Result<Handles, StorageError> {
        restore_engine_lock(folder)?;
        let database = builder.open().map_err(|error| explain(path, error))?;
        if !database.keyspace_exists(DATA_NAME) {
            return Err(damaged(path, "the engine lost its keyspace".to_owned()));
        }
        let data = database.keyspace(DATA_NAME, || options(config));
        let data = data.map_err(|error| explain(path, error))?;
        let (path, table_bytes, users) = (path.to_owned(), config.table_bytes, Arc::default());
        Ok(Handles { path, database, data, table_bytes, users })
    }

    /// The commit that the engine has, which must be the one that was found before.
    fn check_commit(&self, commit: u64) -> Result<(), StorageError> {
        let found = last_commit(&self.path, &self.database, &self.data)?;
        if found == commit {
            return Ok(());
        }
        let detail = format!("commit {commit} was found before opening, {found} after");
        Err(damaged(&self.path, detail))
    }

    /// The state for views from now on. Called between commits only.
    fn state(&self) -> State {
        let snapshot = self.database.snapshot();
        // Number 0 means "none" to the engine when it looks for the oldest snapshot: while
        // one is open, it drops what later ones show.
        let snapshot = (snapshot.seqno() > 0).then_some(snapshot);
        State { handles: self.clone(), snapshot }
    }

    /// Free bytes that the next compaction needs, whichever it is.
    pub(super) fn merge_needs(&self) -> u64 {
        self.data.disk_space().min(MERGE_BYTES_MAX) + BRAKE_BYTES
    }

    /// Runs the compaction that is most due, given free disk space. Returns whether anything
    /// changed.
    pub(super) fn merge(&self, free: u64) -> Result<bool, StorageError> {
        let strategy = Leveled::default()
            .with_l0_threshold(small_runs_due(free))
            .with_table_target_size(self.table_bytes);
        let before = self.data.tree.current_version().id();
        let oldest = self.database.supervisor.snapshot_tracker.get_seqno_safe_to_gc();
        let merged = self.data.tree.compact(Arc::new(strategy), oldest);
        self.explained(merged.map_err(fjall::Error::from))?;
        Ok(self.data.tree.current_version().id() != before)
    }

    /// Persisting what is persisted already costs next to nothing and is the one call that
    /// reports a failed flush or compaction.
    fn check(&self) -> Result<(), StorageError> {
        self.explained(self.database.persist(PersistMode::Buffer))
    }

    /// Flushes memtables to tables.
    pub(super) fn flush(&self) -> Result<(), StorageError> {
        self.explained(self.data.rotate_memtable())?;
        while self.data.tree.sealed_memtable_count() > 0 {
            self.check()?;
            step();
        }
        Ok(())
    }

    /// Waits until flushes and compactions have caught up.
    fn await_upkeep(&self, upkeep: &Upkeep, free: u64) -> Result<(), StorageError> {
        loop {
            let runs = self.data.tree.l0_run_count();
            if runs >= usize::from(small_runs_due(free)) {
                upkeep.want_merge();
            }
            let flushed = self.data.tree.sealed_memtable_count() <= SEALED_MEMTABLES_MAX;
            if flushed && runs <= SMALL_RUNS_MAX {
                return Ok(());
            }
            self.check()?;
            upkeep.check()?;
            let needed = self.merge_needs();
            if runs > SMALL_RUNS_MAX && !upkeep.is_merging() && upkeep.disk.free() < needed {
                return Err(upkeep.disk.full(needed));
            }
            step();
        }
    }

    /// Drops the tables that hold nothing but keys of `range`. Returns whether there were
    /// any.
    ///
    /// The table with the commit record is never among them, as no range contains the
    /// reserved keys; so the newest commit in the tables stays the same.
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
            // What was written about the range before has to be as durable as its drop.
            self.explained(self.database.persist(PersistMode::SyncAll))?;
            let dropped = self.data.tree.drop_range(start..end);
            self.explained(dropped.map_err(fjall::Error::from))?;
        }
        Ok(inside)
    }

    /// Compacts all tables, dropping what no view can ask for any more.
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
    upkeep: Arc<Upkeep>,
    open: Option<Handles>,
    /// Whether the disk was full when the engine wrote to it: it takes nothing more and has
    /// to be reopened.
    stopped: bool,
    commit: u64,
    watermark: WatermarkFile,
    config: LocalConfig,
    /// Bytes of all tables, as last measured.
    tables: u64,
    tables_age: u64,
    /// Free bytes, as last looked up.
    free: u64,
}

impl LocalEngine {
    /// Opens the engine and checks it against what the inspection found.
    pub(super) fn open(
        published: &Arc<Published>,
        upkeep: &Arc<Upkeep>,
        commit: u64,
        mut watermark: WatermarkFile,
        config: LocalConfig,
    ) -> Result<LocalEngine, StorageError> {
        if upkeep.disk.free() < RELIEF_BYTES {
            upkeep.disk.give_up_reserve();
        }
        let handles = Handles::open(&published.path, &config, upkeep)?;
        handles.check_commit(commit)?;
        watermark.start_from(commit)?;
        let engine = LocalEngine {
            published: Arc::clone(published),
            upkeep: Arc::clone(upkeep),
            open: Some(handles),
            stopped: false,
            commit,
            watermark,
            config,
            tables: 0,
            tables_age: u64::MAX,
            free: u64::MAX,
        };
        engine.publish()?;
        Ok(engine)
    }

    fn handles(&self) -> Result<&Handles, StorageError> {
        self.open.as_ref().ok_or(StorageError::Closed)
    }

    /// Takes the snapshot that views get from now on. Called between commits only.
    fn publish(&self) -> Result<(), StorageError> {
        self.published.publish(Availability::Open(self.handles()?.state()));
        Ok(())
    }

    fn write(&self, writes: &MergedBatch, commit: u64) -> Result<(), StorageError> {
        let Handles { database, data, .. } = self.handles()?;
        let mut batch = database.batch().durability(Some(match self.config.durability {
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

    /// Free bytes without which nothing more is written: space for all memtables to be
    /// flushed, and for the tables to be compacted.
    fn needs(&mut self, relief: bool) -> Result<u64, StorageError> {
        if relief {
            return Ok(RELIEF_BYTES);
        }
        let handles = self.open.as_ref().ok_or(StorageError::Closed)?;
        if self.tables_age >= LOOK_EVERY_BYTES {
            self.tables = handles.data.disk_space();
            self.tables_age = 0;
        }
        let merge = self.tables.min(MERGE_BYTES_MAX);
        Ok(merge + handles.database.write_buffer_size() + FLOOR_BYTES)
    }

    /// Checks for `bytes` free bytes beyond what is needed anyway, and frees space where
    /// that is possible.
    fn find_room(&mut self, bytes: u64, relief: bool) -> Result<(), StorageError> {
        let (mut steps, mut busy, mut tried) = (0, 0, false);
        loop {
            let (free, needed) = (self.upkeep.disk.free(), self.needs(relief)? + bytes);
            self.free = free;
            if free >= needed {
                if !relief {
                    self.upkeep.disk.restore_reserve(free - needed);
                }
                return Ok(());
            }
            self.tables_age = u64::MAX;
            if steps == 0 {
                // What was flushed since the last commit may make a compaction due.
                self.upkeep.want_merge();
            }
            if self.may_give_back()? && steps < MERGE_STEPS_MAX {
                steps += 1;
                step();
            } else if !tried && self.is_worth_reopening()? {
                // Other users of the files are brief, unless they wait for us.
                busy += 1;
                tried = self.reopen()? || busy > BUSY_STEPS_MAX;
                step();
            } else if !(relief && self.upkeep.disk.give_up_reserve()) {
                return Err(self.upkeep.disk.full(needed));
            }
        }
    }

    /// Whether flushes and compactions in progress may still give space back. An engine
    /// that has failed finishes none.
    fn may_give_back(&self) -> Result<bool, StorageError> {
        let handles = self.handles()?;
        let flushing = handles.data.tree.sealed_memtable_count() > 0 && handles.check().is_ok();
        Ok(flushing || self.upkeep.may_give_back())
    }

    /// Frees space for a full compaction, as far as that is possible.
    pub(super) fn make_room(&mut self) -> Result<(), StorageError> {
        self.recover(true)?;
        if self.upkeep.disk.free() < self.handles()?.merge_needs() && self.is_worth_reopening()? {
            self.reopen()?;
        }
        if self.upkeep.disk.free() < self.handles()?.merge_needs() {
            self.upkeep.disk.give_up_reserve();
        }
        Ok(())
    }

    /// Whether reopening the engine would give space back: it never shortens its journal,
    /// and does not remove the leftovers of an aborted compaction.
    fn is_worth_reopening(&self) -> Result<bool, StorageError> {
        let journals = journal::list(&self.published.path)?;
        let sizes = journals.iter().filter_map(|journal| std::fs::metadata(&journal.path).ok());
        let bytes: u64 = sizes.map(|found| disk_space::allocated(&found)).sum();
        Ok(bytes >= JOURNALS_BYTES_MIN || self.upkeep.has_leftovers())
    }

    /// Reopens an engine that has stopped, once there is space.
    fn recover(&mut self, relief: bool) -> Result<(), StorageError> {
        if !self.stopped && self.open.is_some() {
            return Ok(());
        }
        if self.open.is_none() && !self.stopped {
            return Err(StorageError::Closed);
        }
        let needed = FLOOR_BYTES;
        if self.upkeep.disk.free() < needed && relief {
            self.upkeep.disk.give_up_reserve();
        }
        if self.upkeep.disk.free() < needed {
            return Err(self.upkeep.disk.full(needed));
        }
        if self.reopen()? {
            tracing::info!(commit = self.commit, "the engine was reopened");
            return Ok(());
        }
        Err(StorageError::Full { detail: "the store is being rewritten".to_owned() })
    }

    /// Closes the engine and opens it again, as a restart would. Returns whether it was
    /// possible: not while files are being rewritten. A long-running reader makes it fail
    /// for now.
    fn reopen(&mut self) -> Result<bool, StorageError> {
        let (upkeep, published) = (Arc::clone(&self.upkeep), Arc::clone(&self.published));
        let Some(_alone) = upkeep.try_alone() else { return Ok(false) };
        if !self.stopped {
            let flushed = self.handles()?.flush();
            self.classify(flushed)?;
        }
        let Some(mut availability) = published.quiet() else {
            return Err(StorageError::Full { detail: "the store is being read".to_owned() });
        };
        // From here on there is no return: what fails is tried again by the next call.
        self.stopped = true;
        self.open = None;
        *availability = Availability::Down;
        let inspection = Inspection::of(&published.path)?.without_commits_after(self.commit)?;
        inspection.check_watermark(CommitWatermark::load(&published.path)?)?;
        inspection.tidy()?;
        let handles = Handles::open(&published.path, &self.config, &upkeep)?;
        handles.check_commit(self.commit)?;
        *availability = Availability::Open(handles.state());
        self.open = Some(handles);
        self.stopped = false;
        self.tables_age = u64::MAX;
        upkeep.forget_leftovers();
        upkeep.want_merge();
        Ok(true)
    }

    /// Distinguishes a failure that more space would have prevented from others. The engine
    /// does not say why one of its threads has failed, but then the disk is still full:
    /// what could not be finished stays there until the engine is reopened.
    fn classify<T>(&mut self, result: Result<T, StorageError>) -> Result<T, StorageError> {
        let full = match &result {
            Err(StorageError::Full { .. }) => true,
            Err(StorageError::Failed { .. }) => {
                let needed = self.needs(false)?;
                self.upkeep.disk.free() < needed
            }
            Ok(_) | Err(_) => false,
        };
        match result {
            Err(StorageError::Failed { detail }) if full => {
                self.stopped = true;
                Err(StorageError::Full { detail })
            }
            Err(error) if full => {
                self.stopped = true;
                Err(error)
            }
            other => other,
        }
    }
}

impl Engine for LocalEngine {
    fn admit(&mut self, bytes: usize, relief: bool) -> Result<(), StorageError> {
        self.upkeep.check()?;
        if let Some(handles) = self.open.as_ref().filter(|_| !self.stopped) {
            let checked = handles.check();
            if let Err(error) = self.classify(checked)
                && !self.stopped
            {
                return Err(error);
            }
        }
        self.recover(relief)?;
        // Once in the journal and once in a table.
        let bytes = 2 * bytes as u64;
        self.find_room(bytes, relief)?;
        self.tables_age = self.tables_age.saturating_add(bytes);
        Ok(())
    }

    fn commit(&mut self, writes: &MergedBatch) -> Result<(), StorageError> {
        if self.stopped {
            return Err(StorageError::Full { detail: "the store waits for room".to_owned() });
        }
        let ready = self.handles()?.await_upkeep(&self.upkeep, self.free);
        self.classify(ready)?;
        let commit = self.commit + 1;
        let written = self.write(writes, commit);
        self.classify(written)?;
        self.commit = commit;
        self.publish()?;
        let advanced = self.watermark.advance(commit);
        self.classify(advanced)
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
        let flushed = match self.handles() {
            Ok(handles) if !self.stopped => handles.flush(),
            Ok(_) | Err(_) => Ok(()),
        };
        let flushed = self.classify(flushed);
        self.published.publish(Availability::Closed);
        self.open = None;
        if self.stopped {
            tracing::warn!("closed without tidying up: no space left on device");
            return self.watermark.sync();
        }
        flushed?;
        let inspection = Inspection::of(&self.published.path)?;
        if inspection.commit != self.commit {
            let (found, commit) = (inspection.commit, self.commit);
            let detail = format!("commit {commit} was written but {found} was found on closing");
            return Err(damaged(&self.published.path, detail));
        }
        inspection.tidy()?;
        self.watermark.end_with(self.commit)
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

/// The engine's lock file is empty, so a missing one can be recreated. Our own lock is
/// held.
fn restore_engine_lock(path: &Path) -> Result<(), StorageError> {
    let lock = path.join("lock");
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(&lock);
    opened.map(drop).map_err(|source| files::during("create", &lock, source))
}

fn damaged(path: &Path, detail: String) -> StorageError {
    StorageError::Damaged { path: path.to_owned(), detail }
}

/// The engine's errors by remedy.
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

/// A file that is missing or too short is damage, not a transient error.
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
