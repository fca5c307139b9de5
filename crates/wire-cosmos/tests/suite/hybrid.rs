//! Batches in HybridRow: what scripts express as JSON, repeated in the other form, and what
//! only that form can express.

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode};
use hybrid_row::HybridRow;
use hybrid_row::batch::{self, BatchOperation, DOCUMENT, OperationResult, operation_type};
use model::charge::Charge;
use model::json::{self, Raw, write_string};
use serde_json::{Value, json};

use crate::world::World;

const IS_BATCH: (&str, &str) = ("x-ms-cosmos-is-batch-request", "True");
const ATOMIC: (&str, &str) = ("x-ms-cosmos-batch-atomic", "True");
const CONTINUE: (&str, &str) = ("x-ms-cosmos-batch-continue-on-error", "True");
const KEY_A: (&str, &str) = ("x-ms-documentdb-partitionkey", "[\"a\"]");
const DOCS: &str = "/dbs/d/colls/c/docs";

/// A JSON batch as HybridRow; `None` if it cannot be expressed, as not all mistakes can.
pub(crate) fn translate(body: &[u8]) -> Option<Bytes> {
    let raw = json::parse_raw(body).ok()?;
    let texts = raw.elements().map(Texts::of).collect::<Option<Vec<Texts<'_>>>>()?;
    if texts.is_empty() && raw.text() != "[]" {
        return None;
    }
    let rows = texts.iter().map(|texts| HybridRow::from(&texts.operation()));
    Some(Bytes::from(batch::write(rows, body.len()).unwrap()))
}

/// The parts of an operation, unescaped.
struct Texts<'a> {
    kind: i32,
    texts: [Option<String>; 4],
    body: Option<&'a str>,
    minimal: Option<bool>,
}

impl<'a> Texts<'a> {
    fn of(raw: Raw<'a>) -> Option<Texts<'a>> {
        let kind = match raw.get("operationType")?.as_str()?.as_ref() {
            "Create" => operation_type::CREATE,
            "Upsert" => operation_type::UPSERT,
            "Read" => operation_type::READ,
            "Replace" => operation_type::REPLACE,
            "Delete" => operation_type::DELETE,
            "Patch" => operation_type::PATCH,
            _ => return None,
        };
        let names = ["id", "partitionKey", "ifMatch", "ifNoneMatch"];
        let text = |name: &str| raw.get(name).and_then(Raw::as_str).map(|text| text.into_owned());
        Some(Texts {
            kind,
            texts: names.map(text),
            body: raw.get("resourceBody").map(Raw::text),
            minimal: raw.get("minimalReturnPreference").and_then(Raw::as_bool),
        })
    }

    fn operation(&self) -> BatchOperation<'_> {
        let [id, partition_key, if_match, if_none_match] =
            self.texts.each_ref().map(Option::as_deref);
        BatchOperation {
            operation_type: Some(self.kind),
            resource_type: Some(DOCUMENT),
            partition_key,
            id,
            resource_body: self.body.map(str::as_bytes),
            if_match,
            if_none_match,
            minimal: self.minimal,
            ..BatchOperation::default()
        }
    }
}

/// An answer in HybridRow as the JSON that means the same. Errors are JSON in either form.
pub(crate) fn translate_back(mut answer: http::Response<Bytes>) -> http::Response<Bytes> {
    if answer.status().is_success() {
        let content_type = answer
            .headers_mut()
            .insert("content-type", HeaderValue::from_static("application/json"));
        assert_eq!(content_type.unwrap(), "application/octet-stream");
        let outcomes = batch::outcomes(answer.body()).map(Result::unwrap);
        let lines: Vec<String> = outcomes.map(|outcome| line(&outcome)).collect();
        *answer.body_mut() = Bytes::from(format!("[{}]", lines.join(",")));
    }
    answer
}

