//! Random queries put to our planner and to Microsoft's: what differs is covered by an
//! entry of `planner-differences.toml`, or it is told.

use model::json::{self, Object, Value};

use super::dice::Dice;
use super::differences::{self, Difference};
use super::library::Library;
use super::{asked, made, mutated};

/// Queries that are sent together.
const BATCH: usize = 500;

/// Differences that are told, made as small as they get.
const TOLD_MAX: usize = 400;

/// What came of some queries.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) asked: usize,
    /// Queries that the library accepts.
    pub(crate) accepted: usize,
    /// Queries that the library breaks down on.
    pub(crate) broken: usize,
    pub(crate) covered: usize,
    pub(crate) open: usize,
    /// What no entry covers, with both answers.
    pub(crate) told: Vec<String>,
}

/// Puts so many queries to both.
pub(crate) fn run(
    library: &mut Library,
    rows: &[Value],
    entries: &[Difference],
    (seed, count): (u64, usize),
    progress: impl Fn(&Outcome),
) -> Result<Outcome, String> {
    let mut dice = Dice::new(seed);
    let mut outcome = Outcome::default();
    while outcome.asked < count {
        let size = BATCH.min(count - outcome.asked);
        let requests: Vec<Value> = (0..size).map(|_| request(rows, &mut dice)).collect();
        for row in library.answers(&requests)? {
            outcome.asked += 1;
            let Some(row) = row else {
                outcome.broken += 1;
                continue;
            };
            judge(library, &row, entries, &mut outcome)?;
        }
        progress(&outcome);
    }
    Ok(outcome)
}

/// A query of the grammar, or one of the corpus with changes.
fn request(rows: &[Value], dice: &mut Dice) -> Value {
    let at = |dice: &mut Dice| dice.below(rows.len());
    if rows.is_empty() || dice.once_in(2) {
        let mut request = Object::from_iter([("query", made::query(dice))]);
        request.insert("pk", written(dice.pick(made::KEYS)));
        request.insert("parameters", written(made::PARAMETERS));
        return request.into();
    }
    let (own, other) = (&rows[at(dice)], &rows[at(dice)]);
    let text = mutated::query(&asked::text(own), &asked::text(other), dice);
    with_text(own, &text)
}

fn written(text: &str) -> Value {
    json::parse(text.as_bytes()).expect("what is written here is JSON")
}

fn with_text(row: &Value, text: &str) -> Value {
    let mut row = row.as_object().cloned().unwrap_or_default();
    row.remove("answer");
    row.remove("build");
    row.insert("query", text);
    row.into()
}

fn judge(
    library: &mut Library,
    row: &Value,
    entries: &[Difference],
    outcome: &mut Outcome,
) -> Result<(), String> {
    let Some((fields, ours, theirs)) = differing(row) else { return Ok(()) };
    outcome.accepted += usize::from(theirs.get("ok").and_then(Value::as_bool) == Some(true));
    if fields.is_empty() {
        return Ok(());
    }
    let query = asked::text(row);
    if entries.iter().any(|entry| entry.covers(&query, &fields)) {
        outcome.covered += 1;
        return Ok(());
    }
    outcome.open += 1;
    if outcome.told.len() < TOLD_MAX {
        let (row, fields, ours, theirs) = match shrunk(library, row, &fields, entries)? {
            Some(row) => match differing(&row) {
                Some((fields, ours, theirs)) => (row, fields, ours, theirs),
                None => (row.clone(), fields, ours, theirs),
            },
            None => (row.clone(), fields, ours, theirs),
        };
        let (query, key) = (asked::text(&row), row.get("pk").cloned().unwrap_or(Value::Null));
        outcome
            .told
            .push(format!("{fields:?} {query}\n  key    {key}\n  ours   {ours}\n  theirs {theirs}"));
    }
    Ok(())
}

/// In what the answers differ, and both of them.
fn differing(row: &Value) -> Option<(Vec<&'static str>, Value, Value)> {
    let theirs = asked::recorded(row)?;
    let ours = asked::answer(row);
    Some((differences::fields(&ours, &theirs), ours, theirs))
}

/// The same difference in a shorter query, if words can be left out.
fn shrunk(
    library: &mut Library,
    row: &Value,
    fields: &[&'static str],
    entries: &[Difference],
) -> Result<Option<Value>, String> {
    let mut best = None;
    let mut words = mutated::words(&asked::text(row));
    let mut length = (words.len() / 2).max(1);
    while length > 0 {
        let shorter: Vec<Vec<String>> = (0..words.len().saturating_sub(length - 1))
            .map(|at| [&words[..at], &words[at + length..]].concat())
            .collect();
        let requests: Vec<Value> =
            shorter.iter().map(|words| with_text(row, &words.concat())).collect();
        let same = |row: &Value| {
            let open = |query: &str| !entries.iter().any(|entry| entry.covers(query, fields));
            differing(row).is_some_and(|(own, ..)| own == fields) && open(&asked::text(row))
        };
        let answers = library.answers(&requests)?;
        let found = answers.into_iter().zip(shorter).find_map(|(answer, words)| {
            answer.filter(same).map(|row| (row, words))
        });
        match found {
            Some((row, shorter)) => {
                words = shorter;
                best = Some(row);
                length = length.min(words.len().max(1));
            }
            None => length /= 2,
        }
    }
    Ok(best)
}
