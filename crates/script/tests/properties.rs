//! Values on their way through a script: what goes in as JSON comes out the same, and where
//! it does not, the difference is the one that JavaScript makes.
//!
//! Arguments and results pass the same functions as documents do.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[path = "golden/memory.rs"]
#[allow(dead_code, reason = "a host of which this needs a part")]
mod memory;

use memory::{Memory, surroundings};
use proptest::prelude::*;
use script::{Fault, Script, ScriptLimits, ScriptTask, StoredFunction};
use serde_json::{Map, Value, json};

fn echo() -> StoredFunction<Memory> {
    let script = Script::compile("echo", "function (x) { return x; }").unwrap();
    StoredFunction::new(&script, ScriptLimits::default(), Memory::default()).unwrap()
}

/// What the text of one argument becomes.
fn through(text: &str) -> String {
    echo().call(&format!("[{text}]")).unwrap().unwrap()
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("JSON has no such number", |n| n.is_finite())
            .prop_map(Value::from),
        (-(1_i64 << 53)..=1 << 53).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        let names = prop_oneof![
            any::<String>(),
            Just("__proto__".to_owned()),
            Just("constructor".to_owned()),
            Just("length".to_owned()),
            "[0-9]{1,11}",
        ];
        let object = prop::collection::vec((names, inner.clone()), 0..8);
        prop_oneof![
            prop::collection::vec(inner, 0..8).prop_map(Value::from),
            object.prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Numbers as JavaScript has them: doubles, of which two zeros are written alike.
fn as_doubles(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64().unwrap() + 0.0),
        Value::Array(list) => list.iter().map(as_doubles).collect(),
        Value::Object(object) => Value::Object(
            object.iter().map(|(name, value)| (name.clone(), as_doubles(value))).collect(),
        ),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn json_comes_back(value in values()) {
        let back: Value = serde_json::from_str(&through(&value.to_string())).unwrap();
        prop_assert_eq!(as_doubles(&back), as_doubles(&value));
    }

    #[test]
    fn what_came_back_once_comes_back_the_same(value in values()) {
        let once = through(&value.to_string());
        prop_assert_eq!(through(&once), once);
    }

    /// Documents pass as arguments do.
    #[test]
    fn documents_come_back(value in values()) {
        let script = Script::compile("copy", "function (x) {
            __.createDocument(__.getSelfLink(), { id: '1', pk: 'a', x: x }, function (err, doc) {
                if (err) throw err;
                __.readDocument(doc._self, (err, doc) => __.response.setBody(doc.x));
            });
        }").unwrap();
        let arguments = format!("[{value}]");
        let task = ScriptTask::Procedure { arguments: &arguments };
        let ended = script::run(&script, &task, &surroundings(), ScriptLimits::default(), Memory::default());
        let back: Value = serde_json::from_str(&ended.result.unwrap().unwrap()).unwrap();
        prop_assert_eq!(as_doubles(&back), as_doubles(&value));
    }

    /// Texts that mean nothing are refused or run; nothing else happens.
    #[test]
    fn any_text_is_refused_or_runs(text in "(function|\\(|\\)|=>|\\{|\\}|;|[a-z0-9 /'\"`.,*\n]|\\PC){0,60}", arguments in "\\PC{0,20}") {
        if let Ok(script) = Script::compile("any", &text) {
            let limits = ScriptLimits { ticks_max: 20, ..ScriptLimits::default() };
            let task = ScriptTask::Procedure { arguments: &arguments };
            let _ = script::run(&script, &task, &surroundings(), limits, Memory::default());
        }
    }
}

#[test]
fn numbers() {
    for (given, back) in [
        ("0", "0"),
        // JSON.stringify writes both zeros alike.
        ("-0", "0"),
        ("-0.0", "0"),
        ("1.0", "1"),
        ("9007199254740991", "9007199254740991"),
        // Beyond 2^53 a number is the nearest double.
        ("9007199254740993", "9007199254740992"),
        ("12345678901234567890", "12345678901234567000"),
        ("1e21", "1e+21"),
        ("5e-324", "5e-324"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        // JavaScript reads what is too large as infinity, which JSON writes as null.
        ("1e400", "null"),
        ("0.1", "0.1"),
    ] {
        assert_eq!(through(given), back, "{given}");
    }
}

#[test]
fn strings() {
    for (given, back) in [
        (r#""\u0000\u001f""#, r#""\u0000\u001f""#),
        (r#""\u2028\u2029""#, "\"\u{2028}\u{2029}\""),
        (r#""\ud83d\ude00""#, "\"😀\""),
        // Half of a pair stays half, spelled out.
        (r#""\ud800""#, r#""\ud800""#),
        (r#""a\udc00b""#, r#""a\udc00b""#),
        (r#""\/""#, r#""/""#),
    ] {
        assert_eq!(through(given), back, "{given}");
    }
}

#[test]
fn names_of_properties() {
    // A property named __proto__ is a property, and changes no prototype.
    assert_eq!(through(r#"{"__proto__":{"x":1}}"#), r#"{"__proto__":{"x":1}}"#);
    let script = Script::compile("p", "function (o) { return [o.x, ({}).x, Object.keys(o)]; }");
    let mut function =
        StoredFunction::new(&script.unwrap(), ScriptLimits::default(), Memory::default()).unwrap();
    let back = function.call(r#"[{"__proto__":{"x":1}}]"#).unwrap().unwrap();
    assert_eq!(back, r#"[null,null,["__proto__"]]"#);
    // Names that are small numbers come first, in order; of two equal names the last counts.
    assert_eq!(through(r#"{"b":1,"10":2,"9":3,"a":4}"#), r#"{"9":3,"10":2,"b":1,"a":4}"#);
    assert_eq!(through(r#"{"a":1,"a":2}"#), r#"{"a":2}"#);
}

#[test]
fn depth() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    // Documents have at most 128 levels.
    assert_eq!(through(&nested(500)), nested(500));
    let deep = echo().call(&nested(1_000_000));
    assert!(matches!(deep, Err(Fault::Arguments { .. })), "{deep:?}");
}
