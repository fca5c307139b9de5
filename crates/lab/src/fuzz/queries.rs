//! Bodies that query a whole service.

use std::sync::OnceLock;

use model::json::{Number, Object, Value};
use service::{Approach, Cursor, ServiceError};

use crate::queries::oracle::{Agreement, Oracle, Verdict};
use crate::queries::trial::judge;
use crate::queries::{Ask, Lab, PAGE_ALL, definition};

/// Items with values of all types, some of them equal.
const ITEMS: [&str; 8] = [
    r#"{"id":"1","k":"x","a":1,"b":"x","l":["a","b",1],"n":2,"d":"2020-01-31T10:00:00Z"}"#,
    r#"{"id":"2","k":"x","a":"é","b c":[true],"l":[],"c":"abc","n":null}"#,
    r#"{"id":"3","k":"y","a":{"b":[[1]]},"l":[{"a":1},{"a":2}],"n":-1.5}"#,
    r#"{"id":"4","k":"y","a":1.0,"b":"y","n":2}"#,
    r#"{"id":"5","k":"z","b":"xy","l":["a","a"],"n":true}"#,
    r#"{"id":"6","k":null,"a":1,"b":"","n":0,"o":{"type":"Point","coordinates":[1,2]}}"#,
    r#"{"id":"7","a":[1],"b":"x","n":"2"}"#,
    r#"{"id":"8","k":5,"a":-0,"n":9007199254740993}"#,
];

const DEFINITION: &str = r#"{
    "partitionKey":{"paths":["/k"],"kind":"Hash","version":2},
    "indexingPolicy":{
        "includedPaths":[{"path":"/*"},{"path":"/n/?"}],
        "excludedPaths":[{"path":"/c/?"}],
        "compositeIndexes":[[{"path":"/a","order":"ascending"},{"path":"/n","order":"descending"}]]
    }
}"#;

/// A container on three partitions, and its oracle.
fn world() -> &'static (Lab, Oracle) {
    static WORLD: OnceLock<(Lab, Oracle)> = OnceLock::new();
    WORLD.get_or_init(|| {
        let (lab, definition) = (Lab::memory(), definition(DEFINITION));
        lab.create_container(&definition).expect("it is well-formed");
        lab.divide(3);
        ITEMS.iter().for_each(|item| lab.put(item).expect("it is well-formed"));
        let oracle = Oracle::new(&definition, lab.items());
        (lab, oracle)
    })
}

/// A query returns the same through indexes and by scanning, in one page and in many, as
/// the language gives over all documents.
pub fn query_ways(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let lower = text.to_lowercase();
    // Nondeterministic functions cannot be compared.
    if lower.contains("current") || lower.contains("rand") {
        return;
    }
    let (lab, oracle) = world();
    let ask = Ask::new(text);
    let verdict = match oracle.answer(&ask) {
        // Which documents are evaluated, and so which errors occur, is open.
        Verdict::Refused(_) => return,
        Verdict::Rows { rows, agreement } => {
            let agreement = match agreement {
                Agreement::Some(all) => Agreement::Some(rounded_all(&all)),
                exact @ (Agreement::Exact | Agreement::Bag) => exact,
            };
            Verdict::Rows { rows: rounded_all(&rows), agreement }
        }
        Verdict::NoIndex => Verdict::NoIndex,
    };
    for (approach, page) in [(Approach::Index, 2), (Approach::Index, PAGE_ALL), (Approach::Scan, 3)]
    {
        let rows = match lab.all(&ask, approach, page, |_| {}) {
            Err(ServiceError::Query { .. }) => continue,
            Err(other) => panic!("{text}: {other}"),
            Ok(answer) => rounded_all(&answer.rows),
        };
        let judged = judge(&verdict, Ok(rows));
        judged.unwrap_or_else(|what| panic!("{approach:?}, pages of {page}: {what}"));
    }
}

/// Queries whose cursors are damaged.
const PAGED: [&str; 6] = [
    "SELECT * FROM c",
    "SELECT * FROM c WHERE c.n >= 0",
    "SELECT * FROM c WHERE c.n = 2 OR c.a = 1",
    "SELECT VALUE e FROM c JOIN e IN c.l ORDER BY c.n DESC",
    "SELECT VALUE c.id FROM c WHERE c.k != 1 ORDER BY c.a, c.n DESC OFFSET 1 LIMIT 6",
    "SELECT DISTINCT VALUE c.n FROM c",
];

/// Pages after a cursor, after which there must be an end.
const PAGES_MAX: usize = 100;

/// A cursor is refused or round-trips, and a query resumes after it or refuses it, wherever
/// it came from. The first byte chooses the query.
pub fn query_cursor(input: &[u8]) {
    let Some((choice, bytes)) = input.split_first() else { return };
    let Ok(cursor) = Cursor::from_bytes(bytes) else { return };
    assert_eq!(Cursor::from_bytes(&cursor.to_bytes()).as_ref(), Ok(&cursor));
    let text = PAGED.get(usize::from(*choice) % PAGED.len()).copied().unwrap_or_default();
    let (lab, ask) = (&world().0, Ask::new(text));
    let mut after = Some(cursor);
    for _ in 0..PAGES_MAX {
        let Some(cursor) = after else { return };
        after = match lab.raw_page(&ask, Approach::Index, Some(cursor), 2) {
            Ok((_, rest, _)) => rest,
            Err(ServiceError::Invalid { .. } | ServiceError::Query { .. }) => return,
            Err(other) => panic!("{text}: {other}"),
        };
    }
    panic!("{text}: the pages do not end");
}

fn rounded_all(rows: &[Value]) -> Vec<Value> {
    rows.iter().map(rounded).collect()
}

/// Numbers without their last digits, which depend on the order of summation.
fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(number) => {
            let text = format!("{:.11e}", number.as_f64());
            let number = text.parse().ok().and_then(Number::from_f64);
            number.map_or(Value::Null, Value::Number)
        }
        Value::Array(items) => items.iter().map(rounded).collect(),
        Value::Object(object) => {
            object.iter().map(|(name, member)| (name, rounded(member))).collect::<Object>().into()
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

/// Useful inputs of [`query_cursor`]: the cursors of all pages.
#[must_use]
pub fn cursors() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for (choice, text) in (0_u8..).zip(PAGED) {
        let (lab, ask) = (&world().0, Ask::new(text));
        let mut after = None;
        while let Ok((_, Some(rest), _)) = lab.raw_page(&ask, Approach::Index, after, 2) {
            inputs.push([&[choice], rest.to_bytes().as_slice()].concat());
            after = Some(rest);
        }
    }
    inputs
}
