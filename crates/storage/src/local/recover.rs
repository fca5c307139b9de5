//! What happens to a folder before the engine may open it.
//!
//! There are three cases: a consistent folder, one with inconsistent journals whose tables
//! and watermark show that nothing is missing, and one where something is missing. The last
//! is opened only where that was to be expected, after a run that did not wait for the
//! disk, or where an operator accepts it. Planning only reads; performing writes.

use std::path::{Path, PathBuf};

use super::inspect::Inspection;
use super::salvage::Salvage;
use super::watermark::CommitWatermark;
use crate::{Durability, Loss, StorageError};

/// A folder that can be opened, and how.
#[derive(Debug)]
pub(super) struct Recovery {
    folder: PathBuf,
    /// The newest commit that was found.
    pub(super) commit: u64,
    /// What is missing although it was acknowledged.
    pub(super) loss: Option<Loss>,
    plan: RecoveryPlan,
}

#[derive(Debug)]
enum RecoveryPlan {
    /// It is consistent.
    Tidy(Inspection),
    /// It is not, for this reason.
    Salvage(Salvage, String),
}

impl Recovery {
    /// Reads and changes nothing.
    pub(super) fn of(folder: &Path, accept_lost_writes: bool) -> Result<Recovery, StorageError> {
        let watermark = CommitWatermark::load(folder)?;
        let relaxed = watermark.is_some_and(|watermark| watermark.durability == Durability::Os);
        let inspected = Inspection::of(folder).and_then(|inspection| {
            inspection.check_watermark(watermark)?;
            Ok(inspection)
        });
        let detail = match inspected {
            Ok(inspection) => {
                let commit = inspection.commit;
                let loss = relaxed.then_some(Loss { found: commit, acknowledged: commit });
                let plan = RecoveryPlan::Tidy(inspection);
                return Ok(Recovery { folder: folder.to_owned(), commit, loss, plan });
            }
            Err(StorageError::Damaged { detail, .. }) => detail,
            Err(error) => return Err(error),
        };
        let salvage = Salvage::of(folder)?;
        let (commit, path) = (salvage.commit, folder.to_owned());
        let recorded = watermark.map(|watermark| watermark.commit);
        let is_complete = recorded.is_some_and(|commit| salvage.is_complete(commit));
        let loss = if !relaxed && is_complete {
            None
        } else if relaxed || accept_lost_writes {
            // The newest commit that was seen may never have been acknowledged, but the one
            // before it was.
            let seen = salvage.newest_seen.saturating_sub(1);
            let acknowledged = commit.max(recorded.unwrap_or_default()).max(seen);
            Some(Loss { found: commit, acknowledged })
        } else {
            let detail = format!("{detail} (accept lost writes to open it with commit {commit})");
            return Err(StorageError::Damaged { path, detail });
        };
        Ok(Recovery { folder: path, commit, loss, plan: RecoveryPlan::Salvage(salvage, detail) })
    }

    /// Leaves nothing for the engine to repair.
    pub(super) fn perform(self) -> Result<Recovery, StorageError> {
        let folder = self.folder.display();
        match (&self.plan, &self.loss) {
            (RecoveryPlan::Tidy(inspection), loss) => {
                inspection.tidy()?;
                if let Some(loss) = loss {
                    tracing::info!(%folder, "{loss}");
                }
            }
            (RecoveryPlan::Salvage(salvage, detail), None) => {
                tracing::warn!(%folder, detail, "the tables have all of it");
                salvage.perform()?;
            }
            (RecoveryPlan::Salvage(salvage, detail), Some(loss)) => {
                tracing::warn!(%folder, detail, "{loss}");
                salvage.perform()?;
            }
        }
        Ok(self)
    }
}
