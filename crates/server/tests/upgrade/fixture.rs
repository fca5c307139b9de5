//! Unpacking fixtures, and asking again what was recorded with them.

use std::fs;
use std::io::Read as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;
use wire_cosmos::EMULATOR_KEY;

use crate::client::{Reply, Signed, send_signed};

/// A data folder that an older version, or this one, has left.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fixture {
    /// Version 1, stopped.
    V1,
    /// Version 1, killed: all of it is in the journal.
    V1Killed,
    /// Version 2, stopped.
    V2,
    /// Version 2, killed.
    V2Killed,
}

impl Fixture {
    pub(crate) const ALL: [Fixture; 4] =
        [Fixture::V1, Fixture::V1Killed, Fixture::V2, Fixture::V2Killed];

    /// The contents version.
    pub(crate) fn version(self) -> u32 {
        match self {
            Fixture::V1 | Fixture::V1Killed => 1,
            Fixture::V2 | Fixture::V2Killed => 2,
        }
    }
}

impl Fixture {
    fn file(self, extension: &str) -> PathBuf {
        let name = match self {
            Fixture::V1 => "v1",
            Fixture::V1Killed => "v1-killed",
            Fixture::V2 => "v2",
            Fixture::V2Killed => "v2-killed",
        };
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(format!("{name}.{extension}"))
    }
}

/// Blocks of a tar archive.
const BLOCK_BYTES: usize = 512;

/// Unpacks a fixture into the folder `data` of a new folder.
pub(crate) fn unpack(fixture: Fixture) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = Vec::new();
    let packed = fs::File::open(fixture.file("tar.gz")).unwrap();
    GzDecoder::new(packed).read_to_end(&mut archive).unwrap();
    let mut rest = archive.as_slice();
    while let Some((header, content)) = rest.split_at_checked(BLOCK_BYTES) {
        let field = |range: std::ops::Range<usize>| {
            let text = std::str::from_utf8(&header[range]).unwrap();
            text.trim_end_matches(['\0', ' ']).to_owned()
        };
        let name = field(0..100);
        if name.is_empty() {
            break;
        }
        let len = usize::from_str_radix(&field(124..136), 8).unwrap();
        let path = folder.path().join("data").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &content[..len]).unwrap();
        rest = &content[len.next_multiple_of(BLOCK_BYTES)..];
    }
    // The engine's folders of tables may be empty, and archives have files only.
    for keyspace in ["0", "1"] {
        let tables = folder.path().join("data/store/keyspaces").join(keyspace).join("tables");
        fs::create_dir_all(tables).unwrap();
    }
    folder
}

/// Sends every recorded request, queries through indexes and as scans, and compares the
/// answers.
pub(crate) fn replay(stream: &mut TcpStream, fixture: Fixture) {
    let recorded: Value = serde_json::from_slice(&fs::read(fixture.file("json")).unwrap()).unwrap();
    let recorded = recorded.as_array().unwrap();
    assert!(recorded.len() > 50, "{} requests", recorded.len());
    for request in recorded {
        let is_query = request["headers"].get("x-ms-documentdb-isquery").is_some();
        let approaches: &[&str] = if is_query { &["index", "scan"] } else { &["index"] };
        for approach in approaches {
            let reply = ask(stream, request, approach);
            let place = format!("{fixture:?} {approach} {request}");
            assert_eq!(reply.status, 200, "{place}\n{}", reply.body);
            let is_ordered = request["ordered"].as_bool().unwrap();
            let (found, expected) = (reply.json(), request["answer"].clone());
            assert_eq!(comparable(found, is_ordered), comparable(expected, is_ordered), "{place}");
        }
    }
}

fn ask(stream: &mut TcpStream, request: &Value, approach: &str) -> Reply {
    let text = |name: &str| request[name].as_str().unwrap();
    let signed = Signed {
        method: text("method"),
        path: text("path"),
        kind: text("kind"),
        link: text("link"),
    };
    let mut headers = format!(
        "x-ms-version: 2020-07-15\r\nx-ms-cosmos-sdk-supportedcapabilities: 1\r\n\
         x-orrery-query-approach: {approach}\r\n"
    );
    for (name, value) in request["headers"].as_object().unwrap() {
        headers.push_str(&format!("{name}: {}\r\n", value.as_str().unwrap()));
    }
    send_signed(stream, EMULATOR_KEY, signed, &headers, text("body"))
}

/// Without what a version may change: the names that have the ordinal in them, tokens that
/// have the time in them, and where no order was asked for, the order.
fn comparable(answer: Value, is_ordered: bool) -> Value {
    match answer {
        Value::Object(members) => {
            let kept = members
                .into_iter()
                .filter(|(name, _)| !["_rid", "_self", "_token"].contains(&name.as_str()));
            kept.map(|(name, value)| (name, comparable(value, is_ordered))).collect()
        }
        Value::Array(values) => {
            let mut values: Vec<_> =
                values.into_iter().map(|value| comparable(value, is_ordered)).collect();
            if !is_ordered {
                values.sort_by_key(ToString::to_string);
            }
            Value::Array(values)
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}
