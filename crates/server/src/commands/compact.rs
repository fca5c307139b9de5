//! `orrery compact`: returns to the disk what was dropped, deleted and replaced.
//!
//! A running server does this by itself for containers that were dropped. This command does
//! all of it now, on a data folder that is not being served.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use anyhow::{Context as _, bail};
use runtime::{Runtime, Tasks};
use storage::local::RESERVE;
use storage::{Durability, Store};

use crate::data_dir::{self, DataArguments, say, say_error};

/// How often progress is printed.
const PRINT_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    data: DataArguments,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let folder = &arguments.data.folder;
    let before = bytes_in(folder);
    let outside = data_dir::with_virtual_clock(&Runtime::real());
    let service = data_dir::open(folder, data_dir::config(Durability::default()), &outside)?;
    say_error("removing what drops left …");
    let tokio = tokio::runtime::Builder::new_current_thread().build()?;
    let swept = tokio.block_on(service.maintenance().sweep())?;
    say_error(&format!(
        "removed {} containers and {} moved buckets, {} keys of them one by one",
        swept.containers, swept.buckets, swept.keys
    ));
    let store = Arc::clone(service.store());
    say_error(&format!("rewriting {} …", megabytes(store.table_bytes()?)));
    rewrite(&store, folder, &*outside.tasks)
        .context("what drops left is removed, but the rest could not be rewritten")?;
    store.close()?;
    let after = bytes_in(folder);
    say(&format!("{}: {} before, {} now", folder.display(), megabytes(before), megabytes(after)));
    Ok(ExitCode::SUCCESS)
}

/// Compacts a store and prints how much is written so far. Ending the process meanwhile is
/// harmless: the old files stay until the new ones are complete.
fn rewrite(store: &Arc<dyn Store>, folder: &Path, tasks: &dyn Tasks) -> anyhow::Result<()> {
    let (sender, done) = sync_channel(1);
    let (from, store) = (bytes_in(folder), Arc::clone(store));
    let body = move || drop(sender.send(store.compact()));
    tasks.spawn("compact", Box::new(body)).context("no thread to rewrite with")?;
    loop {
        match done.recv_timeout(PRINT_EVERY) {
            Ok(outcome) => return Ok(outcome?),
            Err(RecvTimeoutError::Timeout) => {
                let written = bytes_in(folder).saturating_sub(from);
                say_error(&format!("… {} written", megabytes(written)));
            }
            Err(RecvTimeoutError::Disconnected) => bail!("rewriting ended by itself"),
        }
    }
}

/// Bytes of all files in a folder except the reserve. Some may be removed while they are
/// counted.
pub(crate) fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| entry.file_name() != RESERVE);
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_in(&entry.path()),
        Ok(found) => found.len(),
        Err(_gone) => 0,
    };
    entries.map(bytes).sum()
}

/// One decimal.
pub(crate) fn megabytes(bytes: u64) -> String {
    let tenths = bytes / 100_000;
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_megabytes() {
        assert_eq!(megabytes(0), "0.0 MB");
        assert_eq!(megabytes(756_190_000), "756.1 MB");
    }
}
