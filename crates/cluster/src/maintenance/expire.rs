//! Removal of expired items, which frees their space.
//!
//! Bucket after bucket, a few items at a time between other commands. Where nothing is due
//! that costs a read or two for each bucket; the position that the last search reached is
//! only kept in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use partition::{BucketNumber, Passed, Position};
use storage::CommitStatus;

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::layout::container::Container;
use crate::maintenance::unless_put_off;
use crate::transition::rebucket::owner;

/// Items that are removed at once. The sequencer takes no command meanwhile.
const CHUNK_ITEMS: usize = 32;

/// Where the next search begins, by bucket.
#[derive(Debug, Default)]
pub(crate) struct Searched(Mutex<BTreeMap<BucketNumber, Passed>>);

impl Cluster {
    /// Removes the expired items of a container, and returns their number.
    pub async fn expire(&self, container: &Arc<Container>) -> Result<u64, ClusterError> {
        let mut buckets = Vec::new();
        for handle in &container.layout().partitions {
            buckets.extend(handle.reader().buckets().iter().map(|bucket| bucket.number));
        }
        container.searched.keep(&buckets);
        let mut removed = 0;
        for bucket in buckets {
            unless_put_off(self.expire_bucket(container, bucket, &mut removed).await)?;
        }
        Ok(removed)
    }

    async fn expire_bucket(
        &self,
        container: &Arc<Container>,
        bucket: BucketNumber,
        removed: &mut u64,
    ) -> Result<(), ClusterError> {
        loop {
            let names = self.find_expired(container, bucket).await?;
            if names.is_empty() {
                return Ok(());
            }
            let now = self.now();
            let done = self
                .with_owner(container, bucket, move |partition| partition.expire(now, &names))
                .await?;
            if done.items == 0 {
                return Ok(());
            }
            if done.ticket.await != CommitStatus::Durable {
                return Err(ClusterError::Busy);
            }
            *removed += done.items;
        }
    }

    async fn find_expired(
        &self,
        container: &Arc<Container>,
        bucket: BucketNumber,
    ) -> Result<Vec<Position>, ClusterError> {
        let (container, now) = (Arc::clone(container), self.now());
        let handle = owner(&container, bucket)?;
        let found = self.aside(move || {
            let (reader, view) = (handle.reader(), handle.view()?);
            let mut passed = container.searched.of(bucket);
            let names = reader.expired((view.as_ref(), now), bucket, &mut passed, CHUNK_ITEMS)?;
            container.searched.set(bucket, passed);
            Ok(names)
        });
        found.await?
    }
}

impl Searched {
    fn of(&self, bucket: BucketNumber) -> Passed {
        self.buckets().get(&bucket).copied().unwrap_or_default()
    }

    fn set(&self, bucket: BucketNumber, passed: Passed) {
        self.buckets().insert(bucket, passed);
    }

    /// Forgets all other buckets.
    fn keep(&self, buckets: &[BucketNumber]) {
        self.buckets().retain(|bucket, _| buckets.contains(bucket));
    }

    fn buckets(&self) -> std::sync::MutexGuard<'_, BTreeMap<BucketNumber, Passed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
