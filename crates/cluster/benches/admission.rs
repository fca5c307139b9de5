//! What does admitting a request, and counting it, cost?
//!
//! One thread, then two, on one physical partition: admission, payment and metering
//! of requests on one key, on a few and on very many.
#![allow(clippy::print_stdout, reason = "benchmarks talk to people")]
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot work ends")]

use std::sync::Arc;
use std::time::Duration;

use cluster::{
    Caller, ContainerMap, PartitionId, PartitionThrottle, ProvisionedThroughput,
    ThroughputController,
};
use model::charge::Charge;
use model::epk::Epk;
use model::limits::Limits;
use model::partition_key::{PartitionKey, PartitionKeyDefinition};
use runtime::{Clock, RealClock};

const ROUNDS: u32 = 2_000_000;

fn main() {
    let definition = PartitionKeyDefinition::hash(["/pk"]).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
    let map = Arc::new(ContainerMap::fresh(&definition, 1));
    let controller =
        ThroughputController::new(Arc::clone(&clock), Arc::new(Limits::default()), map);
    controller.provide(ProvisionedThroughput::Container {
        rate: 1_000_000,
        burst: true,
        buckets: Vec::new(),
    });
    let throttle = controller.throttle(PartitionId(0)).unwrap();
    for keys in [1, 50, 100_000] {
        let key = |number: u32| {
            let key = PartitionKey::new([number.to_string().as_str()]);
            definition.locate(&key).unwrap()
        };
        let keys: Vec<Epk> = (0..keys).map(key).collect();
        for threads in [1, 2] {
            let start = clock.monotonic();
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| visit(&throttle, &keys));
                }
            });
            let each = (clock.monotonic() - start) / ROUNDS;
            println!("{:>6} keys, {threads} threads: {each:>6.0?} for a request", keys.len());
        }
    }
    println!("reading the clock: {:?}", tick(clock.as_ref()));
}

fn visit(throttle: &Arc<PartitionThrottle>, keys: &[Epk]) {
    for (_, key) in (0..ROUNDS).zip(keys.iter().cycle()) {
        if let Ok(permit) = throttle.admit(Caller::default()) {
            permit.pay(Some(key), Charge::from_units(21));
        }
    }
}

fn tick(clock: &dyn Clock) -> Duration {
    let start = clock.monotonic();
    for _ in 0..ROUNDS {
        std::hint::black_box(clock.monotonic());
    }
    (clock.monotonic() - start) / ROUNDS
}
