//! Changes of the layout, as pure functions from one map to the next.
//!
//! Nothing here moves data or takes effect: a map counts once it is stored. Every change
//! keeps the invariants: ranges cover the ring, ids and ordinals are never given out twice,
//! and positions never go back.

use std::ops::Range;

use model::epk::{Epk, EpkRange};
use model::position::Lsn;
use partition::{Bucket, BucketNumber, Move};

use super::{ContainerMap, PartitionId, PartitionRecord};

/// Where a partition stood when it took its last command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalPosition {
    pub lsn: Lsn,
    /// Ordinals that were allocated to it and not used. Exact, because the
    /// partitions that follow hold only some of the heads that remember them.
    pub ordinal_blocks: Vec<Range<u64>>,
}

/// Why a layout cannot be changed as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    #[error("there is no range {0}")]
    NoRange(PartitionId),
    /// Another point has to be chosen.
    #[error("{at} does not lie inside range {range}")]
    Outside { range: PartitionId, at: Epk },
    /// A bucket has to be moved into new ones first.
    #[error("{at} lies inside a bucket, which has to be re-bucketed first")]
    InsideBucket { at: Epk, bucket: BucketNumber },
    /// A bucket can be moved into others only once at a time.
    #[error("bucket {0:?} is being moved or does not exist")]
    NoBucket(BucketNumber),
    #[error("a merge needs two ranges or more")]
    TooFew,
    #[error("the ranges do not follow each other")]
    NotAdjacent,
}

impl ContainerMap {
    /// Cuts a range in two. The cut must be where two buckets meet.
    pub fn split(
        &self,
        id: PartitionId,
        at: &Epk,
        final_position: &FinalPosition,
    ) -> Result<ContainerMap, LayoutError> {
        let place = self.place_of(id)?;
        let parent = self.ranges.get(place).ok_or(LayoutError::NoRange(id))?;
        self.check_cut(parent, at)?;
        let mut map = self.clone();
        let spare = map.next_block();
        let left = EpkRange::new(parent.range.min.clone(), at.clone());
        let right = EpkRange::new(at.clone(), parent.range.max.clone());
        // What is left of the parent's ordinals goes to one child only.
        let halves = [(left, final_position.ordinal_blocks.clone()), (right, vec![spare])];
        let parents = ancestry([parent]);
        let weight = map.halve(parent.weight);
        map.change += 1;
        let children = halves.map(|(range, ordinal_blocks)| PartitionRecord {
            id: map.next_id(),
            range,
            parents: parents.clone(),
            lsn_floor: final_position.lsn.next(),
            ordinal_blocks,
            change: map.change,
            weight,
        });
        map.ranges.splice(place..=place, children);
        map.reduce();
        Ok(map)
    }

    /// Joins neighbours into one. Each comes with where it stood; the order in
    /// which they are named does not matter.
    pub fn merge(
        &self,
        parts: &[(PartitionId, FinalPosition)],
    ) -> Result<ContainerMap, LayoutError> {
        let run = self.run_of(parts.iter().map(|(id, _)| *id))?;
        let parents = self.ranges.get(run.clone()).unwrap_or_default();
        let (Some(first), Some(last)) = (parents.first(), parents.last()) else {
            return Err(LayoutError::TooFew);
        };
        let reached =
            parts.iter().map(|(_, final_position)| final_position.lsn).max().unwrap_or(Lsn::ZERO);
        let mut map = self.clone();
        let positions = parts.iter().map(|(_, final_position)| final_position);
        let ordinal_blocks = match above_all(positions) {
            blocks if blocks.is_empty() => vec![map.next_block()],
            blocks => blocks,
        };
        map.change += 1;
        map.merged = true;
        let child = PartitionRecord {
            id: map.next_id(),
            range: EpkRange::new(first.range.min.clone(), last.range.max.clone()),
            parents: ancestry(parents),
            lsn_floor: reached.next(),
            ordinal_blocks,
            change: map.change,
            weight: map.joined(parents),
        };
        map.ranges.splice(run, [child]);
        map.reduce();
        Ok(map)
    }

    /// Whether a range can be cut there now.
    pub fn check_split(&self, id: PartitionId, at: &Epk) -> Result<(), LayoutError> {
        self.check_cut(self.range(id).ok_or(LayoutError::NoRange(id))?, at)
    }

    /// Whether these ranges can be joined.
    pub fn check_merge(&self, ids: &[PartitionId]) -> Result<(), LayoutError> {
        self.run_of(ids.iter().copied()).map(|_| ())
    }

