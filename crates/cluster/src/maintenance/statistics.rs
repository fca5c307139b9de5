//! Statistics about the logical partitions of a container: how many there are, and which
//! are largest or cost most.
//!
//! Sizes are computed on demand, from the exact size that every commit keeps of each
//! logical partition. A list of the largest that is kept up to date would cost every write,
//! and statistics are read seldom.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use model::charge::Charge;
use model::epk::{Epk, EpkRange};
use model::partition_key::PartitionKey;
use model::policy::ContainerDefinition;
use model::position::Timestamp;
use partition::{KeyStatistics, PartitionError, Reader};
use storage::View;

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::execution::read::read_from_owner;
use crate::layout::container::Container;
use crate::layout::map::PartitionId;
use crate::throughput::meter::HeavyKey;

/// Logical partitions that are counted in one range, so that one request cannot read
/// without end.
const KEYS_COUNTED_MAX: u64 = 1_000_000;

/// Time that counting may take for all of its ranges: as long as a page of a query.
const COUNT_TIME_MAX: Duration = Duration::from_secs(5);

/// Logical partitions between two checks of the clock.
const PACE_KEYS: u64 = 1024;

/// The logical partitions of one range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySummary {
    pub keys: u64,
    /// Whether all were counted; otherwise there are more, and larger ones may be missing.
    pub complete: bool,
    /// Those with the most bytes, the largest first.
    pub by_bytes: Vec<KeySize>,
    /// Those with the most items, the largest first.
    pub by_items: Vec<KeySize>,
}

/// The size of one logical partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySize {
    /// As clients compute it, so several keys may have the same.
    pub epk: Epk,
    /// None if its items are expired.
    pub key: Option<PartitionKey>,
    pub items: u64,
    pub bytes: u64,
}

/// What one logical partition cost recently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyCharge {
    /// As clients compute it, so several keys may have the same.
    pub epk: Epk,
    /// None if it holds nothing now.
    pub key: Option<PartitionKey>,
    /// An upper bound; `charge` less `error` is the lower one.
    pub charge: Charge,
    pub error: Charge,
}

impl Cluster {
    /// Counts the logical partitions of each range and finds the largest.
    pub async fn summarise_keys(
        &self,
        container: &Arc<Container>,
        keys_max: usize,
    ) -> Result<BTreeMap<PartitionId, KeySummary>, ClusterError> {
        let (layout, now) = (container.layout(), self.now());
        let summarised = self.query_threads().run(move |turn| {
            let mut go_on = || turn.go_on(COUNT_TIME_MAX);
            let mut summaries = BTreeMap::new();
            let definition = &layout.spec().definition;
            for handle in &layout.partitions {
                let view = handle.view()?;
                let scene = Scene { reader: handle.reader(), view: view.as_ref(), now };
                summaries.insert(handle.id(), scene.summarise(definition, keys_max, &mut go_on)?);
            }
            Ok::<_, PartitionError>(summaries)
        });
        Ok(summarised.await??)
    }

    /// The logical partitions of a range that cost most during the last minutes.
    pub async fn heaviest_keys(
        &self,
        container: &Arc<Container>,
        range: PartitionId,
        keys_max: usize,
    ) -> Result<Vec<KeyCharge>, ClusterError> {
        let Ok(handle) = container.partition(range) else { return Ok(Vec::new()) };
        let heavy = handle.throttle().meter().heaviest(self.steady(), keys_max);
        if heavy.is_empty() {
            return Ok(Vec::new());
        }
        let (container, now) = (Arc::clone(container), self.now());
        let named = self.query_threads().run(move |_| {
            let spec = container.spec();
            let named = heavy.into_iter().map(|HeavyKey { position, charge, error }| {
                let key = key_at(&container, now, &position)?;
                let epk = spec.definition.partition_key().epk_at(&position);
                Ok(KeyCharge { epk, key, charge, error })
            });
            named.collect()
        });
        named.await?
    }
}

/// The partition key of the items at a position, if there are any.
pub(crate) fn key_at(
    container: &Container,
    now: Timestamp,
    position: &Epk,
) -> Result<Option<PartitionKey>, ClusterError> {
    let layout = container.layout();
    let (definition, handle) = (&layout.spec().definition, layout.route(position)?);
    let found = read_from_owner(container, handle, position, |reader, view| {
        Scene { reader: reader.clone(), view, now }.key_at(definition, position)
    });
    Ok(found?.value)
}

