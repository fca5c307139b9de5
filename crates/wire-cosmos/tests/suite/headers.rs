//! What goes with every answer, success or error.

use http::{HeaderMap, Method, StatusCode};

use crate::world::World;

const ITEMS: &str = "/dbs/d/colls/c/docs";
const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);

/// On every answer.
const ALWAYS: [&str; 8] = [
    "x-ms-activity-id",
    "x-ms-request-charge",
    "x-ms-request-duration-ms",
    "x-ms-version",
    "x-ms-schemaversion",
    "x-ms-gatewayversion",
    "x-ms-serviceversion",
    "date",
];
/// On what a partition answered.
const OF_PARTITIONS: [&str; 5] = [
    "x-ms-session-token",
    "x-ms-documentdb-partitionkeyrangeid",
    "x-ms-cosmos-physical-partition-id",
    "x-ms-content-path",
    "x-ms-alt-content-path",
];
const LSNS: [&str; 5] = [
    "lsn",
    "x-ms-cosmos-llsn",
    "x-ms-quorum-acked-lsn",
    "x-ms-cosmos-quorum-acked-llsn",
    "x-ms-global-committed-lsn",
];

/// A request by method, path, body and headers, and the status of its answer.
type Case<'a> = (Method, String, &'a str, &'a [(&'a str, &'a str)], u16);

