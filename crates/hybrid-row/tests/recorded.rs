//! Bodies that the .NET SDK sent and rows that Microsoft's library wrote, against ours.
//!
//! The files live outside the repository. Without them each test reports in one line what
//! it skipped; in CI it fails instead.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop at the first surprise too")]

use hybrid_row::batch::{self, BATCH_OPERATION, BATCH_RESULT, BatchOperation, OperationResult};
use hybrid_row::{HybridRow, RowValue};
use serde_json::{Map, Value as Json, json};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/direct");

/// The lines of a shared file; none where it is absent and need not be there.
fn shared(name: &str) -> Vec<Json> {
    let path = format!("{FOLDER}/{name}");
    let text = std::fs::read_to_string(&path).ok();
    let required = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(text.is_some() || !required, "{path} is required in CI");
    let text = text.unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes as the files write them: text where they are text.
fn binary(bytes: &[u8]) -> Json {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({ "text": text }),
        Err(_) => json!({ "hex": hex(bytes) }),
    }
}

fn binary_bytes(value: &Json) -> Vec<u8> {
    match value["text"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => bytes(value["hex"].as_str().unwrap()),
    }
}

/// An object without what is absent.
fn present(fields: Json) -> Json {
    let Json::Object(fields) = fields else { panic!("{fields} is no object") };
    Json::Object(fields.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>())
}

fn operation(read: &BatchOperation<'_>) -> Json {
    present(json!({
        "operationType": read.operation_type,
        "resourceType": read.resource_type,
        "partitionKey": read.partition_key,
        "effectivePartitionKey": read.effective_partition_key.map(binary),
        "id": read.id,
        "binaryId": read.binary_id.map(binary),
        "resourceBody": read.resource_body.map(binary),
        "indexingDirective": read.indexing_directive,
        "ifMatch": read.if_match,
        "ifNoneMatch": read.if_none_match,
        "timeToLiveInSeconds": read.time_to_live_secs,
        "minimalReturnPreference": read.minimal,
    }))
}

fn outcome(read: &OperationResult<'_>) -> Json {
    // The files leave out a sub-status that says nothing.
    present(json!({
        "statusCode": read.status,
        "subStatusCode": read.sub_status.filter(|status| *status != 0),
        "eTag": read.etag,
        "resourceBody": read.resource_body.map(binary),
        "retryAfterMilliseconds": read.retry_after_ms,
        "requestCharge": read.request_charge,
    }))
}

#[test]
fn recorded_requests_read_and_write_as_they_were() {
    for line in shared("hybridrow-batches-dotnet.jsonl") {
        let name = &line["name"];
        let body = bytes(line["body_hex"].as_str().unwrap());
        let read = batch::operations(&body).collect::<Result<Vec<_>, _>>().unwrap();
        let shown: Vec<Json> = read.iter().map(operation).collect();
        assert_eq!(Json::from(shown), line["operations"], "{name}");
        let written = batch::write(read.iter().map(HybridRow::from), body.len()).unwrap();
        assert_eq!(hex(&written), hex(&body), "{name}");
    }
}

#[test]
fn recorded_answers_read_and_write_as_they_were() {
    for line in shared("hybridrow-batches-dotnet.jsonl") {
        let (name, Some(results)) = (&line["name"], line.get("results")) else { continue };
        let body = bytes(line["answer_hex"].as_str().unwrap());
        let read = batch::outcomes(&body).collect::<Result<Vec<_>, _>>().unwrap();
        let shown: Vec<Json> = read.iter().map(outcome).collect();
        assert_eq!(&Json::from(shown), results, "{name}");
        let written = batch::write(read.iter().map(HybridRow::from), body.len()).unwrap();
        assert_eq!(hex(&written), hex(&body), "{name}");
    }
}

/// Whether a value is what the files say.
#[expect(clippy::wildcard_enum_match_arm, reason = "the files have six of the types")]
fn same(value: RowValue<'_>, expected: &Json) -> bool {
    match value {
        RowValue::Bool(value) => expected == &json!(value),
        RowValue::I32(value) => expected == &json!(value),
        RowValue::U32(value) => expected == &json!(value),
        RowValue::F64(value) => expected == &json!(value),
        RowValue::Text(value) => expected == &json!(value),
        RowValue::Binary(value) => binary_bytes(expected) == value,
        _ => false,
    }
}

#[test]
fn rows_of_the_library_read_as_they_were_written() {
    let mut rewritten = 0;
    for line in shared("hybridrow-rows.jsonl") {
        let (name, fields) = (&line["name"], line["fields"].as_object().unwrap());
        let layout = match line["schema"].as_i64() {
            Some(2_145_473_648) => &BATCH_OPERATION,
            _ => &BATCH_RESULT,
        };
        let row_bytes = bytes(line["row_hex"].as_str().unwrap());
        let row = HybridRow::read(layout, &row_bytes).unwrap();
        for (field, expected) in fields {
            let named = row.named().iter().find(|(known, _)| known == field);
            let value = row.get(field).or(named.map(|(_, value)| *value));
            assert!(same(value.unwrap(), expected), "{name}: {field} is {value:?}");
        }
        let mut written = Vec::new();
        row.write(&mut written);
        // Fields keep the order in which the library wrote them; we write that of the schema.
        let mut again = Vec::new();
        HybridRow::read(layout, &written).unwrap().write(&mut again);
        assert_eq!(again, written, "{name}");
        assert_eq!(written.len(), row_bytes.len(), "{name}");
        rewritten += usize::from(written == row_bytes);
    }
    println!("{rewritten} rows were written in the order of their schema");
}
