//! Automatic splits of partitions that have outgrown their limit.
//!
//! The sequencer knows its size after every command, so noticing costs a comparison.
//! Splitting runs elsewhere: a background task calls [`Cluster::relieve`] when it is
//! notified.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use partition::ContainerNumber;
use tokio::sync::Notify;

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::layout::container::Container;
use crate::layout::map::PartitionId;
use crate::transition::{Halve, Transition};

/// Partitions that are due and not looked at yet. There are never more than there are
/// partitions.
#[derive(Debug, Default)]
pub(crate) struct Due {
    noted: Mutex<BTreeSet<(ContainerNumber, PartitionId)>>,
    any: Notify,
}

impl Due {
    pub(crate) fn note(&self, container: ContainerNumber, range: PartitionId) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.insert((container, range)) {
            self.any.notify_one();
        }
    }

    fn take(&self) -> BTreeSet<(ContainerNumber, PartitionId)> {
        std::mem::take(&mut self.noted.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Errors of some containers, while others succeeded.
#[derive(Debug, Default)]
struct Failures {
    first: Option<ClusterError>,
}

impl Failures {
    fn note<T>(
        &mut self,
        container: ContainerNumber,
        result: Result<T, ClusterError>,
    ) -> Option<T> {
        let error = match result {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        if self.first.is_some() {
            // Only one error can be returned.
            tracing::warn!(container = container.0, %error, "a layout could not be changed");
        }
        self.first.get_or_insert(error);
        None
    }
}

impl Cluster {
    /// Waits until a partition has outgrown its limit.
    pub async fn relief_wanted(&self) {
        self.due.any.notified().await;
    }

    /// Splits the partitions that have outgrown their limit, in containers that `may_grow`,
    /// and resumes moves from before a restart. A partition that cannot be split is left
    /// until it has grown further. An error in one container does not keep the others from
    /// their turn; the first error is returned after all had it.
    pub async fn relieve(
        &self,
        may_grow: impl Fn(&Container) -> bool,
    ) -> Result<Vec<Transition>, ClusterError> {
        let (mut done, mut failures) = (Vec::new(), Failures::default());
        for container in self.containers() {
            if !container.map().moves().is_empty() {
                failures.note(container.number(), self.resume_moves(&container).await);
            }
        }
        for (number, range) in self.due.take() {
            // Dropped, split or emptied since.
            let Ok(container) = self.container(number) else { continue };
            let Ok(handle) = container.partition(range) else { continue };
            if !handle.is_due() {
                continue;
            }
            handle.postpone();
            if may_grow(&container) {
                let split = self.split_due(&container, range).await;
                done.extend(failures.note(number, split).flatten());
            }
        }
        failures.first.map_or(Ok(done), Err)
    }

    async fn split_due(
        &self,
        container: &Arc<Container>,
        range: PartitionId,
    ) -> Result<Option<Transition>, ClusterError> {
        match self.split(container, range, Halve::Bytes).await {
            Ok(transition) => Ok(Some(transition)),
            Err(error @ ClusterError::Indivisible { .. }) => {
                tracing::warn!(%error, "a partition is over its limit and stays as it is");
                Ok(None)
            }
            // A concurrent transition was faster.
            Err(ClusterError::NoRange(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
