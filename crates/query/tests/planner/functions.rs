//! What functions give for constants, as the library tells it: `c.pk = f(…)` has the value
//! as its key range.

use std::collections::BTreeMap;

use model::json::{Object, Value};
use query::Parameters;

use super::dice::Dice;
use super::library::Library;

/// Functions, and the kinds of their arguments; behind a `?` they may be left out.
const FUNCTIONS: &[(&str, &str)] = &[
    ("ABS", "n"),
    ("ACOS", "n"),
    ("ASIN", "n"),
    ("ATAN", "n"),
    ("ATN2", "nn"),
    ("CEILING", "n"),
    ("COS", "n"),
    ("COT", "n"),
    ("DEGREES", "n"),
    ("EXP", "n"),
    ("FLOOR", "n"),
    ("LOG", "n?n"),
    ("LOG10", "n"),
    ("NUMBERBIN", "n?n"),
    ("PI", ""),
    ("POWER", "nn"),
    ("RADIANS", "n"),
    ("ROUND", "n?k"),
    ("SIGN", "n"),
    ("SIN", "n"),
    ("SQRT", "n"),
    ("SQUARE", "n"),
    ("TAN", "n"),
    ("TRUNC", "n"),
    ("INTADD", "ii"),
    ("INTSUB", "ii"),
    ("INTMUL", "ii"),
    ("INTDIV", "ii"),
    ("INTMOD", "ii"),
    ("INTBITAND", "ii"),
    ("INTBITOR", "ii"),
    ("INTBITXOR", "ii"),
    ("INTBITNOT", "i"),
    ("INTBITLEFTSHIFT", "ii"),
    ("INTBITRIGHTSHIFT", "ii"),
    ("IS_ARRAY", "*"),
    ("IS_BOOL", "*"),
    ("IS_DEFINED", "*"),
    ("IS_NULL", "*"),
    ("IS_NUMBER", "*"),
    ("IS_OBJECT", "*"),
    ("IS_PRIMITIVE", "*"),
    ("IS_STRING", "*"),
    ("IS_INTEGER", "*"),
    ("IS_FINITE_NUMBER", "*"),
    ("IS_DATETIME", "d"),
    ("CONCAT", "ss?s"),
    ("CONTAINS", "ss?b"),
    ("STARTSWITH", "ss?b"),
    ("ENDSWITH", "ss?b"),
    ("STRINGEQUALS", "ss?b"),
    ("CONTAINS_ALL_CS", "ss?s"),
    ("CONTAINS_ALL_CI", "ss?s"),
    ("CONTAINS_ANY_CS", "ss?s"),
    ("CONTAINS_ANY_CI", "ss?s"),
    ("INDEX_OF", "ss?i"),
    ("LASTINDEXOF", "ss?i"),
    ("LEFT", "si"),
    ("RIGHT", "si"),
    ("LENGTH", "s"),
    ("LOWER", "s"),
    ("UPPER", "s"),
    ("LTRIM", "s?s"),
    ("RTRIM", "s?s"),
    ("TRIM", "s?s"),
    ("REPLACE", "sss"),
    ("REPLICATE", "si"),
    ("REVERSE", "s"),
    ("SUBSTRING", "sii"),
    ("SUBSTRINGBEFORE", "ss"),
    ("SUBSTRINGAFTER", "ss"),
    ("LASTSUBSTRINGBEFORE", "ss"),
    ("LASTSUBSTRINGAFTER", "ss"),
    ("STRINGJOIN", "Ss"),
    ("STRINGSPLIT", "ss"),
    ("TOSTRING", "*"),
    ("STRINGTOARRAY", "j"),
    ("STRINGTOBOOLEAN", "j"),
    ("STRINGTONULL", "j"),
    ("STRINGTONUMBER", "j"),
    ("STRINGTOOBJECT", "j"),
    ("ARRAY_AVG", "a"),
    ("ARRAY_SUM", "a"),
    ("ARRAY_MIN", "a"),
    ("ARRAY_MAX", "a"),
    ("ARRAY_MEDIAN", "a"),
    ("ARRAY_LENGTH", "a"),
    ("ARRAY_CONCAT", "aa?a"),
    ("ARRAY_CONTAINS", "a*?b"),
    ("ARRAY_CONTAINS_ANY", "a*?*"),
    ("ARRAY_CONTAINS_ALL", "a*?*"),
    ("ARRAY_SLICE", "ai?i"),
    ("SETDIFFERENCE", "aa"),
    ("SETEQUAL", "aa"),
    ("SETINTERSECT", "aa"),
    ("SETUNION", "aa"),
    ("CHOOSE", "i*?*"),
    ("IIF", "b**"),
    ("OBJECTTOARRAY", "o"),
    ("HASH", "*?h"),
    ("DATETIMEADD", "pid"),
    ("DATETIMEBIN", "dp?id"),
    ("DATETIMEDIFF", "pdd"),
    ("DATETIMEFORMAT", "df"),
    ("DATETIMEFROMPARTS", "yii?iiii"),
    ("DATETIMEPART", "pd"),
    ("DATETIMETOTICKS", "d"),
    ("DATETIMETOTIMESTAMP", "d"),
    ("TICKSTODATETIME", "t"),
    ("TIMESTAMPTODATETIME", "t"),
    ("YEAR", "d"),
    ("MONTH", "d"),
    ("DAY", "d"),
    ("REGEXMATCH", "sr?m"),
    ("ST_ISVALID", "g"),
    ("ST_DISTANCE", "gg"),
    ("ST_WITHIN", "gg"),
    ("ST_INTERSECTS", "gg"),
    ("ST_AREA", "g"),
];

