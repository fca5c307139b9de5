//! Throughput divided between the partitions of real maps, in simulated time.

use model::partition_key::PartitionKeyDefinition;
use model::position::Lsn;
use runtime::SimulatedClock;

use super::*;
use crate::layout::map::FinalPosition;

struct World {
    clock: Arc<SimulatedClock>,
    limits: Arc<Limits>,
}

impl World {
    fn new(limits: Limits) -> World {
        World { clock: Arc::new(SimulatedClock::new()), limits: Arc::new(limits) }
    }

    fn controller(
        &self,
        provisioned: ProvisionedThroughput,
        map: &ContainerMap,
    ) -> ThroughputController {
        let clock: Arc<dyn Clock> = Arc::clone(&self.clock) as _;
        let controller =
            ThroughputController::new(clock, Arc::clone(&self.limits), Arc::new(map.clone()));
        controller.provide(provisioned);
        controller
    }

    fn pool(&self, rate: u32) -> Arc<Pool> {
        let clock: Arc<dyn Clock> = Arc::clone(&self.clock) as _;
        Arc::new(Pool::new(clock, Arc::clone(&self.limits), Some(rate)))
    }

    /// Offers requests of 20 RU to these ranges in turn, far too many, for `secs`
    /// seconds; returns what each spent in a second.
    fn saturate(&self, uses: &[(&ThroughputController, u32)], secs: u32) -> Vec<f64> {
        let charge = Charge::from_units(420);
        let mut spent = vec![0.0; uses.len()];
        for _ in 0..secs * 2_000 {
            for ((controller, range), spent) in uses.iter().zip(&mut spent) {
                let throttle = controller.throttle(PartitionId(*range)).unwrap();
                if let Ok(permit) = throttle.admit(Caller::default()) {
                    permit.pay(None, charge);
                    *spent += charge.request_units();
                }
            }
            self.clock.advance(Duration::from_micros(500));
        }
        spent.into_iter().map(|spent| spent / f64::from(secs)).collect()
    }
}

fn fresh(ranges: u32) -> ContainerMap {
    ContainerMap::fresh(&PartitionKeyDefinition::hash(["/pk"]).unwrap(), ranges)
}

fn container(rate: u32) -> ProvisionedThroughput {
    ProvisionedThroughput::Container { rate, burst: false, buckets: Vec::new() }
}

fn rates(controller: &ThroughputController, map: &ContainerMap) -> Vec<Option<f64>> {
    map.ranges().iter().map(|record| controller.throttle(record.id).unwrap().rate()).collect()
}

#[test]
fn throughput_is_divided_evenly() {
    let world = World::new(Limits::default());
    let controller = world.controller(container(18_000), &fresh(3));
    assert_eq!(rates(&controller, &fresh(3)), [Some(6_000.0); 3]);
    controller.provide(container(30_000));
    assert_eq!(rates(&controller, &fresh(3)), [Some(10_000.0); 3]);
    controller.provide(container(45_000));
    assert_eq!(rates(&controller, &fresh(3)), [Some(10_000.0); 3], "the rest waits for splits");
    controller.provide(ProvisionedThroughput::EachRange { rate: 5_000 });
    assert_eq!(rates(&controller, &fresh(3)), [Some(5_000.0); 3]);
    controller.provide(ProvisionedThroughput::Unlimited);
    assert_eq!(rates(&controller, &fresh(3)), [None; 3]);
}

#[test]
fn a_new_map_is_divided_anew_and_nothing_counted_is_lost() {
    let world = World::new(Limits::default());
    let before = fresh(1);
    let controller = world.controller(container(10_000), &before);
    let permit = controller.throttle(PartitionId(0)).unwrap().admit(Caller::default()).unwrap();
    permit.pay(None, Charge::from_units(21));
    let half = &Epk::from_hex("1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF").unwrap();
    let final_position = FinalPosition { lsn: Lsn::from_u64(1), ordinal_blocks: Vec::new() };
    let after = before.split(PartitionId(0), half, &final_position).unwrap();
    controller.follow(Arc::new(after.clone()));
    assert_eq!(rates(&controller, &after), [Some(5_000.0); 2]);
    assert!(controller.throttle(PartitionId(0)).is_none(), "the old range is gone");
    assert_eq!(controller.totals().charge, Charge::from_units(21));
}

