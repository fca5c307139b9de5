//! The change feed of one physical partition, in both its modes.
//!
//! Positions belong to a partition, so a page never spans two. After a split or merge they
//! mean the same in its successors: items keep the positions of their changes, and new
//! positions come after them.

use std::sync::Arc;
use std::time::Duration;

use model::epk::EpkRange;
use partition::{ChangePage, Changes, History, HistoryPage, PartitionError, Reader};
use storage::View;

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
        let now = self.now();
        let within = changes.within.clone();
        let read = move |reader: &Reader, view: &dyn View, go_on: &mut dyn FnMut() -> bool| {
            reader.list_changes((view, now), &changes, go_on)
        };
        self.read_feed(container, partition, (within, time_max), read, shape).await
    }

    /// Reads all versions and deletes. The requested part of the ring must lie in one range.
    pub async fn list_history(
        &self,
        container: &Arc<Container>,
        history: History,
        time_max: Duration,
    ) -> Result<Served<HistoryPage>, ClusterError> {
        let partition = container.route(&history.0.within.min)?;
        self.list_history_at(container, partition, history, time_max, |page| page).await
    }

    /// The same from the partition that a request was routed to, or from its
    /// successor.
    pub async fn list_history_at<T: Send + 'static>(
        &self,
        container: &Arc<Container>,
        partition: Arc<PartitionHandle>,
        history: History,
        time_max: Duration,
        shape: impl FnOnce(HistoryPage) -> T + Send + 'static,
    ) -> Result<Served<T>, ClusterError> {
        let within = history.0.within.clone();
        let read = move |reader: &Reader, view: &dyn View, go_on: &mut dyn FnMut() -> bool| {
            reader.list_history(view, &history, go_on)
        };
        self.read_feed(container, partition, (within, time_max), read, shape).await
    }

    /// Reads a page of changes of a part of the ring that one partition owns.
    async fn read_feed<P, T: Send + 'static>(
        &self,
        container: &Arc<Container>,
        partition: Arc<PartitionHandle>,
        (within, time_max): (EpkRange, Duration),
        read: impl Fn(&Reader, &dyn View, &mut dyn FnMut() -> bool) -> Result<P, PartitionError>
        + Send
        + 'static,
        shape: impl FnOnce(P) -> T + Send + 'static,
    ) -> Result<Served<T>, ClusterError> {
        let container = Arc::clone(container);
        let page = self.query_threads().run(move |turn| {
            let served = read_from_owner(&container, &partition, &within.min, |reader, view| {
                let is_here = within.max <= *reader.end();
                let page = is_here.then(|| read(reader, view, &mut || turn.go_on(time_max)));
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
