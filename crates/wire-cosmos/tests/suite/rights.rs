//! Who may do what: every method of every route with every kind of credential, as a table.

use std::fmt::Write as _;

use http::Method;
use wire_cosmos::EMULATOR_KEY;

use crate::authorisation::{METHODS, ROUTES, furnished};
use crate::provider::{claims, signed, with_key, worthless};
use crate::world::{READ_KEY, World, claimed, sign};

/// The kinds of credentials, by what the table calls them.
const CREDENTIALS: [&str; 12] = [
    "none",
    "full",
    "read",
    "token:read",
    "token:all",
    "token:item",
    "aad:reader",
    "aad:writer",
    "aad:create",
    "aad:other",
    "aad:nobody",
    "aad:key",
];

const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);

/// One of everything, permissions and roles.
fn world() -> World {
    let world = furnished();
    for (who, role, scope) in [
        ("reader", "1", "/"),
        ("writer", "2", "/"),
        ("create", "sqlDatabases/containers/items/create", "/dbs/d/colls/c"),
        ("other", "2", "/dbs/e"),
    ] {
        world.assign(who, role, scope).unwrap();
    }
    world
}

fn permission(world: &World, mode: &str, resource: &str) -> String {
    let body = format!(r#"{{"id":"x","permissionMode":"{mode}","resource":"{resource}"}}"#);
    let path = "/dbs/d/users/u/permissions";
    let created = world.send(Method::POST, path, body, &[]);
    let created: serde_json::Value = serde_json::from_slice(created.body()).unwrap();
    world.send(Method::DELETE, &format!("{path}/x"), "", &[]);
    created["_token"].as_str().unwrap().to_owned()
}

fn credential(world: &World, kind: &str, method: &Method, path: &str) -> String {
    let by = |key| {
        let (verb, resource, link) = claimed(method, path);
        sign(key, &verb, &resource, &link, &world.date(0))
    };
    match kind {
        "none" => String::new(),
        "full" => by(EMULATOR_KEY),
        "read" => by(READ_KEY),
        "token:read" => permission(world, "Read", "dbs/d/colls/c"),
        "token:all" => permission(world, "All", "dbs/d/colls/c"),
        "token:item" => permission(world, "All", "dbs/d/colls/c/docs/1"),
        "aad:key" => with_key(&claims(world, "sdk"), EMULATOR_KEY),
        aad => signed(&claims(world, aad.trim_start_matches("aad:"))),
    }
}

/// Bodies that are right, so that rights decide.
fn body(method: &Method, path: &str) -> String {
    let name = if *method == Method::POST { "new" } else { path.rsplit('/').next().unwrap() };
    let has = |part: &str| path.contains(part);
    match *method {
        Method::PATCH => r#"{"operations":[{"op":"set","path":"/n","value":1}]}"#.to_owned(),
        Method::GET | Method::HEAD | Method::DELETE => String::new(),
        _ if path.ends_with("/sprocs/s") && *method == Method::POST => "[]".to_owned(),
        _ if has("/docs") => format!(r#"{{"id":"{name}","pk":"a"}}"#),
        _ if has("/triggers") => format!(
            r#"{{"id":"{name}","body":"function () {{}}","triggerType":"Pre","triggerOperation":"All"}}"#
        ),
        _ if has("/sprocs") || has("/udfs") => {
            format!(r#"{{"id":"{name}","body":"function () {{}}"}}"#)
        }
        _ if has("/permissions") => {
            format!(r#"{{"id":"{name}","permissionMode":"Read","resource":"dbs/d/colls/c"}}"#)
        }
        _ if has("/colls") => {
            format!(r#"{{"id":"{name}","partitionKey":{{"paths":["/pk"],"version":2}}}}"#)
        }
        _ => format!(r#"{{"id":"{name}"}}"#),
    }
}

fn ask(world: &World, kind: &str, method: &Method, path: &str) -> String {
    let token = credential(world, kind, method, path);
    let headers = [("authorization", token.as_str()), KEY];
    let answer = world.send(method.clone(), path, body(method, path), &headers);
    let substatus = answer.headers().get("x-ms-substatus").map(|value| value.to_str().unwrap());
    let status = answer.status().as_u16();
    substatus.map_or_else(|| status.to_string(), |substatus| format!("{status}/{substatus}"))
}

impl World {
    /// The table, a line for each method and route. A world in which something was changed
    /// is not used again.
    pub(crate) fn rights() -> String {
        let mut out = format!("{:58}", "");
        for kind in CREDENTIALS {
            write!(out, "{kind:>12}").unwrap();
        }
        let mut fresh = world();
        let mut clean = fresh.dump();
        for path in ROUTES {
            for method in &METHODS {
                write!(out, "\n{:7}{path:51}", method.as_str()).unwrap();
                for kind in CREDENTIALS {
                    write!(out, "{:>12}", ask(&fresh, kind, method, path)).unwrap();
                    if ![Method::GET, Method::HEAD].contains(method) && fresh.dump() != clean {
                        fresh = world();
                        clean = fresh.dump();
                    }
                }
            }
        }
        out.push('\n');
        out
    }
}

#[test]
fn no_worthless_token_opens_any_route() {
    let world = world();
    world.assign("ada", "2", "/").unwrap();
    let good = signed(&claims(&world, "ada"));
    let read = |path: &str, token: &str| {
        world.send(Method::GET, path, "", &[("authorization", token), KEY]).status().as_u16()
    };
    assert_eq!(read("/dbs/d/colls/c/docs/1", &good), 200);
    let (before, mut tried) = (world.dump(), 0);
    for path in ROUTES {
        for method in &METHODS {
            for (what, token) in worthless(&world) {
                let headers = [("authorization", token.as_str()), KEY];
                let answer = world.send(method.clone(), path, body(method, path), &headers);
                assert_eq!(answer.status().as_u16(), 401, "{method} {path} with {what}");
                tried += 1;
            }
        }
    }
    assert_eq!(world.dump(), before);
    println!("{tried} worthless tokens, 0 let in");
}

/// A refusal must not show what it refuses.
#[test]
fn no_answer_repeats_a_credential() {
    let world = world();
    let secrets = worthless(&world).into_iter().map(|(_, token)| token);
    let secrets = secrets.chain([with_key(&claims(&world, "sdk"), EMULATOR_KEY)]);
    for secret in secrets {
        let answer =
            world.send(Method::POST, "/dbs", r#"{"id":"e"}"#, &[("authorization", &secret)]);
        let shown = format!("{:?} {}", answer.headers(), String::from_utf8_lossy(answer.body()));
        for part in secret.split(['.', '=']).filter(|part| part.len() > 8) {
            assert!(!shown.contains(part), "{shown}");
        }
        assert!(!shown.contains(EMULATOR_KEY), "{shown}");
    }
}

#[test]
fn a_rotated_key_takes_its_tokens_along() {
    let world = world();
    let token = with_key(&claims(&world, "sdk"), EMULATOR_KEY);
    let resource = permission(&world, "Read", "dbs/d/colls/c");
    let read = |token: &str| {
        let headers = [("authorization", token), KEY];
        world.send(Method::GET, "/dbs/d/colls/c/docs/1", "", &headers).status().as_u16()
    };
    assert_eq!((read(&token), read(&resource)), (200, 200));
    let new = service::identity::AccountKey::parse(crate::world::WRONG_KEY).unwrap();
    world.keys.replace(service::identity::AccountKeyKind::Primary, new);
    assert_eq!((read(&token), read(&resource)), (401, 401));
}
