//! Differences that are known, each with a reason and the rows that show it.

use std::collections::BTreeMap;

use model::json::{self, Value};

/// One reason to differ, as `planner-differences.toml` tells it.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) name: String,
    /// Patterns, one of which the query must match.
    patterns: Vec<regex::Regex>,
    /// What may differ: `accept`, `code`, `message`, `location`, `list`, `ranges`, `text`, `info`.
    fields: Vec<String>,
    /// The library answers what the evaluator would not: such entries may be large.
    pub(crate) is_soundness: bool,
}

/// Reads the entries: `[[difference]]` with `name`, `why`, `fields`, `matches` and, where
/// it applies, `soundness`.
pub(crate) fn parse(text: &str) -> Result<Vec<Difference>, String> {
    let table: toml::Table = text.parse().map_err(|error| format!("{error}"))?;
    let entries = table.get("difference").and_then(toml::Value::as_array);
    entries.map_or(&[][..], Vec::as_slice).iter().map(entry).collect()
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
    let is_soundness = value.get("soundness").and_then(toml::Value::as_bool).unwrap_or(false);
    Ok(Difference { name, patterns, fields: list("fields"), is_soundness })
}

impl Difference {
    pub(crate) fn covers(&self, query: &str, fields: &[&str]) -> bool {
        fields.iter().all(|field| self.fields.iter().any(|own| own == field))
            && self.patterns.iter().any(|pattern| pattern.is_match(query))
    }
}

/// In what two answers differ.
pub(crate) fn fields(ours: &Value, theirs: &Value) -> Vec<&'static str> {
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

/// Counts per family.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) rows: usize,
    pub(crate) differing: usize,
    fields: BTreeMap<&'static str, usize>,
    /// Rows that both answer with a plan, and that both refuse.
    planned: usize,
    refused: usize,
}

impl Figures {
    pub(crate) fn add(&mut self, theirs: &Value, fields: &[&'static str]) {
        self.rows += 1;
        self.differing += usize::from(!fields.is_empty());
        for field in fields {
            *self.fields.entry(field).or_default() += 1;
        }
        if fields != ["accept"] {
            let planned = theirs.get("ok").and_then(Value::as_bool) == Some(true);
            *(if planned { &mut self.planned } else { &mut self.refused }) += 1;
        }
    }

    pub(crate) fn join(&mut self, other: &Figures) {
        self.rows += other.rows;
        self.differing += other.differing;
        self.planned += other.planned;
        self.refused += other.refused;
        for (field, count) in &other.fields {
            *self.fields.entry(field).or_default() += count;
        }
    }

    /// The share of rows that agree in something, among those where it can be told.
    pub(crate) fn share(&self, field: &str) -> f64 {
        let of = match field {
            "accept" => self.rows,
            "ranges" | "text" | "info" => self.planned,
            _ => self.refused,
        };
        share(self.fields.get(field).copied().unwrap_or(0), of)
    }

    pub(crate) fn everything(&self) -> f64 {
        share(self.differing, self.rows)
    }
}

/// In percent.
fn share(wrong: usize, of: usize) -> f64 {
    let count = |count: usize| u32::try_from(count).map_or(f64::MAX, f64::from);
    if of == 0 { 100.0 } else { 100.0 - 100.0 * count(wrong) / count(of) }
}

/// The rows of a corpus that is packed.
pub(crate) fn rows(packed: &[u8]) -> Result<Vec<Value>, String> {
    use std::io::Read;
    let mut text = String::new();
    let mut reader = flate2::read::GzDecoder::new(packed);
    reader.read_to_string(&mut text).map_err(|error| error.to_string())?;
    text.lines().map(|line| json::parse(line.as_bytes()).map_err(|e| e.to_string())).collect()
}
