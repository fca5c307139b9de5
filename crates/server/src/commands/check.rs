//! `orrery check`: is everything in a data folder consistent?
//!
//! Reads and never writes, unless it is asked to reset times, so that a snapshot or a
//! read-only folder can be checked, and a damaged one stays as it was found.

use std::path::Path;
use std::process::ExitCode;

use runtime::Runtime;
use service::{Ahead, Principal, Service};
use storage::Durability;

use crate::data_dir::{self, DataArguments, say, say_error};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    data: DataArguments,
    /// Set times that are ahead of the clock back to it, then check. This writes.
    ///
    /// After a write under a clock that was far ahead, a partition refuses writes until the
    /// clock has caught up. This gives partitions, and all that was written to them under
    /// the wrong clock, the present time instead: `_ts` and `_etag` of those items change,
    /// and their time to live starts again. The same for what was written under
    /// --virtual-clock: the folder can then be served without it.
    #[arg(long)]
    reset_time: bool,
}

/// Succeeds only when there is nothing to report.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let folder = &arguments.data.folder;
    if arguments.reset_time {
        reset_time(folder)?;
    }
    let service = data_dir::open_read_only(folder)?;
    let is_clean = report(&service)?;
    service.store().close()?;
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Opens the database for writing, for this purpose only.
fn reset_time(folder: &Path) -> anyhow::Result<()> {
    let config = data_dir::config(Durability::default());
    let service = data_dir::open(folder, config, &Runtime::real())?;
    let ahead = service.operator(Principal::Account).ahead()?;
    for one in &ahead {
        say(&format!("setting back {}", describe(one)));
    }
    let tokio = tokio::runtime::Builder::new_current_thread().build()?;
    let items = tokio.block_on(service.operator(Principal::Account).reset_time())?;
    say(&format!("{} partitions and {items} items were ahead of the clock", ahead.len()));
    Ok(service.store().close()?)
}

fn describe(ahead: &Ahead) -> String {
    let Ahead { container, range, by } = ahead;
    format!("partition {range} of container {container}: {} seconds ahead", by.as_secs())
}

/// Checks a database and prints the findings. Returns whether there were none.
pub(crate) fn report(service: &Service) -> anyhow::Result<bool> {
    let report = service
        .operator(Principal::Account)
        .check(|container| say_error(&format!("checking container {container} …")))?;
    let total = &report.total;
    say(&format!(
        "{} containers, {} partitions, {} buckets: {} items of {} bytes in {} logical partitions, {} index entries, {} rows",
        report.containers,
        report.partitions,
        report.buckets,
        total.items,
        total.bytes,
        total.logical_partitions,
        total.index_entries,
        report.rows,
    ));
    for finding in &total.findings {
        say(&format!("wrong: {finding}"));
    }
    for stray in &report.strays {
        say(&format!("wrong: keys of {stray}, which no container owns"));
    }
    if let Some(ahead) = service.virtual_time()? {
        say(&format!(
            "note: written under a virtual clock that is {} seconds ahead; `orrery check --reset-time` forgets it",
            ahead.as_secs()
        ));
    }
    for one in service.operator(Principal::Account).ahead()? {
        say(&format!("note: {}; `orrery check --reset-time` sets it back", describe(&one)));
    }
    if report.is_clean() {
        say("everything agrees");
        return Ok(true);
    }
    let hidden = total.findings_count.saturating_sub(total.findings.len() as u64);
    if hidden > 0 {
        say(&format!("… and {hidden} more"));
    }
    Ok(false)
}
