//! `orrery check`: is everything in a data folder as it must be?

use std::process::ExitCode;

use storage::local::LocalConfig;

use crate::data::{self, DataArguments, say, say_error};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    data: DataArguments,
}

/// Succeeds only when there is nothing to report.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let service = data::open(&arguments.data.folder, LocalConfig::default())?;
    let report =
        service.check(|container| say_error(&format!("checking container {container} …")))?;
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
        say(&format!("wrong: keys of {stray}, which nobody knows"));
    }
    service.store().close()?;
    if report.is_clean() {
        say("everything agrees");
        return Ok(ExitCode::SUCCESS);
    }
    let hidden = total.findings_count.saturating_sub(total.findings.len() as u64);
    if hidden > 0 {
        say(&format!("… and {hidden} more"));
    }
    Ok(ExitCode::FAILURE)
}
