//! A store in a folder on a local disk, with lsm-tree as the engine.
//!
//! The engine brings memtables, tables and compactions. This module adds the rest:
//!
//! - *A journal* (`journal.rs`), which makes a commit durable with one sync, and says what
//!   is missing when something is: commits are numbered, and a watermark outside the
//!   journal has the highest number that was acknowledged (`history.rs`, `watermark.rs`).
//! - *Exact views* that wait for nothing (`published.rs`, `snapshot.rs`).
//! - *Flushes and compactions* when we want them (`upkeep.rs`), so that a full disk is no
//!   trap: space is checked before anything is written (`disk_space.rs`), and what could not
//!   be finished is tried again.
//! - *Creating never opens and opening never creates.* Opening to read writes nothing
//!   (`read_only.rs`).

pub(crate) mod decode;
mod disk_space;
mod engine;
pub(crate) mod files;
mod fjall;
mod format;
mod history;
mod journal;
mod layout;
mod memtable;
mod published;
mod read_only;
mod record;
mod run_filter;
mod snapshot;
mod tables;
mod tree;
mod upkeep;
mod view;
mod watermark;
mod write_back;

use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use runtime::{Runtime, TaskHandle};

pub use self::disk_space::RESERVE;
use self::disk_space::{DiskSpace, MERGE_BYTES_MAX};
use self::engine::LocalEngine;
use self::format::Format;
use self::history::History;
use self::journal::Segments;
use self::layout::Layout;
use self::published::Published;
pub use self::read_only::open_read_only;
use self::tree::{Tree, merge_needs};
use self::upkeep::Upkeep;
use self::watermark::WatermarkFile;
use crate::committer::{Committer, CommitterSession, Leader};
use crate::{
    ContentsVersion, Counters, Direction, Durability, KeyRange, Loss, ScanLimit, StorageError,
    Store, VerifyReport, View, WriteSession,
};

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

    /// Writes gathered in memory before they become a table, 56 MiB by default;
    /// twice as much under load. Larger means fewer and larger
    /// compactions, but a longer replay after a crash.
    pub memtable_bytes: u64,

    /// Bytes that compactions put into one table, 64 MiB by default. Smaller means more
    /// files, and less around the ends of a range that is discarded.
    pub table_bytes: u64,

    /// How long hardly anything is written before small tables are merged that no compaction
    /// is due for, ten seconds by default. Queries read fewer tables then.
    pub quiet: Duration,

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
            memtable_bytes: 56 << 20,
            table_bytes: 64 << 20,
            quiet: Duration::from_secs(10),
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
    let journal = path.join(journal::FOLDER);
    std::fs::create_dir(&journal).map_err(|source| files::during("create", &journal, source))?;
    Tree::create(path, &path.join(Layout::Ours.tree()), &config)?;
    // The engine syncs what is in the folders that it creates, but not the folders' own
    // names.
    files::sync_folder(path)?;
    Format::new(config.contents).save(path)?;
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
    let history = History::of(path, format.layout(), config.accept_lost_writes)?;
    history.settle()?;
    let watermark = WatermarkFile::open(path, config.durability)?;
    let disk = DiskSpace::new(path, config.disk_bytes_max, config.reserve_bytes);
    let upkeep =
        Arc::new(Upkeep::new(disk, Segments::new(path, &history.segments()), config.quiet));
    let folder = path.join(Layout::Ours.tree());
    guarded(path, || {
        let tree = Arc::new(Tree::open(path, &folder, &config, Some(&upkeep))?);
        let published = Arc::new(Published::new(path, &tree));
        let parts = (tree, published, upkeep);
        let engine = LocalEngine::open(parts.clone(), &history, watermark, config)?;
        LocalStore::start(parts, engine, lock, history.loss, runtime)
    })?
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
    Ok(History::of(path, Format::load(path)?.layout(), false)?.commit)
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
    if path.join(watermark::FILE).exists() || Layout::has_traces(&path) {
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
    tree: Arc<Tree>,
    published: Arc<Published>,
    committer: Arc<Committer<LocalEngine>>,
    upkeep: Arc<Upkeep>,
    running: Mutex<Option<Running>>,
}

