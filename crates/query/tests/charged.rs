//! Whatever a query can compute is paid for in steps, in proportion to the work that
//! its worst inputs cause, and stops when the steps are used up or nobody wants it any
//! more. Work is counted in steps, never in time.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use model::json::Raw;
use model::partition_key::KeyKind;
use model::policy::GeospatialConfig;
use query::{
    CONDITION_STEPS_MAX, Condition, Context, Features, KeyShape, Parameters, Query, QueryError,
    Run, STEPS_MAX, WATCH_STEPS, Watch,
};

/// Bytes of the large properties of the document.
const LARGE: usize = 200_000;

/// A document with the worst of everything: a long text, noise of two letters, many
/// numbers, many members, deep nesting, a zigzag line.
fn document() -> String {
    let noise: String = (0_u32..200_000)
        .map(|n| {
            let mixed = n.wrapping_mul(0x9E37_79B9);
            let mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x85EB_CA6B);
            if mixed >> 13 & 1 == 0 { 'a' } else { 'b' }
        })
        .collect();
    let numbers: Vec<String> = (0..40_000).map(|n| (n % 10).to_string()).collect();
    let members: Vec<String> = (0..16_000).map(|n| format!("\"m{n}\":1")).collect();
    let object = format!("{{{}}}", members.join(","));
    let quoted = object.replace('"', "\\\"");
    let deep = format!("{}{}{}", "[".repeat(100), "1,".repeat(20_000) + "1", "]".repeat(100));
    let zigzag: Vec<String> = (0..2_000).map(|n| format!("[{},{}]", n % 2 * 80, n % 80)).collect();
    format!(
        "{{\"s\":\"{}\",\"noise\":\"{noise}\",\"numbers\":[{}],\"object\":{object},\
         \"quoted\":\"{quoted}\",\"deep\":{deep},\
         \"line\":{{\"type\":\"LineString\",\"coordinates\":[{}]}},\
         \"open\":\"{}\",\"letters\":\"[{}]%\"}}",
        "a".repeat(LARGE),
        numbers.join(","),
        zigzag.join(","),
        "[".repeat(LARGE),
        "ab".repeat(LARGE / 2),
    )
}

fn context() -> Arc<Context> {
    Arc::new(Context { spatial: GeospatialConfig::Geometry, ..Context::default() })
}

/// What a run of an expression on the document takes.
fn steps(expression: &str, document: &str, allowed: usize) -> Result<usize, QueryError> {
    let query = Query::parse(&format!("SELECT VALUE {expression} FROM c")).unwrap();
    let bound = query.bind_in(&Parameters::none(), &context()).unwrap();
    let mut run = Run::new(&bound, allowed);
    let _ = run.document(Raw::trusted(document).into(), &mut |_| Ok(ControlFlow::Continue(())))?;
    Ok(allowed - run.steps_left())
}

