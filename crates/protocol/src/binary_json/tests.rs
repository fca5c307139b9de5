//! Published vectors, hand-made bodies for every limit, and random ones.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use super::*;

const VECTORS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/conformance/protocol/binary_json_vectors.json"
);

/// The shared vectors as (name, body, value); none if they are absent and need not be
/// there.
fn vectors() -> Vec<(String, Vec<u8>, Value)> {
    let Ok(text) = std::fs::read_to_string(VECTORS) else {
        let required = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!required, "{VECTORS} is required in CI");
        println!("left out: binary JSON vectors, {VECTORS} is absent");
        return Vec::new();
    };
    let vectors: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(vectors.len() > 80, "only {} vectors", vectors.len());
    vectors
        .iter()
        .map(|vector| {
            let field = |name: &str| vector.get(name).and_then(Value::as_str).unwrap();
            (field("name").to_owned(), bytes(field("binary")), vector.get("json").unwrap().clone())
        })
        .collect()
}

/// Bytes from hexadecimal, blanks between them.
fn bytes(hex: &str) -> Vec<u8> {
    hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn text_of(hex: &str) -> String {
    decode(&bytes(hex)).unwrap()
}

fn error_of(hex: &str) -> BinaryJsonError {
    decode(&bytes(hex)).unwrap_err()
}

/// The same value: integers digit for digit, other numbers as doubles.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            let doubles = left.is_f64() || right.is_f64();
            left == right || doubles && left.as_f64() == right.as_f64()
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|r| same(left, r)))
        }
        _ => left == right,
    }
}

/// What must hold of every body: no panic, text within the limit, and text that
/// the rest of the server can read, unless it names a property twice.
fn check_any(body: &[u8]) -> Result<()> {
    let text = decode(body)?;
    assert!(text.len() <= TEXT_BYTES_MAX);
    match json::parse_raw(text.as_bytes()) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.problem, json::JsonProblem::Duplicate, "{text}"),
    }
    Ok(())
}

#[test]
fn vectors_decode_to_their_values() {
    for (name, body, expected) in vectors() {
        assert!(is_binary(&body));
        let text = decode(&body).unwrap_or_else(|error| panic!("{name}: {error}"));
        let value = serde_json::from_str(&text).unwrap();
        assert!(same(&value, &expected), "{name}: {text} is not {expected}");
        check_any(&body).unwrap();
    }
}

#[test]
fn vectors_cut_short_or_continued_are_errors() {
    for (name, mut body, _) in vectors() {
        for length in 0..body.len() {
            decode(&body[..length]).expect_err(&name);
        }
        body.push(0x00);
        let offset = body.len() - 1;
        assert_eq!(decode(&body), Err(BinaryJsonError::Trailing { offset }), "{name}");
    }
}

#[test]
fn text_is_not_binary() {
    for text in ["", "{}", "\"\u{80}\""] {
        assert!(!is_binary(text.as_bytes()));
        assert_eq!(decode(text.as_bytes()), Err(BinaryJsonError::Format));
    }
}

