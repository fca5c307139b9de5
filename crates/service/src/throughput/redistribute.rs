//! Redistribution of throughput between the physical partitions of a container, for
//! operators.
//!
//! An even division wastes throughput where keys are uneven. So some partitions can be
//! given more and others less; one that is given more than it can serve is split.
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use cluster::{
    ClusterError, Container, ContainerMap, Halve, LayoutError, PartitionId, Reason, SystemWrite,
    ThrottleRefusal, ThroughputBucket,
};
use model::limits::Limits;
use model::throughput::Throughput;

use crate::catalogue::kind::Link;
use crate::catalogue::{ContainerEntry, Record};
use crate::error::ServiceError;
use crate::operator::Operator;
use crate::service::Service;
use crate::throughput::offer::Offer;

/// How a container's throughput is to be divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redistribution {
    /// Evenly.
    Equal,
    /// `targets` get this much each. `sources` share what the others leave of the whole;
    /// without any, the whole becomes the sum of the parts.
    Custom { targets: Vec<(PartitionId, u32)>, sources: Vec<PartitionId> },
}

/// The throughput of a container and of its physical partitions.
#[derive(Clone, Debug, PartialEq)]
pub struct ThroughputInfo {
    pub throughput: Throughput,
    pub minimum: u32,
    /// Whether splits that it needs are pending.
    pub pending: bool,
    /// Whether the partitions have parts of their own instead of equal ones.
    pub custom: bool,
    /// Whether it is enforced.
    pub enforced: bool,
    pub buckets: Vec<ThroughputBucket>,
    /// What each serves at most, in RU/s.
    pub ranges: Vec<(PartitionId, f64)>,
}

const MINUTE: Duration = Duration::from_secs(60);

impl Operator<'_> {
    /// How a container's throughput is divided now, for all ranges or some.
    pub async fn throughput(
        &self,
        container: &Link,
        ranges: Option<&[PartitionId]>,
    ) -> Result<ThroughputInfo, ServiceError> {
        self.run(self.service.throughput(container, ranges)).await
    }

    /// Redistributes a container's throughput. Partitions that are given more than they can
    /// serve are split afterwards, by [`Maintenance::scale`].
    ///
    /// [`Maintenance::scale`]: crate::Maintenance::scale
    pub async fn redistribute(
        &self,
        container: &Link,
        wanted: &Redistribution,
    ) -> Result<(), ServiceError> {
        self.run(self.service.redistribute(container, wanted)).await
    }

    /// Sets the throughput buckets of a container: the parts of its throughput for requests
    /// that name one.
    pub async fn set_throughput_buckets(
        &self,
        container: &Link,
        buckets: Vec<ThroughputBucket>,
    ) -> Result<(), ServiceError> {
        self.run(self.service.set_throughput_buckets(container, buckets)).await
    }
}

impl Service {
    async fn throughput(
        &self,
        container: &Link,
        ranges: Option<&[PartitionId]>,
    ) -> Result<ThroughputInfo, ServiceError> {
        let entry = self.container(container)?;
        let (record, offer) = self.own_offer(&entry).await?;
        let status = self.offer_status(&record).await?;
        let map = entry.container.map();
        let wanted = |id: &PartitionId| ranges.is_none_or(|ranges| ranges.contains(id));
        let rate = offer.throughput.rate();
        let shares = map.ranges().iter().filter(|record| wanted(&record.id));
        let shares: Vec<(PartitionId, f64)> = shares
            .map(|record| (record.id, self.limits.share(rate, map.fraction(record))))
            .collect();
        let max = self.limits.throughput_reads_max;
        if shares.len() > max {
            return Err(ServiceError::invalid(format!(
                "Max allowed partition throughput reads per request is currently {max}."
            )));
        }
        Ok(ThroughputInfo {
            throughput: offer.throughput,
            minimum: status.minimum,
            pending: offer.pending,
            custom: map.is_weighted(),
            enforced: self.rules.enforces(offer.asked),
            buckets: offer.buckets,
            ranges: shares,
        })
    }

