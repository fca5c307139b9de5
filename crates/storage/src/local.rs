//! A store in a folder on a local disk, with fjall as the engine.
//!
//! The engine brings the tree, the journal and the snapshots. This module adds
//! what the door promises beyond them:
//!
//! - *Nothing acknowledged is lost in silence.* Before the engine touches a folder it is
//!   inspected (`inspect.rs`); a commit number in every batch and a watermark outside the
//!   journal say what must be there.
//! - *Views are exact.* A view clones the snapshot that the committer took between
//!   two commits (`engine.rs`); the engine's own newest snapshot can show half a
//!   batch while a flush finishes.
//! - *A full disk is no trap.* Disk space is checked before the engine is touched
//!   (`disk_space.rs`), tables are compacted only while there is space (`upkeep.rs`), and
//!   an engine that ran into a full disk all the same is reopened when there is space
//!   again.
//! - *Creating never opens and opening never creates.* Opening to read writes nothing
//!   (`read_only.rs`).

pub(crate) mod decode;
mod disk_space;
mod engine;
pub(crate) mod files;
mod format;
mod inspect;
mod journal;
mod read_only;
mod record;
mod recover;
mod salvage;
mod tables;
mod upkeep;
mod view;
mod watermark;

use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use runtime::{Runtime, TaskHandle};

pub use self::disk_space::RESERVE;
use self::disk_space::{DiskSpace, MERGE_BYTES_MAX};
use self::engine::{Handles, LocalEngine, Published};
use self::format::Format;
pub use self::read_only::open_read_only;
use self::recover::Recovery;
use self::upkeep::Upkeep;
use self::watermark::WatermarkFile;
use crate::committer::{Committer, CommitterSession, Leader};
use crate::{
    ContentsVersion, Counters, Direction, Durability, KeyRange, Loss, ScanLimit, StorageError,
    Store, VerifyReport, View, WriteSession,
};

/// The engine's number of the one keyspace that holds all data.
const DATA_KEYSPACE: u64 = 1;
const DATA_FOLDER: &str = "keyspaces/1";

/// Bytes of a range above which compacting the store without it is considered.
const GARBAGE_BYTES_MIN: u64 = 1 << 20;

/// The range must be at least one part in four of the tables for that: compacting then
/// moves at most three bytes for each that it frees.
const GARBAGE_PART: u64 = 4;

/// How a local store behaves. Plain data; the defaults suit a laptop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalConfig {
    /// When a write counts as durable. Full by default.
    pub durability: Durability,

    /// Memory for blocks read from disk, 32 MiB by default. Filled as reads come,
    /// so an idle store does not use it.
    pub cache_bytes: u64,

    /// Writes gathered in memory before they become a table, 32 MiB by default;
    /// up to three times as much under load. Larger means fewer and larger
    /// compactions, but a longer replay after a crash. Fixed at creation.
    pub memtable_bytes: u64,

    /// Bytes that compactions put into one table, 64 MiB by default. Smaller means more
    /// files, and less around the ends of a range that is discarded. Fixed at creation, but
    /// for what [`Store::compact`] writes.
    pub table_bytes: u64,

    /// Threads of the engine, which flush, 1 by default. Tables are merged by another.
    pub worker_threads: usize,

    /// Bytes that the store may take on its disk, for tests of a full disk. The disk itself
    /// is the limit by default.
    pub disk_bytes_max: Option<u64>,

    /// Bytes held in reserve, so that a start and a drop find space on a disk that others
    /// have filled; less on a small disk. None by default.
    pub reserve_bytes: u64,

    /// What the caller's rows mean. Recorded at creation; a store that records another is
    /// refused. Zero by default.
    pub contents: ContentsVersion,

    /// Opens a store although acknowledged writes are known to be missing, or although that
    /// cannot be determined. Off by default: a person has to decide this.
    pub accept_lost_writes: bool,
}

impl Default for LocalConfig {
    fn default() -> LocalConfig {
        LocalConfig {
            durability: Durability::Full,
            cache_bytes: 32 << 20,
            memtable_bytes: 32 << 20,
            table_bytes: 64 << 20,
            worker_threads: 1,
            disk_bytes_max: None,
            reserve_bytes: 0,
            contents: ContentsVersion::default(),
            accept_lost_writes: false,
        }
    }
}

