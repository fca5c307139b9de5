//! Snapshots of the partitions that a query reads, and their statistics for the planner.

use std::cell::OnceCell;
use std::sync::Arc;

use index::{EntryOrder, EntryRange};
use model::epk::{Epk, EpkRange};
use partition::{
    KEYS_MAX, OrdinalSet, PartitionError, Snapshot, Statistics, StatisticsQuery, overlapping,
};

use super::fanout::Channel;
use super::{PageQuery, QueryFailure};
use crate::cluster::ATTEMPTS_MAX;
use crate::error::ClusterError;
use crate::layout::container::Container;
use crate::layout::map::PartitionId;
use crate::layout::partition_handle::{PartitionHandle, ServingState};

/// One partition.
#[derive(Clone, Debug)]
pub(super) struct PartitionSnapshot {
    pub(super) range: PartitionId,
    pub(super) snapshot: Arc<Snapshot>,
}

/// Takes a snapshot of each partition concerned, at a moment at which it was in force: keys
/// of buckets that were moved are removed sooner or later. Each has a view of its own, so
/// what a page shows of different partitions may belong to different moments.
pub(super) fn take(
    container: &Container,
    within: &[EpkRange],
) -> Result<Vec<PartitionSnapshot>, QueryFailure> {
    for _ in 0..ATTEMPTS_MAX {
        let layout = container.layout();
        let ranges = layout.map().ranges().iter();
        let asked = ranges.filter(|record| !overlapping(within, &record.range).is_empty());
        let mut taken = Vec::new();
        for record in asked {
            let range = record.id;
            let handle = layout.partition(range)?;
            let snapshot = slot_snapshot(container, handle)?;
            taken.push((PartitionSnapshot { range, snapshot: Arc::new(snapshot) }, handle));
        }
        // A policy that changed since may have left out what the old one indexed.
        let same = |(part, handle): &(PartitionSnapshot, &Arc<PartitionHandle>)| {
            handle.serving_state() != ServingState::Gone
                && part.snapshot.reader().follows(&handle.config())
        };
        if taken.iter().all(same) {
            return Ok(taken.into_iter().map(|(part, _)| part).collect());
        }
    }
    Err(ClusterError::Busy.into())
}

/// A snapshot of the partition that owns a position.
#[derive(Clone, Debug)]
pub struct OwnerSnapshot {
    part: PartitionSnapshot,
}

impl OwnerSnapshot {
    #[must_use]
    pub fn range(&self) -> PartitionId {
        self.part.range
    }

    #[must_use]
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.part.snapshot
    }

    pub(super) fn part(&self) -> PartitionSnapshot {
        self.part.clone()
    }
}

impl Container {
    /// Takes a snapshot of the partition that owns a position. For a thread that may wait.
    pub fn snapshot(&self, position: &Epk) -> Result<OwnerSnapshot, ClusterError> {
        let within = [EpkRange::of(position.clone())];
        match take(self, &within) {
            Ok(parts) => {
                let part = parts.into_iter().next().ok_or(ClusterError::Internal)?;
                Ok(OwnerSnapshot { part })
            }
            Err(QueryFailure::Cluster(error)) => Err(error),
            Err(_) => Err(ClusterError::Internal),
        }
    }
}

fn slot_snapshot(
    container: &Container,
    handle: &PartitionHandle,
) -> Result<Snapshot, QueryFailure> {
    let lsn = handle.durable_lsn()?;
    let reader = handle.reader();
    let view = container.store().view().map_err(ClusterError::from)?;
    Ok(Snapshot::new(reader, view, lsn))
}

/// The planner's statistics about a query's items: those of its partitions, added up.
pub(super) struct QueryStatistics<'l> {
    parts: &'l [PartitionSnapshot],
    query: &'l PageQuery,
    channel: Channel,
    /// Counted once, for a long list of keys.
    items: OnceCell<u64>,
}

impl<'l> QueryStatistics<'l> {
    pub(super) fn new(
        parts: &'l [PartitionSnapshot],
        query: &'l PageQuery,
        channel: Channel,
    ) -> QueryStatistics<'l> {
        QueryStatistics { parts, query, channel, items: OnceCell::new() }
    }

    fn sum(&self, query: &StatisticsQuery) -> Result<u64, PartitionError> {
        let within = &self.query.within;
        let ask = |part: &PartitionSnapshot| self.channel.statistics(part, within, query);
        self.parts.iter().map(ask).sum()
    }

    /// Partitions share most of what is counted, so the maximum over partitions is the
    /// estimate.
    fn most(&self, query: &StatisticsQuery, limit: u64) -> Result<u64, PartitionError> {
        let mut most = 0;
        for part in self.parts {
            most = self.channel.statistics(part, &self.query.within, query)?.max(most);
            if most >= limit {
                break;
            }
        }
        Ok(most)
    }
}

impl Statistics for QueryStatistics<'_> {
    fn entries(&self, range: &EntryRange, most: u64) -> Result<u64, PartitionError> {
        let mut count = 0;
        for part in self.parts {
            let limit = most.saturating_sub(count);
            let query = StatisticsQuery::Entries { range: range.clone(), limit };
            count += self.channel.statistics(part, &self.query.within, &query)?;
            if count >= most {
                break;
            }
        }
        Ok(count)
    }

    fn sets_of_names(&self, range: &EntryRange, most: u64) -> Result<u64, PartitionError> {
        self.most(&StatisticsQuery::SetsOfNames { range: range.clone(), limit: most }, most)
    }

    fn values(
        &self,
        range: &EntryRange,
        order: &EntryOrder,
        most: u64,
    ) -> Result<u64, PartitionError> {
        let (range, order) = (range.clone(), order.clone());
        self.most(&StatisticsQuery::Values { range, order, limit: most }, most)
    }

    fn sampled_entries(&self, range: &EntryRange, most: u64) -> Result<u64, PartitionError> {
        self.sum(&StatisticsQuery::SampledEntries { range: range.clone(), limit: most })
    }

    fn key_members(&self, set: &OrdinalSet, most: u64) -> Result<u64, PartitionError> {
        if self.query.within.len() > KEYS_MAX {
            return self.items();
        }
        self.sum(&StatisticsQuery::KeyMembers { set: set.clone(), limit: most })
    }

    fn rows(&self) -> u64 {
        self.query.rows_wanted()
    }

    fn items_max(&self) -> u64 {
        self.query.bounds.scanned
    }

    fn is_narrow(&self) -> bool {
        self.query.within.iter().all(|within| within.position().is_some())
    }

    fn items(&self) -> Result<u64, PartitionError> {
        if !self.is_narrow() {
            return self.items_around();
        }
        if let Some(known) = self.items.get() {
            return Ok(*known);
        }
        let positions = self.query.within.iter().filter_map(EpkRange::position).cloned();
        let items = self.sum(&StatisticsQuery::KeyItems { positions: positions.collect() })?;
        Ok(*self.items.get_or_init(|| items))
    }

    fn scope_items(&self, most: u64) -> Result<u64, PartitionError> {
        if self.is_narrow() {
            return self.items();
        }
        self.sum(&StatisticsQuery::ScopeItems { limit: most })
    }

    fn items_around(&self) -> Result<u64, PartitionError> {
        self.sum(&StatisticsQuery::Items)
    }
}