#[test]
fn an_item_as_the_rust_sdk_sends_it() {
    let body = "80 ED 0E 03 82 69 64 82 69 31 81 6E 01 82 70 6B 81 61";
    assert_eq!(text_of(body), r#"{"id":"i1","n":1,"pk":"a"}"#);
}

#[test]
fn numbers_have_their_shortest_spelling() {
    for (body, text) in [
        ("80 C7 FF FF FF FF FF FF FF FF", "18446744073709551615"),
        ("80 CB 00 00 00 00 00 00 00 80", "-9223372036854775808"),
        ("80 CB 05 00 00 00 00 00 00 00", "5"),
        ("80 CC 00 00 00 00 00 00 14 40", "5"),
        ("80 CC 9A 99 99 99 99 99 B9 3F", "0.1"),
        ("80 CC 00 00 00 00 00 00 00 80", "0"),
        ("80 CC FF FF FF FF FF FF EF 7F", "1.7976931348623157e308"),
        ("80 CD CD CC CC 3D", "0.10000000149011612"),
        ("80 CF 00 3C", "1"),
        ("80 CF 00 C1", "-2.5"),
        ("80 CF FF 7B", "65504"),
        ("80 CF 01 00", "5.960464477539063e-8"),
        ("80 F0 CF 02 00 38 00 00", "[0.5,0]"),
    ] {
        assert_eq!(text_of(body), text, "{body}");
    }
}

#[test]
fn numbers_that_json_cannot_say_are_refused() {
    let offset = 2;
    for body in [
        "80 CC 00 00 00 00 00 00 F0 7F",
        "80 CE 00 00 00 00 00 00 F8 7F",
        "80 CD 00 00 80 FF",
        "80 CF 00 7C",
        "80 CF 01 FC",
    ] {
        assert_eq!(error_of(body), BinaryJsonError::NotFinite { offset }, "{body}");
    }
}

#[test]
fn strings_are_escaped() {
    assert_eq!(text_of("80 85 22 5C 0A 01 7F"), "\"\\\"\\\\\\n\\u0001\u{7F}\"");
    assert_eq!(text_of("80 E9 81 22 E8"), r#"{"\"":{}}"#);
}

#[test]
fn strings_that_are_not_utf8_are_refused() {
    assert_eq!(error_of("80 83 61 FF 61"), BinaryJsonError::Encoding { offset: 3 });
    // 3F + 7F is beyond ASCII.
    assert_eq!(error_of("80 7D 01 7F 3F"), BinaryJsonError::Encoding { offset: 1 });
}

#[test]
fn every_date_and_time_character() {
    let body = "80 7A 10 10 32 54 76 98 BA DC FE";
    assert_eq!(text_of(body), "\" 0123456789:-.TZ\"");
}

#[test]
fn bits_behind_the_last_character_mean_nothing() {
    assert_eq!(text_of("80 78 01 FF"), "\"f\"");
    assert_eq!(text_of("80 7E 02 C8 F4"), "\"Hi\"");
}

#[test]
fn padding_of_base64() {
    assert_eq!(text_of("80 71 00 00"), "\"\"");
    assert_eq!(text_of("80 71 01 FE 66 6F"), "\"Zm8\"");
    assert_eq!(text_of("80 71 01 FF 66 6F 6F"), "\"Zm9v\"");
    for body in ["80 71 01 03 66", "80 71 01 FC 66", "80 71 00 01", "80 71 00 FE"] {
        assert_eq!(error_of(body), BinaryJsonError::Padding { offset: 3 }, "{body}");
    }
}

#[test]
fn user_strings_have_no_dictionary() {
    assert_eq!(error_of("80 40"), BinaryJsonError::UserString { offset: 1 });
    assert_eq!(error_of("80 E9 67 00 D0"), BinaryJsonError::UserString { offset: 2 });
}

#[test]
fn markers_that_mean_nothing_are_refused() {
    for marker in (0x68..=0x70).chain(0xD4..=0xD6).chain(0xF4..=0xFF) {
        let found = decode(&[FORMAT, marker, 0, 0, 0, 0]);
        assert_eq!(found, Err(BinaryJsonError::Marker { marker, offset: 1 }), "{marker:02X}");
    }
}

#[test]
fn names_are_strings() {
    for marker in [0x00, 0xC7, 0xC8, 0xD0, 0xD3, 0xDD, 0xE0, 0xE8, 0xF0, 0x70] {
        let found = decode(&[FORMAT, 0xE9, marker, 0, 0, 0]);
        assert_eq!(found, Err(BinaryJsonError::Name { marker, offset: 2 }), "{marker:02X}");
    }
}

#[test]
fn references_lead_back_to_strings() {
    // From names and values; to plain, packed and system strings.
    let body = "80 E2 0B E9 82 68 69 00 E9 C3 04 C3 04 2C";
    assert_eq!(text_of(body), r#"[{"hi":0},{"hi":"hi"},"id"]"#);
    assert_eq!(text_of("80 E2 06 78 02 BA C4 03 00"), r#"["ab","ab"]"#);
    assert_eq!(text_of("80 E2 03 2C C3 03"), r#"["id","id"]"#);
}

#[test]
fn other_references_are_refused() {
    for (body, offset) in [
        // To itself, forwards, out of the body, to the format byte.
        ("80 C3 01", 1),
        ("80 E2 04 C3 05 81 61", 3),
        ("80 C6 FF FF FF FF", 1),
        ("80 C3 00", 1),
        // To a number, a dictionary, a reference, a string that is not over yet.
        ("80 E2 03 00 C3 03", 4),
        ("80 E2 03 E0 C3 02", 4),
        ("80 E2 05 2C C3 03 C3 04", 6),
        ("80 E2 05 C8 82 C3 04 00", 5),
    ] {
        assert_eq!(error_of(body), BinaryJsonError::Reference { offset }, "{body}");
    }
}

#[test]
fn containers_hold_what_they_announce() {
    let count = |announced, found, offset| BinaryJsonError::Count { announced, found, offset };
    assert_eq!(error_of("80 E5 02 03 00 01"), count(3, 2, 6));
    assert_eq!(error_of("80 ED 02 00 2C 00"), count(0, 1, 6));
    assert_eq!(error_of("80 E5 00 01"), count(1, 0, 4));
    // An object whose last name has no value; a member that sticks out.
    assert_eq!(error_of("80 EA 01 2C 00"), BinaryJsonError::Truncated { offset: 4 });
    assert_eq!(error_of("80 E2 02 82 68 69"), BinaryJsonError::Truncated { offset: 4 });
    assert_eq!(error_of("80 E2 09 00"), BinaryJsonError::Truncated { offset: 3 });
    assert_eq!(error_of("80 E4 FF FF FF FF"), BinaryJsonError::Truncated { offset: 6 });
}

#[test]
fn uniform_arrays_are_of_typed_numbers() {
    let marker = |marker, offset| BinaryJsonError::Marker { marker, offset };
    assert_eq!(error_of("80 F0 C8 01 00"), marker(0xC8, 2));
    assert_eq!(error_of("80 F2 F1 D7 00 00"), marker(0xF1, 2));
    assert_eq!(error_of("80 F3 F1 82 00 00"), marker(0x82, 3));
    assert_eq!(text_of("80 F2 F0 D7 00 02"), "[[],[]]");
}

/// `depth` containers inside each other, in every form that can hold one.
fn nested(depth: usize) -> Vec<u8> {
    let mut body = vec![0xD0];
    for level in 0..depth {
        let length = u32::try_from(body.len()).unwrap().to_le_bytes();
        let head = match level % 4 {
            0 => vec![0xE1],
            1 => vec![0xE9, 0x2C],
            2 => [&[0xE4], &length[..]].concat(),
            _ => [&[0xE7], &length[..], &[1, 0, 0, 0]].concat(),
        };
        body = with(&head, &body);
    }
    with(&[FORMAT], &body)
}

#[test]
fn nesting_has_the_limit_of_text() {
    let text = decode(&nested(DEPTH_MAX)).unwrap();
    json::parse_raw(text.as_bytes()).unwrap();
    assert!(matches!(decode(&nested(DEPTH_MAX + 1)), Err(BinaryJsonError::Depth { .. })));

    let mut uniform = vec![FORMAT];
    uniform.extend([0xE1].repeat(DEPTH_MAX - 2));
    uniform.extend([0xF2, 0xF0, 0xD7, 0x01, 0x01, 0x07]);
    json::parse_raw(decode(&uniform).unwrap().as_bytes()).unwrap();
    uniform.insert(1, 0xE1);
    assert!(matches!(decode(&uniform), Err(BinaryJsonError::Depth { .. })));
}

/// An array of `parts` without a count.
fn array_of(parts: &[u8]) -> Vec<u8> {
    let length = u32::try_from(parts.len()).unwrap().to_le_bytes();
    [&[FORMAT, 0xE4], &length[..], parts].concat()
}

#[test]
fn bodies_that_burst_are_refused() {
    let long = [&[0xC1, 0xFF, 0xFF], &[b'a'; 0xFFFF][..]].concat();
    let references = |count| array_of(&[&long[..], &[0xC3, 0x06].repeat(count)].concat());
    assert_eq!(decode(&references(62)).unwrap().len(), 63 * (0xFFFF + 3) + 1);
    assert_eq!(decode(&references(63)), Err(BinaryJsonError::TooLarge));
    assert_eq!(decode(&references(1 << 19)), Err(BinaryJsonError::TooLarge));

    let arrays = [0xF3, 0xF1, 0xD7, 0x00, 0x00, 0xFF, 0xFF].repeat(1 << 10);
    assert_eq!(decode(&array_of(&arrays)), Err(BinaryJsonError::TooLarge));

    let controls = [&[0xC2, 0, 0, 0x10, 0], &[0x01; 1 << 20][..]].concat();
    assert_eq!(decode(&array_of(&controls)), Err(BinaryJsonError::TooLarge));
}

#[test]
fn text_may_reach_the_limit_exactly() {
    let body = |length: usize| {
        let prefix = u32::try_from(length).unwrap().to_le_bytes();
        [&[FORMAT, 0xC2], &prefix[..], &vec![b'a'; length]].concat()
    };
    assert_eq!(decode(&body(TEXT_BYTES_MAX - 2)).unwrap().len(), TEXT_BYTES_MAX);
    assert_eq!(decode(&body(TEXT_BYTES_MAX - 1)), Err(BinaryJsonError::TooLarge));
}

/// A body as the Rust SDK writes it.
fn encode(value: &Value) -> Vec<u8> {
    let mut body = vec![FORMAT];
    encode_value(value, &mut body);
    body
}

fn encode_value(value: &Value, body: &mut Vec<u8>) {
    match value {
        Value::Null => body.push(0xD0),
        Value::Bool(false) => body.push(0xD1),
        Value::Bool(true) => body.push(0xD2),
        Value::Number(number) => encode_number(number, body),
        Value::String(text) => encode_string(text, body),
        Value::Array(items) => {
            let mut members = Vec::new();
            items.iter().for_each(|item| encode_value(item, &mut members));
            encode_container([0xE5, 0xE6, 0xE7], items.len(), &members, body);
        }
        Value::Object(properties) => {
            let mut members = Vec::new();
            for (name, value) in properties {
                encode_string(name, &mut members);
                encode_value(value, &mut members);
            }
            encode_container([0xED, 0xEE, 0xEF], properties.len(), &members, body);
        }
    }
}

fn encode_number(number: &serde_json::Number, body: &mut Vec<u8>) {
    if let Some(small) = number.as_u64().and_then(|n| u8::try_from(n).ok()).filter(|n| *n < 0x20) {
        body.push(small);
    } else if let Some(signed) = number.as_i64() {
        body.push(0xCB);
        body.extend(signed.to_le_bytes());
    } else if let Some(unsigned) = number.as_u64() {
        body.push(0xC7);
        body.extend(unsigned.to_le_bytes());
    } else {
        body.push(0xCC);
        body.extend(number.as_f64().unwrap().to_le_bytes());
    }
}

fn encode_string(text: &str, body: &mut Vec<u8>) {
    match u8::try_from(text.len()) {
        Ok(length) if length < 0x40 => body.push(0x80 | length),
        _ => encode_sizes([0xC0, 0xC1, 0xC2], &[text.len()], body),
    }
    body.extend(text.as_bytes());
}

fn encode_container(markers: [u8; 3], count: usize, members: &[u8], body: &mut Vec<u8>) {
    encode_sizes(markers, &[members.len(), count], body);
    body.extend(members);
}

/// The sizes in the smallest width that fits them all, preceded by its marker.
fn encode_sizes([one, two, four]: [u8; 3], sizes: &[usize], body: &mut Vec<u8>) {
    let (marker, width) = match sizes.iter().max().unwrap() {
        0..=0xFF => (one, 1),
        0x100..=0xFFFF => (two, 2),
        _ => (four, 4),
    };
    body.push(marker);
    for size in sizes {
        body.extend(&size.to_le_bytes()[..width]);
    }
}

fn any_number() -> impl Strategy<Value = Value> {
    let finite = any::<f64>().prop_filter("finite", |value| value.is_finite());
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-40_i64..40).prop_map(Value::from),
        finite.prop_map(Value::from),
        (-1e6..1e6).prop_map(Value::from),
    ]
}

fn any_string() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "\\PC{0,24}",
        4 => proptest::collection::vec(any::<char>(), 0..24).prop_map(String::from_iter),
        1 => "[a-z]{60,300}",
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any_number(),
        any_string().prop_map(Value::from),
    ];
    scalar.prop_recursive(6, 48, 8, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            proptest::collection::btree_map(any_string(), inner, 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Markers with a fixed number of bytes after them.
const FIXED: [(u8, usize); 17] = [
    (0x2C, 0),
    (0xD0, 0),
    (0x75, 16),
    (0x76, 16),
    (0x77, 16),
    (0xC7, 8),
    (0xC8, 1),
    (0xC9, 2),
    (0xCA, 4),
    (0xCB, 8),
    (0xD3, 16),
    (0xD7, 1),
    (0xD8, 1),
    (0xD9, 2),
    (0xDA, 4),
    (0xDB, 8),
    (0xDC, 4),
];

/// A scalar or uniform array in one of the forms that the Rust SDK only reads.
fn any_compact_form() -> impl Strategy<Value = Vec<u8>> {
    let bytes = |count| proptest::collection::vec(any::<u8>(), count);
    let fixed = proptest::sample::select(&FIXED[..])
        .prop_flat_map(move |(marker, count)| bytes(count).prop_map(move |b| with(&[marker], &b)));
    let nibbles = (0x78..0x7B_u8, 0..40_u8).prop_flat_map(move |(marker, count)| {
        bytes(usize::from(count).div_ceil(2)).prop_map(move |b| with(&[marker, count], &b))
    });
    let packed = (4..7_u8, 0..40_u8, 0..0x40_u8).prop_flat_map(move |(bits, count, base)| {
        bytes((usize::from(bits) * usize::from(count)).div_ceil(8))
            .prop_map(move |b| with(&[0x77 + bits, count, base], &b))
    });
    let base64 =
        (0x71..0x75_u8, 1..9_u8, 0..6_u8).prop_flat_map(move |(marker, groups, padding)| {
            let (missing, padding) =
                (padding % 3, if padding < 3 { padding } else { !(padding - 3) });
            let head = if marker % 2 == 1 { vec![marker, groups] } else { vec![marker, groups, 0] };
            bytes(usize::from(3 * groups - missing))
                .prop_map(move |b| with(&with(&head, &[padding]), &b))
        });
    let blob = (0..40_u8).prop_flat_map(move |count| {
        bytes(usize::from(count)).prop_map(move |b| with(&[0xDE, count, 0], &b))
    });
    let uniform = (0..5_u8, 0..5_u8).prop_flat_map(move |(inner, outer)| {
        bytes(usize::from(4 * inner * outer))
            .prop_map(move |b| with(&[0xF2, 0xF0, 0xDA, inner, outer], &b))
    });
    prop_oneof![fixed, nibbles, packed, base64, blob, uniform]
}

fn with(head: &[u8], rest: &[u8]) -> Vec<u8> {
    [head, rest].concat()
}

/// A value in any forms: containers without counts, with one member, with
/// references to the first string of the body.
fn any_form() -> impl Strategy<Value = Vec<u8>> {
    let scalar = prop_oneof![
        4 => any_compact_form(),
        1 => Just(bytes("C3 04")),
        1 => Just(bytes("C5 04 00 00")),
    ];
    scalar.prop_recursive(5, 32, 6, |inner| {
        let members = || proptest::collection::vec(inner.clone(), 0..6);
        prop_oneof![
            inner.clone().prop_map(|item| with(&[0xE1], &item)),
            inner.clone().prop_map(|value| with(&[0xE9, 0xC3, 0x04], &value)),
            members().prop_map(|items| sized([0xE2, 0xE3, 0xE4], &items.concat())),
            members().prop_map(|values| {
                let named =
                    (0..).zip(values).map(|(name, value)| with(&[0x82, b'n', name], &value));
                sized([0xEA, 0xEB, 0xEC], &named.collect::<Vec<_>>().concat())
            }),
        ]
    })
}

fn sized(markers: [u8; 3], members: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    encode_sizes(markers, &[members.len()], &mut body);
    with(&body, members)
}

/// A body in any forms; its byte 4 begins a string that it may refer to.
fn any_body() -> impl Strategy<Value = Vec<u8>> {
    any_form().prop_map(|form| {
        // Two arrays put the name of the property where it is expected.
        let mut body = vec![FORMAT, 0xE1, 0xE1, 0xE9, 0x82, b'h', b'i'];
        body.extend(form);
        body
    })
}

fn changed(mut body: Vec<u8>, changes: &[(Index, u8)]) -> Vec<u8> {
    for (place, byte) in changes {
        *place.get_mut(&mut body) = *byte;
    }
    body
}

fn any_changes() -> impl Strategy<Value = Vec<(Index, u8)>> {
    proptest::collection::vec((any::<Index>(), any::<u8>()), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_the_sdk_encodes_comes_back(value in any_value()) {
        let text = decode(&encode(&value)).unwrap();
        let found: Value = serde_json::from_str(&text).unwrap();
        prop_assert!(same(&found, &value), "{} is not {}", found, value);
        json::parse_raw(text.as_bytes()).unwrap();
    }

    #[test]
    fn every_form_becomes_text(body in any_body()) {
        let text = decode(&body).unwrap();
        json::parse_raw(text.as_bytes()).unwrap();
    }

    #[test]
    fn cut_bodies_are_errors(value in any_value(), body in any_body()) {
        for body in [encode(&value), body] {
            for length in 0..body.len() {
                prop_assert!(decode(&body[..length]).is_err(), "{} of {:02X?}", length, body);
            }
        }
    }

    #[test]
    fn continued_bodies_are_errors(value in any_value(), body in any_body(), more in any::<u8>()) {
        for mut body in [encode(&value), body] {
            let offset = body.len();
            body.push(more);
            prop_assert_eq!(decode(&body), Err(BinaryJsonError::Trailing { offset }));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    // Either is fine here; `check_any` looks at what became text.
    #[test]
    fn changed_bodies_are_text_or_errors(
        value in any_value(),
        body in any_body(),
        changes in any_changes(),
    ) {
        let _ = check_any(&changed(encode(&value), &changes));
        let _ = check_any(&changed(body, &changes));
    }

    #[test]
    fn any_bytes_are_text_or_errors(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = check_any(&bytes);
        let _ = check_any(&with(&[FORMAT], &bytes));
    }
}

#[test]
fn large_bodies_take_wider_sizes() {
    let items: Vec<Value> = (0..70_000).map(Value::from).collect();
    let value =
        serde_json::json!({ "items": items, "text": "x".repeat(70_000), "short": "y".repeat(300) });
    let text = decode(&encode(&value)).unwrap();
    assert_eq!(text, value.to_string());
}