/// Makes a new store in `path`, which must not exist or be an empty folder.
///
/// # Errors
/// [`StorageError::AlreadyExists`] when there is anything in `path`.
pub fn create(
    path: &Path,
    config: LocalConfig,
    runtime: &Runtime,
) -> Result<Arc<dyn Store>, StorageError> {
    std::fs::create_dir_all(path).map_err(|source| files::during("create", path, source))?;
    if !files::list(path)?.is_empty() {
        return Err(StorageError::AlreadyExists { path: path.to_owned() });
    }
    WatermarkFile::create(path)?;
    engine::create(path, &config)?;
    // The engine syncs what is in the folders that it creates, but not the folders' own
    // names.
    files::sync_folder(&path.join("keyspaces"))?;
    Format::describe(path, config.contents, &engine::fixed_files(path)?)?.save(path)?;
    files::sync_folders(path)?;
    path.parent().filter(|parent| parent.is_dir()).map_or(Ok(()), files::sync_folder)?;
    open(path, config, runtime)
}

/// Opens an existing store, never creates one.
///
/// # Errors
/// [`StorageError::NotFound`], [`StorageError::InUse`], [`StorageError::Damaged`],
/// [`StorageError::Outdated`], [`StorageError::UnknownVersion`], or [`StorageError::Io`].
pub fn open(
    path: &Path,
    config: LocalConfig,
    runtime: &Runtime,
) -> Result<Arc<dyn Store>, StorageError> {
    let lock = lock(path)?;
    let format = Format::load(path)?;
    format.check_writable(path, config.contents)?;
    format.check_fixed_files(path)?;
    let recovery = Recovery::of(path, config.accept_lost_writes)?.perform()?;
    let Recovery { commit, loss, .. } = recovery;
    let watermark = WatermarkFile::open(path, config.durability)?;
    let published = Arc::new(Published::new(path));
    let disk = DiskSpace::new(path, config.disk_bytes_max, config.reserve_bytes);
    let upkeep = Arc::new(Upkeep::new(disk));
    let engine =
        guarded(path, || LocalEngine::open(&published, &upkeep, commit, watermark, config))??;
    LocalStore::start((published, upkeep), engine, lock, loss, runtime)
}

/// The version of the contents of a store that this build can read, whether or not it is
/// the caller's. Reads one file, and is no promise that the store is intact.
///
/// # Errors
/// As those of [`open`], except that the store may be in use.
pub fn contents_of(path: &Path) -> Result<ContentsVersion, StorageError> {
    if !path.join(format::FILE).exists() {
        return Err(not_a_store(path));
    }
    let format = Format::load(path)?;
    let contents = format.contents();
    format.check_readable(path, contents).map(|()| contents)
}

/// Whether [`open`] would accept the versions of a store. Reads one file.
///
/// # Errors
/// As those of [`open`], except that the store may be in use.
pub fn check_versions(path: &Path, contents: ContentsVersion) -> Result<(), StorageError> {
    if !path.join(format::FILE).exists() {
        return Err(not_a_store(path));
    }
    Format::load(path)?.check_writable(path, contents)
}

/// The number of the newest commit, which names the state of a store: it grows with every
/// write. For a store that is open for reading, or for none.
///
/// # Errors
/// As those of [`open`].
pub fn newest_commit(path: &Path) -> Result<u64, StorageError> {
    Ok(Recovery::of(path, false)?.commit)
}

/// Bytes that a store in `folder` could still take on its disk, as its writers count them.
#[must_use]
pub fn free_bytes(folder: &Path, config: &LocalConfig) -> u64 {
    DiskSpace::new(folder, config.disk_bytes_max, 0).free()
}

/// Removes a store and all its data. A folder that is not a store is left alone.
///
/// # Errors
/// [`StorageError::NotFound`] when there is no store, finished or not, in `path`;
/// [`StorageError::InUse`] while it is open.
pub fn destroy(path: &Path) -> Result<(), StorageError> {
    let lock = match lock(path) {
        Ok(lock) => Some(lock),
        // A creation that was interrupted leaves a watermark and no format.
        Err(StorageError::Damaged { .. }) => None,
        Err(error) => return Err(error),
    };
    drop(lock);
    std::fs::remove_dir_all(path).map_err(|source| files::during("remove", path, source))
}

