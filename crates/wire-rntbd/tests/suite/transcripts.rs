//! Transcripts of the protocol: one request and its whole answer at a time.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use bytes::Bytes;
use protocol::auth::EMULATOR_KEY;
use wire_rntbd::DirectAnswer;
use wire_rntbd::codec::{OperationType, ResponseHead, TokenValue, response};

use crate::world::{Asked, READ_KEY, WRONG_KEY, World, assert_complete, head_bytes};

/// Tokens that are the same in all answers, or differ with the machine. [`assert_complete`] looks
/// at those that have to be there.
const QUIET: [&str; 12] = [
    "PayloadPresent",
    "SchemaVersion",
    "CurrentWriteQuorum",
    "CurrentReplicaSetSize",
    "NumberOfReadRegions",
    "TransportRequestId",
    "QuorumAckedLsn",
    "GlobalCommittedLsn",
    "LocalLsn",
    "QuorumAckedLocalLsn",
    "ItemLocalLsn",
    "BackendRequestDurationMs",
];

const OPERATIONS: [(&str, OperationType); 10] = [
    ("create", OperationType::Create),
    ("upsert", OperationType::Upsert),
    ("read", OperationType::Read),
    ("replace", OperationType::Replace),
    ("patch", OperationType::Patch),
    ("delete", OperationType::Delete),
    ("list", OperationType::ReadFeed),
    ("query", OperationType::Query),
    ("head", OperationType::Head),
    ("batch", OperationType::Batch),
];

impl goldenscript::Runner for World {
    type Command = goldenscript::Command;

    /// `database ID`, `container DATABASE DEFINITION [throughput]` and `drop LINK` are what clients
    /// do over HTTP; `container` prints the resource id. All others are operations:
    /// `OPERATION PATH [payload] [at=RID/RANGE] [signed=read|wrong|none] [TOKEN=value …]`, with
    /// tokens by the names that the table gives them; without `at` they go to the master partition.
    fn run(
        &mut self,
        command: &goldenscript::Command,
        _: &goldenscript::Context,
    ) -> Result<String, Box<dyn Error>> {
        let mut args = command.consume_args();
        let mut text = |what| args.next_pos().map(str::to_owned).ok_or(what);
        match command.name.as_str() {
            "database" => {
                self.create("", &format!(r#"{{"id":"{}"}}"#, text("an id")?), None);
                return Ok(String::new());
            }
            "container" => {
                let (database, definition) = (text("a database")?, text("a definition")?);
                let rate = args.next_pos().map(str::parse).transpose()?;
                return Ok(self.create(&format!("dbs/{database}"), &definition, rate) + "\n");
            }
            "drop" => {
                self.drop(&text("a link")?);
                return Ok(String::new());
            }
            _ => {}
        }
        let operation = OPERATIONS.iter().find(|(name, _)| *name == command.name);
        let (_, operation) = *operation.ok_or_else(|| format!("unknown: {}", command.name))?;
        let path = text("a path")?;
        let payload = args.next_pos().map(|text| Bytes::copy_from_slice(text.as_bytes()));
        let at = args.take_key("at").unwrap_or_default().to_owned();
        let key = match args.take_key("signed") {
            None => Some(EMULATOR_KEY),
            Some("read") => Some(READ_KEY),
            Some("wrong") => Some(WRONG_KEY),
            Some("none") => None,
            Some(other) => return Err(format!("unknown key {other}").into()),
        };
        let mut tokens = Vec::new();
        while let Some((name, value)) = args.next_key() {
            tokens.push((name.to_owned(), value.to_owned()));
        }
        let is_master = at.split_once('/').is_none_or(|(_, range)| range.parse::<u32>().is_err());
        let answer = self.ask(&Asked { operation, path, at, payload, key, tokens });
        assert_complete(&answer, is_master);
        Ok(shown(&answer))
    }
}

/// Status, tokens and payload.
fn shown(answer: &DirectAnswer) -> String {
    let head = ResponseHead::read(&answer.head[..head_bytes(answer)]).unwrap();
    let mut out = head.status.to_string();
    for token in head.tokens.iter() {
        let token = token.unwrap();
        let row = response::TABLE.row(token.id).unwrap();
        if !QUIET.contains(&row.name) {
            write!(out, " {}={}", row.name, value(token.value)).unwrap();
        }
    }
    out.push('\n');
    if !answer.payload.is_empty() {
        writeln!(out, "{}", String::from_utf8_lossy(&answer.payload)).unwrap();
    }
    out
}

#[expect(clippy::wildcard_enum_match_arm, reason = "types of tokens that answers have")]
fn value(value: TokenValue<'_>) -> String {
    match value {
        TokenValue::Byte(value) => value.to_string(),
        TokenValue::ULong(value) => value.to_string(),
        TokenValue::LongLong(value) => value.to_string(),
        TokenValue::Double(value) => format!("{value:.2}"),
        TokenValue::SmallString(text) | TokenValue::String(text) => text.to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn transcripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut count = 0;
    for path in paths {
        goldenscript::run(&mut World::new(), &path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        count += 1;
    }
    assert!(count > 0, "there are no scripts");
}
