//! The version of what a store holds, and carrying a store over from the version before.
//!
//! Rows are written by three crates: items and what is derived from them by `partition`,
//! maps by `cluster`, the catalogue by this one. They change together, so they have one
//! version, and it is kept here, above all of them.

use std::sync::Arc;

use cluster::{Cluster, ClusterError, Upgrade};
use model::limits::Limits;
use partition::upgrade::{OldItems, UpgradeProgress};
use runtime::Runtime;
use storage::{ContentsVersion, Store};

use crate::error::ServiceError;
use crate::service::Service;

/// The version of the rows that this build reads and writes. To be raised with every change
/// that an older build would misread or that misreads what older builds wrote
/// (`docs/design/upgrades.md`).
pub const CONTENTS: ContentsVersion = ContentsVersion(3);

/// The versions that [`fill`] carries over: the one before, and as that was never released,
/// the one before it.
pub const CONTENTS_BEFORE: [ContentsVersion; 2] = [ContentsVersion(1), ContentsVersion(2)];

/// Why a store was not carried over. The old one is as it was.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    /// One of the stores could not be read or written, or the old one is not consistent.
    #[error(transparent)]
    Store(#[from] ClusterError),
    /// What was carried over of the catalogue does not say what else there is.
    #[error("the catalogue cannot be read")]
    Catalogue(#[source] ServiceError),
}

/// What was carried over so far, by this run and those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Upgraded {
    pub items: u64,
    /// Of their texts, as the old store has them.
    pub bytes: u64,
}

/// Fills `new` with what `old`, a store of one of [`CONTENTS_BEFORE`], holds; goes on where an
/// earlier run with the same two stores has ended. `observe` is called after each batch.
/// Blocks the calling thread until everything is durable.
pub fn fill(
    (old, version): (&dyn Store, ContentsVersion),
    new: &Arc<dyn Store>,
    runtime: &Runtime,
    mut observe: impl FnMut(Upgraded),
) -> Result<Upgraded, UpgradeError> {
    let view = old.view().map_err(ClusterError::from)?;
    let mut observe = |progress: &UpgradeProgress| observe(Upgraded::of(progress));
    let items = if version < ContentsVersion(2) { OldItems::Version1 } else { OldItems::AsNow };
    let mut work = Upgrade::begin((view.as_ref(), items), new.as_ref(), &mut observe)?;
    let limits = Arc::new(Limits::default());
    let system = Cluster::open(Arc::clone(new), runtime.clone(), limits)?;
    system.upgrade_system(&mut work)?;
    drop(system);
    let service = Service::open(Arc::clone(new), runtime.clone(), Limits::default());
    let service = service.map_err(UpgradeError::Catalogue)?;
    service.cluster.upgrade_containers(&mut work)?;
    Ok(Upgraded::of(&work.end()?))
}

impl Upgraded {
    fn of(progress: &UpgradeProgress) -> Upgraded {
        Upgraded { items: progress.items_total, bytes: progress.bytes_total }
    }
}
