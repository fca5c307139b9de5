//! `orrery restore`: creates a new data folder from a backup.
//!
//! It is built beside its final path and renamed when all checksums were right, everything
//! is on the disk and a full check has found nothing. So a folder of that name is complete,
//! whenever the command was interrupted.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use runtime::Runtime;
use storage::{Durability, backup};

use crate::commands::backup::ProgressPrinter;
use crate::commands::check;
use crate::commands::compact::megabytes;
use crate::data_dir::{self, DataDir, say, say_error};
use crate::settings::rules::Rules;

/// Suffix of the unfinished folder.
const UNFINISHED: &str = ".restoring";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The folder that a backup was written to.
    folder: PathBuf,
    /// The data folder to create. It must not exist yet.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { folder, data } = arguments;
    let data = std::path::absolute(data)?;
    ensure!(!data.exists(), "{} is there already: choose a new folder", data.display());
    backup::probe(folder, service::upgrade::CONTENTS)?;
    let unfinished = beside(&data)?;
    ensure!(
        !unfinished.exists(),
        "{} is there, from a restore that still runs or was cut short: remove it if none runs",
        unfinished.display()
    );
    let restored = restore(folder, &unfinished);
    if restored.is_err() {
        // The first error is the one that counts.
        let _left = std::fs::remove_dir_all(&unfinished);
    }
    let done = restored?;
    std::fs::rename(&unfinished, &data)
        .and_then(|()| data.parent().map_or(Ok(()), data_dir::sync_folder))
        .with_context(|| format!("{} cannot be renamed", unfinished.display()))?;
    say(&format!("{}: {} rows, {}", data.display(), done.rows, megabytes(done.bytes)));
    Ok(ExitCode::SUCCESS)
}

fn beside(data: &Path) -> anyhow::Result<PathBuf> {
    let mut name = data.file_name().context("that is no name for a folder")?.to_owned();
    name.push(UNFINISHED);
    Ok(data.with_file_name(name))
}

fn restore(folder: &Path, unfinished: &Path) -> anyhow::Result<backup::Progress> {
    let (outside, mut printer) = (Runtime::real(), ProgressPrinter::new("rows", "restored"));
    let dir = DataDir::claim(unfinished)?;
    let store = dir.create_store(data_dir::config(Durability::default()), &outside)?;
    let done = backup::load(folder, (store.as_ref(), service::upgrade::CONTENTS), |progress| {
        printer.print(progress);
    })?;
    say_error("checking …");
    let service = data_dir::open_store(store, &outside, Rules::default())?;
    let is_clean = check::report(&service)?;
    service.store().close()?;
    if !is_clean {
        bail!("what the backup holds does not agree, see above");
    }
    dir.keep();
    Ok(done)
}
