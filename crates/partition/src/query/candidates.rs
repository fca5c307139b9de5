//! The candidates of a query in one partition, scan group after scan group.
//!
//! Where candidates come in the order of the query, or of creation, all buckets are one
//! group and their candidates are merged. Otherwise each bucket is a group, so that no more
//! of them are open than needed.

use std::collections::VecDeque;
use std::rc::Rc;
use std::slice;

use bytes::Bytes;
use model::epk::EpkRange;

use super::access::AccessPath;
use super::bucket_merge::{BucketMerge, Candidate};
use super::request::PartitionQuery;
use super::scan::{BucketScan, ScanScope, ScanStats};
use super::snapshot::{Snapshot, overlapping};
use super::stopwatch::{Activity, Stopwatch};
use crate::command::PartitionError;
use crate::config::Bucket;

/// Items that are looked up together, at most.
const BATCH_MAX: usize = 64;

/// Items that are taken together where they need not be looked up.
const ITEMS_BATCH: usize = 16;

impl AccessPath {
    /// The activity that advancing it counts as: a full scan reads items at once.
    fn finding(&self) -> Activity {
        match self {
            AccessPath::Items => Activity::Loading,
            AccessPath::Nothing
            | AccessPath::Created
            | AccessPath::Entries { .. }
            | AccessPath::Set(_) => Activity::Finding,
        }
    }
}

/// A part of the ring whose candidates come in one order.
struct ScanGroup<'p> {
    buckets: Vec<BucketRange<'p>>,
}

/// A group's part of one bucket.
struct BucketRange<'p> {
    bucket: &'p Bucket,
    within: Vec<EpkRange>,
}

/// A cursor over all candidates from the query's start positions on.
pub(super) struct Candidates<'p> {
    snapshot: &'p Snapshot,
    query: &'p PartitionQuery,
    watch: Rc<Stopwatch<'p>>,
    groups: std::vec::IntoIter<ScanGroup<'p>>,
    merge: BucketMerge<'p>,
    /// Loaded and not returned yet.
    ahead: VecDeque<Candidate>,
    /// Returned, and then put back.
    peeked: Option<Candidate>,
    batch: usize,
    is_begun: bool,
    /// Number of candidates so far.
    pub(super) scanned: u64,
    /// What was read for the groups before the current one.
    done: ScanStats,
    /// What was read up to the last candidate that was returned.
    stats: ScanStats,
    /// What was read before the first candidate.
    pub(super) opening: ScanStats,
}

