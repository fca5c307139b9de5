//! Every route with every wrong credential: nothing is let in, nothing changes.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use wire_cosmos::{EMULATOR_KEY, HttpHead};

use crate::world::{READ_KEY, WRONG_KEY, World, claimed, sign};

pub(crate) const ROUTES: [&str; 27] = [
    "/",
    "/dbs",
    "/dbs/d",
    "/dbs/d/colls",
    "/dbs/d/colls/c",
    "/dbs/d/colls/c/docs",
    "/dbs/d/colls/c/docs/1",
    "/dbs/d/colls/c/pkranges",
    "/dbs/d/colls/c/sprocs",
    "/dbs/d/colls/c/sprocs/s",
    "/dbs/d/colls/c/triggers",
    "/dbs/d/colls/c/triggers/t",
    "/dbs/d/colls/c/udfs",
    "/dbs/d/colls/c/udfs/f",
    "/dbs/d/colls/c/conflicts",
    "/dbs/d/colls/c/conflicts/x",
    "/dbs/d/colls/c/docs/1/attachments",
    "/dbs/d/colls/c/operations/partitionkeydelete",
    "/dbs/d/users",
    "/dbs/d/users/u",
    "/dbs/d/users/u/permissions",
    "/dbs/d/users/u/permissions/p",
    "/dbs/d/clientencryptionkeys",
    "/dbs/d/clientencryptionkeys/k",
    "/offers",
    "/offers/AAAB",
    "/nothing/here",
];
pub(crate) const METHODS: [Method; 6] =
    [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::HEAD];

/// A credential that must not authorise this method and path.
fn wrong_credentials(world: &World, method: &Method, path: &str) -> Vec<Option<String>> {
    let now = world.date(0);
    let (verb, resource, link) = claimed(method, path);
    let other_verb = if verb == "GET" { "DELETE" } else { "GET" };
    let other_resource = if resource == "docs" { "colls" } else { "docs" };
    let right = sign(EMULATOR_KEY, &verb, &resource, &link, &now);
    vec![
        None,
        Some(String::new()),
        Some("garbage".to_owned()),
        Some("type=master&ver=1.0&sig=".to_owned()),
        Some("type=master&ver=1.0&sig=AAAA".to_owned()),
        Some("type=aad&ver=1.0&sig=eyJhbGciOiJub25lIn0.e30.".to_owned()),
        Some("type=resource&ver=1&sig=AAAA".to_owned()),
        Some(format!("Bearer {EMULATOR_KEY}")),
        Some(EMULATOR_KEY.to_owned()),
        Some(sign(WRONG_KEY, &verb, &resource, &link, &now)),
        Some(sign(EMULATOR_KEY, other_verb, &resource, &link, &now)),
        Some(sign(EMULATOR_KEY, &verb, other_resource, &link, &now)),
        Some(sign(EMULATOR_KEY, &verb, &resource, &format!("{link}x"), &now)),
        Some(sign(EMULATOR_KEY, &verb, &resource, &format!("/{link}"), &now)),
        Some(sign(EMULATOR_KEY, &verb, &resource, &link.to_uppercase(), &now))
            .filter(|_| link != link.to_uppercase()),
        // The right signature of another moment.
        Some(sign(EMULATOR_KEY, &verb, &resource, &link, &world.date(1))),
        Some(right.replace("master", "Master2")),
        Some(right.get(..right.len() - 6).unwrap_or_default().to_owned()),
    ]
}

fn ask(
    world: &World,
    method: &Method,
    path: &str,
    body: &str,
    token: Option<&str>,
) -> (StatusCode, Bytes) {
    let mut headers = HeaderMap::new();
    headers.insert("x-ms-date", HeaderValue::from_str(&world.date(0)).unwrap());
    headers.insert("x-ms-documentdb-partitionkey", HeaderValue::from_static("[\"a\"]"));
    if let Some(token) = token {
        headers.insert("authorization", HeaderValue::from_str(token).unwrap());
    }
    let (method, path) = (method.clone(), path.to_owned());
    let head = HttpHead { method, path, query: None, headers, scheme: "http" };
    let response = world.ask(head, Bytes::copy_from_slice(body.as_bytes()));
    (response.status(), response.into_body())
}

fn allowed(world: &World, method: &Method, path: &str, body: &str) -> (StatusCode, Bytes) {
    let (verb, resource, link) = claimed(method, path);
    let token = sign(EMULATOR_KEY, &verb, &resource, &link, &world.date(0));
    ask(world, method, path, body, Some(&token))
}

/// A database with one of everything.
pub(crate) fn furnished() -> World {
    let world = World::new();
    let bodies = [
        ("/dbs", r#"{"id":"d"}"#),
        ("/dbs/d/colls", r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#),
        ("/dbs/d/colls/c/docs", r#"{"id":"1","pk":"a"}"#),
        ("/dbs/d/colls/c/sprocs", r#"{"id":"s","body":"function () {}"}"#),
        ("/dbs/d/users", r#"{"id":"u"}"#),
    ];
    for (path, body) in bodies {
        assert_eq!(allowed(&world, &Method::POST, path, body).0, StatusCode::CREATED, "{path}");
    }
    world
}

#[test]
fn no_wrong_credential_opens_any_route() {
    let world = furnished();
    let before = world.dump();
    let body = r#"{"id":"2","pk":"a"}"#;
    let mut tried = 0;
    for path in ROUTES {
        for method in &METHODS {
            for (at, token) in wrong_credentials(&world, method, path).iter().enumerate() {
                let (status, answer) = ask(&world, method, path, body, token.as_deref());
                let turned_away =
                    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
                assert!(turned_away, "{method} {path} with credential {at}: {status} {answer:?}");
                tried += 1;
            }
        }
    }
    assert_eq!(world.dump(), before);
    println!("{tried} wrong credentials, 0 let in");
}

#[test]
fn a_read_only_key_changes_nothing() {
    let world = furnished();
    let before = world.dump();
    for path in ROUTES {
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let (verb, resource, link) = claimed(&method, path);
            let token = sign(READ_KEY, &verb, &resource, &link, &world.date(0));
            let (status, _) = ask(&world, &method, path, r#"{"id":"2","pk":"a"}"#, Some(&token));
            assert!(status.is_client_error(), "{method} {path}: {status}");
        }
    }
    assert_eq!(world.dump(), before);
}
