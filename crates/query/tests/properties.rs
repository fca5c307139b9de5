//! Laws that hold for all texts and all values.

use model::json::{self, Raw, Value};
use proptest::prelude::*;
use query::{Condition, Parameters, Query};

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
