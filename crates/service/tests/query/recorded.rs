//! Values of all types in the order in which the .NET SDK merges them, recorded.
//!
//! The file is in the shared folder. If it is absent this is reported and skipped, and with
//! `CI=true` its absence fails.
#![allow(clippy::print_stdout, reason = "what is left out is to be seen")]

use std::io::Read as _;

use lab::queries::{Ask, Lab, definition};
use model::json::{self, DistinctHash, Value};
use service::Approach;

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/conformance/query/distinct_order.jsonl.gz"
);

/// Rows of a page: some end among arrays and some among objects.
const PAGE: usize = 300;

fn rows() -> Option<Vec<Value>> {
    let packed = std::fs::read(FILE).ok();
    if packed.is_none() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{FILE} is needed here");
        println!("left out, there is no {FILE}");
    }
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed?.as_slice()).read_to_string(&mut text).unwrap();
    // Negative zero is kept as zero, so no item has it.
    let lines = text.lines().filter(|line| !line.contains("-0.0"));
    Some(lines.map(|line| json::parse(line.as_bytes()).unwrap()).collect())
}

fn number(row: &Value, name: &str) -> i64 {
    row.get(name).and_then(Value::as_number).and_then(|number| number.as_i64()).unwrap()
}

#[test]
fn hashes_are_those_of_clients() {
    for row in rows().unwrap_or_default() {
        let halves = DistinctHash::of(row.get("value").unwrap()).halves();
        assert_eq!(halves, (number(&row, "low"), number(&row, "high")), "{row}");
    }
}

#[test]
fn rows_are_sorted_as_clients_merge_them() {
    let Some(rows) = rows() else { return };
    let lab = Lab::memory();
    let key = r#"{"partitionKey":{"paths":["/id"],"kind":"Hash","version":2}}"#;
    lab.create_container(&definition(key)).unwrap();
    lab.divide(3);
    // In another order.
    for step in 0..7 {
        for (at, row) in rows.iter().enumerate().skip(step).step_by(7) {
            let (value, rank) = (row.get("value").unwrap(), number(row, "rank"));
            lab.put(&format!(r#"{{"id":"{at}","v":{value},"rank":{rank}}}"#)).unwrap();
        }
    }
    let expected: Vec<i64> = rows.iter().map(|row| number(row, "rank")).collect();
    for approach in [Approach::Index, Approach::Scan] {
        for (text, backwards) in [("c.v", false), ("c.v DESC", true)] {
            let ask = Ask::new(format!("SELECT VALUE c.rank FROM c ORDER BY {text}"));
            let found = lab.all(&ask, approach, PAGE, |_| {}).unwrap().rows;
            let rank = |row: &Value| row.as_number().and_then(|number| number.as_i64()).unwrap();
            let mut found: Vec<i64> = found.iter().map(rank).collect();
            if backwards {
                found.reverse();
            }
            assert_eq!(found, expected, "{approach:?} {text}");
        }
    }
}
