//! The buckets that a query looks at, and in which order.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use index::{EntryOrder, KeyRange};
use model::epk::EpkRange;
use model::position::{Lsn, Timestamp};
use partition::{Access, Bucket, Problem, Reader, Start, Survey, Walk, Wanted};
use storage::View;

use super::{PageQuery, QueryFailure};
use crate::cluster::ATTEMPTS_MAX;
use crate::container::Container;
use crate::error::ClusterError;
use crate::map::PartitionId;
use crate::partition_handle::{PartitionHandle, ServingState};

/// The partitions of one moment, and a view of what they held then.
pub(super) struct Layout {
    pub(super) view: Box<dyn View>,
    pub(super) now: Timestamp,
    pub(super) parts: Vec<Part>,
}

/// One partition.
pub(super) struct Part {
    pub(super) range: PartitionId,
    pub(super) lsn: Lsn,
    pub(super) reader: Reader,
}

/// A part of the ring whose candidates come in one order.
pub(super) struct Stretch {
    pub(super) range: EpkRange,
    legs: Vec<Leg>,
}

/// What a stretch has of one bucket.
struct Leg {
    part: usize,
    bucket: Bucket,
    within: Vec<EpkRange>,
}

impl Layout {
    /// Takes the partitions in question and a view, at a moment at which they were
    /// the ones to ask: keys of buckets that were moved are removed sooner or later.
    pub(super) fn of(
        container: &Container,
        now: Timestamp,
        within: &[EpkRange],
    ) -> Result<Layout, QueryFailure> {
        for _ in 0..ATTEMPTS_MAX {
            let layout = container.layout();
            let asked = layout
                .map()
                .ranges()
                .iter()
                .filter(|record| !around(within, &record.range).is_empty());
            let mut parts = Vec::new();
            let mut taken = Vec::new();
            for record in asked {
                let range = record.id;
                let handle = layout.partition(range)?;
                let lsn = handle.durable_lsn()?;
                parts.push(Part { range, lsn, reader: handle.reader() });
                taken.push(Arc::clone(handle));
            }
            let view = container.store().view().map_err(ClusterError::from)?;
            // A policy that changed since may have left out what the old one indexed.
            let same = |(part, handle): (&Part, &Arc<PartitionHandle>)| {
                handle.serving_state() != ServingState::Gone && part.reader.follows(&handle.setup())
            };
            if parts.iter().zip(&taken).all(same) {
                return Ok(Layout { view, now, parts });
            }
        }
        Err(ClusterError::Busy.into())
    }

    /// The stretches that are left to read, in order. Ordered candidates are one
    /// stretch; otherwise each bucket is one, so that a page asks no more of them
    /// than it needs.
    pub(super) fn stretches(
        &self,
        query: &PageQuery,
        ordered: bool,
        current: Option<&EpkRange>,
    ) -> Vec<Stretch> {
        if ordered {
            let range = EpkRange::full();
            let legs = self.legs(&query.within, &range);
            return vec![Stretch { range, legs }];
        }
        let mut ranges: Vec<EpkRange> = current.into_iter().cloned().collect();
        for part in &self.parts {
            for bucket in part.reader.buckets() {
                let mut range = bucket.range.clone();
                if let Some(current) = current {
                    range.min = range.min.max(current.max.clone());
                }
                ranges.push(range);
            }
        }
        let legs = |range: EpkRange| Stretch { legs: self.legs(&query.within, &range), range };
        ranges.into_iter().map(legs).filter(|stretch| !stretch.legs.is_empty()).collect()
    }

    fn legs(&self, within: &[EpkRange], stretch: &EpkRange) -> Vec<Leg> {
        let mut legs = Vec::new();
        for (part, Part { reader, .. }) in self.parts.iter().enumerate() {
            for bucket in reader.buckets() {
                let Some(shared) = bucket.range.intersect(stretch) else { continue };
                let within: Vec<EpkRange> = around(within, &shared)
                    .iter()
                    .filter_map(|within| within.intersect(&shared))
                    .collect();
                if !within.is_empty() {
                    legs.push(Leg { part, bucket: bucket.clone(), within });
                }
            }
        }
        legs
    }

