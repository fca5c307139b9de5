//! Splits and merges: choosing a cut, making it a bucket boundary, and switching the
//! layout.

pub(crate) mod choose;
pub(crate) mod cold;
pub(crate) mod due;
pub(crate) mod rebucket;
pub(crate) mod switch;

use std::sync::Arc;
use std::time::Duration;

use model::epk::Epk;

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::layout::container::Container;
use crate::layout::map::{ContainerMap, Division, FinalPosition, LayoutError, PartitionId};
use crate::maintenance::statistics::key_at;
use crate::transition::choose::{Cut, Uncut};
use crate::transition::switch::{Part, Switched};

/// Attempts to find a cut: the second time it is a bound, unless writes have moved the middle
/// meanwhile or a move from before a restart had to be finished first.
const CUTS_MAX: usize = 3;

/// What is to be halved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halve {
    /// The hashes, and so the throughput.
    Hashes,
    /// The bytes that are stored.
    Bytes,
}

/// A change of the layout that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    pub from: Vec<PartitionId>,
    pub into: Vec<PartitionId>,
    /// How long commands had to wait for it.
    pub pause: Duration,
}

impl Cluster {
    /// Cuts a range in two.
    pub async fn split(
        &self,
        container: &Arc<Container>,
        range: PartitionId,
        halve: Halve,
    ) -> Result<Transition, ClusterError> {
        let _one_at_a_time = container.one_transition().await;
        Box::pin(self.split_now(container, range, halve)).await
    }

    /// Joins neighbouring ranges into one.
    pub async fn merge(
        &self,
        container: &Container,
        ranges: &[PartitionId],
    ) -> Result<Transition, ClusterError> {
        let _one_at_a_time = container.one_transition().await;
        container.map().check_merge(ranges)?;
        let parts = ranges.iter().copied().map(Part::of).collect();
        let switching = self.switch(container, parts, ContainerMap::merge, Vec::new());
        let switched = Box::pin(switching).await?;
        Ok(report(ranges, &switched))
    }

    /// Splits, the widest range first, until there are `ranges` of them. Returns the
    /// transitions in order; the container may have had enough ranges already.
    pub async fn grow_to(
        &self,
        container: &Arc<Container>,
        ranges: u32,
    ) -> Result<Vec<Transition>, ClusterError> {
        let _one_at_a_time = container.one_transition().await;
        let mut done = Vec::new();
        loop {
            let layout = container.layout();
            let (spec, map) = (layout.spec(), layout.map());
            let enough = u32::try_from(map.ranges().len()).is_ok_and(|count| count >= ranges);
            let widest = choose::widest(spec.definition.partition_key(), map);
            let Some(range) = widest.filter(|_| !enough) else { return Ok(done) };
            done.push(Box::pin(self.split_now(container, range, Halve::Hashes)).await?);
        }
    }

    async fn split_now(
        &self,
        container: &Arc<Container>,
        range: PartitionId,
        halve: Halve,
    ) -> Result<Transition, ClusterError> {
        let at = self.cut(container, range, halve).await?;
        container.map().check_split(range, &at)?;
        let split = |map: &ContainerMap, final_positions: &[(PartitionId, FinalPosition)]| {
            let (_, final_position) = final_positions.first().ok_or(LayoutError::NoRange(range))?;
            match (halve, self.storage_splits()) {
                (Halve::Bytes, Division::Inherited) => {
                    map.divided_by_inheritance().split(range, &at, final_position)
                }
                (Halve::Hashes, _) | (_, Division::Even) => map.split(range, &at, final_position),
            }
        };
        let switched = self.switch(container, vec![Part::of(range)], split, Vec::new()).await?;
        Ok(report(&[range], &switched))
    }

    /// Finds a cut, and re-buckets if it is not at a bound.
    async fn cut(
        &self,
        container: &Arc<Container>,
        range: PartitionId,
        halve: Halve,
    ) -> Result<Epk, ClusterError> {
        let mut last = None;
        for _ in 0..CUTS_MAX {
            match self.choose(container, range, halve).await? {
                Cut::Bound(at) => return Ok(at),
                Cut::Inside { bucket, at } => {
                    self.rebucket(container, bucket, &at).await?;
                    last = Some(at);
                }
            }
        }
        // The middle moves as fast as buckets are. Where it was just now is near enough.
        let bound = last.filter(|at| container.map().check_split(range, at).is_ok());
        bound.ok_or(ClusterError::Busy)
    }

    async fn choose(
        &self,
        container: &Arc<Container>,
        range: PartitionId,
        halve: Halve,
    ) -> Result<Cut, ClusterError> {
        let layout = container.layout();
        let definition = Arc::clone(&layout.spec().definition);
        let chosen = match halve {
            Halve::Hashes => {
                let record = layout.map().range(range).ok_or(ClusterError::NoRange(range))?;
                choose::by_hash(definition.partition_key(), layout.map(), record)
            }
            Halve::Bytes => {
                let handle = Arc::clone(layout.partition(range)?);
                let view = handle.view()?;
                let key = move || {
                    let key = definition.partition_key();
                    choose::by_bytes(key, &handle.reader(), view.as_ref())
                };
                self.aside(key).await?
            }
        };
        Err(match chosen {
            Ok(cut) => return Ok(cut),
            Err(Uncut::Narrow | Uncut::Empty) => ClusterError::Indivisible { range, key: None },
            Err(Uncut::OneKey(position)) => {
                let (container, now) = (Arc::clone(container), self.now());
                let key = self.aside(move || key_at(&container, now, &position).ok().flatten());
                ClusterError::Indivisible { range, key: key.await? }
            }
            Err(Uncut::Partition(problem)) => problem.into(),
        })
    }
}

/// The new ranges of a transition are those that its change of the layout made.
fn report(from: &[PartitionId], switched: &Switched) -> Transition {
    let change = switched.map.change();
    let new = switched.map.ranges().iter().filter(|record| record.change == change);
    let into: Vec<PartitionId> = new.map(|record| record.id).collect();
    let pause_us = u64::try_from(switched.pause.as_micros()).unwrap_or(u64::MAX);
    tracing::info!(?from, ?into, pause_us, "layout switched");
    Transition { from: from.to_vec(), into, pause: switched.pause }
}
