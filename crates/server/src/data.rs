//! The data folder, and words for people.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use model::limits::Limits;
use runtime::Runtime;
use service::Service;
use storage::local::{self, LocalConfig};

/// Where data is kept unless told otherwise.
pub(crate) const DEFAULT_FOLDER: &str = "orrery-data";

/// Which data folder a command works on.
#[derive(Debug, clap::Args)]
pub(crate) struct DataArguments {
    /// The folder that holds the data.
    #[arg(long = "data", value_name = "DIR", env = "ORRERY_DATA", default_value = DEFAULT_FOLDER)]
    pub(crate) folder: PathBuf,
}

/// Opens the database in a folder that must exist.
pub(crate) fn open(folder: &Path, config: LocalConfig) -> anyhow::Result<Service> {
    let runtime = Runtime::real();
    let store = local::open(folder, config, &runtime)?;
    Service::open(store, runtime, Limits::default())
        .with_context(|| format!("the catalogue in {} cannot be read", folder.display()))
}

/// Makes a new, empty database in a folder.
pub(crate) fn create(folder: &Path, config: LocalConfig) -> anyhow::Result<Service> {
    let runtime = Runtime::real();
    let store = local::create(folder, config, &runtime)?;
    Ok(Service::open(store, runtime, Limits::default())?)
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
