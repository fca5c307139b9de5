//! The candidates of several buckets of one partition in one order: a k-way merge of bucket
//! scans, whose items are loaded in batches (late materialisation).

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use bytes::Bytes;
use storage::View;

use super::scan::{BucketScan, Found, ScanEntry, ScanStats, load, load_all};
use super::stopwatch::{Activity, Stopwatch};
use crate::command::PartitionError;
use crate::record::Item;

/// Positions to have room for at first: a bucket often has few, and allocators serve small
/// requests fastest.
const FOUND_AT_ONCE: usize = 8;

/// An item that may match the query.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) position: Bytes,
    /// `None` if it turned out to have expired, or to be outside the query's scope.
    pub(super) item: Option<Item>,
    /// What the merge had read when it reached this candidate and no further.
    pub(super) stats: ScanStats,
}

/// Bucket scans that are merged.
pub(super) struct BucketMerge<'v> {
    view: &'v dyn View,
    scans: Vec<BucketScan<'v>>,
    /// The next entry of each scan that has one.
    heads: BinaryHeap<Head>,
    begun: bool,
    /// Scans whose candidates are counted.
    counted: usize,
    backwards: bool,
    /// Entries that all scans have read.
    entries: u64,
    loaded: ScanStats,
}

struct Head {
    entry: ScanEntry,
    scan: usize,
    backwards: bool,
}

impl<'v> BucketMerge<'v> {
    pub(super) fn new(
        view: &'v dyn View,
        scans: Vec<BucketScan<'v>>,
        backwards: bool,
    ) -> BucketMerge<'v> {
        let entries = scans.iter().map(BucketScan::entries).sum();
        BucketMerge {
            view,
            scans,
            heads: BinaryHeap::new(),
            begun: false,
            counted: 0,
            backwards,
            entries,
            loaded: ScanStats::default(),
        }
    }

    /// Reads the first entry of each scan.
    pub(super) fn open(&mut self) -> Result<(), PartitionError> {
        if !std::mem::replace(&mut self.begun, true) {
            for scan in 0..self.scans.len() {
                self.advance(scan)?;
            }
        }
        Ok(())
    }

    /// Appends the next candidates, `limit` at most; none when there are no more. Reports
    /// to the stopwatch which activity advancing these scans counts as.
    pub(super) fn next_batch(
        &mut self,
        limit: usize,
        (watch, finding): (&Stopwatch<'_>, Activity),
        out: &mut VecDeque<Candidate>,
    ) -> Result<(), PartitionError> {
        if limit == 1 {
            return self.next_one((watch, finding), out);
        }
        let found = watch.measure(finding, || self.find(limit))?;
        if found.is_empty() {
            return Ok(());
        }
        out.reserve(found.len());
        let (view, scans, loaded) = (self.view, &self.scans, &mut self.loaded);
        watch.measure(Activity::Loading, || {
            load_all(view, scans, found, loaded, |position, item, stats| {
                out.push_back(Candidate { position, item, stats });
            })
        })
    }

    /// As `next_batch`, without lists: a merge of partitions takes candidates one by one.
    fn next_one(
        &mut self,
        (watch, finding): (&Stopwatch<'_>, Activity),
        out: &mut VecDeque<Candidate>,
    ) -> Result<(), PartitionError> {
        let Some(found) = watch.measure(finding, || self.find_next())? else { return Ok(()) };
        let (scans, loaded) = (&self.scans, &mut self.loaded);
        let item = watch.measure(Activity::Loading, || load(scans, &found, loaded))?;
        let stats = ScanStats { entries: found.entries, ..self.loaded };
        out.push_back(Candidate { position: found.entry.position, item, stats });
        Ok(())
    }

    /// The next positions, `limit` at most.
    fn find(&mut self, limit: usize) -> Result<Vec<Found>, PartitionError> {
        let Some(first) = self.find_next()? else { return Ok(Vec::new()) };
        let mut found = Vec::with_capacity(limit.min(FOUND_AT_ONCE));
        found.push(first);
        while found.len() < limit
            && let Some(next) = self.find_next()?
        {
            found.push(next);
        }
        Ok(found)
    }

    fn find_next(&mut self) -> Result<Option<Found>, PartitionError> {
        self.open()?;
        let Some(Head { entry, scan, .. }) = self.heads.pop() else { return Ok(None) };
        self.advance(scan)?;
        Ok(Some(Found { entry, scan, entries: self.entries }))
    }

    /// The position of the next candidate, which is not loaded yet.
    pub(super) fn peek(&mut self) -> Result<Option<&Bytes>, PartitionError> {
        self.open()?;
        Ok(self.heads.peek().map(|head| &head.entry.position))
    }

    /// Skips candidates whose positions have this prefix, if they come next.
    pub(super) fn skip(&mut self, beginning: &[u8]) -> Result<(), PartitionError> {
        while let Some(head) = self.heads.peek()
            && head.entry.position.starts_with(beginning)
        {
            let scan = head.scan;
            self.heads.pop();
            if let Some(scan) = self.scans.get_mut(scan) {
                scan.skip(beginning);
            }
            self.advance(scan)?;
        }
        Ok(())
    }

    /// Counts the next ones, `limit` at most, loading no item where entries suffice; `None`
    /// when there are no more. Instead of `next_batch`, not besides it.
    pub(super) fn count(&mut self, limit: u64) -> Result<Option<u64>, PartitionError> {
        let Some(scan) = self.scans.get_mut(self.counted) else { return Ok(None) };
        let (count, is_all) = scan.count(limit)?;
        self.counted += usize::from(is_all);
        Ok(Some(count))
    }

    /// What was read so far.
    pub(super) fn stats(&self) -> ScanStats {
        let mut sum = self.loaded;
        self.scans.iter().for_each(|scan| sum += scan.stats());
        sum
    }

    fn advance(&mut self, at: usize) -> Result<(), PartitionError> {
        let Some(scan) = self.scans.get_mut(at) else { return Ok(()) };
        let before = scan.entries();
        if let Some(entry) = scan.advance()? {
            self.heads.push(Head { entry, scan: at, backwards: self.backwards });
        }
        self.entries += scan.entries() - before;
        Ok(())
    }
}

/// The heap is a max-heap: the one that comes next is the greatest.
impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        let order = self.entry.position.cmp(&other.entry.position);
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
