//! Laws that hold for all texts and all values.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use model::json::{self, DistinctHash, JsonKind, Raw, Value};
use model::partition_key::PartitionKeyDefinition;
use proptest::prelude::*;
use query::{
    Bound, Comparison, Condition, KeyShape, Parameters, Path, PathStep, Predicate, Query, Run,
    STEPS_MAX,
};

/// Queries of every clause and operator, to be broken in all ways.
const SEEDS: &[&str] = &[
    "SELECT * FROM c WHERE c.a = 1 AND NOT c.b IN (1, \"x\", @p) OR c.c LIKE 'a%' ESCAPE '!'",
    "SELECT DISTINCT TOP 3 c.a, c[\"b c\"][0] AS x, {k: [1, 2.5e3, null]} FROM root r JOIN c IN r.l",
    "SELECT VALUE COUNT(1) FROM (SELECT VALUE c.a ?? c.b FROM c WHERE c.x BETWEEN 1 AND 2) AS q",
    "SELECT c.k, SUM(c.n) AS s FROM c GROUP BY c.k OFFSET 1 LIMIT 2",
    "SELECT VALUE EXISTS(SELECT VALUE 1 FROM t IN c.l WHERE t ? 1 : 2) FROM c ORDER BY c.a DESC, c.b",
    "SELECT VALUE (LET x = -1 << 2 IN x | 3 ^ ~4) /* c */ FROM c -- end",
    "SELECT ARRAY(SELECT VALUE UPPER(t) || 'z' FROM t IN c.l) AS l, udf.f(1), STARTSWITH(c.a, \"é\") FROM c",
];

const DOCUMENTS: &[&str] = &[
    r#"{"id":"1","a":1,"b":"x","l":["a","b",1],"k":"k","n":2}"#,
    r#"{"id":"2","a":"é","b c":[true],"l":[],"c":"abc","n":null}"#,
];

/// Does everything that can be done with a text; nothing of it may panic.
fn exercise(text: &str) {
    let _ = Condition::parse(text).map(|condition| condition.holds(Raw::trusted(DOCUMENTS[0])));
    let _ = query::evaluate(text, &Parameters::none());
    let Ok(query) = Query::parse(text) else { return };
    let printed = query.syntax().to_string();
    let again = Query::parse(&printed).expect("what is printed parses");
    assert_eq!(again.syntax(), query.syntax(), "{printed}");
    let parameters = Parameters::none().with("@p", 5_u32);
    let Ok(bound) = query.bind(&parameters) else { return };
    let _ = bound.execute(DOCUMENTS.iter().map(|text| Raw::trusted(text)));
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("undefined".to_owned()),
        Just("null".to_owned()),
        any::<bool>().prop_map(|truth| truth.to_string()),
        (-3_i64..4).prop_map(|number| number.to_string()),
        (-2_i64..3).prop_map(|number| format!("{number}.5")),
        "[ab]{0,2}".prop_map(|text| format!("\"{text}\"")),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3)
                .prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::btree_map("[ab]", inner, 0..3).prop_map(|members| {
                let members: Vec<String> =
                    members.iter().map(|(name, value)| format!("{name}: {value}")).collect();
                format!("{{{}}}", members.join(", "))
            }),
        ]
    })
}

/// The value of an expression; `None` is undefined.
fn eval(text: &str) -> Option<Value> {
    query::evaluate(text, &Parameters::none()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn truth() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["true", "false", "undefined", "1", "null"])
}

