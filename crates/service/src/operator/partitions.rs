//! Physical partitions, as operators see and change them.
//!
//! Users of a container never need this: partitions split by themselves.

use std::sync::Arc;
use std::time::Duration;

use cluster::{
    ClusterError, Halve, MergeRule, PartitionId, PartitionRecord, Sizes, Transition, TransitionStep,
};
use model::charge::Work;
use model::epk::EpkRange;
use model::position::{Lsn, Timestamp};
use partition::Head;

use crate::catalogue::kind::{Kind, Link};
use crate::catalogue::{ContainerEntry, Stored};
use crate::error::ServiceError;
use crate::identity::roles::DataAction;
use crate::maintenance::Maintenance;
use crate::maintenance::reindex;
use crate::operator::Operator;
use crate::pipeline::meta::ResponseMeta;
use crate::pipeline::resolve::ResolvedContainer;
use crate::request::ReadRanges;
use crate::response::{RangeInfo, Ranges};
use crate::service::Service;
use crate::throughput::offer::{Offer, offer_owner};
use crate::throughput::provision::can_grow;
use crate::verb::{ContainerVerb, ItemFacts, Reach};

/// One physical partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionInfo {
    pub id: PartitionId,
    pub range: EpkRange,
    /// The whole ancestry, oldest first.
    pub parents: Vec<PartitionId>,
    pub lsn: Lsn,
    pub items: u64,
    pub bytes: u64,
}

/// A completed change of the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutChange {
    pub old: Vec<PartitionId>,
    pub new: Vec<PartitionInfo>,
    /// How long commands had to wait for it.
    pub pause: Duration,
}

impl Service {
    /// Reports every step of every change of a layout to an observer.
    #[must_use]
    pub fn observed_by(
        mut self,
        observer: impl Fn(TransitionStep) + Send + Sync + 'static,
    ) -> Service {
        self.cluster = self.cluster.observed_by(observer);
        self
    }
}

impl ContainerVerb for ReadRanges {
    type Reply = Ranges;

    fn facts(&self) -> ItemFacts<'_> {
        let facts = ItemFacts { names_partitions: true, ..ItemFacts::reading(Reach::Layout) };
        facts.allowed_by(DataAction::ReadMetadata)
    }

    async fn perform(
        self,
        service: &Service,
        entry: &ResolvedContainer,
        meta: &mut ResponseMeta,
    ) -> Result<Ranges, ServiceError> {
        meta.worked(&Work::Probe);
        let (map, sizes) = service.cluster.sizes(Arc::clone(&entry.layout)).await?;
        let info = |(record, head): (&PartitionRecord, Head)| RangeInfo {
            id: record.id,
            range: record.range.clone(),
            parents: record.parents.clone(),
            change: record.change,
            lsn: Lsn::from_u64(head.lsn).max(record.lsn_floor),
            ts_secs: Timestamp::from_millis(head.ts_millis).secs(),
            items: head.items,
            item_bytes: head.bytes,
            fraction: map.fraction(record),
        };
        let ranges: Vec<RangeInfo> = map.ranges().iter().zip(sizes).map(info).collect();
        let items = ranges.iter().map(|range| range.items).sum();
        let index_percent = reindex::percent(&entry.container, items);
        Ok(Ranges { container: entry.rid, change: map.change(), ranges, index_percent })
    }
}

impl Operator<'_> {
    /// The physical partitions of a container, in the order of the ring.
    pub async fn partitions(&self, container: &Link) -> Result<Vec<PartitionInfo>, ServiceError> {
        self.run(async { self.service.layout(&self.service.container(container)?).await }).await
    }

    /// How many buckets of a container are being moved into others.
    pub fn moves(&self, container: &Link) -> Result<usize, ServiceError> {
        self.run_blocking(|service| Ok(service.container(container)?.container.map().moves().len()))
    }

    /// Cuts a physical partition in two.
    pub async fn split(
        &self,
        container: &Link,
        range: PartitionId,
        halve: Halve,
    ) -> Result<LayoutChange, ServiceError> {
        let split = async {
            let entry = self.service.container(container)?;
            let split = self.service.cluster.split(&entry.container, range, halve).await;
            self.service.changed(&entry, split).await
        };
        self.run(split).await
    }

    /// Joins neighbouring physical partitions into one.
    pub async fn merge(
        &self,
        container: &Link,
        ranges: &[PartitionId],
    ) -> Result<LayoutChange, ServiceError> {
        let merge = async {
            let entry = self.service.container(container)?;
            let merged = self.service.cluster.merge(&entry.container, ranges).await;
            self.service.changed(&entry, merged).await
        };
        self.run(merge).await
    }
}

