//! Maintenance: removing, re-indexing, splitting and merging in the background.
//!
//! The server calls these verbs after a start and whenever the matching `…_wanted`
//! resolves: requests of any protocol that leave work to do wake them up here, so the
//! server need not guess from a request what it left.

pub(crate) mod expire;
pub(crate) mod history;
pub(crate) mod reindex;

use crate::service::Service;

/// The background verbs, and the wake-ups that say when they are due.
#[derive(Clone, Copy, Debug)]
pub struct Maintenance<'a> {
    pub(crate) service: &'a Service,
}

impl Service {
    /// The verbs of background tasks.
    #[must_use]
    pub fn maintenance(&self) -> Maintenance<'_> {
        Maintenance { service: self }
    }
}

impl Maintenance<'_> {
    /// Waits until there is something to [`Maintenance::sweep`].
    pub async fn sweep_wanted(self) {
        self.service.dropped.notified().await;
    }

    /// Waits until items may have expired all at once: see [`Maintenance::expire`].
    pub async fn expiry_wanted(self) {
        self.service.clock_moved.notified().await;
    }

    /// Waits until an indexing policy was changed: see [`Maintenance::reindex`].
    pub async fn reindexing_wanted(self) {
        self.service.reindexing.notified().await;
    }

    /// Waits until there is something to [`Maintenance::scale`].
    pub async fn scaling_wanted(self) {
        self.service.scaling.notified().await;
    }

    /// Waits until there is something to [`Maintenance::relieve`].
    pub async fn relief_wanted(self) {
        self.service.cluster.relief_wanted().await;
    }
}
