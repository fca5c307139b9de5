//! Throughput: reserved for the container, divided over its ranges, paid by requests.

use std::collections::BTreeMap;

use runtime::{Clock as _, RealClock};
use serde_json::{Value, json as j};

use crate::world::{World, epk, eventually, key};

/// A model so slow that its limits are reached by any machine, however busy: a range of
/// 6,000 RU/s serves three creates a second.
const SCALE: f64 = 300.0;
const SMALL: [&str; 2] = ["--scale", "300"];

/// What a range has saved at most, in seconds of its throughput; it starts with as much.
const SAVED_SECS: f64 = 1.0;

/// How long a budget is drawn on, in seconds of its throughput.
const SPENT_SECS: f64 = 3.0;

/// Sums of fractions differ in their last digits.
const ROUNDED: f64 = 1e-6;

#[test]
fn t1_a1_throughput_is_reserved_at_creation() {
    let world = World::new();
    world.container("/k", 1_200).expect(201);
    assert_eq!(world.offer()["content"]["offerThroughput"], 1_200);
}

#[test]
fn t2_t3_every_answer_has_a_charge_and_a_small_read_costs_one() {
    let world = World::new();
    world.container("/k", 400).expect(201);
    let item = sized("1", 1024);
    assert!(world.create_item(&item).expect(201).charge() > 1.0);
    assert!((world.read_item(&j!("a"), "1").expect(200).charge() - 1.0).abs() < 1e-9);
    assert!(world.read_item(&j!("a"), "none").expect(404).charge() > 0.0);
    assert!(world.get("/dbs/d/colls/c", &[]).expect(200).charge() > 0.0);
}

/// An item of key `a` whose text has `bytes` bytes.
fn sized(id: &str, bytes: usize) -> Value {
    let item = |fill: usize| j!({"id": id, "k": "a", "fill": "x".repeat(fill)});
    item(bytes - item(0).to_string().len())
}

#[test]
fn t4_a_read_costs_the_same_whatever_else_is_stored() {
    let world = World::new();
    world.create(&j!({"id": "c", "partitionKey": key("/k")}), 10_000).expect(201);
    world.create_item(&sized("1", 1024)).expect(201);
    let before = world.read_item(&j!("a"), "1").expect(200).charge();
    for at in 0..500 {
        world.create_item(&j!({"id": at.to_string(), "k": at})).expect(201);
    }
    assert_eq!(world.read_item(&j!("a"), "1").expect(200).charge().to_bits(), before.to_bits());
}

#[test]
fn t5_larger_items_cost_more() {
    let world = World::with(&["--throttle", "never"]);
    world.container("/k", 400).expect(201);
    let charges = [1, 4, 16, 64].map(|kilobytes| {
        let id = kilobytes.to_string();
        let write = world.create_item(&sized(&id, kilobytes * 1024)).expect(201).charge();
        (write, world.read_item(&j!("a"), &id).expect(200).charge())
    });
    assert!(charges.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "{charges:?}");
}

/// What a client has got out of one range.
#[derive(Debug, Default)]
struct Range {
    spent: f64,
    /// What surely flowed in: the time from a refusal, when nothing is left, to the next
    /// request, as far as it can be saved. A slow client saves less for its range.
    flowed_secs: f64,
    refused_at: Option<f64>,
    refusals: u32,
}

/// Creates items of the keys of some ranges in turn, without waiting after refusals, until
/// each has spent the inflow of a few seconds. The total is always between what surely
/// flowed in and what can have, however long requests take.
fn spend(world: &World, keys: &[Vec<String>], rate: f64) {
    let (clock, rate) = (RealClock::new(), rate / SCALE);
    let now = || clock.monotonic().as_secs_f64();
    let (started, mut at) = (now(), 0_usize);
    let mut ranges: Vec<Range> = keys.iter().map(|_| Range::default()).collect();
    while ranges.iter().any(|range| range.refusals == 0 || range.spent < SPENT_SECS * rate) {
        for (range, keys) in ranges.iter_mut().zip(keys) {
            let item =
                j!({"id": at.to_string(), "k": keys[at % keys.len()], "fill": "x".repeat(1_000)});
            at += 1;
            if let Some(refused) = range.refused_at.take() {
                range.flowed_secs += (now() - refused).min(SAVED_SECS);
            }
            let answer = world.create_item(&item);
            if answer.status() == 429 {
                range.refusals += 1;
                range.refused_at = Some(now());
                let least = range.flowed_secs * rate - ROUNDED;
                assert!(range.spent >= least, "refused below its share {rate}: {range:?}");
            } else {
                let charge = answer.expect(201).charge();
                range.spent += charge;
                let most = (now() - started + SAVED_SECS) * rate + charge;
                assert!(range.spent <= most + ROUNDED, "more than its share {rate}: {range:?}");
            }
        }
    }
}