proptest! {
    #[test]
    fn any_text_is_accepted_or_refused(text in ".{0,40}") {
        exercise(&text);
        exercise(&format!("SELECT VALUE {text}"));
    }

    #[test]
    fn any_words_are_accepted_or_refused(
        words in prop::collection::vec(prop::sample::select(vec![
            "SELECT", "VALUE", "*", "FROM", "c", "WHERE", "(", ")", "[", "]", "{", "}", ",", ".", ":",
            "a", "1", "'s'", "@p", "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "=", "<", "+", "-", "||",
            "?", "??", "EXISTS", "ARRAY", "COUNT", "GROUP", "BY", "ORDER", "JOIN", "AS", "TOP", "LET",
        ]), 0..14)
    ) {
        exercise(&words.join(" "));
        exercise(&format!("SELECT VALUE {} FROM c", words.join(" ")));
    }

    #[test]
    fn broken_queries_are_accepted_or_refused(
        seed in prop::sample::select(SEEDS),
        other in prop::sample::select(SEEDS),
        cut in any::<prop::sample::Index>(),
        length in 0_usize..12,
        from in any::<prop::sample::Index>(),
    ) {
        let chars: Vec<char> = seed.chars().collect();
        let donor: Vec<char> = other.chars().collect();
        let (cut, from) = (cut.index(chars.len()), from.index(donor.len()));
        let mut text: String = chars.iter().take(cut).collect();
        text.extend(donor.iter().skip(from).take(length));
        text.extend(chars.iter().skip(cut + length / 2));
        exercise(&text);
    }

    #[test]
    fn logic_has_three_values(a in truth(), b in truth(), c in truth()) {
        // What is no boolean counts as undefined, so NOT NOT gives undefined for it.
        let boolean = eval(a).filter(|value| value.as_bool().is_some());
        prop_assert_eq!(eval(&format!("NOT NOT {a}")), boolean.clone());
        prop_assert_eq!(eval(&format!("{a} AND {a}")), boolean);
        prop_assert_eq!(eval(&format!("{a} AND {b}")), eval(&format!("{b} AND {a}")));
        prop_assert_eq!(eval(&format!("NOT ({a} AND {b})")), eval(&format!("(NOT {a}) OR (NOT {b})")));
        prop_assert_eq!(eval(&format!("NOT ({a} OR {b})")), eval(&format!("(NOT {a}) AND (NOT {b})")));
        prop_assert_eq!(
            eval(&format!("{a} AND ({b} OR {c})")),
            eval(&format!("{a} AND {b} OR {a} AND {c}"))
        );
        prop_assert_eq!(
            eval(&format!("({a} OR {b}) OR {c}")),
            eval(&format!("{a} OR ({b} OR {c})"))
        );
    }

    #[test]
    fn comparisons_fit_together(a in value(), b in value()) {
        let is = |op: &str| eval(&format!("{a} {op} {b}")).and_then(|value| value.as_bool());
        prop_assert_eq!(is("!="), is("=").map(|equal| !equal));
        prop_assert_eq!(eval(&format!("{b} = {a}")), eval(&format!("{a} = {b}")));
        prop_assert_eq!(eval(&format!("{b} > {a}")), eval(&format!("{a} < {b}")));
        prop_assert_eq!(is("<="), is(">").map(|greater| !greater));
        prop_assert_eq!(is(">="), is("<").map(|less| !less));
        if let (Some(less), Some(greater)) = (is("<"), is(">")) {
            prop_assert_eq!(usize::from(less) + usize::from(greater) + usize::from(is("=").unwrap()), 1);
        }
        // Equality is that of the tree; only undefined is in neither.
        prop_assert_eq!(is("="), eval(&a).zip(eval(&b)).map(|(a, b)| a == b));
    }

    #[test]
    fn operators_say_the_same_in_other_words(a in value(), b in value(), c in value()) {
        prop_assert_eq!(
            eval(&format!("{a} BETWEEN {b} AND {c}")),
            eval(&format!("{a} >= {b} AND {a} <= {c}"))
        );
        prop_assert_eq!(
            eval(&format!("{a} IN ({b}, {c})")),
            eval(&format!("IS_DEFINED({a}) ? (({a} = {b}) = true ?? false) OR (({a} = {c}) = true ?? false) : undefined"))
        );
        prop_assert_eq!(eval(&format!("{a} ?? {b}")), eval(&a).or_else(|| eval(&b)));
        prop_assert_eq!(
            eval(&format!("[{a}, {b}]")),
            Some(Value::Array([eval(&a), eval(&b)].into_iter().flatten().collect()))
        );
        prop_assert_eq!(eval(&format!("{{a: {a}}}.a")), eval(&a));
        prop_assert_eq!(
            eval(&format!("ARRAY_CONTAINS([{b}, {c}], {a})")).map(|v| v == Value::Bool(true)),
            eval(&a).map(|a| [eval(&b), eval(&c)].contains(&Some(a)))
        );
    }

    #[test]
    fn values_survive_the_way_through_text(value in value()) {
        let Some(tree) = eval(&value) else { return Ok(()) };
        prop_assert_eq!(json::parse(tree.to_string().as_bytes()).unwrap(), tree.clone());
        let parameters = Parameters::none().with("@v", tree.clone());
        prop_assert_eq!(query::evaluate("@v", &parameters).unwrap(), Some(tree));
    }

    #[test]
    fn like_agrees_with_a_simpler_matcher(text in "[ab]{0,8}", pattern in "[ab%_]{0,8}") {
        let ours = eval(&format!("\"{text}\" LIKE \"{pattern}\"")).unwrap();
        prop_assert_eq!(ours, Value::Bool(fits(text.as_bytes(), pattern.as_bytes())));
    }

    #[test]
    fn rows_are_those_of_a_plain_loop(
        numbers in prop::collection::vec(prop::option::of(-5_i64..6), 0..12),
        least in -5_i64..6,
        offset in 0_usize..4,
        limit in 0_usize..5,
    ) {
        let documents: Vec<String> = numbers
            .iter()
            .enumerate()
            .map(|(id, n)| n.map_or(format!("{{\"id\":{id}}}"), |n| format!("{{\"id\":{id},\"n\":{n}}}")))
            .collect();
        let rows = |text: &str| {
            let bound = Query::parse(text).unwrap().bind(&Parameters::none()).unwrap();
            bound.execute(documents.iter().map(|text| Raw::trusted(text))).unwrap()
        };
        let kept = || numbers.iter().enumerate().filter_map(|(id, n)| n.map(|n| (n, id)));
        let mut expected: Vec<(i64, usize)> = kept().filter(|(n, _)| *n >= least).collect();
        expected.sort_unstable();
        let expected: Vec<Value> = expected
            .into_iter()
            .skip(offset)
            .take(limit)
            .map(|(_, id)| Value::from(i64::try_from(id).unwrap()))
            .collect();
        let text = format!(
            "SELECT VALUE c.id FROM c WHERE c.n >= {least} ORDER BY c.n OFFSET {offset} LIMIT {limit}"
        );
        prop_assert_eq!(rows(&text), expected);
        let sum: i64 = kept().map(|(n, _)| n).sum();
        prop_assert_eq!(rows("SELECT VALUE SUM(c.n) FROM c"), vec![Value::from(sum)]);
        let distinct: std::collections::BTreeSet<i64> = kept().map(|(n, _)| n).collect();
        prop_assert_eq!(rows("SELECT DISTINCT VALUE c.n FROM c").len(), distinct.len());
        let groups = numbers.iter().collect::<std::collections::BTreeSet<_>>();
        prop_assert_eq!(rows("SELECT COUNT(1) AS k FROM c GROUP BY c.n").len(), groups.len());
    }
}

