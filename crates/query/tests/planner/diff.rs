//! Random queries put to our planner and to Microsoft's: what differs is covered by an
//! entry of `planner-differences.toml`, or it is told.

mod asked;
mod dice;
mod differences;
mod evidence;
mod functions;
mod library;
mod made;
mod mutated;
mod words;

use std::fmt;
use std::path::Path;

use model::json::{self, Object, Value};

use dice::Dice;
use differences::{Case, Difference};
use library::Library;
use words::words;

/// Queries that are sent together.
const BATCH: usize = 500;

/// Differences that are told, made as small as they get.
const TOLD_MAX: usize = 20;

/// Queries of the corpus that are longer say nothing that shorter ones do not.
const TEXT_BYTES_MAX: usize = 400;

const ENTRIES: &str = include_str!("../planner-differences.toml");

/// What came of some queries.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) asked: usize,
    /// Queries that the library accepts.
    pub(crate) accepted: usize,
    /// Queries that the library breaks down on.
    pub(crate) broken: usize,
    /// Differences by the entry that covers them.
    pub(crate) covered: Vec<usize>,
    pub(crate) open: usize,
    /// What no entry covers, with both answers.
    pub(crate) told: Vec<String>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { asked, accepted, broken, covered, open, .. } = self;
        let covered: usize = covered.iter().sum();
        write!(
            f,
            "{asked} queries, {accepted} accepted, {broken} broke the library; \
             {covered} differences covered, {open} open"
        )
    }
}

/// Puts so many constant calls of each function to both; the values that differ.
pub(crate) fn run_functions(seed: u64, count: usize) -> Result<Vec<String>, String> {
    let program = library::program().ok_or("the library is not there")?;
    let all = functions::run(&mut Library::new(program), (seed, count))?;
    let mut told = Vec::new();
    for (name, figures) in all {
        let functions::Figures { asked, folded, different } = figures;
        println!("{name}: {folded} of {asked} told, {} different", different.len());
        told.extend(different);
    }
    Ok(told)
}

/// Whether the library is there, or what is missing.
pub(crate) fn available() -> Result<(), String> {
    match library::program() {
        Some(_) if corpus().exists() => Ok(()),
        _ => Err("Microsoft's planner, because ../shared/dotnet is not there".to_owned()),
    }
}

fn corpus() -> &'static Path {
    Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/conformance/query/planner.jsonl.gz"
    ))
}

/// Puts so many queries to both planners; `progress` hears of it now and then.
pub(crate) fn run(seed: u64, count: usize, progress: impl Fn(&Outcome)) -> Result<Outcome, String> {
    let program = library::program().ok_or("the library is not there")?;
    let entries = differences::parse(ENTRIES)?;
    let packed = std::fs::read(corpus()).map_err(|error| error.to_string())?;
    let mut rows = differences::rows(&packed)?;
    rows.retain(|row| {
        let plain = row.get("build").is_none() && row.get("spec").is_none();
        plain && differences::is_counted(row) && asked::text(row).len() <= TEXT_BYTES_MAX
    });
    let outcome = Outcome { covered: vec![0; entries.len()], ..Outcome::default() };
    let mut run = Run { library: Library::new(program), entries: &entries, outcome };
    let mut dice = Dice::new(seed);
    while run.outcome.asked < count {
        let size = BATCH.min(count - run.outcome.asked);
        let requests: Vec<Value> = (0..size).map(|_| request(&rows, &mut dice)).collect();
        for row in run.library.answers(&requests)? {
            run.outcome.asked += 1;
            match row {
                Some(row) => run.judge(&row)?,
                None => run.outcome.broken += 1,
            }
        }
        progress(&run.outcome);
    }
    let outcome = run.outcome;
    differences::check(&entries, &outcome.covered, (outcome.asked, false))?;
    Ok(outcome)
}

struct Run<'e> {
    library: Library,
    entries: &'e [Difference],
    outcome: Outcome,
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

impl Run<'_> {
    fn judge(&mut self, row: &Value) -> Result<(), String> {
        // An error without a text is no answer either.
        let broken = |case: &Case<'_>| case.theirs.get("error").is_some_and(Value::is_null);
        let Some(case) = Case::of(row).filter(|case| !broken(case)) else {
            self.outcome.broken += 1;
            return Ok(());
        };
        let accepted = case.theirs.get("ok").and_then(Value::as_bool) == Some(true);
        self.outcome.accepted += usize::from(accepted);
        if case.fields.is_empty() {
            return Ok(());
        }
        if let Some(at) = self.entries.iter().position(|entry| entry.covers(&case)) {
            self.outcome.covered[at] += 1;
            return Ok(());
        }
        self.outcome.open += 1;
        if self.outcome.told.len() < TOLD_MAX {
            let shorter = self.shrunk(&case)?;
            let told = shorter.as_ref().and_then(Case::of).unwrap_or(case);
            self.outcome.told.push(told.to_string());
        }
        Ok(())
    }

    /// The same difference in a shorter query, if words can be left out.
    fn shrunk(&mut self, case: &Case<'_>) -> Result<Option<Value>, String> {
        let mut best = None;
        let mut words = words(&case.query);
        let mut length = (words.len() / 2).max(1);
        while length > 0 {
            let shorter: Vec<Vec<String>> = (0..(words.len() + 1).saturating_sub(length))
                .map(|at| [&words[..at], &words[at + length..]].concat())
                .collect();
            let requests: Vec<Value> =
                shorter.iter().map(|words| with_text(case.row, &words.concat())).collect();
            let answers = self.library.answers(&requests)?;
            let same = |row: &Value| {
                let open = |own: &Case<'_>| !self.entries.iter().any(|entry| entry.covers(own));
                Case::of(row).is_some_and(|own| own.fields == case.fields && open(&own))
            };
            let mut found = answers.into_iter().zip(shorter);
            match found.find_map(|(row, words)| row.filter(same).map(|row| (row, words))) {
                Some((row, shorter)) => {
                    words = shorter;
                    best = Some(row);
                    length = length.min(words.len());
                }
                None => length /= 2,
            }
        }
        Ok(best)
    }
}
