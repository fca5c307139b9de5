//! Budgets over simulated hours.

use proptest::prelude::*;

use super::*;

const HIGH: Caller = Caller { priority: Priority::High, bucket: None };
const LOW: Caller = Caller { priority: Priority::Low, bucket: None };

fn secs(secs: f64) -> Duration {
    Duration::from_secs_f64(secs)
}

fn budget(rate: f64) -> ThroughputBudget {
    ThroughputBudget::new(Duration::ZERO, Some(Allowance::of(rate)))
}

/// Spends `cost` whenever it is admitted, every `step` seconds until `end`.
fn saturate(
    budget: &ThroughputBudget,
    caller: Caller,
    (from, end): (f64, f64),
    step: f64,
    cost: f64,
) -> f64 {
    let (mut spent, mut tick) = (0.0, 0.0);
    while from + tick * step < end {
        let now = secs(from + tick * step);
        if budget.admit(now, caller).is_ok() {
            budget.pay(now, caller, cost);
            spent += cost;
        }
        tick += 1.0;
    }
    spent
}

#[test]
fn a_debt_is_paid_off_before_anyone_is_let_in() {
    let budget = budget(400.0);
    assert_eq!(budget.admit(Duration::ZERO, HIGH), Ok(()));
    budget.pay(Duration::ZERO, HIGH, 400.0 + 895.2);
    let refusal = budget.admit(Duration::ZERO, HIGH).unwrap_err();
    assert_eq!(refusal, ThrottleRefusal { reason: Reason::Rate, retry_after: secs(2.238) });
    assert!(budget.admit(secs(2.237), HIGH).is_err());
    assert_eq!(budget.admit(secs(2.239), HIGH), Ok(()));
}

#[test]
fn an_idle_budget_holds_one_second() {
    let budget = budget(100.0);
    let hour = secs(3_600.0);
    assert_eq!(budget.admit(hour, HIGH), Ok(()));
    budget.pay(hour, HIGH, 100.0);
    assert_eq!(budget.admit(hour, HIGH).unwrap_err().retry_after, RETRY_MIN);
}

#[test]
fn what_is_not_limited_is_never_refused() {
    let budget = ThroughputBudget::new(Duration::ZERO, None);
    budget.pay(Duration::ZERO, HIGH, 1e9);
    assert_eq!((budget.admit(Duration::ZERO, HIGH), budget.rate()), (Ok(()), None));
    budget.set(secs(1.0), Some(Allowance::of(10.0)));
    assert_eq!((budget.admit(secs(1.0), HIGH), budget.rate()), (Ok(()), Some(10.0)));
    budget.pay(secs(1.0), HIGH, 20.0);
    assert!(budget.admit(secs(1.0), HIGH).is_err());
}

#[test]
fn a_new_rate_holds_at_once_and_debts_stay() {
    let budget = budget(100.0);
    budget.pay(Duration::ZERO, HIGH, 300.0);
    budget.set(Duration::ZERO, Some(Allowance::of(1_000.0)));
    assert_eq!(budget.admit(Duration::ZERO, HIGH).unwrap_err().retry_after, secs(0.2));
    budget.set(secs(10.0), Some(Allowance::of(50.0)));
    budget.pay(secs(10.0), HIGH, 50.0);
    assert!(budget.admit(secs(10.0), HIGH).is_err(), "what is too much for the new rate is gone");
}

/// The published example: 100 RU/s, idle for five minutes, gives 10 s at 3,000 RU/s.
#[test]
fn savings_are_spent_at_the_burst_rate() {
    let burst = Some(Burst { rate_max: 3_000.0, secs_max: 300.0 });
    let allowance = Allowance { burst, ..Allowance::of(100.0) };
    let budget = ThroughputBudget::new(Duration::ZERO, Some(allowance.clone()));
    let spent = saturate(&budget, HIGH, (300.0, 310.0), 0.001, 10.0);
    assert!((29_900.0..=30_200.0).contains(&spent), "{spent}");
    let spent = saturate(&budget, HIGH, (311.0, 411.0), 0.001, 10.0);
    assert!((9_900.0..=11_300.0).contains(&spent), "savings are used up: {spent}");
    // A rate as high as the burst rate saves nothing.
    let budget =
        ThroughputBudget::new(Duration::ZERO, Some(Allowance { rate: 3_000.0, ..allowance }));
    let spent = saturate(&budget, HIGH, (300.0, 301.0), 0.001, 10.0);
    assert!(spent <= 6_010.0, "{spent}");
}

