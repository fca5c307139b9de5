//! Differences that are known, each with a reason and the rows that show it.

use std::fmt;

use model::json::{self, Value};

use super::{asked, evidence};

/// The share of all queries that one reason may cover, in percent, soundness apart.
const ENTRY_SHARE_MAX: f64 = 0.5;

/// Reasons to differ.
const ENTRIES_MAX: usize = 40;

/// One reason to differ, as `planner-differences.toml` tells it.
#[derive(Debug)]
pub(crate) struct Difference {
    name: String,
    /// Patterns, one of which the query must match.
    patterns: Vec<regex::Regex>,
    /// What may differ: `accept`, `code`, `message`, `location`, `list`, `ranges`, `text`, `info`.
    fields: Vec<String>,
    /// The library answers what the evaluator would not: such entries may be large.
    is_soundness: bool,
    /// Patterns that our answer and the library's must match.
    ours: Option<regex::Regex>,
    theirs: Option<regex::Regex>,
    /// A pattern that one of them must match.
    either: Option<regex::Regex>,
    /// Only queries that were made up show it.
    is_random: bool,
    /// A document is found that the library leaves out.
    evidence: bool,
    /// We leave out more than the library does, and no document shows that to be wrong.
    narrower: bool,
    /// We leave out less.
    wider: bool,
}

/// A query that is answered differently.
pub(crate) struct Case<'r> {
    pub(crate) row: &'r Value,
    pub(crate) query: String,
    pub(crate) fields: Vec<&'static str>,
    pub(crate) ours: Value,
    pub(crate) theirs: Value,
}

impl<'r> Case<'r> {
    /// `None` where the library gave no answer.
    pub(crate) fn of(row: &'r Value) -> Option<Case<'r>> {
        let theirs = asked::recorded(row)?;
        let ours = asked::answer(row);
        let fields = fields(&ours, &theirs);
        Some(Case { row, query: asked::text(row), fields, ours, theirs })
    }
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { row, query, fields, ours, theirs } = self;
        let key = row.get("pk").map(Value::to_string).unwrap_or_default();
        write!(f, "{fields:?} {query}\n  key    {key}\n  ours   {ours}\n  theirs {theirs}")
    }
}

/// Reads the entries: `[[difference]]` with `name`, `why`, `fields`, `matches` and, where
/// they apply, `soundness`, `ours`, `theirs`, `either`, `evidence`, `narrower`, `wider`, `random`.
pub(crate) fn parse(text: &str) -> Result<Vec<Difference>, String> {
    let table: toml::Table = text.parse().map_err(|error| format!("{error}"))?;
    let entries = table.get("difference").and_then(toml::Value::as_array);
    let entries = entries.map_or(&[][..], Vec::as_slice);
    if entries.len() > ENTRIES_MAX {
        return Err(format!("there are {} entries", entries.len()));
    }
    entries.iter().map(entry).collect()
}

fn entry(value: &toml::Value) -> Result<Difference, String> {
    let text = |name: &str| value.get(name).and_then(toml::Value::as_str).map(str::to_owned);
    let list = |name: &str| -> Vec<String> {
        let items = value.get(name).and_then(toml::Value::as_array);
        let items = items.map_or(&[][..], Vec::as_slice).iter();
        items.filter_map(toml::Value::as_str).map(str::to_owned).collect()
    };
    let name = text("name").ok_or("an entry has no name")?;
    if text("why").is_none_or(|why| why.is_empty()) {
        return Err(format!("{name} says no reason"));
    }
    let pattern =
        |pattern: String| regex::Regex::new(&pattern).map_err(|error| format!("{name}: {error}"));
    let patterns = list("matches").into_iter().map(pattern).collect::<Result<Vec<_>, _>>()?;
    let flag = |name: &str| value.get(name).and_then(toml::Value::as_bool).unwrap_or(false);
    Ok(Difference {
        patterns,
        fields: list("fields"),
        is_soundness: flag("soundness"),
        ours: text("ours").map(pattern).transpose()?,
        theirs: text("theirs").map(pattern).transpose()?,
        either: text("either").map(pattern).transpose()?,
        is_random: flag("random"),
        evidence: flag("evidence"),
        narrower: flag("narrower"),
        wider: flag("wider"),
        name,
    })
}

impl Difference {
    pub(crate) fn covers(&self, case: &Case<'_>) -> bool {
        let fits = |own: &Option<regex::Regex>, answer: &Value| {
            own.as_ref().is_none_or(|own| own.is_match(&answer.to_string()))
        };
        case.fields.iter().all(|field| self.fields.iter().any(|own| own == field))
            && self.patterns.iter().any(|pattern| pattern.is_match(&case.query))
            && fits(&self.ours, &case.ours)
            && fits(&self.theirs, &case.theirs)
            && (fits(&self.either, &case.ours) || fits(&self.either, &case.theirs))
            && (!self.evidence || is_left_out(case, &case.theirs))
            && (!(self.narrower || self.wider) || case.fields.contains(&"ranges"))
            && (!self.narrower
                || (is_within(&case.ours, &case.theirs) && !is_left_out(case, &case.ours)))
            && (!self.wider || is_within(&case.theirs, &case.ours))
    }
}

