//! A snapshot of one partition, on which queries are executed.

use std::fmt;
use std::rc::Rc;

use index::{EntryOrder, EntryRange};
use model::epk::{Epk, EpkRange};
use model::position::Lsn;
use query::{Context, Ledger};
use storage::View;

use super::execute;
use super::request::{ExecuteError, PartialPage, PartitionQuery, TimeSlice};
use super::set_cursor::{count_entries, count_sets_of_names, count_values};
use crate::command::PartitionError;
use crate::config::Bucket;
use crate::read::Reader;
use crate::record::RecordError;

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
    /// Number of items of the buckets together.
    Items,
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

    #[must_use]
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    pub(super) fn view(&self) -> &dyn View {
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

    /// As [`Snapshot::execute`], with the query and the answer as bytes.
    pub fn execute_bytes(
        &self,
        query: &[u8],
        slice: &dyn TimeSlice,
        ledger: &Rc<Ledger>,
    ) -> Result<Vec<u8>, ExecuteError> {
        let definition = &self.reader.config().definition;
        let container = Context {
            spatial: definition.geospatial(),
            computed: definition.computed_properties().properties().to_vec(),
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
        let mut sum = 0;
        for bucket in self.reader.buckets() {
            if overlapping(within, &bucket.range).is_empty() {
                continue;
            }
            let (of_bucket, limit) = self.bucket_statistics(bucket, query, sum)?;
            let is_shared = matches!(
                query,
                StatisticsQuery::SetsOfNames { .. } | StatisticsQuery::Values { .. }
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
        bucket: &Bucket,
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
            StatisticsQuery::Items => (self.reader.head(view, bucket)?.items, u64::MAX),
        })
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
