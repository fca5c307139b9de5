//! What operators see of throughput and partitions.

use serde_json::Value;
use wire_cosmos::EMULATOR_KEY;

use crate::client::{Reply, Signed, Stream, connect, create_database, send, send_signed};
use crate::program::Program;

const CONTAINER: &str = "dbs/d/colls/c";

fn start(arguments: &[&str]) -> Program {
    let arguments = [&["--in-memory"], arguments].concat();
    Program::start(&std::env::temp_dir(), &arguments)
}

fn create_container(stream: &mut impl Stream, headers: &str) {
    assert_eq!(create_database(stream, "d").status, 201);
    let what = Signed { method: "POST", path: "/dbs/d/colls", kind: "colls", link: "dbs/d" };
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#;
    assert_eq!(send_signed(stream, EMULATOR_KEY, what, headers, body).status, 201);
}

fn write(stream: &mut impl Stream, key: &str, id: u32, headers: &str) -> Reply {
    let what =
        Signed { method: "POST", path: "/dbs/d/colls/c/docs", kind: "docs", link: CONTAINER };
    let headers = format!("x-ms-documentdb-partitionkey: [\"{key}\"]\r\n{headers}");
    let body = format!(r#"{{"id":"{id}","pk":"{key}"}}"#);
    send_signed(stream, EMULATOR_KEY, what, &headers, &body)
}

fn ask(stream: &mut impl Stream, method: &str, path: &str, body: &str) -> Reply {
    let headers = format!("authorization: Bearer {EMULATOR_KEY}\r\n");
    send(stream, method, path, &headers, body)
}

fn sum(partitions: &Value, name: &str) -> f64 {
    let partitions = partitions["partitions"].as_array().expect("a list");
    partitions.iter().map(|partition| partition[name].as_f64().expect("a number")).sum()
}

#[test]
fn partitions_tell_what_they_hold_and_cost() {
    let program = start(&[]);
    let stream = &mut connect(program.address());
    create_container(stream, "x-ms-offer-throughput: 18000\r\n");
    let mut charged = 0.0;
    for (key, items) in [("many", 9), ("some", 4), ("one", 1)] {
        for id in 0..items {
            let reply = write(stream, key, id, "");
            charged += reply.header("x-ms-request-charge").unwrap().parse::<f64>().unwrap();
        }
    }
    let path = format!("/_orrery/partitions?container={CONTAINER}");
    let shown = ask(stream, "GET", &path, "").json();
    assert_eq!(shown["partitions"].as_array().unwrap().len(), 3);
    assert!((sum(&shown, "throughput") - 18_000.0).abs() < 1e-6);
    assert!((sum(&shown, "requestUnits") - charged).abs() < 1e-6, "{shown}");
    assert!((sum(&shown, "items") - 14.0).abs() < 1e-6 && sum(&shown, "throttledRequests") < 1e-6);
    assert!((sum(&shown, "distinctKeys") - 3.0).abs() < 1e-6);
    for (list, weight) in [
        ("topKeysByItems", "items"),
        ("topKeysBySize", "bytes"),
        ("topKeysByRequestUnits", "requestUnits"),
    ] {
        let partitions = shown["partitions"].as_array().unwrap().iter();
        let mut keys: Vec<&Value> =
            partitions.flat_map(|one| one[list].as_array().unwrap()).collect();
        keys.sort_by(|a, b| b[weight].as_f64().partial_cmp(&a[weight].as_f64()).unwrap());
        let names: Vec<&str> = keys.iter().map(|key| key["key"][0].as_str().unwrap()).collect();
        assert_eq!(names, ["many", "some", "one"], "{list}");
    }
    let few = ask(stream, "GET", &format!("{path}&keys=0"), "").json();
    assert!(sum(&few, "distinctKeys") < 1e-6, "keys were not requested");
    assert_eq!(ask(stream, "GET", &format!("{path}&keys=many"), "").status, 400);
    assert_eq!(ask(stream, "GET", "/_orrery/partitions", "").status, 400);
    assert_eq!(ask(stream, "POST", &path, "").status, 405);
}

#[test]
fn throughput_that_was_asked_for_is_enforced() {
    let program = start(&["--scale", "10000"]);
    let stream = &mut connect(program.address());
    create_container(stream, "x-ms-offer-throughput: 400\r\n");
    // In this model it takes two minutes to pay for a write.
    assert_eq!(write(stream, "k", 0, "").status, 201);
    let refused = write(stream, "k", 1, "");
    assert_eq!((refused.status, refused.header("x-ms-substatus")), (429, Some("3200")));
    assert_eq!(refused.header("x-ms-request-charge"), Some("0.38095238095238093"));
    let wait: u64 = refused.header("x-ms-retry-after-ms").unwrap().parse().unwrap();
    assert!((1_000..=130_000).contains(&wait), "{wait}");
    assert!(refused.body.contains("Request rate is large. More Request Units may be needed"));
    let metrics = ask(stream, "GET", "/_orrery/metrics", "");
    let labels = format!(r#"{{container="{CONTAINER}",range="0"}}"#);
    for line in [
        format!("orrery_throttled_requests_total{labels} 1\n"),
        format!("orrery_requests_total{labels} 1\n"),
        format!("orrery_provisioned_throughput{labels} 400.0\n"),
        format!("orrery_items{labels} 1\n"),
    ] {
        assert!(metrics.body.contains(&line), "{line}{}", metrics.body);
    }
    let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(metrics.header("content-type"), Some(format));
    assert!(metrics.body.ends_with("# EOF\n"));
}

#[test]
fn what_nobody_asked_for_is_metered_only() {
    let program = start(&["--scale", "100"]);
    let stream = &mut connect(program.address());
    create_container(stream, "");
    assert!((0..20).all(|id| write(stream, "k", id, "").status == 201));
    let metrics = ask(stream, "GET", "/_orrery/metrics", "").body;
    assert!(
        metrics.contains("orrery_requests_total{container=\"dbs/d/colls/c\",range=\"0\"} 20\n")
    );
    assert!(!metrics.contains("orrery_provisioned_throughput{"));
}

#[test]
fn priorities_and_buckets_are_checked_and_kept_to() {
    let program = start(&["--scale", "100"]);
    let stream = &mut connect(program.address());
    create_container(stream, "x-ms-offer-throughput: 18000\r\n");
    for (headers, status) in [
        ("x-ms-cosmos-priority-level: Low\r\n", 201),
        ("x-ms-cosmos-priority-level: urgent\r\n", 400),
        ("x-ms-cosmos-throughput-bucket: 1\r\n", 201),
        ("x-ms-cosmos-throughput-bucket: 0\r\n", 400),
        ("x-ms-cosmos-throughput-bucket: 6\r\n", 400),
    ] {
        assert_eq!(write(stream, headers.trim(), 1, headers).status, status, "{headers}");
    }
    let set = format!(
        r#"{{"container":"{CONTAINER}","buckets":[{{"id":2,"maxThroughputPercentage":1}}]}}"#
    );
    let shown = ask(stream, "POST", "/_orrery/throughput", &set);
    assert_eq!(shown.json()["buckets"][0]["id"], 2, "{}", shown.body);
    assert_eq!(ask(stream, "POST", "/_orrery/throughput", &set).status, 429, "not so often");
    // One percent of a partition's second is less than one write.
    let bucket = "x-ms-cosmos-throughput-bucket: 2\r\n";
    assert_eq!(write(stream, "k", 1, bucket).status, 201);
    let refused = write(stream, "k", 2, bucket);
    assert_eq!((refused.status, refused.header("x-ms-substatus")), (429, Some("3212")));
    assert_eq!(write(stream, "k", 3, "").status, 201, "others go on");
}

const QUERY: &str = "content-type: application/query+json\r\nx-ms-documentdb-isquery: True\r\n\
    x-ms-documentdb-query-enablecrosspartition: True\r\n";

fn query(stream: &mut impl Stream, headers: &str) -> Reply {
    let what =
        Signed { method: "POST", path: "/dbs/d/colls/c/docs", kind: "docs", link: CONTAINER };
    let body = r#"{"query":"SELECT * FROM c WHERE c.n = 1"}"#;
    send_signed(stream, EMULATOR_KEY, what, &format!("{QUERY}{headers}"), body)
}

#[test]
fn metrics_tell_how_long_requests_took_and_how_they_ended() {
    let program = start(&[]);
    let stream = &mut connect(program.address());
    create_container(stream, "");
    assert_eq!(write(stream, "k", 0, "").status, 201);
    assert_eq!(write(stream, "k", 0, "").status, 409);
    assert_eq!(query(stream, "").status, 200);
    assert_eq!(send(stream, "GET", "/dbs/d", "", "").status, 401);
    let metrics = ask(stream, "GET", "/_orrery/metrics", "").body;
    for (verb, status, count) in [
        ("create_item", 201, 1),
        ("create_item", 409, 1),
        ("query_items", 200, 1),
        ("create_resource", 201, 2),
        ("other", 401, 1),
    ] {
        let labels = format!("{{verb=\"{verb}\",status=\"{status}\"}}");
        let line = format!("orrery_request_duration_seconds_count{labels} {count}\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
    assert!(metrics.contains("orrery_answers_client_error_total 2\n"), "{metrics}");
    assert!(metrics.contains("orrery_connections_open 1\n"), "{metrics}");
    for task in ["sweep", "expire", "reindex", "scale", "release_memory"] {
        let rounds = format!("orrery_background_rounds_total{{task=\"{task}\"}} ");
        assert!(metrics.contains(&rounds), "{rounds}{metrics}");
        let failures = format!("orrery_background_failures_total{{task=\"{task}\"}} 0\n");
        assert!(metrics.contains(&failures), "{failures}{metrics}");
    }
}

/// One line has everything needed to find out why a request took long, and nothing that is
/// in a body.
#[cfg(unix)]
#[test]
fn slow_requests_are_logged_with_their_plan() {
    const ACTIVITY: &str = "01234567-89ab-4cde-8f01-23456789abcd";
    let program = start(&["--slow-after", "0"]);
    let stream = &mut connect(program.address());
    create_container(stream, "");
    assert_eq!(write(stream, "secret", 0, "").status, 201);
    assert_eq!(query(stream, &format!("x-ms-activity-id: {ACTIVITY}\r\n")).status, 200);
    program.signal(rustix::process::Signal::TERM);
    let (status, log) = program.wait();
    assert!(status.success(), "{log}");
    let line = log.lines().find(|line| line.contains(ACTIVITY)).expect("a line about the query");
    for part in [
        "WARN",
        "slow request",
        "verb=\"query_items\"",
        "container=dbs/d/colls/c",
        "partition=0",
        "charge=",
        "status=200",
        "elapsed_ms=",
        "plan=",
        "access",
    ] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    assert!(log.contains("verb=\"create_item\"") && !log.contains("secret"), "{log}");
}

#[test]
fn nothing_is_logged_about_requests_that_are_not_slow() {
    let program = start(&["--slow-after", "600000"]);
    let stream = &mut connect(program.address());
    create_container(stream, "");
    assert_eq!(query(stream, "").status, 200);
    #[cfg(unix)]
    {
        program.signal(rustix::process::Signal::TERM);
        assert_eq!(program.wait().1, "");
    }
}