fn world() -> World {
    let world = World::new();
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#;
    let setup =
        [("/dbs", r#"{"id":"d"}"#), ("/dbs/d/colls", container), (ITEMS, r#"{"id":"1","pk":"a"}"#)];
    for (path, body) in setup {
        assert_eq!(world.send(Method::POST, path, body, &[]).status(), StatusCode::CREATED);
    }
    world
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |value| value.to_str().unwrap())
}

#[test]
fn partitions_say_where_they_stand_also_when_they_refuse() {
    let world = world();
    let item = |id: &str| format!("{ITEMS}/{id}");
    let batch =
        [KEY, ("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True")];
    let conflict = r#"[{"operationType":"Create","resourceBody":{"id":"1","pk":"a"}}]"#;
    let set =
        r#"{"condition":"from c where c.n = 1","operations":[{"op":"set","path":"/n","value":1}]}"#;
    let stale = [KEY, ("if-match", "\"stale\"")];
    let cases: [Case<'_>; 9] = [
        (Method::GET, item("1"), "", &[KEY], 200),
        (Method::GET, item("2"), "", &[KEY], 404),
        (Method::GET, ITEMS.to_owned(), "", &[KEY], 200),
        (Method::POST, ITEMS.to_owned(), r#"{"id":"1","pk":"a"}"#, &[KEY], 409),
        (Method::PUT, item("1"), r#"{"id":"1","pk":"a"}"#, &stale, 412),
        (Method::DELETE, item("1"), "", &stale, 412),
        (Method::PATCH, item("1"), set, &[KEY], 412),
        (Method::POST, ITEMS.to_owned(), conflict, &batch, 207),
        (Method::GET, item("1"), "", &[KEY, ("x-ms-session-token", "0:-1#9")], 404),
    ];
    for (method, path, body, headers, status) in cases {
        let response = world.send(method.clone(), &path, body, headers);
        assert_eq!(response.status().as_u16(), status, "{method} {path}");
        let headers = response.headers();
        let is_told = |name: &&&str| status != 404 || **name != "x-ms-content-path";
        for name in ALWAYS.iter().chain(&OF_PARTITIONS).chain(&LSNS).filter(is_told) {
            assert!(!text(headers, name).is_empty(), "{method} {path} has no {name}");
        }
        assert_eq!(text(headers, "x-ms-session-token"), "0:-1#2");
        assert!(LSNS.iter().all(|name| text(headers, name) == "2"), "{headers:?}");
        let charge: f64 = text(headers, "x-ms-request-charge").parse().unwrap();
        assert!(charge >= 1.0, "{method} {path} cost {charge}");
    }
}

#[test]
fn what_no_partition_saw_costs_nothing_and_says_nothing_about_one() {
    let world = world();
    let cases: [Case<'_>; 3] = [
        (Method::GET, "/".to_owned(), "", &[], 200),
        (Method::GET, "/nothing/here".to_owned(), "", &[], 404),
        (Method::GET, "/dbs".to_owned(), "", &[("authorization", "garbage")], 401),
    ];
    for (method, path, body, headers, status) in cases {
        let response = world.send(method, &path, body, headers);
        assert_eq!(response.status().as_u16(), status, "{path}");
        let headers = response.headers();
        for name in ALWAYS {
            assert!(!text(headers, name).is_empty(), "{path} has no {name}");
        }
        assert_eq!(text(headers, "x-ms-request-charge"), "0", "{path}");
        assert_eq!((text(headers, "x-ms-session-token"), text(headers, "lsn")), ("", ""));
    }
}

#[test]
fn a_request_that_makes_no_sense_is_charged_like_one_that_is_refused() {
    let world = world();
    for (method, path, body, charge) in [
        (Method::POST, ITEMS.to_owned(), "{", "1.2380952380952381"),
        (Method::GET, format!("{ITEMS}/1"), "", "1"),
    ] {
        let response = world.send(method, &path, body, &[]);
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{path}");
        assert_eq!(text(response.headers(), "x-ms-request-charge"), charge, "{path}");
        assert_eq!(text(response.headers(), "x-ms-session-token"), "");
    }
}

#[test]
fn the_catalogue_charges_and_names_the_owner() {
    let world = world();
    for (path, owner, status) in
        [("/dbs/d", "", 200), ("/dbs/d/colls/c", "dbs/d", 200), ("/dbs/d/colls/x", "dbs/d", 404)]
    {
        let response = world.send(Method::GET, path, "", &[]);
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(text(response.headers(), "x-ms-alt-content-path"), owner);
        assert_eq!(text(response.headers(), "x-ms-request-charge"), "1");
    }
    let created = world.send(Method::POST, "/dbs/d/users", r#"{"id":"u"}"#, &[]);
    assert_eq!(text(created.headers(), "x-ms-request-charge"), "4.9523809523809526");
}

#[test]
fn an_item_is_told_apart_from_its_partition() {
    let world = world();
    assert_eq!(
        world.send(Method::POST, ITEMS, r#"{"id":"2","pk":"a"}"#, &[KEY]).status(),
        StatusCode::CREATED
    );
    let read = world.send(Method::GET, &format!("{ITEMS}/1"), "", &[KEY]);
    let headers = read.headers();
    assert_eq!((text(headers, "lsn"), text(headers, "x-ms-item-lsn")), ("3", "2"));
    assert_eq!(text(headers, "x-ms-cosmos-item-llsn"), "2");
}

/// Every version that an SDK ever knew, and none besides.
#[test]
fn versions_that_no_sdk_knows_are_refused() {
    let world = world();
    let known = "2014-08-21 2015-04-08 2015-06-03 2015-08-06 2015-12-16 2016-05-30 2016-07-11 \
                 2016-11-14 2017-01-19 2017-02-22 2017-05-03 2017-11-15 2018-06-18 2018-08-31 \
                 2018-09-17 2018-12-31 2019-10-14 2020-07-15 2020-11-05 2024-05-15 2024-06-06";
    let item = format!("{ITEMS}/1");
    let status = |version: &str| {
        let headers = [KEY, ("x-ms-version", version)];
        world.send(Method::GET, &item, "", &headers).status().as_u16()
    };
    for version in known.split_whitespace().chain([""]) {
        assert_eq!(status(version), 200, "{version}");
    }
    let unknown =
        ["2015-01-01", "2018-12-32", "2020-07-16", "2099-01-01", "2020-07-15-preview", "1", "x"];
    for version in unknown {
        assert_eq!(status(version), 400, "{version}");
    }
}
