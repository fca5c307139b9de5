//! Kinds of containers, of 2016, of 2018 and of today.

use serde_json::json as j;

use crate::world::{World, eventually, key};

#[test]
fn k1_a_single_partition_collection_needs_no_key() {
    let world = World::with(&["--profile", "2016"]);
    world.create(&j!({"id": "c"}), 10_000).expect(201);
    assert_eq!(world.ranges().len(), 1);
    let docs = "/dbs/d/colls/c/docs";
    world.post(docs, &[], &j!({"id": "1", "any": 1})).expect(201);
    world.post(docs, &[], &j!({"id": "1", "any": 2})).expect(409);
    world.get("/dbs/d/colls/c/docs/1", &[]).expect(200);
}

#[test]
fn k1_k4_without_a_key_throughput_ends_at_ten_thousand() {
    let world = World::with(&["--profile", "2016"]);
    world
        .create(&j!({"id": "c"}), 10_100)
        .refused(400, "between 400 and 10000 inclusive in increments of 100");
}

#[test]
fn k2_k3_a_partitioned_collection_begins_above_ten_thousand() {
    let world = World::with(&["--profile", "2016"]);
    world.create(&j!({"id": "c", "partitionKey": key("/k")}), 10_100).expect(201);
    assert!(world.ranges().len() > 1);
    let small = World::with(&["--profile", "2016"]);
    small.create(&j!({"id": "c", "partitionKey": key("/k")}), 10_000).expect(201);
    assert_eq!(small.ranges().len(), 1);
}

#[test]
fn k4_k6_p24_a_fixed_container_never_splits() {
    let world = World::with(&["--profile", "2018"]);
    world.create(&j!({"id": "c"}), 400).expect(201);
    world.set_throughput(10_000).expect(200);
    assert_eq!(world.ranges().len(), 1);
    world.set_throughput(20_000).expect(400);
    let split = j!({"container": "dbs/d/colls/c", "range": "0"});
    let refused = world.operate("POST", "/_orrery/split", &split);
    assert!((400..500).contains(&refused.status()), "{refused:?}");
    assert_eq!(world.ranges().len(), 1);
}

/// Of 2018: with a key, but too small at its creation to grow.
#[test]
fn k4_k6_p24_a_fixed_container_ends_at_ten_gigabytes() {
    let world = World::with(&["--profile", "2018", "--scale", "1000000", "--throttle", "never"]);
    world.create(&j!({"id": "c", "partitionKey": key("/k")}), 400).expect(201);
    let item = |at: usize| j!({"id": "1", "k": at.to_string(), "fill": "x".repeat(2000)});
    let full = (0..100).find(|at| world.create_item(&item(*at)).status() != 201);
    let at = full.expect("the container becomes full");
    assert!(at > 1, "full after {at} items");
    let refused = world.create_item(&item(at)).refused(403, "its maximum size of 10 GB");
    assert_eq!(refused.header("x-ms-substatus"), "1005");
    assert_eq!(refused.header("x-ms-request-charge"), "1.2380952380952381", "26/21 RU");
    assert_eq!(world.ranges().len(), 1, "it never splits");
    world.read_item(&j!("0"), "1").expect(200);
    world.delete_item(&j!("0"), "1").expect(204);
    world.create_item(&item(at)).expect(201);
}

#[test]
fn k5_an_unlimited_container_has_a_key_and_a_thousand() {
    let world = World::with(&["--profile", "2018"]);
    world.create(&j!({"id": "c", "partitionKey": key("/k")}), 1_000).expect(201);
    world.set_throughput(20_000).expect(200);
    eventually("a split", || (world.ranges().len() == 2).then_some(()));
}

#[test]
fn k7_a_migrated_container_has_the_system_key() {
    let world = World::new();
    let system = j!({"paths": ["/_partitionKey"], "kind": "Hash", "version": 2, "systemKey": true});
    world.create(&j!({"id": "c", "partitionKey": system}), 400).expect(201);
    let definition = world.get("/dbs/d/colls/c", &[]).expect(200).json();
    assert_eq!(definition["partitionKey"], system);
    // What was there before has no key, and stays where it is.
    let none = [("x-ms-documentdb-partitionkey", "[]")];
    world.post("/dbs/d/colls/c/docs", &none, &j!({"id": "1"})).expect(201);
    world.get("/dbs/d/colls/c/docs/1", &none).expect(200);
    // What comes now may have one.
    world.create_item(&j!({"id": "1", "_partitionKey": "a"})).expect(201);
    world.read_item(&j!("a"), "1").expect(200);
}