/// An expression, and the bytes, values or pairs that it has to look at for certain.
/// 16 bytes are a step, and so is about a value.
const WORK: &[(&str, usize)] = &[
    ("CONCAT(c.s, c.s)", 2 * LARGE / 16),
    ("c.s || c.noise", 2 * LARGE / 16),
    ("CONTAINS(c.s, 'b')", LARGE / 16),
    ("CONTAINS(c.s, c.noise, true)", 2 * LARGE / 16),
    ("STARTSWITH(c.s, c.s)", 2 * LARGE / 16),
    ("ENDSWITH(c.s, c.s)", 2 * LARGE / 16),
    ("STRINGEQUALS(c.s, c.s)", 2 * LARGE / 16),
    ("CONTAINS_ANY_CS(c.s, 'b', 'c', 'd')", 4 * LARGE / 16),
    ("CONTAINS_ALL_CI(c.s, 'a', 'a', 'a')", 4 * LARGE / 16),
    ("INDEX_OF(c.s, 'b')", LARGE / 16),
    ("LASTINDEXOF(c.s, 'b')", LARGE / 16),
    ("SUBSTRINGBEFORE(c.s, 'b')", LARGE / 16),
    ("LEFT(c.s, 150000)", LARGE / 16),
    ("RIGHT(c.s, 150000)", LARGE / 16),
    ("SUBSTRING(c.s, 1, 150000)", LARGE / 16),
    ("LENGTH(c.s)", LARGE / 16),
    ("UPPER(c.s)", LARGE / 16),
    ("REVERSE(c.s)", LARGE / 16),
    ("TRIM(c.s, c.noise)", 2 * LARGE / 16),
    ("REPLACE(c.s, 'a', 'b')", LARGE / 16),
    ("STRINGSPLIT(c.noise, 'abab')", LARGE / 16),
    ("STRINGJOIN(STRINGSPLIT(c.noise, 'abab'), 'x')", 2 * LARGE / 16),
    ("STRINGTOOBJECT(c.quoted)", LARGE / 16),
    ("STRINGTOARRAY(CONCAT('[', c.quoted, ']'))", LARGE / 16),
    ("STRINGTONUMBER(c.s)", LARGE / 16),
    ("TOSTRING(c.object)", 16_000),
    ("RegexMatch(c.s, 'a{0,1000}b')", 1_000 * 1_000 / 8),
    ("RegexMatch(c.s, CONCAT('a{0,', '1000}b'))", 1_000 * 1_000 / 8),
    ("RegexMatch(c.noise, '[ab]*a[ab]{100}c')", LARGE * 100 / 8),
    ("RegexExtract(c.s, 'a*b')", LARGE / 16),
    ("RegexExtractAll(c.s, 'a.*b|aaaaaaaaaa')", LARGE / 10 * LARGE / 32),
    ("c.s LIKE '%aaaaaaaab'", LARGE),
    ("c.s LIKE c.open", LARGE),
    ("c.noise LIKE c.letters", LARGE / 16),
    ("c.noise LIKE '%a%b%a%b%c'", LARGE),
    ("ARRAY_CONCAT(c.numbers, c.numbers)", 80_000),
    ("ARRAY_LENGTH(c.numbers)", 40_000),
    ("ARRAY_SLICE(c.numbers, 1)", 40_000),
    ("ARRAY_CONTAINS(c.numbers, 11)", 40_000),
    ("ARRAY_CONTAINS([c.object], c.object, true)", 16_000 * LARGE / 16),
    ("ARRAY_CONTAINS_ANY(c.numbers, 11, 12)", 40_000),
    ("ARRAY_SUM(c.numbers)", 40_000),
    ("ARRAY_MEDIAN(c.numbers)", 40_000),
    ("ARRAY_MAX(c.numbers)", 40_000),
    ("SETUNION(c.numbers, c.numbers)", 80_000),
    ("SETINTERSECT(c.numbers, c.numbers)", 80_000),
    ("SETDIFFERENCE(c.numbers, c.numbers)", 80_000),
    ("SETEQUAL(c.numbers, c.numbers)", 80_000),
    ("OBJECTTOARRAY(c.object)", 16_000),
    ("HASH(c.deep)", 100 * 40_000 / 16),
    ("TOSTRING(c.deep)", 100 * 40_000 / 16),
    ("c.deep = c.deep", 100 * 40_000 / 16),
    ("c.object = c.object", 16_000),
    ("c.deep IN (1, 2, c.deep)", 100 * 40_000 / 16),
    ("c.s BETWEEN c.noise AND c.s", 2 * LARGE / 16),
    ("ST_WITHIN(c.line, c.line)", 2_000 * 2_000),
    ("ST_WITHIN({type: 'Point', coordinates: [1, 1]}, c.line)", 2_000 * 2_000 / 16),
    ("ST_DISTANCE(c.line, c.line)", 2_000 * 2_000),
    ("ST_INTERSECTS(c.line, c.line)", 2_000 * 2_000),
    ("DATETIMEFORMAT('2020-01-01', c.s)", LARGE / 16),
];

#[test]
fn every_function_is_paid_for_in_proportion_to_its_work() {
    let document = document();
    // Looking for the properties is paid for, too, so that is left out.
    let lookup = document.len() / 16;
    for (expression, work) in WORK {
        let properties = expression.matches("c.").count();
        match steps(expression, &document, STEPS_MAX) {
            Ok(taken) => {
                let own = taken.saturating_sub(lookup * properties);
                assert!(own >= *work, "{expression} took {own} steps for {work}");
            }
            Err(QueryError::Limit { .. }) => {}
            Err(error) => panic!("{expression}: {error}"),
        }
    }
}

#[test]
fn every_function_stops_when_its_steps_are_used_up() {
    let document = document();
    let lookup = document.len() / 16;
    for (expression, work) in WORK {
        let allowed = lookup * expression.matches("c.").count() + (*work).min(STEPS_MAX) / 2;
        let outcome = steps(expression, &document, allowed);
        let stopped = QueryError::Limit { what: "steps of evaluation", limit: STEPS_MAX };
        assert_eq!(outcome, Err(stopped), "{expression}");
    }
}

