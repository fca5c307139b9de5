//! Queries that ask for too much stack, time or memory are refused or stopped at
//! a named limit. Tests run on threads with two megabytes of stack, as workers do.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use model::json::{self, Raw, Value};
use query::{EXPRESSION_HEIGHT_MAX, NESTING_MAX, Parameters, QUERY_BYTES_MAX, Query, QueryError};

fn run(text: &str, documents: &[&str], parameters: &Parameters) -> Result<Vec<Value>, QueryError> {
    let bound = Query::parse(text)?.bind(parameters)?;
    bound.execute(documents.iter().map(|text| Raw::trusted(text)))
}

/// Runs a query without documents and names the limit that stopped it, if one did.
fn outcome(text: &str) -> String {
    match run(text, &["{}"], &Parameters::none()) {
        Ok(rows) => format!("{} rows", rows.len()),
        Err(QueryError::Limit { what, .. }) => what.to_owned(),
        Err(QueryError::Invalid(errors)) => errors[0].code.to_string(),
        Err(other) => panic!("{other}"),
    }
}

fn nested(open: &str, levels: usize, inside: &str, close: &str) -> String {
    format!("SELECT VALUE {}{inside}{}", open.repeat(levels), close.repeat(levels))
}

#[test]
fn brackets_in_front_need_no_stack() {
    assert_eq!(outcome(&nested("(", 20_000, "1", ")")), "1 rows");
    assert_eq!(outcome(&nested("(", 1_900, "true", " OR false)")), "1 rows");
    assert_eq!(outcome(&nested("NOT (", 20_000, "true", ")")), "levels of nesting");
}

#[test]
fn nesting_is_refused_beyond_the_limit() {
    for (open, close) in [
        ("[", "]"),
        ("{a:", "}"),
        ("ABS(", ")"),
        ("(1 + ", ")"),
        ("(SELECT VALUE ", ")"),
        ("ARRAY(SELECT VALUE ", ")"),
        ("true ? 1 : ", ""),
        ("true ? ", " : 1"),
        ("1 ?? ", ""),
        ("c[", "]"),
        ("1 IN (", ")"),
    ] {
        let text = nested(open, 20_000, "1", close);
        assert_eq!(outcome(&text), "levels of nesting", "{open}");
        // Just inside the limit it is not the stack that decides.
        if !open.contains("SELECT") {
            assert_ne!(
                outcome_or_error(&nested(open, NESTING_MAX - 4, "1", close)),
                "levels of nesting"
            );
        }
    }
    let from = "SELECT VALUE 1 FROM (".repeat(20_000);
    assert_eq!(outcome(&from), "levels of nesting");
}

