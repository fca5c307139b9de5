//! Provisioned throughput, divided between the physical partitions of a container.
//!
//! The provisioned throughput is what the container has, the map says how it is divided.
//! Both change while requests run; a partition's share is then changed in place, so that
//! requests ask only its handle.

pub(crate) mod budget;
pub(crate) mod meter;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use model::charge::Charge;
use model::epk::Epk;
use model::limits::Limits;
use runtime::Clock;

use crate::layout::map::{ContainerMap, PartitionId};
use crate::throughput::budget::{Allowance, Burst, Caller, ThrottleRefusal, ThroughputBudget};
use crate::throughput::meter::{Meter, Totals};

/// What was provided for a container. Rates are RU/s as clients see them.
#[derive(Clone, Debug)]
pub enum ProvisionedThroughput {
    /// Used without limit, and metered.
    Unlimited,
    /// This rate for the whole container.
    Container { rate: u32, burst: bool, buckets: Vec<ThroughputBucket> },
    /// This rate for each physical partition, however many there are.
    EachRange { rate: u32 },
    /// A part of what its database has.
    Database(Arc<Pool>),
}

/// A part of a container's throughput for some of its users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThroughputBucket {
    pub id: u32,
    /// Of the throughput of each physical partition.
    pub percent_max: u32,
}

/// The throughput of a database, which its containers share: the first partitions
/// of all of them draw on the first budget, the second ones on the second.
#[derive(Debug)]
pub struct Pool {
    clock: Arc<dyn Clock>,
    limits: Arc<Limits>,
    budgets: RwLock<Vec<Arc<ThroughputBudget>>>,
}

/// Divides the throughput of one container between its physical partitions.
#[derive(Debug)]
pub struct ThroughputController {
    clock: Arc<dyn Clock>,
    limits: Arc<Limits>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    provisioned: ProvisionedThroughput,
    /// The map by which it is divided.
    map: Arc<ContainerMap>,
    throttles: BTreeMap<PartitionId, Arc<PartitionThrottle>>,
    /// Totals of partitions that no longer exist.
    former: Totals,
}

/// What one physical partition may spend, and what it has spent. Its handle owns it, so
/// that a request is admitted and charged where it is served.
#[derive(Debug)]
pub struct PartitionThrottle {
    clock: Arc<dyn Clock>,
    source: RwLock<Source>,
    meter: Meter,
}

/// The budget that a partition draws on.
#[derive(Clone, Debug)]
struct Source {
    budget: Arc<ThroughputBudget>,
    /// Whether others draw on the budget as well.
    pooled: bool,
}

/// An admitted request, which pays when it is done.
#[derive(Debug)]
#[must_use = "whoever is let in pays"]
pub struct Permit {
    throttle: Arc<PartitionThrottle>,
    caller: Caller,
}

impl ThroughputController {
    /// Every request is admitted until throughput is provisioned.
    pub fn new(
        clock: Arc<dyn Clock>,
        limits: Arc<Limits>,
        map: Arc<ContainerMap>,
    ) -> ThroughputController {
        let (provisioned, throttles, former) =
            (ProvisionedThroughput::Unlimited, BTreeMap::new(), Totals::default());
        let state = Mutex::new(State { provisioned, map, throttles, former });
        let controller = ThroughputController { clock, limits, state };
        controller.divide(&mut controller.state());
        controller
    }

    /// Sets the container's provisioned throughput from now on.
    pub fn provide(&self, provisioned: ProvisionedThroughput) {
        let mut state = self.state();
        state.provisioned = provisioned;
        self.divide(&mut state);
    }

    /// Divides by another map from now on.
    pub fn follow(&self, map: Arc<ContainerMap>) {
        let mut state = self.state();
        state.map = map;
        self.divide(&mut state);
    }

    /// The throttle of a partition of the last map. It stays the same as long as the
    /// partition does.
    pub fn throttle(&self, id: PartitionId) -> Option<Arc<PartitionThrottle>> {
        self.state().throttles.get(&id).cloned()
    }

    /// The totals of all partitions that the container ever had.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let state = self.state();
        let present = state.throttles.values().map(|throttle| throttle.meter.totals());
        present.fold(state.former, Totals::plus)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn divide(&self, state: &mut State) {
        let now = self.clock.steady();
        let State { provisioned, map, throttles, former } = state;
        let mut before = std::mem::take(throttles);
        for (place, record) in map.ranges().iter().enumerate() {
            let old = before.remove(&record.id);
            let source = match &*provisioned {
                ProvisionedThroughput::Database(pool) => {
                    Source { budget: pool.budget(place), pooled: true }
                }
                own @ (ProvisionedThroughput::Unlimited
                | ProvisionedThroughput::Container { .. }
                | ProvisionedThroughput::EachRange { .. }) => {
                    let parents = record.parents.iter().filter_map(|id| before.get(id));
                    let allowance = self.allowance(own, map.fraction(record));
                    Source { budget: filled(old.as_ref(), parents, now, allowance), pooled: false }
                }
            };
            let throttle = match old {
                Some(throttle) => throttle.drawing_on(source),
                None => Arc::new(PartitionThrottle::new(Arc::clone(&self.clock), source)),
            };
            throttles.insert(record.id, throttle);
        }
        for gone in before.into_values() {
            *former = former.plus(gone.meter.totals());
        }
    }

