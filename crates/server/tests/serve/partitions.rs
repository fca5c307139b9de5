//! Physical partitions by hand: the server's own paths, and their client.

use std::net::TcpStream;

use serde_json::{Value, json};
use wire_cosmos::EMULATOR_KEY;

use crate::client::{Reply, Signed, connect, create_database, send, send_signed};
use crate::program::{Program, command, run, text};

const CONTAINER: &str = "dbs/d/colls/c";

fn started() -> (Program, TcpStream) {
    let program = Program::in_memory();
    let mut stream = connect(program.address());
    assert_eq!(create_database(&mut stream, "d").status, 201);
    let create = Signed { method: "POST", path: "/dbs/d/colls", kind: "colls", link: "dbs/d" };
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    assert_eq!(send_signed(&mut stream, EMULATOR_KEY, create, "", body).status, 201);
    (program, stream)
}

fn order(stream: &mut TcpStream, path: &str, body: &Value) -> Reply {
    let bearer = format!("authorization: Bearer {EMULATOR_KEY}\r\n");
    send(stream, "POST", path, &bearer, &body.to_string())
}

fn split(stream: &mut TcpStream, range: &str) -> Reply {
    order(stream, "/_orrery/split", &json!({ "container": CONTAINER, "range": range }))
}

/// `pkranges` as a client with these headers gets it.
fn ranges(stream: &mut TcpStream, headers: &str) -> Reply {
    let path = "/dbs/d/colls/c/pkranges";
    let read = Signed { method: "GET", path, kind: "pkranges", link: CONTAINER };
    send_signed(stream, EMULATOR_KEY, read, headers, "")
}

fn list(stream: &mut TcpStream, range: &str) -> Reply {
    let path = "/dbs/d/colls/c/docs";
    let read = Signed { method: "GET", path, kind: "docs", link: CONTAINER };
    let headers = format!("{AWARE}x-ms-documentdb-partitionkeyrangeid: {range}\r\n");
    send_signed(stream, EMULATOR_KEY, read, &headers, "")
}

const AWARE: &str = "x-ms-cosmos-sdk-supportedcapabilities: 1\r\n";