/// The values at a path, by going there.
fn at(value: &Value, steps: &[PathStep]) -> Vec<Value> {
    let Some((step, rest)) = steps.split_first() else { return vec![value.clone()] };
    let inside: Vec<Value> = match (step, value) {
        (PathStep::Name(name), Value::Object(object)) => {
            object.get(name).cloned().into_iter().collect()
        }
        (PathStep::Index(index), Value::Array(items)) => {
            items.get(*index).cloned().into_iter().collect()
        }
        (PathStep::Each, Value::Array(items)) => items.clone(),
        _ => Vec::new(),
    };
    inside.iter().flat_map(|value| at(value, rest)).collect()
}

fn type_of(value: &Value) -> JsonKind {
    Raw::trusted(&value.to_string()).kind()
}

fn compares(comparison: Comparison, own: &Value, value: &Value) -> bool {
    let order = (type_of(own) == type_of(value)).then(|| own.cmp(value));
    match comparison {
        Comparison::Equal => own == value,
        Comparison::NotEqual => own != value,
        Comparison::Less => order.is_some_and(std::cmp::Ordering::is_lt),
        Comparison::LessEqual => order.is_some_and(std::cmp::Ordering::is_le),
        Comparison::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
        Comparison::GreaterEqual => order.is_some_and(std::cmp::Ordering::is_ge),
    }
}