    /// The allowance of a range with that share of the whole.
    fn allowance(&self, provisioned: &ProvisionedThroughput, fraction: f64) -> Option<Allowance> {
        match provisioned {
            ProvisionedThroughput::Unlimited | ProvisionedThroughput::Database(_) => None,
            ProvisionedThroughput::EachRange { rate } => {
                Some(Allowance::of(self.scaled(f64::from(*rate))))
            }
            ProvisionedThroughput::Container { rate, burst, buckets } => {
                let share = self.limits.share(*rate, fraction);
                let part =
                    |bucket: &ThroughputBucket| (bucket.id, f64::from(bucket.percent_max) / 100.0);
                Some(Allowance {
                    rate: self.scaled(share),
                    burst: burst.then(|| self.burst()),
                    buckets: buckets.iter().map(part).collect(),
                })
            }
        }
    }

    fn burst(&self) -> Burst {
        Burst {
            rate_max: self.scaled(f64::from(self.limits.burst_throughput_max)),
            secs_max: f64::from(self.limits.burst_secs_max),
        }
    }

    fn scaled(&self, rate: f64) -> f64 {
        rate / f64::from(self.limits.scale.max(1))
    }
}

impl PartitionThrottle {
    fn new(clock: Arc<dyn Clock>, source: Source) -> PartitionThrottle {
        PartitionThrottle { clock, source: RwLock::new(source), meter: Meter::default() }
    }

    /// Admits a request, or refuses it with the time to wait.
    pub fn admit(self: &Arc<PartitionThrottle>, caller: Caller) -> Result<Permit, ThrottleRefusal> {
        match self.source().budget.admit(self.clock.steady(), caller) {
            Ok(()) => Ok(self.permit(caller)),
            Err(refusal) => {
                self.meter.throttled();
                Err(refusal)
            }
        }
    }

    /// Admits a request whatever the budget says: it is under way already.
    pub fn permit(self: &Arc<PartitionThrottle>, caller: Caller) -> Permit {
        Permit { throttle: Arc::clone(self), caller }
    }

    fn drawing_on(self: Arc<PartitionThrottle>, source: Source) -> Arc<PartitionThrottle> {
        *self.source.write().unwrap_or_else(PoisonError::into_inner) = source;
        self
    }

    fn source(&self) -> RwLockReadGuard<'_, Source> {
        self.source.read().unwrap_or_else(PoisonError::into_inner)
    }

    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// RU/s that flow in, unless it is not limited. In a scale model that is less than what
    /// clients see.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        self.source().budget.rate()
    }

    /// The busiest second of the last minute as a fraction of what a second provides, at
    /// most 1. Zero where there is no limit.
    #[must_use]
    pub fn normalised(&self) -> f64 {
        let busiest = self.meter.busiest_second(self.clock.steady());
        let part = self.rate().map_or(0.0, |rate| busiest.request_units() / rate);
        if part.is_finite() { part.min(1.0) } else { 1.0 }
    }
}

impl Permit {
    /// Pays for what was done.
    pub fn pay(self, epk: Option<&Epk>, charge: Charge) {
        let now = self.throttle.clock.steady();
        self.throttle.source().budget.pay(now, self.caller, charge.request_units());
        self.throttle.meter.served(now, epk, charge);
    }
}

/// A budget with this allowance, if possible the existing one, with its debts; otherwise
/// one that succeeds those of its parents.
fn filled<'a>(
    kept: Option<&Arc<PartitionThrottle>>,
    parents: impl Iterator<Item = &'a Arc<PartitionThrottle>>,
    now: Duration,
    allowance: Option<Allowance>,
) -> Arc<ThroughputBudget> {
    let own = |throttle: &Arc<PartitionThrottle>| {
        let source = throttle.source();
        (!source.pooled).then(|| Arc::clone(&source.budget))
    };
    if let Some(budget) = kept.and_then(own) {
        budget.set(now, allowance);
        return budget;
    }
    let parents: Vec<Arc<ThroughputBudget>> = parents.filter_map(own).collect();
    let parents: Vec<&ThroughputBudget> = parents.iter().map(Arc::as_ref).collect();
    Arc::new(ThroughputBudget::instead_of(&parents, now, allowance))
}

impl Pool {
    /// The throughput of a database; `None`: not limited.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, limits: Arc<Limits>, rate: Option<u32>) -> Pool {
        let pool = Pool { clock, limits, budgets: RwLock::default() };
        pool.provide(rate);
        pool
    }

    /// Changes it. Containers follow when they are provisioned the next time.
    pub fn provide(&self, rate: Option<u32>) {
        let now = self.clock.steady();
        let count = rate.map_or(1, |rate| self.limits.ranges_for_scaling(rate));
        let share = rate.map(|rate| {
            let part = f64::from(rate) / f64::from(count);
            Allowance::of(part / f64::from(self.limits.scale.max(1)))
        });
        let mut budgets = self.budgets.write().unwrap_or_else(PoisonError::into_inner);
        budgets.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        for budget in budgets.iter() {
            budget.set(now, share.clone());
        }
        for _ in budgets.len()..usize::try_from(count).unwrap_or(usize::MAX) {
            budgets.push(Arc::new(ThroughputBudget::new(now, share.clone())));
        }
    }

    fn budget(&self, place: usize) -> Arc<ThroughputBudget> {
        let budgets = self.budgets.read().unwrap_or_else(PoisonError::into_inner);
        let budget = budgets.get(place % budgets.len().max(1)).cloned();
        budget.unwrap_or_else(|| Arc::new(ThroughputBudget::new(self.clock.steady(), None)))
    }
}

#[cfg(test)]
mod tests;
