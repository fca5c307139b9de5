//! The throughput budget of one physical partition: token buckets that may run into debt.
//!
//! The cost of a request is known only after it was executed. So a budget is a token bucket
//! that fills continuously, holds one second's worth, and may run into debt: requests are
//! admitted while it is above zero and pay when they are done; during a debt they are
//! refused with the time that paying it off takes. On average no more is spent than flows
//! in, however large or many the requests are.
//!
//! A refusal costs the partition nothing, although clients are billed for it: a storm of
//! retries must not starve clients that wait as long as they were asked to.
//!
//! Time is a parameter, so hours are tested in a moment.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The token bucket holds as much as flows in during this time: "each second the request
/// units available are reset".
const CAPACITY_SECS: f64 = 1.0;

/// Requests of low priority are admitted only above this fraction of a full token bucket.
/// While others keep it lower they are refused, and alone they still get everything.
const LOW_PRIORITY_RESERVE: f64 = 0.1;

/// A refusal never asks for an immediate retry.
const RETRY_MIN: Duration = Duration::from_millis(1);

/// The priority of a request when there is not enough for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    #[default]
    High,
    /// Refused first.
    Low,
}

/// The request that wants to spend. Two callers of the same budget may be treated
/// differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    pub priority: Priority,
    /// The throughput bucket that the request names: a part of the throughput set
    /// aside for some of a container's users.
    pub bucket: Option<u32>,
}

/// How a budget is filled.
#[derive(Clone, Debug, PartialEq)]
pub struct Allowance {
    /// Request units per second that flow in.
    pub rate: f64,
    /// What is not used may be saved, if the rate is low.
    pub burst: Option<Burst>,
    /// Throughput buckets: the id and the part of `rate` that it may spend.
    pub buckets: Vec<(u32, f64)>,
}

/// Saving for bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Request units per second that can be spent while there are savings.
    pub rate_max: f64,
    /// Seconds of unused inflow that can be saved.
    pub secs_max: f64,
}

/// There is nothing to spend now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrottleRefusal {
    pub reason: Reason,
    /// When there will be something again, if no other request spends it.
    pub retry_after: Duration,
}

/// Which budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// That of the physical partition.
    Rate,
    /// That of the caller's throughput bucket.
    Bucket,
    /// The time until throughput buckets may be changed again.
    BucketChange,
}