fn outcome_or_error(text: &str) -> String {
    match run(text, &["{}"], &Parameters::none()) {
        Err(QueryError::Limit { what, .. }) => what.to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn high_trees_are_refused() {
    let high = "levels in one expression";
    assert_eq!(outcome(&format!("SELECT VALUE {} true", "NOT ".repeat(50_000))), high);
    assert_eq!(outcome(&format!("SELECT VALUE 1{}", "+1".repeat(100_000))), high);
    assert_eq!(outcome(&format!("SELECT VALUE 'a'{}", "||'b'".repeat(50_000))), high);
    assert_eq!(outcome(&format!("SELECT VALUE {{}}{}", ".a".repeat(50_000))), high);
    assert_eq!(outcome(&format!("SELECT VALUE {{}}{}", "[0]".repeat(50_000))), high);
    let most = EXPRESSION_HEIGHT_MAX - 1;
    assert_eq!(outcome(&format!("SELECT VALUE 1{}", "+1".repeat(most))), "1 rows");
    assert_eq!(outcome(&format!("SELECT VALUE {} true", "NOT ".repeat(most))), "1 rows");
}

#[test]
fn long_chains_and_lists_are_counted() {
    assert_eq!(outcome(&format!("SELECT VALUE true{}", " AND true".repeat(50_000))), "SC3003");
    assert_eq!(outcome(&format!("SELECT VALUE true{}", " OR true".repeat(50_000))), "SC3004");
    assert_eq!(outcome(&format!("SELECT VALUE true{}", " AND true".repeat(2_000))), "1 rows");
    assert_eq!(outcome(&format!("SELECT VALUE 1 IN (1{})", ",1".repeat(16_000))), "SC3006");
    assert_eq!(outcome(&format!("SELECT VALUE 1 IN (1{})", ",1".repeat(15_999))), "1 rows");
    assert_eq!(outcome(&format!("SELECT VALUE 1 FROM c{}", " JOIN x IN c.l".repeat(11))), "SC3002");
    let text = format!("SELECT VALUE '{}'", "x".repeat(QUERY_BYTES_MAX));
    assert_eq!(outcome(&text), "SC3001");
}

#[test]
fn errors_do_not_repeat_the_whole_text() {
    let text = format!("SELECT VALUE '{}", "x".repeat(100_000));
    assert!(Query::parse(&text).unwrap_err().to_string().len() < 300);
}

#[test]
fn cross_joins_are_stopped() {
    let list: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    let document = format!("{{\"l\":[{}]}}", list.join(","));
    let text =
        "SELECT VALUE COUNT(1) FROM c JOIN a IN c.l JOIN b IN c.l JOIN d IN c.l JOIN e IN c.l";
    let error = run(text, &[&document], &Parameters::none()).unwrap_err();
    assert!(matches!(error, QueryError::Limit { what: "steps of evaluation", .. }), "{error}");
}

#[test]
fn values_that_double_are_stopped() {
    let doubled = |level: &str| {
        let (mut text, rest) = (String::from("SELECT VALUE 'xx'"), 60);
        for _ in 0..rest {
            text = format!("SELECT VALUE {level} FROM ({text}) AS v");
        }
        outcome(&text)
    };
    assert_eq!(doubled("v || v"), "bytes in one value");
    assert_eq!(doubled("CONCAT(v, v)"), "bytes in one value");
    assert_eq!(doubled("[v, v]"), "bytes in one value");
    assert_eq!(doubled("{a: v, b: v}"), "bytes in one value");
    assert_eq!(doubled("REPLACE(v, 'x', v)"), "bytes in one value");
}

#[test]
fn large_arguments_are_stopped_before_they_are_joined() {
    let parameters = Parameters::none().with("@p", "x".repeat(2_000_000));
    let text = format!("SELECT VALUE LENGTH(CONCAT(@p{}))", ",@p".repeat(10_000));
    let error = run(&text, &[], &parameters).unwrap_err();
    let what = "bytes in the arguments of one call";
    assert!(matches!(error, QueryError::Limit { what: found, .. } if found == what), "{error}");
}

#[test]
fn long_lists_are_not_compared_each_with_each() {
    let numbers: Vec<String> = (0..60_000).map(|n| n.to_string()).collect();
    let list = numbers.join(",");
    let parameters =
        Parameters::none().with("@all", json::parse(format!("[{list}]").as_bytes()).unwrap());
    let text = format!("SELECT VALUE ARRAY_CONTAINS_ALL(@all, {list})");
    assert_eq!(run(&text, &[], &parameters).unwrap(), [Value::Bool(true)]);
    let text = "SELECT VALUE STRINGSPLIT(@dots, '.')";
    let parameters = Parameters::none().with("@dots", ".".repeat(2_000_000));
    let error = run(text, &[], &parameters).unwrap_err();
    assert!(matches!(error, QueryError::Limit { what: "bytes in one value", .. }), "{error}");
}

#[test]
fn patterns_that_go_back_and_forth_are_stopped() {
    let parameters = Parameters::none()
        .with("@text", "a".repeat(1_000_000))
        .with("@pattern", format!("%{}b", "a".repeat(1_000)));
    let error = run("SELECT VALUE @text LIKE @pattern", &[], &parameters).unwrap_err();
    assert!(matches!(error, QueryError::Limit { what: "steps of evaluation", .. }), "{error}");
}

#[test]
fn documents_of_the_greatest_depth_are_walked() {
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(127), "]".repeat(127));
    let text = "SELECT DISTINCT VALUE ToString(c.a) FROM c WHERE c.a = c.a ORDER BY c.a";
    assert_eq!(run(text, &[&deep, &deep], &Parameters::none()).unwrap().len(), 1);
}