/// Splitting and merging creates no throughput: a debt stays a debt.
#[test]
fn children_begin_as_full_as_their_parents_were() {
    let world = World::new(Limits::default());
    let whole = fresh(1);
    let controller = world.controller(container(10_000), &whole);
    let wait = |range| {
        let throttle = controller.throttle(PartitionId(range)).unwrap();
        throttle.admit(Caller::default()).err().map(|refusal| refusal.retry_after)
    };
    let pay = |range, request_units: u64| {
        let throttle = controller.throttle(PartitionId(range)).unwrap();
        throttle.permit(Caller::default()).pay(None, Charge::from_units(request_units * 21));
    };
    pay(0, 13_000);
    assert_eq!(wait(0), Some(Duration::from_millis(300)));
    let half = &Epk::from_hex("1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF").unwrap();
    let final_position = FinalPosition { lsn: Lsn::from_u64(1), ordinal_blocks: Vec::new() };
    let split = whole.split(PartitionId(0), half, &final_position).unwrap();
    controller.follow(Arc::new(split.clone()));
    assert_eq!(wait(1), Some(Duration::from_millis(300)), "its half of the debt");
    assert_eq!(wait(2), Some(Duration::from_millis(300)), "its half of the debt");
    world.clock.advance(Duration::from_millis(200));
    // A debt of 500 and one of 1,500 together.
    pay(2, 1_000);
    let parts = [(PartitionId(1), final_position.clone()), (PartitionId(2), final_position)];
    controller.follow(Arc::new(split.merge(&parts).unwrap()));
    assert_eq!(wait(3), Some(Duration::from_millis(200)));
}

/// The articles' picture, in simulated time: 18,000 RU/s on three partitions.
#[test]
fn a_hot_partition_flattens_while_the_others_serve_on() {
    let world = World::new(Limits::default());
    let controller = world.controller(container(18_000), &fresh(3));
    let every = [0, 1, 2].map(|range| (&controller, range));
    let uniform: f64 = world.saturate(&every, 20).iter().sum();
    assert!(uniform >= 0.95 * 18_000.0, "{uniform}");
    // Twice as much is wanted of the first as of the others together.
    let two_keys_of_one = [(&controller, 0), (&controller, 0), (&controller, 1)];
    let spent = world.saturate(&two_keys_of_one, 20);
    let hot = spent[0] + spent[1];
    assert!((5_700.0..=6_320.0).contains(&hot), "one range's share: {spent:?}");
    assert!(spent[2] >= 5_700.0, "the other serves on: {spent:?}");
    let totals = controller.totals();
    assert!(totals.throttled > 0 && totals.requests > 0);
}

#[test]
fn containers_of_a_database_share_budgets() {
    let world = World::new(Limits::default());
    let pool = world.pool(20_000);
    let [one, other] = [(); 2]
        .map(|()| world.controller(ProvisionedThroughput::Database(pool.clone()), &fresh(2)));
    let uses = [(&one, 0), (&other, 0), (&one, 1)];
    let spent = world.saturate(&uses, 10);
    let first = spent[0] + spent[1];
    assert!((9_500.0..=11_020.0).contains(&first), "{spent:?}");
    assert!(spent[2] >= 9_500.0, "{spent:?}");
}

#[test]
fn a_pool_can_grow_and_shrink() {
    let world = World::new(Limits::default());
    let pool = world.pool(10_000);
    let map = fresh(3);
    let controller = world.controller(ProvisionedThroughput::Database(pool.clone()), &map);
    assert_eq!(rates(&controller, &map), [Some(10_000.0); 3], "all three draw on one budget");
    pool.provide(Some(24_000));
    controller.provide(ProvisionedThroughput::Database(pool.clone()));
    assert_eq!(rates(&controller, &map), [Some(8_000.0); 3]);
    pool.provide(None);
    controller.provide(ProvisionedThroughput::Database(pool));
    assert_eq!(rates(&controller, &map), [None; 3]);
    controller.provide(container(3_000));
    assert_eq!(rates(&controller, &map), [Some(1_000.0); 3], "and then one of its own");
}

#[test]
fn a_scale_model_refills_slower() {
    let world = World::new(Limits::default().scaled(1_000));
    let controller = world.controller(container(18_000), &fresh(3));
    assert_eq!(rates(&controller, &fresh(3)), [Some(6.0); 3]);
}

#[test]
fn a_rejection_tells_when_to_come_back_and_is_counted() {
    let world = World::new(Limits::default());
    let controller = world.controller(container(400), &fresh(1));
    let throttle = || controller.throttle(PartitionId(0)).unwrap();
    throttle().admit(Caller::default()).unwrap().pay(None, Charge::from_units(21 * 500));
    let refusal = throttle().admit(Caller::default()).unwrap_err();
    assert_eq!(refusal.retry_after, Duration::from_millis(250));
    assert_eq!(throttle().meter().totals().throttled, 1);
    assert!((throttle().normalised() - 1.0).abs() < f64::EPSILON);
    world.clock.advance(Duration::from_secs(61));
    assert!(throttle().normalised().abs() < f64::EPSILON);
}