/// Says yes so many times, and counts how often it was asked.
#[derive(Debug)]
struct Counting {
    asked: AtomicUsize,
    allowed: usize,
}

impl Watch for Counting {
    fn may_go_on(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) < self.allowed
    }
}

fn watched(allowed: usize) -> (Arc<Counting>, Arc<Context>) {
    let watch = Arc::new(Counting { asked: AtomicUsize::new(0), allowed });
    let context =
        Context { watch: Some(Arc::clone(&watch) as Arc<dyn Watch>), ..Context::default() };
    (watch, Arc::new(context))
}

const ATTACK: &str = "SELECT VALUE RegexMatch(@s, @p) FROM c";

fn attack() -> Parameters {
    Parameters::none().with("@s", "a".repeat(2_000_000)).with("@p", "a{0,5000}b")
}

#[test]
fn binding_asks_whether_to_go_on() {
    let query = Query::parse(ATTACK).unwrap();
    let (watch, context) = watched(usize::MAX);
    query.bind_in(&attack(), &context).unwrap();
    let asked = watch.asked.load(Ordering::Relaxed);
    assert!(asked > 100 && asked * WATCH_STEPS <= STEPS_MAX / 4 + WATCH_STEPS, "{asked}");

    let (watch, context) = watched(3);
    let bound = query.bind_in(&attack(), &context);
    assert_eq!(bound.err(), Some(QueryError::Stopped));
    assert_eq!(watch.asked.load(Ordering::Relaxed), 4, "it is not asked again");
}

#[test]
fn a_run_ends_when_it_may_not_go_on() {
    let (watch, context) = watched(10);
    let query = Query::parse("SELECT VALUE RegexMatch(c.s, '[ab]*a[ab]{200}c') FROM c").unwrap();
    let bound = query.bind_in(&Parameters::none(), &context).unwrap();
    let document = document();
    let mut run = Run::new(&bound, STEPS_MAX);
    let sink = &mut |_: query::Row<'_, '_>| Ok(ControlFlow::Continue(()));
    let noise = document.replace("\"s\"", "\"t\"").replace("\"noise\"", "\"s\"");
    assert_eq!(run.document(Raw::trusted(&noise).into(), sink), Err(QueryError::Stopped));
    assert_eq!(watch.asked.load(Ordering::Relaxed), 11);
    assert_eq!(
        run.document(Raw::trusted("{}").into(), sink),
        Err(QueryError::Stopped),
        "nor later"
    );
}

#[test]
fn conditions_of_patches_have_less_to_spend() {
    let document = document();
    let condition = |text: &str| {
        Condition::parse(&format!("from c where {text}")).unwrap().holds(Raw::trusted(&document))
    };
    assert_eq!(condition("RegexMatch(c.s, 'aab?a')"), Ok(true));
    let stopped = Err(QueryError::Limit { what: "steps of evaluation", limit: STEPS_MAX });
    assert_eq!(condition("RegexMatch(c.noise, '[ab]*a[ab]{200}c')"), stopped);
    assert!(steps("c.s LIKE '%aab'", &document, STEPS_MAX).unwrap() < CONDITION_STEPS_MAX);
}

#[test]
fn errors_are_told_up_to_a_number() {
    let names: Vec<String> = (0..20_000).map(|n| format!("x{n}")).collect();
    let text = format!("SELECT VALUE [{}]", names.join(","));
    let error = Query::parse(&text).unwrap().bind(&Parameters::none()).unwrap_err();
    assert!(matches!(error, QueryError::Invalid(errors) if errors.len() == 100));
}

#[test]
fn a_filter_that_says_much_about_the_key_is_planned_in_one_go() {
    let list: Vec<String> = (0..16_000).map(|n| n.to_string()).collect();
    let bounds = " AND c.pk >= 0".repeat(1_900);
    let text = format!("SELECT * FROM c WHERE c.pk IN ({}){bounds}", list.join(","));
    let key = KeyShape { kind: KeyKind::Hash, paths: vec![vec!["pk".to_owned()]] };
    let query = Query::parse(&text).unwrap();
    let plan = query.plan(&Parameters::none(), &Arc::default(), &key, &Features::all()).unwrap();
    assert!(matches!(plan.ranges, query::KeyRanges::Some(ranges) if ranges.len() == 16_000));
}
