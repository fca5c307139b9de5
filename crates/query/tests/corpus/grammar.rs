//! Texts that must be accepted, and texts that must be refused.

use std::sync::Arc;

use model::json::Value;
use model::partition_key::KeyKind;
use query::{Code, Features, KeyShape, Parameters, Query, QueryError, SyntaxError};

use super::folder::text;
use super::report::Verdict;

/// Real queries of clients: each must parse, and print as a text that parses to
/// the same tree.
pub(crate) fn accept(row: &Value) -> Verdict {
    let query = text(row, "query");
    if !is_balanced(query) {
        return Verdict::Excepted("half of a query, cut when it was extracted");
    }
    match Query::parse(query) {
        Ok(parsed) => printed(query, &parsed),
        Err(error) => Verdict::Wrong(format!("{query:?}: {error}")),
    }
}

fn printed(query: &str, parsed: &Query) -> Verdict {
    let printed = parsed.syntax().to_string();
    match Query::parse(&printed) {
        Ok(again) if again.syntax() == parsed.syntax() => Verdict::Right,
        Ok(again) if again.syntax().to_string() == printed => {
            Verdict::Excepted("the service prints ALL by what it is not")
        }
        again => Verdict::Wrong(format!("{query:?} printed as {printed:?}: {again:?}")),
    }
}

/// Brackets outside of strings close.
fn is_balanced(query: &str) -> bool {
    let (mut depth, mut quote, mut escaped) = (0_i64, None, false);
    for c in query.chars() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None => depth += i64::from("([{".contains(c)) - i64::from(")]}".contains(c)),
        }
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}

/// What the grammar of the .NET client takes. The service is stricter in ways
/// that the text shows.
pub(crate) fn accept_client_grammar(row: &Value) -> Verdict {
    let query = text(row, "query");
    let verdict = accept(row);
    let Verdict::Wrong(_) = verdict else { return verdict };
    let Err(QueryError::Invalid(errors)) = Query::parse(query) else { return verdict };
    let near = errors.first().and_then(|error| query.get(error.position.clone()));
    match near.unwrap_or_default() {
        "*" if errors.first().is_some_and(|error| error.code == Code::STAR_WITHOUT_FROM) => {
            Verdict::Excepted("the service wants a source for *")
        }
        "," if query.to_uppercase().contains("ORDER BY RANK") => {
            Verdict::Excepted("the service ranks by one item")
        }
        "AND" | "OR" | "and" | "or" if query.to_uppercase().contains("BETWEEN") => {
            Verdict::Excepted("the service wants brackets around BETWEEN")
        }
        word if is_reserved(word) => Verdict::Excepted("the service reserves the word"),
        number if number.starts_with('.') || number.ends_with('.') => {
            Verdict::Excepted("the service wants digits on both sides of a point")
        }
        _ => verdict,
    }
}

/// Whether the service reserves the word: it is no name by itself.
fn is_reserved(word: &str) -> bool {
    let is_word = word.chars().all(|c| c.is_ascii_alphabetic()) && !word.is_empty();
    is_word && Query::parse(&format!("SELECT 1 AS {word}")).is_err()
}

pub(crate) fn reject(row: &Value) -> Verdict {
    let query = text(row, "query");
    match Query::parse(query) {
        Ok(_) => Verdict::Wrong(format!("{query:?} is accepted")),
        Err(_) => Verdict::Right,
    }
}

/// What the service refused, with its own words where they were recorded.
pub(crate) fn reject_as_service(row: &Value) -> Verdict {
    let query = as_sent(row);
    let refused = match refusal(&query) {
        Ok(refused) => refused,
        Err(verdict) => return verdict,
    };
    let recorded = row.get("error").filter(|error| !error.is_null());
    match recorded {
        Some(recorded) if refused.to_value(&query) != *recorded => Verdict::Wrong(format!(
            "{query:?}\n    ours   {}\n    theirs {recorded}",
            refused.to_value(&query)
        )),
        _ => Verdict::Right,
    }
}

/// Why the query is not run, planned for a container with the default indexing
/// policy and without a key.
fn refusal(query: &str) -> Result<QueryError, Verdict> {
    let parsed = match Query::parse(query) {
        Ok(parsed) => parsed,
        Err(error) => return Ok(error),
    };
    let (none, context) = (Parameters::none(), Arc::default());
    let key = KeyShape { kind: KeyKind::Hash, paths: Vec::new() };
    let planned = parsed.plan(&none, &context, &key, &Features::all());
    match planned.and_then(|_| parsed.bind_in(&none, &context)) {
        Err(error) if needs_parameter(&error) => Err(Verdict::LeftOut("parameters not recorded")),
        Err(error) => Ok(error),
        // Several sort keys need a composite index, which the default policy has not.
        Ok(bound) if bound.order().len() > 1 => {
            Ok(QueryError::Unsupported { what: "an order without a composite index".to_owned() })
        }
        Ok(_) => Err(Verdict::Wrong(format!("{query:?} is accepted"))),
    }
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

/// Whether all that is wrong is that the corpora do not tell parameters.
pub(crate) fn needs_parameter(error: &QueryError) -> bool {
    // One that is not told is undefined, which is no count of rows.
    let counts = [Code::TOP_COUNT, Code::OFFSET_COUNT, Code::LIMIT_COUNT];
    let missing = |error: &SyntaxError| counts.contains(&error.code);
    matches!(error, QueryError::Invalid(errors) if errors.iter().all(missing))
}

/// Canonical texts print as they are, but for the breaks between clauses. What is
/// no whole query and no expression is a part of one.
pub(crate) fn canonical(row: &Value) -> Verdict {
    let text = text(row, "text");
    let one_line = |printed: String| printed.replace('\n', " ");
    let printed = Query::parse(text).map(|query| one_line(query.syntax().to_string()));
    let printed = printed.or_else(|_| query::canonical_expression(text).map(one_line));
    match printed {
        Ok(printed) if printed == text => Verdict::Right,
        Ok(_) if text == "-Infinity" => Verdict::Excepted("no literal, but a minus and a name"),
        Ok(printed) if is_other_spelling(&printed, text) => {
            Verdict::Excepted("the client spells numbers, escapes and NOT IN in its own way")
        }
        Ok(printed) => Verdict::Wrong(format!("{text} is printed as {printed}")),
        Err(_) => Verdict::LeftOut("a part of a query, or a name that needs quotes"),
    }
}

/// Whether two texts differ only in what the client and the service print differently.
fn is_other_spelling(printed: &str, text: &str) -> bool {
    // The service writes a literal in parentheses if a member is taken of it.
    let literal = regex::Regex::new(r#"\(("[^"]*")\)"#).expect("the pattern is well formed");
    let plain = |text: &str| {
        literal.replace_all(&text.to_ascii_lowercase().replace("  ", " "), "$1").into_owned()
    };
    let number = |text: &str| text.parse::<f64>().ok();
    plain(printed) == plain(text) || number(printed).is_some_and(|n| Some(n) == number(text))
}
