//! The indexes that the service names for a query, and its advice.

use model::json::{Object, Value};
use query::{Advice, Composite, Impact, IndexSpec, Indexed, Parameters, Path, Query, QueryError};

use super::folder::text;
use super::report::Verdict;

/// The answers came through a transport that counts the bytes of a header in 16 bits: of
/// one that is longer, so many remained as its length exceeds the greatest count.
const HEADER_COUNT: usize = 1 << 16;

/// The policy that the answers were recorded under, which is that of new containers.
struct Everything;

impl Indexed for Everything {
    fn place(&self, path: &Path) -> Option<bool> {
        Some(path.names().as_deref() != Some(&["_etag"]))
    }

    fn composites(&self) -> Vec<Composite> {
        Vec::new()
    }
}

pub(crate) fn judge(row: &Value) -> Verdict {
    let query = text(row, "query");
    let expected = |name: &str| row.get("expected").and_then(|expected| expected.get(name));
    if let Some(advice) = expected("QueryAdvice") {
        return advised(query, advice.as_str().unwrap_or_default());
    }
    let theirs = expected("IndexMetric").and_then(Value::as_str).unwrap_or_default();
    match told(query) {
        Ok(ours) if arrived(&ours) == theirs => Verdict::Right,
        Ok(ours) => Verdict::Wrong(format!("{query}\n    ours   {ours}\n    theirs {theirs}")),
        Err(error) => Verdict::Wrong(format!("{query}: {error}")),
    }
}

/// The client shows each piece of advice in a line that begins with its number.
fn advised(query: &str, theirs: &str) -> Verdict {
    let ours = match Query::parse(query) {
        Ok(query) => query.advice(),
        Err(error) => return Verdict::Wrong(format!("{query}: {error}")),
    };
    let ours: Vec<&str> = ours.into_iter().map(Advice::id).collect();
    let numbers: Vec<&str> =
        theirs.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect();
    if ours == numbers {
        return Verdict::Right;
    }
    Verdict::Wrong(format!("{query}\n    ours   {ours:?}\n    theirs {theirs}"))
}

/// What a client is told, in the form that the service has for it.
fn told(query: &str) -> Result<String, QueryError> {
    let usage = Query::parse(query)?.bind(&Parameters::none())?.index_use(&Everything);
    let both = [
        ("UtilizedIndexes", lists(&usage.used, false)),
        ("PotentialIndexes", lists(&usage.wanted, true)),
    ];
    Ok(Value::Object(Object::from_iter(both)).to_string())
}

fn lists(specs: &[IndexSpec], scored: bool) -> Object {
    let (mut singles, mut composites) = (Vec::new(), Vec::new());
    for spec in specs {
        let (list, name, index, impact) = match spec {
            IndexSpec::Single { path, impact } => {
                (&mut singles, "IndexSpec", Value::from(path.as_str()), *impact)
            }
            IndexSpec::Composite(paths) => {
                let path = |(path, descending): &(String, bool)| {
                    format!("{path} {}", if *descending { "DESC" } else { "ASC" })
                };
                (&mut composites, "IndexSpecs", paths.iter().map(path).collect(), Impact::High)
            }
        };
        let mut object = Object::from_iter([(name, index)]);
        if scored {
            object.insert("IndexImpactScore", format!("{impact:?}"));
        }
        list.push(Value::Object(object));
    }
    Object::from_iter([("SingleIndexes", singles), ("CompositeIndexes", composites)])
}

/// What is left of a text once it came through as a header, which has each sign but letters
/// and digits as three for each of its bytes.
fn arrived(text: &str) -> String {
    let bytes = |sign: char| if sign.is_ascii_alphanumeric() { 1 } else { 3 * sign.len_utf8() };
    let all: usize = text.chars().map(bytes).sum();
    let mut left = if all < HEADER_COUNT { all } else { all % HEADER_COUNT };
    let fits = |sign: &char| {
        let rest = left.checked_sub(bytes(*sign));
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    text.chars().take_while(fits).collect()
}
