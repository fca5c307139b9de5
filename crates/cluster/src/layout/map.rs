//! The map of one container: which bucket holds which hashes, which range owns
//! which buckets. Its stored form is specified in `docs/formats/map.md`.

mod audit;
mod change;
mod share;
mod stored;

use std::ops::Range;

use model::epk::{Epk, EpkRange};
use model::partition_key::PartitionKeyDefinition;
use model::position::{Lsn, Ordinal};
use partition::{Bucket, BucketNumber, Move};

pub use change::{FinalPosition, LayoutError};
pub use share::{Division, DivisionError};

/// Ordinals in one block. Large enough that a block is rarely asked for; there are 2^36
/// blocks.
const BLOCK_ORDINALS: u64 = 1 << 24;

/// Clients take the ordinal zero for "none".
const FIRST_NUMBER: u64 = 1;

/// The first LSN of the partitions of a new container: in the service, too, creating a
/// partition is its first commit, and clients expect their first write to be the second.
const FIRST_LSN: Lsn = Lsn::from_u64(1);

/// The change that every layout begins with.
const FIRST_CHANGE: u64 = 1;

/// The end of all ordinals.
const NUMBERS_MAX: u64 = Ordinal::MAX + 1;

/// Id of a physical partition: what clients see as the partition key range id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartitionId(pub u32);

impl std::fmt::Display for PartitionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The layout of one container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerMap {
    buckets: Vec<Bucket>,
    ranges: Vec<PartitionRecord>,
    next_range: u32,
    next_bucket: u32,
    next_number: u64,
    /// Counts the changes of the layout, so that clients can ask for those since one they
    /// know.
    change: u64,
    /// Buckets whose data is being moved into others that will take their place.
    moves: Vec<Move>,
    /// Whether ranges were ever merged: old clients cannot follow that.
    merged: bool,
    /// Whether ranges have weights of their own, instead of equal shares of the throughput.
    weighted: bool,
}

/// One physical partition in the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionRecord {
    pub id: PartitionId,
    pub range: EpkRange,
    /// All ranges that this one came from.
    pub parents: Vec<PartitionId>,
    pub lsn_floor: Lsn,
    pub ordinal_blocks: Vec<Range<u64>>,
    /// The change of the layout that made this range.
    pub change: u64,
    /// Its weight: its share of the throughput among the weights of all ranges.
    pub weight: u64,
}

/// A stored map that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the map of container {container} cannot be read: {problem}")]
pub struct MapError {
    pub container: u32,
    pub problem: &'static str,
}

impl ContainerMap {
    /// The layout of a new container: `ranges` physical partitions of equal
    /// share, cut into buckets so that the first splits need no data movement.
    #[must_use]
    pub fn fresh(key: &PartitionKeyDefinition, ranges: u32) -> ContainerMap {
        let per_range = buckets_per_range(ranges);
        let bounds = key.boundaries(ranges * per_range);
        let buckets: Vec<Bucket> = (0..)
            .zip(bounds)
            .map(|(number, range)| Bucket { number: BucketNumber(number), range })
            .collect();
        let chunk = usize::try_from(per_range).expect("a small number");
        let mut map = ContainerMap {
            ranges: Vec::new(),
            next_range: ranges,
            next_bucket: ranges * per_range,
            next_number: FIRST_NUMBER,
            change: FIRST_CHANGE,
            buckets: Vec::new(),
            moves: Vec::new(),
            merged: false,
            weighted: false,
        };
        for (id, run) in (0..).zip(buckets.chunks(chunk)) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
            let range = EpkRange { min: first.range.min.clone(), max: last.range.max.clone() };
            let ordinal_blocks = vec![map.next_block()];
            map.ranges.push(PartitionRecord {
                id: PartitionId(id),
                range,
                parents: Vec::new(),
                lsn_floor: FIRST_LSN,
                ordinal_blocks,
                change: FIRST_CHANGE,
                weight: 1,
            });
        }
        map.buckets = buckets;
        map
    }

    /// One bucket, one range, and all ordinals: the system container's.
    #[must_use]
    pub(crate) fn single_bucket() -> ContainerMap {
        let range = EpkRange::full();
        let ordinal_blocks = std::iter::once(FIRST_NUMBER..NUMBERS_MAX).collect();
        let bucket = Bucket { number: BucketNumber(0), range: range.clone() };
        let record = PartitionRecord {
            id: PartitionId(0),
            range,
            parents: Vec::new(),
            lsn_floor: Lsn::ZERO,
            ordinal_blocks,
            change: FIRST_CHANGE,
            weight: 1,
        };
        ContainerMap {
            buckets: vec![bucket],
            ranges: vec![record],
            next_range: 1,
            next_bucket: 1,
            next_number: NUMBERS_MAX,
            change: FIRST_CHANGE,
            moves: Vec::new(),
            merged: false,
            weighted: false,
        }
    }

    /// The number of the last change of the layout.
    #[must_use]
    pub fn change(&self) -> u64 {
        self.change
    }

    #[must_use]
    pub fn ranges(&self) -> &[PartitionRecord] {
        &self.ranges
    }

    /// The range that owns a key.
    #[must_use]
    pub fn range_of(&self, epk: &Epk) -> Option<&PartitionRecord> {
        self.ranges.get(self.index_of(epk)?)
    }

    /// Which of the ranges owns a key.
    pub(crate) fn index_of(&self, epk: &Epk) -> Option<usize> {
        let after = self.ranges.partition_point(|record| record.range.min <= *epk);
        let index = after.checked_sub(1)?;
        self.ranges.get(index)?.range.contains(epk).then_some(index)
    }

    #[must_use]
    pub fn range(&self, id: PartitionId) -> Option<&PartitionRecord> {
        self.ranges.iter().find(|record| record.id == id)
    }

    /// The buckets of a range, in order.
    pub fn buckets_of(&self, range: &PartitionRecord) -> Vec<Bucket> {
        self.buckets.iter().filter(|bucket| bucket.range.overlaps(&range.range)).cloned().collect()
    }

    /// Whether ranges of this container were ever merged.
    #[must_use]
    pub fn merged(&self) -> bool {
        self.merged
    }

    #[must_use]
    pub fn moves(&self) -> &[Move] {
        &self.moves
    }

    /// Those of the moves whose bucket is in a range.
    #[must_use]
    pub fn moves_of(&self, range: &PartitionRecord) -> Vec<Move> {
        let inside = |one: &&Move| {
            one.into.first().is_some_and(|bucket| range.range.contains(&bucket.range.min))
        };
        self.moves.iter().filter(inside).cloned().collect()
    }

    /// The same layout, with one more block of ordinals for a partition.
    #[must_use]
    pub fn with_more_ordinals(&self, id: PartitionId) -> ContainerMap {
        let mut map = self.clone();
        let block = map.next_block();
        if let Some(record) = map.ranges.iter_mut().find(|record| record.id == id) {
            record.ordinal_blocks.push(block);
        }
        map
    }

    fn next_block(&mut self) -> Range<u64> {
        let start = self.next_number;
        self.next_number += BLOCK_ORDINALS;
        start..self.next_number
    }
}

/// Each bucket costs a seek in every query over all of the container, so the
/// more ranges there are to begin with, the fewer buckets each gets.
fn buckets_per_range(ranges: u32) -> u32 {
    match ranges {
        0 | 1 => 8,
        2..=4 => 4,
        _ => 2,
    }
}

#[cfg(test)]
mod tests;
