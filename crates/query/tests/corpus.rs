//! How much of the recorded corpora the language front end gets right.
//!
//! The corpora lie outside the repository. Each test prints its counts and
//! holds a ratchet: the number reached may rise and never fall.
#![allow(clippy::print_stdout, reason = "the counts are the point")]

use std::path::PathBuf;

use model::json::{self, Raw, Value};
use query::{Parameters, Query, QueryError, SyntaxError};

/// The text of a corpus; `None` where the corpora are not at hand.
fn corpus(file: &str) -> Option<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/query");
    let path = PathBuf::from(folder).join(file);
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{} is missing", path.display());
        println!("left out: {file}, because ../shared/conformance is not there");
    }
    text
}

fn rows(file: &str) -> Option<Vec<Value>> {
    let row = |line: &str| json::parse(line.as_bytes()).expect("rows are JSON");
    corpus(file).map(|text| text.lines().map(row).collect())
}

fn text<'r>(row: &'r Value, name: &str) -> &'r str {
    row.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Counts rows that parse, prints those that go the wrong way, and checks that
/// what parses prints as a text that parses to the same tree.
fn parsed(file: &str, accept: bool) -> Option<(usize, usize)> {
    let rows = rows(file)?;
    let mut right = 0;
    for row in &rows {
        let query = text(row, "query");
        let result = Query::parse(query);
        if let Ok(parsed) = &result {
            let printed = parsed.syntax().to_string();
            let again = Query::parse(&printed).expect("what is printed parses");
            assert_eq!(again.syntax(), parsed.syntax(), "{printed}");
        }
        if result.is_ok() == accept {
            right += 1;
        } else {
            println!("  {query:?}: {:?}", result.err().map(|error| error.to_string()));
        }
    }
    println!("{file}: {right} of {} as expected", rows.len());
    Some((right, rows.len()))
}

#[test]
fn generated_queries_parse() {
    // Of the 670 rows of the first file, two are the halves of one query that
    // the extraction cut at an empty line.
    for (file, ratchet) in
        [("must_parse_efcore_sql.jsonl", 668), ("must_parse_linq_sql.jsonl", 508)]
    {
        let Some((right, _)) = parsed(file, true) else { continue };
        assert!(right >= ratchet, "{file}: {right} < {ratchet}");
    }
}

#[test]
fn client_grammar_is_followed_where_the_service_does() {
    // Refused because the service takes one RANK item only.
    const EXCEPTIONS: usize = 2;
    if let Some((right, all)) = parsed("parse_accept_client_grammar.jsonl", true) {
        assert!(right + EXCEPTIONS >= all);
    }
    if let Some((right, all)) = parsed("parse_reject_client_grammar.jsonl", false) {
        assert_eq!(right, all);
    }
}

/// What the language refuses without knowing partitions or indexes.
///
/// The rest of the file is refused elsewhere: composed aggregates by the query
/// plan, ORDER BY that no index path can serve by the planner.
#[test]
fn refusals_carry_the_services_codes_and_positions() {
    const RATCHET: usize = 86;
    let Some(rows) = rows("must_reject_service.jsonl") else { return };
    let (mut located, mut refused, mut elsewhere) = (0, 0, 0);
    for row in &rows {
        let query = as_sent(row);
        let result = Query::parse(&query).and_then(|query| query.bind(&Parameters::none()));
        let expected = recorded_errors(row);
        match result {
            Err(QueryError::Invalid(errors)) => {
                let ours: Vec<String> =
                    errors.iter().map(|error| located_error(error, &query)).collect();
                refused += 1;
                located += usize::from(ours == expected);
                if ours != expected {
                    println!("  {query:?}\n    ours   {ours:?}\n    theirs {expected:?}");
                }
            }
            Err(error) => println!("  {query:?}: {error}"),
            Ok(_) if expected.is_empty() => elsewhere += 1,
            Ok(_) => println!("  {query:?} is accepted, theirs {expected:?}"),
        }
    }
    println!(
        "must_reject_service.jsonl: {refused} of {} refused, {located} exactly so, \
         {elsewhere} for the planner to refuse",
        rows.len()
    );
    assert!(located >= RATCHET, "{located} < {RATCHET}");
}

/// The text as the service got it: baselines of the LINQ provider break lines
/// for readers, and the recorded positions do not count those breaks.
fn as_sent(row: &Value) -> String {
    let query = text(row, "query");
    if text(row, "source_file").contains("/Linq") {
        query.split('\n').map(|line| line.trim_start_matches(' ')).collect()
    } else {
        query.to_owned()
    }
}

fn located_error(error: &SyntaxError, query: &str) -> String {
    let place = error.place(query);
    format!("{} {}..{} {}", error.code, place.start, place.end, error.message)
}

