//! How much of a container's throughput each of its physical partitions has.
//!
//! The plan says what was provided for the container, the map says between whom it
//! is divided. Both change while requests run; the governor notices a new map by
//! its number and divides anew, so nobody has to tell it about a split or merge.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use model::charge::Charge;
use model::epk::Epk;
use model::limits::Limits;
use runtime::Clock;

use crate::budget::{Allowance, Budget, Burst, Caller, Refusal};
use crate::map::{ContainerMap, RangeId};
use crate::meter::{Meter, Totals};

/// What was provided for a container. Rates are RU/s as clients see them.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Used without limit, and metered.
    Unlimited,
    /// So much for the whole container.
    Container { rate: u32, burst: bool, buckets: Vec<ThroughputBucket> },
    /// So much for each physical partition, however many there are.
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
    budgets: RwLock<Vec<Arc<Budget>>>,
}

/// Lets requests into the physical partitions of one container.
#[derive(Debug)]
pub struct Governor {
    clock: Arc<dyn Clock>,
    limits: Arc<Limits>,
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    plan: Plan,
    /// The change of the map that was divided by; none before the first.
    change: Option<u64>,
    gauges: BTreeMap<RangeId, Arc<Gauge>>,
    /// What partitions counted that are there no more.
    former: Totals,
}

/// The budget and the meter of one physical partition, until it is divided anew.
#[derive(Debug)]
pub struct Gauge {
    clock: Arc<dyn Clock>,
    budget: Arc<Budget>,
    /// Whether others draw on the budget as well.
    pooled: bool,
    meter: Arc<Meter>,
}

/// A request that was let in. It pays when it is done.
#[derive(Debug)]
#[must_use = "whoever is let in pays"]
pub struct Pass {
    gauge: Arc<Gauge>,
    caller: Caller,
}

impl Governor {
    pub fn new(clock: Arc<dyn Clock>, limits: Arc<Limits>) -> Governor {
        let state = State {
            plan: Plan::Unlimited,
            change: None,
            gauges: BTreeMap::new(),
            former: Totals::default(),
        };
        Governor { clock, limits, state: RwLock::new(state) }
    }

    /// Provides for the container from now on.
    pub fn provide(&self, plan: Plan) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.plan = plan;
        state.change = None;
    }

    /// The gauge of a range of this map.
    pub fn gauge(&self, map: &ContainerMap, id: RangeId) -> Option<Arc<Gauge>> {
        {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            if state.change == Some(map.change()) {
                return state.gauges.get(&id).cloned();
            }
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        // Whoever still routes by an older map than the last one is not divided for.
        if state.change.is_none_or(|divided| divided < map.change()) {
            self.divide(&mut state, map);
        }
        state.gauges.get(&id).cloned()
    }

    /// What all partitions counted that the container ever had.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let present = state.gauges.values().map(|gauge| gauge.meter.totals());
        present.fold(state.former, Totals::plus)
    }

    fn divide(&self, state: &mut State, map: &ContainerMap) {
        let now = self.clock.monotonic();
        let mut before = std::mem::take(&mut state.gauges);
        for (place, record) in map.ranges().iter().enumerate() {
            let old = before.remove(&record.id);
            let (budget, pooled) = match &state.plan {
                Plan::Database(pool) => (pool.budget(place), true),
                own @ (Plan::Unlimited | Plan::Container { .. } | Plan::EachRange { .. }) => {
                    let parents = record.parents.iter().filter_map(|id| before.get(id));
                    let allowance = self.allowance(own, map.fraction(record));
                    (filled(old.as_ref(), parents, now, allowance), false)
                }
            };
            let meter = old.map_or_else(Arc::default, |gauge| Arc::clone(&gauge.meter));
            let gauge = Gauge { clock: Arc::clone(&self.clock), budget, pooled, meter };
            state.gauges.insert(record.id, Arc::new(gauge));
        }
        for gone in before.into_values() {
            state.former = state.former.plus(gone.meter.totals());
        }
        state.change = Some(map.change());
    }

    /// How the budget of a range with that part of the whole is filled.
    fn allowance(&self, plan: &Plan, fraction: f64) -> Option<Allowance> {
        match plan {
            Plan::Unlimited | Plan::Database(_) => None,
            Plan::EachRange { rate } => Some(Allowance::of(self.scaled(f64::from(*rate)))),
            Plan::Container { rate, burst, buckets } => {
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

impl Gauge {
    /// Lets a request in, or says when to come back.
    pub fn admit(self: Arc<Gauge>, caller: Caller) -> Result<Pass, Refusal> {
        match self.budget.admit(self.clock.monotonic(), caller) {
            Ok(()) => Ok(Pass { gauge: self, caller }),
            Err(refusal) => {
                self.meter.throttled();
                Err(refusal)
            }
        }
    }

    /// Lets a request in whatever the budget says: it is under way already.
    pub(crate) fn pass(self: Arc<Gauge>, caller: Caller) -> Pass {
        Pass { gauge: self, caller }
    }

    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// RU/s that flow in, unless it is not limited. In a scale model that is less
    /// than clients are told.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        self.budget.rate()
    }

    /// The busiest second of the last minute as a part of what a second provides,
    /// at most all of it. Nothing is used of what has no limit.
    #[must_use]
    pub fn normalised(&self) -> f64 {
        let busiest = self.meter.busiest_second(self.clock.monotonic());
        let part = self.rate().map_or(0.0, |rate| busiest.request_units() / rate);
        if part.is_finite() { part.min(1.0) } else { 1.0 }
    }
}

impl Pass {
    /// Pays for what was done.
    pub fn pay(self, epk: Option<&Epk>, charge: Charge) {
        let now = self.gauge.clock.monotonic();
        self.gauge.budget.pay(now, self.caller, charge.request_units());
        self.gauge.meter.served(now, epk, charge);
    }
}

/// A budget that is filled like this, if possible the one there was, with its debts;
/// else one that takes the place of those of its parents.
fn filled<'a>(
    kept: Option<&Arc<Gauge>>,
    parents: impl Iterator<Item = &'a Arc<Gauge>>,
    now: Duration,
    allowance: Option<Allowance>,
) -> Arc<Budget> {
    if let Some(gauge) = kept.filter(|gauge| !gauge.pooled) {
        gauge.budget.set(now, allowance);
        return Arc::clone(&gauge.budget);
    }
    let own = parents.filter(|gauge| !gauge.pooled).map(|gauge| gauge.budget.as_ref());
    Arc::new(Budget::instead_of(&own.collect::<Vec<_>>(), now, allowance))
}

impl Pool {
    /// The throughput of a database; none: not limited.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, limits: Arc<Limits>, rate: Option<u32>) -> Pool {
        let pool = Pool { clock, limits, budgets: RwLock::default() };
        pool.provide(rate);
        pool
    }

    /// Changes it. Containers notice when they divide by it the next time.
    pub fn provide(&self, rate: Option<u32>) {
        let now = self.clock.monotonic();
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
            budgets.push(Arc::new(Budget::new(now, share.clone())));
        }
    }

    fn budget(&self, place: usize) -> Arc<Budget> {
        let budgets = self.budgets.read().unwrap_or_else(PoisonError::into_inner);
        let budget = budgets.get(place % budgets.len().max(1)).cloned();
        budget.unwrap_or_else(|| Arc::new(Budget::new(self.clock.monotonic(), None)))
    }
}

#[cfg(test)]
mod tests;