/// Whether a document fulfils a predicate, by reading it.
fn fulfils(document: &Value, predicate: &Predicate) -> bool {
    let some =
        |path: &Path, holds: &dyn Fn(&Value) -> bool| at(document, path.steps()).iter().any(holds);
    match predicate {
        Predicate::Anything => true,
        Predicate::Never => false,
        Predicate::Compare { path, comparison, value } => {
            some(path, &|own| compares(*comparison, own, value))
        }
        Predicate::OneOf { path, values } => some(path, &|own| values.contains(own)),
        Predicate::Prefix { path, prefix, ignores_case } => some(path, &|own| {
            let fold =
                |text: &str| if *ignores_case { text.to_lowercase() } else { text.to_owned() };
            own.as_str().is_some_and(|text| fold(text).starts_with(&fold(prefix)))
        }),
        Predicate::Types { path, types } => some(path, &|own| types.contains(&type_of(own))),
        Predicate::All(parts) => parts.iter().all(|part| fulfils(document, part)),
        Predicate::Either(parts) => parts.iter().any(|part| fulfils(document, part)),
        other => panic!("{other}"),
    }
}

/// A condition on one place of a document.
fn condition() -> impl Strategy<Value = String> {
    let place = || prop::sample::select(vec!["c.a", "c.b", "c.b.a", "c.l", "c.l[0]", "c.k"]);
    let leaf = || {
        prop::sample::select(vec![
            "1",
            "0",
            "-1",
            "'a'",
            "'ab'",
            "true",
            "null",
            "[1]",
            "undefined",
            "{a: 1}",
        ])
    };
    let operator = prop::sample::select(vec!["=", "!=", "<", "<=", ">", ">="]);
    prop_oneof![
        (place(), operator.clone(), leaf()).prop_map(|(p, op, v)| format!("{p} {op} {v}")),
        (leaf(), operator, place()).prop_map(|(v, op, p)| format!("{v} {op} {p}")),
        (place(), leaf(), leaf()).prop_map(|(p, a, b)| format!("({p} BETWEEN {a} AND {b})")),
        (place(), leaf(), leaf()).prop_map(|(p, a, b)| format!("({p} NOT BETWEEN {a} AND {b})")),
        (place(), leaf(), leaf()).prop_map(|(p, a, b)| format!("{p} IN ({a}, {b})")),
        (place(), leaf(), leaf()).prop_map(|(p, a, b)| format!("{p} NOT IN ({a}, {b})")),
        (place(), prop::sample::select(vec!["a", "a%", "%a", "a_", "[ab]%", "%"]))
            .prop_map(|(p, pattern)| format!("{p} LIKE '{pattern}'")),
        (
            place(),
            prop::sample::select(vec![
                "IS_NULL",
                "IS_BOOL",
                "IS_NUMBER",
                "IS_STRING",
                "IS_DEFINED",
                "IS_ARRAY",
                "IS_OBJECT",
                "IS_PRIMITIVE"
            ])
        )
            .prop_map(|(p, f)| format!("{f}({p})")),
        (
            place(),
            prop::sample::select(vec!["STARTSWITH", "STRINGEQUALS", "CONTAINS", "ENDSWITH"]),
            any::<bool>()
        )
            .prop_map(|(p, f, fold)| format!("{f}({p}, 'A', {fold})")),
        (place(), leaf()).prop_map(|(p, v)| format!("ARRAY_CONTAINS({p}, {v})")),
        (place(), leaf(), leaf()).prop_map(|(p, a, b)| format!("ARRAY_CONTAINS([{a}, {b}], {p})")),
        (place(), leaf(), leaf())
            .prop_map(|(p, a, b)| format!("ARRAY_CONTAINS_ANY({p}, {a}, {b})")),
        (place(), leaf(), leaf())
            .prop_map(|(p, a, b)| format!("ARRAY_CONTAINS_ALL({p}, {a}, {b})")),
        (place(), leaf()).prop_map(|(p, v)| format!("ABS({p}) = {v}")),
        (place(), leaf())
            .prop_map(|(p, v)| format!("EXISTS(SELECT VALUE u FROM u IN {p} WHERE u = {v})")),
        (place(), leaf())
            .prop_map(|(p, v)| format!("(SELECT VALUE c.a FROM c WHERE c.k = {v}) = {p}")),
        place().prop_map(str::to_owned),
        leaf().prop_map(str::to_owned),
    ]
}

