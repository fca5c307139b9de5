//! Reading: from views, without asking the sequencers, also while a layout is
//! being switched.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::epk::{Epk, EpkRange};
use model::name::ItemId;
use model::partition_key::PartitionKey;
use model::position::{Lsn, Ordinal};
use partition::{Effect, EtagMatch, Head, ItemPage, Position, Problem, Reader};
use storage::View;

use crate::cluster::{ATTEMPTS_MAX, Cluster, Served};
use crate::container::Container;
use crate::error::ClusterError;
use crate::map::{ContainerMap, RangeId};
use crate::slot::{Slot, Standing, Unserved};

impl Cluster {
    /// Reads one item from the partition that owns its key.
    pub fn read(
        &self,
        container: &Container,
        (epk, id): (&Epk, &ItemId),
        if_none_match: Option<&EtagMatch>,
    ) -> Result<Served<Result<Effect, Problem>>, ClusterError> {
        read_from_owner(container, epk, |reader, view| {
            Ok(reader.read(view, self.now(), (epk, id), if_none_match))
        })
    }

    /// The id of the item with that ordinal in the logical partition of that key.
    pub fn id_of(
        &self,
        container: &Container,
        epk: &Epk,
        ordinal: Ordinal,
    ) -> Result<Option<String>, ClusterError> {
        let found =
            read_from_owner(container, epk, |reader, view| reader.id_of(view, epk, ordinal));
        Ok(found?.value)
    }

    /// Reads items in the order of their keys, while they lie in `within`, those whose
    /// keys begin with `prefix`, from behind `after`, out of the one range that comes next. The page may end
    /// early, even empty; only its `rest` tells whether there is more. None when
    /// there is nothing behind `after`. Positions mean the same under every layout.
    /// There is room for so many items and so many bytes, and always for one item.
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
        let (container, now, start) = (Arc::clone(container), self.now(), start.clone());
        let (within, prefix, after) = (within.clone(), prefix.cloned(), after.cloned());
        let page = self.query_threads().run(move |turn| {
            let page = read_from_owner(&container, &start, |reader, view| {
                let go_on = &mut || turn.go_on(Duration::MAX);
                let asked = (&within, prefix.as_ref());
                let page = reader.list_while(go_on, (view, now), asked, after.as_ref(), room)?;
                Ok(on_to_the_next(page, reader.end(), &within.max))
            })?;
            turn.check()?;
            Ok(Some(page))
        });
        page.await?
    }

    /// The part of the ring that a range has, for whoever addresses it to read.
    /// That works up to the moment in which others take its place.
    pub fn range(&self, container: &Container, id: RangeId) -> Result<EpkRange, ClusterError> {
        container.slot(id)?;
        let map = container.map();
        map.range(id).map(|record| record.range.clone()).ok_or(ClusterError::NoRange(id))
    }

    /// Whether a range takes commands, for whoever addresses it to write.
    ///
    /// During a switch the answer waits for its end. Told at once, a client would
    /// ask for the layout while the old one still counts; the official JavaScript
    /// SDK asks only once, and would go on asking the same range for ever.
    pub async fn accepts(&self, container: &Container, id: RangeId) -> Result<(), ClusterError> {
        let slot = container.slot(id)?;
        if slot.standing() == Standing::Serving {
            return Ok(());
        }
        container.settled(&slot).await?;
        match slot.standing() {
            Standing::Serving => Ok(()),
            Standing::Switching | Standing::Gone => Err(ClusterError::Switching(id)),
        }
    }

    /// How far the partition is that owns a position.
    pub fn position(&self, container: &Container, epk: &Epk) -> Result<Served<()>, ClusterError> {
        read_from_owner(container, epk, |_, _| Ok(()))
    }

    /// The layout of one moment, with the size and position of each of its ranges
    /// in the same order.
    pub async fn sizes(&self, container: &Container) -> Result<Sizes, ClusterError> {
        let sizes = self.sizes_of(std::iter::once(container)).await?;
        sizes.into_iter().next().ok_or(ClusterError::Internal)
    }

    /// The same for several containers, in their order. Few are read where one is, as a
    /// short read.
    pub async fn sizes_of(
        &self,
        containers: impl IntoIterator<Item = &Container>,
    ) -> Result<Vec<Sizes>, ClusterError> {
        let layouts: Vec<Layout> = containers.into_iter().map(Container::layout).collect();
        let slots = layouts.iter().flat_map(|(_, slots)| slots.values());
        let keys: usize = slots.map(|slot| slot.setup().buckets.len()).sum();
        let store = Arc::clone(self.store());
        let read = move || -> Result<Vec<Sizes>, ClusterError> {
            let view = store.view()?;
            layouts.into_iter().map(|layout| read_sizes(view.as_ref(), layout)).collect()
        };
        match keys {
            ..=SIZES_KEYS_MAX => read(),
            _ => self.query_threads().run_always(move |_| read()).await?,
        }
    }
}

/// A layout, with the size and position of each of its ranges in the same order.
pub type Sizes = (Arc<ContainerMap>, Vec<Head>);

type Layout = (Arc<ContainerMap>, BTreeMap<RangeId, Arc<Slot>>);

/// Keys that are read for sizes on an async worker, so that other short reads find room
/// beside them.
const SIZES_KEYS_MAX: usize = runtime::SHORT_READ_KEYS_MAX / 4;

fn read_sizes(view: &dyn View, (map, slots): Layout) -> Result<Sizes, ClusterError> {
    let size = |id: RangeId| -> Result<Head, ClusterError> {
        let slot = slots.get(&id).ok_or(ClusterError::NoRange(id))?;
        Ok(slot.reader().size(view)?)
    };
    let sizes = map.ranges().iter().map(|record| size(record.id)).collect::<Result<_, _>>()?;
    Ok((map, sizes))
}

/// A page of a partition that has no more goes on where the partition ends, if there is
/// something after it.
fn on_to_the_next(page: ItemPage, end: &Epk, max: &Epk) -> ItemPage {
    let after = || Position { epk: end.clone(), id: String::new() };
    let rest = page.rest.or_else(|| (end < max).then(after));
    ItemPage { rest, ..page }
}

/// Reads from the partition that owns a key, as of a moment at which it did:
/// the keys of a bucket that was moved since are removed sooner or later.
pub(crate) fn read_from_owner<T>(
    container: &Container,
    epk: &Epk,
    mut read: impl FnMut(&Reader, &dyn View) -> Result<T, Problem>,
) -> Result<Served<T>, ClusterError> {
    for _ in 0..ATTEMPTS_MAX {
        let (range, slot) = container.route(epk)?;
        let answer = read_slot(container, range, &slot, &mut read);
        if slot.standing() != Standing::Gone {
            let (lsn, value) = answer?;
            return Ok(Served { range, lsn, value });
        }
    }
    Err(ClusterError::Busy)
}

fn read_slot<T>(
    container: &Container,
    range: RangeId,
    slot: &Slot,
    read: &mut impl FnMut(&Reader, &dyn View) -> Result<T, Problem>,
) -> Result<(Lsn, T), ClusterError> {
    let lsn = slot.durable_lsn().map_err(|unserved: Unserved| unserved.of(range))?;
    let view = container.store().view()?;
    Ok((lsn, read(&slot.reader(), view.as_ref())?))
}
