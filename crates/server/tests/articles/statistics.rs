//! What the statistics show of logical and physical partitions.

use serde_json::json as j;

use crate::physical;
use crate::world::{World, eventually, key};

/// Keys of the row that says that there is no bound, and creates in one request.
const KEYS: u32 = 10_000;
const OPERATIONS: u32 = 100;

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

/// As many keys as a test has time for; `cargo xtask bench scale` asks a million. What
/// a request costs is the same for the last of them as for the first.
#[test]
fn l9_keys_without_number() {
    let world = World::with(&["--throttle", "never"]);
    world.container("/k", 400).expect(201);
    let first = world.create_item(&j!({"id": "1", "k": "key 0"})).expect(201);
    let headers = [
        ("x-ms-documentdb-partitionkeyrangeid", "0"),
        ("x-ms-cosmos-is-batch-request", "True"),
        ("x-ms-cosmos-batch-atomic", "False"),
        ("x-ms-cosmos-batch-continue-on-error", "True"),
    ];
    for request in 0..KEYS / OPERATIONS {
        let create = |key: u32| {
            let (key, item) = (format!("key {key}"), j!({"id": "1", "k": format!("key {key}")}));
            j!({"operationType": "Create", "partitionKey": j!([key]).to_string(), "resourceBody": item})
        };
        let keys = 1 + request * OPERATIONS..=(request + 1) * OPERATIONS;
        let answer = world.post("/dbs/d/colls/c/docs", &headers, &keys.map(create).collect());
        let results = answer.expect(200).json();
        let created = |one: &serde_json::Value| one["statusCode"] == 201;
        assert!(results.as_array().expect("a list").iter().all(created), "{results}");
    }
    let last = world.create_item(&j!({"id": "1", "k": "the last"})).expect(201);
    assert_eq!(first.charge().to_bits(), last.charge().to_bits());
    let read = |key: &str| world.read_item(&j!(key), "1").expect(200).charge().to_bits();
    assert_eq!(read("key 0"), read("the last"));
    let path = "/_orrery/partitions?container=dbs/d/colls/c&keys=1";
    let shown = world.operate("GET", path, &serde_json::Value::Null).expect(200).json();
    assert_eq!(shown["partitions"][0]["distinctKeys"], 2 + KEYS);
    assert_eq!(shown["partitions"][0]["distinctKeysAreAll"], true);
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

/// These items are not deleted: they expire.
#[test]
fn l8_logical_partitions_go_when_their_items_expire() {
    let world = World::new();
    let definition = j!({"id": "c", "partitionKey": key("/city"), "defaultTtl": 1});
    world.create(&definition, 400).expect(201);
    world.create_item(&j!({"id": "1", "city": "Seattle"})).expect(201);
    world.create_item(&j!({"id": "1", "city": "London", "ttl": -1})).expect(201);
    let stored = || physical::partitions(&world)[0]["documentCount"].as_u64().expect("a count");
    eventually("what has expired is removed", || (stored() == 1).then_some(()));
    assert_eq!(listed_keys(&world), 1);
    world.read_item(&j!("Seattle"), "1").expect(404);
    world.read_item(&j!("London"), "1").expect(200);
    world.create_item(&j!({"id": "1", "city": "Seattle"})).expect(201);
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