/// What ends with the store.
#[derive(Debug)]
struct Running {
    committing: TaskHandle,
    flushing: TaskHandle,
    merging: TaskHandle,
    _lock: FolderLock,
}

impl LocalStore {
    fn start(
        (tree, published, upkeep): (Arc<Tree>, Arc<Published>, Arc<Upkeep>),
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
        let parts = || (Arc::clone(&upkeep), Arc::clone(&tree), Arc::clone(&published));
        let ended = |_: &StorageError| upkeep.end();
        let (merger, tables, shown) = parts();
        let merging = spawn("merger", Box::new(move || merger.run_merger(&tables, &shown)))?;
        let (flusher, tables, shown) = parts();
        let flushing = spawn("flusher", Box::new(move || flusher.run_flusher(&tables, &shown)));
        let flushing = flushing.inspect_err(ended)?;
        let leader = Arc::clone(&committer);
        let committing = spawn("committer", Box::new(move || leader.run())).inspect_err(ended)?;
        upkeep.want_merge();
        let running = Mutex::new(Some(Running { committing, flushing, merging, _lock: lock }));
        let path = published.path.to_path_buf();
        Ok(Arc::new(LocalStore { path, loss, tree, published, committer, upkeep, running }))
    }

    /// Whether so much of a range is left that compacting the store is less work than
    /// deleting it key by key, and there is space for it.
    fn is_worth_rewriting(&self, range: &KeyRange) -> Result<bool, StorageError> {
        let tables = self.published.tables()?.bytes;
        if tables > MERGE_BYTES_MAX || self.upkeep.disk.free() < merge_needs(tables) {
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
    fn rewrite(&self, without: Option<&KeyRange>) -> Result<(), StorageError> {
        let needed = merge_needs(self.published.tables()?.bytes);
        let merge = || self.upkeep.while_merging(|| self.tree.merge_all());
        self.upkeep.flush(&self.tree, &self.published)?;
        let merged = match without {
            Some(range) => self.upkeep.without(range, merge),
            None => merge(),
        };
        self.upkeep.renew(&self.tree, &self.published);
        match merged {
            Err(StorageError::Full { .. }) => Err(self.upkeep.disk.full(needed)),
            merged => merged,
        }
    }

    /// Has everything in memory become tables with the next flush, and frees space for a
    /// compaction. Before [`Upkeep::alone`]: the committer may be waiting for a compaction.
    fn seal(&self) -> Result<(), StorageError> {
        self.committer.with_engine(|engine| {
            engine.make_space()?;
            engine.rotate();
            Ok(())
        })
    }

    fn stop(&self) -> Result<(), StorageError> {
        self.upkeep.end();
        let _no_handle_is_out = self.upkeep.alone();
        let closed = self.committer.close();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(_no_handle_is_out);
        let Some(Running { committing, flushing, merging, _lock }) = running else {
            return closed;
        };
        match committing.join().and(flushing.join()).and(merging.join()) {
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
        match self.upkeep.check() {
            Err(StorageError::Failed { .. }) => self.committer.probe(0).unwrap_or(Ok(())),
            other => other,
        }
    }

    fn verify(&self) -> Result<VerifyReport, StorageError> {
        runtime::may_wait();
        self.published.verify()
    }

    fn table_bytes(&self) -> Result<u64, StorageError> {
        Ok(self.published.tables()?.bytes)
    }

    fn discard(&self, range: &KeyRange) -> Result<(), StorageError> {
        runtime::may_wait();
        self.seal()?;
        let _alone = self.upkeep.alone();
        // What was written about the range before has to be as durable as its drop.
        self.upkeep.flush(&self.tree, &self.published)?;
        self.tree.drop_tables(range)?;
        self.upkeep.renew(&self.tree, &self.published);
        if self.is_worth_rewriting(range)? {
            self.rewrite(Some(range))?;
        }
        Ok(())
    }

    fn compact(&self) -> Result<(), StorageError> {
        runtime::may_wait();
        self.seal()?;
        let _alone = self.upkeep.alone();
        self.rewrite(None)
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