impl<'p> Candidates<'p> {
    pub(super) fn new(
        snapshot: &'p Snapshot,
        query: &'p PartitionQuery,
        watch: &Rc<Stopwatch<'p>>,
    ) -> Candidates<'p> {
        let batch = match *query.path {
            // The scan reads items at once, so no lookup is wasted.
            AccessPath::Nothing | AccessPath::Items => ITEMS_BATCH,
            AccessPath::Created | AccessPath::Entries { .. } | AccessPath::Set(_) => BATCH_MAX,
        };
        Candidates {
            snapshot,
            query,
            watch: Rc::clone(watch),
            groups: groups(snapshot, query).into_iter(),
            merge: BucketMerge::new(snapshot.view(), Vec::new(), false),
            ahead: VecDeque::new(),
            peeked: None,
            batch,
            is_begun: false,
            scanned: 0,
            done: ScanStats::default(),
            stats: ScanStats::default(),
            opening: ScanStats::default(),
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<Candidate>, PartitionError> {
        if let Some(peeked) = self.peeked.take() {
            return Ok(Some(peeked));
        }
        loop {
            if let Some(candidate) = self.ahead.pop_front() {
                self.scanned += 1;
                self.stats = candidate.stats;
                return Ok(Some(candidate));
            }
            let watch = (&*self.watch, self.query.path.finding());
            self.merge.next_batch(self.batch, watch, &mut self.ahead)?;
            if self.ahead.is_empty() && !self.next_group()? {
                return Ok(None);
            }
        }
    }

    /// The position of the next candidate, which need not be looked up for that.
    pub(super) fn position(&mut self) -> Result<Option<Bytes>, PartitionError> {
        if let Some(next) = self.peeked.as_ref().or(self.ahead.front()) {
            return Ok(Some(next.position.clone()));
        }
        loop {
            let (merge, activity) = (&mut self.merge, self.query.path.finding());
            let next = self.watch.measure(activity, || merge.peek().map(|next| next.cloned()))?;
            if next.is_some() || !self.next_group()? {
                return Ok(next);
            }
        }
    }

    /// The next candidate, if its position has this prefix.
    pub(super) fn next_like(&mut self, shared: &[u8]) -> Result<Option<Candidate>, PartitionError> {
        match self.next()? {
            Some(next) if next.position.starts_with(shared) => Ok(Some(next)),
            other => {
                self.peeked = other;
                Ok(None)
            }
        }
    }

    /// Skips candidates whose positions have this prefix, if they come next.
    pub(super) fn skip(&mut self, shared: &[u8]) -> Result<(), PartitionError> {
        self.peeked.take_if(|next| next.position.starts_with(shared));
        self.ahead.retain(|next| !next.position.starts_with(shared));
        let merge = &mut self.merge;
        let skipped = self.watch.measure(Activity::Finding, || merge.skip(shared));
        if self.peeked.is_none() && self.ahead.is_empty() {
            self.stats = self.merge.stats();
        }
        skipped
    }

    /// Whether there is another item, among the next few candidates at least (look-ahead).
    pub(super) fn has_more(&mut self, looked_at: u64) -> Result<bool, PartitionError> {
        for _ in 0..looked_at {
            self.peeked = self.next()?;
            match &self.peeked {
                None => return Ok(false),
                Some(Candidate { item: Some(_), .. }) => return Ok(true),
                Some(Candidate { item: None, .. }) => self.peeked = None,
            }
        }
        Ok(true)
    }

    /// Counts the next ones, `limit` at most, without loading items as far as entries
    /// suffice; `None` when there are no more.
    pub(super) fn count(&mut self, limit: u64) -> Result<Option<u64>, PartitionError> {
        loop {
            let merge = &mut self.merge;
            if let Some(count) = self.watch.measure(Activity::Finding, || merge.count(limit))? {
                self.stats = self.merge.stats();
                return Ok(Some(count));
            }
            if !self.next_group()? {
                return Ok(None);
            }
        }
    }

    /// What was read so far, without what was only loaded ahead.
    pub(super) fn stats(&self) -> ScanStats {
        let mut sum = self.done;
        sum += self.stats;
        sum
    }

    /// Loads about as many at a time as are wanted.
    pub(super) fn expect(&mut self, wanted: u64) {
        if !matches!(*self.query.path, AccessPath::Nothing | AccessPath::Items) {
            self.batch = usize::try_from(wanted).unwrap_or(usize::MAX).clamp(1, BATCH_MAX);
        }
    }

    fn next_group(&mut self) -> Result<bool, PartitionError> {
        self.done += self.merge.stats();
        self.stats = ScanStats::default();
        let (view, query) = (self.snapshot.view(), self.query);
        let Some(group) = self.groups.next() else {
            self.merge = BucketMerge::new(view, Vec::new(), false);
            return Ok(false);
        };
        let mut scans = Vec::with_capacity(group.buckets.len());
        for BucketRange { bucket, within } in &group.buckets {
            let (ordinals, prefix) = (&query.ordinals, query.prefix.as_ref());
            let scope = ScanScope { within, ordinals, prefix };
            let (from, config) = ((view, query.now), self.snapshot.reader().shared_config());
            let starts = &query.starts;
            scans.push(BucketScan::open(from, config, bucket, &query.path, &scope, starts)?);
        }
        self.merge = BucketMerge::new(view, scans, query.path.is_backwards());
        if !std::mem::replace(&mut self.is_begun, true) && query.along.is_some() {
            let merge = &mut self.merge;
            self.watch.measure(Activity::Finding, || merge.open())?;
            self.opening = self.merge.stats();
        }
        self.stats = self.merge.stats();
        Ok(true)
    }
}

/// The groups that are left to read, in order.
fn groups<'p>(snapshot: &'p Snapshot, query: &PartitionQuery) -> Vec<ScanGroup<'p>> {
    let buckets = snapshot.reader().buckets();
    let group = |range: EpkRange, buckets: &'p [Bucket]| ScanGroup {
        buckets: bucket_ranges(buckets, &query.within, &range),
    };
    let groups: Vec<ScanGroup<'p>> = if query.along.is_some() || query.path.is_by_creation() {
        vec![group(EpkRange::full(), buckets)]
    } else {
        let each = buckets.iter().map(|bucket| (bucket.range.clone(), slice::from_ref(bucket)));
        each.map(|(range, bucket)| group(range, bucket)).collect()
    };
    groups.into_iter().filter(|group| !group.buckets.is_empty()).collect()
}

fn bucket_ranges<'p>(
    buckets: &'p [Bucket],
    within: &[EpkRange],
    group: &EpkRange,
) -> Vec<BucketRange<'p>> {
    let mut ranges = Vec::new();
    for bucket in buckets {
        let Some(shared) = bucket.range.intersect(group) else { continue };
        let within: Vec<EpkRange> = overlapping(within, &shared)
            .iter()
            .filter_map(|within| within.intersect(&shared))
            .collect();
        if !within.is_empty() {
            ranges.push(BucketRange { bucket, within });
        }
    }
    ranges
}
