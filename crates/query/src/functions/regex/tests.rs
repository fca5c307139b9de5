//! The matcher against the library's own searches.

use std::rc::Rc;

use proptest::prelude::*;

use super::*;
use crate::eval::STEPS_MAX;

fn matches(pattern: &str, flags: Flags, text: &str) -> Option<(bool, Vec<String>)> {
    let budget = Budget::new(STEPS_MAX, Rc::default(), None);
    let matcher = Matcher::new(pattern, flags, true, &budget).unwrap()?;
    let mut all = Vec::new();
    matcher
        .each_match(text, &budget, |found| {
            all.push(found.to_owned());
            Ok(true)
        })
        .unwrap();
    Some((matcher.is_match(text, &budget).unwrap(), all))
}

fn expected(pattern: &str, flags: Flags, text: &str) -> Option<(bool, Vec<String>)> {
    let regex = regex::RegexBuilder::new(pattern)
        .multi_line(flags.multi_line)
        .dot_matches_new_line(flags.dot_matches_new_line)
        .case_insensitive(flags.case_insensitive)
        .ignore_whitespace(flags.ignore_whitespace)
        .build()
        .ok()?;
    let all = regex.find_iter(text).map(|found| found.as_str().to_owned()).collect();
    Some((regex.is_match(text), all))
}

fn pattern() -> impl Strategy<Value = String> {
    let atom = prop::sample::select(vec![
        "a",
        "b",
        "é",
        ".",
        "[ab]",
        "[^a]",
        "^",
        "$",
        r"(?-u:\b)",
        r"\b",
        r"\B",
        r"\n",
        "",
        r"\p{L}",
    ]);
    atom.prop_map(str::to_owned).prop_recursive(4, 24, 4, |inner| {
        let counted = prop::sample::select(vec!["*", "+", "?", "*?", "+?", "{0,3}", "{2}"]);
        prop_oneof![
            (inner.clone(), counted).prop_map(|(one, count)| format!("(?:{one}){count}")),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|all| all.concat()),
            prop::collection::vec(inner, 1..4).prop_map(|all| format!("(?:{})", all.join("|"))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn matches_are_those_of_the_library(
        pattern in pattern(),
        text in "[abAé\n]{0,12}",
        (multi_line, dot_matches_new_line, case_insensitive) in any::<(bool, bool, bool)>(),
    ) {
        let flags = Flags { multi_line, dot_matches_new_line, case_insensitive, ignore_whitespace: false };
        prop_assert_eq!(matches(&pattern, flags, &text), expected(&pattern, flags, &text));
    }
}

/// Steps that a search may take here.
const ALLOWED: usize = STEPS_MAX / 2;

/// Steps that looking for a pattern takes, once it is compiled.
fn steps(pattern: &str, locates: bool, text: &str) -> Result<usize, QueryError> {
    let budget = Budget::new(STEPS_MAX, Rc::default(), None);
    let matcher = Matcher::new(pattern, Flags::default(), locates, &budget)?.unwrap();
    budget.allow_steps(ALLOWED);
    if locates {
        matcher.each_match(text, &budget, |_| Ok(true))?;
    } else {
        matcher.is_match(text, &budget)?;
    }
    Ok(ALLOWED - budget.steps_left())
}

#[test]
fn ordinary_patterns_read_large_texts() {
    let text = "The quick brown fox jumps over the lazy dog, 42 times a day. ".repeat(33_000);
    for pattern in [
        "fox.*cat",
        r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}",
        r"(?i)\p{L}+\s\d{4}-\d{2}",
        r"^(?:[a-z]+\s?)+$",
        r"(?-u:\b)cat(?-u:\b)|(?-u:\b)horse(?-u:\b)",
        "[^a]{3}zebra",
    ] {
        let taken = steps(pattern, false, &text).unwrap();
        assert!(taken < STEPS_MAX / 20, "{pattern} takes {taken} steps");
    }
    // Every word of it.
    let taken = steps("[a-z]+", true, &text).unwrap();
    assert!(taken < ALLOWED, "{taken}");
}

#[test]
fn what_grows_with_pattern_and_text_is_paid_for_and_stopped() {
    let stopped = QueryError::Limit { what: "steps of evaluation", limit: STEPS_MAX };
    let text = "a".repeat(2_000_000);
    // The state for each byte depends on the 20 before it.
    let noise: String = (0_u32..1_000_000)
        .map(|n| {
            let mixed = n.wrapping_mul(0x9E37_79B9);
            let mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x85EB_CA6B);
            if mixed >> 13 & 1 == 0 { 'a' } else { 'b' }
        })
        .collect();
    for (pattern, locates, text) in [
        ("[ab]*a[ab]{200}c", false, &noise),
        // Each search runs to the end of the text.
        ("a.*b|a", true, &text),
    ] {
        assert_eq!(steps(pattern, locates, text), Err(stopped.clone()), "{pattern}");
    }
    // The DFA cannot decide, so everything is charged at once.
    assert_eq!(steps(r"é(?:a?){100}\Bb", false, &format!("é{text}")), Err(stopped));
    // Here the DFA soon has all its states: a pattern that used to take minutes.
    assert!(steps("a{0,5000}b", false, &text).unwrap() < ALLOWED);
    let (short, long) = (&text[..1_000], &text[..2_000]);
    let taken = |text| steps("a{0,5000}b", false, text).unwrap();
    assert!(taken(short) > 1_000 * 5_000 / 16, "{}", taken(short));
    assert!(taken(long) > taken(short) * 19 / 10);
}

#[test]
fn compiling_is_paid_for_by_the_size_of_what_is_made() {
    let taken = |pattern: &str| {
        let budget = Budget::new(STEPS_MAX, Rc::default(), None);
        let _too_large_or_not = Matcher::new(pattern, Flags::default(), false, &budget).unwrap();
        STEPS_MAX - budget.steps_left()
    };
    assert!(taken("a{0,5000}") > 40_000, "{}", taken("a{0,5000}"));
    assert!(taken(r"(?:\p{L}{100}){100}") > 200_000, "too large to be made, but tried");
    assert!(taken("[a-z]+@[a-z]+") < 10_000, "{}", taken("[a-z]+@[a-z]+"));
}
