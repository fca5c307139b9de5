//! Queries that a script cannot express: bytes, many pages, tokens.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::World;

const ITEMS: &str = "/dbs/d/colls/c/docs";
const QUERY: (&str, &str) = ("x-ms-documentdb-isquery", "True");
const ACROSS: (&str, &str) = ("x-ms-documentdb-query-enablecrosspartition", "True");
/// Has the server merge rows that clients would have to.
const MERGE: (&str, &str) = ("x-orrery-query-merge", "true");

/// Tokens may have a kilobyte, as the JavaScript SDK requires.
const TOKEN_BYTES_MAX: usize = 1024;

/// A container with five partitions and these items.
fn world(items: &[Value]) -> World {
    filled(World::new(), items)
}

fn filled(world: World, items: &[Value]) -> World {
    let container = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}});
    let setup = [("/dbs", json!({"id": "d"})), ("/dbs/d/colls", container)];
    let items = items.iter().map(|item| (ITEMS, item.clone()));
    for (path, body) in setup.into_iter().chain(items) {
        let throughput = [("x-ms-offer-throughput", "30000")];
        let headers = if path == "/dbs/d/colls" { &throughput[..] } else { &[] };
        let created = world.send(Method::POST, path, body.to_string(), headers);
        assert_eq!(created.status(), StatusCode::CREATED, "{:?}", created.body());
    }
    world
}

/// All rows of a query in pages of that size, checking the token of each.
fn rows(world: &World, text: &str, size: usize) -> Vec<Value> {
    let (size, mut token) = (size.to_string(), String::new());
    let body = json!({"query": text}).to_string();
    let mut rows = Vec::new();
    loop {
        let headers = [QUERY, MERGE, ("x-ms-max-item-count", &size), ("x-ms-continuation", &token)];
        let answer = world.send(Method::POST, ITEMS, &body, &headers);
        assert_eq!(answer.status(), StatusCode::OK, "{text}: {:?}", answer.body());
        let page: Value = serde_json::from_slice(answer.body()).unwrap();
        rows.extend(page["Documents"].as_array().unwrap().iter().cloned());
        let Some(next) = answer.headers().get("x-ms-continuation") else { return rows };
        assert_ne!(next.to_str().unwrap(), token, "{text} does not get on");
        token = next.to_str().unwrap().to_owned();
        assert!(!token.is_empty() && token.len() <= TOKEN_BYTES_MAX, "{} bytes", token.len());
    }
}

/// The same prefix, longer than a token may be.
fn long(n: usize) -> String {
    format!("{}{n:02}", "ä".repeat(900))
}

#[test]
fn pages_make_the_whole_whatever_their_size() {
    let item = |n: usize| {
        let (id, pk) = (format!("{n:02}{}", "x".repeat(250)), long(n % 7));
        json!({"id": id, "pk": pk, "n": n % 5, "text": long(n % 3), "list": [n, n + 1, n + 2]})
    };
    let world = world(&(0..40).map(item).collect::<Vec<_>>());
    let texts = [
        ("SELECT VALUE c.id FROM c", 40),
        ("SELECT VALUE c.id FROM c WHERE c.n = 3", 8),
        ("SELECT VALUE c.id FROM c ORDER BY c.n", 40),
        ("SELECT VALUE c.id FROM c ORDER BY c.text DESC", 40),
        ("SELECT c.id, element FROM c JOIN element IN c.list", 120),
        ("SELECT c.id FROM c ORDER BY c.id OFFSET 10 LIMIT 15", 15),
        ("SELECT TOP 11 VALUE c.id FROM c ORDER BY c.pk", 11),
        ("SELECT DISTINCT VALUE c.pk FROM c", 7),
        ("SELECT c.n, COUNT(1) AS many FROM c GROUP BY c.n", 5),
        ("SELECT VALUE COUNT(1) FROM c", 1),
    ];
    for (text, count) in texts {
        let whole = rows(&world, text, 1_000);
        assert_eq!(whole.len(), count, "{text}");
        for size in [1, 3, 7, count] {
            assert_eq!(rows(&world, text, size), whole, "{text} in pages of {size}");
        }
    }
}

