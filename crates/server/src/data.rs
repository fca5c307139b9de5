//! The data folder, and words for people.
//!
//! ```text
//! orrery-data/
//!   LOCK      held by the one process that uses the folder; says which
//!   CREATING  there while `store` is being made
//!   store/    the database (docs/formats/storage.md)
//!   tls/      the certificate and its key
//! ```

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use clap::ValueEnum;
use runtime::Runtime;
use serde::Deserialize;
use service::Service;
use storage::local::{self, LocalConfig};
use storage::{Durability, Store};

use crate::rules::Rules;

/// Where data is kept unless told otherwise.
pub(crate) const DEFAULT_FOLDER: &str = "orrery-data";

const LOCK: &str = "LOCK";
const STORE: &str = "store";
/// There while the store is being made, so that a first start that was cut short is
/// not taken for damage: nobody was ever told that anything is in such a store.
const CREATING: &str = "CREATING";
const TLS: &str = "tls";

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
pub(crate) struct Home {
    root: PathBuf,
    _lock: File,
}

impl Home {
    /// Takes a folder, making it when there is none.
    pub(crate) fn claim(root: &Path) -> anyhow::Result<Home> {
        std::fs::create_dir_all(root)
            .with_context(|| format!("the data folder {} cannot be made", root.display()))?;
        ensure!(
            root.join(LOCK).exists() || is_empty(root)?,
            "{} holds other files and is not a data folder of ours: choose another with --data",
            root.display()
        );
        let lock = lock(root)?;
        Ok(Home { root: root.to_owned(), _lock: lock })
    }

    pub(crate) fn tls_folder(&self) -> PathBuf {
        tls_folder(&self.root)
    }

    /// Opens the database, making one when there is none.
    pub(crate) fn open(
        &self,
        config: LocalConfig,
        runtime: &Runtime,
        rules: Rules,
    ) -> anyhow::Result<Service> {
        let folder = self.root.join(STORE);
        let store = if folder.exists() && !self.root.join(CREATING).exists() {
            local::open(&folder, config, runtime)?
        } else {
            self.create(&folder, config, runtime)?
        };
        open_store(store, runtime, rules)
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

/// The folder of the certificate, whether or not this process holds the data.
pub(crate) fn tls_folder(root: &Path) -> PathBuf {
    root.join(TLS)
}

/// A database that is gone when the process ends.
pub(crate) fn open_in_memory(runtime: &Runtime, rules: Rules) -> anyhow::Result<Service> {
    open_store(storage::memory::create(), runtime, rules)
}

/// Opens the database in a data folder that must exist.
pub(crate) fn open(root: &Path, config: LocalConfig) -> anyhow::Result<Service> {
    let runtime = Runtime::real();
    open_store(local::open(&root.join(STORE), config, &runtime)?, &runtime, Rules::default())
}

/// Makes a new, empty database in a folder.
pub(crate) fn create(root: &Path, config: LocalConfig) -> anyhow::Result<Service> {
    let home = Home::claim(root)?;
    ensure!(
        !root.join(STORE).exists(),
        "{} holds a database already: choose a new folder",
        root.display()
    );
    home.open(config, &Runtime::real(), Rules::default())
}

fn open_store(store: Arc<dyn Store>, runtime: &Runtime, rules: Rules) -> anyhow::Result<Service> {
    Service::open_with(store, runtime.clone(), rules.limits, rules.throughput)
        .context("the catalogue cannot be read")
}

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
    file.set_len(0)
        .and_then(|()| write!(file, "{}", std::process::id()))
        .with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(file)
}

fn in_use(root: &Path, lock: &mut File) -> String {
    let mut holder = String::new();
    // Where a locked file cannot be read, the message does without.
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
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    if cfg!(windows) { Ok(()) } else { File::open(folder)?.sync_all() }
}

/// Tells the person at the terminal.
#[expect(clippy::print_stdout, reason = "talking to people is what this program is for")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// Tells the person at the terminal, where errors go.
#[expect(clippy::print_stderr, reason = "talking to people is what this program is for")]
pub(crate) fn say_error(line: &str) {
    eprintln!("orrery: {line}");
}
