//! Stored procedures and triggers: transactions over one logical partition.

use serde_json::{Value, json as j};

use crate::world::{Answer, World};

/// The procedure of the articles' tenth sample, whose text they do not show.
const SET_LATEST_STATE: &str =
    include_str!("../../../../tests/conformance/scripts/SetLatestStateAcrossReadings.js");

/// Creates the document it is given, and reads the one of that id.
const CREATE_AND_READ: &str = "function (item, id) {
    __.createDocument(__.getSelfLink(), item, function (error) { if (error) throw error; });
    if (id) __.readDocument(__.getAltLink() + '/docs/' + id, function (error, read) {
        if (error) throw error;
        __.response.setBody(read.id);
    });
}";

const KEY: &str = "x-ms-documentdb-partitionkey";

fn procedure(world: &World, id: &str, text: &str) {
    world.post("/dbs/d/colls/c/sprocs", &[], &j!({"id": id, "body": text})).expect(201);
}

fn trigger(world: &World, id: &str, kind: &str, text: &str) {
    let body = j!({"id": id, "body": text, "triggerType": kind, "triggerOperation": "All"});
    world.post("/dbs/d/colls/c/triggers", &[], &body).expect(201);
}

fn execute(world: &World, id: &str, key: &Value, arguments: &Value) -> Answer {
    let key = j!([key]).to_string();
    world.post(&format!("/dbs/d/colls/c/sprocs/{id}"), &[(KEY, &key)], arguments)
}

#[test]
fn x3_a_procedure_cannot_span_logical_partitions() {
    let world = World::new();
    world.container("/city", 400).expect(201);
    procedure(&world, "create", CREATE_AND_READ);
    world.create_item(&j!({"id": "1", "city": "Redmond"})).expect(201);
    let other = j!([{"id": "2", "city": "Redmond"}]);
    let text = "Requests originating from scripts cannot reference partition keys other than";
    execute(&world, "create", &j!("Seattle"), &other).refused(400, text);
    world.read_item(&j!("Redmond"), "2").expect(404);
    // What it did in its own is undone when it reaches for another.
    let own = j!([{"id": "3", "city": "Seattle"}, "1"]);
    execute(&world, "create", &j!("Seattle"), &own).refused(400, "Resource Not Found");
    world.read_item(&j!("Seattle"), "3").expect(404);
    execute(&world, "create", &j!("Redmond"), &j!([{"id": "3", "city": "Redmond"}, "1"]))
        .expect(200);
}

#[test]
fn x3_nor_can_triggers_and_procedures_where_the_id_is_the_key() {
    let world = World::new();
    world.container("/id", 400).expect(201);
    procedure(&world, "create", CREATE_AND_READ);
    execute(&world, "create", &j!("1"), &j!([{"id": "1"}])).expect(200);
    execute(&world, "create", &j!("1"), &j!([{"id": "2"}])).expect(400);
    world.read_item(&j!("2"), "2").expect(404);
    let text = "function () { __.createDocument(__.getSelfLink(), { id: 'second' }); }";
    trigger(&world, "second", "Post", text);
    let headers = [(KEY, "[\"3\"]"), ("x-ms-documentdb-post-trigger-include", "second")];
    world.post("/dbs/d/colls/c/docs", &headers, &j!({"id": "3"})).expect(400);
    world.read_item(&j!("3"), "3").expect(404);
    world.read_item(&j!("second"), "second").expect(404);
}

