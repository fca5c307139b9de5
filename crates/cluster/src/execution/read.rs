//! Point reads and lists: from snapshot views, without asking the sequencers, also during a
//! switch of the layout.

use std::sync::Arc;
use std::time::Duration;

use model::epk::{Epk, EpkRange};
use model::name::ItemId;
use model::partition_key::PartitionKey;
use model::position::Ordinal;
use partition::{Effect, EtagMatch, Head, ItemPage, PartitionError, Position, Reader};
use storage::View;

use crate::cluster::{ATTEMPTS_MAX, Cluster, Served};
use crate::error::ClusterError;
use crate::layout::Layout;
use crate::layout::container::Container;
use crate::layout::map::{ContainerMap, PartitionId};
use crate::layout::partition_handle::{PartitionHandle, ServingState};

impl Cluster {
    /// Reads one item from the partition that owns its key.
    pub async fn read(
        &self,
        container: &Container,
        key: (&Epk, &ItemId),
        if_none_match: Option<&EtagMatch>,
    ) -> Result<Served<Result<Effect, PartitionError>>, ClusterError> {
        let partition = container.route(key.0)?;
        self.read_at(container, &partition, key, if_none_match).await
    }

    /// Reads one item from the partition that a request was routed to, or from its
    /// successor.
    pub async fn read_at(
        &self,
        container: &Container,
        partition: &Arc<PartitionHandle>,
        (epk, id): (&Epk, &ItemId),
        if_none_match: Option<&EtagMatch>,
    ) -> Result<Served<Result<Effect, PartitionError>>, ClusterError> {
        let read = |reader: &Reader, view: &dyn View| {
            Ok(reader.read(view, self.now(), (epk, id), if_none_match))
        };
        self.read_short(container, partition, epk, read).await
    }

    /// The id of the item with that ordinal in the logical partition of that key.
    pub async fn id_of(
        &self,
        container: &Container,
        partition: &Arc<PartitionHandle>,
        epk: &Epk,
        ordinal: Ordinal,
    ) -> Result<Option<String>, ClusterError> {
        let read = |reader: &Reader, view: &dyn View| reader.id_of(view, epk, ordinal);
        Ok(self.read_short(container, partition, epk, read).await?.value)
    }

    /// The durable LSN of the partition that owns a position.
    pub async fn position(
        &self,
        container: &Container,
        partition: &Arc<PartitionHandle>,
        epk: &Epk,
    ) -> Result<Served<()>, ClusterError> {
        self.read_short(container, partition, epk, |_, _| Ok(())).await
    }

    /// Reads a few keys on the calling async worker. The partition's LSN is looked up
    /// elsewhere, as that is a read for each of its buckets.
    async fn read_short<T>(
        &self,
        container: &Container,
        partition: &Arc<PartitionHandle>,
        epk: &Epk,
        mut read: impl FnMut(&Reader, &dyn View) -> Result<T, PartitionError>,
    ) -> Result<Served<T>, ClusterError> {
        let mut partition = Arc::clone(partition);
        for _ in 0..ATTEMPTS_MAX {
            if partition.known_lsn().is_none() {
                let unknown = Arc::clone(&partition);
                let looking = self.query_threads().run_always(move |_| unknown.durable_lsn());
                // Once in the life of a partition: boxed, so that it does not enlarge every
                // request's future.
                Box::pin(looking).await??;
            }
            let answer = read_once(&partition, &mut read);
            if partition.serving_state() != ServingState::Gone {
                return answer;
            }
            partition = container.route(epk)?;
        }
        Err(ClusterError::Busy)
    }

    /// Reads items in key order within `within`, those whose keys begin with `prefix`,
    /// starting after `after`, from the next single range. The page may end early, even
    /// empty; only its `rest` says whether there is more. `None` when there is nothing
    /// after `after`. Positions mean the same under every layout. Limited by a number of
    /// items and of bytes, but there is always room for one item.
    pub async fn list(
        &self,
        container: &Arc<Container>,
        (within, prefix): (&EpkRange, Option<&PartitionKey>),
        after: Option<&Position>,
        room: (usize, u64),
    ) -> Result<Option<Served<ItemPage>>, ClusterError> {
        let start = after.map_or(&within.min, |position| (&position.epk).max(&within.min));
        if *start >= within.max {
            return Ok(None);
        }
        let partition = container.route(start)?;
        self.list_at(container, partition, (within, prefix), after, room).await.map(Some)
    }

