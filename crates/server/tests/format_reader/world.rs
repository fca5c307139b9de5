//! A database with something of everything, written over HTTP.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::path::PathBuf;

use runtime::{Random as _, SeededRandom};
use serde_json::{Value, json};
use wire_cosmos::EMULATOR_KEY;

use crate::client::{Reply, Signed, connect, create_database, send, send_signed};
use crate::program::{self, Program, command, run, text};

/// The smallest memory that the server takes; a tenth of it is a memtable.
const MEMORY: &str = "128MiB";
const MEMTABLE_BYTES: usize = (128 << 20) / 10;

/// Text that does not compress, in items of this size, fills a memtable with few requests.
const FILL_BYTES: usize = 1_000_000;

const SEED: u64 = 20_261_118;

/// Items of the container with ordinary items: enough for several index blocks in a table.
pub(crate) const PEOPLE: usize = 400;

/// Items as HTTP shows them, by container and then by resource id.
pub(crate) type Shown = BTreeMap<String, BTreeMap<String, Value>>;

/// A server on a folder of its own.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) data: PathBuf,
    server: Option<(Program, TcpStream)>,
    random: SeededRandom,
}

impl World {
    pub(crate) fn start() -> World {
        let (folder, data) = program::folder();
        let random = SeededRandom::new(SEED);
        let mut world = World { folder, data, server: None, random };
        world.resume();
        assert_eq!(create_database(world.stream(), "d").status, 201);
        for definition in definitions() {
            world.create_container(&definition);
        }
        world
    }

    /// Starts the server again.
    pub(crate) fn resume(&mut self) {
        let data = self.data.display().to_string();
        let server = Program::start(self.folder.path(), &["--data", &data, "--memory", MEMORY]);
        let stream = connect(server.address());
        self.server = Some((server, stream));
    }

    /// Stops it as an operator would.
    pub(crate) fn stop(&mut self) {
        let (server, stream) = self.server.take().expect("it is running");
        drop(stream);
        server.signal(rustix::process::Signal::TERM);
        let (status, errors) = server.wait();
        assert!(status.success(), "{errors}");
    }

    pub(crate) fn kill(&mut self) {
        let (server, _stream) = self.server.take().expect("it is running");
        server.kill();
    }

    /// Compacts the folder of a server that does not run.
    pub(crate) fn compact(&self) {
        let data = self.data.display().to_string();
        let done = run(command(self.folder.path()).args(["compact", "--data", &data]));
        assert!(done.status.success(), "{}", text(&done.stderr));
    }

    /// Backs up the folder of a server that does not run.
    pub(crate) fn back_up(&self) -> PathBuf {
        let (data, backup) = (self.data.display().to_string(), self.folder.path().join("backup"));
        let done =
            run(command(self.folder.path()).arg("backup").arg(&backup).args(["--data", &data]));
        assert!(done.status.success(), "{}", text(&done.stderr));
        backup
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.data.join("store")
    }

    fn stream(&mut self) -> &mut TcpStream {
        &mut self.server.as_mut().expect("it is running").1
    }

    fn create_container(&mut self, definition: &Value) {
        let create = Signed { method: "POST", path: "/dbs/d/colls", kind: "colls", link: "dbs/d" };
        let body = definition.to_string();
        let reply = send_signed(self.stream(), EMULATOR_KEY, create, "", &body);
        assert_eq!(reply.status, 201, "{}", reply.body);
    }

    pub(crate) fn drop_container(&mut self, name: &str) {
        let link = format!("dbs/d/colls/{name}");
        let path = format!("/{link}");
        let delete = Signed { method: "DELETE", path: &path, kind: "colls", link: &link };
        assert_eq!(send_signed(self.stream(), EMULATOR_KEY, delete, "", "").status, 204);
    }

    pub(crate) fn split(&mut self, container: &str, range: &str) {
        let bearer = format!("authorization: Bearer {EMULATOR_KEY}\r\n");
        let body = json!({ "container": format!("dbs/d/colls/{container}"), "range": range });
        let reply = send(self.stream(), "POST", "/_orrery/split", &bearer, &body.to_string());
        assert_eq!(reply.status, 200, "{}", reply.body);
    }

