//! A store in a folder on a local disk, with fjall as the engine.
//!
//! The engine brings the tree, the journal and the snapshots. This module adds
//! what the door promises beyond them:
//!
//! - *Nothing acknowledged is lost in silence.* Before the engine touches a folder
//!   it is inspected (`inspect.rs`); a commit number in every batch and a witness
//!   outside the journal tell what must be there.
//! - *Views are exact.* A view clones the snapshot that the committer took between
//!   two commits (`engine.rs`); the engine's own newest snapshot can show half a
//!   batch while a flush finishes.
//! - *Creating never opens and opening never creates.*

mod decode;
mod engine;
mod files;
mod format;
mod inspect;
mod journal;
mod record;
mod tables;
mod view;
mod witness;

use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runtime::{Runtime, TaskHandle};

use self::engine::{Handles, LocalEngine, Published};
use self::format::Format;
use self::inspect::Inspection;
use self::witness::{Testimony, Witness};
use crate::committer::{Carrier, Committer, CommitterStream};
use crate::{Counters, Durability, KeyRange, StorageError, Store, Stream, VerifyReport, View};

/// The engine's number of the one keyspace that holds all data.
const DATA_KEYSPACE: u64 = 1;
const DATA_FOLDER: &str = "keyspaces/1";

/// How a local store behaves. Plain data; the defaults suit a laptop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalConfig {
    /// When a write counts as durable. Full by default.
    pub durability: Durability,

    /// Memory for blocks read from disk, 32 MiB by default. Filled as reads come,
    /// so an idle store does not use it.
    pub cache_bytes: u64,

    /// Writes gathered in memory before they become a table, 16 MiB by default;
    /// up to four times as much under load. Larger means fewer and larger
    /// compactions, but a longer replay after a crash. Fixed at creation.
    pub memtable_bytes: u64,

    /// Bytes that compactions put into one table, 64 MiB by default. Smaller means more
    /// files, and less around the ends of a range that is discarded. Fixed at creation, but
    /// for what [`Store::compact`] writes.
    pub table_bytes: u64,

    /// Threads for flushing and compacting, 2 by default: with one, a long
    /// compaction holds up the flushes and thereby the writers.
    pub worker_threads: usize,

    /// Opens a store although acknowledged writes are known to be missing, or
    /// although nobody can tell. Off by default: a person has to decide this.
    pub accept_lost_writes: bool,
}

impl Default for LocalConfig {
    fn default() -> LocalConfig {
        LocalConfig {
            durability: Durability::Full,
            cache_bytes: 32 << 20,
            memtable_bytes: 16 << 20,
            table_bytes: 64 << 20,
            worker_threads: 2,
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
    Witness::create(path)?;
    engine::create(path, &config)?;
    Format::describe(path, &engine::fixed_files(path)?)?.save(path)?;
    path.parent().filter(|parent| parent.is_dir()).map_or(Ok(()), files::sync_folder)?;
    open(path, config, runtime)
}

/// Opens an existing store, never creates one.
///
/// # Errors
/// [`StorageError::NotFound`], [`StorageError::InUse`], [`StorageError::Damaged`],
/// [`StorageError::Format`], or [`StorageError::Io`].
pub fn open(
    path: &Path,
    config: LocalConfig,
    runtime: &Runtime,
) -> Result<Arc<dyn Store>, StorageError> {
    let lock = lock(path)?;
    Format::load(path)?.check_fixed_files(path)?;
    let inspection = Inspection::of(path)?;
    inspection.check_witness(Testimony::load(path)?, config.accept_lost_writes)?;
    inspection.tidy()?;
    let witness = Witness::open(path, config.durability)?;
    let published = Arc::new(Published::new(path));
    let engine =
        guarded(path, || LocalEngine::open(&published, inspection.commit, witness, &config))??;
    LocalStore::start(published, engine, lock, runtime)
}

/// Removes a store and all its data. A folder that is not a store is left alone.
///
/// # Errors
/// [`StorageError::NotFound`] when there is no store, finished or not, in `path`;
/// [`StorageError::InUse`] while it is open.
pub fn destroy(path: &Path) -> Result<(), StorageError> {
    let lock = match lock(path) {
        Ok(lock) => Some(lock),
        // A creation that was interrupted leaves a witness and no format.
        Err(StorageError::Damaged { .. }) => None,
        Err(error) => return Err(error),
    };
    drop(lock);
    std::fs::remove_dir_all(path).map_err(|source| files::during("remove", path, source))
}

/// Locks a store for this handle. The file that says what the folder is serves as
/// the lock, so there is nothing to create.
fn lock(path: &Path) -> Result<File, StorageError> {
    let marker = path.join(format::FILE);
    let file = match File::open(&marker) {
        Ok(file) => file,
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
            return Err(not_a_store(path));
        }
        Err(source) => return Err(files::during("open", &marker, source)),
    };
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(StorageError::InUse { path: path.to_owned() })
        }
        Err(std::fs::TryLockError::Error(source)) => Err(files::during("lock", &marker, source)),
    }
}

