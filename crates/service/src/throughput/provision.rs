//! Applying offers: from what was requested to what each container may use.
//!
//! The throughput controller of a container divides its plan between physical partitions;
//! this decides what the plan is. It is decided again whenever an offer or the database
//! around it changes, and once when the catalogue is read.

use std::str::FromStr;
use std::sync::Arc;

use cluster::{Container, Division, Pool, ProvisionedThroughput};
use model::limits::Growth;
use model::throughput::Footprint;

use crate::error::ServiceError;
use crate::service::Service;
use crate::throughput::offer::Offer;

/// How an account treats throughput. Plain settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThroughputRules {
    pub throttle: Throttle,
    /// Serverless: nothing is provisioned, and every physical partition serves up to the
    /// same rate.
    pub serverless: bool,
    /// Small partitions save unused throughput for bursts.
    pub burst: bool,
    /// Who gets the throughput of a partition that is split for its storage.
    pub storage_splits: Division,
}

/// Whose throughput is enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Throttle {
    /// What was requested. A container without an explicit request is only metered.
    #[default]
    Explicit,
    /// Everyone's, including defaults.
    Always,
    /// No one's.
    Never,
}

/// The setting is none of the three.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is none of explicit, always, never")]
pub struct ThrottleError(String);

impl FromStr for Throttle {
    type Err = ThrottleError;

    fn from_str(text: &str) -> Result<Throttle, ThrottleError> {
        match text {
            "explicit" => Ok(Throttle::Explicit),
            "always" => Ok(Throttle::Always),
            "never" => Ok(Throttle::Never),
            _ => Err(ThrottleError(text.to_owned())),
        }
    }
}

impl ThroughputRules {
    /// Everything is metered and nothing throttled.
    pub const UNLIMITED: ThroughputRules = ThroughputRules {
        throttle: Throttle::Never,
        serverless: false,
        burst: false,
        storage_splits: Division::Even,
    };

    pub(crate) fn enforces(self, asked: bool) -> bool {
        match self.throttle {
            Throttle::Explicit => asked,
            Throttle::Always => true,
            Throttle::Never => false,
        }
    }
}

impl Service {
    /// What a container may use, given its own offer or that of its database.
    pub(crate) fn plan(
        &self,
        offer: Option<&Offer>,
        pool: Option<&Arc<Pool>>,
    ) -> ProvisionedThroughput {
        match (offer, pool) {
            (Some(offer), _) if self.rules.enforces(offer.asked) => {
                ProvisionedThroughput::Container {
                    rate: offer.throughput.rate(),
                    burst: self.rules.burst,
                    buckets: offer.buckets.clone(),
                }
            }
            (None, Some(pool)) => ProvisionedThroughput::Database(Arc::clone(pool)),
            (None, None) if self.rules.serverless && self.rules.enforces(true) => {
                ProvisionedThroughput::EachRange {
                    rate: self.limits.serverless_partition_throughput_max,
                }
            }
            (Some(_) | None, None | Some(_)) => ProvisionedThroughput::Unlimited,
        }
    }

    /// The common throughput of a database's containers, if it has an offer.
    pub(crate) fn pool(&self, offer: Option<&Offer>) -> Option<Arc<Pool>> {
        let rate = self.pooled_rate(offer?);
        let clock = Arc::clone(&self.runtime.clock);
        Some(Arc::new(Pool::new(clock, Arc::clone(&self.limits), rate)))
    }

    pub(crate) fn pooled_rate(&self, offer: &Offer) -> Option<u32> {
        self.rules.enforces(offer.asked).then(|| offer.throughput.rate())
    }

    /// What the smallest throughput of these containers depends on. `shared` says that they
    /// are all containers of a database's offer.
    pub(crate) async fn footprint(
        &self,
        offer: &Offer,
        containers: &[Arc<Container>],
        shared: bool,
    ) -> Result<Footprint, ServiceError> {
        let sizes =
            self.cluster.sizes_of(containers.iter().map(|one| one.layout()).collect()).await?;
        let stored_bytes = sizes.iter().flat_map(|(_, sizes)| sizes).map(|head| head.bytes).sum();
        let grows = shared || containers.iter().all(|container| can_grow(container));
        Ok(Footprint {
            growth: if grows { Growth::Unlimited } else { Growth::Fixed },
            stored_bytes,
            highest: offer.highest,
            containers: shared.then_some(containers.len()),
        })
    }

    /// Whether the containers can use all of it in their present layout.
    pub(crate) fn is_carried(&self, offer: &Offer, containers: &[Arc<Container>]) -> bool {
        let rate = offer.throughput.rate();
        let enough = |container: &Arc<Container>| {
            let ranges = u32::try_from(container.map().ranges().len()).unwrap_or(u32::MAX);
            self.limits.carries(ranges, rate) || !can_grow(container)
        };
        containers.iter().all(enough)
    }
}

/// Whether a container may have more physical partitions than it has.
pub(crate) fn can_grow(container: &Container) -> bool {
    container.spec().growth == Growth::Unlimited
}