    /// Creates an item or replaces it.
    pub(crate) fn put(&mut self, container: &str, key: &Value, item: &Value) {
        let link = format!("dbs/d/colls/{container}");
        let path = format!("/{link}/docs");
        let upsert = Signed { method: "POST", path: &path, kind: "docs", link: &link };
        let headers = format!("{}x-ms-documentdb-is-upsert: True\r\n", key_header(key));
        let reply = send_signed(self.stream(), EMULATOR_KEY, upsert, &headers, &item.to_string());
        assert!(matches!(reply.status, 200 | 201), "{item}: {} {}", reply.status, reply.body);
    }

    pub(crate) fn delete(&mut self, container: &str, key: &Value, id: &str) {
        let link = format!("dbs/d/colls/{container}/docs/{id}");
        let path = format!("/{link}");
        let delete = Signed { method: "DELETE", path: &path, kind: "docs", link: &link };
        let reply = send_signed(self.stream(), EMULATOR_KEY, delete, &key_header(key), "");
        assert_eq!(reply.status, 204, "{}", reply.body);
    }

    /// One commit with several operations on one key.
    pub(crate) fn batch(&mut self, container: &str, key: &Value, items: &[Value]) {
        let operation = |item| json!({ "operationType": "Upsert", "resourceBody": item });
        let body: Value = items.iter().map(operation).collect();
        let link = format!("dbs/d/colls/{container}");
        let path = format!("/{link}/docs");
        let batch = Signed { method: "POST", path: &path, kind: "docs", link: &link };
        let headers = "x-ms-cosmos-is-batch-request: True\r\nx-ms-cosmos-batch-atomic: True\r\n";
        let headers = format!("{}{headers}", key_header(key));
        let reply = send_signed(self.stream(), EMULATOR_KEY, batch, &headers, &body.to_string());
        assert_eq!(reply.status, 200, "{}", reply.body);
    }

    /// Everything that a client sees.
    pub(crate) fn shown(&mut self) -> Shown {
        let names = self.list("dbs/d", "colls", "DocumentCollections");
        let names: Vec<String> =
            names.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
        let mut shown = Shown::new();
        for name in names {
            let items = self.list(&format!("dbs/d/colls/{name}"), "docs", "Documents");
            let by_rid =
                items.into_iter().map(|item| (item["_rid"].as_str().unwrap().to_owned(), item));
            shown.insert(name, by_rid.collect());
        }
        shown
    }

    fn list(&mut self, link: &str, kind: &str, member: &str) -> Vec<Value> {
        let (path, mut found) = (format!("/{link}/{kind}"), Vec::new());
        let mut continuation = String::new();
        loop {
            let read = Signed { method: "GET", path: &path, kind, link };
            let headers = format!("x-ms-max-item-count: 4\r\n{continuation}");
            let reply: Reply = send_signed(self.stream(), EMULATOR_KEY, read, &headers, "");
            assert_eq!(reply.status, 200, "{}", reply.body);
            found.extend(reply.json()[member].as_array().unwrap().iter().cloned());
            match reply.header("x-ms-continuation") {
                Some(next) => continuation = format!("x-ms-continuation: {next}\r\n"),
                None => return found,
            }
        }
    }

    /// Items of every kind. `round` makes those of one call differ from those of another.
    pub(crate) fn write_everything(&mut self, round: usize) {
        self.write_people(round);
        self.write_visits(round);
        self.write_old(round);
        self.write_keyless(round);
        self.write_accounts(round);
        self.write_shapes(round);
    }

    /// Arrays and objects, which entries show by their hashes.
    fn write_shapes(&mut self, round: usize) {
        let shapes = shapes();
        for (number, shape) in shapes.iter().enumerate() {
            let id = format!("shape-{round}-{number}");
            let next = &shapes[(number + 1) % shapes.len()];
            let item = json!({ "id": id, "shape": shape, "next": next, "plain": number % 2 });
            self.put("shapes", &json!([id]), &item);
        }
    }

    fn write_people(&mut self, round: usize) {
        for number in 0..PEOPLE / 2 {
            let (city, item) = person(round, number);
            self.put("people", &json!([city]), &item);
        }
        for number in (0..PEOPLE / 2).step_by(10) {
            let (city, item) = person(round, number);
            self.delete("people", &json!([city]), item["id"].as_str().unwrap());
        }
        for number in (1..PEOPLE / 2).step_by(10) {
            let (city, mut item) = person(round, number);
            item["replaced"] = json!(true);
            self.put("people", &json!([city]), &item);
        }
        let items: Vec<Value> = (0..3)
            .map(|at| json!({ "id": format!("batch-{round}-{at}"), "city": "Ulm" }))
            .collect();
        self.batch("people", &json!(["Ulm"]), &items);
        for (number, key) in odd_keys().into_iter().enumerate() {
            let mut item = json!({ "id": format!("odd-{round}-{number}"), "n": number });
            if !key.is_object() {
                item["city"] = key.clone();
            }
            self.put("people", &json!([key]), &item);
        }
    }