/// The budget of one physical partition, or of several that share it.
#[derive(Debug)]
pub struct ThroughputBudget {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None`: metered by others, and not limited.
    allowance: Option<Allowance>,
    /// When the token buckets were last filled.
    filled_at: Duration,
    main: TokenBucket,
    /// What was saved for bursts.
    savings: f64,
    buckets: Vec<(u32, TokenBucket)>,
}

/// Request units that can be spent; below zero is debt.
#[derive(Clone, Copy, Debug)]
struct TokenBucket {
    rate: f64,
    balance: f64,
}

impl ThroughputBudget {
    /// A budget that begins with one second's worth.
    #[must_use]
    pub fn new(now: Duration, allowance: Option<Allowance>) -> ThroughputBudget {
        ThroughputBudget::instead_of(&[], now, allowance)
    }

    /// A budget that begins as full, or as deep in debt, as its predecessors were together.
    /// Their savings are gone.
    #[must_use]
    pub fn instead_of(
        before: &[&ThroughputBudget],
        now: Duration,
        allowance: Option<Allowance>,
    ) -> ThroughputBudget {
        let token_buckets: Vec<TokenBucket> =
            before.iter().filter_map(|budget| budget.tokens(now)).collect();
        let capacity: f64 = token_buckets.iter().map(TokenBucket::capacity).sum();
        let balance: f64 = token_buckets.iter().map(|tokens| tokens.balance).sum();
        let mut state = State {
            allowance: None,
            filled_at: now,
            main: TokenBucket::full(0.0),
            savings: 0.0,
            buckets: Vec::new(),
        };
        state.allow(allowance);
        if capacity > 0.0 {
            state.main.balance = state.main.capacity() * (balance / capacity);
        }
        ThroughputBudget { state: Mutex::new(state) }
    }

    /// What can be spent now, unless it is not limited.
    fn tokens(&self, now: Duration) -> Option<TokenBucket> {
        let mut state = self.state();
        state.fill(now);
        state.allowance.as_ref().map(|_| state.main)
    }

    /// Whether a request may be executed now. Call before it, [`ThroughputBudget::pay`]
    /// after it.
    pub fn admit(&self, now: Duration, caller: Caller) -> Result<(), ThrottleRefusal> {
        let mut state = self.state();
        if state.allowance.is_none() {
            return Ok(());
        }
        state.fill(now);
        if let Some(bucket) = state.bucket(caller) {
            bucket.check(0.0, Reason::Bucket)?;
        }
        let reserve = match caller.priority {
            Priority::High => 0.0,
            Priority::Low => state.main.capacity() * LOW_PRIORITY_RESERVE,
        };
        state.main.check(reserve, Reason::Rate)
    }

    /// Takes what a request cost.
    pub fn pay(&self, now: Duration, caller: Caller, request_units: f64) {
        let mut state = self.state();
        if state.allowance.is_none() {
            return;
        }
        state.fill(now);
        state.main.balance -= request_units;
        if let Some(bucket) = state.bucket(caller) {
            bucket.balance -= request_units;
        }
    }

    /// Changes how it is filled from now on. Debts stay.
    pub fn set(&self, now: Duration, allowance: Option<Allowance>) {
        let mut state = self.state();
        if state.allowance != allowance {
            state.fill(now);
            state.filled_at = now;
            state.allow(allowance);
        }
    }

    /// Request units per second that flow in, unless it is not limited.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        self.state().allowance.as_ref().map(|allowance| allowance.rate)
    }

    /// Nothing in here can be left half-done by a panic.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn allow(&mut self, allowance: Option<Allowance>) {
        if let Some(new) = &allowance {
            self.main = if self.allowance.is_some() {
                self.main.refitted(new.rate)
            } else {
                TokenBucket::full(new.rate)
            };
            let old = std::mem::take(&mut self.buckets);
            let tokens = |(id, part): &(u32, f64)| {
                let before = old.iter().find(|(known, _)| known == id).map(|(_, tokens)| *tokens);
                let rate = new.rate * part;
                (*id, before.map_or(TokenBucket::full(rate), |tokens| tokens.refitted(rate)))
            };
            self.buckets = new.buckets.iter().map(tokens).collect();
            self.savings = self.savings.min(new.savings_max());
        }
        self.allowance = allowance;
    }

    /// Adds what has flowed in since the last call. The overflow is saved, and savings flow
    /// back at the burst rate.
    fn fill(&mut self, now: Duration) {
        let elapsed = now.saturating_sub(self.filled_at).as_secs_f64();
        let Some(allowance) = self.allowance.as_ref().filter(|_| elapsed > 0.0) else { return };
        self.filled_at = now;
        let surplus = self.main.pour(self.main.rate * elapsed);
        for (_, bucket) in &mut self.buckets {
            bucket.pour(bucket.rate * elapsed);
        }
        let Some(burst) = allowance.saving() else { return };
        self.savings = (self.savings + surplus).min(allowance.savings_max());
        let flow = (burst.rate_max - allowance.rate) * elapsed;
        let drawn = flow.min(self.savings);
        self.savings -= drawn - self.main.pour(drawn);
    }

    /// The token bucket of the caller's throughput bucket, if that is limited.
    fn bucket(&mut self, caller: Caller) -> Option<&mut TokenBucket> {
        let id = caller.bucket?;
        self.buckets.iter_mut().find(|(known, _)| *known == id).map(|(_, tokens)| tokens)
    }
}

impl Allowance {
    /// A plain rate.
    #[must_use]
    pub fn of(rate: f64) -> Allowance {
        Allowance { rate, burst: None, buckets: Vec::new() }
    }

    /// Only a rate below the burst rate saves for bursts.
    fn saving(&self) -> Option<Burst> {
        self.burst.filter(|burst| self.rate < burst.rate_max)
    }

    fn savings_max(&self) -> f64 {
        self.saving().map_or(0.0, |burst| burst.secs_max * self.rate)
    }
}

impl TokenBucket {
    fn full(rate: f64) -> TokenBucket {
        TokenBucket { rate, balance: rate * CAPACITY_SECS }
    }

    fn capacity(&self) -> f64 {
        self.rate * CAPACITY_SECS
    }

    /// The same with another rate.
    fn refitted(self, rate: f64) -> TokenBucket {
        TokenBucket { rate, balance: self.balance.min(rate * CAPACITY_SECS) }
    }

    /// Adds up to the capacity and returns the overflow.
    fn pour(&mut self, amount: f64) -> f64 {
        let filled = self.balance + amount;
        self.balance = filled.min(self.capacity());
        filled - self.balance
    }

    fn check(&self, reserve: f64, reason: Reason) -> Result<(), ThrottleRefusal> {
        if self.balance > reserve {
            return Ok(());
        }
        let missing = (reserve - self.balance) / self.rate;
        // A rate of zero never pays a debt off.
        let wait = Duration::try_from_secs_f64(missing).unwrap_or(Duration::MAX);
        Err(ThrottleRefusal { reason, retry_after: wait.max(RETRY_MIN) })
    }
}

#[cfg(test)]
mod tests;