fn filter() -> impl Strategy<Value = String> {
    condition().prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} AND {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} OR {b})")),
            inner.prop_map(|a| format!("(NOT ({a}))")),
        ]
    })
}

/// A document with few properties and few values, so that filters find some.
fn document() -> impl Strategy<Value = Value> {
    let leaf = || {
        prop_oneof![
            Just("null".to_owned()),
            any::<bool>().prop_map(|truth| truth.to_string()),
            (-1_i64..2).prop_map(|n| n.to_string()),
            "[abA]{0,2}".prop_map(|text| format!("\"{text}\"")),
        ]
    };
    let nested = prop_oneof![
        leaf(),
        prop::collection::vec(leaf(), 0..3).prop_map(|items| format!("[{}]", items.join(","))),
        leaf().prop_map(|inner| format!("{{\"a\":{inner}}}")),
    ];
    let member = |name: &'static str, value: BoxedStrategy<String>| {
        prop::option::weighted(0.8, value.prop_map(move |value| format!("\"{name}\":{value}")))
    };
    let nested = nested.boxed();
    (
        member("a", nested.clone()),
        member("b", nested.clone()),
        member("l", nested),
        member("k", leaf().boxed()),
    )
        .prop_map(|(a, b, l, k)| {
            let members: Vec<String> = [a, b, l, k].into_iter().flatten().collect();
            json::parse(format!("{{{}}}", members.join(",")).as_bytes()).unwrap()
        })
}

fn bind(text: &str) -> Bound {
    Query::parse(text).unwrap().bind(&Parameters::none()).unwrap()
}

