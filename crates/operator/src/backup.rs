//! Backups of a running server: `/_orrery/backup`. Writing them is up to the process.

use std::path::PathBuf;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use service::ServiceError;

use crate::error::OperatorError;
use crate::process::Process;
use crate::request::parse;

/// The backup that runs, or the last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum BackupStatus {
    /// There was none yet.
    None,
    Running {
        folder: PathBuf,
        rows: u64,
        bytes: u64,
    },
    Done {
        folder: PathBuf,
        rows: u64,
        bytes: u64,
    },
    Failed {
        folder: PathBuf,
        rows: u64,
        bytes: u64,
        message: String,
    },
}

/// Why no backup was begun.
#[derive(Debug, thiserror::Error)]
pub enum BackupRefused {
    /// Something prevents it: the folder exists, another backup is running, the server is
    /// stopping.
    #[error("{0}")]
    Conflict(String),
    #[error(transparent)]
    Service(#[from] ServiceError),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    folder: PathBuf,
}

pub(crate) fn begin(process: &dyn Process, body: &Bytes) -> Result<BackupStatus, OperatorError> {
    let Wanted { folder } = parse(body, r#"{"folder":"/backups/monday"}"#)?;
    if !folder.is_absolute() {
        let folder = folder.display();
        let message = format!("'{folder}' is not an absolute path on the server's machine");
        return Err(OperatorError::malformed(message));
    }
    Ok(process.begin_backup(folder)?)
}
