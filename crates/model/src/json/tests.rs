use expect_test::expect;
use proptest::prelude::*;

use super::*;

fn problem(text: &str) -> String {
    match parse(text.as_bytes()) {
        Ok(value) => format!("accepted {value}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn keeps_the_spelling_of_numbers() {
    let text = r#"{"a":1.0,"b":1e2,"c":12345678901234567890,"d":-0}"#;
    assert_eq!(parse(text.as_bytes()).unwrap().to_string(), text);
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
    assert!(parse(format!("{{{names}\"last\":0}}").as_bytes()).is_ok());
    let error = parse(format!("{{{names}\"n50\":0}}").as_bytes()).unwrap_err();
    assert_eq!(error.problem, Problem::Duplicate);
}

#[test]
fn nesting_is_accepted_up_to_the_limit() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(parse(nested(DEPTH_MAX).as_bytes()).is_ok());
    assert_eq!(parse(nested(DEPTH_MAX + 1).as_bytes()).unwrap_err().problem, Problem::Depth);
    assert_eq!(parse("[".repeat(1 << 20).as_bytes()).unwrap_err().problem, Problem::Depth);
}

#[test]
fn bytes_that_are_not_text_are_refused() {
    assert_eq!(
        parse(b"\"\xff\"").unwrap_err(),
        JsonError { offset: 1, problem: Problem::Encoding }
    );
}

#[test]
fn raw_finds_what_the_tree_holds() {
    let text = r#" { "a" : [ 1 , {"b": "x\u00e9\ud83d\ude00"} ] , "c\"d" : null, "e": {} } "#;
    let raw = parse_raw(text.as_bytes()).unwrap();
    let element = raw.get("a").unwrap().elements().nth(1).unwrap();
    assert_eq!(element.get("b").unwrap().as_str().unwrap(), "x\u{e9}\u{1F600}");
    assert_eq!(raw.get("c\"d").unwrap().kind(), Kind::Null);
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

proptest! {
    #[test]
    fn agrees_with_another_parser(value in any_value(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let ours = parse(text.as_bytes()).unwrap().to_string();
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&ours).unwrap(), value);
    }

    #[test]
    fn accepts_only_what_another_parser_accepts(text in "[\\[\\]{}:,0-9eE.\\-+ntfalsr\"\\\\u ]{0,24}") {
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        match parse(text.as_bytes()) {
            Ok(ours) => prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&ours.to_string()).unwrap(), theirs.unwrap()),
            Err(error) => prop_assert!(theirs.is_err() || error.problem == Problem::Duplicate, "{}", text),
        }
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