proptest! {
    #[test]
    fn what_a_query_keeps_fulfils_its_predicate(text in filter(), document in document()) {
        let bound = bind(&format!("SELECT * FROM c WHERE {text}"));
        let kept = bound.matches(Raw::trusted(&document.to_string())).unwrap();
        let filter = bound.filter();
        let fulfilled = fulfils(&document, &filter.predicate);
        prop_assert!(!kept || fulfilled, "{text} keeps {document}, but not {filter}");
        prop_assert!(!filter.covers_filter || kept == fulfilled, "{text} on {document}: {filter}");
    }

    #[test]
    fn what_a_query_keeps_lies_where_it_looks(text in filter(), document in document()) {
        for paths in [&["/k"][..], &["/k", "/a"][..]] {
            let definition = PartitionKeyDefinition::hash(paths).unwrap();
            let Ok(key) = definition.extract(Raw::trusted(&document.to_string())) else { continue };
            let bound = bind(&format!("SELECT * FROM c WHERE {text}"));
            if !bound.matches(Raw::trusted(&document.to_string())).unwrap() {
                continue;
            }
            let epk = definition.epk(&key).unwrap();
            let ranges = bound.key_ranges(&KeyShape::from(&definition)).on_ring(&definition);
            let inside = ranges.iter().any(|range| {
                range.min <= epk && (epk < range.max || (range.max_inclusive && epk == range.max))
            });
            prop_assert!(inside, "{text} keeps {document}, but looks in {ranges:?}");
            prop_assert!(ranges.windows(2).all(|pair| pair[0].max <= pair[1].min), "{ranges:?}");
            let position = definition.locate(&key).unwrap();
            let ranges = bound.key_ranges(&KeyShape::from(&definition)).positions(&definition);
            let inside = ranges.iter().any(|range| range.contains(&position));
            prop_assert!(inside, "{text} keeps {document}, but looks in {ranges:?}");
            prop_assert!(ranges.windows(2).all(|pair| pair[0].max <= pair[1].min), "{ranges:?}");
        }
    }

    #[test]
    fn documents_one_by_one_give_the_same_rows(
        filter in filter(),
        documents in prop::collection::vec(document(), 0..6),
        shape in prop::sample::select(vec![
            "SELECT * FROM c",
            "SELECT c.a, c.b.a AS x FROM c",
            "SELECT VALUE c.l FROM c",
            "SELECT VALUE [t, c.k] FROM c JOIN t IN c.l",
            "SELECT VALUE COUNT(1) FROM c",
            "SELECT c.k, MIN(c.a) AS least, MAKELIST(c.b) AS all FROM c",
        ]),
    ) {
        let group = if shape.contains("MIN") { " GROUP BY c.k" } else { "" };
        let bound = bind(&format!("{shape} WHERE {filter}{group}"));
        let texts: Vec<String> = documents.iter().map(Value::to_string).collect();
        let together = bound.execute(texts.iter().map(|text| Raw::trusted(text))).unwrap();
        let mut run = Run::new(&bound, STEPS_MAX);
        let mut rows = Vec::new();
        for text in &texts {
            let flow = run.document(Raw::trusted(text).into(), &mut |row| {
                rows.extend(row.value()?);
                Ok(std::ops::ControlFlow::Continue(()))
            });
            prop_assert!(flow.unwrap().is_continue());
        }
        let finished = run.finish(&mut |row| {
            rows.extend(row.value()?);
            Ok(std::ops::ControlFlow::Continue(()))
        });
        assert!(finished.unwrap().is_continue());
        // Groups come in no order.
        let mut together = together;
        if shape.contains("MIN") {
            rows.sort();
            together.sort();
        }
        prop_assert_eq!(rows, together);
    }

    #[test]
    fn rows_come_in_the_order_of_values(
        documents in prop::collection::vec(document(), 0..10),
        first_down in any::<bool>(),
        second_down in any::<bool>(),
    ) {
        let texts: Vec<String> = documents.iter().map(Value::to_string).collect();
        let word = |down: bool| if down { "DESC" } else { "ASC" };
        let bound = bind(&format!(
            "SELECT VALUE [[c.a], [c.b]] FROM c ORDER BY c.a {}, c.b {}", word(first_down), word(second_down)
        ));
        let rows = bound.execute(texts.iter().map(|text| Raw::trusted(text))).unwrap();
        prop_assert_eq!(rows.len(), documents.len());
        // An empty list stands for undefined, which sorts before all values.
        let key = |row: &Value, place: usize| row.as_array().unwrap()[place].as_array().unwrap().first().cloned();
        for pair in rows.windows(2) {
            let turned = |order: std::cmp::Ordering, down: bool| if down { order.reverse() } else { order };
            let order = |place: usize| sort_order(key(&pair[0], place), key(&pair[1], place));
            let order = turned(order(0), first_down).then(turned(order(1), second_down));
            prop_assert!(order.is_le(), "{} before {}", pair[0], pair[1]);
        }
    }
}

/// The order of values, in which arrays among themselves, and objects, follow their hashes.
fn sort_order(a: Option<Value>, b: Option<Value>) -> std::cmp::Ordering {
    let hash = |value: &Value| DistinctHash::of(value);
    match (&a, &b) {
        (Some(a @ Value::Array(_)), Some(b @ Value::Array(_)))
        | (Some(a @ Value::Object(_)), Some(b @ Value::Object(_))) => hash(a).cmp(&hash(b)),
        _ => a.cmp(&b),
    }
}

/// By trying everything.
fn fits(text: &[u8], pattern: &[u8]) -> bool {
    match (text.split_first(), pattern.split_first()) {
        (_, Some((b'%', rest))) => (0..=text.len()).any(|skip| fits(&text[skip..], rest)),
        (Some((_, text)), Some((b'_', pattern))) => fits(text, pattern),
        (Some((a, text)), Some((b, pattern))) => a == b && fits(text, pattern),
        (None, None) => true,
        _ => false,
    }
}