fn not_a_store(path: &Path) -> StorageError {
    let path = path.to_owned();
    if path.join(witness::FILE).exists() || path.join("keyspaces").exists() {
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
    published: Arc<Published>,
    committer: Arc<Committer<LocalEngine>>,
    running: Mutex<Option<Running>>,
    /// Held while space is given back: one at a time, and closing waits for it.
    reclaiming: Mutex<()>,
}

/// What ends with the store.
#[derive(Debug)]
struct Running {
    thread: TaskHandle,
    _lock: File,
}

impl LocalStore {
    fn start(
        published: Arc<Published>,
        engine: LocalEngine,
        lock: File,
        runtime: &Runtime,
    ) -> Result<Arc<dyn Store>, StorageError> {
        let committer = Committer::new(engine, Carrier::Thread);
        let carrier = Arc::clone(&committer);
        let thread = runtime.tasks.spawn("committer", Box::new(move || carrier.run()));
        let thread =
            thread.map_err(|source| StorageError::io("start the committer thread", source))?;
        let running = Mutex::new(Some(Running { thread, _lock: lock }));
        let (path, reclaiming) = (published.path.clone(), Mutex::default());
        Ok(Arc::new(LocalStore { path, published, committer, running, reclaiming }))
    }

    fn reclaiming(&self) -> MutexGuard<'_, ()> {
        self.reclaiming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of what no view of now on can ask for.
    ///
    /// The engine keeps a deleted row and a replaced table for the oldest snapshot, and
    /// asks which that is only when it rotates a memtable that has something in it. On
    /// a quiet store the published snapshot would hold on to both.
    fn renew(&self, engine: &Handles) -> Result<(), StorageError> {
        self.committer.commit_nothing()?;
        engine.flush()
    }

    fn stop(&self) -> Result<(), StorageError> {
        let _no_handle_is_out = self.reclaiming();
        let closed = self.committer.close();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        match running.map(|running| running.thread.join()) {
            None | Some(Ok(())) => closed,
            Some(Err(panicked)) => Err(StorageError::Failed { detail: panicked.to_string() }),
        }
    }
}

impl Store for LocalStore {
    fn stream(&self) -> Box<dyn Stream> {
        Box::new(CommitterStream::new(&self.committer))
    }

    fn view(&self) -> Result<Box<dyn View>, StorageError> {
        Ok(Box::new(self.published.view()?))
    }

    fn counters(&self) -> Counters {
        self.committer.counters()
    }

    fn health(&self) -> Result<(), StorageError> {
        self.committer.health()?;
        let engine = self.published.check_engine();
        if let Err(StorageError::Failed { detail }) = &engine {
            self.committer.fail(detail.clone());
        }
        engine
    }

    fn verify(&self) -> Result<VerifyReport, StorageError> {
        Format::load(&self.path)?.check_fixed_files(&self.path)?;
        let view = self.published.view()?;
        let files = view.check_tables()?;
        let rows = crate::scan::verify_rows(&view)?;
        Ok(VerifyReport { files, ..rows })
    }

    fn table_bytes(&self) -> Result<u64, StorageError> {
        self.published.table_bytes()
    }

    fn discard(&self, range: &KeyRange) -> Result<(), StorageError> {
        let _alone = self.reclaiming();
        let engine = self.published.handles()?;
        if engine.drop_tables(range)? {
            self.renew(&engine)?;
        }
        Ok(())
    }

    fn compact(&self) -> Result<(), StorageError> {
        let _alone = self.reclaiming();
        let engine = self.published.handles()?;
        self.renew(&engine)?;
        engine.merge_tables()?;
        self.renew(&engine)
    }

    fn close(&self) -> Result<(), StorageError> {
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
