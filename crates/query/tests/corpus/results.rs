//! Queries over documents and what they give.

use std::rc::Rc;

use model::json::{self, Raw, Value};
use query::{Parameters, Query, QueryError};

use super::folder::{Folder, flag, list, text};
use super::grammar::needs_parameter;
use super::report::Verdict;

/// How far a computed number may be from the recorded one: sums were added up in
/// another order, and the service's distances follow another series.
const CLOSE: f64 = 1e-12;
const CLOSE_ON_GLOBE: f64 = 1e-7;

/// Runs a query over documents.
fn run(query: &str, documents: &[Value]) -> Result<Vec<Value>, QueryError> {
    let bound = Query::parse(query)?.bind(&Parameters::none())?;
    let texts: Vec<String> = documents.iter().map(Value::to_string).collect();
    bound.execute(texts.iter().map(|text| Raw::trusted(text)))
}

fn judge(query: &str, documents: &[Value], expected: &[Value]) -> Verdict {
    match run(query, documents) {
        Ok(rows) if same(query, &rows, expected) => Verdict::Right,
        Ok(rows) => Verdict::Wrong(format!(
            "{query}\n    ours   {}\n    theirs {}",
            Value::from(rows),
            Value::from(expected.to_vec())
        )),
        Err(QueryError::Unsupported { .. }) => Verdict::LeftOut("vectors and full text"),
        Err(error) if needs_parameter(&error) => Verdict::LeftOut("parameters not recorded"),
        Err(error) => Verdict::Wrong(format!("{query}: {error}")),
    }
}

/// Equal row by row where the query gives an order, and as bags where not.
fn same(query: &str, ours: &[Value], theirs: &[Value]) -> bool {
    let lists =
        query.to_uppercase().contains("MAKELIST") || query.to_uppercase().contains("MAKESET");
    let close = if query.contains("ST_") { CLOSE_ON_GLOBE } else { CLOSE };
    if query.to_uppercase().contains("ORDER BY") {
        let pairs = || ours.iter().zip(theirs);
        return ours.len() == theirs.len() && pairs().all(|(a, b)| equal(a, b, close, lists));
    }
    bags_equal(ours, theirs, close, lists)
}

fn bags_equal(a: &[Value], b: &[Value], close: f64, lists_are_bags: bool) -> bool {
    let sorted = |values: &[Value]| {
        let mut values = values.to_vec();
        values.sort();
        values
    };
    let (a, b) = (sorted(a), sorted(b));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| equal(a, b, close, lists_are_bags))
}

fn equal(a: &Value, b: &Value, close: f64, lists_are_bags: bool) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            (a.as_f64() - b.as_f64()).abs() <= a.as_f64().abs() * close
        }
        (Value::Array(a), Value::Array(b)) if lists_are_bags => bags_equal(a, b, close, true),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b, close, false))
        }
        (Value::Object(a), Value::Object(b)) => {
            let member = |(name, value): (&str, &Value)| {
                b.get(name).is_some_and(|other| equal(value, other, close, lists_are_bags))
            };
            a.len() == b.len() && a.iter().all(member)
        }
        _ => a == b,
    }
}

/// Examples of the documentation; those that change from run to run are only run.
pub(crate) fn documentation(row: &Value) -> Verdict {
    let query = text(row, "query");
    let documents = match row.get("input") {
        Some(Value::Array(documents)) => documents.clone(),
        Some(document @ Value::Object(_)) => vec![document.clone()],
        _ => Vec::new(),
    };
    let expected = match row.get("expected") {
        Some(Value::Array(expected)) => expected.clone(),
        Some(expected @ Value::Object(_)) => vec![expected.clone()],
        _ => Vec::new(),
    };
    if flag(row, "nondeterministic") || flag(row, "partial") {
        return match run(query, &documents) {
            Ok(rows) if rows.len() >= expected.len().min(1) => Verdict::Right,
            Ok(rows) => Verdict::Wrong(format!("{query}: {} rows", rows.len())),
            Err(error) => Verdict::Wrong(format!("{query}: {error}")),
        };
    }
    judge(query, &documents, &expected)
}

/// The recorded text is the values of the list without its brackets.
pub(crate) fn mixed_types(row: &Value, documents: &[Value]) -> Verdict {
    let expected = format!("[{}]", text(row, "expected"));
    match json::parse(expected.as_bytes()) {
        Ok(expected) => {
            judge(text(row, "query"), documents, expected.as_array().unwrap_or_default())
        }
        Err(error) => Verdict::Wrong(format!("{expected}: {error}")),
    }
}