/// Locks a folder for one handle.
///
/// The lock is released explicitly: a child process that is being started has copies of all
/// open files until its program begins, and closing ours alone would leave the lock with
/// it.
#[derive(Debug)]
struct FolderLock(File);

impl Drop for FolderLock {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "a folder stays locked until its file is closed");
        }
    }
}

/// Locks a store for this handle. The `FORMAT` file serves as the lock, so there is nothing
/// to create.
fn lock(path: &Path) -> Result<FolderLock, StorageError> {
    let marker = path.join(format::FILE);
    let file = match File::open(&marker) {
        Ok(file) => file,
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
            return Err(not_a_store(path));
        }
        Err(source) => return Err(files::during("open", &marker, source)),
    };
    match file.try_lock() {
        Ok(()) => Ok(FolderLock(file)),
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(StorageError::InUse { path: path.to_owned() })
        }
        Err(std::fs::TryLockError::Error(source)) => Err(files::during("lock", &marker, source)),
    }
}

fn not_a_store(path: &Path) -> StorageError {
    let path = path.to_owned();
    if path.join(watermark::FILE).exists() || path.join("keyspaces").exists() {
        let detail = format!("the file {} is missing, or creation never finished", format::FILE);
        return StorageError::Damaged { path, detail };
    }
    StorageError::NotFound { path }
}

/// Runs engine code that may panic over damaged files.
fn guarded<T>(path: &Path, run: impl FnOnce() -> T) -> Result<T, StorageError> {
    std::panic::catch_unwind(AssertUnwindSafe(run)).map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        let detail = format!("the engine gave up: {}", text.unwrap_or_default());
        StorageError::Damaged { path: path.to_owned(), detail }
    })
}

#[derive(Debug)]
struct LocalStore {
    path: PathBuf,
    loss: Option<Loss>,
    published: Arc<Published>,
    committer: Arc<Committer<LocalEngine>>,
    upkeep: Arc<Upkeep>,
    running: Mutex<Option<Running>>,
}

/// What ends with the store.
#[derive(Debug)]
struct Running {
    committing: TaskHandle,
    merging: TaskHandle,
    _lock: FolderLock,
}

impl LocalStore {
    fn start(
        (published, upkeep): (Arc<Published>, Arc<Upkeep>),
        engine: LocalEngine,
        lock: FolderLock,
        loss: Option<Loss>,
        runtime: &Runtime,
    ) -> Result<Arc<dyn Store>, StorageError> {
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            let started = runtime.tasks.spawn(name, body);
            started.map_err(|source| StorageError::io(format!("start the {name} thread"), source))
        };
        let committer = Committer::new(engine, Leader::Thread);
        let (keeper, shown) = (Arc::clone(&upkeep), Arc::clone(&published));
        let merging = spawn("merger", Box::new(move || keeper.run(&shown)))?;
        let leader = Arc::clone(&committer);
        let committing = spawn("committer", Box::new(move || leader.run())).inspect_err(|_| {
            upkeep.end();
        })?;
        upkeep.want_merge();
        let running = Mutex::new(Some(Running { committing, merging, _lock: lock }));
        let path = published.path.clone();
        Ok(Arc::new(LocalStore { path, loss, published, committer, upkeep, running }))
    }

    /// Whether so much of a range is left that compacting the store is less work than
    /// deleting it key by key, and there is space for it.
    fn is_worth_rewriting(&self, engine: &Handles, range: &KeyRange) -> Result<bool, StorageError> {
        let tables = self.published.table_bytes()?;
        if tables > MERGE_BYTES_MAX || self.upkeep.disk.free() < engine.merge_needs() {
            return Ok(false);
        }
        let enough = (tables / GARBAGE_PART).max(GARBAGE_BYTES_MIN);
        let (view, mut rest, mut bytes) = (self.published.view()?, Some(range.clone()), 0);
        while let Some(range) = rest.filter(|_| bytes < enough) {
            let chunk = view.scan(&range, Direction::Forward, ScanLimit::default())?;
            bytes +=
                chunk.rows.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() as u64;
            rest = chunk.rest;
        }
        Ok(bytes >= enough)
    }

    /// Compacts all tables, dropping a range that is no longer read.
    fn rewrite(&self, engine: &Handles, without: Option<&KeyRange>) -> Result<(), StorageError> {
        let needed = engine.merge_needs();
        let merge = || self.upkeep.while_merging(|| engine.merge_tables());
        self.renew(engine)?;
        let merged = match without {
            Some(range) => self.upkeep.without(range, merge),
            None => merge(),
        };
        if let Err(StorageError::Full { .. }) = merged {
            return Err(self.upkeep.disk.full(needed));
        }
        merged?;
        self.renew(engine)
    }

    /// Releases what no future view can ask for.
    ///
    /// The engine keeps tombstones and replaced tables for the oldest snapshot, and
    /// determines which that is only when it rotates a memtable that has something in it.
    /// On an idle store the published snapshot would hold on to both.
    fn renew(&self, engine: &Handles) -> Result<(), StorageError> {
        self.committer.commit_nothing()?;
        engine.flush()
    }

    fn stop(&self) -> Result<(), StorageError> {
        self.upkeep.end();
        let _no_handle_is_out = self.upkeep.alone();
        let closed = self.committer.close();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(_no_handle_is_out);
        let Some(Running { committing, merging, _lock }) = running else { return closed };
        match committing.join().and(merging.join()) {
            Ok(()) => closed,
            Err(panicked) => Err(StorageError::Failed { detail: panicked.to_string() }),
        }
    }
}