#[test]
fn metrics_have_every_field_of_the_service() {
    const TIMES: [&str; 9] = [
        "totalExecutionTimeInMs",
        "queryCompileTimeInMs",
        "queryLogicalPlanBuildTimeInMs",
        "queryPhysicalPlanBuildTimeInMs",
        "queryOptimizationTimeInMs",
        "VMExecutionTimeInMs",
        "documentLoadTimeInMs",
        "systemFunctionExecuteTimeInMs",
        "writeOutputTimeInMs",
    ];
    let item = |n: usize| json!({"id": n.to_string(), "pk": "a", "n": n, "text": "x".repeat(n)});
    let world = filled(World::real(), &(0..50).map(item).collect::<Vec<_>>());
    let text =
        "SELECT c.id, UPPER(c.text) AS loud FROM c WHERE c.n >= 25 AND CONTAINS(c.text, 'x')";
    let key = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
    let headers = [QUERY, key, ("x-ms-documentdb-populatequerymetrics", "True")];
    let answer = world.send(Method::POST, ITEMS, json!({"query": text}).to_string(), &headers);
    let metrics = answer.headers()["x-ms-documentdb-query-metrics"].to_str().unwrap();
    let fields: Vec<(&str, f64)> = metrics
        .split(';')
        .map(|field| field.split_once('=').unwrap())
        .map(|(name, value)| (name, value.parse().unwrap()))
        .collect();
    let field = |name: &str| fields.iter().find(|field| field.0 == name).unwrap().1;
    for name in TIMES {
        assert!(field(name) > 0.0, "{metrics}");
    }
    // Users' functions are not run yet, and this query needs no index.
    for name in ["userFunctionExecuteTimeInMs", "indexLookupTimeInMs"] {
        assert!(field(name) >= 0.0, "{metrics}");
    }
    let inner = ["documentLoadTimeInMs", "systemFunctionExecuteTimeInMs", "writeOutputTimeInMs"];
    assert!(inner.iter().all(|name| field(name) <= field("VMExecutionTimeInMs")), "{metrics}");
    assert!(field("VMExecutionTimeInMs") <= field("totalExecutionTimeInMs"), "{metrics}");
    assert_eq!((field("outputDocumentCount"), fields.len()), (25.0, 16));
}