    /// Begins to read a stretch.
    pub(super) fn walks<'l>(
        &'l self,
        query: &PageQuery,
        access: &Access,
        stretch: &Stretch,
        starts: &[Start],
    ) -> Result<Vec<(usize, Walk<'l>)>, Problem> {
        let from = (self.view.as_ref(), self.now);
        let mut walks = Vec::with_capacity(stretch.legs.len());
        for Leg { part, bucket, within } in &stretch.legs {
            let Some(owner) = self.parts.get(*part) else { continue };
            let (ordinals, prefix) = (&query.ordinals, query.prefix.as_ref());
            let wanted = Wanted { within, ordinals, prefix };
            walks.push((*part, owner.reader.walk(from, bucket, access, &wanted, starts)?));
        }
        Ok(walks)
    }
}

/// What a query can know about its items beforehand.
pub(super) struct Scene<'l> {
    pub(super) layout: &'l Layout,
    pub(super) query: &'l PageQuery,
    /// Of a long list of keys, counted once.
    pub(super) items: OnceCell<u64>,
}

/// Those of many ranges that overlap another one. They are in order and apart.
fn around<'r>(ranges: &'r [EpkRange], other: &EpkRange) -> &'r [EpkRange] {
    let first = ranges.partition_point(|range| range.max <= other.min);
    let end = ranges.partition_point(|range| range.min < other.max);
    ranges.get(first..end).unwrap_or_default()
}

impl Scene<'_> {
    fn each_bucket(
        &self,
        mut visit: impl FnMut(&Reader, &Bucket) -> Result<bool, Problem>,
    ) -> Result<(), Problem> {
        for part in &self.layout.parts {
            for bucket in part.reader.buckets() {
                let is_asked = !around(&self.query.within, &bucket.range).is_empty();
                if is_asked && !visit(&part.reader, bucket)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Survey for Scene<'_> {
    fn entries(&self, range: &KeyRange, most: u64) -> Result<u64, Problem> {
        let mut count = 0;
        self.each_bucket(|reader, bucket| {
            let view = self.layout.view.as_ref();
            count += reader.count_entries(view, bucket, range, most.saturating_sub(count))?;
            Ok(count < most)
        })?;
        Ok(count)
    }

    /// Buckets share most of them, so the one with the most is what counts.
    fn sets_of_names(&self, range: &KeyRange, most: u64) -> Result<u64, Problem> {
        let mut sets = 0;
        self.each_bucket(|reader, bucket| {
            let view = self.layout.view.as_ref();
            sets = reader.count_sets_of_names(view, bucket, range, most)?.max(sets);
            Ok(sets < most)
        })?;
        Ok(sets)
    }

    /// Buckets share most of them, too.
    fn values(&self, range: &KeyRange, order: &EntryOrder, most: u64) -> Result<u64, Problem> {
        let mut values = 0;
        self.each_bucket(|reader, bucket| {
            let view = self.layout.view.as_ref();
            values = reader.count_values(view, bucket, (range, order), most)?.max(values);
            Ok(values < most)
        })?;
        Ok(values)
    }

    fn rows(&self) -> u64 {
        self.query.rows_wanted()
    }

    fn ordinals(&self) -> &Range<u64> {
        &self.query.ordinals
    }

    fn is_narrow(&self) -> bool {
        self.query.within.iter().all(|within| within.position().is_some())
    }

    fn items(&self) -> Result<u64, Problem> {
        if !self.is_narrow() {
            return self.items_around();
        }
        if let Some(known) = self.items.get() {
            return Ok(*known);
        }
        let mut items = 0;
        self.each_bucket(|reader, bucket| {
            let keys = around(&self.query.within, &bucket.range).iter();
            for key in keys.filter_map(EpkRange::position) {
                items += reader.key_statistics(self.layout.view.as_ref(), key)?.items;
            }
            Ok(true)
        })?;
        Ok(*self.items.get_or_init(|| items))
    }

    fn items_around(&self) -> Result<u64, Problem> {
        let mut items = 0;
        self.each_bucket(|reader, bucket| {
            items += reader.head(self.layout.view.as_ref(), bucket)?.items;
            Ok(true)
        })?;
        Ok(items)
    }
}
