//! Trimming of the history that the change feed of all versions and deletes reads.
//!
//! Bucket after bucket, some records at a time between other commands. Records go in the
//! order in which they were written, so a bucket with nothing to remove costs one read.

use std::sync::Arc;

use partition::{BucketNumber, Outdated};
use storage::CommitStatus;

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::layout::container::Container;
use crate::maintenance::unless_put_off;
use crate::transition::rebucket::owner;

/// Records that are removed at once. The sequencer takes no command meanwhile, and a removal
/// is two keys without looking at anything.
const CHUNK_RECORDS: usize = 256;

impl Cluster {
    /// Removes what is older than the retention from the history of a container, and returns
    /// the number of records.
    pub async fn trim_history(&self, container: &Arc<Container>) -> Result<u64, ClusterError> {
        let mut buckets = Vec::new();
        for handle in &container.layout().partitions {
            buckets.extend(handle.reader().buckets().iter().map(|bucket| bucket.number));
        }
        let mut removed = 0;
        for bucket in buckets {
            unless_put_off(self.trim_bucket(container, bucket, &mut removed).await)?;
        }
        Ok(removed)
    }

    async fn trim_bucket(
        &self,
        container: &Arc<Container>,
        bucket: BucketNumber,
        removed: &mut u64,
    ) -> Result<(), ClusterError> {
        loop {
            let outdated = self.find_outdated(container, bucket).await?;
            if outdated.is_empty() {
                return Ok(());
            }
            let count = outdated.len() as u64;
            let trim = move |partition: &mut partition::Partition| {
                partition.trim_history(bucket, &outdated)
            };
            if self.with_owner(container, bucket, trim).await?.await != CommitStatus::Durable {
                return Err(ClusterError::Busy);
            }
            *removed += count;
        }
    }

    async fn find_outdated(
        &self,
        container: &Arc<Container>,
        bucket: BucketNumber,
    ) -> Result<Vec<Outdated>, ClusterError> {
        let now = self.now();
        let handle = owner(container, bucket)?;
        let found = self.aside(move || {
            let (reader, view) = (handle.reader(), handle.view()?);
            Ok(reader.outdated_history((view.as_ref(), now), bucket, CHUNK_RECORDS)?)
        });
        found.await?
    }
}
