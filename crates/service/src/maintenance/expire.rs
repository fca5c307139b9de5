//! Removing expired items.

use cluster::ClusterError;
use model::policy::TimeToLive;

use crate::catalogue::ContainerEntry;
use crate::error::ServiceError;
use crate::maintenance::Maintenance;

impl Maintenance<'_> {
    /// Removes expired items of all containers. Returns how many.
    ///
    /// To be called periodically: for clients these items are gone already.
    pub async fn expire(self) -> Result<u64, ServiceError> {
        let expires =
            |entry: &&ContainerEntry| entry.container.spec().definition.ttl() != TimeToLive::Off;
        let entries: Vec<ContainerEntry> =
            self.service.directory().containers().filter(expires).cloned().collect();
        let mut removed = 0;
        for entry in &entries {
            removed += match self.service.cluster.expire(&entry.container).await {
                Err(ClusterError::NoContainer(_)) => continue,
                done => done?,
            };
        }
        Ok(removed)
    }
}
