//! Queries that ask for too much stack, time or memory are refused or stopped at
//! a named limit. What needs stack is tried with half of what worker threads have.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use model::json::{self, Raw, Value};
use model::partition_key::KeyKind;
use query::{
    Condition, DEEP_STACK_BYTES, EXPRESSION_HEIGHT_MAX, Features, KEPT_BYTES_MAX, KeyShape, Ledger,
    NESTING_MAX, Parameters, QUERY_BYTES_MAX, Query, QueryError, QueryLimits, Run, STEPS_MAX,
    check_computed_property,
};

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

/// Runs something on a thread with one megabyte of stack: worker threads have two.
fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(1024 * 1024).spawn(work).unwrap();
    thread.join().unwrap();
}

/// Runs something with half of the stack that deep queries are given.
fn on_deep_stack(work: impl FnOnce() + Send + 'static) {
    let stack = DEEP_STACK_BYTES / 2;
    let thread = std::thread::Builder::new().stack_size(stack).spawn(work).unwrap();
    thread.join().unwrap();
}

/// Does with a text all that can be done with one.
fn exercise(text: &str) {
    exercise_within(text, QueryLimits::default());
}

fn exercise_within(text: &str, limits: QueryLimits) {
    let Ok(query) = Query::parse_within(text, limits) else { return };
    let printed = query.syntax().to_string();
    let again = Query::parse_within(&printed, limits);
    // What is printed with brackets may be too complex to be read again.
    let same = again.as_ref().map(Query::syntax) == Ok(query.syntax());
    assert!(same || limits == QueryLimits::service(), "{text}");
    let _ = (query.clone() == query, query.advice());
    let (none, context) = (Parameters::none(), Arc::default());
    let key = KeyShape { kind: KeyKind::Hash, paths: vec![vec!["a".to_owned()]] };
    let _ = query.plan(&none, &context, &key, &Features::all());
    let Ok(bound) = query.bind(&none) else { return };
    let _ = bound.filter();
    let _ = bound.execute([r#"{"a":1,"l":[1,2]}"#].into_iter().map(Raw::trusted));
}

#[test]
fn the_highest_trees_fit_a_small_stack() {
    on_small_stack(|| {
        let height = EXPRESSION_HEIGHT_MAX - 2;
        let nests = [("[", "]"), ("{a:", "}"), ("ABS(", ")"), ("(1 + ", ")"), ("true ? 1 : ", "")];
        for (open, close) in nests {
            exercise(&format!("{} FROM c", nested(open, NESTING_MAX - 4, "c.a", close)));
        }
        for chain in ["+c.a", "||'b'", "=c.a", "*2", ".a", "[0]"] {
            exercise(&format!("SELECT VALUE c.a{} FROM c", chain.repeat(height)));
            exercise(&format!("SELECT * FROM c WHERE c.a{} ORDER BY c.a", chain.repeat(height)));
        }
        exercise(&format!("SELECT VALUE {} c.a FROM c", "NOT ".repeat(height)));
        let subqueries = NESTING_MAX / 4 - 1;
        exercise(&format!(
            "SELECT VALUE {}c.a{} FROM c",
            "(SELECT VALUE ".repeat(subqueries),
            " FROM c)".repeat(subqueries)
        ));
        let from = "SELECT VALUE x FROM (".repeat(subqueries);
        exercise(&format!("{from}SELECT VALUE c FROM c{}", ") x".repeat(subqueries)));
    });
}

/// Forms that lie in each other, with how often the service takes them: an opening, what
/// is inside, and an end.
const DEEPEST: &[(&str, &str, &str, usize)] = &[
    ("(", "1", ")", 994),
    ("(", "c.a", ")", 993),
    ("(1+", "c.a", ")", 331),
    ("[", "c.a", "]", 993),
    ("[", "", "]", 994),
    ("[1,", "c.a", "]", 331),
    ("{a:", "c.a", "}", 331),
    ("[{a:", "c.a", "}]", 248),
    ("ABS(", "c.a", ")", 496),
    ("CONCAT('a',", "c.a", ")", 248),
    ("NOT ", "c.a", "", 993),
    ("NOT (", "c.a", ")", 496),
    ("- ", "c.a", "", 993),
    ("~", "c.a", "", 993),
    ("c.b ? 1 : ", "c.a", "", 248),
    ("c.b ? ", "c.a", " : 1", 496),
    ("(", "c.a", " ? 1 : 2)", 991),
    ("c.b ?? ", "c.a", "", 496),
    ("(SELECT VALUE ", "c.a", ")", 248),
    ("EXISTS(SELECT VALUE ", "c.a", ")", 198),
    ("ARRAY(SELECT VALUE ", "c.a", ")", 198),
    ("EXISTS(SELECT VALUE 1 WHERE ", "c.a", ")", 198),
    ("1 IN (", "c.a", ")", 331),
    ("(", "c.a", " IN (1))", 991),
    ("1 BETWEEN 0 AND (", "c.a", ")", 198),
    ("'a' LIKE (", "c.a", ")", 331),
    ("(c.b AND ", "c.a", ")", 331),
    ("(", "c.a", " AND c.b)", 991),
    ("IIF(c.b,1,", "c.a", ")", 248),
    ("", "c.a", ".a", 998),
    ("", "c.a", "[0]", 998),
];

/// The limits were asked of the library, for each form alone.
#[test]
fn nesting_is_as_deep_as_in_the_service() {
    on_deep_stack(|| {
        let limits = QueryLimits::service();
        for (open, inside, close, most) in DEEPEST {
            let value = |levels: usize| open.repeat(levels) + inside + &close.repeat(levels);
            let accepts = |levels: usize, outcome: &str| {
                for text in [
                    format!("SELECT VALUE {} FROM c", value(levels)),
                    format!("SELECT * FROM c WHERE {}", value(levels)),
                ] {
                    let code = match Query::parse_within(&text, limits) {
                        Ok(_) => "accepted".to_owned(),
                        Err(QueryError::Invalid(errors)) => errors[0].code.to_string(),
                        Err(other) => other.to_string(),
                    };
                    assert_eq!(code, outcome, "{levels} {open}");
                }
            };
            accepts(*most, "accepted");
            accepts(most + 1, "SC1030");
            accepts(3_000, "SC1030");
            exercise_within(&format!("SELECT VALUE {} FROM c", value(*most)), limits);
        }
    });
}

#[test]
fn the_deepest_mixtures_need_no_more_stack() {
    on_deep_stack(|| {
        let limits = QueryLimits::service();
        let path = ".a".repeat(998);
        for (open, close) in [("[", "]"), ("NOT ", ""), ("(", ".a)"), ("{a:[", "]}"), ("ABS(", ")")]
        {
            let levels = 990 / open.len().min(4);
            let text = format!("{}c.a{path}{}", open.repeat(levels), close.repeat(levels));
            exercise_within(&format!("SELECT VALUE {text} FROM c ORDER BY c.a"), limits);
            exercise_within(&format!("SELECT c.b FROM c WHERE {text} GROUP BY c.b"), limits);
        }
        let from = "SELECT VALUE x FROM (".repeat(331);
        exercise_within(&format!("{from}SELECT VALUE c FROM c{}", ") x".repeat(331)), limits);
        let chained = format!("SELECT VALUE {}c.a{} FROM c", "[".repeat(900), "+c.a]".repeat(900));
        exercise_within(&chained, limits);
    });
}

/// Whoever has a query may drop it anywhere, for example where its client has gone.
#[test]
fn the_deepest_queries_are_dropped_on_a_small_stack() {
    for (open, inside, close, most) in DEEPEST {
        let text =
            format!("SELECT VALUE {}{inside}{} FROM c", open.repeat(*most), close.repeat(*most));
        let (send, made) = std::sync::mpsc::sync_channel(1);
        on_deep_stack(move || {
            let query = Query::parse_within(&text, QueryLimits::service()).unwrap();
            let bound = query.bind(&Parameters::none()).ok();
            let key = KeyShape { kind: KeyKind::Hash, paths: vec![vec!["a".to_owned()]] };
            let (none, context) = (Parameters::none(), Arc::default());
            let plan = query.plan(&none, &context, &key, &Features::all());
            send.send((query, bound, plan)).unwrap();
        });
        on_small_stack(move || drop(made.recv().unwrap()));
    }
}

/// Conditions of patches and computed properties are read and asked on threads with an
/// ordinary stack, and so are queries unless somebody asks for more.
#[test]
fn what_is_read_on_any_thread_is_less_deep() {
    on_small_stack(|| {
        for (open, inside, close, most) in DEEPEST {
            for levels in [*most, 200, 125, 60, 40] {
                let (open, close) = (open.repeat(levels), close.repeat(levels));
                let value = format!("{open}{inside}{close}");
                exercise(&format!("SELECT VALUE {value} FROM c"));
                let _ = check_computed_property(&format!("SELECT VALUE {value} FROM c"));
                let condition = Condition::parse(&format!("FROM c WHERE {value}"));
                let _ = condition.map(|own| own.holds(Raw::trusted(r#"{"a":1,"l":[1,2]}"#)));
            }
        }
    });
}

#[test]
fn texts_without_end_fit_a_small_stack() {
    on_small_stack(|| {
        for text in [
            nested("(", 20_000, "1", ")"),
            format!("SELECT VALUE {} true", "NOT ".repeat(50_000)),
            format!("SELECT VALUE 1{}", "+1".repeat(100_000)),
            nested("[", 100_000, "1", "]"),
            "SELECT VALUE (".repeat(30_000),
            "SELECT * FROM (".repeat(30_000),
            format!("SELECT {}", "a[".repeat(100_000)),
            "(".repeat(QUERY_BYTES_MAX),
            "-".repeat(QUERY_BYTES_MAX),
            "{a:".repeat(QUERY_BYTES_MAX / 3),
        ] {
            exercise(&text);
        }
    });
}

#[test]
fn deep_documents_fit_a_small_stack() {
    on_small_stack(|| {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(127), "]".repeat(127));
        let objects = format!("{{\"a\":{}1{}}}", "{\"a\":".repeat(127), "}".repeat(127));
        for text in [
            "SELECT DISTINCT VALUE [ToString(c.a), c.a] FROM c WHERE c.a = c.a ORDER BY c.a",
            "SELECT c.a, MAKESET(c.a) FROM c GROUP BY c.a",
            "SELECT VALUE ARRAY_CONTAINS([c.a], c.a, true) FROM c WHERE c.a IN (c.a, 1)",
        ] {
            for document in [&deep, &objects] {
                assert!(run(text, &[document, document], &Parameters::none()).is_ok(), "{text}");
            }
        }
    });
}

fn nested(open: &str, levels: usize, inside: &str, close: &str) -> String {
    format!("SELECT VALUE {}{inside}{}", open.repeat(levels), close.repeat(levels))
}

#[test]
fn brackets_in_front_need_no_stack() {
    assert_eq!(outcome(&nested("(", 994, "1", ")")), "1 rows");
    assert_eq!(outcome(&nested("(", 991, "true", " OR false)")), "1 rows");
    assert_eq!(outcome(&nested("(", 20_000, "1", ")")), "SC1030");
    assert_eq!(outcome(&nested("NOT (", 20_000, "true", ")")), "SC1030");
    assert_eq!(outcome(&nested("NOT (NOT (", 100, "true", "))")), "1 rows");
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
        assert_eq!(outcome(&text), "SC1030", "{open}");
        // Just inside the limit it is not the stack that decides.
        if !open.contains("SELECT") {
            assert_ne!(outcome_or_error(&nested(open, NESTING_MAX - 4, "1", close)), "SC1030");
        }
    }
    let from = "SELECT VALUE 1 FROM (".repeat(20_000);
    assert_eq!(outcome(&from), "SC1030");
}

fn outcome_or_error(text: &str) -> String {
    match run(text, &["{}"], &Parameters::none()) {
        Err(QueryError::Invalid(errors)) => errors[0].code.to_string(),
        other => format!("{other:?}"),
    }
}

#[test]
fn high_trees_are_refused() {
    let high = "SC1030";
    assert_eq!(outcome(&format!("SELECT VALUE {} true", "NOT ".repeat(50_000))), high);
    assert_eq!(outcome(&format!("SELECT VALUE 1{}", "+1".repeat(100_000))), high);
    assert_eq!(outcome(&format!("SELECT VALUE 'a'{}", "||'b'".repeat(50_000))), high);
    assert_eq!(outcome(&format!("SELECT VALUE {{}}{}", ".a".repeat(50_000))), high);
    assert_eq!(outcome(&format!("SELECT VALUE {{}}{}", "[0]".repeat(50_000))), high);
    let most = EXPRESSION_HEIGHT_MAX - 1;
    assert_eq!(outcome(&format!("SELECT VALUE 1{}", "+1".repeat(20_000))), "1 rows");
    assert_eq!(outcome(&format!("SELECT VALUE {} true", "NOT ".repeat(most))), "1 rows");
}

#[test]
fn long_chains_and_lists_are_counted() {
    assert_eq!(outcome(&format!("SELECT VALUE true{}", " AND true".repeat(50_000))), "SC3003");
    assert_eq!(outcome(&format!("SELECT VALUE true{}", " OR true".repeat(50_000))), "SC3004");
    assert_eq!(outcome(&format!("SELECT VALUE true{}", " AND true".repeat(2_000))), "1 rows");
    assert_eq!(outcome(&format!("SELECT VALUE 1 IN (1{})", ",1".repeat(16_000))), "SC3006");
    assert_eq!(outcome(&format!("SELECT VALUE 1 IN (1{})", ",1".repeat(15_999))), "1 rows");
    assert_eq!(outcome(&format!("SELECT VALUE 1 FROM c{}", " JOIN c.l".repeat(11))), "SC3002");
    let text = format!("SELECT VALUE '{}'", "x".repeat(QUERY_BYTES_MAX));
    assert_eq!(outcome(&text), "SC3020");
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
    assert!(takes_too_long(text, &[&document], &Parameters::none()));
}

#[test]
fn values_that_double_are_stopped() {
    let doubled = |level: &str| {
        let (mut text, rest) = (String::from("SELECT VALUE 'xx'"), 30);
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
    assert!(takes_too_long("SELECT VALUE @text LIKE @pattern", &["{}"], &parameters));
}

/// What a query keeps of documents, counted by the query itself.
fn kept(text: &str, documents: &[String]) -> Result<usize, QueryError> {
    let bound = Query::parse(text).unwrap().bind(&Parameters::none()).unwrap();
    let ledger = Rc::<Ledger>::default();
    let mut run = Run::within(&bound, usize::MAX, Rc::clone(&ledger));
    for document in documents {
        let flow =
            run.document(Raw::trusted(document).into(), &mut |_| Ok(ControlFlow::Continue(())))?;
        assert!(flow.is_continue());
    }
    Ok(ledger.kept())
}

/// A group by an array keeps a tree: sixteen bytes of text like `[],` are five values. It
/// was counted as twice its text, so that a megabyte took a hundred and was let through.
#[test]
fn groups_are_counted_as_what_they_take() {
    let nested =
        |number: usize| format!(r#"{{"id":{number},"a":[{}{number}]}}"#, "[],".repeat(400));
    let documents: Vec<String> = (0..100).map(nested).collect();
    // Each `[]` is a node and a value.
    let least = documents.len() * 400 * 64;
    for text in [
        "SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a",
        "SELECT VALUE MAKELIST(c.a) FROM c",
        "SELECT VALUE MAKESET(c.a) FROM c",
    ] {
        let kept = kept(text, &documents).unwrap();
        assert!((least..least * 4).contains(&kept), "{text}: {kept} of {least}");
    }
    let many: Vec<String> = (0..2_500).map(nested).collect();
    let refused = kept("SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a", &many);
    assert!(matches!(refused, Err(QueryError::Limit { limit: KEPT_BYTES_MAX, .. })), "{refused:?}");
}

#[test]
fn extremes_of_groups_are_counted() {
    let long = |number: usize| format!(r#"{{"id":{number},"t":"{}"}}"#, "x".repeat(10_000));
    let documents: Vec<String> = (0..100).map(long).collect();
    let kept = kept("SELECT c.id, MAX(c.t) AS t FROM c GROUP BY c.id", &documents).unwrap();
    assert!((1_000_000..1_500_000).contains(&kept), "{kept}");
}

/// What one document takes while it is looked at is free for the next one.
#[test]
fn what_passes_by_is_not_kept() {
    let document = format!(r#"{{"a":[{}0]}}"#, "1,".repeat(10_000));
    let documents = vec![document; 300];
    let text = "SELECT VALUE ARRAY(SELECT VALUE {x: x, y: x} FROM x IN c.a) FROM c";
    assert_eq!(kept(text, &documents), Ok(0));
    let text = "SELECT COUNT(1) AS n FROM c \
        WHERE ARRAY_LENGTH(ARRAY(SELECT DISTINCT VALUE {x: x} FROM x IN c.a)) > 0";
    assert!(kept(text, &documents).unwrap() < 1_000);
}

/// Whether a run of a million steps is stopped for taking too long.
fn takes_too_long(text: &str, documents: &[&str], parameters: &Parameters) -> bool {
    let bound = Query::parse(text).unwrap().bind(parameters).unwrap();
    let mut run = Run::new(&bound, 1_000_000);
    let mut given = documents.iter().map(|document| {
        run.document(Raw::trusted(document).into(), &mut |_| Ok(ControlFlow::Continue(())))
    });
    let stopped = QueryError::Limit { what: "steps of evaluation", limit: STEPS_MAX };
    given.any(|outcome| outcome == Err(stopped.clone()))
}

#[test]
fn regular_expressions_take_no_time_without_end() {
    let parameters = Parameters::none()
        .with("@text", format!("{}!", "a".repeat(200_000)))
        .with("@pattern", "^(a+)+$");
    let text = "SELECT VALUE RegexMatch(@text, @pattern)";
    assert_eq!(run(text, &[], &parameters).unwrap(), [Value::Bool(false)]);
    // Counted repetitions multiply into a program that is too large to make.
    let text = "SELECT VALUE IS_DEFINED(RegexMatch('a', '((a{1000}){1000}){1000}'))";
    assert_eq!(run(text, &[], &Parameters::none()).unwrap(), [Value::Bool(false)]);
    let patterns: Vec<String> = (0..10_000).map(|n| format!("RegexMatch(c.a, 'a{n}')")).collect();
    let text = format!("SELECT VALUE [{}] FROM c", patterns.join(","));
    assert!(takes_too_long(&text, &[r#"{"a":"a"}"#], &Parameters::none()));
}

#[test]
fn looking_into_large_documents_is_paid_for() {
    let document = format!("{{\"x\":\"{}\",\"a\":1}}", "x".repeat(500_000));
    let text = format!("SELECT VALUE [c.a{}] FROM c", ",c.a".repeat(10_000));
    assert!(takes_too_long(&text, &[&document], &Parameters::none()));
}

#[test]
fn long_arguments_are_not_held_against_each_other() {
    let long = "x".repeat(200_000);
    let terms = Parameters::none().with("@text", long.as_str());
    let text = format!("SELECT VALUE CONTAINS_ANY_CS(@text{})", ",'y'".repeat(5_000));
    assert!(takes_too_long(&text, &["{}"], &terms));
    let both = terms.with("@set", format!("{}x", "y".repeat(200_000)));
    assert_eq!(run("SELECT VALUE TRIM(@text, @set)", &[], &both).unwrap(), [Value::from("")]);
    let members: Vec<String> = (0..20_000).map(|n| format!("\"m{n}\":1")).collect();
    let object = json::parse(format!("{{{}}}", members.join(",")).as_bytes()).unwrap();
    let elements = Value::Array(vec![object.clone(); 100]);
    let objects = Parameters::none()
        .with("@object", object)
        .with("@elements", elements)
        .with("@name", "n".repeat(100_000));
    let text = "SELECT VALUE ARRAY_CONTAINS(@elements, @object, true) FROM c";
    assert!(takes_too_long(text, &["{}"], &objects));
    let error = run("SELECT VALUE ObjectToArray(@object, @name)", &[], &objects).unwrap_err();
    assert!(matches!(error, QueryError::Limit { what: "bytes in one value", .. }), "{error}");
}

#[test]
fn plans_of_long_lists_are_made_in_one_go() {
    let list =
        |from: usize| (from..from + 8_000).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let key =
        KeyShape { kind: KeyKind::MultiHash, paths: vec![vec!["a".into()], vec!["b".into()]] };
    let text = format!(
        "SELECT * FROM c WHERE c.a IN ({}) AND c.b IN ({}) AND (c.a IN ({}) OR c.b = 1)",
        list(0),
        list(100),
        list(200)
    );
    let query = Query::parse(&text).unwrap();
    let plan = query.plan(&Parameters::none(), &Arc::default(), &key, &Features::all()).unwrap();
    assert!(matches!(plan.ranges, query::KeyRanges::Some(ranges) if ranges.len() <= 16_000));
}

#[test]
fn shapes_of_thousands_of_points_are_paid_for() {
    let ring: Vec<String> = (0..4_000)
        .map(|n| {
            let angle = f64::from(n) / 4_000.0 * std::f64::consts::TAU;
            format!("[{},{}]", 10.0 * angle.cos(), 10.0 * angle.sin())
        })
        .collect();
    let shape =
        format!("{{\"type\":\"Polygon\",\"coordinates\":[[{},{}]]}}", ring.join(","), ring[0]);
    let parameters = Parameters::none().with("@shape", json::parse(shape.as_bytes()).unwrap());
    assert!(takes_too_long("SELECT VALUE ST_WITHIN(@shape, @shape)", &["{}"], &parameters));
    assert!(run("SELECT VALUE ST_AREA(@shape)", &[], &parameters).is_ok());
}