#[test]
fn a_query_in_binary_json_is_understood() {
    let world = world(&[json!({"id": "1", "pk": "a"})]);
    let text = "SELECT VALUE c.id FROM c";
    // An object of one property, whose name and value are strings with their lengths.
    let string =
        |text: &str| [&[0x80 | u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let body = [&[0x80, 0xE9][..], &string("query"), &string(text)].concat();
    let key = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
    let answer = world.send(Method::POST, ITEMS, &body, &[QUERY, key]);
    assert_eq!(answer.status(), StatusCode::OK, "{:?}", answer.body());
    let page: Value = serde_json::from_slice(answer.body()).unwrap();
    assert_eq!(page["Documents"], json!(["1"]));
}

/// Status and sub-status of an answer, and its body.
fn ask(world: &World, text: &str, headers: &[(&str, &str)]) -> (String, Value) {
    let answer = world.send(Method::POST, ITEMS, json!({"query": text}).to_string(), headers);
    let substatus = answer.headers().get("x-ms-substatus").map(|text| text.to_str().unwrap());
    let status = format!("{}/{}", answer.status().as_u16(), substatus.unwrap_or("0"));
    (status, serde_json::from_slice(answer.body()).unwrap())
}

#[test]
fn what_needs_merging_is_left_to_every_client() {
    let world = world(&[json!({"id": "1", "pk": "a"}), json!({"id": "2", "pk": "b"})]);
    let agents =
        ["azsdk-python-cosmos/4.17.1 Python/3.11.7", "azsdk-go-azcosmos/v1.4.1", "curl/8.5.0"];
    let left_to_clients = [
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'a'",
        "SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk",
        "SELECT DISTINCT VALUE c.pk FROM c",
        "SELECT TOP 1 * FROM c",
        "SELECT * FROM c ORDER BY c.id",
        "SELECT * FROM c OFFSET 0 LIMIT 1",
    ];
    let features = (
        "x-ms-cosmos-supported-query-features",
        "Aggregate,Distinct,GroupBy,NonValueAggregate,OffsetAndLimit,OrderBy,Top",
    );
    for text in left_to_clients {
        for agent in agents.map(|agent| ("user-agent", agent)) {
            let (status, refusal) = ask(&world, text, &[QUERY, ACROSS, agent]);
            assert_eq!(status, "400/1004", "{text}");
            let inside: Value =
                serde_json::from_str(refusal["additionalErrorInfo"].as_str().unwrap()).unwrap();
            let plan = ("x-ms-cosmos-is-query-plan-request", "True");
            assert_eq!(ask(&world, text, &[plan, features, agent]).1, inside, "{text}");
        }
        // A client that routes gets an answer, and so does one that asks for the merged
        // one.
        let key = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
        let range = ("x-ms-documentdb-partitionkeyrangeid", "0");
        for named in [key, range, MERGE] {
            assert_eq!(ask(&world, text, &[QUERY, named]).0, "200/0", "{text} {named:?}");
        }
    }
    for text in ["SELECT * FROM c", "SELECT VALUE 1", "SELECT TOP 1 VALUE 1"] {
        assert_eq!(ask(&world, text, &[QUERY, ACROSS]).0, "200/0", "{text}");
    }
    let rewritten = r#"SELECT VALUE [{"item": COUNT(1)}] FROM c"#;
    let ranges = ["0", "1", "2", "3", "4"].map(|id| ("x-ms-documentdb-partitionkeyrangeid", id));
    let counted =
        |range| ask(&world, rewritten, &[QUERY, range]).1["Documents"][0][0]["item"].as_u64();
    assert_eq!(ranges.map(counted).iter().flatten().sum::<u64>(), 2);
}

#[test]
fn a_container_without_a_key_has_nothing_to_merge() {
    let world = World::new();
    for (path, body) in [("/dbs", r#"{"id":"d"}"#), ("/dbs/d/colls", r#"{"id":"c"}"#)] {
        assert_eq!(world.send(Method::POST, path, body, &[]).status(), StatusCode::CREATED);
    }
    assert_eq!(ask(&world, "SELECT VALUE COUNT(1) FROM c", &[QUERY, ACROSS]).0, "200/0");
}

/// The clock in ticks of 100 nanoseconds, before and after; a coarser clock would be below
/// the first reading.
#[test]
fn the_current_time_is_in_ticks() {
    let world = filled(World::real(), &[json!({"id": "1", "pk": "a"})]);
    let text = "SELECT GetCurrentTicks() AS ticks, GetCurrentDateTime() AS date, \
                DateTimeToTicks(GetCurrentDateTime()) AS same FROM c";
    for _ in 0..20 {
        let before = ticks();
        let rows = rows(&world, text, 10);
        let shown = rows[0]["ticks"].as_i64().unwrap();
        assert!((before..=ticks()).contains(&shown), "{before} {rows:?}");
        assert_eq!(rows[0]["same"].as_i64(), Some(shown), "{rows:?}");
        // 2026-11-17T17:10:37.1234567Z
        let date = rows[0]["date"].as_str().unwrap();
        assert!(date.len() == 28 && date.ends_with('Z'), "{date}");
    }
}

#[allow(clippy::disallowed_methods, reason = "the clock that the server is held against")]
fn ticks() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_nanos() / 100).unwrap()
}

/// Clients accept 64 KB of headers. Metrics of a query are dropped first, its rows never
/// are.
#[test]
fn headers_stay_below_what_clients_take() {
    let world = world(&[json!({"id": "1", "pk": "a"})]);
    let places: Vec<String> = (0..500).map(|n| format!("c.{}{n} = 1", "p".repeat(100))).collect();
    let text = format!("SELECT VALUE c.id FROM c WHERE c.id = '1' OR {}", places.join(" OR "));
    let body = json!({"query": text}).to_string();
    let key = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
    let metrics = ("x-ms-documentdb-populatequerymetrics", "True");
    for form in ["x-ms-cosmos-populateindexmetrics", "x-ms-cosmos-populateindexmetrics-v2"] {
        let answer = world.send(Method::POST, ITEMS, &body, &[QUERY, key, metrics, (form, "True")]);
        let page: Value = serde_json::from_slice(answer.body()).unwrap();
        assert_eq!(page["Documents"], json!(["1"]));
        let headers = answer.headers();
        let bytes = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
        assert!(bytes.sum::<usize>() < 64 << 10, "{form}");
        assert!(!headers.contains_key("x-ms-cosmos-index-utilization"), "{form}");
        assert!(headers.contains_key("x-ms-documentdb-query-metrics"), "{form}");
    }
}
