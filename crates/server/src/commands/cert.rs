//! `orrery cert`: prints the certificate, so that clients can trust it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use runtime::RealClock;

use crate::data_dir::{self, DataArguments, DataDir};
use crate::http::tls::{self, Certificate};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    data: DataArguments,
    /// Write to this file instead of the terminal.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Works while a server runs on the same folder, and before the first start.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let root = &arguments.data.folder;
    let pem = match tls::export(&data_dir::tls_folder(root))? {
        Some(pem) => pem,
        None => {
            let dir = DataDir::claim(root)?;
            let certificate = Certificate::kept(&dir.tls_folder(), &[], &RealClock::new())?;
            dir.keep();
            certificate.pem
        }
    };
    match &arguments.output {
        None => data_dir::say(pem.trim_end()),
        Some(path) => write_for_all(path, &pem)
            .with_context(|| format!("{} cannot be written", path.display()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Others are meant to trust it, so they must be able to read it.
fn write_for_all(path: &Path, pem: &str) -> std::io::Result<()> {
    std::fs::write(path, pem)?;
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    Ok(())
}
