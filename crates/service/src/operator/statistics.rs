//! What the physical partitions of a container hold and do.

use std::sync::Arc;

use cluster::{KeyCharge, KeySummary, Layout, PartitionThrottle, Sizes, Totals};
use model::charge::Work;

use crate::catalogue::ContainerEntry;
use crate::catalogue::kind::Link;
use crate::error::ServiceError;
use crate::identity::roles::DataAction;
use crate::operator::Operator;
use crate::operator::partitions::{PartitionInfo, partitions_of};
use crate::pipeline::meta::ResponseMeta;
use crate::pipeline::resolve::ResolvedContainer;
use crate::request::ReadStatistics;
use crate::service::Service;
use crate::verb::{ContainerVerb, ItemFacts, Reach};

/// Everything that is known about one physical partition.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionStatistics {
    pub partition: PartitionInfo,
    pub usage: Usage,
    pub keys: KeySummary,
    /// The logical partitions that cost most during the last minutes.
    pub heaviest: Vec<KeyCharge>,
}

/// How a physical partition is used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// What it serves at most, in RU/s; `None` if that is not limited.
    pub throughput: Option<f64>,
    /// Its part of the container's throughput.
    pub fraction: f64,
    /// Since this process serves it.
    pub totals: Totals,
    /// The busiest second of the last minute, as a fraction of what a second provides.
    pub normalised: f64,
}

/// The partitions of one container, without their keys.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerUsage {
    /// `dbs/NAME/colls/NAME`.
    pub link: Arc<str>,
    pub partitions: Vec<(PartitionInfo, Usage)>,
    /// The totals of all partitions that it ever had.
    pub totals: Totals,
}

impl ContainerVerb for ReadStatistics {
    type Reply = Vec<PartitionStatistics>;

    /// They name the largest keys, which a grant for one key does not cover.
    fn facts(&self) -> ItemFacts<'_> {
        ItemFacts::reading(Reach::Everything).allowed_by(DataAction::ReadMetadata)
    }

    async fn perform(
        self,
        service: &Service,
        container: &ResolvedContainer,
        meta: &mut ResponseMeta,
    ) -> Result<Vec<PartitionStatistics>, ServiceError> {
        meta.worked(&Work::Probe);
        service.statistics_of(container, self.keys_max).await
    }
}

impl Operator<'_> {
    /// The statistics of a container's physical partitions, with the `keys_max`
    /// largest and heaviest keys of each. With none, keys are not even counted.
    pub async fn statistics(
        &self,
        container: &Link,
        keys_max: usize,
    ) -> Result<Vec<PartitionStatistics>, ServiceError> {
        let service = self.service;
        let read =
            async { service.statistics_of(&service.container(container)?.into(), keys_max).await };
        self.run(read).await
    }

    /// How all containers are used.
    pub async fn usage(&self) -> Result<Vec<ContainerUsage>, ServiceError> {
        self.run(self.service.usage()).await
    }
}

impl Service {
    pub(crate) async fn statistics_of(
        &self,
        entry: &ResolvedContainer,
        keys_max: usize,
    ) -> Result<Vec<PartitionStatistics>, ServiceError> {
        let container = &entry.container;
        let mut keys = match keys_max {
            0 => std::collections::BTreeMap::new(),
            _ => self.cluster.summarise_keys(container, keys_max).await?,
        };
        let mut statistics = Vec::new();
        let sizes = self.cluster.sizes(Arc::clone(&entry.layout)).await?;
        for (partition, usage) in self.usage_of(&entry.layout, sizes) {
            let heaviest = self.cluster.heaviest_keys(container, partition.id, keys_max).await?;
            let keys = keys.remove(&partition.id).unwrap_or_default();
            statistics.push(PartitionStatistics { partition, usage, keys, heaviest });
        }
        Ok(statistics)
    }

    async fn usage(&self) -> Result<Vec<ContainerUsage>, ServiceError> {
        let entries: Vec<ContainerEntry> = self.directory().containers().cloned().collect();
        let entries: Vec<ResolvedContainer> = entries.into_iter().map(Into::into).collect();
        let layouts = entries.iter().map(|entry| Arc::clone(&entry.layout)).collect();
        let sizes = self.cluster.sizes_of(layouts).await?;
        let usage = |(entry, sizes): (&ResolvedContainer, Sizes)| ContainerUsage {
            link: Arc::clone(&entry.names.link),
            partitions: self.usage_of(&entry.layout, sizes),
            totals: entry.container.throughput().totals(),
        };
        Ok(entries.iter().zip(sizes).map(usage).collect())
    }

    fn usage_of(&self, layout: &Layout, sizes: Sizes) -> Vec<(PartitionInfo, Usage)> {
        let usage = |partition: PartitionInfo| {
            let record = layout.map().range(partition.id);
            let fraction = record.map_or(0.0, |record| layout.map().fraction(record));
            let handle = layout.partition(partition.id);
            let usage = handle.map(|handle| self.read_throttle(handle.throttle(), fraction));
            (partition, usage.unwrap_or_default())
        };
        partitions_of(sizes).into_iter().map(usage).collect()
    }

    fn read_throttle(&self, throttle: &PartitionThrottle, fraction: f64) -> Usage {
        let scale = f64::from(self.limits.scale.max(1));
        Usage {
            throughput: throttle.rate().map(|rate| rate * scale),
            fraction,
            totals: throttle.meter().totals(),
            normalised: throttle.normalised(),
        }
    }
}
