//! The data folder, and output for people.
//!
//! ```text
//! orrery-data/
//!   LOCK      held by the one process that uses the folder; says which
//!   CREATING  there while `store` is being made
//!   store/    the database (docs/formats/storage.md)
//!   store.*   what an upgrade makes and leaves (`upgrade.rs`)
//!   tls/      the certificate and its key
//!   KEYS      keys that were replaced while a server ran (`keys.rs`)
//! ```
//!
//! All of it is for its owner only: [`keep_private`] ensures that for everything that is
//! created, by the engine as well, and a folder that is open to others is closed when it is
//! claimed.

pub(crate) mod keys;
pub(crate) mod upgrade;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use clap::ValueEnum;
use runtime::{Runtime, VirtualClock};
use serde::Deserialize;
use service::Service;
use storage::local::{self, LocalConfig};
use storage::{Durability, StorageError, Store};

use self::keys::RotatedKeys;
use crate::settings::rules::Rules;

/// Where data is kept by default.
pub(crate) const DEFAULT_FOLDER: &str = "orrery-data";

const LOCK: &str = "LOCK";
const STORE: &str = "store";
/// There while the store is being created, so that an interrupted first start is not taken
/// for damage: nothing in such a store was ever acknowledged.
const CREATING: &str = "CREATING";
const TLS: &str = "tls";

/// Bytes kept in reserve so that a start, a drop and `orrery compact` find space on a disk
/// that others have filled: one memtable, the largest thing that has to be written at once.
const RESERVE_BYTES: u64 = 32 << 20;

/// A limit on what the store may take on its disk, for tests of a full disk where no small
/// one can be mounted. Not a setting: a quota of the file system does this better.
const DISK_BYTES_MAX: &str = "ORRERY_TEST_DISK_BYTES_MAX";

/// How stores in a data folder are opened.
pub(crate) fn config(durability: Durability) -> LocalConfig {
    let max = std::env::var(DISK_BYTES_MAX).ok().and_then(|text| text.parse().ok());
    LocalConfig {
        durability,
        disk_bytes_max: max,
        reserve_bytes: RESERVE_BYTES,
        contents: service::upgrade::CONTENTS,
        ..LocalConfig::default()
    }
}

/// Makes this process create files for its owner only.
pub(crate) fn keep_private() {
    #[cfg(unix)]
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
}

/// Which data folder a command works on.
#[derive(Debug, clap::Args)]
pub(crate) struct DataArguments {
    /// The folder that holds the data.
    #[arg(long = "data", value_name = "DIR", env = "ORRERY_DATA", default_value = DEFAULT_FOLDER)]
    pub(crate) folder: PathBuf,
}

/// When a write is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DurabilitySetting {
    /// After an fsync: survives a power cut.
    #[default]
    Full,
    /// Once the operating system has it: survives a crash of the server only.
    Os,
}

impl DurabilitySetting {
    pub(crate) fn to_storage(self) -> Durability {
        match self {
            DurabilitySetting::Full => Durability::Full,
            DurabilitySetting::Os => Durability::Os,
        }
    }
}

impl FromStr for DurabilitySetting {
    type Err = String;

    fn from_str(text: &str) -> Result<DurabilitySetting, String> {
        <DurabilitySetting as ValueEnum>::from_str(text, false)
            .map_err(|_| format!("'{text}' is neither full nor os"))
    }
}

/// A data folder that belongs to this process until it is dropped.
#[derive(Debug)]
pub(crate) struct DataDir {
    root: PathBuf,
    /// The folders that were created for it, the outermost first.
    made: Vec<PathBuf>,
    /// Whether there is something in it. What a failed start created is removed again.
    kept: AtomicBool,
    _lock: File,
}

impl DataDir {
    /// Claims a folder, creating it when there is none. One of another version is refused
    /// before anything in it is touched.
    pub(crate) fn claim(root: &Path) -> anyhow::Result<DataDir> {
        check_versions(root)?;
        let made = make(root)
            .with_context(|| format!("the data folder {} cannot be made", root.display()))?;
        ensure!(
            root.join(LOCK).exists() || is_empty(root)?,
            "{} holds other files and is not a data folder of ours: choose another with --data",
            root.display()
        );
        let lock = lock(root)?;
        sign(root, &lock);
        close_to_others(root);
        Ok(DataDir { root: root.to_owned(), made, kept: AtomicBool::new(false), _lock: lock })
    }

    /// Claims a folder that has a database, of any version, and changes nothing in it.
    pub(crate) fn claim_existing(root: &Path) -> anyhow::Result<DataDir> {
        let is_ours = root.join(STORE).exists() || upgrade::is_left(root);
        ensure!(is_ours, "{} is no data folder: there is no {STORE} in it", root.display());
        let (made, kept, lock) = (Vec::new(), AtomicBool::new(true), lock(root)?);
        Ok(DataDir { root: root.to_owned(), made, kept, _lock: lock })
    }

