//! Filling a new store from one of an older version: all buckets of all containers, in the
//! order of their numbers.
//!
//! The system container comes first, as it says which other containers and buckets there
//! are. What no container owns any more stays behind. Batches are made one after the other,
//! each with the progress in it, and nothing serves the new store meanwhile.

use std::fmt;
use std::sync::Arc;

use partition::upgrade::{BucketUpgrade, CarriedChunk, OldItems, UpgradeProgress};
use partition::{Bucket, PartitionConfig};
use storage::{
    CommitStatus, Direction, KeyRange, ScanLimit, Store, View, WriteBatch, WriteSession,
};

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::layout::container::Container;

/// An upgrade from a view of the old store to a new store.
pub struct Upgrade<'a> {
    old: &'a dyn View,
    items: OldItems,
    new: &'a dyn Store,
    session: Box<dyn WriteSession>,
    progress: UpgradeProgress,
    is_complete: bool,
    observe: &'a mut dyn FnMut(&UpgradeProgress),
}

impl fmt::Debug for Upgrade<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upgrade").field("progress", &self.progress).finish_non_exhaustive()
    }
}

impl<'a> Upgrade<'a> {
    /// Begins, or goes on with what the new store holds already. `observe` is called after
    /// each batch, when it is durable.
    pub fn begin(
        (old, items): (&'a dyn View, OldItems),
        new: &'a dyn Store,
        observe: &'a mut dyn FnMut(&UpgradeProgress),
    ) -> Result<Upgrade<'a>, ClusterError> {
        let view = new.view()?;
        let stored = UpgradeProgress::stored(view.as_ref())?;
        let first = view.scan(&KeyRange::all(), Direction::Forward, ScanLimit::rows(1))?;
        let is_complete = stored.is_none() && !first.rows.is_empty();
        let (session, progress) = (new.write_session(), stored.unwrap_or_default());
        Ok(Upgrade { old, items, new, session, progress, is_complete, observe })
    }

    /// Ends it: the new store has everything. Returns what this run and those before it
    /// have carried over.
    pub fn end(mut self) -> Result<UpgradeProgress, ClusterError> {
        if !self.is_complete {
            self.commit(UpgradeProgress::end())?;
            (self.observe)(&self.progress);
        }
        Ok(self.progress)
    }

    fn bucket(&mut self, config: &PartitionConfig, bucket: &Bucket) -> Result<(), ClusterError> {
        let at = (self.progress.container, self.progress.bucket);
        if self.is_complete || (config.container, bucket.number) < at {
            return Ok(());
        }
        let work = BucketUpgrade::new(config, bucket, (self.old, self.items));
        loop {
            let CarriedChunk { batch, progress, is_last } =
                work.next(self.new.view()?, &self.progress)?;
            let is_empty = batch.is_empty();
            self.commit(batch)?;
            self.progress = progress;
            if !is_empty {
                (self.observe)(&self.progress);
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Waits until a batch is durable: the next one is made on top of it.
    fn commit(&mut self, batch: WriteBatch) -> Result<(), ClusterError> {
        match self.session.submit(batch).wait() {
            CommitStatus::Durable => Ok(()),
            CommitStatus::Full => Err(ClusterError::Full),
            CommitStatus::Refused | CommitStatus::Fenced | CommitStatus::Unknown => {
                self.new.health()?;
                Err(ClusterError::Unknown)
            }
        }
    }
}

impl Cluster {
    /// Carries the system container over.
    pub fn upgrade_system(&self, upgrade: &mut Upgrade<'_>) -> Result<(), ClusterError> {
        upgrade_container(self.system(), upgrade)
    }

    /// Carries all attached containers over.
    pub fn upgrade_containers(&self, upgrade: &mut Upgrade<'_>) -> Result<(), ClusterError> {
        self.containers().iter().try_for_each(|container| upgrade_container(container, upgrade))
    }
}

fn upgrade_container(container: &Container, upgrade: &mut Upgrade<'_>) -> Result<(), ClusterError> {
    for (config, bucket) in in_order(container) {
        upgrade.bucket(&config, &bucket)?;
    }
    Ok(())
}

/// The buckets of a container in the order of their numbers, which is the same whenever it
/// is asked for: the map that was carried over does not change.
fn in_order(container: &Container) -> Vec<(Arc<PartitionConfig>, Bucket)> {
    let layout = container.layout();
    let configs = layout.partitions.iter().map(|handle| handle.config());
    let buckets = configs.flat_map(|config| {
        let written: Vec<Bucket> = config.written_buckets().cloned().collect();
        written.into_iter().map(move |bucket| (Arc::clone(&config), bucket))
    });
    let mut buckets: Vec<_> = buckets.collect();
    buckets.sort_by_key(|(_, bucket)| bucket.number);
    buckets
}
