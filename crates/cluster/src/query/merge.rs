//! Candidates of several buckets in one order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use partition::{BucketScan, Candidate, Problem, ScanEntry, ScanStats};

use super::stopwatch::{Part, Stopwatch};

/// Walks side by side.
#[derive(Default)]
pub(super) struct Merge<'v> {
    /// Each with the partition that it is in.
    walks: Vec<(usize, BucketScan<'v>)>,
    /// The next place of each walk that has one.
    heads: BinaryHeap<Head>,
    begun: bool,
    /// Walks whose candidates are counted.
    counted: usize,
    backwards: bool,
}

struct Head {
    found: ScanEntry,
    walk: usize,
    backwards: bool,
}

impl<'v> Merge<'v> {
    pub(super) fn new(walks: Vec<(usize, BucketScan<'v>)>, backwards: bool) -> Merge<'v> {
        Merge { walks, backwards, ..Merge::default() }
    }

    /// The next candidate, and the partition that it is in. Says to the stopwatch what
    /// going along these walks counts as.
    pub(super) fn next(
        &mut self,
        (watch, way): (&Stopwatch<'_>, Part),
    ) -> Result<Option<(usize, Candidate)>, Problem> {
        if !self.begun {
            self.begun = true;
            for walk in 0..self.walks.len() {
                watch.measure(way, || self.advance(walk))?;
            }
        }
        let Some(Head { found, walk, .. }) = self.heads.pop() else { return Ok(None) };
        let Some((partition, walking)) = self.walks.get_mut(walk) else { return Ok(None) };
        let next = (*partition, watch.measure(Part::Loading, || walking.load(found))?);
        watch.measure(way, || self.advance(walk))?;
        Ok(Some(next))
    }

    /// Leaves out those whose positions begin so, if they are what comes next.
    pub(super) fn skip(&mut self, beginning: &[u8]) -> Result<(), Problem> {
        while let Some(head) = self.heads.peek()
            && head.found.position.starts_with(beginning)
        {
            let walk = head.walk;
            self.heads.pop();
            if let Some((_, walking)) = self.walks.get_mut(walk) {
                walking.skip(beginning);
            }
            self.advance(walk)?;
        }
        Ok(())
    }

    /// Counts the next ones, so many at most, looking into no item where entries tell
    /// enough; `None` when there are no more. Instead of `next`, not besides it.
    pub(super) fn count(&mut self, most: u64) -> Result<Option<u64>, Problem> {
        let Some((_, walk)) = self.walks.get_mut(self.counted) else { return Ok(None) };
        let (count, is_all) = walk.count(most)?;
        self.counted += usize::from(is_all);
        Ok(Some(count))
    }

    /// What each partition has looked at.
    pub(super) fn efforts(&self) -> impl Iterator<Item = (usize, ScanStats)> {
        self.walks.iter().map(|(partition, walk)| (*partition, walk.effort()))
    }

    fn advance(&mut self, walk: usize) -> Result<(), Problem> {
        if let Some((_, walking)) = self.walks.get_mut(walk)
            && let Some(found) = walking.advance()?
        {
            self.heads.push(Head { found, walk, backwards: self.backwards });
        }
        Ok(())
    }
}

/// The heap gives the greatest first: the one that comes next is it.
impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        let order = self.found.position.cmp(&other.found.position);
        if self.backwards { order } else { order.reverse() }
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}
