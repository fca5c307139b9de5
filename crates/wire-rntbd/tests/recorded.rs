//! Frames that the .NET SDK sent and got, and one of the service itself, against the codec.
//!
//! The files live outside the repository. Without them each test reports in one line what it
//! skipped; in CI it fails instead.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop at the first surprise too")]

use serde_json::{Value as Json, json};
use wire_rntbd::codec::{
    ContextAnswer, ContextRequest, Extent, FrameWriter, OperationType, RequestHead, ResourceType,
    ResponseHead, Table, Token, TokenValue, Tokens, context_request, context_response,
    is_context_request, request, response,
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/direct");

/// The text of a shared file; `None` where it is absent and need not be there.
#[expect(clippy::print_stdout, reason = "says what is not tested")]
fn shared(name: &str) -> Option<String> {
    let path = format!("{FOLDER}/{name}");
    let text = std::fs::read_to_string(&path).ok();
    let required = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(text.is_some() || !required, "{path} is required in CI");
    if text.is_none() {
        println!("skipped: there is no {path}");
    }
    text
}

fn frames() -> Vec<Json> {
    let text = shared("frames-dotnet.jsonl").unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A value as the files write it.
fn shown(value: TokenValue<'_>) -> Json {
    match value {
        TokenValue::Byte(value) => json!(value),
        TokenValue::UShort(value) => json!(value),
        TokenValue::ULong(value) => json!(value),
        TokenValue::Long(value) => json!(value),
        TokenValue::ULongLong(value) => json!(value),
        TokenValue::LongLong(value) => json!(value),
        TokenValue::Guid(value) => json!(value.to_string()),
        TokenValue::SmallString(text)
        | TokenValue::String(text)
        | TokenValue::ULongString(text) => json!(text),
        TokenValue::SmallBytes(bytes)
        | TokenValue::Bytes(bytes)
        | TokenValue::ULongBytes(bytes) => json!(hex(bytes)),
        TokenValue::Float(value) => json!(value),
        TokenValue::Double(value) => json!(value),
        TokenValue::Invalid => Json::Null,
    }
}

fn all(tokens: Tokens<'_>) -> Vec<Token<'_>> {
    tokens.iter().collect::<Result<_, _>>().unwrap()
}

/// The tokens are those of the file, and the table knows every one of them by its type.
fn assert_tokens(tokens: Tokens<'_>, expected: &Json, table: &Table, name: &Json) {
    let found: Vec<Json> = all(tokens)
        .iter()
        .map(|token| {
            json!([format!("{:04x}", token.id), token.value.token_type() as u8, shown(token.value)])
        })
        .collect();
    assert_eq!(Json::from(found), expected["tokens"], "{name}");
    tokens.check(table).unwrap();
    for token in all(tokens) {
        assert!(table.row(token.id).is_some(), "{name}: {:04x} is not in the table", token.id);
    }
}

/// Writes the tokens and the payload of a frame again.
fn finish(mut frame: FrameWriter<'_>, tokens: Tokens<'_>, payload: Option<&[u8]>) {
    for token in all(tokens) {
        frame.put_value(token.id, token.value).unwrap();
    }
    frame.finish(payload.map(<[u8]>::len)).unwrap();
}

fn number(value: &Json) -> u64 {
    value.as_u64().unwrap()
}

#[test]
fn recorded_requests_read_and_write_as_they_were() {
    for line in frames() {
        let (name, expected) = (&line["name"], &line["request"]);
        let sent = bytes(line["request_hex"].as_str().unwrap());
        let extent = Extent::of_request(&sent).unwrap().unwrap();
        assert_eq!(extent.bytes(), sent.len(), "{name}");
        let (head, payload) = extent.split(&sent).unwrap();
        assert_eq!(payload.unwrap_or_default().len() as u64, number(&expected["payload_length"]));

        let read = RequestHead::read(head).unwrap();
        let resource = ResourceType::of(read.resource_type).unwrap();
        let operation = OperationType::of(read.operation_type).unwrap();
        assert_eq!(resource as u64, number(&expected["resource_type"]), "{name}");
        assert_eq!(operation as u64, number(&expected["operation_type"]), "{name}");
        assert_eq!(json!(read.activity_id.to_string()), expected["activity_id"], "{name}");
        let is_context = is_context_request(sent.first_chunk().unwrap());
        assert_eq!(is_context, operation == OperationType::Connection, "{name}");
        let table = if is_context { &context_request::TABLE } else { &request::TABLE };
        assert_tokens(read.tokens, expected, table, name);

        let mut written = Vec::new();
        let frame = FrameWriter::request(&mut written, resource, operation, read.activity_id);
        finish(frame, read.tokens, payload);
        written.extend_from_slice(payload.unwrap_or_default());
        assert_eq!(hex(&written), hex(&sent), "{name}");
    }
}

#[test]
fn recorded_responses_read_and_write_as_they_were() {
    for line in frames() {
        let (name, expected) = (&line["name"], &line["response"]);
        let sent = bytes(line["response_hex"].as_str().unwrap());
        let extent = Extent::of_response(&sent).unwrap().unwrap();
        assert_eq!(extent.bytes(), sent.len(), "{name}");
        let (head, payload) = extent.split(&sent).unwrap();
        assert_eq!(payload.unwrap_or_default().len() as u64, number(&expected["payload_length"]));

        let read = ResponseHead::read(head).unwrap();
        assert_eq!(u64::from(read.status), number(&expected["status"]), "{name}");
        let is_context = line["request"]["operation_type"] == json!(0);
        let table = if is_context { &context_response::TABLE } else { &response::TABLE };
        assert_tokens(read.tokens, expected, table, name);

        let mut written = Vec::new();
        let frame = FrameWriter::response(&mut written, read.status, read.activity_id);
        finish(frame, read.tokens, payload);
        written.extend_from_slice(payload.unwrap_or_default());
        assert_eq!(hex(&written), hex(&sent), "{name}");
    }
}

/// An answer of the service itself, the only one that is public.
#[test]
fn an_answer_of_the_service_reads_and_writes_as_it_was() {
    let Some(text) = shared("recorded-create-201.hex") else { return };
    let sent = bytes(&text.split_whitespace().collect::<String>());
    let extent = Extent::of_response(&sent).unwrap().unwrap();
    assert_eq!(extent, Extent { head_bytes: 500, payload_bytes: Some(317) });
    let (head, payload) = extent.split(&sent).unwrap();
    let read = ResponseHead::read(head).unwrap();
    assert_eq!(read.status, 201);
    let tokens = read.tokens.check(&response::TABLE).unwrap();
    assert_eq!(tokens.get(response::LSN), Some(10));
    assert_eq!(tokens.get(response::QUORUM_ACKED_LSN), Some(9));
    assert_eq!(tokens.get(response::SESSION_TOKEN), Some("-1#10"));
    assert_eq!(tokens.get(response::PARTITION_KEY_RANGE_ID), Some("0"));
    assert_eq!(tokens.get(response::CURRENT_REPLICA_SET_SIZE), Some(4));
    assert_eq!(tokens.get(response::SUB_STATUS), None);

    let mut written = Vec::new();
    let frame = FrameWriter::response(&mut written, read.status, read.activity_id);
    finish(frame, read.tokens, payload);
    written.extend_from_slice(payload.unwrap());
    assert_eq!(hex(&written), hex(&sent));
}

/// The answers are those of a stand-in that the SDK accepted: ours are the same bytes.
#[test]
fn recorded_context_exchanges_are_answered_alike() {
    for line in frames().iter().filter(|line| line["request"]["operation_type"] == json!(0)) {
        let sent = bytes(line["request_hex"].as_str().unwrap());
        let head = RequestHead::read(&sent).unwrap();
        let asked = ContextRequest::read(&head).unwrap();
        assert_eq!(asked.client_version, "2020-07-15");
        assert!(asked.user_agent.starts_with("cosmos-netstandard-sdk/"), "{asked:?}");
        let answer = ContextAnswer {
            client_version: asked.client_version,
            server_agent: "Orrery",
            server_version: "version=0.1.0",
            idle_timeout_secs: 1_800,
            unauthenticated_timeout_secs: 60,
        };
        let mut written = Vec::new();
        answer.write(head.activity_id, &mut written).unwrap();
        assert_eq!(hex(&written), line["response_hex"].as_str().unwrap());
    }
}