    fn write_visits(&mut self, round: usize) {
        for number in 0..20 {
            let (tenant, user) = (format!("t{}", number % 3), number % 5);
            let id = format!("visit-{round}-{number}");
            let item = json!({
                "id": id, "tenant": tenant, "user": user, "session": null,
                "at": { "day": number, "place": format!("place {}", number % 4) },
                "tags": ["a", number], "hidden": { "deep": number }, "note": "x".repeat(200),
            });
            self.put("visits", &json!([tenant, user, null]), &item);
        }
    }

    /// In containers whose items have no key, or need none.
    fn write_keyless(&mut self, round: usize) {
        for number in 0..3 {
            let id = format!("keyless-{round}-{number}");
            self.put("keyless", &json!([]), &json!({ "id": id, "number": number }));
            self.put("system", &json!([{}]), &json!({ "id": id }));
            let item = json!({ "id": id, "_partitionKey": id });
            self.put("system", &json!([id]), &item);
        }
    }

    fn write_old(&mut self, round: usize) {
        let long = "ä".repeat(120);
        let keys = [json!("short"), json!(long), json!(-2.5), json!(0), json!(1e300), json!(true)];
        for (number, key) in keys.into_iter().enumerate() {
            let item = json!({ "id": format!("old-{round}-{number}"), "key": key });
            self.put("old", &json!([key]), &item);
        }
    }

    pub(crate) fn write_accounts(&mut self, round: usize) {
        for number in 0..10 {
            let mail = format!("{number}@{round}");
            let item = json!({
                "id": mail, "bank": "b", "mail": mail, "ttl": 100_000 + number,
                "holder": {
                    "name": format!("h \"{number}\" \u{7} {round}"), "score": number as f64 / 8.0,
                    "odd": [1e21, -2.5e-9, 9_007_199_254_740_993_i64, -0.0, 1e18, true, null],
                },
            });
            self.put("accounts", &json!(["b"]), &item);
        }
    }

    /// Writes more than a memtable holds, so that it is flushed. Each call replaces what the
    /// one before wrote.
    pub(crate) fn write_bulk(&mut self) {
        for number in 0..MEMTABLE_BYTES / FILL_BYTES + 2 {
            let words = (0..FILL_BYTES / 16).map(|_| format!("{:016x}", self.random.next_u64()));
            let fill: String = words.collect();
            let id = format!("bulk-{number}");
            self.put("bulk", &json!([id]), &json!({ "id": id, "fill": fill }));
        }
    }
}

fn key_header(key: &Value) -> String {
    format!("x-ms-documentdb-partitionkey: {key}\r\n")
}

pub(crate) fn person(round: usize, number: usize) -> (String, Value) {
    let city = format!("city {}", number % 17);
    let item = json!({
        "id": format!("person-{round}-{number}"),
        "city": city,
        "age": number,
        "weight": number as f64 * 0.25 - 20.0,
        "name": { "first": format!("first {}", number % 7), "last": "žluťoučký\u{1F600}" },
        "tags": ["a", "b", number % 3, [number, null], { "deep": number }],
        "long": "long text ".repeat(number % 30),
        "empty": { "object": {}, "array": [] },
        "nothing": null,
        "yes": number.is_multiple_of(2),
        "zero": -0.0,
        "large": 1e21,
        "with \"quotes\" and / and \u{7}": "\u{0}",
    });
    (city, item)
}

/// Every type that a partition key can have; `{}` stands for a missing value.
fn odd_keys() -> Vec<Value> {
    vec![
        json!({}),
        json!(null),
        json!(true),
        json!(false),
        json!(-1.5),
        json!(0),
        json!(""),
        json!("\u{0}"),
    ]
}

/// Levels of the deepest array or object. The reader hashes each level by itself.
const SHAPE_LEVELS: usize = 40;

