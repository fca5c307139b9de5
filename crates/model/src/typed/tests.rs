use proptest::prelude::*;

use super::decimal::Finite;
use super::*;
use crate::json;

/// Places after the point with which any double is written exactly.
const PLACES: usize = 1_080;

fn read(text: &str) -> Option<Typed> {
    Typed::read(&json::parse(text.as_bytes()).unwrap())
}

#[test]
fn texts_are_those_of_the_format() {
    for (text, shown) in [
        (r#"{"$t":0,"$v":"00112233-4455-6677-8899-aabbccddeeff"}"#, "Guid([0, 17, 34, 51"),
        (r#"{"$t":1,"$v":5}"#, "Number(Double(5.0))"),
        (r#"{"$t":1,"$v":"-0"}"#, "Number(Double(-0.0))"),
        (r#"{"$t":1,"$v":"NaN"}"#, "Number(Double(NaN))"),
        (r#"{"$t":5,"$v":"AAH/"}"#, "Binary { subtype: 0, bytes: [0, 1, 255] }"),
        (r#"{"$t":5,"$v":"80:AAH/"}"#, "Binary { subtype: 128, bytes: [0, 1, 255] }"),
        (r#"{"$t":7,"$v":"507f1f77bcf86cd799439011"}"#, "ObjectId([80, 127, 31"),
        (r#"{"$t":9,"$v":"00621355968000000000"}"#, "Date(Date { millis: 0, ticks: 0 })"),
        (r#"{"$t":9,"$v":"00621355967999999999"}"#, "Date(Date { millis: -1, ticks: 9999 })"),
        (r#"{"$t":9,"$v":253402300800000}"#, "Date(Date { millis: 253402300800000, ticks: 0 })"),
        ("7", "Number(Int32(7))"),
        (r#"{"$t":17,"$v":[1,4294967295]}"#, "Timestamp { seconds: 1, increment: 4294967295 }"),
        (r#"{"$t":18,"$v":7}"#, "Number(Int64(7))"),
        ("9007199254740993", "Number(Int64(9007199254740993))"),
        ("1.5", "Number(Double(1.5))"),
        (r#"{"$t":19,"$v":"1.50"}"#, "Number(Decimal("),
        (r#"{"$t":-1,"$v":null}"#, "MinKey"),
        (r#"{"$t":127,"$v":null}"#, "MaxKey"),
    ] {
        let typed = read(text).unwrap_or_else(|| panic!("{text} is no typed value"));
        let debug = format!("{typed:?}");
        assert!(debug.starts_with(shown), "{text}: {debug}");
        assert_eq!(typed.to_value().to_string(), text);
    }
    for (typed, text) in [
        (r#"{"$t":2,"$v":"x"}"#, r#""x""#),
        (r#"{"$t":8,"$v":true}"#, "true"),
        (r#"{"$t":16,"$v":-3}"#, "-3"),
        (r#"{"$v":7,"$t":18}"#, r#"{"$t":18,"$v":7}"#),
        (r#"{"$t":0,"$v":"00112233-4455-6677-8899-AABBCCDDEEFF"}"#, "{"),
    ] {
        let shown = read(typed).unwrap().to_value().to_string();
        assert!(shown.starts_with(text), "{typed}: {shown}");
    }
}

/// Objects that only resemble typed values are objects.
#[test]
fn look_alikes_are_objects() {
    for text in [
        r#"{"$t":9}"#,
        r#"{"$v":1}"#,
        r#"{"$t":9,"$v":"00621355968000000000","x":1}"#,
        r#"{"$t":9,"$v":"621355968000000000"}"#,
        r#"{"$t":9,"$v":"+0621355968000000000"}"#,
        r#"{"$t":9,"$v":"99999999999999999999"}"#,
        r#"{"$t":9,"$v":0}"#,
        r#"{"$t":"9","$v":"00621355968000000000"}"#,
        r#"{"$t":9.5,"$v":"00621355968000000000"}"#,
        r#"{"$t":1,"$v":"1"}"#,
        r#"{"$t":1,"$v":"inf"}"#,
        r#"{"$t":16,"$v":2147483648}"#,
        r#"{"$t":16,"$v":1.5}"#,
        r#"{"$t":18,"$v":9223372036854775808}"#,
        r#"{"$t":19,"$v":"01"}"#,
        r#"{"$t":19,"$v":"1e3"}"#,
        r#"{"$t":19,"$v":"-NaN"}"#,
        r#"{"$t":19,"$v":"1E+7000"}"#,
        r#"{"$t":19,"$v":"12345678901234567890123456789012345"}"#,
        r#"{"$t":0,"$v":"00112233445566778899aabbccddeeff"}"#,
        r#"{"$t":5,"$v":"AAH"}"#,
        r#"{"$t":5,"$v":"00:AAH/"}"#,
        r#"{"$t":7,"$v":"507f1f77bcf86cd79943901"}"#,
        r#"{"$t":17,"$v":[1]}"#,
        r#"{"$t":17,"$v":[-1,0]}"#,
        r#"{"$t":127,"$v":1}"#,
        r#"{"$t":3,"$v":{}}"#,
        r#"{"$t":42,"$v":1}"#,
        "{}",
        "[]",
    ] {
        assert_eq!(read(text), None, "{text}");
    }
}

#[test]
fn decimals_are_spelled_as_in_the_standard() {
    for (digits, exponent, text) in [
        (0, 0, "0"),
        (0, -2, "0.00"),
        (0, 3, "0E+3"),
        (123, 0, "123"),
        (123, -2, "1.23"),
        (123, -5, "0.00123"),
        (1, -6, "0.000001"),
        (1, -7, "1E-7"),
        (123, -10, "1.23E-8"),
        (123, 1, "1.23E+3"),
        (1, 6111, "1E+6111"),
        (1, -6176, "1E-6176"),
    ] {
        let decimal = Decimal::new(false, digits, exponent).unwrap();
        assert_eq!(decimal.to_string(), text);
        assert_eq!(Decimal::parse(text), Some(decimal));
        let minus = Decimal::new(true, digits, exponent).unwrap();
        assert_eq!(Decimal::parse(&format!("-{text}")), Some(minus));
    }
    assert_eq!(Decimal::new(false, 10_u128.pow(34), 0), None);
    assert_eq!(Decimal::new(false, 1, 6112), None);
}

/// Each is below the next.
#[test]
fn types_and_extremes_are_in_order() {
    let ascending = [
        r#"{"$t":-1,"$v":null}"#,
        "null",
        r#"{"$t":1,"$v":"NaN"}"#,
        r#"{"$t":1,"$v":"-Infinity"}"#,
        r#"{"$t":19,"$v":"-1E+309"}"#,
        "-1.7976931348623157e308",
        r#"{"$t":19,"$v":"-1E-6176"}"#,
        "0",
        r#"{"$t":19,"$v":"1E-6176"}"#,
        "5e-324",
        r#"{"$t":19,"$v":"0.1"}"#,
        "0.1",
        r#"{"$t":1,"$v":9007199254740992}"#,
        r#"{"$t":18,"$v":9007199254740993}"#,
        r#"{"$t":19,"$v":"9007199254740993.5"}"#,
        r#"{"$t":1,"$v":9007199254740994}"#,
        "1.7976931348623157e308",
        r#"{"$t":19,"$v":"1E+309"}"#,
        r#"{"$t":19,"$v":"Infinity"}"#,
        r#""""#,
        r#""a""#,
        r#"{"$t":5,"$v":"/w=="}"#,
        r#"{"$t":5,"$v":"AAA="}"#,
        r#"{"$t":5,"$v":"01:AAA="}"#,
        r#"{"$t":0,"$v":"00000000-0000-0000-0000-000000000000"}"#,
        r#"{"$t":7,"$v":"000000000000000000000000"}"#,
        "false",
        "true",
        r#"{"$t":9,"$v":-9223372036854775808}"#,
        r#"{"$t":9,"$v":"00000000000000000000"}"#,
        r#"{"$t":9,"$v":"00621355968000000001"}"#,
        r#"{"$t":9,"$v":253402300800000}"#,
        r#"{"$t":17,"$v":[0,1]}"#,
        r#"{"$t":17,"$v":[1,0]}"#,
        r#"{"$t":127,"$v":null}"#,
    ];
    let ascending = ascending.map(|text| read(text).unwrap());
    assert!(ascending.is_sorted_by(|a, b| a.order(b) == Ordering::Less));
    let equal = ["5", r#"{"$t":1,"$v":5}"#, r#"{"$t":18,"$v":5}"#, r#"{"$t":19,"$v":"5.00"}"#];
    let equal = equal.map(|text| read(text).unwrap());
    assert!(equal.iter().all(|own| own.order(&equal[0]) == Ordering::Equal));
}

/// A number in full: sign, and digits before and after the point.
fn expanded(number: TypedNumber) -> (bool, String, String) {
    let (negative, text) = match number {
        TypedNumber::Int32(own) => (own < 0, own.unsigned_abs().to_string()),
        TypedNumber::Int64(own) => (own < 0, own.unsigned_abs().to_string()),
        TypedNumber::Double(own) => (own < 0.0, format!("{:.PLACES$}", own.abs())),
        TypedNumber::Decimal(own) => {
            let Finite { negative, digits, exponent } = own.finite().unwrap();
            let zeros = |count: i16| "0".repeat(usize::try_from(count).unwrap_or(0));
            let digits = format!("{}{digits}{}", zeros(-exponent), zeros(exponent));
            let point = digits.len() - usize::try_from(-exponent).unwrap_or(0);
            (negative, format!("{}.{}", &digits[..point], &digits[point..]))
        }
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let is_zero = whole.is_empty() && fraction.is_empty();
    (negative && !is_zero, whole.to_owned(), fraction.to_owned())
}

/// As one learns to compare numbers at school.
fn by_digits(a: TypedNumber, b: TypedNumber) -> Ordering {
    let ((a_minus, a_whole, a_rest), (b_minus, b_whole, b_rest)) = (expanded(a), expanded(b));
    let sizes = a_whole.len().cmp(&b_whole.len()).then(a_whole.cmp(&b_whole));
    let sizes = sizes.then(a_rest.cmp(&b_rest));
    match (a_minus, b_minus) {
        (true, true) => sizes.reverse(),
        (false, false) => sizes,
        (a, b) => b.cmp(&a),
    }
}

fn double() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("finite", |own| own.is_finite()),
        (-40_i32..40).prop_map(|own| f64::from(own) / 8.0),
        prop::sample::select(vec![0.1, 0.3, 5e-324, f64::MAX, f64::MIN, 9_007_199_254_740_992.0]),
    ]
}

fn decimal() -> impl Strategy<Value = Decimal> {
    let random = (any::<bool>(), any::<u128>(), 0..=34_u32, -400_i16..400);
    let random = random.prop_map(|(negative, digits, size, exponent)| {
        Decimal::new(negative, digits % 10_u128.pow(size), exponent).unwrap()
    });
    // Close to a double, in the number of digits that decides.
    let near = (double(), 1_usize..34).prop_map(|(double, places)| {
        let text = format!("{double:.places$e}");
        let (number, exponent) = text.split_once('e').unwrap();
        let (negative, digits) = (number.starts_with('-'), number.replace(['-', '.'], ""));
        let exponent: i16 = exponent.parse().unwrap();
        let last = exponent - i16::try_from(places).unwrap();
        Decimal::new(negative, digits.parse().unwrap(), last).unwrap()
    });
    let extreme =
        (any::<bool>(), 0..3_u128, prop::sample::select(vec![-6176_i16, -350, 308, 6111]));
    let extreme = extreme
        .prop_map(|(negative, digits, exponent)| Decimal::new(negative, digits, exponent).unwrap());
    prop_oneof![3 => random, 4 => near, 1 => extreme]
}

fn number() -> impl Strategy<Value = TypedNumber> {
    let wide = (any::<bool>(), 0..8_i64).prop_map(|(negative, own)| {
        let own = 9_007_199_254_740_990 + own;
        if negative { -own } else { own }
    });
    prop_oneof![
        any::<i32>().prop_map(TypedNumber::Int32),
        prop_oneof![any::<i64>(), wide].prop_map(TypedNumber::Int64),
        double().prop_map(TypedNumber::Double),
        decimal().prop_map(TypedNumber::Decimal),
    ]
}

/// Two numbers, often the same or next to each other.
fn two_numbers() -> impl Strategy<Value = (TypedNumber, TypedNumber)> {
    let near = number().prop_map(|own| {
        // Digits cannot express infinity.
        (own, TypedNumber::Double(own.exact().floor.max(f64::MIN)))
    });
    prop_oneof![2 => (number(), number()), 1 => near]
}

fn any_typed() -> impl Strategy<Value = Typed> {
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0].map(TypedNumber::Double);
    let decimals = [Decimal::NAN, Decimal::infinity(true), Decimal::infinity(false)];
    let special = special.into_iter().chain(decimals.map(TypedNumber::Decimal)).collect::<Vec<_>>();
    let bytes = || prop::collection::vec(any::<u8>(), 0..6);
    prop_oneof![
        Just(Typed::MinKey),
        Just(Typed::Null),
        number().prop_map(Typed::Number),
        prop::sample::select(special).prop_map(Typed::Number),
        "[a$é\u{0}]{0,3}".prop_map(Typed::String),
        (0..3_u8, bytes()).prop_map(|(subtype, bytes)| Typed::Binary { subtype, bytes }),
        any::<[u8; 16]>().prop_map(Typed::Guid),
        any::<[u8; 12]>().prop_map(Typed::ObjectId),
        any::<bool>().prop_map(Typed::Bool),
        any::<i64>().prop_map(|millis| Typed::Date(Date::from_millis(millis))),
        (0..3_155_378_976_000_000_000_u64)
            .prop_map(|ticks| Typed::Date(Date::from_ticks(ticks).unwrap())),
        any::<(u32, u32)>()
            .prop_map(|(seconds, increment)| Typed::Timestamp { seconds, increment }),
        Just(Typed::MaxKey),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn numbers_are_in_their_exact_order((a, b) in two_numbers()) {
        prop_assert_eq!(a.exact().cmp(&b.exact()), by_digits(a, b), "{:?} {:?}", a, b);
        prop_assert_eq!(a.exact().cmp(&a.exact()), Ordering::Equal);
    }

    /// A typed value survives both of its texts.
    #[test]
    fn values_come_back(typed in any_typed()) {
        for value in [typed.to_value(), typed.to_typed_value()] {
            let parsed = json::parse(value.to_string().as_bytes()).unwrap();
            // NaN is not equal to itself.
            prop_assert_eq!(format!("{:?}", Typed::read(&parsed)), format!("{:?}", Some(&typed)));
        }
    }

    #[test]
    fn the_order_is_total(a in any_typed(), b in any_typed(), c in any_typed()) {
        prop_assert_eq!(a.order(&b), b.order(&a).reverse());
        prop_assert_eq!(a.order(&a), Ordering::Equal);
        if a.order(&b).is_le() && b.order(&c).is_le() {
            prop_assert!(a.order(&c).is_le());
        }
    }

    /// Plain JSON keeps its text.
    #[test]
    fn plain_values_stay_plain(number in any::<i64>(), double in double(), text in ".{0,4}") {
        let double = Value::Number(Number::from_f64(double).unwrap());
        for plain in [Value::from(number), double, text.into(), Value::Null, true.into()] {
            prop_assert_eq!(Typed::read(&plain).unwrap().to_value().to_string(), plain.to_string());
        }
    }

    #[test]
    fn any_text_is_read_or_not(code in -2_i64..130, text in "[-+0-9A-Ea-f.:=NI]{0,24}") {
        let object = Object::from_iter([("$t", Value::from(code)), ("$v", Value::from(text))]);
        let _ = Typed::read(&object.into());
    }
}