/// The input of a count, and its deadline.
struct Scene<'v> {
    reader: Reader,
    view: &'v dyn View,
    now: Timestamp,
}

impl Scene<'_> {
    fn summarise(
        &self,
        definition: &ContainerDefinition,
        keys_max: usize,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<KeySummary, PartitionError> {
        let Count { keys, complete, by_bytes, by_items } =
            count(&self.reader, self.view, keys_max, go_on)?;
        let mut named = |top: Top| -> Result<Vec<KeySize>, PartitionError> {
            let size = |(position, KeyStatistics { items, bytes })| {
                // Yields to others; the keys that were found are reported in any case.
                let _ = go_on();
                let epk = definition.partition_key().epk_at(&position);
                Ok(KeySize { key: self.key_at(definition, &position)?, epk, items, bytes })
            };
            top.descending().into_iter().map(size).collect()
        };
        Ok(KeySummary { keys, complete, by_bytes: named(by_bytes)?, by_items: named(by_items)? })
    }

    fn key_at(
        &self,
        definition: &ContainerDefinition,
        position: &Epk,
    ) -> Result<Option<PartitionKey>, PartitionError> {
        let of_key = EpkRange::of(position.clone());
        let page = self.reader.list(self.view, self.now, (&of_key, None), None, (1, u64::MAX))?;
        let item = page.items.first();
        Ok(item.and_then(|item| definition.partition_key().extract(item.json()).ok()))
    }
}

/// What one pass over a range finds.
struct Count {
    keys: u64,
    complete: bool,
    by_bytes: Top,
    by_items: Top,
}

fn count(
    reader: &Reader,
    view: &dyn View,
    keys_max: usize,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Count, PartitionError> {
    let mut count =
        Count { keys: 0, complete: true, by_bytes: Top::of(keys_max), by_items: Top::of(keys_max) };
    for (bucket, _) in reader.bucket_sizes(view)? {
        reader.each_key(view, &bucket, |position, size| {
            let looks_up = count.keys % PACE_KEYS == PACE_KEYS - 1;
            if count.keys == KEYS_COUNTED_MAX || (looks_up && !go_on()) {
                count.complete = false;
                return false;
            }
            count.keys += 1;
            count.by_bytes.offer(size.bytes, &position, size);
            count.by_items.offer(size.items, &position, size);
            true
        })?;
    }
    Ok(count)
}

/// A top-N heap of what was offered.
struct Top {
    size_max: usize,
    /// The smallest of them is at the root.
    heap: BinaryHeap<Reverse<Ranked>>,
}

/// By rank, and by position where ranks are equal, so that the order is always the same.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    rank: u64,
    position: Reverse<Epk>,
    items: u64,
    bytes: u64,
}

impl Top {
    fn of(size_max: usize) -> Top {
        Top { size_max, heap: BinaryHeap::new() }
    }

    fn offer(&mut self, rank: u64, position: &Epk, size: KeyStatistics) {
        let full = self.heap.len() >= self.size_max;
        if full && self.heap.peek().is_none_or(|Reverse(least)| rank <= least.rank) {
            return;
        }
        let KeyStatistics { items, bytes } = size;
        self.heap.push(Reverse(Ranked { rank, position: Reverse(position.clone()), items, bytes }));
        if self.heap.len() > self.size_max {
            self.heap.pop();
        }
    }

    fn descending(self) -> Vec<(Epk, KeyStatistics)> {
        let ranked = self.heap.into_sorted_vec().into_iter();
        ranked
            .map(|Reverse(Ranked { position: Reverse(position), items, bytes, .. })| {
                (position, KeyStatistics { items, bytes })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_come_first_and_ties_in_the_order_of_the_ring() {
        let epk = |byte: u8| Epk::from_bytes(&[byte]).unwrap();
        let mut top = Top::of(3);
        for (byte, rank) in [(1, 5), (2, 9), (3, 5), (4, 1), (5, 7), (6, 5)] {
            top.offer(rank, &epk(byte), KeyStatistics { items: rank, bytes: 0 });
        }
        let order: Vec<Epk> = top.descending().into_iter().map(|(epk, _)| epk).collect();
        assert_eq!(order, [epk(2), epk(5), epk(1)]);
        let mut none = Top::of(0);
        none.offer(1, &epk(1), KeyStatistics::default());
        assert!(none.descending().is_empty());
    }
}