pub(crate) fn groups(row: &Value, documents: &[Value]) -> Verdict {
    let error = row.get("error").filter(|error| !error.is_null());
    match error {
        None => judge(text(row, "query"), documents, list(row, "expected")),
        Some(_) if run(text(row, "query"), documents).is_err() => Verdict::Right,
        Some(error) => Verdict::Wrong(format!("{}: theirs {error}", text(row, "query"))),
    }
}

/// Results of the LINQ provider. Some recorded how the client prints its
/// objects, which says how many there were and not what was in them.
pub(crate) fn linq(row: &Value) -> Verdict {
    let Some(input) = row.get("input").and_then(Value::as_array) else {
        return Verdict::LeftOut("input not recorded");
    };
    let document = |item: &Value| match item.as_str() {
        Some(text) => json::parse(text.as_bytes()).unwrap_or(Value::Null),
        None => item.clone(),
    };
    let documents: Vec<Value> = input.iter().map(document).collect();
    let (query, expected) = (text(row, "query"), list(row, "expected"));
    let printed = |value: &Value| {
        value
            .as_str()
            .is_some_and(|text| text.starts_with('{') && json::parse(text.as_bytes()).is_err())
    };
    if expected.is_empty() || !expected.iter().all(printed) {
        return judge(query, &documents, expected);
    }
    match run(query, &documents) {
        Ok(rows) if rows.len() == expected.len() => {
            Verdict::Excepted("recorded as the client prints objects; as many rows")
        }
        other => Verdict::Wrong(format!("{query}: {other:?}, theirs {} rows", expected.len())),
    }
}

/// Items of a container with the keys `/id`, `/value1` and `/value2`, of which the client asks
/// those whose key begins with "2". The recording made them one after the other by the rule
/// below; its values at `/value1` were random, and no query gives them.
pub(crate) fn subpartition(row: &Value) -> Verdict {
    const ITEMS: i64 = 100;
    const KEYS: i64 = 5;
    const ASKED: i64 = 2;
    let item = |number: i64| {
        json::Object::from_iter([
            ("id", Value::from((number % KEYS).to_string())),
            ("value2", Value::from(number.to_string())),
            ("intVal", Value::from(ITEMS / 2 - number)),
        ])
    };
    let asked = (0..ITEMS).filter(|number| number % KEYS == ASKED);
    let documents: Vec<Value> = asked.map(|number| Value::Object(item(number))).collect();
    judge(text(row, "query"), &documents, list(row, "expected"))
}

/// The service adds a link to items that the data set does not have.
pub(crate) fn client_engine(row: &Value, folder: &Folder) -> Verdict {
    if !flag(row, "test_data_available") {
        return Verdict::LeftOut("data not recorded");
    }
    let file = format!("client_engine_testdata/{}", text(row, "test_data"));
    let documents = match folder.documents(&file) {
        Ok(documents) => documents,
        Err(error) => return Verdict::Wrong(error),
    };
    let without_link = |value: &Value| {
        let mut value = value.clone();
        if let Value::Object(object) = &mut value {
            object.remove("_attachments");
        }
        value
    };
    let expected: Vec<Value> = list(row, "expected").iter().map(without_link).collect();
    judge(text(row, "query"), &documents, &expected)
}

/// Fixtures say how many rows there may be.
pub(crate) fn fixture(row: &Value, folder: &Folder) -> Verdict {
    let query = text(row, "query");
    let accepts = text(row, "expected") == "accept";
    if Query::parse(query).is_ok() != accepts {
        return Verdict::Wrong(format!("{query} should be {}ed", text(row, "expected")));
    }
    let documents = match text(row, "container") {
        _ if !accepts => return Verdict::Right,
        "" => Ok(Rc::default()),
        name => folder.documents(&format!("vscode_containers/{name}.seed.json")),
    };
    let limit = |name: &str| text(row, name).parse::<usize>().ok();
    let known = row.get("known_limitation").is_some_and(|note| !note.is_null());
    match documents.map(|documents| run(query, &documents)) {
        Err(error) => Verdict::Wrong(error),
        Ok(Ok(rows)) => {
            let fits = limit("expectMinRows").is_none_or(|least| rows.len() >= least)
                && limit("expectMaxRows").is_none_or(|most| rows.len() <= most);
            if fits {
                Verdict::Right
            } else {
                Verdict::Wrong(format!("{query}: {} rows", rows.len()))
            }
        }
        Ok(Err(QueryError::Unsupported { .. })) => Verdict::LeftOut("vectors and full text"),
        Ok(Err(error)) if needs_parameter(&error) => Verdict::LeftOut("parameters not recorded"),
        Ok(Err(_)) if known => Verdict::Excepted("the fixture says that the service refuses it"),
        Ok(Err(error)) => Verdict::Wrong(format!("{query}: {error}")),
    }
}