impl Store for LocalStore {
    fn write_session(&self) -> Box<dyn WriteSession> {
        Box::new(CommitterSession::new(&self.committer))
    }

    fn view(&self) -> Result<Box<dyn View>, StorageError> {
        Ok(Box::new(self.published.view()?))
    }

    fn counters(&self) -> Counters {
        self.committer.counters()
    }

    fn health(&self) -> Result<(), StorageError> {
        self.committer.health()?;
        // Whether a full disk is the reason is for the committer to find out. While it is
        // busy it does so by itself.
        match self.published.check_engine().and_then(|()| self.upkeep.check()) {
            Err(StorageError::Failed { .. }) => self.committer.probe(0).unwrap_or(Ok(())),
            other => other,
        }
    }

    fn verify(&self) -> Result<VerifyReport, StorageError> {
        runtime::may_wait();
        Format::load(&self.path)?.check_fixed_files(&self.path)?;
        self.published.verify()
    }

    fn table_bytes(&self) -> Result<u64, StorageError> {
        self.published.table_bytes()
    }

    fn discard(&self, range: &KeyRange) -> Result<(), StorageError> {
        runtime::may_wait();
        self.committer.with_engine(LocalEngine::make_room)?;
        let _alone = self.upkeep.alone();
        let engine = self.published.handles()?;
        if engine.drop_tables(range)? {
            self.renew(&engine)?;
        }
        if self.is_worth_rewriting(&engine, range)? {
            self.rewrite(&engine, Some(range))?;
        }
        Ok(())
    }

    fn compact(&self) -> Result<(), StorageError> {
        runtime::may_wait();
        self.committer.with_engine(LocalEngine::make_room)?;
        let _alone = self.upkeep.alone();
        let engine = self.published.handles()?;
        self.rewrite(&engine, None)
    }

    fn loss(&self) -> Option<Loss> {
        self.loss
    }

    fn close(&self) -> Result<(), StorageError> {
        runtime::may_wait();
        self.stop()
    }
}

impl Drop for LocalStore {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            tracing::error!(%error, folder = %self.path.display(), "the store did not stop cleanly");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_given_back_though_its_file_is_held_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(format::FILE), "").unwrap();
        let first = lock(folder.path()).unwrap();
        let _copy_of_a_starting_process = first.0.try_clone().unwrap();
        assert!(matches!(lock(folder.path()), Err(StorageError::InUse { .. })));
        drop(first);
        lock(folder.path()).unwrap();
    }
}
