//! A snapshot of one partition, on which queries are executed.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use index::{EntryOrder, EntryRange};
use model::epk::{Epk, EpkRange};
use model::position::Lsn;
use model::rid::ContainerRid;
use query::{Context, Ledger, UserFunctions};
use storage::{Direction, KeyRange, View};

use super::access::OrdinalSet;
use super::execute;
use super::request::{ExecuteError, PartialPage, PartitionQuery, TimeSlice};
use super::set_cursor::{
    count_entries, count_members, count_sets_of_names, count_values, ordinal_of,
};
use crate::command::PartitionError;
use crate::config::Bucket;
use crate::key::Group;
use crate::read::Reader;
use crate::record::{KeyStatistics, RecordError};
use crate::rows::Rows;

/// Entries of a sample that are counted in any case.
const SAMPLE_MIN: u64 = 16;

/// A view of a partition, and the LSN that the partition had when it was taken.
pub struct Snapshot {
    reader: Reader,
    view: Box<dyn View>,
    lsn: Lsn,
}

/// Statistics that the planner requests from each partition before it chooses an access
/// path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatisticsQuery {
    /// Number of entries in a range; counting stops at `limit`.
    Entries { range: EntryRange, limit: u64 },
    /// The largest number of sets of names in a bucket; counting stops at `limit`.
    SetsOfNames { range: EntryRange, limit: u64 },
    /// The largest number of values that a part of an index has in a bucket; counting stops
    /// at `limit`.
    Values { range: EntryRange, order: EntryOrder, limit: u64 },
    /// Number of items of the logical partitions at these positions together.
    KeyItems { positions: Vec<Epk> },
    /// Number of items of a set in the logical partitions of the scope; counting stops at
    /// `limit`.
    KeyMembers { set: OrdinalSet, limit: u64 },
    /// Number of items of the buckets together.
    Items,
    /// Number of items in the part of the ring alone; counting stops at `limit`.
    ScopeItems { limit: u64 },
    /// Approximate number of entries in a range: those of one bucket, projected. Stops at
    /// `limit`.
    SampledEntries { range: EntryRange, limit: u64 },
    /// The last ordinal that an item has.
    LastOrdinal,
}

impl Snapshot {
    /// `lsn` was read before the view was taken, so what it promises is in the view.
    #[must_use]
    pub fn new(reader: Reader, view: Box<dyn View>, lsn: Lsn) -> Snapshot {
        Snapshot { reader, view, lsn }
    }

    #[must_use]
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    pub(super) fn container(&self) -> ContainerRid {
        self.reader.config().container_rid
    }

    #[must_use]
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    pub(crate) fn view(&self) -> &dyn View {
        self.view.as_ref()
    }

    /// Executes a query over its buckets, within its budget. The memory that it keeps is
    /// counted.
    pub fn execute(
        &self,
        query: &PartitionQuery,
        slice: &dyn TimeSlice,
        ledger: &Rc<Ledger>,
    ) -> Result<PartialPage, ExecuteError> {
        execute::execute(self, query, slice, ledger)
    }

    /// As [`Snapshot::execute`], with the query and the answer as bytes. The container's
    /// functions belong to where it is executed.
    pub fn execute_bytes(
        &self,
        (query, functions): (&[u8], Option<Arc<dyn UserFunctions>>),
        slice: &dyn TimeSlice,
        ledger: &Rc<Ledger>,
    ) -> Result<Vec<u8>, ExecuteError> {
        let definition = &self.reader.config().definition;
        let container = Context {
            spatial: definition.geospatial(),
            computed: definition.computed_properties().properties().to_vec(),
            functions,
            ..Context::default()
        };
        let malformed = || PartitionError::from(RecordError::Malformed { what: "query" });
        let query = PartitionQuery::from_bytes(query, &container).ok_or_else(malformed)?;
        Ok(self.execute(&query, slice, ledger)?.to_bytes())
    }

    /// Computes statistics over the buckets that overlap `within`.
    pub fn statistics(
        &self,
        within: &[EpkRange],
        query: &StatisticsQuery,
    ) -> Result<u64, PartitionError> {
        if let StatisticsQuery::SampledEntries { range, limit } = query {
            return self.sampled_entries(within, range, *limit);
        }
        let mut sum = 0;
        for bucket in self.reader.buckets() {
            let within = overlapping(within, &bucket.range);
            if within.is_empty() {
                continue;
            }
            let (of_bucket, limit) = self.bucket_statistics((bucket, within), query, sum)?;
            let is_shared = matches!(
                query,
                StatisticsQuery::SetsOfNames { .. }
                    | StatisticsQuery::Values { .. }
                    | StatisticsQuery::LastOrdinal
            );
            // Buckets share most names and values, so the maximum over buckets is the
            // estimate.
            sum = if is_shared { of_bucket.max(sum) } else { of_bucket + sum };
            if sum >= limit {
                break;
            }
        }
        Ok(sum)
    }

