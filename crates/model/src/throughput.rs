//! Provisioned throughput: what may be requested, and how it is divided.
//!
//! All rules are arithmetic on [`Limits`] and on what a container has been so far, its
//! [`Footprint`]. Nothing here knows how an offer is stored or spelled.

use crate::limits::{Growth, Limits, Provisioned};

const GIB: u128 = 1 << 30;

/// Throughput in request units per second, as a client asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throughput {
    Manual(u32),
    /// Scales by itself up to `max`, which may grow by a percentage when it is used up.
    /// That setting is stored but has no effect.
    Autoscale {
        max: u32,
        increment_percent: Option<u32>,
    },
}

/// What the smallest throughput of a container or database depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    pub growth: Growth,
    /// Data and index stored now.
    pub stored_bytes: u64,
    /// The highest throughput that was ever set.
    pub highest: u32,
    /// How many containers share it; `None` if it belongs to a container alone.
    pub containers: Option<usize>,
}

/// A throughput that is not offered, with the service's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The offer should have valid throughput values between {min} and {max} inclusive in increments of {step}."
)]
pub struct ThroughputError {
    pub min: u32,
    pub max: u32,
    pub step: u32,
}

impl Throughput {
    /// The default for a container.
    #[must_use]
    pub fn default_of(limits: &Limits) -> Throughput {
        Throughput::Manual(limits.throughput_min)
    }

    /// The provisioned rate, for autoscale the highest.
    #[must_use]
    pub fn rate(self) -> u32 {
        let (Throughput::Manual(rate) | Throughput::Autoscale { max: rate, .. }) = self;
        rate
    }

    /// The same kind of throughput at another rate.
    #[must_use]
    pub fn at(self, rate: u32) -> Throughput {
        match self {
            Throughput::Manual(_) => Throughput::Manual(rate),
            Throughput::Autoscale { increment_percent, .. } => {
                Throughput::Autoscale { max: rate, increment_percent }
            }
        }
    }

    #[must_use]
    pub fn provisioned(self) -> Provisioned {
        match self {
            Throughput::Manual(rate) => Provisioned::Manual(rate),
            Throughput::Autoscale { max, .. } => Provisioned::Autoscale(max),
        }
    }

    /// Checks the throughput of something new. Without a partition key there can be one
    /// physical partition only, and no more than it can serve.
    pub fn check_new(self, limits: &Limits, keyless: bool) -> Result<Throughput, ThroughputError> {
        let growth = if keyless { Growth::Fixed } else { Growth::Unlimited };
        let min = match self {
            Throughput::Manual(_) => limits.throughput_min,
            Throughput::Autoscale { .. } => limits.autoscale_throughput_min,
        };
        self.check_between(min, limits, growth)
    }

    /// Checks the new throughput of something that exists.
    pub fn check(
        self,
        limits: &Limits,
        footprint: &Footprint,
    ) -> Result<Throughput, ThroughputError> {
        self.check_between(self.minimum(limits, footprint), limits, footprint.growth)
    }

    fn check_between(
        self,
        min: u32,
        limits: &Limits,
        growth: Growth,
    ) -> Result<Throughput, ThroughputError> {
        let step = self.step(limits);
        let max = limits.throughput_max_of(growth);
        if (min..=max).contains(&self.rate()) && self.rate().is_multiple_of(step) {
            return Ok(self);
        }
        Err(ThroughputError { min, max, step })
    }

    /// The smallest throughput of this kind that it can be changed to.
    #[must_use]
    pub fn minimum(self, limits: &Limits, footprint: &Footprint) -> u32 {
        match self {
            Throughput::Manual(_) => limits.manual_minimum(footprint),
            Throughput::Autoscale { .. } => limits.autoscale_minimum(footprint),
        }
    }

    /// What a change from manual to autoscale starts with: the client cannot choose.
    #[must_use]
    pub fn migrated_to_autoscale(self, limits: &Limits, footprint: &Footprint) -> Throughput {
        // What further containers require is left out here, as the service does.
        let alone = Footprint { containers: None, ..*footprint };
        let needed = limits.autoscale_minimum(&alone).max(self.rate());
        let max = round_up(needed, limits.autoscale_throughput_step);
        let max = max.min(limits.throughput_max_of(footprint.growth));
        Throughput::Autoscale { max, increment_percent: None }
    }

    /// What a change from autoscale to manual starts with: the former maximum.
    #[must_use]
    pub fn migrated_to_manual(self) -> Throughput {
        Throughput::Manual(self.rate())
    }

    fn step(self, limits: &Limits) -> u32 {
        let step = match self {
            Throughput::Manual(_) => limits.throughput_step,
            Throughput::Autoscale { .. } => limits.autoscale_throughput_step,
        };
        step.max(1)
    }
}

impl Limits {
    /// The largest throughput of a container, which does not change with its size.
    #[must_use]
    pub fn throughput_max_of(&self, growth: Growth) -> u32 {
        match growth {
            Growth::Fixed => self.fixed_throughput_max,
            Growth::Unlimited => self.throughput_max,
        }
    }

    /// Whether `ranges` physical partitions can serve a rate as they are.
    #[must_use]
    pub fn carries(&self, ranges: u32, rate: u32) -> bool {
        self.ranges_for_scaling(rate) <= ranges
    }

    /// What a physical partition with this fraction of the whole serves. Above what one can
    /// serve, the rest waits for a split.
    #[must_use]
    pub fn share(&self, rate: u32, fraction: f64) -> f64 {
        (f64::from(rate) * fraction).min(f64::from(self.partition_throughput_max))
    }

    fn manual_minimum(&self, footprint: &Footprint) -> u32 {
        let base = match (footprint.growth, footprint.containers) {
            (Growth::Unlimited, None) => self.throughput_min.max(self.unlimited_throughput_min),
            (Growth::Fixed, _) | (Growth::Unlimited, Some(_)) => self.throughput_min,
        };
        let needed = base
            .max(self.for_storage(footprint.stored_bytes, self.throughput_per_gib_min))
            .max(footprint.highest / self.throughput_highest_divisor.max(1))
            .max(self.for_containers(base, self.shared_container_throughput, footprint));
        round_up(needed, self.throughput_step)
    }

    fn autoscale_minimum(&self, footprint: &Footprint) -> u32 {
        let base = self.autoscale_throughput_min;
        let needed = base
            .max(self.for_storage(footprint.stored_bytes, self.autoscale_per_gib_min))
            .max(footprint.highest / self.autoscale_highest_divisor.max(1))
            .max(self.for_containers(base, self.shared_container_autoscale_throughput, footprint));
        round_up(needed, self.autoscale_throughput_step)
    }

    fn for_storage(&self, bytes: u64, per_gib: u32) -> u32 {
        let needed = u128::from(self.bytes_unscaled(bytes)) * u128::from(per_gib);
        u32::try_from(needed.div_ceil(GIB)).unwrap_or(u32::MAX)
    }

    /// A shared database's minimum covers some containers; each further one adds to it.
    fn for_containers(&self, base: u32, each: u32, footprint: &Footprint) -> u32 {
        let containers = footprint.containers.unwrap_or(0);
        let further = containers.saturating_sub(self.shared_database_containers_max);
        base.saturating_add(each.saturating_mul(u32::try_from(further).unwrap_or(u32::MAX)))
    }
}

fn round_up(rate: u32, step: u32) -> u32 {
    rate.checked_next_multiple_of(step.max(1)).unwrap_or(rate)
}

#[cfg(test)]
mod tests;
