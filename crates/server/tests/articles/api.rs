//! The interface as the articles show it.

use serde_json::json as j;

use crate::world::World;

#[test]
fn a2_a12_the_key_travels_as_a_list() {
    let world = World::new();
    world.container("/deviceId", 400).expect(201);
    world.create_item(&j!({"id": "XMS-001-FE24C", "deviceId": "XMS-0001"})).expect(201);
    let path = "/dbs/d/colls/c/docs/XMS-001-FE24C";
    world.get(path, &[("x-ms-documentdb-partitionkey", "[\"XMS-0001\"]")]).expect(200);
    world.get(path, &[("x-ms-documentdb-partitionkey", "XMS-0001")]).expect(400);
}

#[test]
fn a4_old_versions_of_the_protocol_are_understood() {
    let world = World::new();
    world.container("/k", 400).expect(201);
    world.create_item(&j!({"id": "1", "k": "a"})).expect(201);
    for version in ["2015-12-16", "2016-07-11", "2018-12-31", "2020-07-15"] {
        let headers = [("x-ms-version", version), ("x-ms-documentdb-partitionkey", "[\"a\"]")];
        world.get("/dbs/d/colls/c/docs/1", &headers).expect(200);
    }
}

#[test]
fn a14_containers_are_made_by_requests_and_scaled_at_any_time() {
    let world = World::new();
    world.container("/k", 400).expect(201);
    world.set_throughput(1_000).expect(200);
    world.send("DELETE", "/dbs/d/colls/c", &[], "").expect(204);
    world.get("/dbs/d/colls/c", &[]).expect(404);
}

#[test]
fn x1_x2_a_batch_is_one_transaction_in_one_logical_partition() {
    let world = World::new();
    world.container("/k", 400).expect(201);
    let batch = |operations: &serde_json::Value| {
        let headers = [
            ("x-ms-documentdb-partitionkey", "[\"a\"]"),
            ("x-ms-cosmos-is-batch-request", "True"),
            ("x-ms-cosmos-batch-atomic", "True"),
            ("x-ms-cosmos-batch-continue-on-error", "False"),
        ];
        world.post("/dbs/d/colls/c/docs", &headers, operations)
    };
    let create =
        |id: &str, k: &str| j!({"operationType": "Create", "resourceBody": {"id": id, "k": k}});
    batch(&j!([create("1", "a"), create("2", "a")])).expect(200);
    // The second fails, so the first did not happen either.
    batch(&j!([create("3", "a"), create("1", "a")])).expect(207);
    world.read_item(&j!("a"), "3").expect(404);
    // Another key is not part of this transaction.
    let other = batch(&j!([create("4", "a"), create("5", "b")]));
    assert_ne!(other.status(), 200);
    world.read_item(&j!("a"), "4").expect(404);
    world.read_item(&j!("b"), "5").expect(404);
}
