//! Batches that a script cannot express: large ones.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::World;

const DOCS: &str = "/dbs/d/colls/c/docs";
const IS_BATCH: (&str, &str) = ("x-ms-cosmos-is-batch-request", "True");
const ATOMIC: (&str, &str) = ("x-ms-cosmos-batch-atomic", "True");
const CONTINUE: (&str, &str) = ("x-ms-cosmos-batch-continue-on-error", "True");
const KEY_A: (&str, &str) = ("x-ms-documentdb-partitionkey", "[\"a\"]");

/// Bytes that an answer may have.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A container with an item that fits into an answer twice.
fn world() -> World {
    let world = World::new();
    let container = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}});
    let item = json!({"id": "1", "pk": "a", "text": "x".repeat(1_500_000)});
    for (path, body) in [("/dbs", json!({"id": "d"})), ("/dbs/d/colls", container), (DOCS, item)] {
        let created = world.send(Method::POST, path, body.to_string(), &[]);
        assert_eq!(created.status(), StatusCode::CREATED);
    }
    world
}

/// The outcomes of a batch in JSON, each as status and sub-status.
fn outcomes(world: &World, operations: &[Value], headers: &[(&str, &str)]) -> Vec<(u64, u64)> {
    let body = Value::from(operations.to_vec()).to_string();
    let answer = world.send(Method::POST, DOCS, body, headers);
    assert_eq!(answer.status(), StatusCode::MULTI_STATUS);
    assert!(answer.body().len() <= ANSWER_BYTES_MAX, "{} bytes", answer.body().len());
    let outcomes: Value = serde_json::from_slice(answer.body()).unwrap();
    let number = |outcome: &Value, name: &str| outcome[name].as_u64().unwrap_or_default();
    let of = |outcome: &Value| (number(outcome, "statusCode"), number(outcome, "subStatusCode"));
    outcomes.as_array().unwrap().iter().map(of).collect()
}

/// The operation that no longer fits is refused, and with it all others if they are atomic.
#[test]
fn a_batch_gives_back_no_more_than_an_answer_can_have() {
    let world = world();
    let before = world.dump();
    let read = json!({"operationType": "Read", "id": "1", "partitionKey": "[\"a\"]"});
    let create = json!({
        "operationType": "Create", "partitionKey": "[\"a\"]",
        "resourceBody": {"id": "2", "pk": "a"},
    });
    let operations = [&create, &read, &read, &read, &read].map(Value::clone);
    let together = outcomes(&world, &operations, &[IS_BATCH, ATOMIC, KEY_A]);
    assert_eq!(together, [(424, 0), (424, 0), (424, 0), (413, 3402), (424, 0)]);
    assert_eq!(world.dump(), before);

    let alone = outcomes(&world, &operations, &[IS_BATCH, CONTINUE]);
    assert_eq!(alone, [(201, 0), (200, 0), (200, 0), (413, 3402), (413, 3402)]);
}
