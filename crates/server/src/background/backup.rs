//! The backup of a running server.
//!
//! One at a time, on a blocking thread. Only the shutdown waits for it: the store is closed
//! when it is no longer read.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use operator::{BackupRefused, BackupStatus};
use service::{Principal, Service};
use storage::backup::{self, Progress};
use storage::{StorageError, Store};
use tokio::task::JoinHandle;

/// The backup that runs, or the last one.
#[derive(Debug, Default)]
pub(crate) struct BackupJob {
    state: Mutex<State>,
    /// None may begin or continue.
    ending: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    folder: PathBuf,
    progress: Progress,
    phase: Phase,
    work: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
enum Phase {
    /// There was none yet.
    #[default]
    None,
    Running,
    Done,
    Failed(String),
}

impl BackupJob {
    /// Begins one, and returns at once.
    pub(crate) fn begin(
        self: &Arc<BackupJob>,
        service: &Service,
        folder: PathBuf,
    ) -> Result<BackupStatus, BackupRefused> {
        if folder.exists() {
            let message = format!("{} is there already: choose a new folder", folder.display());
            return Err(BackupRefused::Conflict(message));
        }
        let mut state = self.state();
        if matches!(state.phase, Phase::Running) {
            let message = format!("a backup to {} is running", state.folder.display());
            return Err(BackupRefused::Conflict(message));
        }
        if self.ending.load(Ordering::Relaxed) {
            return Err(BackupRefused::Conflict("the server is stopping".to_owned()));
        }
        let store = service.operator(Principal::Account).backup_source()?;
        let (job, to) = (Arc::clone(self), folder.clone());
        let work = tokio::task::spawn_blocking(move || job.carry_out(&*store, to));
        let progress = Progress::default();
        *state = State { folder, progress, phase: Phase::Running, work: Some(work) };
        drop(state);
        Ok(self.status())
    }

    pub(crate) fn status(&self) -> BackupStatus {
        let state = self.state();
        let (folder, Progress { rows, bytes }) = (state.folder.clone(), state.progress);
        match &state.phase {
            Phase::None => BackupStatus::None,
            Phase::Running => BackupStatus::Running { folder, rows, bytes },
            Phase::Done => BackupStatus::Done { folder, rows, bytes },
            Phase::Failed(message) => {
                BackupStatus::Failed { folder, rows, bytes, message: message.clone() }
            }
        }
    }

    /// Stops the running one, and waits until nothing is left of it.
    pub(crate) async fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
        let work = self.state().work.take();
        if let Some(work) = work
            && work.await.is_err()
        {
            tracing::error!("a backup panicked");
        }
    }

    fn carry_out(&self, store: &dyn Store, folder: PathBuf) {
        let written = backup::write((store, service::upgrade::CONTENTS), &folder, |progress| {
            self.state().progress = progress;
            !self.ending.load(Ordering::Relaxed)
        });
        let folder = folder.display();
        match &written {
            Ok(Progress { rows, bytes }) => tracing::info!(%folder, rows, bytes, "backed up"),
            Err(error) => tracing::warn!(%folder, %error, "a backup was not finished"),
        }
        self.state().phase =
            written.map_or_else(|error| Phase::Failed(explain(&error)), |_| Phase::Done);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Includes the system's own message.
fn explain(error: &StorageError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
