//! Backfilling indexes after a change of indexing policy.

use cluster::Container;

use crate::catalogue::ContainerEntry;
use crate::error::ServiceError;
use crate::maintenance::Maintenance;

impl Maintenance<'_> {
    /// Re-indexes the items of containers whose policy was changed. Returns the number of
    /// containers.
    ///
    /// To be called after a start and whenever [`Maintenance::reindexing_wanted`] says so.
    pub async fn reindex(self) -> Result<usize, ServiceError> {
        let outdated = |entry: &&ContainerEntry| entry.container.spec().policies.len() > 1;
        let entries: Vec<ContainerEntry> =
            self.service.directory().containers().filter(outdated).cloned().collect();
        for entry in &entries {
            let version = match self.service.cluster.reindex(&entry.container).await {
                Err(cluster::ClusterError::NoContainer(_)) => continue,
                done => done?,
            };
            self.service.forget_policies(&entry.rid.to_string(), version).await?;
        }
        Ok(entries.len())
    }
}

/// How many of a hundred items have the entries of the policy in force.
pub(crate) fn percent(container: &Container, items: u64) -> u8 {
    const ALL: u64 = 100;
    if items == 0 || container.spec().policies.len() == 1 {
        return 100;
    }
    let percent = container.reindexed().saturating_mul(ALL) / items;
    u8::try_from(percent.min(ALL - 1)).unwrap_or_default()
}