    /// The same from the partition that a request was routed to, or from its successor.
    /// Part of `within` must lie after `after`.
    pub async fn list_at(
        &self,
        container: &Arc<Container>,
        partition: Arc<PartitionHandle>,
        (within, prefix): (&EpkRange, Option<&PartitionKey>),
        after: Option<&Position>,
        room: (usize, u64),
    ) -> Result<Served<ItemPage>, ClusterError> {
        let start = after.map_or(&within.min, |position| (&position.epk).max(&within.min));
        let (container, now, start) = (Arc::clone(container), self.now(), start.clone());
        let (within, prefix, after) = (within.clone(), prefix.cloned(), after.cloned());
        let page = self.query_threads().run(move |turn| {
            let page = read_from_owner(&container, &partition, &start, |reader, view| {
                let go_on = &mut || turn.go_on(Duration::MAX);
                let asked = (&within, prefix.as_ref());
                let page = reader.list_while(go_on, (view, now), asked, after.as_ref(), room)?;
                Ok(on_to_the_next(page, reader.end(), &within.max))
            })?;
            turn.check()?;
            Ok(page)
        });
        page.await?
    }

    /// The part of the ring that a range owns, for reads that name the range. Works until
    /// its successors take over.
    pub fn range(&self, container: &Container, id: PartitionId) -> Result<EpkRange, ClusterError> {
        let layout = container.layout();
        layout.partition(id)?;
        layout.map().range(id).map(|record| record.range.clone()).ok_or(ClusterError::NoRange(id))
    }

    /// Whether a range takes commands, for writes that name the range.
    ///
    /// During a switch the answer waits for its end. Refused at once, a client would ask
    /// for the layout while the old one still counts; the official JavaScript SDK asks only
    /// once, and would keep asking the same range for ever.
    pub async fn accepts(
        &self,
        container: &Container,
        id: PartitionId,
    ) -> Result<(), ClusterError> {
        let handle = container.partition(id)?;
        if handle.serving_state() == ServingState::Serving {
            return Ok(());
        }
        container.settled(&handle).await?;
        match handle.serving_state() {
            ServingState::Serving => Ok(()),
            ServingState::Switching | ServingState::Gone => Err(ClusterError::Switching(id)),
        }
    }

    /// The map of a layout, with the size and position of each of its ranges
    /// in the same order.
    pub async fn sizes(&self, layout: Arc<Layout>) -> Result<Sizes, ClusterError> {
        let sizes = self.sizes_of(vec![layout]).await?;
        sizes.into_iter().next().ok_or(ClusterError::Internal)
    }

    /// The same for several containers, in their order. Small sets are read on the calling
    /// worker, as a short read.
    pub async fn sizes_of(&self, layouts: Vec<Arc<Layout>>) -> Result<Vec<Sizes>, ClusterError> {
        let handles = layouts.iter().flat_map(|layout| &layout.partitions);
        let keys: usize = handles.map(|handle| handle.config().buckets.len()).sum();
        let read = move || layouts.iter().map(|layout| read_sizes(layout)).collect();
        match keys {
            ..=SIZES_KEYS_MAX => read(),
            _ => self.query_threads().run_always(move |_| read()).await?,
        }
    }
}

/// A layout, with the size and position of each of its ranges in the same order.
pub type Sizes = (Arc<ContainerMap>, Vec<Head>);

/// Keys that are read for sizes on an async worker, so that other short reads have time
/// beside them.
const SIZES_KEYS_MAX: usize = runtime::SHORT_READ_KEYS_MAX / 4;

fn read_sizes(layout: &Layout) -> Result<Sizes, ClusterError> {
    let size = |handle: &Arc<PartitionHandle>| Ok(handle.reader().size(handle.view()?.as_ref())?);
    let sizes = layout.partitions.iter().map(size).collect::<Result<_, ClusterError>>()?;
    Ok((Arc::clone(layout.map()), sizes))
}

/// The page of a partition that is exhausted continues where the partition ends, if
/// something follows it.
fn on_to_the_next(page: ItemPage, end: &Epk, max: &Epk) -> ItemPage {
    let after = || Position { epk: end.clone(), id: String::new() };
    let rest = page.rest.or_else(|| (end < max).then(after));
    ItemPage { rest, ..page }
}

/// Reads from the partition that owns a key, as of a moment at which it did: the keys of a
/// bucket that was moved since are removed sooner or later. Begins with the partition that
/// a request was routed to.
pub(crate) fn read_from_owner<T>(
    container: &Container,
    partition: &Arc<PartitionHandle>,
    epk: &Epk,
    mut read: impl FnMut(&Reader, &dyn View) -> Result<T, PartitionError>,
) -> Result<Served<T>, ClusterError> {
    let mut partition = Arc::clone(partition);
    for _ in 0..ATTEMPTS_MAX {
        let answer = read_once(&partition, &mut read);
        if partition.serving_state() != ServingState::Gone {
            return answer;
        }
        partition = container.route(epk)?;
    }
    Err(ClusterError::Busy)
}

fn read_once<T>(
    partition: &PartitionHandle,
    read: &mut impl FnMut(&Reader, &dyn View) -> Result<T, PartitionError>,
) -> Result<Served<T>, ClusterError> {
    // Before the view is taken, so that what it promises is in there.
    let lsn = partition.durable_lsn()?;
    let value = read(&partition.reader(), partition.view()?.as_ref())?;
    Ok(Served { range: partition.id(), lsn, value })
}
