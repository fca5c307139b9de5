//! Trimming the history that the change feed of all versions and deletes reads.

use cluster::ClusterError;

use crate::catalogue::ContainerEntry;
use crate::error::ServiceError;
use crate::maintenance::Maintenance;

impl Maintenance<'_> {
    /// Removes records that are older than the retention of their container. Returns how many.
    ///
    /// To be called periodically. Containers without a change feed policy have none; those
    /// whose policy has no retention may still have records from before.
    pub async fn trim_history(self) -> Result<u64, ServiceError> {
        let has_policy =
            |entry: &&ContainerEntry| entry.container.spec().definition.change_feed().is_some();
        let entries: Vec<ContainerEntry> =
            self.service.directory().containers().filter(has_policy).cloned().collect();
        let mut removed = 0;
        for entry in &entries {
            removed += match self.service.cluster.trim_history(&entry.container).await {
                Err(ClusterError::NoContainer(_)) => continue,
                done => done?,
            };
        }
        Ok(removed)
    }
}