    async fn redistribute(
        &self,
        container: &Link,
        wanted: &Redistribution,
    ) -> Result<(), ServiceError> {
        let _one_at_a_time = self.changes.lock().await;
        let entry = self.container(container)?;
        let (mut record, mut offer) = self.own_offer(&entry).await?;
        if offer.pending {
            return Err(ServiceError::Scaling);
        }
        self.pace(&entry)?;
        let layout = entry.container.layout();
        let map = layout.map();
        let (divided, rate) = match wanted {
            Redistribution::Equal => (map.divided_evenly(), offer.throughput.rate()),
            Redistribution::Custom { targets, sources } => {
                check_custom(&self.limits, targets, sources)?;
                divide(map, offer.throughput.rate(), targets, sources)?
            }
        };
        let containers = std::slice::from_ref(&entry.container);
        let footprint = self.footprint(&offer, containers, false).await?;
        offer.change(offer.throughput.at(rate).check(&self.limits, &footprint)?);
        offer.pending = match wanted {
            Redistribution::Equal => !self.is_carried(&offer, containers),
            Redistribution::Custom { .. } => overfull(&self.limits, &divided, rate).is_some(),
        };
        offer.write(&mut record);
        let (id, body) = (record.item_id(), record.body());
        let writes = vec![SystemWrite::Replace { id, body, if_match: None }];
        self.cluster.divide(&entry.container, (&layout, divided), writes).await?;
        entry.container.throughput().provide(self.plan(Some(&offer), None));
        if offer.pending {
            self.scaling.notify_one();
        }
        Ok(())
    }

    async fn set_throughput_buckets(
        &self,
        container: &Link,
        buckets: Vec<ThroughputBucket>,
    ) -> Result<(), ServiceError> {
        let _one_at_a_time = self.changes.lock().await;
        let entry = self.container(container)?;
        let (mut record, mut offer) = self.own_offer(&entry).await?;
        check_buckets(&self.limits, &buckets)?;
        let now = self.runtime.clock.now().as_unix_seconds();
        let pause = self.limits.throughput_bucket_change_secs_min;
        let free_at = offer.buckets_at_secs.saturating_add(pause);
        if offer.buckets_at_secs > 0 && now < free_at {
            let retry_after = Duration::from_secs(free_at - now);
            return Err(ServiceError::Throttled {
                refusal: ThrottleRefusal { reason: Reason::BucketChange, retry_after },
            });
        }
        (offer.buckets, offer.buckets_at_secs) = (buckets, now);
        offer.write(&mut record);
        let (id, body) = (record.item_id(), record.body());
        let write = SystemWrite::Replace { id, body, if_match: None };
        self.cluster.write_system(vec![write]).await?;
        entry.container.throughput().provide(self.plan(Some(&offer), None));
        Ok(())
    }

    /// Splits the ranges of a weighted container that have more than they can serve.
    pub(crate) async fn split_overfull(
        &self,
        container: &Arc<Container>,
        rate: u32,
    ) -> Result<usize, ServiceError> {
        let mut splits = 0;
        while let Some(range) = overfull(&self.limits, &container.map(), rate) {
            self.cluster.split(container, range, Halve::Hashes).await?;
            splits += 1;
        }
        Ok(splits)
    }

    async fn own_offer(&self, entry: &ContainerEntry) -> Result<(Record, Offer), ServiceError> {
        let found = self.offer_for(&entry.rid.to_string()).await?;
        found.ok_or_else(|| {
            ServiceError::invalid("The container has no throughput of its own to be divided.")
        })
    }

    /// Limits how often a container is redistributed.
    fn pace(&self, entry: &ContainerEntry) -> Result<(), ServiceError> {
        let now = self.runtime.clock.steady();
        let mut paces = self.redistributions.lock().unwrap_or_else(PoisonError::into_inner);
        paces.retain(|(_, at)| now.saturating_sub(*at) < MINUTE);
        let mut own = paces.iter().filter(|(rid, _)| *rid == entry.rid).map(|(_, at)| *at);
        let (count, first) = (own.clone().count(), own.next().unwrap_or(now));
        if count >= self.limits.redistributions_per_minute_max {
            let retry_after = (first + MINUTE).saturating_sub(now);
            let refusal = ThrottleRefusal { reason: Reason::Rate, retry_after };
            return Err(ServiceError::Throttled { refusal });
        }
        paces.push((entry.rid, now));
        Ok(())
    }
}