/// The recorded errors that have a position, which the planner's have not.
fn recorded_errors(row: &Value) -> Vec<String> {
    let errors = row.get("error").and_then(|error| error.get("errors")?.as_array());
    let located = |error: &Value| {
        let location = error.get("location")?;
        let (start, end) = (location.get("start")?, location.get("end")?);
        Some(format!("{} {start}..{end} {}", text(error, "code"), text(error, "message")))
    };
    errors.into_iter().flatten().filter_map(located).collect()
}

/// Runs a query over documents; `None` where it needs what is not there yet.
fn results(query: &str, documents: &[Value]) -> Option<Result<Vec<Value>, QueryError>> {
    let bound = match Query::parse(query).and_then(|query| query.bind(&Parameters::none())) {
        Ok(bound) => bound,
        Err(QueryError::Unsupported { .. }) => return None,
        Err(QueryError::Invalid(errors)) if errors.iter().all(needs_parameter) => return None,
        Err(error) => return Some(Err(error)),
    };
    let texts: Vec<String> = documents.iter().map(Value::to_string).collect();
    Some(bound.execute(texts.iter().map(|text| Raw::trusted(text))))
}

/// The corpora do not say which values their parameters had.
fn needs_parameter(error: &SyntaxError) -> bool {
    error.message.starts_with("Identifier '@")
}

/// Equal as bags, with room for sums that were added up in another order.
fn same(ours: &[Value], theirs: &[Value]) -> bool {
    let (ours, theirs) = (as_bag(ours), as_bag(theirs));
    ours.len() == theirs.len()
        && ours.iter().zip(&theirs).all(|(a, b)| match (a.as_number(), b.as_number()) {
            (Some(a), Some(b)) => (a.as_f64() - b.as_f64()).abs() <= a.as_f64().abs() * 1e-12,
            _ => a == b,
        })
}

fn as_bag(values: &[Value]) -> Vec<Value> {
    let mut values = values.to_vec();
    values.sort();
    values
}

/// Counts rows whose result is as recorded: all, and those checked upstream.
struct Tally {
    file: &'static str,
    right: usize,
    wrong: usize,
    later: usize,
}

impl Tally {
    fn new(file: &'static str) -> Tally {
        Tally { file, right: 0, wrong: 0, later: 0 }
    }

    fn add(
        &mut self,
        query: &str,
        result: Option<Result<Vec<Value>, QueryError>>,
        expected: &[Value],
    ) {
        match result {
            None => self.later += 1,
            Some(Ok(rows)) if same(&rows, expected) => self.right += 1,
            Some(result) => {
                let ours = result.map(|rows| Value::from(rows).to_string());
                println!(
                    "  {query}\n    ours   {ours:?}\n    theirs {}",
                    Value::from(expected.to_vec())
                );
                self.wrong += 1;
            }
        }
    }

    fn check(&self, ratchet: usize) {
        let Tally { file, right, wrong, later } = self;
        println!("{file}: {right} right, {wrong} wrong, {later} need what is not there yet");
        assert!(*right >= ratchet, "{file}: {right} < {ratchet}");
    }
}

#[test]
fn documentation_examples_give_what_they_say() {
    let Some(rows) = rows("doc_selfcontained.jsonl") else { return };
    let mut checked = Tally::new("doc_selfcontained.jsonl, checked upstream");
    let mut others = Tally::new("doc_selfcontained.jsonl, not checked upstream");
    for row in &rows {
        let upstream = row.get("ci_validated").and_then(Value::as_bool) == Some(true);
        let tally = if upstream { &mut checked } else { &mut others };
        let expected = row.get("expected").and_then(Value::as_array).unwrap_or_default();
        tally.add(text(row, "query"), results(text(row, "query"), &[]), expected);
    }
    checked.check(46);
    others.check(56);
}

#[test]
fn aggregates_treat_mixed_types_as_the_emulator_does() {
    let Some(rows) = rows("aggregate_mixed_types.jsonl") else { return };
    let Some(documents) = documents("aggregate_mixed_input.json") else { return };
    let mut tally = Tally::new("aggregate_mixed_types.jsonl");
    for row in &rows {
        // The recorded text is the values of the list without its brackets.
        let expected = json::parse(format!("[{}]", text(row, "expected")).as_bytes()).unwrap();
        let query = text(row, "query");
        tally.add(query, results(query, &documents), expected.as_array().unwrap());
    }
    // Two lists differ in order: the emulator read its rows from an index.
    tally.check(73);
}

#[test]
fn groups_come_out_as_recorded() {
    let Some(rows) = rows("group_by_results.jsonl") else { return };
    let Some(documents) = documents("group_by_input.json") else { return };
    let mut tally = Tally::new("group_by_results.jsonl");
    for row in &rows {
        let expected = row.get("expected").and_then(Value::as_array).unwrap_or_default();
        tally.add(text(row, "query"), results(text(row, "query"), &documents), expected);
    }
    tally.check(22);
}

