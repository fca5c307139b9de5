//! How much of the recorded corpora the language front end gets right.
//!
//! The corpora lie outside the repository. Each test prints its counts and
//! holds a ratchet: the number reached may rise and never fall.

use std::path::PathBuf;

use model::json::{self, Value};
use query::Query;

/// The rows of a corpus; `None` where the corpora are not at hand.
fn rows(file: &str) -> Option<Vec<Value>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/query");
    let path = PathBuf::from(folder).join(file);
    let Ok(text) = std::fs::read_to_string(&path) else {
        assert!(std::env::var_os("CI").is_none(), "{} is missing", path.display());
        println!("left out: {file}, because ../shared/conformance is not there");
        return None;
    };
    Some(text.lines().map(|line| json::parse(line.as_bytes()).expect("rows are JSON")).collect())
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
            assert_eq!(Query::parse(&printed).as_ref(), Ok(parsed), "{printed}");
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