/// Calls that are left open, and why.
const LEFT_OPEN: &[(Calls, &str)] = &[
    (
        Calls::Like(r"^ST_.*\[-?\d+, -\d+\], \[-?\d+, -?0\]"),
        "the library takes lines that reach the equator from the south for invalid",
    ),
    (
        Calls::Like(r"^(NUMBERBIN|ROUND)\(-\de19"),
        "numbers below those of 64 bits overflow in the library",
    ),
    (
        Calls::Like(r"^TOSTRING\([\[{].*\de1[78]"),
        "an array keeps no double apart from the integer it equals",
    ),
    (
        Calls::Where(is_on_edge),
        "on which side of its edge the library sees a point that lies on it is a matter of \
         rounding: of 1,364 such points, 696 were inside",
    ),
];

/// Some calls, by how they are written or by what they ask.
enum Calls {
    Like(&'static str),
    Where(fn(&str) -> bool),
}

impl Calls {
    fn have(&self, call: &str) -> bool {
        match self {
            Calls::Like(pattern) => {
                regex::Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(call))
            }
            Calls::Where(asks) => asks(call),
        }
    }
}

/// Whether a predicate is about a polygon and a point on one of its edges. Only edges along
/// a meridian have points with whole degrees between their corners.
fn is_on_edge(call: &str) -> bool {
    let is_predicate = ["ST_WITHIN(", "ST_INTERSECTS("].iter().any(|own| call.starts_with(own));
    let (points, polygons) = (call.matches("'Point'").count(), call.matches("'Polygon'").count());
    let mut places = places(call);
    if !is_predicate || (points, polygons) != (1, 1) || places.len() < 2 {
        return false;
    }
    let is_first = call.find("'Point'") < call.find("'Polygon'");
    let point = places.remove(if is_first { 0 } else { places.len() - 1 });
    places.windows(2).any(|edge| is_between(point, edge[0], edge[1]))
}

/// The places in shapes that are written out, in degrees east and north.
fn places(call: &str) -> Vec<(i32, i32)> {
    let Ok(pair) = regex::Regex::new(r"\[(-?\d+), (-?\d+)\]") else { return Vec::new() };
    let place =
        |(_, [east, north]): (&str, [&str; 2])| Some((east.parse().ok()?, north.parse().ok()?));
    pair.captures_iter(call).filter_map(|found| place(found.extract())).collect()
}

