//! A running server and a client with short calls.

use std::fmt::Write as _;

use model::epk::{Epk, EpkRange};
use model::json;
use model::partition_key::{PartitionKey, PartitionKeyDefinition};
use serde_json::{Value, json as j};
use wire_cosmos::EMULATOR_KEY;

use crate::client::{self, Reply, Signed};
use crate::program::Program;

/// A server with a database `d`.
pub(crate) struct World {
    program: Program,
}

/// One physical partition as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) id: String,
    pub(crate) bounds: EpkRange,
    pub(crate) parents: Vec<String>,
}

impl World {
    pub(crate) fn new() -> World {
        World::with(&[])
    }

    /// A server started with further arguments.
    pub(crate) fn with(arguments: &[&str]) -> World {
        let arguments: Vec<&str> = ["--in-memory"].iter().chain(arguments).copied().collect();
        let world = World { program: Program::start(&std::env::temp_dir(), &arguments) };
        world.post("/dbs", &[], &j!({"id": "d"})).expect(201);
        world
    }

    /// A container `c` with this key path and throughput.
    pub(crate) fn container(&self, path: &str, throughput: u32) -> Answer {
        self.create(&j!({"id": "c", "partitionKey": key(path)}), throughput)
    }

    pub(crate) fn create(&self, definition: &Value, throughput: u32) -> Answer {
        let throughput = throughput.to_string();
        self.post("/dbs/d/colls", &[("x-ms-offer-throughput", &throughput)], definition)
    }

    pub(crate) fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send("GET", path, headers, "")
    }

    /// The same with a resource token instead of the account's key.
    pub(crate) fn get_as(&self, token: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let token = token.replace('=', "%3D").replace('&', "%26").replace(';', "%3B");
        let lines = format!("authorization: {token}\r\n{}", lines(headers));
        let mut stream = client::connect(self.program.address());
        Answer(client::send(&mut stream, "GET", path, &lines, ""))
    }

    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        self.send("POST", path, headers, &body.to_string())
    }

    /// Creates an item of `c` without a key header: the server extracts the key.
    pub(crate) fn create_item(&self, item: &Value) -> Answer {
        self.post("/dbs/d/colls/c/docs", &[], item)
    }

    pub(crate) fn read_item(&self, key: &Value, id: &str) -> Answer {
        self.get(&format!("/dbs/d/colls/c/docs/{id}"), &[(PARTITION_KEY, &j!([key]).to_string())])
    }

    pub(crate) fn delete_item(&self, key: &Value, id: &str) -> Answer {
        let key = j!([key]).to_string();
        self.send("DELETE", &format!("/dbs/d/colls/c/docs/{id}"), &[(PARTITION_KEY, &key)], "")
    }

    pub(crate) fn replace_item(&self, key: &Value, item: &Value) -> Answer {
        let (key, id) = (j!([key]).to_string(), item["id"].as_str().unwrap_or_default());
        let path = format!("/dbs/d/colls/c/docs/{id}");
        self.send("PUT", &path, &[(PARTITION_KEY, &key)], &item.to_string())
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let (kind, link) = signed_of(path);
        let request = Signed { method, path, kind: &kind, link: &link };
        let mut stream = client::connect(self.program.address());
        Answer(client::send_signed(&mut stream, EMULATOR_KEY, request, &lines(headers), body))
    }

    /// A call of the operator.
    pub(crate) fn operate(&self, method: &str, path: &str, body: &Value) -> Answer {
        let headers = format!("authorization: Bearer {EMULATOR_KEY}\r\n");
        let mut stream = client::connect(self.program.address());
        let body = if body.is_null() { String::new() } else { body.to_string() };
        Answer(client::send(&mut stream, method, path, &headers, &body))
    }

    /// The physical partitions of `c`, in the order of their hashes.
    pub(crate) fn ranges(&self) -> Vec<Range> {
        let feed = self.get("/dbs/d/colls/c/pkranges", &[]).expect(200).json();
        let ranges = feed["PartitionKeyRanges"].as_array().expect("a feed has a list");
        let mut ranges: Vec<Range> = ranges.iter().map(range).collect();
        ranges.sort_by(|a, b| a.bounds.min.cmp(&b.bounds.min));
        ranges
    }

    /// The offer of `c` as it stands.
    pub(crate) fn offer(&self) -> Value {
        let container = self.get("/dbs/d/colls/c", &[]).expect(200).json();
        let offers = self.get("/offers", &[]).expect(200).json();
        let offers = offers["Offers"].as_array().expect("a feed has a list").clone();
        let ours = |offer: &Value| offer["offerResourceId"] == container["_rid"];
        offers.into_iter().find(ours).expect("the container has an offer")
    }

    pub(crate) fn set_throughput(&self, throughput: u32) -> Answer {
        let mut offer = self.offer();
        offer["content"]["offerThroughput"] = throughput.into();
        let path = format!("/offers/{}", offer["_rid"].as_str().expect("a resource id"));
        self.send("PUT", &path, &[], &offer.to_string())
    }
}

