//! Resource tokens: they grant what their permission names, and nothing else.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::Value;

use crate::authorisation::{METHODS, ROUTES, furnished};
use crate::world::World;

const ITEMS: &str = "/dbs/d/colls/c/docs";
const PERMISSIONS: &str = "/dbs/d/users/u/permissions";
const A: &str = r#"["a"]"#;
const B: &str = r#"["b"]"#;

/// The furnished database, with a second container and a second key.
fn world() -> World {
    let world = furnished();
    let other = r#"{"id":"other","partitionKey":{"paths":["/pk"],"version":2}}"#;
    for (path, body) in [
        ("/dbs/d/colls", other),
        ("/dbs/d/colls/other/docs", r#"{"id":"1","pk":"a"}"#),
        (ITEMS, r#"{"id":"1","pk":"b"}"#),
        (ITEMS, r#"{"id":"2","pk":"a"}"#),
        ("/dbs/d/colls/c/sprocs", r#"{"id":"second","body":"function () {}"}"#),
    ] {
        assert_eq!(
            world.send(Method::POST, path, body, &[]).status(),
            StatusCode::CREATED,
            "{path}"
        );
    }
    world
}

/// Creates a permission and returns its token.
fn token(world: &World, id: &str, mode: &str, resource: &str, key: Option<&str>) -> String {
    let key = key.map(|key| format!(r#","resourcePartitionKey":{key}"#)).unwrap_or_default();
    let body = format!(r#"{{"id":"{id}","permissionMode":"{mode}","resource":"{resource}"{key}}}"#);
    let created = world.send(Method::POST, PERMISSIONS, &body, &[]);
    assert_eq!(created.status(), StatusCode::CREATED, "{:?}", created.body());
    token_of(created.body())
}

fn token_of(body: &Bytes) -> String {
    let body: Value = serde_json::from_slice(body).unwrap();
    body["_token"].as_str().unwrap().to_owned()
}

struct Asked<'a> {
    method: Method,
    path: &'a str,
    body: &'a str,
    key: Option<&'a str>,
}

fn asked<'a>(method: Method, path: &'a str, body: &'a str, key: Option<&'a str>) -> Asked<'a> {
    Asked { method, path, body, key }
}

/// The status of a request that presents a token.
fn ask(world: &World, token: &str, Asked { method, path, body, key }: Asked<'_>) -> u16 {
    let mut headers = vec![("authorization", token)];
    headers.extend(key.map(|key| ("x-ms-documentdb-partitionkey", key)));
    world.send(method, path, body, &headers).status().as_u16()
}

const ONE: &str = "/dbs/d/colls/c/docs/1";
const NEW: &str = r#"{"id":"9","pk":"a"}"#;

#[test]
fn a_token_opens_what_its_permission_names() {
    let world = world();
    let container = "dbs/d/colls/c";
    let read = token(&world, "read", "Read", container, None);
    let all = token(&world, "all", "all", container, None);
    let keyed = token(&world, "keyed", "All", container, Some(A));
    let item = token(&world, "item", "All", "dbs/d/colls/c/docs/1", Some(A));
    let script = token(&world, "script", "All", "dbs/d/colls/c/sprocs/s", None);
    let other = token(&world, "other", "All", "dbs/d/colls/other", None);
    let patch = r#"{"operations":[{"op":"set","path":"/n","value":1}]}"#;
    let renamed = r#"{"id":"8","pk":"a"}"#;
    let same = r#"{"id":"1","pk":"a"}"#;
    // What each of the six is answered: read, all, keyed, item, script, other.
    let table: [(Asked<'_>, [u16; 6]); 19] = [
        (asked(Method::GET, "/", "", None), [200; 6]),
        (asked(Method::GET, "/dbs", "", None), [403; 6]),
        (asked(Method::GET, "/dbs/d", "", None), [403; 6]),
        (asked(Method::GET, "/dbs/d/users/u", "", None), [403; 6]),
        (asked(Method::GET, "/dbs/d/users/u/permissions/all", "", None), [403; 6]),
        (asked(Method::GET, "/dbs/d/colls/c", "", None), [200, 200, 200, 200, 200, 403]),
        (asked(Method::GET, "/dbs/d/colls/c/pkranges", "", None), [200, 200, 200, 200, 200, 403]),
        (asked(Method::GET, ITEMS, "", None), [200, 200, 403, 403, 403, 403]),
        (asked(Method::GET, ITEMS, "", Some(A)), [200, 200, 200, 403, 403, 403]),
        (asked(Method::GET, ONE, "", Some(A)), [200, 200, 200, 200, 403, 403]),
        (asked(Method::GET, ONE, "", Some(B)), [200, 200, 403, 403, 403, 403]),
        (asked(Method::GET, "/dbs/d/colls/c/docs/2", "", Some(A)), [200, 200, 200, 403, 403, 403]),
        (asked(Method::PATCH, ONE, patch, Some(A)), [403, 200, 200, 200, 403, 403]),
        (asked(Method::PUT, ONE, same, Some(A)), [403, 200, 200, 200, 403, 403]),
        (
            asked(Method::PUT, "/dbs/d/colls/c/docs/404", renamed, Some(A)),
            [403, 404, 404, 403, 403, 403],
        ),
        (asked(Method::POST, ITEMS, NEW, Some(B)), [403, 400, 403, 403, 403, 403]),
        (asked(Method::GET, "/dbs/d/colls/c/sprocs/s", "", None), [200, 200, 403, 403, 200, 403]),
        (
            asked(Method::GET, "/dbs/d/colls/c/sprocs/second", "", None),
            [200, 200, 403, 403, 403, 403],
        ),
        (
            asked(Method::DELETE, "/dbs/d/colls/c/docs/404", "", Some(A)),
            [403, 404, 404, 403, 403, 403],
        ),
    ];
    for (Asked { method, path, body, key }, expected) in table {
        let tokens = [&read, &all, &keyed, &item, &script, &other];
        let again = || Asked { method: method.clone(), path, body, key };
        let answered = tokens.map(|token| ask(&world, token, again()));
        assert_eq!(answered, expected, "{method} {path} {key:?}");
    }
    // The item's token must not rename it.
    assert_eq!(ask(&world, &item, asked(Method::PUT, ONE, renamed, Some(A))), 403);
    assert_eq!(ask(&world, &read, asked(Method::DELETE, "/dbs/d/colls/c", "", None)), 403);
    assert_eq!(ask(&world, &keyed, asked(Method::DELETE, "/dbs/d/colls/c", "", None)), 403);
    assert_eq!(ask(&world, &item, asked(Method::DELETE, ONE, "", Some(A))), 204);
    assert_eq!(ask(&world, &keyed, asked(Method::POST, ITEMS, NEW, Some(A))), 201);
    assert_eq!(ask(&world, &all, asked(Method::DELETE, "/dbs/d/colls/c", "", None)), 204);
}

/// A client that is given one procedure changes items by it alone: it neither reads nor
/// writes any itself, and cannot have the procedure do something else.
#[test]
fn a_token_of_a_procedure_runs_it() {
    let world = world();
    let body = r#"{"id":"s","body":"function (id) { __.createDocument(__.getSelfLink(), { id: id, pk: 'a' }); }"}"#;
    let procedure = "/dbs/d/colls/c/sprocs/s";
    assert_eq!(world.send(Method::PUT, procedure, body, &[]).status(), StatusCode::OK);
    let stored = world.send(Method::GET, procedure, "", &[]);
    let stored: Value = serde_json::from_slice(stored.body()).unwrap();
    let rid = format!("/dbs/d/colls/c/sprocs/{}", stored["_rid"].as_str().unwrap());
    let link = &procedure[1..];
    let all = token(&world, "all", "All", link, None);
    let keyed = token(&world, "keyed", "All", link, Some(A));
    let read = token(&world, "read", "Read", link, None);
    let second = token(&world, "second", "All", "dbs/d/colls/c/sprocs/second", None);
    let tokens = [&all, &keyed, &read, &second];
    let statuses = |method: &Method, path: &str, body: &str, key: Option<&str>| {
        tokens.map(|token| ask(&world, token, asked(method.clone(), path, body, key)))
    };
    // What each of the four is answered: all, keyed, read, second. The key of the second
    // line is not that of the document, which the script is refused, not the request.
    assert_eq!(statuses(&Method::POST, procedure, r#"["5"]"#, Some(A)), [200, 400, 403, 403]);
    assert_eq!(statuses(&Method::POST, procedure, r#"["6"]"#, Some(B)), [400, 403, 403, 403]);
    assert_eq!(statuses(&Method::POST, procedure, r#"["6"]"#, None), [400, 403, 403, 403]);
    assert_eq!(statuses(&Method::POST, &rid, r#"["7"]"#, Some(A)), [200, 400, 403, 403]);
    let before = world.dump();
    let denied = [
        (Method::GET, ITEMS, ""),
        (Method::POST, ITEMS, NEW),
        (Method::GET, ONE, ""),
        (Method::PUT, ONE, NEW),
        (Method::PATCH, ONE, r#"{"operations":[{"op":"set","path":"/n","value":1}]}"#),
        (Method::DELETE, ONE, ""),
        (Method::PUT, procedure, r#"{"id":"s","body":"function () {}"}"#),
        (Method::DELETE, procedure, ""),
        (Method::GET, "/dbs/d/colls/c/sprocs", ""),
        (Method::POST, "/dbs/d/colls/c/sprocs", r#"{"id":"t","body":"function () {}"}"#),
        (Method::POST, "/dbs/d/colls/c/sprocs/absent", "[]"),
    ];
    for (method, path, body) in denied {
        assert_eq!(statuses(&method, path, body, Some(A)), [403; 4], "{method} {path}");
    }
    assert_eq!(world.dump(), before);
    assert_eq!(statuses(&Method::GET, procedure, "", None), [200, 200, 200, 403]);
    // Another procedure of the same name is another one.
    assert_eq!(world.send(Method::DELETE, procedure, "", &[]).status(), StatusCode::NO_CONTENT);
    let path = "/dbs/d/colls/c/sprocs";
    assert_eq!(world.send(Method::POST, path, body, &[]).status(), StatusCode::CREATED);
    assert_eq!(statuses(&Method::POST, procedure, r#"["8"]"#, Some(A)), [403; 4]);
}

#[test]
fn tokens_by_resource_id_open_the_same() {
    let world = world();
    let read = |path: &str, key: &[(&str, &str)]| -> Value {
        serde_json::from_slice(world.send(Method::GET, path, "", key).body()).unwrap()
    };
    let key = ("x-ms-documentdb-partitionkey", A);
    let container = read("/dbs/d/colls/c", &[])["_self"].as_str().unwrap().to_owned();
    let item = read(ONE, &[key])["_self"].as_str().unwrap().to_owned();
    let (by_rid, one) = (format!("/{container}"), format!("/{item}"));
    let on_container = token(&world, "container", "Read", &container, None);
    assert_eq!(ask(&world, &on_container, asked(Method::GET, ONE, "", Some(A))), 200);
    assert_eq!(ask(&world, &on_container, asked(Method::GET, &by_rid, "", None)), 200);
    assert_eq!(ask(&world, &on_container, asked(Method::GET, &one, "", Some(A))), 200);
    let by_name = token(&world, "by name", "Read", "dbs/d/colls/c/docs/1", None);
    assert_eq!(ask(&world, &by_name, asked(Method::GET, &one, "", Some(A))), 200);
    let on_item = token(&world, "by rid", "Read", &item, None);
    assert_eq!(ask(&world, &on_item, asked(Method::GET, &one, "", Some(A))), 200);
    let second = read("/dbs/d/colls/c/docs/2", &[key])["_self"].as_str().unwrap().to_owned();
    let second = format!("/{second}");
    assert_eq!(ask(&world, &on_item, asked(Method::GET, &second, "", Some(A))), 403);
    assert_eq!(ask(&world, &by_name, asked(Method::GET, &second, "", Some(A))), 403);
}

#[test]
fn a_token_lives_as_long_as_it_was_asked_for_and_no_longer() {
    let world = world();
    let first = token(&world, "p", "Read", "dbs/d/colls/c", None);
    let path = format!("{PERMISSIONS}/p");
    for (secs, status) in
        [("599", 400), ("600", 200), ("86400", 200), ("86401", 400), ("-1", 400), ("x", 400)]
    {
        let header = [("x-ms-documentdb-expiry-seconds", secs)];
        assert_eq!(world.send(Method::GET, &path, "", &header).status().as_u16(), status, "{secs}");
    }
    let header = [("x-ms-documentdb-expiry-seconds", "x")];
    let body = r#"{"id":"q","permissionMode":"Read","resource":"dbs/d/colls/c"}"#;
    assert_eq!(world.send(Method::POST, PERMISSIONS, body, &header).status().as_u16(), 400);
    assert_eq!(
        world.send(Method::GET, &format!("{PERMISSIONS}/q"), "", &[]).status().as_u16(),
        404
    );

    let header = [("x-ms-documentdb-expiry-seconds", "600")];
    let short = token_of(world.send(Method::GET, &path, "", &header).body());
    let listed: Value =
        serde_json::from_slice(world.send(Method::GET, PERMISSIONS, "", &[]).body()).unwrap();
    assert_eq!(listed["Permissions"][0]["_token"].as_str(), Some(first.as_str()));
    // A token is independent: neither replacing nor deleting its permission revokes it.
    let replaced = r#"{"id":"p","permissionMode":"Read","resource":"dbs/d/colls/other"}"#;
    assert_eq!(world.send(Method::PUT, &path, replaced, &[]).status(), StatusCode::OK);
    assert_eq!(world.send(Method::DELETE, &path, "", &[]).status(), StatusCode::NO_CONTENT);
    let read = || asked(Method::GET, ONE, "", Some(A));
    assert_eq!((ask(&world, &first, read()), ask(&world, &short, read())), (200, 200));
    world.clock.advance(Duration::from_secs(600));
    assert_eq!((ask(&world, &first, read()), ask(&world, &short, read())), (200, 403));
    world.clock.advance(Duration::from_secs(3_000));
    assert_eq!(ask(&world, &first, read()), 403);
}

#[test]
fn a_container_of_the_same_name_is_another_one() {
    let world = world();
    let token = token(&world, "p", "All", "dbs/d/colls/c", None);
    assert_eq!(
        world.send(Method::DELETE, "/dbs/d/colls/c", "", &[]).status(),
        StatusCode::NO_CONTENT
    );
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#;
    assert_eq!(world.send(Method::POST, "/dbs/d/colls", body, &[]).status(), StatusCode::CREATED);
    assert_eq!(ask(&world, &token, asked(Method::GET, ITEMS, "", None)), 403);
    // A permission for what does not exist grants nothing.
    let body = r#"{"id":"q","permissionMode":"All","resource":"dbs/d/colls/nowhere"}"#;
    let created = world.send(Method::POST, PERMISSIONS, body, &[]);
    assert!(!String::from_utf8_lossy(created.body()).contains("_token"));
}

#[test]
fn nothing_else_is_let_in_on_any_route() {
    let world = world();
    let item = token(&world, "item", "All", "dbs/d/colls/other/docs/1", Some(A));
    let before = world.dump();
    let (head, tail) = item.split_at(item.len() - 8);
    let wrong = [
        item.as_str(),
        &format!("{head}AAAAAAA;"),
        head,
        &format!("{item}{tail}"),
        &item.replace("resource", "master"),
        &item.replace("ver=1", "ver=2"),
        "type=resource&ver=1&sig=;;",
        "type=resource&ver=1&sig=AAAA;AAAA;",
    ];
    let (mut tried, body) = (0, r#"{"id":"2","pk":"a"}"#);
    for path in ROUTES.iter().filter(|path| **path != "/") {
        for method in &METHODS {
            for (at, token) in wrong.iter().enumerate() {
                let status = ask(&world, token, asked(method.clone(), path, body, Some(A)));
                assert!((400..500).contains(&status), "{method} {path} with token {at}: {status}");
                tried += 1;
            }
        }
    }
    assert_eq!(world.dump(), before);
    println!("{tried} tokens of other things, 0 let in");
}

#[test]
fn a_read_only_key_does_not_read_permissions() {
    let world = world();
    token(&world, "p", "All", "dbs/d/colls/c", None);
    for path in [PERMISSIONS, "/dbs/d/users/u/permissions/p"] {
        let signed = world.signed_to_read(&Method::GET, path);
        let status = world.send(Method::GET, path, "", &[("authorization", &signed)]).status();
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
    }
    let signed = world.signed_to_read(&Method::GET, "/dbs/d/users/u");
    let status = world.send(Method::GET, "/dbs/d/users/u", "", &[("authorization", &signed)]);
    assert_eq!(status.status(), StatusCode::OK);
}

#[test]
fn a_token_of_one_key_queries_that_key() {
    let world = world();
    let container = "dbs/d/colls/c";
    let read = token(&world, "read", "Read", container, None);
    let keyed = token(&world, "keyed", "Read", container, Some(A));
    let item = token(&world, "item", "All", "dbs/d/colls/c/docs/1", Some(A));
    let key = |key| ("x-ms-documentdb-partitionkey", key);
    let across = ("x-ms-documentdb-query-enablecrosspartition", "True");
    let query = ("x-ms-documentdb-isquery", "True");
    let plan = ("x-ms-cosmos-is-query-plan-request", "True");
    // What each of the three is answered: read, keyed, item.
    let range = ("x-ms-documentdb-partitionkeyrangeid", "0");
    let table = [
        (vec![query, key(A)], [200, 200, 403]),
        (vec![query, key(A), across, range], [200, 200, 403]),
        (vec![query, key(B)], [200, 403, 403]),
        (vec![query, across], [200, 403, 403]),
        (vec![query, range], [200, 403, 403]),
        (vec![plan], [200, 200, 403]),
    ];
    // A filter says what is wanted, not what is granted.
    let body = r#"{"query":"SELECT * FROM c WHERE c.pk = 'a'"}"#;
    for (headers, expected) in table {
        let answered = [&read, &keyed, &item].map(|token| {
            let headers = [headers.as_slice(), &[("authorization", token.as_str())]].concat();
            world.send(Method::POST, ITEMS, body, &headers).status().as_u16()
        });
        assert_eq!(answered, expected, "{headers:?}");
    }
}

#[test]
fn a_database_and_its_containers_may_be_called_docs() {
    let world = World::new();
    let definition = r#"{"id":"docs","partitionKey":{"paths":["/pk"],"version":2}}"#;
    for (path, body) in [
        ("/dbs", r#"{"id":"docs"}"#),
        ("/dbs/docs/colls", definition),
        ("/dbs/docs/colls/docs/docs", r#"{"id":"docs","pk":"a"}"#),
        ("/dbs/docs/colls/docs/docs", r#"{"id":"2","pk":"a"}"#),
        ("/dbs/docs/users", r#"{"id":"docs"}"#),
    ] {
        let created = world.send(Method::POST, path, body, &[]);
        assert_eq!(created.status(), StatusCode::CREATED, "{path}: {:?}", created.body());
    }
    for (resource, second) in [("dbs/docs/colls/docs", 200), ("dbs/docs/colls/docs/docs/docs", 403)]
    {
        let body = format!(r#"{{"id":"docs","permissionMode":"Read","resource":"{resource}"}}"#);
        let permissions = "/dbs/docs/users/docs/permissions";
        let upserts = [("x-ms-documentdb-is-upsert", "true")];
        let created = world.send(Method::POST, permissions, &body, &upserts);
        assert!(created.status().is_success(), "{resource}: {:?}", created.body());
        let token = token_of(created.body());
        let read = |path| ask(&world, &token, asked(Method::GET, path, "", Some(A)));
        assert_eq!(read("/dbs/docs/colls/docs/docs/docs"), 200, "{resource}");
        assert_eq!(read("/dbs/docs/colls/docs/docs/2"), second, "{resource}");
    }
}

/// As a tenant with a token for its name uses it: item by item and all at once.
#[test]
fn a_token_of_a_prefix_opens_the_items_below_it() {
    let world = world();
    let container = r#"{"id":"h","partitionKey":
        {"paths":["/tenant","/user","/at"],"kind":"MultiHash","version":2}}"#;
    assert_eq!(
        world.send(Method::POST, "/dbs/d/colls", container, &[]).status(),
        StatusCode::CREATED
    );
    let (items, one) = ("/dbs/d/colls/h/docs", "/dbs/d/colls/h/docs/1");
    let body = |tenant: &str| format!(r#"{{"id":"1","tenant":"{tenant}","user":"u","at":1}}"#);
    for tenant in ["t", "other"] {
        let key = format!(r#"["{tenant}","u",1]"#);
        let header = [("x-ms-documentdb-partitionkey", key.as_str())];
        let created = world.send(Method::POST, items, body(tenant), &header);
        assert_eq!(created.status(), StatusCode::CREATED);
    }
    let of = |id: &str, mode: &str, key: &str| token(&world, id, mode, "dbs/d/colls/h", Some(key));
    let tokens = [
        of("read", "Read", r#"["t"]"#),
        of("all", "All", r#"["t"]"#),
        of("user", "All", r#"["t","u"]"#),
        of("other user", "All", r#"["t","v"]"#),
        of("whole", "All", r#"["t","u",1]"#),
        of("none", "All", "[]"),
    ];
    let (own, foreign) = (r#"["t","u",1]"#, r#"["other","u",1]"#);
    let patch = r#"{"operations":[{"op":"set","path":"/n","value":1}]}"#;
    let (same, moved) = (body("t"), body("other"));
    let second = r#"{"id":"2","tenant":"t","user":"u","at":1}"#;
    // What each is answered: read, all, user, other user, whole, none.
    let table: [(Asked<'_>, [u16; 6]); 13] = [
        (asked(Method::GET, one, "", Some(own)), [200, 200, 200, 403, 200, 403]),
        (asked(Method::GET, one, "", Some(foreign)), [403; 6]),
        (asked(Method::GET, one, "", Some(r#"["t","u"]"#)), [400, 400, 400, 403, 403, 403]),
        (asked(Method::GET, one, "", Some("[]")), [403; 6]),
        (asked(Method::GET, one, "", None), [403; 6]),
        (asked(Method::PATCH, one, patch, Some(own)), [403, 200, 200, 403, 200, 403]),
        (asked(Method::PUT, one, &same, Some(own)), [403, 200, 200, 403, 200, 403]),
        // The document contains its key: it cannot be moved to another.
        (asked(Method::PUT, one, &moved, Some(own)), [403, 400, 400, 403, 400, 403]),
        (asked(Method::PUT, one, &moved, Some(foreign)), [403; 6]),
        (asked(Method::DELETE, one, "", Some(foreign)), [403; 6]),
        (asked(Method::GET, items, "", Some(r#"["t"]"#)), [200, 200, 403, 403, 403, 403]),
        (asked(Method::GET, items, "", Some(r#"["t","u"]"#)), [200, 200, 200, 403, 403, 403]),
        (asked(Method::GET, items, "", Some("[]")), [403; 6]),
    ];
    for (Asked { method, path, body, key }, expected) in table {
        let again = || Asked { method: method.clone(), path, body, key };
        let answered = tokens.each_ref().map(|token| ask(&world, token, again()));
        assert_eq!(answered, expected, "{method} {path} {key:?}");
    }
    let [_, all, ..] = &tokens;
    assert_eq!(ask(&world, all, asked(Method::POST, items, second, Some(own))), 201);
    assert_eq!(ask(&world, all, asked(Method::DELETE, one, "", Some(own))), 204);
}

/// The second key was made to have the hash of the first (see `testkit::collide`).
#[test]
fn a_token_of_a_colliding_key_opens_its_own() {
    let world = world();
    let victim = r#"["victim"]"#;
    let like = r#"["000000000000007@@@@CUEYBL]=&p3J~%\u0001N\u00098x;collided"]"#;
    for (key, n) in [(victim, 1), (like, 2)] {
        let pk = &key[1..key.len() - 1];
        let body = format!(r#"{{"id":"same","pk":{pk},"n":{n}}}"#);
        let header = [("x-ms-documentdb-partitionkey", key)];
        assert_eq!(world.send(Method::POST, ITEMS, &body, &header).status(), StatusCode::CREATED);
    }
    let token = token(&world, "like", "All", "dbs/d/colls/c", Some(like));
    let path = "/dbs/d/colls/c/docs/same";
    let read = |authorization: Option<&str>, key: &str| {
        let mut headers = vec![("x-ms-documentdb-partitionkey", key)];
        headers.extend(authorization.map(|token| ("authorization", token)));
        let answer = world.send(Method::GET, path, "", &headers);
        let body: Value = serde_json::from_slice(answer.body()).unwrap();
        (answer.status().as_u16(), body["n"].as_u64())
    };
    assert_eq!(read(Some(&token), like), (200, Some(2)));
    assert_eq!(read(Some(&token), victim).0, 403);
    assert_eq!(ask(&world, &token, asked(Method::DELETE, path, "", Some(like))), 204);
    assert_eq!(ask(&world, &token, asked(Method::GET, path, "", Some(like))), 404);
    assert_eq!(read(None, victim), (200, Some(1)));
}
