//! Partitions whose time is ahead of the clock, and setting them back.

use std::sync::Arc;
use std::time::Duration;

use partition::Position;
use storage::CommitStatus;

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::layout::container::Container;
use crate::layout::map::PartitionId;

/// Items whose time is set back between two commands.
const CHUNK_ITEMS: usize = 256;

/// A partition whose time is ahead of the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// The name of its container.
    pub container: String,
    pub range: PartitionId,
    pub by: Duration,
}

impl Cluster {
    /// The partitions whose time is ahead of the clock.
    pub fn ahead(&self) -> Result<Vec<Ahead>, ClusterError> {
        let (now, mut found) = (self.now(), Vec::new());
        for container in [Arc::clone(self.system())].into_iter().chain(self.containers()) {
            let layout = container.layout();
            for handle in &layout.partitions {
                let recorded = handle.reader().size(handle.view()?.as_ref())?.ts_millis;
                let by = Duration::from_millis(recorded.saturating_sub(now.millis()));
                if !by.is_zero() {
                    let container = layout.spec().definition.id().as_str().to_owned();
                    found.push(Ahead { container, range: handle.id(), by });
                }
            }
        }
        Ok(found)
    }

    /// Sets the time of every partition that is ahead back to the clock, and the times of
    /// the items that were written later. Returns the number of those items.
    pub async fn reset_time(&self) -> Result<u64, ClusterError> {
        let mut items = 0;
        for container in [Arc::clone(self.system())].into_iter().chain(self.containers()) {
            let _no_transition = container.one_transition().await;
            items += self.reset_container(&container).await?;
        }
        Ok(items)
    }

    async fn reset_container(&self, container: &Container) -> Result<u64, ClusterError> {
        let (mut items, now) = (0, self.now());
        for handle in &container.layout().partitions {
            let reader = handle.reader();
            let (sizes, view) = (reader.clone(), handle.view()?);
            let size = self.aside(move || sizes.size(view.as_ref()));
            if size.await??.ts_millis <= now.millis() {
                continue;
            }
            let mut first = None;
            for bucket in reader.buckets() {
                let (number, mut after) = (bucket.number, None::<Position>);
                first = first.or(Some(number));
                loop {
                    let (reader, view) = (reader.clone(), handle.view()?);
                    let start = after.take();
                    let names = self
                        .aside(move || {
                            reader.names(view.as_ref(), number, start.as_ref(), CHUNK_ITEMS)
                        })
                        .await??;
                    let Some(last) = names.last() else { break };
                    after = Some(last.clone());
                    let done = self
                        .with_owner(container, number, move |partition| {
                            partition.restamp(now, &names)
                        })
                        .await?;
                    items += done.items;
                    settled(done.ticket.await)?;
                }
            }
            if let Some(number) = first {
                let reset = move |partition: &mut partition::Partition| partition.reset_time(now);
                settled(self.with_owner(container, number, reset).await?.await)?;
            }
        }
        Ok(items)
    }
}

fn settled(fate: CommitStatus) -> Result<(), ClusterError> {
    match fate {
        CommitStatus::Durable => Ok(()),
        CommitStatus::Full => Err(ClusterError::Full),
        CommitStatus::Refused | CommitStatus::Fenced | CommitStatus::Unknown => {
            Err(ClusterError::Busy)
        }
    }
}
