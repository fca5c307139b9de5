//! A clock that is set ahead: what ends by itself ends, and the folder says so from then on.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value, json};
use wire_cosmos::EMULATOR_KEY;

use crate::client::{
    READ_ACCOUNT, Reply, Signed, connect, create_database, read_database, send, send_signed,
};
use crate::program::{Program, command, folder, run, text};

const MONTH_SECS: u64 = 30 * 24 * 3_600;
const KEY: &str = "x-ms-documentdb-partitionkey: [\"a\"]\r\n";

fn start(folder: &Path, data: &Path, more: &[&str]) -> Program {
    let data = data.display().to_string();
    Program::start(folder, &[&["--data", &data], more].concat())
}

fn create(stream: &mut TcpStream, path: &str, link: &str, headers: &str, body: &str) -> Reply {
    let kind = path.rsplit('/').next().unwrap();
    send_signed(stream, EMULATOR_KEY, Signed { method: "POST", path, kind, link }, headers, body)
}

fn read_item(stream: &mut TcpStream) -> Reply {
    let (path, link) = ("/dbs/d/colls/c/docs/1", "dbs/d/colls/c/docs/1");
    let request = Signed { method: "GET", path, kind: "docs", link };
    send_signed(stream, EMULATOR_KEY, request, KEY, "")
}

fn clock(stream: &mut TcpStream, advance: Option<u64>) -> Value {
    let bearer = format!("authorization: Bearer {EMULATOR_KEY}\r\n");
    let (method, body) = match advance {
        None => ("GET", String::new()),
        Some(seconds) => ("POST", json!({ "advanceSeconds": seconds }).to_string()),
    };
    let reply = send(stream, method, "/_orrery/clock", &bearer, &body);
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()
}

/// A database with a container whose items live for a day, and one item.
fn furnish(stream: &mut TcpStream) {
    assert_eq!(create_database(stream, "d").status, 201);
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":86400}"#;
    assert_eq!(create(stream, "/dbs/d/colls", "dbs/d", "", container).status, 201);
    let item = r#"{"id":"1","pk":"a"}"#;
    assert_eq!(create(stream, "/dbs/d/colls/c/docs", "dbs/d/colls/c", KEY, item).status, 201);
    assert_eq!(create(stream, "/dbs/d/users", "dbs/d", "", r#"{"id":"u"}"#).status, 201);
}

/// The token of a permission to read the container.
fn token(stream: &mut TcpStream) -> String {
    let permission = r#"{"id":"p","permissionMode":"Read","resource":"dbs/d/colls/c"}"#;
    let path = "/dbs/d/users/u/permissions";
    let created = create(stream, path, "dbs/d/users/u", "", permission);
    assert_eq!(created.status, 201, "{}", created.body);
    let token = created.json()["_token"].as_str().unwrap().to_owned();
    format!("authorization: {}\r\n", token.replace('=', "%3d").replace('&', "%26"))
}

#[test]
fn a_month_passes_in_a_second() {
    let (folder, data) = folder();
    let program = start(folder.path(), &data, &["--virtual-clock"]);
    assert_eq!(program.ready["virtualClock"], true);
    let mut stream = connect(program.address());
    furnish(&mut stream);
    let token = token(&mut stream);
    let read_container =
        |stream: &mut TcpStream| send(stream, "GET", "/dbs/d/colls/c", &token, "").status;
    assert_eq!((read_item(&mut stream).status, read_container(&mut stream)), (200, 200));

    let before = clock(&mut stream, None);
    let after = clock(&mut stream, Some(MONTH_SECS));
    assert_eq!(after["aheadSeconds"], MONTH_SECS);
    let passed = after["unixMs"].as_u64().unwrap() - before["unixMs"].as_u64().unwrap();
    assert!(passed >= MONTH_SECS * 1_000);
    // The item has expired, and so has the token; clients keep their own time.
    assert_eq!((read_item(&mut stream).status, read_container(&mut stream)), (404, 403));
    assert_eq!(send_signed(&mut stream, EMULATOR_KEY, READ_ACCOUNT, "", "").status, 200);
    let item = r#"{"id":"1","pk":"a"}"#;
    let created = create(&mut stream, "/dbs/d/colls/c/docs", "dbs/d/colls/c", KEY, item);
    assert_eq!(created.status, 201, "{}", created.body);
    let seconds = created.json()["_ts"].as_u64().unwrap();
    assert!(seconds * 1_000 >= before["unixMs"].as_u64().unwrap() + (MONTH_SECS - 1) * 1_000);
}

#[test]
fn a_folder_that_has_seen_virtual_time_is_not_served_without_it() {
    let (folder, data) = folder();
    let place = data.display().to_string();
    let program = start(folder.path(), &data, &["--virtual-clock"]);
    furnish(&mut connect(program.address()));
    program.kill();
    // It was served with the flag, but its time is still the machine's.
    let program = start(folder.path(), &data, &[]);
    assert_eq!(program.ready["virtualClock"], false);
    program.kill();
    let program = start(folder.path(), &data, &["--virtual-clock"]);
    clock(&mut connect(program.address()), Some(3_600));
    program.kill();

    let refused = run(command(folder.path()).args(["--listen", "127.0.0.1:0", "--data", &place]));
    assert!(!refused.status.success());
    let errors = text(&refused.stderr);
    assert!(errors.contains("3600 seconds ahead: serve it with --virtual-clock"), "{errors}");
    let program = start(folder.path(), &data, &["--virtual-clock"]);
    let mut stream = connect(program.address());
    assert_eq!(clock(&mut stream, None)["aheadSeconds"], 3_600);
    assert_eq!(create_database(&mut stream, "later").status, 201);
    program.kill();

    // A restored copy has seen the same time.
    for arguments in [["backup", "copy", "--data", &place], ["restore", "copy", "--data", "again"]]
    {
        let done = run(command(folder.path()).args(arguments));
        assert!(done.status.success(), "{}", text(&done.stderr));
    }
    let refused = run(command(folder.path()).args(["--listen", "127.0.0.1:0", "--data", "again"]));
    assert!(text(&refused.stderr).contains("3600 seconds ahead"), "{}", text(&refused.stderr));

    let checked = run(command(folder.path()).args(["check", "--data", &place]));
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    assert!(text(&checked.stdout).contains("note: written under a virtual clock"));
    let reset = run(command(folder.path()).args(["check", "--reset-time", "--data", &place]));
    assert!(reset.status.success(), "{}", text(&reset.stderr));
    assert!(!text(&reset.stdout).contains("virtual clock"), "{}", text(&reset.stdout));
    let program = start(folder.path(), &data, &[]);
    let mut stream = connect(program.address());
    assert_eq!(create_database(&mut stream, "e").status, 201);
    assert_eq!(read_database(&mut stream, "later").status, 200);
}

#[test]
fn a_used_up_budget_is_full_again() {
    let (folder, data) = folder();
    let scaled = ["--virtual-clock", "--throttle", "always", "--scale", "1000"];
    let program = start(folder.path(), &data, &scaled);
    let mut stream = connect(program.address());
    furnish(&mut stream);
    let throttled = (0..1_000).find(|_| read_item(&mut stream).status == 429);
    assert!(throttled.is_some(), "a thousandth of the throughput is never used up");
    assert_eq!(read_item(&mut stream).status, 429);
    clock(&mut stream, Some(3_600));
    assert_eq!(read_item(&mut stream).status, 200);
}