    /// What a bucket adds to a sum, and where counting may stop.
    fn bucket_statistics(
        &self,
        (bucket, within): (&Bucket, &[EpkRange]),
        query: &StatisticsQuery,
        sum: u64,
    ) -> Result<(u64, u64), PartitionError> {
        let (view, keys) = (self.view(), self.reader.config().keys(bucket));
        Ok(match query {
            StatisticsQuery::Entries { range, limit } => {
                (count_entries(view, &keys, range, limit.saturating_sub(sum))?, *limit)
            }
            StatisticsQuery::SetsOfNames { range, limit } => {
                (count_sets_of_names(view, &keys, range, *limit)?, *limit)
            }
            StatisticsQuery::Values { range, order, limit } => {
                (count_values(view, &keys, (range, order), *limit)?, *limit)
            }
            StatisticsQuery::KeyItems { positions } => {
                let mut items = 0;
                for position in positions.iter().filter(|at| bucket.range.contains(at)) {
                    items += self.reader.key_statistics(view, position)?.items;
                }
                (items, u64::MAX)
            }
            StatisticsQuery::KeyMembers { set, limit } => {
                let positions = within.iter().filter_map(EpkRange::position);
                let limit_left = limit.saturating_sub(sum);
                (count_members(view, &keys, (set, positions), limit_left)?, *limit)
            }
            StatisticsQuery::Items => (self.reader.head(view, bucket)?.items, u64::MAX),
            StatisticsQuery::ScopeItems { limit } => {
                (self.items_within(bucket, within, limit.saturating_sub(sum))?, *limit)
            }
            StatisticsQuery::LastOrdinal => {
                let all = KeyRange::prefix(&keys.group(Group::Ordinal));
                let last = Rows::new(view, all, Direction::Backward).next()?;
                (last.map_or(Ok(0), |(key, _)| ordinal_of(&key))?, u64::MAX)
            }
            // It is not a sum over buckets.
            StatisticsQuery::SampledEntries { .. } => (0, 0),
        })
    }

    /// Number of items of a bucket in parts of the ring: the sizes of their logical
    /// partitions, added up to a limit.
    fn items_within(
        &self,
        bucket: &Bucket,
        within: &[EpkRange],
        limit: u64,
    ) -> Result<u64, PartitionError> {
        if within.iter().any(|within| within.covers(&bucket.range)) {
            return Ok(self.reader.head(self.view(), bucket)?.items);
        }
        let (keys, mut items) = (self.reader.config().keys(bucket), 0);
        for within in within.iter().filter_map(|within| within.intersect(&bucket.range)) {
            let range = KeyRange::new(keys.statistics(&within.min), keys.statistics(&within.max));
            let mut rows = Rows::new(self.view(), range, Direction::Forward);
            while items < limit
                && let Some((_, value)) = rows.next()?
            {
                items += KeyStatistics::decode(&value)?.items;
            }
        }
        Ok(items)
    }

    /// Counts the entries of the largest bucket and projects them to all. Keys are spread
    /// by hash, so buckets are alike.
    fn sampled_entries(
        &self,
        within: &[EpkRange],
        range: &EntryRange,
        limit: u64,
    ) -> Result<u64, PartitionError> {
        let (mut all, mut largest) = (0, None);
        for bucket in self.reader.buckets() {
            if !overlapping(within, &bucket.range).is_empty() {
                let items = self.reader.head(self.view(), bucket)?.items;
                all += items;
                largest = largest.max(Some((items, bucket.number)));
            }
        }
        let found = largest.filter(|(items, _)| *items > 0).and_then(|(items, number)| {
            let bucket = self.reader.buckets().iter().find(|bucket| bucket.number == number)?;
            Some((items, bucket))
        });
        let Some((items, bucket)) = found else { return Ok(0) };
        let keys = self.reader.config().keys(bucket);
        let share = limit.saturating_mul(items).div_ceil(all).max(SAMPLE_MIN);
        let counted = count_entries(self.view(), &keys, range, share)?;
        Ok(if counted >= share { limit } else { counted.saturating_mul(all) / items })
    }
}

/// The ones of many ranges that overlap another one. They are in order and disjoint.
#[must_use]
pub fn overlapping<'r>(ranges: &'r [EpkRange], other: &EpkRange) -> &'r [EpkRange] {
    let first = ranges.partition_point(|range| range.max <= other.min);
    let end = ranges.partition_point(|range| range.min < other.max);
    ranges.get(first..end).unwrap_or_default()
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("lsn", &self.lsn).finish_non_exhaustive()
    }
}
