//! What can go wrong at the door, one variant per remedy.

use std::fmt;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// There is no store at this path. Create one, or correct the path.
    #[error("no store at {}: create one first, or correct the path", path.display())]
    NotFound { path: PathBuf },

    /// Something is there already, and creating never overwrites. Open it, or choose
    /// another path.
    #[error("{} already holds files: open it instead, or choose an empty folder", path.display())]
    AlreadyExists { path: PathBuf },

    /// Another process, or another handle of this one, has the store open.
    #[error("the store at {} is open elsewhere: stop the other process first", path.display())]
    InUse { path: PathBuf },

    /// The data does not add up. Nothing was changed; going on could lose or
    /// invent data, so restore a backup or ask for help with the folder kept.
    #[error(
        "the store at {} is damaged: {detail}. It was left as found; \
         keep a copy of the folder and restore a backup",
        path.display()
    )]
    Damaged { path: PathBuf, detail: String },

    /// Written in a version that this build does not know. Nothing was changed; use a build
    /// that does.
    #[error(
        "the store at {} has {mismatch}: use the version that wrote it, or a newer one. \
         It was left as found",
        path.display()
    )]
    UnknownVersion { path: PathBuf, mismatch: VersionMismatch },

    /// Written in a version before the one that this build reads. Nothing was changed; its
    /// owner knows how to carry it over.
    #[error("the store at {} has {mismatch}: it has to be upgraded", path.display())]
    Outdated { path: PathBuf, mismatch: VersionMismatch },

    /// The operating system refused. Often transient or a matter of permissions or space;
    /// correct that and try again.
    #[error("could not {action}")]
    Io {
        action: String,
        #[source]
        source: io::Error,
    },

    /// The disk is full. What was stored can be read, and writes resume by themselves when
    /// there is space again: remove something, or enlarge the disk.
    #[error("no space left on device: {detail}")]
    Full { detail: String },

    /// A commit failed, so the store takes no more writes. Restart the process:
    /// opening finds out what was written.
    #[error("the store failed and takes no more writes ({detail}): restart to recover")]
    Failed { detail: String },

    /// A backup that is incomplete, or no backup at all. Use another one.
    #[error("the backup in {} cannot be used: {detail}", path.display())]
    Backup {
        path: PathBuf,
        /// Boxed, because a second variant with two strings would make all errors larger.
        detail: Box<str>,
    },

    /// An operation was stopped before its end, and left nothing.
    #[error("stopped before its end; nothing is left of it")]
    Stopped,

    /// The store was opened to be read.
    #[error("the store was opened for reading only")]
    ReadOnly,

    /// The store was closed by its owner.
    #[error("the store is closed")]
    Closed,
}

impl StorageError {
    pub(crate) fn io(action: impl Into<String>, source: io::Error) -> StorageError {
        let action = action.into();
        // A file that may grow no more is as full as its disk.
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        if matches!(source.kind(), FileTooLarge | QuotaExceeded | StorageFull) {
            return StorageError::Full { detail: format!("could not {action}") };
        }
        StorageError::Io { action, source }
    }
}

/// A version that was found where another one is read. Boxed, so that errors stay small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionMismatch(Box<str>);

impl VersionMismatch {
    pub(crate) fn new(
        what: &str,
        found: impl fmt::Display,
        supported: impl fmt::Display,
    ) -> VersionMismatch {
        VersionMismatch(format!("{what} {found}, and this build reads {supported}").into())
    }
}

impl fmt::Display for VersionMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
