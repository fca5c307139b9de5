//! What is said of a query beforehand holds for every document: a key range that is left
//! out has no match, a filter that is called never true holds for none. Random filters are
//! asked of random documents, by the evaluator and by the analysis; the seed is printed.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]
#![allow(clippy::print_stdout, reason = "the seed is told")]

use std::sync::Arc;

use model::json::Raw;
use model::partition_key::{HashVersion, KeyKind, KeyPath, PartitionKeyDefinition};
use query::{Context, Features, KeyRanges, KeyShape, Parameters, Query, RingRange};

/// Pairs of a query and a document; `ORRERY_SOUND_PAIRS` asks for more.
const PAIRS: usize = 20_000;

/// Documents that each query is asked about.
const DOCUMENTS: usize = 20;

/// A generator that gives the same numbers for the same seed (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn pick<'t>(&mut self, choices: &[&'t str]) -> &'t str {
        let at = self.next() % u64::try_from(choices.len()).unwrap();
        choices[usize::try_from(at).unwrap()]
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }
}

const VALUES: &[&str] = &[
    "0",
    "-0",
    "1",
    "2",
    "-1",
    "3",
    "1.5",
    "0.5",
    "9007199254740993",
    "9007199254740992",
    "9007199254740994",
    "1e16",
    "10000000000000001",
    "5e-324",
    "1e308",
    "-1e308",
    "0.1",
    "0.2",
    "0.30000000000000004",
    "0.9999999999999999",
    "1.0000000000000002",
    "true",
    "false",
    "null",
    "'x'",
    "'X'",
    "'y'",
    "''",
    "'k'",
    "'K'",
    "'\u{212A}'",
    "'s'",
    "'\u{17F}'",
    "'\u{130}'",
    "'\u{DF}'",
    "'SS'",
    "'xy'",
    "'\u{E9}'",
    "'\u{C9}'",
    "'\u{E5}'",
    "'\u{212B}'",
    "[]",
    "['x']",
    "[1]",
    "{}",
    "{'a': 'x'}",
    "{'pk': 'x'}",
    "undefined",
];

const PATHS: &[&str] = &["c.pk", "c.pk", "c.pk", "c.a", "c.a.b", "c.pk[0]", "c['pk']", "c"];

const FUNCTIONS: &[&str] = &[
    "ABS",
    "SIGN",
    "LENGTH",
    "LOWER",
    "UPPER",
    "REVERSE",
    "FLOOR",
    "ROUND",
    "TOSTRING",
    "TRIM",
    "IS_DEFINED",
    "IS_NULL",
    "IS_BOOL",
    "IS_NUMBER",
    "IS_STRING",
    "IS_ARRAY",
    "IS_OBJECT",
    "IS_PRIMITIVE",
    "ARRAY_LENGTH",
    "STRINGTONUMBER",
    "IS_INTEGER",
    "ST_ISVALID",
];

const TESTS: &[&str] = &[
    "STRINGEQUALS",
    "STARTSWITH",
    "ENDSWITH",
    "CONTAINS",
    "ARRAY_CONTAINS",
    "ARRAY_CONTAINS_ANY",
    "ARRAY_CONTAINS_ALL",
    "CHOOSE",
    "CONCAT",
    "INDEX_OF",
    "SETINTERSECT",
    "POWER",
];

/// Whatever may have any value.
fn operand(random: &mut Random, depth: u64) -> String {
    match random.below(if depth == 0 { 4 } else { 14 }) {
        0 | 1 => random.pick(PATHS).to_owned(),
        2 | 3 => random.pick(VALUES).to_owned(),
        4 => format!("{}({})", random.pick(FUNCTIONS), operand(random, depth - 1)),
        5 | 6 => {
            let op = random.pick(&["+", "-", "*", "/", "%", "||", "&", "|", "<<"]);
            format!("({} {op} {})", operand(random, depth - 1), operand(random, depth - 1))
        }
        7 => format!("({} {})", random.pick(&["-", "+", "~", "NOT"]), operand(random, depth - 1)),
        8 => format!("({} ?? {})", operand(random, depth - 1), operand(random, depth - 1)),
        9 => {
            let (condition, yes) = (test(random, depth - 1), operand(random, depth - 1));
            format!("({condition} ? {yes} : {})", operand(random, depth - 1))
        }
        10 => format!("[{}]", operand(random, depth - 1)),
        11 => format!("{{'a': {}, 'b': {}}}", operand(random, depth - 1), random.pick(VALUES)),
        12 => format!(
            "(SELECT VALUE {} WHERE {})",
            operand(random, depth - 1),
            test(random, depth - 1)
        ),
        _ => format!(
            "{}({}, {})",
            random.pick(TESTS),
            operand(random, depth - 1),
            operand(random, depth - 1)
        ),
    }
}

