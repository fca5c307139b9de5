//! Stored procedures beside each other.

use std::sync::Arc;

use model::json::Value;
use model::partition_key::PartitionKey;
use model::system_properties::SystemProperties;
use runtime::{Runtime, TaskHandle};
use service::{
    Approach, ExecuteProcedure, ItemQuery, Kind, ProcedureResult, Response, Scope, ServiceError,
    Throughput,
};

use crate::fixture::Fixture;

const CLIENTS: usize = 8;
const CALLS: usize = 10;

fn run(fixture: &Fixture, name: &str) -> Result<Response<ProcedureResult>, ServiceError> {
    let procedure = ExecuteProcedure {
        name: name.to_owned(),
        key: Some(PartitionKey::new(["x"])),
        arguments: "[]".into(),
        session: None,
        system: Arc::new(SystemProperties::indexed()),
    };
    fixture.within("c", procedure)
}

/// Each call reads a counter and writes it one higher: none of them is lost, whatever the
/// number that were refused because of the others.
#[test]
fn no_increment_of_many_clients_is_lost() {
    let fixture = Arc::new(Fixture::new());
    fixture.create_container("c", 2, Throughput::Manual(400));
    fixture.create_item("c", r#"{"id":"n","pk":"x","n":0}"#.to_owned()).unwrap();
    let text = "function () { var link = __.getAltLink() + '/docs/n'; \
                __.readDocument(link, function (e, d) { if (e) throw e; d.n++; \
                __.replaceDocument(link, d); __.response.setBody(d.n); }); }";
    let body = format!(r#"{{"id":"add","body":"{text}"}}"#);
    fixture.create("dbs/d/colls/c", Kind::StoredProcedure, &body).unwrap();
    let clients: Vec<TaskHandle> = (0..CLIENTS)
        .map(|_| {
            let fixture = Arc::clone(&fixture);
            let body = move || {
                let mut done = 0;
                while done < CALLS {
                    match run(&fixture, "add") {
                        Ok(_) => done += 1,
                        Err(error) => {
                            assert!(matches!(error, ServiceError::ScriptConflict), "{error}");
                        }
                    }
                }
            };
            Runtime::real().tasks.spawn("client", Box::new(body)).unwrap()
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let last = run(&fixture, "add").unwrap().reply.body;
    assert_eq!(last, Some((CLIENTS * CALLS + 1).to_string()));
}

const ITEMS: u64 = 300;

/// Calls of functions in a query cost something, and a query without any costs what it
/// costs without functions.
#[test]
fn calls_of_functions_are_charged() {
    let fixture = Fixture::new();
    fixture.create_container("c", 2, Throughput::Manual(400));
    for n in 0..ITEMS {
        fixture.create_item("c", format!(r#"{{"id":"{n}","pk":"x","n":{n}}}"#)).unwrap();
    }
    let charge = |text: &str| {
        let query = ItemQuery {
            source: text.into(),
            parameters: Value::Null,
            scope: Scope { key: Some(PartitionKey::new(["x"])), ..Scope::default() },
            across_partitions: false,
            merges: true,
            session: None,
            after: None,
            resume: None,
            items_max: 1_000,
            approach: Approach::Index,
            system: None,
            is_timed: true,
            names_indexes: false,
        };
        let Response { reply, meta } = fixture.within("c", query).unwrap();
        assert_eq!(reply.rows.len() as u64, ITEMS / 2);
        meta.charge.units()
    };
    let plain = "SELECT VALUE c.n FROM c WHERE c.n % 2 = 0";
    let before = charge(plain);
    let body = r#"{"id":"even","body":"function (n) { return n % 2 === 0; }"}"#;
    fixture.create("dbs/d/colls/c", Kind::UserDefinedFunction, body).unwrap();
    assert_eq!(charge(plain), before);
    // And a tick, which the engine begins with.
    assert_eq!(charge("SELECT VALUE c.n FROM c WHERE udf.even(c.n)"), before + ITEMS + 1);
}