/// Whether a place lies on a meridian, between two others or on one of them.
fn is_between(place: (i32, i32), a: (i32, i32), b: (i32, i32)) -> bool {
    let is_along = place.0 == a.0 && a.0 == b.0;
    is_along && (a.1.min(b.1)..=a.1.max(b.1)).contains(&place.1)
}

/// Calls that are sent together.
const BATCH: usize = 500;

/// What came of the calls of a function.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) asked: usize,
    /// Calls whose value the library tells.
    pub(crate) folded: usize,
    pub(crate) different: Vec<String>,
}

/// Asks so many calls of each function.
pub(crate) fn run(
    library: &mut Library,
    (seed, count): (u64, usize),
) -> Result<BTreeMap<&'static str, Figures>, String> {
    let mut dice = Dice::new(seed);
    let mut all: BTreeMap<&'static str, Figures> = BTreeMap::new();
    for (name, kinds) in FUNCTIONS {
        let calls: Vec<String> = (0..count).map(|_| call(name, kinds, &mut dice)).collect();
        let figures = all.entry(name).or_default();
        for calls in calls.chunks(BATCH) {
            let requests: Vec<Value> = calls.iter().map(|call| request(call)).collect();
            for (call, row) in calls.iter().zip(library.answers(&requests)?) {
                figures.asked += 1;
                let Some(theirs) = row.as_ref().and_then(told) else { continue };
                figures.folded += 1;
                let ours = value(call);
                if !same(&ours, &theirs, precision(call)) && !is_left_open(call) {
                    figures.different.push(format!("{call}: ours {ours}, theirs {theirs}"));
                }
            }
        }
    }
    Ok(all)
}

fn is_left_open(call: &str) -> bool {
    LEFT_OPEN.iter().any(|(calls, why)| !why.is_empty() && calls.have(call))
}

/// Arrays and objects are told as texts.
fn shown(call: &str) -> String {
    format!("TOSTRING([{call}])")
}

fn request(call: &str) -> Value {
    let query = format!("SELECT * FROM c WHERE c.pk = {}", shown(call));
    let mut request = Object::from_iter([("query", query)]);
    request.insert("pk", Object::from_iter([("paths", vec!["/pk"])]));
    request.into()
}

/// The value that the library tells; `None` if it does not, or refuses the call.
fn told(row: &Value) -> Option<Value> {
    let ranges = row.get("answer")?.get("plan")?.get("queryRanges")?.as_array()?;
    let [range] = ranges else { return None };
    if range.get("min") != range.get("max") {
        return None;
    }
    let text = range.get("min")?.as_array()?.first()?.as_str()?;
    model::json::parse(text.as_bytes()).ok()
}

fn value(call: &str) -> Value {
    match query::evaluate(&shown(call), &Parameters::none()) {
        Ok(Some(Value::String(text))) => {
            model::json::parse(text.as_bytes()).unwrap_or_else(|_| Value::from(text))
        }
        Ok(_) => Value::Null,
        Err(error) => Value::from(error.to_string()),
    }
}

/// How much numbers may differ, relative to their size: the library finds the place of an
/// edge that is nearest by trial, and integrates areas with a rule that is not known.
fn precision(call: &str) -> f64 {
    match call {
        call if call.starts_with("ST_DISTANCE") => 1e-9,
        call if call.starts_with("ST_AREA") => 1e-5,
        _ => 0.0,
    }
}

fn same(a: &Value, b: &Value, precision: f64) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64(), b.as_f64());
            a == b || (a - b).abs() <= precision * b.abs()
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, precision))
        }
        (Value::Object(a), Value::Object(b)) => {
            let found = |(name, value): (&str, &Value)| {
                b.get(name).is_some_and(|b| same(value, b, precision))
            };
            a.len() == b.len() && a.iter().all(found)
        }
        _ => a == b,
    }
}

