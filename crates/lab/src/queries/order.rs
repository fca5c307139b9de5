//! The order of the language: arrays among themselves, and objects, by their hashes.

use std::cmp::Ordering;

use model::json::{DistinctHash, Number, Value};

/// Compares sort values; `None` is undefined and comes first.
pub(super) fn compare(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    match (a, b) {
        (Some(a @ Value::Array(_)), Some(b @ Value::Array(_)))
        | (Some(a @ Value::Object(_)), Some(b @ Value::Object(_))) => {
            DistinctHash::of(a).cmp(&DistinctHash::of(b))
        }
        (a, b) => a.cmp(&b),
    }
}

/// Compares sort values that [`compare_keys`] does not tell apart: integers with one double.
pub(super) fn compare_beyond_doubles(a: &[Option<Value>], b: &[Option<Value>]) -> Ordering {
    let exact = |key: &Option<Value>| key.as_ref().map(integer);
    a.iter().map(exact).cmp(b.iter().map(exact))
}

/// The integer that a value is; others are equal in this.
pub(super) fn integer(value: &Value) -> i128 {
    /// The one double that is equal to an integer of 64 bits and is none.
    const LARGE: i128 = 1 << 63;
    value.as_number().and_then(Number::as_i64).map_or(LARGE, i128::from)
}

/// Compares lists of sort values, each with whether it is descending.
pub(super) fn compare_keys(ways: &[bool], a: &[Option<Value>], b: &[Option<Value>]) -> Ordering {
    let pairs = a.iter().zip(b).zip(ways);
    let orders = pairs.map(|((a, b), descending)| {
        let order = compare(a.as_ref(), b.as_ref());
        if *descending { order.reverse() } else { order }
    });
    orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}
