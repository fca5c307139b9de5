//! The order of the language: arrays among themselves, and objects, by their hashes.

use std::cmp::Ordering;

use model::json::{DistinctHash, Value};

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

/// Compares lists of sort values, each with whether it is descending.
pub(super) fn compare_keys(ways: &[bool], a: &[Option<Value>], b: &[Option<Value>]) -> Ordering {
    let pairs = a.iter().zip(b).zip(ways);
    let orders = pairs.map(|((a, b), descending)| {
        let order = compare(a.as_ref(), b.as_ref());
        if *descending { order.reverse() } else { order }
    });
    orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}
