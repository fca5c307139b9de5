//! The invariants of every layout, in one place: checked when one is read from the disk,
//! and after every change.

use std::collections::BTreeSet;

use model::epk::EpkRange;

use super::ContainerMap;

impl ContainerMap {
    /// Returns the first invariant that a layout breaks, if any.
    pub(crate) fn audit(&self) -> Result<(), &'static str> {
        let require = |holds: bool, problem| if holds { Ok(()) } else { Err(problem) };
        let (ring, buckets) = (EpkRange::full(), self.buckets.iter().map(|bucket| &bucket.range));
        require(covers(&ring, buckets), "the buckets do not cover the ring")?;
        let ranges = self.ranges.iter().map(|record| &record.range);
        require(covers(&ring, ranges), "the ranges do not cover the ring")?;
        let bounds: BTreeSet<_> = self.buckets.iter().map(|bucket| &bucket.range.min).collect();
        let starts = self.ranges.iter().all(|record| bounds.contains(&record.range.min));
        require(starts, "a range does not begin with a bucket")?;
        require(self.ids_are_sound(), "an id is used twice or is still to be given out")?;
        require(self.ordinals_are_sound(), "a block of ordinals is allocated twice or not at all")?;
        require(self.weights_are_sound(), "a range has no part of the throughput")?;
        require(self.moves_are_sound(), "a move does not share out its bucket")
    }

    fn ids_are_sound(&self) -> bool {
        let targets = self.moves.iter().flat_map(|one| &one.into);
        let buckets = self.buckets.iter().chain(targets).map(|bucket| bucket.number.0);
        let ranges = self.ranges.iter().map(|record| record.id.0);
        let parents = self.ranges.iter().flat_map(|record| &record.parents);
        let is_parent = |id: u32| parents.clone().any(|parent| parent.0 == id);
        distinct_below(buckets, self.next_bucket)
            && distinct_below(ranges.clone(), self.next_range)
            && !ranges.into_iter().any(is_parent)
            && parents.clone().all(|parent| parent.0 < self.next_range)
    }

    fn ordinals_are_sound(&self) -> bool {
        let mut blocks: Vec<_> =
            self.ranges.iter().flat_map(|record| &record.ordinal_blocks).collect();
        blocks.sort_by_key(|block| block.start);
        let apart = blocks.windows(2).all(|pair| matches!(pair, [a, b] if a.end <= b.start));
        apart && blocks.last().is_none_or(|block| block.end <= self.next_number)
    }

    fn moves_are_sound(&self) -> bool {
        let mut sources = BTreeSet::new();
        self.moves.iter().all(|one| {
            let source = self.buckets.iter().find(|bucket| bucket.number == one.from);
            let into = one.into.iter().map(|bucket| &bucket.range);
            sources.insert(one.from) && source.is_some_and(|source| covers(&source.range, into))
        })
    }
}

fn distinct_below(ids: impl Iterator<Item = u32>, end: u32) -> bool {
    let mut seen = BTreeSet::new();
    ids.into_iter().all(|id| id < end && seen.insert(id))
}

/// Whether the parts follow each other without gap or overlap from end to end.
fn covers<'a>(whole: &EpkRange, mut parts: impl Iterator<Item = &'a EpkRange>) -> bool {
    let end = parts.try_fold(whole.min.clone(), |at, part| {
        (part.min == at && part.min < part.max).then(|| part.max.clone())
    });
    end.as_ref() == Some(&whole.max)
}
