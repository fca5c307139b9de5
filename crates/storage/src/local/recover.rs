//! What is done with a folder before the engine may open it.
//!
//! Three things can be found: a folder that adds up, one whose journals do not but whose
//! tables and witness show that nothing is missing, and one where something is. The last
//! is opened only where that was to be expected, after a run that did not wait for the
//! disk, or where a person accepts it. Deciding only looks; performing writes.

use std::path::{Path, PathBuf};

use super::inspect::Inspection;
use super::salvage::Salvage;
use super::witness::Testimony;
use crate::{Durability, Loss, StorageError};

/// A folder that can be opened, and how.
#[derive(Debug)]
pub(super) struct Recovery {
    folder: PathBuf,
    /// The newest commit that is there.
    pub(super) commit: u64,
    /// What is not there although it was acknowledged.
    pub(super) loss: Option<Loss>,
    way: Way,
}

#[derive(Debug)]
enum Way {
    /// It adds up.
    Tidy(Inspection),
    /// It does not, for this reason.
    Salvage(Salvage, String),
}

impl Recovery {
    /// Looks and changes nothing.
    pub(super) fn of(folder: &Path, accept_lost_writes: bool) -> Result<Recovery, StorageError> {
        let testimony = Testimony::load(folder)?;
        let relaxed = testimony.is_some_and(|witness| witness.durability == Durability::Os);
        let inspected = Inspection::of(folder).and_then(|inspection| {
            inspection.check_witness(testimony)?;
            Ok(inspection)
        });
        let detail = match inspected {
            Ok(inspection) => {
                let commit = inspection.commit;
                let loss = relaxed.then_some(Loss { found: commit, acknowledged: commit });
                let way = Way::Tidy(inspection);
                return Ok(Recovery { folder: folder.to_owned(), commit, loss, way });
            }
            Err(StorageError::Damaged { detail, .. }) => detail,
            Err(error) => return Err(error),
        };
        let salvage = Salvage::of(folder)?;
        let (commit, path) = (salvage.commit, folder.to_owned());
        let witness = testimony.map(|witness| witness.commit);
        let is_complete = witness.is_some_and(|witness| salvage.is_complete(witness));
        let loss = if !relaxed && is_complete {
            None
        } else if relaxed || accept_lost_writes {
            // The commit that was seen last may never have been acknowledged, but the one
            // before it was.
            let seen = salvage.newest_seen.saturating_sub(1);
            let acknowledged = commit.max(witness.unwrap_or_default()).max(seen);
            Some(Loss { found: commit, acknowledged })
        } else {
            let detail = format!("{detail} (accept lost writes to open it with commit {commit})");
            return Err(StorageError::Damaged { path, detail });
        };
        Ok(Recovery { folder: path, commit, loss, way: Way::Salvage(salvage, detail) })
    }

    /// Leaves nothing for the engine to repair.
    pub(super) fn perform(self) -> Result<Recovery, StorageError> {
        let folder = self.folder.display();
        match (&self.way, &self.loss) {
            (Way::Tidy(inspection), loss) => {
                inspection.tidy()?;
                if let Some(loss) = loss {
                    tracing::info!(%folder, "{loss}");
                }
            }
            (Way::Salvage(salvage, detail), None) => {
                tracing::warn!(%folder, detail, "the tables have all of it");
                salvage.perform()?;
            }
            (Way::Salvage(salvage, detail), Some(loss)) => {
                tracing::warn!(%folder, detail, "{loss}");
                salvage.perform()?;
            }
        }
        Ok(self)
    }
}
