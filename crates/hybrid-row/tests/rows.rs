//! Rows and streams of any content, and those that are no such thing.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop at the first surprise too")]

use hybrid_row::batch::{self, BATCH_OPERATION, BatchOperation, OperationResult};
use hybrid_row::{HybridRow, HybridRowError, NAMED_FIELDS_MAX, RecordWriter, Records, RowValue};
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;

/// How many random rows are written and read back. `ORRERY_ROWS` raises it for the long
/// run.
fn cases() -> ProptestConfig {
    let cases = std::env::var("ORRERY_ROWS").ok().and_then(|text| text.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(10_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let hex: String = hex.split_whitespace().collect();
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// What a value is made of, since a value only points at it.
#[derive(Clone, Debug)]
enum Content {
    Number(u64, u8),
    Text(String),
    Binary(Vec<u8>),
}

impl Content {
    fn value(&self) -> RowValue<'_> {
        match self {
            Content::Text(text) => RowValue::Text(text),
            Content::Binary(bytes) => RowValue::Binary(bytes),
            Content::Number(bits, kind) => number(*bits, kind % 17),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "any bits will do")]
fn number(bits: u64, kind: u8) -> RowValue<'static> {
    let mut wide = [0; 16];
    wide[..8].copy_from_slice(&bits.to_le_bytes());
    match kind {
        0 => RowValue::Null,
        1 => RowValue::Bool(bits & 1 == 1),
        2 => RowValue::I8(bits as i8),
        3 => RowValue::I16(bits as i16),
        4 => RowValue::I32(bits as i32),
        5 => RowValue::I64(bits.cast_signed()),
        6 => RowValue::U8(bits as u8),
        7 => RowValue::U16(bits as u16),
        8 => RowValue::U32(bits as u32),
        9 => RowValue::U64(bits),
        10 => RowValue::VarInt(bits.cast_signed()),
        11 => RowValue::VarUint(bits),
        // NaN is not equal to itself.
        12 => RowValue::F32(bits as i32 as f32),
        13 => RowValue::F64(bits as f64),
        14 => RowValue::Decimal(wide),
        15 => RowValue::DateTime(bits.to_le_bytes()),
        _ => RowValue::Guid(wide),
    }
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        (any::<u64>(), any::<u8>()).prop_map(|(bits, kind)| Content::Number(bits, kind)),
        any::<String>().prop_map(Content::Text),
        vec(any::<u8>(), 0..300).prop_map(Content::Binary),
    ]
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn operations_come_back_as_they_were(
        (kind, resource, ttl) in (of(any::<i32>()), of(any::<i32>()), of(any::<i32>())),
        texts in vec(of(any::<String>()), 5),
        binaries in vec(of(vec(any::<u8>(), 0..200)), 3),
        minimal in of(any::<bool>()),
        named in btree_map("[^a-z].*", content(), 0..4),
    ) {
        let text = |at: usize| texts[at].as_deref();
        let binary = |at: usize| binaries[at].as_deref();
        let operation = BatchOperation {
            operation_type: kind,
            resource_type: resource,
            partition_key: text(0),
            effective_partition_key: binary(0),
            id: text(1),
            binary_id: binary(1),
            resource_body: binary(2),
            indexing_directive: text(2),
            if_match: text(3),
            if_none_match: text(4),
            time_to_live_secs: ttl,
            minimal,
        };
        let mut row = HybridRow::from(&operation);
        for (name, content) in &named {
            row.set(name, content.value()).unwrap();
        }
        let written = batch::write([row.clone(), row], 0).unwrap();
        let rows: Vec<&[u8]> = Records::new(&written).map(Result::unwrap).collect();
        prop_assert_eq!(rows.len(), 2);
        for bytes in rows {
            let read = HybridRow::read(&BATCH_OPERATION, bytes).unwrap();
            prop_assert_eq!(&BatchOperation::from(&read), &operation);
            let expected: Vec<_> = named.iter().map(|(name, of)| (name.as_str(), of.value())).collect();
            prop_assert_eq!(read.named(), &expected);
            let mut again = Vec::new();
            read.write(&mut again);
            prop_assert_eq!(&again, bytes);
        }
    }

    #[test]
    fn outcomes_come_back_as_they_were(
        (status, sub_status) in (of(any::<i32>()), of(any::<i32>())),
        etag in of(any::<String>()),
        body in of(vec(any::<u8>(), 0..200)),
        retry_after_ms in of(any::<u32>()),
        charge in of(0_u32..1_000_000),
    ) {
        let outcome = OperationResult {
            status,
            sub_status,
            etag: etag.as_deref(),
            resource_body: body.as_deref(),
            retry_after_ms,
            request_charge: charge.map(|charge| f64::from(charge) / 21.0),
        };
        let written = batch::write([HybridRow::from(&outcome)], 0).unwrap();
        let read: Vec<OperationResult<'_>> = batch::outcomes(&written).map(Result::unwrap).collect();
        prop_assert_eq!(read, [outcome]);
    }

    #[test]
    fn a_changed_stream_is_read_or_refused(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let operation = BatchOperation { operation_type: Some(2), id: Some("some id"), ..BatchOperation::default() };
        let mut written = batch::write([HybridRow::from(&operation)], 0).unwrap();
        let at = at.index(written.len());
        written[at] = to;
        // The row's checksum holds, so what is read is what was written.
        if let Ok(read) = batch::operations(&written).collect::<Result<Vec<_>, _>>() {
            prop_assert!(read.is_empty() || read == [operation]);
        }
        prop_assert!(batch::operations(&written[..at]).count() <= 1);
    }
}

/// The request of the format's description, byte for byte.
#[test]
fn the_described_request_is_written() {
    let create = BatchOperation {
        operation_type: Some(batch::operation_type::CREATE),
        resource_type: Some(batch::DOCUMENT),
        resource_body: Some(br#"{"id":"a"}"#),
        ..BatchOperation::default()
    };
    let replace = BatchOperation {
        operation_type: Some(batch::operation_type::REPLACE),
        id: Some("b"),
        resource_body: Some(br#"{"id":"b"}"#),
        if_match: Some("\"e1\""),
        ..create.clone()
    };
    let written = batch::write([HybridRow::from(&create), HybridRow::from(&replace)], 0).unwrap();
    let expected = bytes(
        "81f0d8ff7f 01 0a000000
         81f1d8ff7f 19000000 33017195
         817054e17f 43 00000000 02000000 0a 7b226964223a2261227d
         81f1d8ff7f 22000000 73a3625e
         817054e17f 53 05000000 02000000 01 62 0a 7b226964223a2262227d 14 09 04 22653122",
    );
    assert_eq!(written, expected);
}

/// And its answer.
#[test]
fn the_described_answer_is_written() {
    let done = OperationResult {
        status: Some(201),
        sub_status: Some(0),
        etag: Some("\"e2\""),
        resource_body: Some(b"{}"),
        retry_after_ms: None,
        request_charge: Some(5.5),
    };
    let refused = OperationResult {
        status: Some(412),
        request_charge: Some(1.0),
        ..OperationResult::default()
    };
    let written = batch::write([HybridRow::from(&done), HybridRow::from(&refused)], 0).unwrap();
    let expected = bytes(
        "81f0d8ff7f 01 0a000000
         81f1d8ff7f 20000000 27360fe4
         817154e17f 0f c9000000 00000000 04 22653222 02 7b7d 10 06 0000000000001640
         81f1d8ff7f 18000000 bc386d8a
         817154e17f 01 9c010000 00000000 10 06 000000000000f03f",
    );
    assert_eq!(written, expected);
}

/// A stream with a row of these bytes, whatever they are.
fn stream(row: &[u8]) -> Vec<u8> {
    let mut out = RecordWriter::with_capacity(0, 0).finish();
    out.extend(bytes("81f1d8ff7f"));
    out.extend(i32::try_from(row.len()).unwrap().to_le_bytes());
    out.extend(crc32fast::hash(row).to_le_bytes());
    out.extend(row);
    out
}

fn refusal(stream: &[u8]) -> HybridRowError {
    batch::operations(stream).find_map(Result::err).unwrap()
}

#[test]
fn what_is_no_stream_is_refused() {
    let header = RecordWriter::with_capacity(0, 0).finish();
    assert_eq!(batch::operations(&header).count(), 0);
    assert_eq!(refusal(b""), HybridRowError::NoSegment);
    let record = stream(&[]).split_off(header.len());
    assert_eq!(refusal(&record), HybridRowError::NoSegment);
    assert_eq!(refusal(&header[..9]), HybridRowError::Truncated { offset: 0 });
    let short = bytes("81f0d8ff7f 01 09000000");
    assert_eq!(refusal(&short), HybridRowError::Length { length: 9, offset: 0 });
    let none = bytes("81f0d8ff7f 00 0a000000");
    assert_eq!(refusal(&none), HybridRowError::Length { length: 0, offset: 0 });
    let negative = bytes("81f0d8ff7f 01 0a000000 81f1d8ff7f ffffffff 00000000");
    assert_eq!(refusal(&negative), HybridRowError::Length { length: -1, offset: 10 });
    let long = bytes("81f0d8ff7f 01 0a000000 81f1d8ff7f ffffff7f 00000000");
    assert_eq!(refusal(&long), HybridRowError::Truncated { offset: 23 });
    let wrong = bytes("81f0d8ff7f 01 0a000000 81f1d8ff7f 01000000 00000000 81");
    assert_eq!(refusal(&wrong), HybridRowError::Checksum { offset: 10 });
}

#[test]
fn a_header_may_say_more_and_come_again() {
    // With a comment, and once more between two records.
    let mut twice = bytes("81f0d8ff7f 01 0f000000 14 02 03 616263");
    let operation =
        BatchOperation { operation_type: Some(2), id: Some("1"), ..BatchOperation::default() };
    twice[6] = u8::try_from(twice.len()).unwrap();
    twice.extend(batch::write([HybridRow::from(&operation)], 0).unwrap());
    twice.extend(batch::write([HybridRow::from(&operation)], 0).unwrap());
    assert_eq!(batch::operations(&twice).map(Result::unwrap).count(), 2);
}

#[test]
fn what_is_no_row_is_refused() {
    let fixed = "817054e17f 03 02000000 02000000";
    let refused = |rest: &str| refusal(&stream(&bytes(&format!("{fixed}{rest}"))));
    assert_eq!(refusal(&stream(b"")), HybridRowError::Truncated { offset: 0 });
    assert_eq!(refusal(&stream(b"{}")), HybridRowError::Version { found: b'{' });
    let result = HybridRow::from(&OperationResult::default());
    let other = batch::write([result], 0).unwrap();
    let (expected, found) = (2_145_473_648, 2_145_473_649);
    assert_eq!(refusal(&other), HybridRowError::Schema { expected, found });
    // A scope, a type that does not exist, one that is not the column's.
    assert_eq!(refused("1e 08"), HybridRowError::Type { code: 0x1e, offset: 14 });
    assert_eq!(refused("04 08"), HybridRowError::Type { code: 0x04, offset: 14 });
    assert_eq!(refused("07 08 00000000"), HybridRowError::Mismatch { offset: 14 });
    // The id is a variable column, by its number and by its name.
    assert_eq!(refused("14 05 01 61"), HybridRowError::NotSparse { offset: 14 });
    assert_eq!(refused("14 0f 6964 01 61"), HybridRowError::NotSparse { offset: 14 });
    assert_eq!(refused("14 08 00 14 08 00"), HybridRowError::Twice { offset: 17 });
    assert_eq!(refused("14 0e 78 00 14 0e 78 00"), HybridRowError::Twice { offset: 18 });
    assert_eq!(refused("14 08 02 ff00"), HybridRowError::Encoding { offset: 16 });
    assert_eq!(refused("14 08 05 61"), HybridRowError::Truncated { offset: 17 });
    assert_eq!(refused("14 ffffffffffffffffffff01"), HybridRowError::Varint { offset: 15 });
    assert_eq!(refused("14 ffffffffffffffffff01"), HybridRowError::Truncated { offset: 25 });
    let many: String =
        (0..=NAMED_FIELDS_MAX).map(|at| format!("01 0e {:02x}", 0x21 + at)).collect();
    assert_eq!(refused(&many), HybridRowError::NamedFields);
}

#[test]
fn a_null_is_no_value() {
    let row = bytes("817054e17f 03 02000000 02000000 01 08");
    let read = HybridRow::read(&BATCH_OPERATION, &row).unwrap();
    assert_eq!(read.get("indexingDirective"), None);
    let mut written = Vec::new();
    read.write(&mut written);
    assert_eq!(written, row);
}
