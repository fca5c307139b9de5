//! The bytes of typed values compare as the values do.

use std::cmp::Ordering;

use index::encode_typed;
use model::json;
use model::typed::{Date, Decimal, Typed, TypedNumber};
use proptest::prelude::*;

/// Bytes of a string, and of binary data, that are kept.
const KEPT: usize = 128;

fn bytes(value: &Typed) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    let whole = encode_typed(value, &mut out);
    (out, whole)
}

fn number() -> impl Strategy<Value = TypedNumber> {
    let small = || -4_i32..4;
    let decimal = (any::<bool>(), 0..2_000_u128, -5_i16..5);
    let decimal = decimal.prop_map(|(negative, digits, exponent)| {
        Decimal::new(negative, digits, exponent).expect("in range")
    });
    let long = (any::<bool>(), any::<u128>(), -340_i16..300);
    let long = long.prop_map(|(negative, digits, exponent)| {
        Decimal::new(negative, digits % 10_u128.pow(34), exponent).expect("in range")
    });
    let special = [Decimal::NAN, Decimal::infinity(true), Decimal::infinity(false)];
    prop_oneof![
        small().prop_map(TypedNumber::Int32),
        prop_oneof![any::<i64>(), 9_007_199_254_740_990..9_007_199_254_740_999_i64]
            .prop_map(TypedNumber::Int64),
        prop_oneof![any::<f64>(), small().prop_map(|own| f64::from(own) / 10.0)]
            .prop_map(TypedNumber::Double),
        prop_oneof![decimal, long, prop::sample::select(special.to_vec())]
            .prop_map(TypedNumber::Decimal),
    ]
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    let long = (KEPT - 2..KEPT + 3, 0..3_u8).prop_map(|(length, last)| {
        let mut data = vec![7; length];
        data.push(last);
        data
    });
    prop_oneof![prop::collection::vec(any::<u8>(), 0..3), long]
}

fn typed() -> impl Strategy<Value = Typed> {
    let text = prop_oneof!["[a\u{0}é]{0,3}".boxed(), "x{127,130}[ab]".boxed()];
    let millis = prop_oneof![any::<i64>(), -3..3_i64];
    prop_oneof![
        1 => Just(Typed::MinKey),
        1 => Just(Typed::Null),
        6 => number().prop_map(Typed::Number),
        3 => text.prop_map(Typed::String),
        3 => (0..2_u8, data()).prop_map(|(subtype, bytes)| Typed::Binary { subtype, bytes }),
        1 => any::<[u8; 16]>().prop_map(Typed::Guid),
        1 => any::<[u8; 12]>().prop_map(Typed::ObjectId),
        1 => any::<bool>().prop_map(Typed::Bool),
        2 => millis.prop_map(|millis| Typed::Date(Date::from_millis(millis))),
        2 => (621_355_967_999_970_000..621_355_968_000_030_000_u64)
            .prop_map(|ticks| Typed::Date(Date::from_ticks(ticks).expect("a year of four digits"))),
        1 => (0..3_u32, any::<u32>())
            .prop_map(|(seconds, increment)| Typed::Timestamp { seconds, increment }),
        1 => Just(Typed::MaxKey),
    ]
}

/// Two values, often of one type.
fn two() -> impl Strategy<Value = (Typed, Typed)> {
    let numbers = (number(), number()).prop_map(|(a, b)| (Typed::Number(a), Typed::Number(b)));
    prop_oneof![2 => (typed(), typed()), 1 => numbers]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8000))]

    #[test]
    fn bytes_order_as_values((a, b) in two(), tails in any::<[[u8; 8]; 2]>()) {
        let ((key_a, whole_a), (key_b, whole_b)) = (bytes(&a), bytes(&b));
        if key_a == key_b {
            // Only what was cut may differ and look the same.
            prop_assert!(a.order(&b) == Ordering::Equal || !(whole_a || whole_b));
            return Ok(());
        }
        prop_assert_eq!(key_a.cmp(&key_b), a.order(&b), "{:?} {:?}", a, b);
        // Whatever follows them does not matter.
        prop_assert!(!key_a.starts_with(&key_b) && !key_b.starts_with(&key_a));
        let with = |key: &[u8], tail: [u8; 8]| [key, &tail[..]].concat();
        let order = with(&key_a, tails[0]).cmp(&with(&key_b, tails[1]));
        prop_assert_eq!(order, a.order(&b));
    }

    /// The text of an item leads to the bytes, in either of its forms.
    #[test]
    fn texts_order_as_bytes((a, b) in two()) {
        let read = |text: String| {
            Typed::read(&json::parse(text.as_bytes()).expect("written")).expect("typed")
        };
        let (plain, with_type) = (a.to_value().to_string(), a.to_typed_value().to_string());
        prop_assert_eq!(bytes(&read(plain.clone())), bytes(&a));
        prop_assert_eq!(bytes(&read(with_type)), bytes(&a));
        prop_assert_eq!(read(plain).order(&read(b.to_value().to_string())), a.order(&b));
    }
}

/// Each line is a text and its bytes, so that no change of them goes unnoticed.
#[test]
fn bytes_are_those_of_the_format() {
    for (text, hex) in [
        (r#"{"$t":-1,"$v":null}"#, "a0"),
        ("null", "a4"),
        ("5", "a8c01400000000000000"),
        (r#"{"$t":19,"$v":"5.00"}"#, "a8c01400000000000000"),
        (r#"{"$t":1,"$v":"NaN"}"#, "a8000000000000000000"),
        (
            r#"{"$t":18,"$v":9007199254740993}"#,
            "a8c34000000000000001800f0001bc16d674ec800de0b6b3a7640000",
        ),
        (r#""a""#, "ac6200"),
        (r#"{"$t":5,"$v":"80:AAH/"}"#, "b800000003800001ff"),
        (
            r#"{"$t":0,"$v":"00112233-4455-6677-8899-aabbccddeeff"}"#,
            "ba00112233445566778899aabbccddeeff",
        ),
        (r#"{"$t":7,"$v":"507f1f77bcf86cd799439011"}"#, "bc507f1f77bcf86cd799439011"),
        ("true", "c1"),
        (r#"{"$t":9,"$v":"00621355968000000001"}"#, "c480000000000000000001"),
        (r#"{"$t":17,"$v":[1,2]}"#, "c80000000100000002"),
        (r#"{"$t":127,"$v":null}"#, "df"),
    ] {
        let value = Typed::read(&json::parse(text.as_bytes()).expect("JSON")).expect("typed");
        let found = model::hex::Lower(&bytes(&value).0).to_string();
        assert_eq!(found, hex, "{text}");
    }
}