#[test]
fn low_priority_is_refused_first_and_alone_gets_everything() {
    let budget = budget(1_000.0);
    let alone = saturate(&budget, LOW, (0.0, 10.0), 0.001, 5.0);
    assert!((9_800.0..=11_005.0).contains(&alone), "{alone}");
    let (mut high, mut low) = (0.0, 0.0);
    for tick in 0..10_000 {
        let now = secs(10.0 + f64::from(tick) * 0.001);
        for (caller, spent) in [(LOW, &mut low), (HIGH, &mut high)] {
            if budget.admit(now, caller).is_ok() {
                budget.pay(now, caller, 5.0);
                *spent += 5.0;
            }
        }
    }
    assert!(high > 9_800.0 && low < 200.0, "high {high}, low {low}");
}

#[test]
fn a_throughput_bucket_has_its_own_ceiling() {
    let allowance = Allowance { buckets: vec![(1, 0.25), (2, 0.5)], ..Allowance::of(1_000.0) };
    let budget = ThroughputBudget::new(Duration::ZERO, Some(allowance));
    let caller = |id| Caller { bucket: Some(id), ..HIGH };
    let spent = saturate(&budget, caller(1), (0.0, 20.0), 0.001, 5.0);
    assert!((4_900.0..=5_255.0).contains(&spent), "{spent}");
    let refusal = budget.admit(secs(20.0), caller(1)).unwrap_err();
    assert_eq!(refusal.reason, Reason::Bucket);
    assert_eq!(budget.admit(secs(20.0), caller(2)), Ok(()));
    assert_eq!(budget.admit(secs(20.0), caller(3)), Ok(()), "an unknown bucket has no ceiling");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the pace and the costs: no more than flowed in, the initial token bucket
    /// and the last request, whose cost is not known in advance.
    #[test]
    fn no_more_is_spent_than_flows_in(
        rate in 10.0..10_000.0,
        requests in proptest::collection::vec((0.0..0.2, 0.1..500.0), 1..400),
    ) {
        let budget = budget(rate);
        let (mut now, mut spent, mut last) = (0.0, 0.0, 0.0);
        for (pause, cost) in requests {
            now += pause;
            if budget.admit(secs(now), HIGH).is_ok() {
                budget.pay(secs(now), HIGH, cost);
                spent += cost;
                last = cost;
            }
        }
        let bound = rate * (now + CAPACITY_SECS) + last;
        prop_assert!(spent <= bound * (1.0 + 1e-9), "{} of {}", spent, bound);
    }

    /// After the suggested wait a request is admitted, and a moment earlier it is not.
    #[test]
    fn the_time_to_wait_is_exact(rate in 10.0..10_000.0_f64, cost in 1.0..100_000.0_f64) {
        let budget = budget(rate);
        budget.pay(Duration::ZERO, HIGH, rate + cost);
        let wait = budget.admit(Duration::ZERO, HIGH).unwrap_err().retry_after;
        prop_assert!((wait.as_secs_f64() - (cost / rate).max(0.001)).abs() < 1e-6);
        if wait > 2 * RETRY_MIN {
            prop_assert!(budget.admit(wait - RETRY_MIN, HIGH).is_err());
        }
        prop_assert!(budget.admit(wait + Duration::from_nanos(100), HIGH).is_ok());
    }

    /// Enough offered load gets at least 95 % of the rate, whatever one request costs.
    #[test]
    fn demand_uses_the_whole_rate(rate in 400.0..10_000.0, cost in 1.0..200.0) {
        let budget = budget(rate);
        let spent = saturate(&budget, HIGH, (0.0, 20.0), cost / rate / 3.0, cost);
        prop_assert!(spent >= 0.95 * rate * 20.0, "{} of {}", spent, rate * 20.0);
    }
}