/// Something that is true, false or undefined.
fn test(random: &mut Random, depth: u64) -> String {
    match random.below(if depth == 0 { 3 } else { 14 }) {
        0..=2 => {
            let op = random.pick(&["=", "=", "=", "!=", "<", "<=", ">", ">="]);
            format!("({} {op} {})", operand(random, depth.min(1)), operand(random, depth.min(1)))
        }
        3 | 4 => format!("({} AND {})", test(random, depth - 1), test(random, depth - 1)),
        5 | 6 => format!("({} OR {})", test(random, depth - 1), test(random, depth - 1)),
        7 => format!("(NOT {})", test(random, depth - 1)),
        8 => {
            format!("({} IN ({}, {}))", operand(random, 1), operand(random, 1), random.pick(VALUES))
        }
        9 => format!("({} NOT IN ({}))", operand(random, 1), operand(random, 1)),
        10 => format!(
            "({} BETWEEN {} AND {})",
            operand(random, 1),
            random.pick(VALUES),
            random.pick(VALUES)
        ),
        11 => format!(
            "({} LIKE {})",
            operand(random, 1),
            random.pick(&["'x%'", "'[x]'", "'x'", "'%'", "'_'"])
        ),
        12 => format!("EXISTS(SELECT VALUE 1 WHERE {})", test(random, depth - 1)),
        _ => format!(
            "{}({}, {}, {})",
            random.pick(&["STRINGEQUALS", "STARTSWITH", "ARRAY_CONTAINS"]),
            operand(random, 1),
            operand(random, 1),
            random.pick(&["true", "false", "c.a"])
        ),
    }
}

/// A document, as JSON text.
fn document(random: &mut Random) -> String {
    let mut value = || {
        let text = random.pick(VALUES).replace('\'', "\"");
        if text == "undefined" { None } else { Some(text) }
    };
    let mut members = vec!["\"id\":\"1\"".to_owned()];
    members.extend(value().map(|pk| format!("\"pk\":{pk}")));
    members.extend(value().map(|a| format!("\"a\":{a}")));
    format!("{{{}}}", members.join(","))
}

#[test]
fn nothing_is_left_out() {
    let number = |name: &str, usual: u64| {
        std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
    };
    let seed = number("ORRERY_SEED", 0x9E37_79B9_7F4A_7C15);
    let pairs = number("ORRERY_SOUND_PAIRS", u64::try_from(PAIRS).unwrap());
    let queries = usize::try_from(pairs).unwrap() / DOCUMENTS;
    println!("seed {seed}");
    let mut random = Random(seed);
    let definitions = [HashVersion::V2, HashVersion::V1].map(|version| {
        let paths = vec![KeyPath::parse("/pk").unwrap()];
        PartitionKeyDefinition::new(paths, KeyKind::Hash, version).unwrap()
    });
    let mut narrowed = 0_usize;
    for pair in 0..queries {
        let filter = test(&mut random, 3);
        let text = format!("SELECT VALUE {} FROM c WHERE {filter}", operand(&mut random, 1));
        let definition = &definitions[pair % definitions.len()];
        narrowed += usize::from(check(&text, definition, &mut random));
    }
    println!("{narrowed} of {queries} queries were narrowed down");
    assert!(narrowed > queries / 10);
}

/// Holds a query's ranges against documents; whether they leave anything out.
fn check(text: &str, definition: &PartitionKeyDefinition, random: &mut Random) -> bool {
    let context = Arc::new(Context::default());
    let (none, shape) = (Parameters::none(), KeyShape::from(definition));
    let Ok(query) = Query::parse(text) else { panic!("{text} does not parse") };
    let Ok(plan) = query.plan(&none, &context, &shape, &Features::all()) else { return false };
    let Ok(bound) = query.bind_in(&none, &context) else { return false };
    let ring = plan.ranges.on_ring(definition);
    for _ in 0..DOCUMENTS {
        let document = document(random);
        let raw = Raw::trusted(&document);
        let rows = bound.execute(std::iter::once(raw));
        if rows.is_ok_and(|rows| rows.is_empty()) {
            continue;
        }
        // Some values are no keys, and no item has them.
        let Ok(key) = definition.extract(raw) else { continue };
        let epk = definition.epk(&key).unwrap();
        let has = |range: &RingRange| {
            range.min <= epk && (epk < range.max || (range.max_inclusive && epk == range.max))
        };
        let found = plan.ranges != KeyRanges::Nothing && ring.iter().any(has);
        assert!(found, "{text}\nleaves out {document}\n{:?}", plan.ranges);
        let run = bound.key_ranges(&shape);
        let found = run != KeyRanges::Nothing && run.on_ring(definition).iter().any(has);
        assert!(found, "{text}\nleaves out {document} when it is run\n{run:?}");
    }
    plan.ranges != KeyRanges::Everything
}