/// `count` keys of each range of `c`, by its id.
fn keys_of_ranges(world: &World, count: usize) -> BTreeMap<String, Vec<String>> {
    let ranges = world.ranges();
    let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for at in 0.. {
        let value = format!("key {at}");
        let position = epk(2, &j!(value));
        let owner = ranges.iter().find(|range| range.bounds.contains(&position));
        let of_range = keys.entry(owner.expect("an owner").id.clone()).or_default();
        if of_range.len() < count {
            of_range.push(value);
        }
        if keys.len() == ranges.len() && keys.values().all(|keys| keys.len() == count) {
            return keys;
        }
    }
    unreachable!("every range has keys")
}

#[test]
fn t6_t7_each_range_has_its_share_and_its_keys_have_it_together() {
    let world = World::with(&SMALL);
    world.container("/k", 18_000).expect(201);
    for keys in keys_of_ranges(&world, 2).into_values() {
        spend(&world, &[keys], 6_000.0);
    }
}

#[test]
fn t8_t9_p10_a_hot_key_is_throttled_while_others_are_served() {
    let world = World::with(&SMALL);
    world.container("/k", 18_000).expect(201);
    let keys: Vec<Vec<String>> = keys_of_ranges(&world, 1).into_values().collect();
    let (hot, others) = keys.split_first().expect("three ranges");
    spend(&world, std::slice::from_ref(hot), 6_000.0);
    let refusal = eventually("a refusal", || {
        let item = j!({"id": "one more", "k": hot[0], "fill": "x".repeat(1_000)});
        let answer = world.create_item(&item);
        (answer.status() == 429).then_some(answer)
    });
    let refusal = refusal.refused(429, "Request rate is large. More Request Units may be needed");
    assert_eq!(refusal.header("x-ms-substatus"), "3200");
    assert!(refusal.header("x-ms-retry-after-ms").parse::<u64>().expect("milliseconds") > 0);
    assert!((refusal.charge() - 8.0 / 21.0).abs() < 1e-9);
    for other in others {
        world.create_item(&j!({"id": "1", "k": other[0]})).expect(201);
    }
}

#[test]
fn t10_even_keys_reach_all_of_it() {
    let world = World::with(&SMALL);
    world.container("/k", 18_000).expect(201);
    let keys: Vec<Vec<String>> = keys_of_ranges(&world, 3).into_values().collect();
    assert_eq!(keys.len(), 3);
    spend(&world, &keys, 6_000.0);
}

#[test]
fn t11_throughput_changes_at_any_time() {
    let world = World::new();
    world.container("/k", 400).expect(201);
    for throughput in [1_000, 600, 5_000, 400] {
        world.set_throughput(throughput).expect(200);
        assert_eq!(world.offer()["content"]["offerThroughput"], throughput);
    }
}

#[test]
fn t12_a_million_units_a_second_and_no_bound_on_storage() {
    let world = World::new();
    world.container("/k", 1_000_000).expect(201);
    assert_eq!(world.ranges().len(), 167);
    world.create_item(&j!({"id": "1", "k": "a"})).expect(201);
}

#[test]
fn t13_throughput_comes_in_hundreds() {
    let world = World::new();
    world.container("/k", 450).refused(
        400,
        "The offer should have valid throughput values between 400 and 1000000 inclusive in increments of 100.",
    );
    world.container("/k", 400).expect(201);
    world.set_throughput(450).refused(400, "in increments of 100");
    assert_eq!(world.offer()["content"]["offerThroughput"], 400);
}

#[test]
fn t14_q3_a_container_for_each_month_has_its_own_throughput() {
    let world = World::new();
    for (id, throughput) in [("2026-10", 400), ("2026-11", 12_000)] {
        world.create(&j!({"id": id, "partitionKey": key("/device")}), throughput).expect(201);
    }
    let ranges = |id| {
        let feed = world.get(&format!("/dbs/d/colls/{id}/pkranges"), &[]).expect(200).json();
        feed["_count"].clone()
    };
    assert_eq!((ranges("2026-10"), ranges("2026-11")), (j!(1), j!(2)));
}