fn call(name: &str, kinds: &str, dice: &mut Dice) -> String {
    let (needed, more) = kinds.split_once('?').unwrap_or((kinds, ""));
    let more = more.get(..dice.below(more.len() + 1)).unwrap_or_default();
    let argument = |kind: char| match dice.once_in(25) {
        true => any(dice, 1),
        false => of_kind(kind, dice),
    };
    let arguments: Vec<String> = needed.chars().chain(more.chars()).map(argument).collect();
    format!("{name}({})", arguments.join(", "))
}

fn any(dice: &mut Dice, depth: usize) -> String {
    let kinds: &[&str] = &["n", "i", "s", "s", "b", "0", "u", "d", "a", "o"];
    let kinds = if depth == 0 { &kinds[..8] } else { kinds };
    match dice.pick(kinds) {
        "0" => "null".to_owned(),
        "u" => "undefined".to_owned(),
        "a" => format!("[{}]", list(dice, |dice| any(dice, depth - 1))),
        "o" => {
            let member = |dice: &mut Dice| {
                format!("'{}': {}", dice.pick(&["a", "b", "k", "é"]), any(dice, depth - 1))
            };
            let members = member(dice);
            format!("{{{members}}}")
        }
        kind => kind.chars().next().map(|kind| of_kind(kind, dice)).unwrap_or_default(),
    }
}

fn list(dice: &mut Dice, mut item: impl FnMut(&mut Dice) -> String) -> String {
    let items: Vec<String> = (0..dice.below(5)).map(|_| item(dice)).collect();
    items.join(", ")
}

fn of_kind(kind: char, dice: &mut Dice) -> String {
    match kind {
        'n' => number(dice),
        'i' | 'h' => integer(dice),
        'k' => format!("{}{}", dice.pick(&["", "-"]), dice.below(6)),
        's' => string(dice),
        'b' => dice.pick(&["true", "false"]).to_owned(),
        'a' => format!("[{}]", list(dice, |dice| any(dice, 0))),
        'S' => format!("[{}]", list(dice, string)),
        'o' => format!("{{'a': {}, 'b': {}}}", any(dice, 1), any(dice, 0)),
        'd' => datetime(dice),
        'p' => format!("'{}'", dice.pick(PARTS)),
        'f' => format!("'{}'", dice.pick(FORMATS)),
        't' => {
            let digits = dice.below(18);
            format!(
                "{}{}",
                dice.pick(&["", "", "-"]),
                dice.next() % 10_u64.pow(u32::try_from(digits).unwrap_or(0)).max(1)
            )
        }
        'y' => format!("{}", 1 + dice.below(9999)),
        'j' => format!("'{}'", dice.pick(TEXTS)),
        'r' => format!("'{}'", dice.pick(PATTERNS)),
        'm' => format!("'{}'", dice.pick(&["", "i", "m", "s", "x", "im", "q"])),
        'g' => shape(dice),
        _ => any(dice, 2),
    }
}

const PARTS: &[&str] = &[
    "year",
    "yyyy",
    "yy",
    "month",
    "mm",
    "m",
    "day",
    "dd",
    "d",
    "hour",
    "hh",
    "minute",
    "mi",
    "n",
    "second",
    "ss",
    "s",
    "millisecond",
    "ms",
    "microsecond",
    "mcs",
    "nanosecond",
    "ns",
    "week",
    "DAY",
];

const FORMATS: &[&str] =
    &["yyyy-MM-dd", "HH:mm:ss", "dd/MM/yy", "yyyyMMddHHmmss", "M/d", "fff", "x"];

const TEXTS: &[&str] = &[
    "1",
    "-1.5",
    " 1 ",
    "1e3",
    "0x1",
    "true",
    "false",
    "TRUE",
    " true ",
    "null",
    " null",
    "Null",
    "[]",
    "[1, 2]",
    "[1,]",
    "[a]",
    "{}",
    "{\"a\": 1}",
    "{a: 1}",
    "",
    " ",
    "\"x\"",
    "NaN",
    "Infinity",
    "1.",
    ".5",
    "+1",
    "01",
    "[1] x",
    "[[]]",
    "undefined",
    "1e400",
    "-0",
    "\t1\n",
];

