//! Rows in comparable form.

use bytes::Bytes;
use model::json::{self, DistinctHash, Number, Object, Value};

/// A row in the form by which the language compares values: members in order of their
/// names, numbers as doubles. Rows that come in the order of a number may show any of the
/// integers that have its double.
#[must_use]
pub fn canonical(value: &Value) -> Value {
    sorted(value, |number| Number::from_f64(number.as_f64() + 0.0).unwrap_or(number))
}

/// A row in the form by which DISTINCT distinguishes rows: members in order of their names,
/// integers with all their digits.
#[must_use]
pub fn exact(value: &Value) -> Value {
    sorted(value, |number| number)
}

fn sorted(value: &Value, shown: fn(Number) -> Number) -> Value {
    match value {
        Value::Number(number) => Value::Number(shown(*number)),
        Value::Array(items) => items.iter().map(|item| sorted(item, shown)).collect(),
        Value::Object(object) => {
            let mut members: Vec<(&str, Value)> =
                object.iter().map(|(name, member)| (name, sorted(member, shown))).collect();
            members.sort();
            members.into_iter().collect::<Object>().into()
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

/// What clients compare to find out whether two rows are one to DISTINCT.
#[must_use]
pub fn distinction(row: &Value) -> (i64, i64) {
    DistinctHash::of(row).halves()
}

/// A row with its arrays sorted, for queries that collect rows in no order.
#[must_use]
pub fn loosened(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(loosened).collect();
            items.sort();
            Value::from(items)
        }
        Value::Object(object) => {
            object.iter().map(|(name, member)| (name, loosened(member))).collect::<Object>().into()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The texts of canonical rows.
#[must_use]
pub fn texts(rows: &[Value]) -> Vec<String> {
    rows.iter().map(|row| canonical(row).to_string()).collect()
}

#[must_use]
pub fn parsed(rows: &[Bytes]) -> Vec<Value> {
    rows.iter().map(|row| json::parse(row).expect("rows are JSON")).collect()
}