/// Sample 10. Run to the letter it finds nothing: its key is that of no device.
#[test]
fn x5_a_procedure_is_executed_with_a_partition_key() {
    let world = World::new();
    world.container("/deviceId", 20_000).expect(201);
    procedure(&world, "SetLatestStateAcrossReadings", SET_LATEST_STATE);
    let reading = |id: &str, device: &str, metric: &str| {
        let item = j!({"id": id, "deviceId": device, "metricType": metric, "isLatest": true});
        world.create_item(&item).expect(201);
    };
    reading("XMS-001-FE24C", "XMS-0001", "Temperature");
    reading("XMS-001-FE24B", "XMS-0001", "Temperature");
    reading("XMS-001-FE24A", "XMS-0001", "Humidity");
    reading("XMS-001-FE24B", "XMS-0002", "Temperature");
    let run = |key: &Value| {
        let arguments = j!(["XMS-001-FE24C"]);
        execute(&world, "SetLatestStateAcrossReadings", key, &arguments).expect(200).json()
    };
    assert_eq!(run(&j!("XMS-001")), j!({"latest": null, "outdated": 0}));
    assert_eq!(run(&j!("XMS-0001")), j!({"latest": "XMS-001-FE24C", "outdated": 1}));
    let is_latest = |device: &str, id: &str| {
        world.read_item(&j!(device), id).expect(200).json()["isLatest"].clone()
    };
    assert_eq!(is_latest("XMS-0001", "XMS-001-FE24C"), true);
    assert_eq!(is_latest("XMS-0001", "XMS-001-FE24B"), false);
    assert_eq!(is_latest("XMS-0001", "XMS-001-FE24A"), true);
    assert_eq!(is_latest("XMS-0002", "XMS-001-FE24B"), true);
    let path = "/dbs/d/colls/c/sprocs/SetLatestStateAcrossReadings";
    world.post(path, &[], &j!(["XMS-001-FE24C"])).expect(400);
}

#[test]
fn x6_without_a_key_a_transaction_covers_all_data() {
    let world = World::with(&["--profile", "2016"]);
    world.create(&j!({"id": "c"}), 10_000).expect(201);
    procedure(&world, "create", CREATE_AND_READ);
    let docs = "/dbs/d/colls/c/docs";
    for (id, city) in [("1", "Seattle"), ("2", "Redmond")] {
        world.post(docs, &[], &j!({"id": id, "city": city})).expect(201);
    }
    let path = "/dbs/d/colls/c/sprocs/create";
    let arguments = j!([{"id": "3", "city": "Kent"}, "2"]);
    assert_eq!(world.post(path, &[], &arguments).expect(200).json(), "2");
    // All or nothing, whatever the city.
    world.post(path, &[], &j!([{"id": "4", "city": "Kent"}, "none"])).expect(400);
    world.get("/dbs/d/colls/c/docs/3", &[]).expect(200);
    world.get("/dbs/d/colls/c/docs/4", &[]).expect(404);
}

#[test]
fn a13_queries_scripts_consistency_and_access_work_on_one_container() {
    let world = World::new();
    world.container("/deviceId", 400).expect(201);
    procedure(&world, "create", CREATE_AND_READ);
    let reading = j!({"id": "1", "deviceId": "XMS-0001", "metricType": "Temperature"});
    let done = execute(&world, "create", &j!("XMS-0001"), &j!([reading])).expect(200);
    let key = (KEY, "[\"XMS-0001\"]");
    let query = ("x-ms-documentdb-isquery", "True");
    // In SQL, and as the provider of LINQ writes it.
    for text in [
        "SELECT VALUE r.id FROM r WHERE r.metricType = 'Temperature'",
        "SELECT VALUE root[\"id\"] FROM root WHERE ((root[\"metricType\"] = \"Temperature\") AND (root[\"deviceId\"] = \"XMS-0001\"))",
    ] {
        let answer = world.post("/dbs/d/colls/c/docs", &[key, query], &j!({"query": text}));
        assert_eq!(answer.expect(200).json()["Documents"], j!(["1"]));
    }
    // Consistency: a weaker level for one request, and a session.
    for level in ["Session", "Eventual"] {
        let path = "/dbs/d/colls/c/docs/1";
        world.get(path, &[key, ("x-ms-consistency-level", level)]).expect(200);
        let token = done.header("x-ms-session-token");
        world.get(path, &[key, ("x-ms-session-token", token)]).expect(200);
    }
    // Access: a user with one device of this container.
    world.post("/dbs/d/users", &[], &j!({"id": "u"})).expect(201);
    let permission = j!({"id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c", "resourcePartitionKey": ["XMS-0001"]});
    let permission = world.post("/dbs/d/users/u/permissions", &[], &permission).expect(201).json();
    let token = permission["_token"].as_str().expect("a token");
    let read = |key: &str, token: &str| {
        world.get_as(token, "/dbs/d/colls/c/docs/1", &[(KEY, key)]).status()
    };
    assert_eq!((read("[\"XMS-0001\"]", token), read("[\"XMS-0002\"]", token)), (200, 403));
}