impl Maintenance<'_> {
    /// Splits what has outgrown its limit, and returns how many splits that took.
    ///
    /// To be called after a start and whenever [`Maintenance::relief_wanted`] says so.
    pub async fn relieve(self) -> Result<usize, ServiceError> {
        Ok(self.service.cluster.relieve(can_grow).await?.len())
    }

    /// Merges two cold neighbours in each container whose throughput does not need
    /// them apart and whose layout has not changed for `quiet`. Returns how many
    /// merges that took. Containers that share a database's throughput are left
    /// alone, as their ranges belong to its budgets.
    pub async fn merge_cold(self, quiet: Duration) -> Result<usize, ServiceError> {
        let settled = |Stored { record, .. }: Stored| {
            let offer = Some(Offer::read(&record)?).filter(|offer| !offer.pending);
            Ok(offer.zip(offer_owner(&record).map(str::to_owned)))
        };
        let mut merges = 0;
        for (offer, owner) in self.service.select_records(Kind::Offer, "", settled).await? {
            let container = {
                let directory = self.service.directory();
                directory.container_of_rid(&owner).map(|entry| Arc::clone(&entry.container))
            };
            let Some(container) = container else { continue };
            let rate = offer.throughput.rate();
            let ranges = u32::try_from(container.map().ranges().len()).unwrap_or(u32::MAX);
            if rate / ranges.max(1) < self.service.limits.merge_throughput_below {
                let rule =
                    MergeRule { quiet, ranges_min: self.service.limits.ranges_for_scaling(rate) };
                let merged = self.service.cluster.merge_cold(&container, &rule).await?;
                merges += usize::from(merged.is_some());
            }
        }
        Ok(merges)
    }
}

impl Service {
    async fn layout(&self, entry: &ContainerEntry) -> Result<Vec<PartitionInfo>, ServiceError> {
        Ok(partitions_of(self.cluster.sizes(entry.container.layout()).await?))
    }

    async fn changed(
        &self,
        entry: &ContainerEntry,
        changed: Result<Transition, ClusterError>,
    ) -> Result<LayoutChange, ServiceError> {
        let Transition { from, into, pause } =
            changed.map_err(|error| self.explained(entry, error))?;
        let mut new = self.layout(entry).await?;
        new.retain(|partition| into.contains(&partition.id));
        Ok(LayoutChange { old: from, new, pause })
    }

    /// A refusal, with a hint where a wrong range was named.
    fn explained(&self, entry: &ContainerEntry, error: ClusterError) -> ServiceError {
        if !matches!(error, ClusterError::NoRange(_) | ClusterError::Layout(_)) {
            return error.into();
        }
        let map = entry.container.map();
        let ids: Vec<String> = map.ranges().iter().map(|record| record.id.to_string()).collect();
        let link = &entry.names.link;
        ServiceError::invalid(format!("{error}; the ranges of {link} are {}", ids.join(", ")))
    }
}

pub(crate) fn partitions_of((map, sizes): Sizes) -> Vec<PartitionInfo> {
    let partition = |(record, head): (&PartitionRecord, Head)| PartitionInfo {
        id: record.id,
        range: record.range.clone(),
        parents: record.parents.clone(),
        lsn: Lsn::from_u64(head.lsn).max(record.lsn_floor),
        items: head.items,
        bytes: head.bytes,
    };
    map.ranges().iter().zip(sizes).map(partition).collect()
}
