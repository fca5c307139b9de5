//! Pages that are too long to be put together where requests are served. Debug builds panic
//! when an async worker handles that many rows (`runtime::short_work`), in whichever layer.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::World;

/// More than an async worker may handle at once.
const ROWS: usize = runtime::SHORT_WORK_ROWS_MAX + 1;

const ITEMS: &str = "/dbs/d/colls/c/docs";
const PERMISSIONS: &str = "/dbs/d/users/user-00/permissions";
const WHOLE: (&str, &str) = ("x-ms-max-item-count", "1000");
const QUERY: (&str, &str) = ("x-ms-documentdb-isquery", "True");
const ACROSS: (&str, &str) = ("x-ms-documentdb-query-enablecrosspartition", "True");
const CHANGES: (&str, &str) = ("a-im", "Incremental feed");
const EXCLUDE: (&str, &str) = ("x-ms-exclude-system-properties", "true");

fn created(world: &World, path: &str, body: &Value) {
    let created = world.send(Method::POST, path, body.to_string(), &[]);
    assert_eq!(created.status(), StatusCode::CREATED, "{path}: {:?}", created.body());
}

/// Items of one container, users of one database and permissions of one user.
fn world() -> World {
    let world = World::new();
    created(&world, "/dbs", &json!({"id": "d"}));
    let container = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}});
    created(&world, "/dbs/d/colls", &container);
    for number in 0..ROWS {
        created(&world, ITEMS, &json!({"id": format!("{number}"), "pk": "a"}));
        created(&world, "/dbs/d/users", &json!({"id": format!("user-{number:02}")}));
    }
    for number in 0..ROWS {
        let key = json!([number]);
        let granted = json!({"id": format!("p-{number}"), "permissionMode": "Read",
            "resource": "dbs/d/colls/c", "resourcePartitionKey": key});
        created(&world, PERMISSIONS, &granted);
    }
    world
}

/// All rows of a page, whose answer counts them.
fn rows(
    world: &World,
    path: &str,
    name: &str,
    query: Option<&str>,
    given: &[(&str, &str)],
) -> Vec<Value> {
    let mut headers = vec![WHOLE];
    headers.extend(given);
    let (method, body) = match query {
        Some(query) => (Method::POST, json!({"query": query}).to_string()),
        None => (Method::GET, String::new()),
    };
    let answer = world.send(method, path, body, &headers);
    assert_eq!(answer.status(), StatusCode::OK, "{path}: {:?}", answer.body());
    let page: Value = serde_json::from_slice(answer.body()).unwrap();
    let rows = page[name].as_array().unwrap();
    assert_eq!(page["_count"], rows.len());
    assert_eq!(answer.headers()["x-ms-item-count"], rows.len().to_string().as_str());
    rows.clone()
}

#[test]
fn long_pages_of_items_are_put_together_elsewhere() {
    let world = world();
    let all = Some("SELECT * FROM c");
    for (query, given) in
        [(None, &[][..]), (None, &[EXCLUDE]), (None, &[CHANGES]), (all, &[QUERY, ACROSS])]
    {
        let rows = rows(&world, ITEMS, "Documents", query, given);
        let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
        let expected: Vec<String> = (0..ROWS).map(|number| number.to_string()).collect();
        assert_eq!(ids, expected, "in the order of their creation");
        let excludes = given.contains(&EXCLUDE);
        assert!(rows.iter().all(|row| row.get("_etag").is_none() == excludes));
    }
}

#[test]
fn long_pages_of_resources_are_put_together_elsewhere() {
    let world = world();
    let names = |rows: Vec<Value>| -> Vec<String> {
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    };
    let expected: Vec<String> = (0..ROWS).map(|number| format!("user-{number:02}")).collect();
    assert_eq!(names(rows(&world, "/dbs/d/users", "Users", None, &[])), expected);
    let all = Some("SELECT * FROM c");
    assert_eq!(names(rows(&world, "/dbs/d/users", "Users", all, &[QUERY])), expected);
    let permissions = rows(&world, PERMISSIONS, "Permissions", None, &[]);
    assert_eq!(permissions.len(), ROWS);
    assert!(permissions.iter().all(|row| row["_token"].is_string()));
}

#[test]
fn one_resource_among_many_is_found_by_its_resource_id() {
    let world = world();
    let users = rows(&world, "/dbs/d/users", "Users", None, &[]);
    let last = users.last().unwrap();
    let link = format!("/dbs/d/users/{}", last["_rid"].as_str().unwrap());
    let found = world.send(Method::GET, &link, "", &[]);
    assert_eq!(found.status(), StatusCode::OK);
    let found: Value = serde_json::from_slice(found.body()).unwrap();
    assert_eq!(found, *last);
}
