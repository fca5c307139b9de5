//! Online backfill of index entries after a change of the indexing policy.
//!
//! Bucket after bucket, in the order of the ring, so that a position on the ring is the
//! progress, whatever splits and merges do meanwhile. Nothing is remembered across
//! restarts: the catalogue still names the old policies, so the backfill begins again and
//! skips quickly what was done already.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::epk::Epk;
use partition::{BucketNumber, Position};
use storage::CommitStatus;

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::layout::container::Container;

/// Items that are re-indexed at once. The sequencer takes no command meanwhile.
const CHUNK_ITEMS: usize = 32;

/// Items scanned since the policy was changed.
#[derive(Debug, Default)]
pub(crate) struct Reindexed(AtomicU64);

impl Container {
    /// Items that have been brought under the policy in force, while not all have.
    #[must_use]
    pub fn reindexed(&self) -> u64 {
        self.reindexed.0.load(Ordering::Relaxed)
    }
}

impl Cluster {
    /// Gives all items the entries of the policy in force. Returns the version of that
    /// policy: no item is left under an earlier one.
    pub async fn reindex(&self, container: &Arc<Container>) -> Result<u32, ClusterError> {
        let versions = container.spec();
        let target = versions.policies.keys().next_back().copied().unwrap_or_default();
        container.reindexed.0.store(0, Ordering::Relaxed);
        let mut at = Epk::MIN;
        while at < Epk::max() {
            // So that the bucket stays where it is.
            let _no_transition = container.one_transition().await;
            at = self.reindex_bucket(container, &at).await?;
        }
        Ok(target)
    }

    /// Re-indexes the bucket that contains a position on the ring, and returns where it
    /// ends.
    async fn reindex_bucket(&self, container: &Container, at: &Epk) -> Result<Epk, ClusterError> {
        let handle = container.route(at)?;
        let reader = handle.reader();
        let bucket = reader.buckets().iter().find(|bucket| bucket.range.contains(at));
        let bucket = bucket.ok_or(ClusterError::NoRange(handle.id()))?;
        self.settle(container, bucket.number).await?;
        let mut after: Option<Position> = None;
        loop {
            let handle = container.route(&bucket.range.min)?;
            let (reader, view) = (handle.reader(), handle.view()?);
            let (number, start) = (bucket.number, after.take());
            let names = self
                .aside(move || reader.names(view.as_ref(), number, start.as_ref(), CHUNK_ITEMS))
                .await??;
            let Some(last) = names.last() else { return Ok(bucket.range.max.clone()) };
            after = Some(last.clone());
            let met = names.len() as u64;
            let done =
                self.with_owner(container, number, move |partition| partition.reindex(&names));
            if done.await?.ticket.await != CommitStatus::Durable {
                return Err(ClusterError::Busy);
            }
            container.reindexed.0.fetch_add(met, Ordering::Relaxed);
        }
    }

    /// Waits until commands that were taken under an earlier policy are durable: views do
    /// not show them before.
    async fn settle(
        &self,
        container: &Container,
        bucket: BucketNumber,
    ) -> Result<(), ClusterError> {
        let taken = self.with_owner(container, bucket, |partition| Ok(partition.barrier()));
        match taken.await?.await {
            CommitStatus::Durable => Ok(()),
            CommitStatus::Full => Err(ClusterError::Full),
            CommitStatus::Refused | CommitStatus::Fenced | CommitStatus::Unknown => {
                Err(ClusterError::Busy)
            }
        }
    }
}
