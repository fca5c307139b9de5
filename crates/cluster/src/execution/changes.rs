//! The change feed of one physical partition.
//!
//! Positions belong to a partition, so a page never spans two. After a split or merge they
//! mean the same in its successors: items keep the positions of their changes, and new
//! positions come after them.

use std::sync::Arc;
use std::time::Duration;

use partition::{ChangePage, Changes};

use crate::cluster::{Cluster, Served};
use crate::error::ClusterError;
use crate::execution::read::read_from_owner;
use crate::layout::container::Container;
use crate::layout::partition_handle::PartitionHandle;

impl Cluster {
    /// Reads changes, on a query thread: the matching ones may be few among many. The
    /// requested part of the ring must lie in one range.
    pub async fn list_changes(
        &self,
        container: &Arc<Container>,
        changes: Changes,
        time_max: Duration,
    ) -> Result<Served<ChangePage>, ClusterError> {
        let partition = container.route(&changes.within.min)?;
        self.list_changes_at(container, partition, changes, time_max, |page| page).await
    }

    /// The same from the partition that a request was routed to, or from its successor, and
    /// what `shape` makes of the page: that takes time for each change, too.
    pub async fn list_changes_at<T: Send + 'static>(
        &self,
        container: &Arc<Container>,
        partition: Arc<PartitionHandle>,
        changes: Changes,
        time_max: Duration,
        shape: impl FnOnce(ChangePage) -> T + Send + 'static,
    ) -> Result<Served<T>, ClusterError> {
        let (container, now) = (Arc::clone(container), self.now());
        let page = self.query_threads().run(move |turn| {
            let start = &changes.within.min;
            let served = read_from_owner(&container, &partition, start, |reader, view| {
                let is_here = changes.within.max <= *reader.end();
                let page = is_here.then(|| {
                    reader.list_changes((view, now), &changes, &mut || turn.go_on(time_max))
                });
                page.transpose()
            })?;
            turn.check()?;
            let Served { range, lsn, value } = served;
            let value = value.ok_or(ClusterError::NoRange(range))?;
            Ok(Served { range, lsn, value: shape(value) })
        });
        page.await?
    }
}