fn lines(headers: &[(&str, &str)]) -> String {
    headers.iter().fold(String::new(), |mut lines, (name, value)| {
        let _ = write!(lines, "{name}: {value}\r\n");
        lines
    })
}

/// How often a condition is checked, and the time between. Minutes, even if checking took
/// no time: only what never happens takes as long.
const LOOKS_MAX: usize = 60_000;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(5);

/// Asks every few milliseconds until there is an answer.
#[allow(clippy::disallowed_methods, reason = "waits for another process")]
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    for _ in 0..LOOKS_MAX {
        if let Some(answer) = ask() {
            return answer;
        }
        std::thread::sleep(PAUSE);
    }
    panic!("{what} does not happen");
}

const PARTITION_KEY: &str = "x-ms-documentdb-partitionkey";

/// An answer that explains failed expectations.
#[derive(Debug)]
pub(crate) struct Answer(Reply);

impl Answer {
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Answer {
        assert_eq!(self.0.status, status, "{}\n{}", self.0.head, self.0.body);
        self
    }

    /// Refused with this status and a message that says so.
    #[track_caller]
    pub(crate) fn refused(self, status: u16, text: &str) -> Answer {
        let answer = self.expect(status);
        assert!(answer.0.body.contains(text), "{text:?} is not in {}", answer.0.body);
        answer
    }

    pub(crate) fn json(&self) -> Value {
        self.0.json()
    }

    pub(crate) fn body(&self) -> &str {
        &self.0.body
    }

    pub(crate) fn status(&self) -> u16 {
        self.0.status
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.0.header(name).unwrap_or_default()
    }

    pub(crate) fn charge(&self) -> f64 {
        self.header("x-ms-request-charge").parse().expect("every answer has a charge")
    }

    /// The id of the range that served it: what precedes the position in the session token.
    pub(crate) fn served_by(&self) -> &str {
        self.header("x-ms-session-token").split(':').next().unwrap_or_default()
    }
}

pub(crate) fn key(path: &str) -> Value {
    j!({"paths": [path], "kind": "Hash", "version": 2})
}

/// The position of a key on the ring, computed here.
pub(crate) fn epk(version: u32, value: &Value) -> Epk {
    let definition = j!({"paths": ["/k"], "kind": "Hash", "version": version}).to_string();
    let definition = json::parse(definition.as_bytes()).expect("it was just written");
    let definition = PartitionKeyDefinition::parse(&definition).expect("a good definition");
    let key = PartitionKey::parse_json(&j!([value]).to_string()).expect("a good key");
    definition.epk(&key).expect("a key of that definition")
}

fn range(value: &Value) -> Range {
    let text = |name: &str| value[name].as_str().unwrap_or_else(|| panic!("{name} in {value}"));
    let bound = |name| Epk::from_hex(text(name)).expect("bounds are hexadecimal");
    let parents = value["parents"].as_array().expect("parents are a list");
    Range {
        id: text("id").to_owned(),
        bounds: EpkRange::new(bound("minInclusive"), bound("maxExclusive")),
        parents: parents.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect(),
    }
}

/// What a client signs for a path: kind and link.
fn signed_of(path: &str) -> (String, String) {
    let path = path.split('?').next().unwrap_or_default().trim_matches('/');
    let segments: Vec<&str> = path.split('/').collect();
    match segments.as_slice() {
        ["offers", rid] => ("offers".to_owned(), rid.to_lowercase()),
        [link @ .., kind] if segments.len() % 2 == 1 => ((*kind).to_owned(), link.join("/")),
        [.., kind, _] => ((*kind).to_owned(), path.to_owned()),
        _ => (String::new(), String::new()),
    }
}