fn line(outcome: &OperationResult<'_>) -> String {
    let status = outcome.status.unwrap();
    let body = outcome.resource_body.map(|body| std::str::from_utf8(body).unwrap());
    let mut out = format!("{{\"statusCode\":{status}");
    if status >= 400 {
        out.push_str(&format!(",\"subStatusCode\":{}", outcome.sub_status.unwrap_or(0)));
    }
    let units = outcome.request_charge.unwrap() * 21.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "charges are small"
    )]
    let charge = Charge::from_units(units.round() as u64);
    out.push_str(&format!(",\"requestCharge\":{charge}"));
    if let Some(etag) = outcome.etag {
        out.push_str(",\"eTag\":");
        write_string(&mut out, etag);
    }
    if let Some(ms) = outcome.retry_after_ms {
        out.push_str(&format!(",\"retryAfterMilliseconds\":{ms}"));
    }
    match body {
        Some(report) if status >= 400 => {
            let report: Value = serde_json::from_str(report).unwrap();
            out.push_str(",\"message\":");
            write_string(&mut out, report["Errors"][0].as_str().unwrap());
        }
        Some(body) => out.push_str(&format!(",\"resourceBody\":{body}")),
        None => {}
    }
    out.push('}');
    out
}

/// A database with a container whose key is `/pk`.
fn furnished() -> World {
    let world = World::new();
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    for (path, body) in [("/dbs", r#"{"id":"d"}"#), ("/dbs/d/colls", container)] {
        assert_eq!(world.send(Method::POST, path, body, &[]).status(), StatusCode::CREATED);
    }
    world
}

/// Sends operations and returns the result of each: status, sub-status and body.
fn send(
    world: &World,
    operations: &[BatchOperation<'_>],
    headers: &[(&str, &str)],
) -> (StatusCode, Vec<(i32, i32, Value)>) {
    let body = batch::write(operations.iter().map(HybridRow::from), 0).unwrap();
    let answer = world.send(Method::POST, DOCS, body, headers);
    let shown = |outcome: OperationResult<'_>| {
        let body = outcome.resource_body.map(|body| serde_json::from_slice(body).unwrap());
        (outcome.status.unwrap(), outcome.sub_status.unwrap_or(0), body.unwrap_or_default())
    };
    let outcomes = batch::outcomes(answer.body()).map(|outcome| shown(outcome.unwrap())).collect();
    (answer.status(), outcomes)
}

fn operation<'a>(kind: i32, body: &'a [u8]) -> BatchOperation<'a> {
    BatchOperation {
        operation_type: Some(kind),
        resource_type: Some(DOCUMENT),
        partition_key: Some("[\"a\"]"),
        resource_body: Some(body).filter(|body| !body.is_empty()),
        ..BatchOperation::default()
    }
}

/// `{"id":"b","pk":"a"}` in Cosmos binary.
const BINARY_ITEM: &[u8] =
    &[0x80, 0xEA, 10, 0x82, b'i', b'd', 0x81, b'b', 0x82, b'p', b'k', 0x81, b'a'];

#[test]
fn items_in_binary_json_are_items() {
    for mode in [ATOMIC, CONTINUE] {
        let world = furnished();
        let item = BINARY_ITEM;
        let create = operation(operation_type::CREATE, item);
        let replace = BatchOperation { id: Some("b"), ..operation(operation_type::REPLACE, item) };
        let upsert = operation(operation_type::UPSERT, item);
        let (status, outcomes) = send(&world, &[create, replace, upsert], &[IS_BATCH, mode, KEY_A]);
        assert_eq!(status, StatusCode::OK, "{outcomes:?}");
        assert!(outcomes.iter().all(|(_, _, body)| body["id"] == "b"), "{outcomes:?}");
    }
}

