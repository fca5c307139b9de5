use expect_test::expect;
use proptest::prelude::*;

use super::*;

fn problem(text: &str) -> String {
    match parse_raw(text.as_bytes()) {
        Ok(value) => format!("accepted {}", value.text()),
        Err(error) => error.to_string(),
    }
}

fn canonical_text(text: &str) -> String {
    canonical(text.as_bytes()).unwrap().into_owned()
}

#[test]
fn numbers_have_one_spelling() {
    for (written, kept) in [
        ("5.0", "5"),
        ("1e2", "100"),
        ("1E+2", "100"),
        ("50e-1", "5"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("1e-400", "0"),
        ("2.50", "2.5"),
        ("0.1000000000000000055", "0.1"),
        ("0.30000000000000004", "0.30000000000000004"),
        ("0.0000001", "0.0000001"),
        ("0.00000012", "0.00000012"),
        ("0.00000001", "1e-8"),
        ("9007199254740993", "9007199254740993"),
        ("9007199254740993.0", "9007199254740992"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9223372036854775808", "9.223372036854776e18"),
        ("12345678901234567890", "1.2345678901234567e19"),
        ("1e18", "1000000000000000000"),
        ("1e20", "1e20"),
        ("1E300", "1e300"),
    ] {
        assert_eq!(canonical_text(written), kept, "{written}");
        assert_eq!(parse(written.as_bytes()).unwrap().to_string(), kept, "{written}");
        assert_eq!(canonical_text(kept), kept);
    }
    assert_eq!(
        canonical_text(r#" {"a": 1.0, "b": [2, 3e0, {"c": 4.5, "d": 6.00}]} "#),
        r#"{"a": 1, "b": [2, 3, {"c": 4.5, "d": 6}]}"#
    );
}

#[test]
fn the_last_of_equal_names_counts() {
    for (written, kept) in [
        (r#"{"a":1,"b":2,"a":3}"#, r#"{"b":2,"a":3}"#),
        (r#"{"a":1,"\u0061":2}"#, r#"{"\u0061":2}"#),
        (r#"{"a":1,"a":2,"a":3}"#, r#"{"a":3}"#),
        (r#"{ "a" : 1.0 , "b" : 2.0 , "a" : 3.0 }"#, r#"{ "b" : 2 , "a" : 3 }"#),
        (r#"[{"a":{"x":1,"x":2.0}, "b":5.0, "a":{"y":[1.0],"y":0}}]"#, r#"[{"b":5, "a":{"y":0}}]"#),
        (r#"{"a":{"x":1,"x":2},"b":{"x":3,"x":4},"c":1}"#, r#"{"a":{"x":2},"b":{"x":4},"c":1}"#),
        ("{\"a\tb\":1,\"a\\tb\":2}", "{\"a\\tb\":2}"),
    ] {
        assert_eq!(canonical_text(written), kept, "{written}");
        parse_raw(kept.as_bytes()).unwrap();
    }
    let many: String = (0..100).map(|n| format!("\"n{}\":{n},", n % 90)).collect();
    let kept = parse(format!("{{{many}\"last\":0}}").as_bytes()).unwrap();
    assert_eq!(kept.as_object().unwrap().len(), 91);
    assert_eq!(kept.get("n5").unwrap().to_string(), "95");
}

#[test]
fn bare_blanks_in_strings_are_escaped() {
    assert_eq!(canonical_text("{\"a\tb\":\"c\r\nd\"}"), r#"{"a\tb":"c\r\nd"}"#);
    for control in ["\0", "\u{8}", "\u{b}", "\u{c}", "\u{1f}"] {
        let text = format!("\"{control}\"");
        assert_eq!(canonical(text.as_bytes()).unwrap_err().problem, JsonProblem::Control);
    }
}

#[test]
fn canonical_text_is_not_copied() {
    for text in ["{}", r#"{"a":[1,-2.5,"x\ty",null],"b":1234567890.123}"#, "9.223372036854776e18"] {
        let padded = format!(" \n{text}\t");
        assert!(matches!(canonical(padded.as_bytes()), Ok(Cow::Borrowed(kept)) if kept == text));
    }
}

#[test]
fn says_what_is_wrong_and_where() {
    let cases = [
        "",
        "{",
        "[1,]",
        "{\"a\" 1}",
        "nul",
        "01",
        "1.",
        "-",
        "1e",
        "1e999",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"a\nb\"",
        "{} x",
        "{\"a\":1,\"b\":{},\"a\":2}",
        "{\"a\":1,\"\\u0061\":2}",
    ];
    let all: String = cases.iter().map(|case| format!("{case:?}: {}\n", problem(case))).collect();
    expect![[r#"
        "": unexpected end of text at byte 0
        "{": unexpected end of text at byte 1
        "[1,]": unexpected character at byte 3
        "{\"a\" 1}": unexpected character at byte 5
        "nul": unexpected character at byte 0
        "01": text after the end of the value at byte 1
        "1.": unexpected end of text at byte 2
        "-": unexpected end of text at byte 1
        "1e": unexpected end of text at byte 2
        "1e999": number out of range at byte 5
        "\"\\x\"": invalid escape sequence or unpaired surrogate at byte 2
        "\"\\ud800\"": invalid escape sequence or unpaired surrogate at byte 7
        "\"\\ud800\\u0041\"": invalid escape sequence or unpaired surrogate at byte 13
        "\"a\nb\"": control character in a string at byte 2
        "{} x": text after the end of the value at byte 3
        "{\"a\":1,\"b\":{},\"a\":2}": property named twice in one object at byte 14
        "{\"a\":1,\"\\u0061\":2}": property named twice in one object at byte 7
    "#]]
    .assert_eq(&all);
}

#[test]
fn large_objects_are_checked_for_repeated_names_too() {
    let names: String = (0..100).map(|n| format!("\"n{n}\":0,")).collect();
    assert!(parse_raw(format!("{{{names}\"last\":0}}").as_bytes()).is_ok());
    let error = parse_raw(format!("{{{names}\"n50\":0}}").as_bytes()).unwrap_err();
    assert_eq!(error.problem, JsonProblem::Duplicate);
}

#[test]
fn nesting_is_accepted_up_to_the_limit() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(parse(nested(DEPTH_MAX).as_bytes()).is_ok());
    assert_eq!(parse(nested(DEPTH_MAX + 1).as_bytes()).unwrap_err().problem, JsonProblem::Depth);
    assert_eq!(parse("[".repeat(1 << 20).as_bytes()).unwrap_err().problem, JsonProblem::Depth);
}

#[test]
fn bytes_that_are_not_text_are_refused() {
    assert_eq!(
        parse(b"\"\xff\"").unwrap_err(),
        JsonError { offset: 1, problem: JsonProblem::Encoding }
    );
}

#[test]
fn raw_finds_what_the_tree_holds() {
    let text = r#" { "a" : [ 1 , {"b": "x\u00e9\ud83d\ude00"} ] , "c\"d" : null, "e": {} } "#;
    let raw = parse_raw(text.as_bytes()).unwrap();
    let element = raw.get("a").unwrap().elements().nth(1).unwrap();
    assert_eq!(element.get("b").unwrap().as_str().unwrap(), "x\u{e9}\u{1F600}");
    assert_eq!(raw.get("c\"d").unwrap().kind(), JsonKind::Null);
    assert_eq!(raw.path(["e", "f"]).map(Raw::text), None);
    assert_eq!(raw.members().count(), 3);
}

#[test]
fn computed_numbers_are_spelled_shortly() {
    let spell = |value: f64| Number::from_f64(value).map(|n| n.to_string());
    assert_eq!(spell(3.0).unwrap(), "3");
    assert_eq!(spell(0.1 + 0.2).unwrap(), "0.30000000000000004");
    assert_eq!(spell(-0.0).unwrap(), "0");
    assert_eq!(spell(1e300).unwrap(), "1e300");
    assert_eq!(spell(5e-324).unwrap(), "5e-324");
    assert_eq!(spell(f64::NAN), None);
}

#[test]
fn types_have_one_order() {
    let texts = [
        "null",
        "false",
        "true",
        "-1",
        "2",
        "\"\"",
        "\"a\"",
        "\"b\"",
        "[]",
        "[1]",
        "{}",
        "{\"a\":1}",
    ];
    let values: Vec<Value> = texts.iter().map(|text| parse(text.as_bytes()).unwrap()).collect();
    assert!(values.is_sorted());
    assert!(values.windows(2).all(|pair| pair[0] != pair[1]));
}

fn any_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
            prop::collection::btree_map(any::<String>(), inner, 0..8)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Texts that repeat names and spell numbers in every form.
fn written() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "-?(0|[1-9][0-9]{0,20})([.][0-9]{1,20})?([eE][+-]?[0-9]{1,2})?",
        any::<f64>()
            .prop_map(|number| format!("{number:?}").replace("NaN", "0").replace("inf", "1")),
        "\"[a-c]{0,3}\"",
        Just("null".to_owned()),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        let blank = "[ \t\n]{0,2}";
        prop_oneof![
            prop::collection::vec((inner.clone(), blank), 0..8).prop_map(|items| {
                let items: Vec<_> =
                    items.iter().map(|(item, blank)| format!("{blank}{item}{blank}")).collect();
                format!("[{}]", items.join(","))
            }),
            prop::collection::vec((r"[a-c]|\\u006[1-3]", inner, blank), 0..16).prop_map(
                |members| {
                    let members: Vec<_> = members
                        .iter()
                        .map(|(name, value, blank)| {
                            format!("{blank}\"{name}\"{blank}:{value}{blank}")
                        })
                        .collect();
                    format!("{{{}}}", members.join(","))
                }
            ),
        ]
    })
}

/// All numbers as doubles, which is how they compare.
fn doubles(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value as Json;
    match value {
        Json::Number(number) => number.as_f64().map(|double| double + 0.0).into(),
        Json::Array(items) => items.into_iter().map(doubles).collect(),
        Json::Object(members) => {
            members.into_iter().map(|(name, value)| (name, doubles(value))).collect()
        }
        other @ (Json::Null | Json::Bool(_) | Json::String(_)) => other,
    }
}

proptest! {
    #[test]
    fn agrees_with_another_parser(value in any_value(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let ours = parse(text.as_bytes()).unwrap().to_string();
        let ours: serde_json::Value = serde_json::from_str(&ours).unwrap();
        prop_assert_eq!(doubles(ours), doubles(value));
    }

    #[test]
    fn accepts_only_what_another_parser_accepts(text in "[\\[\\]{}:,0-9eE.\\-+ntfalsr\"\\\\u ]{0,24}") {
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        match parse(text.as_bytes()) {
            Ok(ours) => prop_assert_eq!(&ours, &parse(theirs.unwrap().to_string().as_bytes()).unwrap()),
            Err(_) => prop_assert!(theirs.is_err(), "{}", text),
        }
    }

    #[test]
    fn canonical_text_says_the_same_and_stays(text in written()) {
        let once = canonical(text.as_bytes()).unwrap().into_owned();
        prop_assert!(matches!(canonical(once.as_bytes()), Ok(Cow::Borrowed(twice)) if twice == once));
        prop_assert!(parse_raw(once.as_bytes()).is_ok(), "{}", once);
        let theirs: serde_json::Value = serde_json::from_str(&text).unwrap();
        let ours: serde_json::Value = serde_json::from_str(&once).unwrap();
        prop_assert_eq!(doubles(ours), doubles(theirs));
    }

    #[test]
    fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(raw) = parse_raw(&bytes) {
            let _ = raw.to_value();
        }
        if let Ok(text) = std::str::from_utf8(&bytes) {
            let _ = Raw::trusted(text).to_value();
        }
    }
}
