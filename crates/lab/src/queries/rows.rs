//! Rows in comparable form.

use bytes::Bytes;
use model::json::{self, Number, Object, Value};

/// A row in the form by which the language distinguishes rows: members in order of their
/// names, numbers by their value.
#[must_use]
pub fn canonical(value: &Value) -> Value {
    match value {
        Value::Number(number) => {
            let plain = number.as_f64() + 0.0;
            Value::Number(Number::from_f64(plain).unwrap_or(*number))
        }
        Value::Array(items) => items.iter().map(canonical).collect(),
        Value::Object(object) => {
            let mut members: Vec<(&str, Value)> =
                object.iter().map(|(name, member)| (name, canonical(member))).collect();
            members.sort();
            members.into_iter().collect::<Object>().into()
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
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