    /// Plans new buckets in the place of one, meeting at `cuts`.
    pub fn begin_move(
        &self,
        from: BucketNumber,
        cuts: &[Epk],
    ) -> Result<ContainerMap, LayoutError> {
        let busy = self.moves.iter().any(|one| one.from == from);
        let bucket = self.bucket(from).filter(|_| !busy).ok_or(LayoutError::NoBucket(from))?;
        let mut map = self.clone();
        let mut into = Vec::new();
        let mut min = bucket.range.min.clone();
        for max in cuts.iter().chain([&bucket.range.max]) {
            if *max <= min || *max > bucket.range.max {
                return Err(LayoutError::NoBucket(from));
            }
            let number = BucketNumber(map.next_bucket);
            map.next_bucket += 1;
            into.push(Bucket { number, range: EpkRange::new(min, max.clone()) });
            min = max.clone();
        }
        map.moves.push(Move { from, into });
        Ok(map)
    }

    /// Puts the new buckets of a move in the place of the old one.
    pub fn finish_move(&self, from: BucketNumber) -> Result<ContainerMap, LayoutError> {
        let mut map = self.clone();
        let missing = LayoutError::NoBucket(from);
        let at = map.moves.iter().position(|one| one.from == from).ok_or(missing.clone())?;
        let Move { into, .. } = map.moves.remove(at);
        let place = map.buckets.iter().position(|one| one.number == from).ok_or(missing)?;
        map.buckets.splice(place..=place, into);
        Ok(map)
    }

    pub(crate) fn bucket(&self, number: BucketNumber) -> Option<&Bucket> {
        self.buckets.iter().find(|bucket| bucket.number == number)
    }

    fn check_cut(&self, parent: &PartitionRecord, at: &Epk) -> Result<(), LayoutError> {
        if *at <= parent.range.min || *at >= parent.range.max {
            return Err(LayoutError::Outside { range: parent.id, at: at.clone() });
        }
        let inside = |bucket: &&Bucket| bucket.range.min < *at && *at < bucket.range.max;
        match self.buckets.iter().find(inside) {
            None => Ok(()),
            Some(bucket) => {
                Err(LayoutError::InsideBucket { at: at.clone(), bucket: bucket.number })
            }
        }
    }

    fn place_of(&self, id: PartitionId) -> Result<usize, LayoutError> {
        let place = self.ranges.iter().position(|record| record.id == id);
        place.ok_or(LayoutError::NoRange(id))
    }

    /// The indexes of ranges that follow each other without a gap.
    fn run_of(&self, ids: impl Iterator<Item = PartitionId>) -> Result<Range<usize>, LayoutError> {
        let mut places = ids.map(|id| self.place_of(id)).collect::<Result<Vec<_>, _>>()?;
        places.sort_unstable();
        let (Some(&first), Some(&last)) = (places.first(), places.last()) else {
            return Err(LayoutError::TooFew);
        };
        match places.len() {
            0 | 1 => Err(LayoutError::TooFew),
            _ if places.iter().copied().ne(first..=last) => Err(LayoutError::NotAdjacent),
            _ => Ok(first..last + 1),
        }
    }

    fn next_id(&mut self) -> PartitionId {
        let id = PartitionId(self.next_range);
        self.next_range += 1;
        id
    }
}

/// The unused ordinals that are above all used ones, so that those of new items are greater
/// than those of all others. A partition uses its blocks in ascending order; the rest of
/// the others' is given up.
fn above_all<'p>(positions: impl Iterator<Item = &'p FinalPosition> + Clone) -> Vec<Range<u64>> {
    let first = |position: &FinalPosition| position.ordinal_blocks.first().map(|one| one.start);
    // Without a block that is left, nothing tells how far a partition came.
    let Some(firsts) = positions.clone().map(first).collect::<Option<Vec<u64>>>() else {
        return Vec::new();
    };
    let floor = firsts.into_iter().max().unwrap_or_default();
    let blocks = positions.flat_map(|position| position.ordinal_blocks.clone());
    let mut blocks: Vec<_> = blocks.filter(|block| block.start >= floor).collect();
    blocks.sort_by_key(|block| block.start);
    blocks
}

/// All ranges that a child of these descends from, oldest first: clients find the successor
/// of any range they ever knew by it.
fn ancestry<'a>(parents: impl IntoIterator<Item = &'a PartitionRecord>) -> Vec<PartitionId> {
    let mut all: Vec<PartitionId> = parents
        .into_iter()
        .flat_map(|parent| parent.parents.iter().copied().chain([parent.id]))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}
