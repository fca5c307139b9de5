//! Data folders of other versions: those of the versions before are carried over, whenever
//! that is interrupted, and all others are refused and left as they are.
//!
//! The folders are fixtures, made by the versions themselves (`fixtures/README.md`), with
//! what those answered to a list of requests.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "serve/client.rs"]
mod client;
#[path = "upgrade/fixture.rs"]
mod fixture;
#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "serve/program.rs"]
mod program;
#[path = "upgrade/refusals.rs"]
mod refusals;

use std::net::TcpStream;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use bytes::Bytes;
use runtime::{Clock as _, RealClock};
use serde_json::{Value, json};
use storage::{Direction, KeyRange, ScanLimit};
use wire_cosmos::EMULATOR_KEY;

use client::{Reply, Signed, connect, send_signed};
use fixture::{Fixture, replay, unpack};
use program::{Program, command, run, text};

/// More than any fixture has steps.
const STEPS_MAX: u64 = 200;

fn orrery(folder: &Path, arguments: &[&str]) -> Output {
    run(command(folder).args(arguments))
}

fn upgrade(folder: &Path) -> Output {
    orrery(folder, &["upgrade", "data"])
}

fn said(output: &Output) -> String {
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

fn assert_checked(folder: &Path) {
    let checked = orrery(folder, &["check", "--data", "data"]);
    assert!(checked.status.success(), "{}", said(&checked));
}

/// All that a store of the present version holds.
fn rows(folder: &Path) -> Vec<(Bytes, Bytes)> {
    let store = folder.join("data/store");
    let store = storage::local::open_read_only(&store, service::upgrade::CONTENTS).unwrap();
    let limit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
    store.view().unwrap().scan(&KeyRange::all(), Direction::Forward, limit).unwrap().rows
}

fn create(stream: &mut TcpStream, container: &str, key: &str, item: &Value) -> Reply {
    let link = format!("dbs/shop/colls/{container}");
    let path = format!("/{link}/docs");
    let signed = Signed { method: "POST", path: &path, kind: "docs", link: &link };
    let headers = format!("x-ms-documentdb-partitionkey: [\"{key}\"]\r\n");
    send_signed(stream, EMULATOR_KEY, signed, &headers, &item.to_string())
}

fn read(stream: &mut TcpStream, container: &str, key: &str, id: &str) -> Reply {
    let link = format!("dbs/shop/colls/{container}/docs/{id}");
    let path = format!("/{link}");
    let signed = Signed { method: "GET", path: &path, kind: "docs", link: &link };
    let headers = format!("x-ms-documentdb-partitionkey: [\"{key}\"]\r\n");
    send_signed(stream, EMULATOR_KEY, signed, &headers, "")
}

/// The ids of a key's items, in the order in which a query without one returns them.
fn ids(stream: &mut TcpStream, container: &str, key: &str) -> Vec<String> {
    let link = format!("dbs/shop/colls/{container}");
    let path = format!("/{link}/docs");
    let signed = Signed { method: "POST", path: &path, kind: "docs", link: &link };
    let headers = format!(
        "x-ms-documentdb-partitionkey: [\"{key}\"]\r\nx-ms-documentdb-isquery: true\r\n\
         content-type: application/query+json\r\n"
    );
    let body = r#"{"query":"SELECT VALUE c.id FROM c"}"#;
    let answer = send_signed(stream, EMULATOR_KEY, signed, &headers, body).json();
    let found = answer["Documents"].as_array().unwrap().iter();
    found.map(|id| id.as_str().unwrap().to_owned()).collect()
}

/// What was carried over goes on living: it is in the way of equal unique values, expires,
/// and comes before what is new.
fn assert_alive(stream: &mut TcpStream) {
    let taken = json!({ "id": "new", "pk": "one", "mail": "3@x", "first": "b", "last": "z" });
    assert_eq!(create(stream, "unique", "one", &taken).status, 409);
    let free = json!({ "id": "new", "pk": "one", "mail": "new@x", "first": "b", "last": "z" });
    assert_eq!(create(stream, "unique", "one", &free).status, 201);
    assert_eq!(read(stream, "fading", "one", "stays").status, 200);
    assert_eq!(read(stream, "fading", "one", "gone").status, 404);
    let short = json!({ "id": "short", "pk": "one", "ttl": 1 });
    assert_eq!(create(stream, "expiring", "one", &short).status, 201);
    let clock = RealClock::new();
    while read(stream, "expiring", "one", "short").status != 404 {
        clock.sleep(Duration::from_millis(100));
    }
    let before = ids(stream, "plain", "key-1");
    let item = json!({ "id": "a first name", "pk": "key-1", "n": 1_000 });
    assert_eq!(create(stream, "plain", "key-1", &item).status, 201);
    let mut after = ids(stream, "plain", "key-1");
    assert_eq!(after.pop().as_deref(), Some("a first name"));
    assert_eq!(after, before);
}

fn serves_what_was_recorded(folder: &Path, fixture: Fixture) {
    assert_checked(folder);
    let server = Program::start(folder, &["--data", "data"]);
    let mut stream = connect(server.address());
    replay(&mut stream, fixture);
    assert_alive(&mut stream);
    drop(server);
    assert_checked(folder);
}

#[test]
fn a_folder_of_the_version_before_is_carried_over() {
    for fixture in Fixture::ALL {
        let (folder, version) = (unpack(fixture), fixture.version());
        let done = upgrade(folder.path());
        assert!(done.status.success(), "{}", said(&done));
        let closing = text(&done.stdout);
        assert!(closing.contains(&format!("contents version {version} is now 3")), "{closing}");
        let old = folder.path().join(format!("data/store.v{version}"));
        assert!(old.join("FORMAT").exists());
        serves_what_was_recorded(folder.path(), fixture);
        let again = upgrade(folder.path());
        assert!(text(&again.stdout).contains("nothing to do"), "{}", said(&again));
        let removed = orrery(folder.path(), &["upgrade", "data", "--remove-old"]);
        assert!(removed.status.success(), "{}", said(&removed));
        assert!(!old.exists());
    }
}

/// Ends the process after each step in turn, and then after every second one: the check is
/// a step of its own, which is repeated.
#[test]
fn an_upgrade_goes_on_wherever_it_ended() {
    let interrupted = |folder: &Path, steps: u64| {
        let mut command = command(folder);
        command.env("ORRERY_TEST_UPGRADE_STEPS_MAX", steps.to_string());
        // A process that ends like this leaves its copy of the journals there.
        command.env("TMPDIR", folder);
        !run(command.args(["upgrade", "data"])).status.success()
    };
    let reference = unpack(Fixture::V1Killed);
    assert!(upgrade(reference.path()).status.success());
    let expected = rows(reference.path());
    let mut steps = 1;
    loop {
        let folder = unpack(Fixture::V1Killed);
        let was_interrupted = interrupted(folder.path(), steps);
        let resumed = upgrade(folder.path());
        assert!(resumed.status.success(), "after step {steps}: {}", said(&resumed));
        assert!(rows(folder.path()) == expected, "after step {steps} other rows");
        assert!(folder.path().join("data/store.v1").exists(), "after step {steps}");
        if !was_interrupted {
            break;
        }
        steps += 1;
        assert!(steps < STEPS_MAX, "it does not end");
    }
    assert!(steps > 12, "only {steps} steps");
    let folder = unpack(Fixture::V1Killed);
    let mut times = 0;
    while interrupted(folder.path(), 2) {
        times += 1;
        assert!(times < STEPS_MAX, "it does not get on");
    }
    assert!(rows(folder.path()) == expected, "after {times} interruptions other rows");
}