    /// Removes the folders that were created. One that existed stays.
    fn unmake(&self) {
        if self.made.last() != Some(&self.root) {
            return;
        }
        if let Err(error) = std::fs::remove_dir_all(&self.root) {
            tracing::warn!(%error, folder = %self.root.display(), "could not be removed again");
            return;
        }
        for folder in self.made.iter().rev().skip(1) {
            // Another program may have put something there since.
            let _kept = std::fs::remove_dir(folder);
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The keys that were replaced in it.
    pub(crate) fn rotated_keys(&self) -> anyhow::Result<RotatedKeys> {
        RotatedKeys::read(&self.root)
    }

    pub(crate) fn tls_folder(&self) -> PathBuf {
        tls_folder(&self.root)
    }

    /// Opens the database, creating one when there is none.
    pub(crate) fn open(
        &self,
        config: LocalConfig,
        runtime: &Runtime,
        rules: Rules,
    ) -> anyhow::Result<Service> {
        let folder = self.root.join(STORE);
        let store = if folder.exists() && !self.root.join(CREATING).exists() {
            local::open(&folder, config, runtime).map_err(|error| explain(&self.root, error))?
        } else {
            self.create(&folder, config, runtime)?
        };
        let service = open_store(store, runtime, rules)?;
        self.keep();
        if !service.has_virtual_clock()
            && let Some(ahead) = service.virtual_time()?
        {
            service.store().close()?;
            bail!(needs_virtual_clock(&self.root, ahead));
        }
        Ok(service)
    }

    /// Something in it was acknowledged.
    pub(crate) fn keep(&self) {
        self.kept.store(true, Ordering::Release);
    }

    /// Creates a store in a folder that has none.
    pub(crate) fn create_store(
        &self,
        config: LocalConfig,
        runtime: &Runtime,
    ) -> anyhow::Result<Arc<dyn Store>> {
        self.create(&self.root.join(STORE), config, runtime)
    }

    fn create(
        &self,
        folder: &Path,
        config: LocalConfig,
        runtime: &Runtime,
    ) -> anyhow::Result<Arc<dyn Store>> {
        let mark = self.root.join(CREATING);
        let failed = || format!("{} cannot be made", folder.display());
        File::create(&mark).and_then(|_| sync_folder(&self.root)).with_context(failed)?;
        if folder.exists() {
            std::fs::remove_dir_all(folder).with_context(failed)?;
        }
        let store = local::create(folder, config, runtime)?;
        std::fs::remove_file(&mark).and_then(|()| sync_folder(&self.root)).with_context(failed)?;
        Ok(store)
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        if !self.kept.load(Ordering::Acquire) {
            self.unmake();
        }
    }
}

/// The folder of the store.
pub(crate) fn store_folder(root: &Path) -> PathBuf {
    root.join(STORE)
}

/// The folder of the certificate, whether or not this process holds the data.
pub(crate) fn tls_folder(root: &Path) -> PathBuf {
    root.join(TLS)
}

/// A database that is gone when the process ends.
pub(crate) fn open_in_memory(runtime: &Runtime, rules: Rules) -> anyhow::Result<Service> {
    open_store(storage::memory::create(), runtime, rules)
}

/// The same outside world, with a clock that can be set ahead, and is where a store says that
/// it was.
pub(crate) fn with_virtual_clock(outside: &Runtime) -> Runtime {
    let clock = Arc::new(VirtualClock::new(Arc::clone(&outside.clock)));
    Runtime { clock, ..outside.clone() }
}

fn needs_virtual_clock(root: &Path, ahead: Duration) -> String {
    format!(
        "{} was written under a virtual clock that is {} seconds ahead: serve it with --virtual-clock, or set its times \
         back with `orrery check --reset-time --data {}`",
        root.display(),
        ahead.as_secs(),
        root.display()
    )
}

/// Opens the database in a data folder that must exist.
pub(crate) fn open(root: &Path, config: LocalConfig, runtime: &Runtime) -> anyhow::Result<Service> {
    let store = local::open(&root.join(STORE), config, runtime);
    let store = store.map_err(|error| explain(root, error))?;
    // Reported by the first opening: afterwards the information is gone.
    if let Some(loss) = store.loss() {
        say_error(&loss.to_string());
    }
    open_store(store, runtime, Rules::for_tools())
}

/// Opens the database in a data folder for reading: nothing in the folder changes.
pub(crate) fn open_read_only(root: &Path) -> anyhow::Result<Service> {
    open_store(open_store_read_only(root)?, &Runtime::real(), Rules::default())
}

/// Opens the store below the database for reading.
pub(crate) fn open_store_read_only(root: &Path) -> anyhow::Result<Arc<dyn Store>> {
    local::open_read_only(&root.join(STORE), service::upgrade::CONTENTS)
        .map_err(|error| explain(root, error))
}

/// Refuses a data folder of another version, judging by one file. A folder without a
/// database is accepted, unless an upgrade has left it like that.
fn check_versions(root: &Path) -> anyhow::Result<()> {
    let store = root.join(STORE);
    ensure!(
        store.exists() || !upgrade::is_left(root),
        "an upgrade of {} was interrupted in its last step: `orrery upgrade {}` completes it",
        root.display(),
        root.display()
    );
    if !store.exists() || root.join(CREATING).exists() {
        return Ok(());
    }
    match local::check_versions(&store, service::upgrade::CONTENTS) {
        Err(error @ (StorageError::Outdated { .. } | StorageError::UnknownVersion { .. })) => {
            Err(explain(root, error))
        }
        // Opening explains everything else better.
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Names the command that helps, if there is one.
fn explain(root: &Path, error: StorageError) -> anyhow::Error {
    if matches!(error, StorageError::Outdated { .. }) {
        return anyhow!("{error}: `orrery upgrade {}` does that", root.display());
    }
    error.into()
}

/// Creates a new, empty database in a folder.
pub(crate) fn create(root: &Path, config: LocalConfig) -> anyhow::Result<Service> {
    let dir = DataDir::claim(root)?;
    ensure!(
        !root.join(STORE).exists(),
        "{} holds a database already: choose a new folder",
        root.display()
    );
    dir.open(config, &Runtime::real(), Rules::for_tools())
}

pub(crate) fn open_store(
    store: Arc<dyn Store>,
    runtime: &Runtime,
    rules: Rules,
) -> anyhow::Result<Service> {
    Service::open_with(store, runtime.clone(), rules.limits, rules.throughput)
        .context("the catalogue cannot be read")
}

/// Creates a folder and its parents, durable and for the owner only. Returns those that
/// were missing, the outermost first.
fn make(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let mut made: Vec<PathBuf> =
        folder.ancestors().take_while(missing).map(Path::to_owned).collect();
    made.reverse();
    std::fs::create_dir_all(folder)?;
    for folder in &made {
        sync_folder(folder)?;
        let around = folder.parent().filter(|around| !around.as_os_str().is_empty());
        sync_folder(around.unwrap_or(Path::new(".")))?;
    }
    Ok(made)
}

/// Removes the permissions of others from a data folder, and with them those on its
/// content.
#[cfg(unix)]
fn close_to_others(root: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let Ok(found) = std::fs::metadata(root) else { return };
    if found.permissions().mode() & 0o077 == 0 {
        return;
    }
    match std::fs::set_permissions(root, std::fs::Permissions::from_mode(0o700)) {
        Ok(()) => tracing::warn!(folder = %root.display(), "was open to others and no longer is"),
        Err(error) => tracing::warn!(%error, folder = %root.display(), "is open to others"),
    }
}

#[cfg(not(unix))]
fn close_to_others(_root: &Path) {}

fn is_empty(folder: &Path) -> anyhow::Result<bool> {
    let mut entries = std::fs::read_dir(folder)
        .with_context(|| format!("the data folder {} cannot be read", folder.display()))?;
    Ok(entries.next().is_none())
}

fn lock(root: &Path) -> anyhow::Result<File> {
    let path = root.join(LOCK);
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = open.with_context(|| format!("{} cannot be opened", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => bail!(in_use(root, &mut file)),
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("{} cannot be locked", path.display()));
        }
    }
    Ok(file)
}

/// Says who holds the lock. For messages only, and a full disk must not keep us from
/// starting.
fn sign(root: &Path, mut lock: &File) {
    if let Err(error) = lock.set_len(0).and_then(|()| write!(lock, "{}", std::process::id())) {
        tracing::warn!(%error, folder = %root.display(), "does not say who holds it");
    }
}

fn in_use(root: &Path, lock: &mut File) -> String {
    let mut holder = String::new();
    // Where a locked file cannot be read, the message does without it.
    let _unreadable = lock.take(20).read_to_string(&mut holder);
    let holder = match holder.parse::<u32>() {
        Ok(process) => format!("process {process}"),
        Err(_) => "another process".to_owned(),
    };
    format!(
        "the data folder {} is in use by {holder}: stop that first, or choose another folder with --data",
        root.display()
    )
}

/// Makes created and renamed names in a folder durable. Windows neither needs nor
/// allows it.
pub(crate) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    if cfg!(windows) { Ok(()) } else { File::open(folder)?.sync_all() }
}

/// Prints to the terminal. A closed pipe, as `head` leaves it, is no error.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            say_error(&format!("standard output cannot be written: {error}"));
        }
        Ok(()) | Err(_) => {}
    }
}

/// Prints to the terminal's standard error.
pub(crate) fn say_error(line: &str) {
    // There is nowhere left to report a failure to.
    let _closed = writeln!(std::io::stderr().lock(), "orrery: {line}");
}
