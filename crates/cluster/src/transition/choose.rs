//! Choosing the range to split, and the position of the cut.
//!
//! A cut for throughput is in the middle of the hashes, as requests spread like
//! keys; a cut for storage is in the middle of the bytes. Both prefer a bound
//! between two buckets, as cutting there moves nothing.

use model::epk::{Epk, EpkRange};
use model::partition_key::PartitionKeyDefinition;
use partition::{Bucket, BucketNumber, PartitionError, Reader};
use storage::View;

use crate::layout::map::{ContainerMap, PartitionId, PartitionRecord};

/// A bound this close to the middle, as a fraction of the range, is the middle: initial
/// bounds of odd numbers of ranges differ from it by the rounding of one hash.
const MIDDLE: f64 = 1.0 / 65_536.0;

/// With less than this percentage of the bytes in the smaller child, a split for storage
/// looks for a better cut than a bound: the larger child would be due again soon.
const BALANCED_PERCENT: u64 = 40;

/// The position of a cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Two buckets meet there.
    Bound(Epk),
    /// It lies inside a bucket, which has to be moved into two first.
    Inside { bucket: BucketNumber, at: Epk },
}

/// Why no cut was found.
#[derive(Debug)]
pub(crate) enum Uncut {
    /// There is no position between the ends of the range.
    Narrow,
    /// Nothing is stored, so no middle of the bytes exists.
    Empty,
    /// Everything stored is at one EPK, which is never divided. This is the position of the
    /// largest key there; there are hardly ever others.
    OneKey(Epk),
    Partition(PartitionError),
}

impl From<PartitionError> for Uncut {
    fn from(problem: PartitionError) -> Uncut {
        Uncut::Partition(problem)
    }
}

/// The middle of a range's hashes.
pub(crate) fn by_hash(
    key: &PartitionKeyDefinition,
    map: &ContainerMap,
    record: &PartitionRecord,
) -> Result<Cut, Uncut> {
    // Without a key everything is at one position, whatever the hashes.
    let keyed = !key.paths().is_empty();
    let middle = key.midpoint(&record.range).filter(|_| keyed).ok_or(Uncut::Narrow)?;
    let buckets = map.buckets_of(record);
    let distance = |bound: &Epk| {
        let between = EpkRange::new(bound.min(&middle).clone(), bound.max(&middle).clone());
        key.share(&between)
    };
    let bounds = buckets.iter().skip(1).map(|bucket| &bucket.range.min);
    let nearest = bounds.min_by(|a, b| distance(a).total_cmp(&distance(b)));
    match nearest.filter(|bound| distance(bound) <= MIDDLE * key.share(&record.range)) {
        Some(bound) => Ok(Cut::Bound(bound.clone())),
        None => inside(&buckets, middle).ok_or(Uncut::Narrow),
    }
}

/// The middle of a range's bytes.
pub(crate) fn by_bytes(
    key: &PartitionKeyDefinition,
    reader: &Reader,
    view: &dyn View,
) -> Result<Cut, Uncut> {
    let sizes = reader.bucket_sizes(view)?;
    let total: u64 = sizes.iter().map(|(_, head)| head.bytes).sum();
    let mut best = Balance::default();
    let mut before = 0;
    for (bucket, head) in &sizes {
        // The start of the range is no cut: nothing lies before it.
        best.offer(&bucket.range.min, before, total);
        before += head.bytes;
    }
    let balanced = best.smaller * 100 >= total * BALANCED_PERCENT;
    if let Some(at) = best.cut.clone().filter(|_| balanced) {
        return Ok(Cut::Bound(at));
    }
    let mut before = 0;
    let mut last = None;
    for (bucket, head) in &sizes {
        if before <= total / 2 && total / 2 <= before + head.bytes {
            last = offer_keys(key, (reader, view), bucket, (before, total), &mut best)?.or(last);
        }
        before += head.bytes;
    }
    let buckets: Vec<Bucket> = sizes.into_iter().map(|(bucket, _)| bucket).collect();
    match (best.cut, last) {
        (Some(at), _) if buckets.iter().any(|bucket| bucket.range.min == at) => Ok(Cut::Bound(at)),
        (Some(at), _) => inside(&buckets, at).ok_or(Uncut::Narrow),
        (None, Some(position)) => Err(Uncut::OneKey(position)),
        (None, None) => Err(Uncut::Empty),
    }
}

/// Offers the EPK of each logical partition of a bucket; returns the position of the
/// largest. A cut is never the position itself: clients could not know on which side of
/// such a bound the keys of one EPK are.
fn offer_keys(
    key: &PartitionKeyDefinition,
    (reader, view): (&Reader, &dyn View),
    bucket: &Bucket,
    (mut before, total): (u64, u64),
    best: &mut Balance,
) -> Result<Option<Epk>, PartitionError> {
    let mut largest: Option<(u64, Epk)> = None;
    let mut offered = None;
    reader.each_key(view, bucket, |position, statistics| {
        let started = before;
        let epk = key.epk_at(&position);
        if offered.as_ref() != Some(&epk) {
            best.offer(&epk, started, total);
            offered = Some(epk);
        }
        before += statistics.bytes;
        if largest.as_ref().is_none_or(|(bytes, _)| statistics.bytes > *bytes) {
            largest = Some((statistics.bytes, position));
        }
        // After the first one past the middle the balance only gets worse.
        started <= total / 2
    })?;
    Ok(largest.map(|(_, position)| position))
}

/// The best cut so far.
#[derive(Debug, Default)]
struct Balance {
    cut: Option<Epk>,
    /// Bytes of the smaller child.
    smaller: u64,
}

impl Balance {
    fn offer(&mut self, at: &Epk, before: u64, total: u64) {
        let smaller = before.min(total.saturating_sub(before));
        if smaller > self.smaller {
            *self = Balance { cut: Some(at.clone()), smaller };
        }
    }
}

fn inside(buckets: &[Bucket], at: Epk) -> Option<Cut> {
    let bucket = buckets.iter().find(|bucket| bucket.range.contains(&at))?;
    Some(Cut::Inside { bucket: bucket.number, at })
}

/// The range to split next for throughput: the widest, and of equal ones the one
/// with the lowest id.
pub(crate) fn widest(key: &PartitionKeyDefinition, map: &ContainerMap) -> Option<PartitionId> {
    // Shares of ranges that are halves of halves differ by rounding only.
    let rounded = |record: &PartitionRecord| (key.share(&record.range) / MIDDLE).round();
    let wider = |a: &&PartitionRecord, b: &&PartitionRecord| {
        rounded(a).total_cmp(&rounded(b)).then(b.id.cmp(&a.id))
    };
    map.ranges().iter().max_by(wider).map(|record| record.id)
}