/// A range whose part of the whole is more than it can serve.
fn overfull(limits: &Limits, map: &ContainerMap, rate: u32) -> Option<PartitionId> {
    let most = f64::from(limits.partition_throughput_max);
    let over = |fraction: f64| f64::from(rate) * fraction > most + 0.5;
    map.ranges().iter().find(|record| over(map.fraction(record))).map(|record| record.id)
}

fn check_custom(
    limits: &Limits,
    targets: &[(PartitionId, u32)],
    sources: &[PartitionId],
) -> Result<(), ServiceError> {
    let max = limits.redistribution_ranges_max;
    if targets.is_empty() || targets.len() > max || sources.len() > max {
        return Err(ServiceError::invalid(format!(
            "A redistribution names 1 to {max} targets and up to {max} sources."
        )));
    }
    let mut named: Vec<PartitionId> =
        targets.iter().map(|(id, _)| *id).chain(sources.iter().copied()).collect();
    named.sort_unstable();
    if named.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) {
        return Err(ServiceError::invalid("A partition is named twice."));
    }
    let (step, most) = (limits.throughput_step.max(1), limits.redistribution_throughput_max);
    let fits = |rate: u32| (step..=most).contains(&rate) && rate.is_multiple_of(step);
    if targets.iter().any(|(_, rate)| !fits(*rate)) {
        return Err(ServiceError::invalid(format!(
            "The throughput of a partition must be between {step} and {most} inclusive in increments of {step}."
        )));
    }
    Ok(())
}

fn check_buckets(limits: &Limits, buckets: &[ThroughputBucket]) -> Result<(), ServiceError> {
    let max = limits.throughput_buckets_max;
    let known = |bucket: &ThroughputBucket| {
        (1..=max).contains(&bucket.id) && (1..=100).contains(&bucket.percent_max)
    };
    let twice = |(at, bucket): (usize, &ThroughputBucket)| {
        buckets.iter().skip(at + 1).any(|other| other.id == bucket.id)
    };
    if !buckets.iter().all(known) || buckets.iter().enumerate().any(twice) {
        return Err(ServiceError::invalid(format!(
            "Throughput buckets have ids from 1 to {max}, each at most once, and 1 to 100 percent."
        )));
    }
    Ok(())
}

/// The weights under which every partition has what was requested, and the rate of the
/// whole. Weights count parts of 1/(W·n) RU/s, W being the sum of the weights so far and n
/// the number of sources, so that all of them are whole numbers.
fn divide(
    map: &ContainerMap,
    rate: u32,
    targets: &[(PartitionId, u32)],
    sources: &[PartitionId],
) -> Result<(ContainerMap, u32), ServiceError> {
    for id in targets.iter().map(|(id, _)| id).chain(sources) {
        map.range(*id).ok_or(LayoutError::NoRange(*id)).map_err(ClusterError::from)?;
    }
    let total: u128 = map.ranges().iter().map(|record| u128::from(record.weight)).sum();
    let parts = u128::try_from(sources.len().max(1)).unwrap_or(1);
    let mut weights = BTreeMap::new();
    for record in map.ranges().iter().filter(|record| !sources.contains(&record.id)) {
        let target = targets.iter().find(|(id, _)| *id == record.id).map(|(_, rate)| *rate);
        let weight = match target {
            Some(target) => u128::from(target) * total * parts,
            None => u128::from(rate) * u128::from(record.weight) * parts,
        };
        weights.insert(record.id, weight);
    }
    let given: u128 = weights.values().sum();
    let whole = u128::from(rate) * total * parts;
    if !sources.is_empty() {
        let left = whole.checked_sub(given).filter(|left| *left > 0);
        let left = left.ok_or_else(|| {
            ServiceError::invalid(
                "The targets are given more than there is; nothing is left for the sources.",
            )
        })?;
        weights.extend(sources.iter().map(|id| (*id, left / parts)));
    }
    let sum: u128 = weights.values().sum();
    let rate = u32::try_from(sum / (total * parts)).unwrap_or(u32::MAX);
    Ok((map.with_weights(&weights).map_err(ClusterError::from)?, rate))
}

#[cfg(test)]
mod tests;