#[test]
fn examples_with_documents_give_what_they_say() {
    let Some(rows) = rows("doc_with_input.jsonl") else { return };
    let mut checked = Tally::new("doc_with_input.jsonl, checked upstream");
    let mut others = Tally::new("doc_with_input.jsonl, not checked upstream");
    for row in &rows {
        let upstream = row.get("ci_validated").and_then(Value::as_bool) == Some(true);
        let tally = if upstream { &mut checked } else { &mut others };
        let documents = match row.get("input") {
            Some(Value::Array(documents)) => documents.clone(),
            Some(document @ Value::Object(_)) => vec![document.clone()],
            _ => Vec::new(),
        };
        let expected = row.get("expected").and_then(Value::as_array).unwrap_or_default();
        tally.add(text(row, "query"), results(text(row, "query"), &documents), expected);
    }
    checked.check(18);
    others.check(42);
}

fn documents(file: &str) -> Option<Vec<Value>> {
    let text = corpus(file)?;
    let list = json::parse(text.as_bytes()).expect("documents are JSON");
    Some(list.as_array().expect("documents are a list").to_vec())
}

#[test]
fn linq_results_come_out_as_recorded() {
    let Some(rows) = rows("linq_results.jsonl") else { return };
    let mut tally = Tally::new("linq_results.jsonl, with input");
    for row in &rows {
        let Some(input) = row.get("input").and_then(Value::as_array) else { continue };
        let document = |item: &Value| json::parse(item.as_str().unwrap_or("null").as_bytes());
        let documents: Vec<Value> = input.iter().map(|item| document(item).unwrap()).collect();
        let expected = row.get("expected").and_then(Value::as_array).unwrap_or_default();
        tally.add(text(row, "query"), results(text(row, "query"), &documents), expected);
    }
    // The others recorded how the client prints its objects, not what it was given.
    tally.check(41);
}

#[test]
fn cross_partition_results_come_out_as_recorded() {
    let Some(rows) = rows("client_engine_results.jsonl") else { return };
    let mut tally = Tally::new("client_engine_results.jsonl, with data");
    for row in &rows {
        let available = row.get("test_data_available").and_then(Value::as_bool);
        let file = format!("client_engine_testdata/{}", text(row, "test_data"));
        let Some(data) = available.filter(|there| *there).and_then(|_| corpus(&file)) else {
            continue;
        };
        let data = json::parse(data.as_bytes()).unwrap();
        let documents = data.get("data").and_then(Value::as_array).unwrap_or_default();
        let expected = row.get("expected").and_then(Value::as_array).unwrap_or_default();
        let expected: Vec<Value> = expected.iter().cloned().map(without_attachments).collect();
        tally.add(text(row, "query"), results(text(row, "query"), documents), &expected);
    }
    tally.check(12);
}

#[test]
fn fixtures_give_as_many_rows_as_they_say() {
    const RATCHET: usize = 116;
    let Some(rows) = rows("vscode_fixtures.jsonl") else { return };
    let (mut right, mut later) = (0, 0);
    for row in &rows {
        let query = text(row, "query");
        let container = text(row, "container");
        let documents = match container {
            "" => Some(Vec::new()),
            _ => documents(&format!("vscode_containers/{container}.seed.json")),
        };
        let Some(documents) = documents else { return };
        let accepts = text(row, "expected") == "accept";
        if Query::parse(query).is_ok() != accepts {
            println!("  {query} should be {}ed", text(row, "expected"));
            continue;
        }
        let bound = |name: &str| text(row, name).parse::<usize>().ok();
        match accepts.then(|| results(query, &documents)).flatten() {
            Some(Ok(rows)) => {
                let fits = bound("expectMinRows").is_none_or(|least| rows.len() >= least)
                    && bound("expectMaxRows").is_none_or(|most| rows.len() <= most);
                right += usize::from(fits);
                if !fits {
                    println!("  {query}: {} rows", rows.len());
                }
            }
            Some(Err(error)) => {
                println!("  {query}: {error} ({})", text(row, "known_limitation"));
                right +=
                    usize::from(row.get("known_limitation").is_some_and(|note| !note.is_null()));
            }
            None if accepts => later += 1,
            None => right += 1,
        }
    }
    println!(
        "vscode_fixtures.jsonl: {right} of {} right, {later} need what is not there yet",
        rows.len()
    );
    assert!(right >= RATCHET, "{right} < {RATCHET}");
}

/// The service adds a link that the data set does not have.
fn without_attachments(mut value: Value) -> Value {
    if let Value::Object(object) = &mut value {
        object.remove("_attachments");
    }
    value
}