/// Arrays and objects that differ in what their hashes depend on.
fn shapes() -> Vec<Value> {
    let nested = |wrap: fn(Value) -> Value| (0..SHAPE_LEVELS).fold(json!(1), |at, _| wrap(at));
    vec![
        json!([]),
        json!({}),
        json!([[]]),
        json!([{}]),
        json!({ "": [] }),
        json!({ "a": {}, "b": { "c": [[], {}, [[]]] } }),
        json!([null, true, false, "", "x", 1, null]),
        // An example of the page.
        json!([true, -1.5, [], { "größe": [9_007_199_254_740_993_i64, "x"] }, false]),
        json!({ "null": null, "true": true, "false": false, "empty": "", "one": 1 }),
        Value::Array(numbers()),
        json!({ "größe": "ä", "日本": ["語"], "\u{1F600}": { "\u{0}\"\\/\n": "\u{1F600}\u{0}" } }),
        // Texts and names around the 16 bytes of a block.
        (0..40).map(|len| json!({ "n".repeat(len): "ž".repeat(len) })).collect(),
        (0..300).map(Value::from).collect(),
        nested(|inner| json!([inner])),
        nested(|inner| json!({ "in": inner, "at": [] })),
    ]
}

/// Integers on both sides of what a double has room for, and doubles that are none.
fn numbers() -> Vec<Value> {
    let mut numbers = vec![json!(-0.0), json!(0), json!(5.0), json!(-2.5e-9), json!(1e300)];
    for bits in 52..63 {
        let power = 1_i64 << bits;
        for beside in [power - 1, power, power + 1, power + 3, power + (power >> 1) + 1] {
            numbers.extend([json!(beside), json!(-beside)]);
        }
    }
    numbers.extend([json!(i64::MAX), json!(i64::MIN), json!(i64::MIN + 1)]);
    numbers.extend([json!(1_u64 << 63), json!(u64::MAX), json!(-18_446_744_073_709_551_616.0)]);
    numbers
}

fn definitions() -> Vec<Value> {
    let container = |id: &str, paths: Value| json!({ "id": id, "partitionKey": paths });
    let hash = |path: &str| json!({ "paths": [path], "kind": "Hash", "version": 2 });
    let mut people = container("people", hash("/city"));
    people["defaultTtl"] = json!(-1);
    people["changeFeedPolicy"] = json!({ "retentionDuration": 1_000 });
    let paths = json!(["/tenant", "/user", "/session"]);
    let mut visits =
        container("visits", json!({ "paths": paths, "kind": "MultiHash", "version": 2 }));
    visits["indexingPolicy"] = visits_policy();
    let old = container("old", json!({ "paths": ["/key"], "kind": "Hash" }));
    let mut accounts = container("accounts", hash("/bank"));
    accounts["defaultTtl"] = json!(1_000_000);
    accounts["uniqueKeyPolicy"] =
        json!({ "uniqueKeys": [{ "paths": ["/mail"] }, { "paths": ["/holder", "/missing"] }] });
    let mut shapes = container("shapes", hash("/id"));
    shapes["indexingPolicy"] = shapes_policy();
    let keyless = json!({ "id": "keyless" });
    let mut system = container("system", hash("/_partitionKey"));
    system["partitionKey"]["systemKey"] = json!(true);
    vec![
        keyless,
        system,
        people,
        visits,
        old,
        accounts,
        shapes,
        container("bulk", hash("/id")),
        container("dropped", hash("/id")),
    ]
}

fn visits_policy() -> Value {
    json!({
        "indexingMode": "consistent",
        "includedPaths": [
            { "path": "/at/*" }, { "path": "/tags/[]/?" }, { "path": "/missing/?" },
            { "path": "/user/?" }, { "path": "/hidden/deep/?" }, { "path": "/note/?" },
        ],
        "excludedPaths": [{ "path": "/*" }, { "path": "/at/place/?" }, { "path": "/\"_etag\"/?" }],
        "compositeIndexes": [
            [{ "path": "/user", "order": "descending" }, { "path": "/at/day", "order": "ascending" }],
            [{ "path": "/note", "order": "ascending" }, { "path": "/tenant", "order": "descending" },
             { "path": "/missing", "order": "ascending" }, { "path": "/id", "order": "ascending" }],
        ],
    })
}

/// Arrays and objects in every part of composite indexes, in both directions.
fn shapes_policy() -> Value {
    let part = |path: &str, order: &str| json!({ "path": path, "order": order });
    json!({
        "indexingMode": "consistent",
        "includedPaths": [{ "path": "/*" }],
        "excludedPaths": [{ "path": "/next/*" }],
        "compositeIndexes": [
            [part("/plain", "ascending"), part("/shape", "ascending")],
            [part("/shape", "descending"), part("/next", "ascending")],
            [part("/next", "ascending"), part("/shape/b", "descending"), part("/shape", "descending")],
        ],
    })
}