const PATTERNS: &[&str] =
    &["a", "^a", "b$", "a.c", "[a-c]+", "(a|b)c", "\\\\d+", ".*", "", "A", "a{2}"];

fn number(dice: &mut Dice) -> String {
    let signed = dice.pick(&["", "", "-"]);
    match dice.below(8) {
        0 | 1 => integer(dice),
        2 => format!("{signed}{}.5", dice.below(10)),
        3 => format!("{signed}0.{}", dice.next() % 1_000_000),
        4 => format!("{signed}{}.{}", dice.below(1000), dice.next() % 1_000_000),
        5 => format!("{signed}{}e{}", dice.below(10), dice.below(20)),
        6 => format!("{signed}{}e-{}", dice.below(10), dice.below(20)),
        _ => dice
            .pick(&["0", "1", "-1", "0.5", "-0.5", "1e308", "5e-324", "2", "10", "-0"])
            .to_owned(),
    }
}

fn integer(dice: &mut Dice) -> String {
    let signed = dice.pick(&["", "", "", "-"]);
    match dice.below(6) {
        0..=2 => format!("{signed}{}", dice.below(8)),
        3 => format!("{signed}{}", dice.below(1000)),
        4 => format!("{signed}{}", dice.next() >> (1 + dice.below(40))),
        _ => dice
            .pick(&["0", "1", "2147483647", "2147483648", "9007199254740993", "63", "64"])
            .to_owned(),
    }
}

fn string(dice: &mut Dice) -> String {
    const LETTERS: &[&str] = &[
        "a", "b", "c", "A", "B", " ", "é", "É", "ß", "x", "1", "-", "中", "😀", "\\\\", "\\'",
        "\\n", "İ", "ſ",
    ];
    let letters: Vec<&str> = (0..dice.below(7)).map(|_| dice.pick(LETTERS)).collect();
    format!("'{}'", letters.concat())
}

fn datetime(dice: &mut Dice) -> String {
    let (year, month, day) = (1 + dice.below(9999), 1 + dice.below(13), 1 + dice.below(31));
    let (hour, minute, second) = (dice.below(25), dice.below(60), dice.below(61));
    let date = format!("{year:04}-{month:02}-{day:02}");
    match dice.below(8) {
        0 => format!("'{date}'"),
        1 => format!("'{date}T{hour:02}:{minute:02}Z'"),
        2 => format!("'{date}T{hour:02}:{minute:02}:{second:02}Z'"),
        3 => format!("'{date}T{hour:02}:{minute:02}:{second:02}.{:03}Z'", dice.below(1000)),
        4 => format!("'{date}T{hour:02}:{minute:02}:{second:02}+0{}:00'", dice.below(10)),
        5 => string(dice),
        _ => format!("'{date}T{hour:02}:{minute:02}:{second:02}.{:07}Z'", dice.below(10_000_000)),
    }
}

fn shape(dice: &mut Dice) -> String {
    let point = |dice: &mut Dice| {
        let place =
            |dice: &mut Dice, most: usize| format!("{}{}", dice.pick(&["", "-"]), dice.below(most));
        format!("[{}, {}]", place(dice, 181), place(dice, 91))
    };
    match dice.below(6) {
        0..=2 => format!("{{'type': 'Point', 'coordinates': {}}}", point(dice)),
        3 => {
            let (a, b) = (point(dice), point(dice));
            format!("{{'type': 'LineString', 'coordinates': [{a}, {b}]}}")
        }
        4 => {
            let (x, y, size) = (dice.below(100), dice.below(60), 1 + dice.below(20));
            let (right, top) = (x + size, y + size);
            format!(
                "{{'type': 'Polygon', 'coordinates': \
                 [[[{x}, {y}], [{right}, {y}], [{right}, {top}], [{x}, {top}], [{x}, {y}]]]}}"
            )
        }
        _ => any(dice, 1),
    }
}