/// Tells how much each entry covers: nothing too much, and of a corpus each something.
pub(crate) fn check(
    entries: &[Difference],
    covered: &[usize],
    (all, is_corpus): (usize, bool),
) -> Result<(), String> {
    let count = |count: usize| u32::try_from(count).map_or(f64::MAX, f64::from);
    for (Difference { name, is_random, is_soundness, .. }, covered) in entries.iter().zip(covered) {
        let share = 100.0 * count(*covered) / count(all);
        if *covered > 0 {
            println!("{name}: {covered}");
        }
        if is_corpus && !is_random && *covered == 0 {
            return Err(format!("{name} covers nothing"));
        }
        if !is_soundness && share > ENTRY_SHARE_MAX {
            return Err(format!("{name} covers {share:.2} %"));
        }
    }
    Ok(())
}

/// Whether a document shows that the ranges of an answer leave out what they should not.
fn is_left_out(case: &Case<'_>, answer: &Value) -> bool {
    let ranges = answer.get("ranges");
    ranges.is_some_and(|ranges| evidence::against(case.row, ranges).is_some())
}

/// Whether one answer leaves out all that the other does.
fn is_within(answer: &Value, other: &Value) -> bool {
    let ranges = answer.get("ranges").zip(other.get("ranges"));
    ranges.is_some_and(|(ranges, others)| evidence::is_within(ranges, others))
}

/// In what two answers differ.
fn fields(ours: &Value, theirs: &Value) -> Vec<&'static str> {
    if ours == theirs {
        return Vec::new();
    }
    let ok = |answer: &Value| answer.get("ok").and_then(Value::as_bool);
    if ok(ours) != ok(theirs) {
        return vec!["accept"];
    }
    if ok(ours) == Some(true) { plan_fields(ours, theirs) } else { error_fields(ours, theirs) }
}

fn plan_fields(ours: &Value, theirs: &Value) -> Vec<&'static str> {
    let mut fields = Vec::new();
    if ours.get("ranges") != theirs.get("ranges") {
        fields.push("ranges");
    }
    let text =
        |answer: &Value| answer.get("info").and_then(|info| info.get("rewrittenQuery")).cloned();
    if text(ours) != text(theirs) {
        fields.push("text");
    }
    let others = |answer: &Value| {
        let mut info = answer.get("info").and_then(Value::as_object).cloned().unwrap_or_default();
        info.remove("rewrittenQuery");
        Value::from(info)
    };
    if others(ours) != others(theirs) {
        fields.push("info");
    }
    fields
}

fn error_fields(ours: &Value, theirs: &Value) -> Vec<&'static str> {
    let first = |answer: &Value, member: &str| {
        let errors = answer.get("error")?.get("errors")?.as_array()?;
        errors.first()?.get(member).cloned()
    };
    let message = |answer: &Value| {
        let plain = || answer.get("error")?.get("Errors")?.as_array()?.first().cloned();
        first(answer, "message").or_else(plain)
    };
    let mut fields = Vec::new();
    if first(ours, "code") != first(theirs, "code") {
        fields.push("code");
    }
    if message(ours) != message(theirs) {
        fields.push("message");
    }
    if first(ours, "location") != first(theirs, "location") {
        fields.push("location");
    }
    if fields.is_empty() {
        fields.push("list");
    }
    fields
}

/// The rows of a corpus that is packed.
pub(crate) fn rows(packed: &[u8]) -> Result<Vec<Value>, String> {
    use std::io::Read;
    let mut text = String::new();
    let mut reader = flate2::read::GzDecoder::new(packed);
    reader.read_to_string(&mut text).map_err(|error| error.to_string())?;
    text.lines().map(|line| json::parse(line.as_bytes()).map_err(|e| e.to_string())).collect()
}

/// Search, which is built later, and functions that only the service's own texts call.
pub(crate) fn is_counted(row: &Value) -> bool {
    const LATER: [&str; 5] =
        ["FULLTEXT", "VECTORDISTANCE", "GENERATEEMBEDDINGS", "RRF(", "COMBINEDSCORE"];
    const INTERNAL: [&str; 8] = [
        "_FULLTEXT",
        "_VECTORSCORE",
        "_REGEX_MATCH",
        "_TRY_",
        "_OBJECTTOARRAY",
        "_COMPARE_",
        "_MASK",
        "_PROXY_",
    ];
    const PREFIXES: [&str; 3] = ["_ST_", "_M_", " C_"];
    let family = row.get("family").and_then(Value::as_str).unwrap_or_default();
    let query = asked::text(row).to_ascii_uppercase();
    let has = |words: &[&str]| words.iter().any(|word| query.contains(word));
    !family.starts_with("rank.") && !has(&LATER) && !has(&INTERNAL) && !has(&PREFIXES)
}
