//! What the statistics show of logical and physical partitions.

use serde_json::json as j;

use crate::physical;
use crate::world::World;

/// Logical partitions that the statistics of `c` know.
fn listed_keys(world: &World) -> usize {
    let headers = [
        ("x-ms-documentdb-populatepartitionstatistics", "true"),
        ("x-ms-cosmos-internal-get-all-partition-key-stats", "true"),
    ];
    let container = world.get("/dbs/d/colls/c", &headers).expect(200).json();
    let partitions = container["statistics"].as_array().expect("statistics are a list");
    let keys = |one: &serde_json::Value| one["partitionKeys"].as_array().map_or(0, Vec::len);
    partitions.iter().map(keys).sum()
}

#[test]
fn l2_a_thousand_users_are_a_thousand_logical_partitions() {
    let world = World::with(&["--throttle", "never"]);
    world.container("/UserID", 18_000).expect(201);
    for user in 0..1_000 {
        world.create_item(&j!({"id": "1", "UserID": format!("user {user}")})).expect(201);
    }
    world.create_item(&j!({"id": "2", "UserID": "user 7"})).expect(201);
    assert_eq!(listed_keys(&world), 1_000);
}

#[test]
fn l7_l8_logical_partitions_come_and_go_with_their_items() {
    let world = World::new();
    world.container("/city", 400).expect(201);
    world.create_item(&j!({"id": "1", "city": "Seattle"})).expect(201);
    assert_eq!(listed_keys(&world), 1);
    world.delete_item(&j!("Seattle"), "1").expect(204);
    assert_eq!(listed_keys(&world), 0);
    world.create_item(&j!({"id": "1", "city": "Seattle"})).expect(201);
    assert_eq!(listed_keys(&world), 1);
}

#[test]
fn l13_three_airports_are_three_logical_partitions() {
    let world = World::new();
    world.container("/airport", 400).expect(201);
    for airport in ["LAX", "AMS", "MEL"] {
        world.create_item(&j!({"id": "1", "airport": airport})).expect(201);
    }
    assert_eq!(listed_keys(&world), 3);
}

#[test]
fn p23_metrics_name_ranges_as_clients_do() {
    let world = World::new();
    world.container("/k", 18_000).expect(201);
    let ids: Vec<String> = world.ranges().into_iter().map(|range| range.id).collect();
    let named: Vec<String> = physical::partitions(&world)
        .iter()
        .map(|one| one["id"].as_str().expect("an id").to_owned())
        .collect();
    assert_eq!(named, ids);
    let metrics = world.operate("GET", "/_orrery/metrics", &serde_json::Value::Null).expect(200);
    for id in ids {
        let named = format!("range=\"{id}\"");
        assert!(metrics.body().contains(&named), "{named}");
    }
}