/// In bulk an unreadable operation is its client's mistake, not its neighbours'.
#[test]
fn an_unreadable_operation_fails_alone() {
    let world = furnished();
    let long = "x".repeat(1024);
    let fine = operation(operation_type::CREATE, br#"{"id":"1","pk":"a"}"#);
    let read = BatchOperation { id: Some(&long), ..operation(operation_type::READ, b"") };
    let cut = operation(operation_type::CREATE, &BINARY_ITEM[..4]);
    let text = operation(operation_type::CREATE, br#"{"id":"#);
    let operations = [fine, read, cut, text];
    let (status, outcomes) = send(&world, &operations, &[IS_BATCH, CONTINUE]);
    assert_eq!(status, StatusCode::MULTI_STATUS);
    let statuses: Vec<i32> = outcomes.iter().map(|(status, _, _)| *status).collect();
    assert_eq!(statuses, [201, 400, 400, 400]);
    let (_, _, report) = &outcomes[1];
    assert_eq!(
        report,
        &json!({"Errors": ["The id is too long: it has 1024, at most 1023 are allowed."]})
    );
}

/// Mistakes of a transaction that is one: the rest of it is not to blame.
#[test]
fn a_transaction_says_which_operation_failed() {
    let world = furnished();
    let fine = operation(operation_type::CREATE, br#"{"id":"1","pk":"a"}"#);
    let wrong = operation(operation_type::CREATE, br#"{"id":"2","pk":"b"}"#);
    let (status, outcomes) = send(&world, &[fine, wrong], &[IS_BATCH, ATOMIC, KEY_A]);
    assert_eq!(status, StatusCode::MULTI_STATUS);
    assert_eq!(outcomes[0].0, 424);
    assert_eq!((outcomes[1].0, outcomes[1].1), (400, 1001));
    assert!(outcomes[1].2["Errors"][0].as_str().unwrap().starts_with("Partition key provided"));
}

#[test]
fn a_broken_stream_is_refused_as_a_whole() {
    let world = furnished();
    let create = operation(operation_type::CREATE, br#"{"id":"1","pk":"a"}"#);
    let whole = batch::write([HybridRow::from(&create)], 0).unwrap();
    let mut changed = whole.clone();
    *changed.last_mut().unwrap() ^= 1;
    let before = world.dump();
    let unknown = BatchOperation { operation_type: Some(3), ..create.clone() };
    let nameless = BatchOperation { operation_type: None, ..create.clone() };
    let other = BatchOperation { resource_type: Some(1), ..create.clone() };
    let written =
        |operation: &BatchOperation<'_>| batch::write([HybridRow::from(operation)], 0).unwrap();
    let many = batch::write(vec![HybridRow::from(&create); 101], 0).unwrap();
    for (body, message) in [
        (changed, "checksum of the HybridRow record at byte 10 is wrong"),
        (whole[..whole.len() - 1].to_vec(), "HybridRow ends inside a value, at byte 23"),
        (vec![0x81], "HybridRow ends inside a value, at byte 1"),
        (written(&unknown), "'3' is not an operation of a batch."),
        (written(&nameless), "An operation has no 'operationType'."),
        (written(&other), "The operations of a batch are on documents only."),
        (many, "Batch request has more operations than what is supported."),
    ] {
        let answer = world.send(Method::POST, DOCS, body, &[IS_BATCH, ATOMIC, KEY_A]);
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{message}");
        let text = String::from_utf8_lossy(answer.body());
        assert!(text.contains(message), "{text}");
        assert_eq!(answer.headers()["content-type"], "application/json");
    }
    assert_eq!(world.dump(), before);
}

/// What reads return is certainly in the answer, so it has an answer's limit.
#[test]
fn reads_give_back_no_more_than_an_answer_can_have() {
    let world = furnished();
    let item = format!(r#"{{"id":"1","pk":"a","text":"{}"}}"#, "x".repeat(1_500_000));
    assert_eq!(world.send(Method::POST, DOCS, item, &[]).status(), StatusCode::CREATED);
    let read = BatchOperation { id: Some("1"), ..operation(operation_type::READ, b"") };
    let reads = vec![read; 5];
    let (status, outcomes) = send(&world, &reads, &[IS_BATCH, ATOMIC, KEY_A]);
    assert_eq!(status, StatusCode::MULTI_STATUS);
    let statuses: Vec<(i32, i32)> =
        outcomes.iter().map(|(status, sub, _)| (*status, *sub)).collect();
    assert_eq!(statuses, [(424, 0), (424, 0), (413, 3402), (424, 0), (424, 0)]);
    let (status, outcomes) = send(&world, &reads, &[IS_BATCH, CONTINUE]);
    assert_eq!(status, StatusCode::MULTI_STATUS);
    let statuses: Vec<(i32, i32)> =
        outcomes.iter().map(|(status, sub, _)| (*status, *sub)).collect();
    let read = statuses.iter().filter(|status| **status == (200, 0)).count();
    let refused = statuses.iter().filter(|status| **status == (413, 3402)).count();
    assert_eq!((read, refused), (2, 3), "{statuses:?}");
}