#[test]
fn a_split_and_a_merge_answer_with_old_and_new_ranges() {
    let (_program, mut stream) = started();
    let done = split(&mut stream, "0").json();
    assert_eq!((&done["container"], &done["old"]), (&json!(CONTAINER), &json!(["0"])));
    let new: Vec<(&Value, &Value)> =
        done["new"].as_array().unwrap().iter().map(|one| (&one["id"], &one["parents"])).collect();
    assert_eq!(new, [(&json!("1"), &json!(["0"])), (&json!("2"), &json!(["0"]))]);
    assert_eq!(done["new"][0]["maxExclusive"], "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
    assert!(done["pauseMs"].as_f64().unwrap() > 0.0);

    assert_eq!(list(&mut stream, "1").status, 200);
    let gone = list(&mut stream, "0");
    assert_eq!((gone.status, gone.header("x-ms-substatus")), (410, Some("1002")));
    assert!(gone.body.contains("PartitionKeyRange with id '0' in collection"), "{}", gone.body);

    let merge = json!({ "container": CONTAINER, "ranges": ["2", "1"] });
    let done = order(&mut stream, "/_orrery/merge", &merge).json();
    assert_eq!((&done["old"], &done["new"][0]["id"]), (&json!(["2", "1"]), &json!("3")));
    assert_eq!(done["new"][0]["parents"], json!(["0", "1", "2"]));
}

#[test]
fn what_cannot_be_done_is_said_with_what_helps() {
    let (_program, mut stream) = started();
    let wrong = [
        (json!({ "container": CONTAINER, "range": "7" }), 400, "the ranges of dbs/d/colls/c are 0"),
        (json!({ "container": CONTAINER, "range": "x" }), 400, "'x' is not a range id"),
        (json!({ "container": "dbs/d", "range": "0" }), 400, "is not the link of a container"),
        (json!({ "container": "d/c", "range": "0" }), 400, "dbs/DATABASE/colls/CONTAINER"),
        (json!({ "container": "dbs/d/colls/x", "range": "0" }), 404, "does not exist"),
        (json!({ "container": CONTAINER }), 400, r#"\"range\":\"0\""#),
        (json!({ "container": CONTAINER, "range": "0", "at": "1F" }), 400, "unknown field"),
        (
            json!({ "container": CONTAINER, "range": "0", "halve": "bytes" }),
            400,
            "nothing to divide",
        ),
    ];
    for (body, status, message) in wrong {
        let reply = order(&mut stream, "/_orrery/split", &body);
        assert!(reply.status == status && reply.body.contains(message), "{body}: {}", reply.body);
    }
    let merge = |stream: &mut TcpStream, ranges: &[&str]| {
        order(stream, "/_orrery/merge", &json!({ "container": CONTAINER, "ranges": ranges }))
    };
    assert!(merge(&mut stream, &["0"]).body.contains("two ranges or more"));
    split(&mut stream, "0");
    split(&mut stream, "1");
    let reply = merge(&mut stream, &["3", "2"]);
    assert!(reply.status == 400 && reply.body.contains("follow each other"), "{}", reply.body);
    let bearer = format!("authorization: Bearer {EMULATOR_KEY}\r\n");
    assert_eq!(send(&mut stream, "GET", "/_orrery/split", &bearer, "").status, 405);
    assert_eq!(send(&mut stream, "POST", "/_orrery/split", "", "{}").status, 401);
}

/// A client that cannot follow merges is refused where it would have to.
#[test]
fn a_merged_container_asks_for_the_capability() {
    let (_program, mut stream) = started();
    split(&mut stream, "0");
    assert_eq!(ranges(&mut stream, "").status, 200, "splits can be followed by all");
    order(&mut stream, "/_orrery/merge", &json!({ "container": CONTAINER, "ranges": ["1", "2"] }));
    for headers in ["", "x-ms-cosmos-sdk-supportedcapabilities: 2\r\n"] {
        let refused = ranges(&mut stream, headers);
        assert!(refused.status == 400 && refused.body.contains("merged"), "{}", refused.body);
    }
    for headers in [AWARE, "x-ms-cosmos-sdk-supportedcapabilities: 11\r\n"] {
        assert_eq!(ranges(&mut stream, headers).status, 200, "{headers}");
    }
    let create =
        Signed { method: "POST", path: "/dbs/d/colls/c/docs", kind: "docs", link: CONTAINER };
    let key = "x-ms-documentdb-partitionkey: [\"a\"]\r\n";
    let reply = send_signed(&mut stream, EMULATOR_KEY, create, key, r#"{"id":"1","pk":"a"}"#);
    assert_eq!(reply.status, 201, "by key it need not know");
    let read = Signed { method: "GET", path: "/dbs/d/colls/c", kind: "colls", link: CONTAINER };
    let usage = "x-ms-documentdb-populatequotainfo: true\r\n";
    let reply = send_signed(&mut stream, EMULATOR_KEY, read, usage, "");
    assert_eq!(reply.status, 200, "nor for what all of them hold: {}", reply.body);
}

#[test]
fn the_command_line_is_a_client_of_these_paths() {
    let (program, _stream) = started();
    let server = program.address().to_string();
    let partitions = |arguments: &[&str]| {
        let mut command = command(&std::env::temp_dir());
        run(command.arg("partitions").args(arguments).args(["--server", &server]))
    };
    let done = partitions(&["split", CONTAINER, "0"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(text(&done.stdout).starts_with("0 became the following"), "{}", text(&done.stdout));
    let listed = partitions(&["list", CONTAINER, "--json"]);
    let listed: Value = serde_json::from_str(&text(&listed.stdout)).unwrap();
    assert_eq!(listed["partitions"].as_array().unwrap().len(), 2);
    assert!(partitions(&["merge", CONTAINER, "1", "2"]).status.success());
    assert!(text(&partitions(&["list", CONTAINER]).stdout).contains("from 0, 1, 2"));
    let refused = partitions(&["split", CONTAINER, "0"]);
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("the ranges of dbs/d/colls/c are 3"));
}
