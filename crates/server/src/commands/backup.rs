//! `orrery backup`: a consistent copy of everything, of a running server or of a data
//! folder that is not being served.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use operator::{BackupStatus, OperatorClient};
use runtime::Runtime;
use storage::backup::{self, Progress};

use crate::commands::compact::megabytes;
use crate::commands::remote::Remote;
use crate::data_dir::{self, say, say_error};

/// How often a server is asked for its progress.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// How often progress is printed.
const PRINT_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The folder to write to, on the server's machine. It must not exist yet.
    folder: PathBuf,
    #[command(flatten)]
    remote: Remote,
    /// Back up this data folder instead, which must not be in use. Nothing in it is
    /// changed.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["server", "key"])]
    data: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let folder = std::path::absolute(&arguments.folder)?;
    let mut printer = ProgressPrinter::new("rows", "written");
    let done = match &arguments.data {
        Some(data) => {
            let store = data_dir::open_store_read_only(data)?;
            backup::write((store.as_ref(), service::upgrade::CONTENTS), &folder, |progress| {
                printer.print(progress)
            })?
        }
        None => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(of_server(&arguments.remote.client(), &folder, &mut printer))?
        }
    };
    say(&format!("{}: {} rows, {}", folder.display(), done.rows, megabytes(done.bytes)));
    Ok(ExitCode::SUCCESS)
}

async fn of_server(
    client: &OperatorClient,
    folder: &Path,
    printer: &mut ProgressPrinter,
) -> anyhow::Result<Progress> {
    let name = folder.to_str().context("the name of the folder is not text")?;
    let mut status = client.begin_backup(name).await?;
    loop {
        match status {
            BackupStatus::Running { folder: to, rows, bytes } if to == folder => {
                printer.print(Progress { rows, bytes });
            }
            BackupStatus::Done { folder: to, rows, bytes } if to == folder => {
                return Ok(Progress { rows, bytes });
            }
            BackupStatus::Failed { folder: to, message, .. } if to == folder => bail!(message),
            BackupStatus::None
            | BackupStatus::Running { .. }
            | BackupStatus::Done { .. }
            | BackupStatus::Failed { .. } => bail!("the server was asked for another backup since"),
        }
        tokio::time::sleep(ASK_EVERY).await;
        status = client.backup().await.context("the backup is not whole")?;
    }
}

/// Prints progress and speed.
pub(crate) struct ProgressPrinter {
    noun: &'static str,
    what: &'static str,
    outside: Runtime,
    printed_at: Duration,
}

impl ProgressPrinter {
    pub(crate) fn new(noun: &'static str, what: &'static str) -> ProgressPrinter {
        ProgressPrinter { noun, what, outside: Runtime::real(), printed_at: Duration::ZERO }
    }

    /// Never asks to stop.
    pub(crate) fn print(&mut self, Progress { rows, bytes }: Progress) -> bool {
        let now = self.outside.clock.monotonic();
        if now.saturating_sub(self.printed_at) >= PRINT_EVERY {
            self.printed_at = now;
            let millis = u64::try_from(now.as_millis()).unwrap_or(u64::MAX).max(1);
            let rate = bytes.saturating_mul(1_000) / millis;
            let (noun, what) = (self.noun, self.what);
            let (bytes, rate) = (megabytes(bytes), megabytes(rate));
            say_error(&format!("… {rows} {noun}, {bytes} {what}, {rate}/s"));
        }
        true
    }
}
