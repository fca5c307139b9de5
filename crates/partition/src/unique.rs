//! Unique keys: values that may occur once in a logical partition.

use model::json::{Number, Raw, Value};
use model::policy::UniqueKeyPolicy;
use sha2::{Digest, Sha256};

/// One constraint with the digest of an item's values for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UniqueValue {
    pub(crate) constraint: u8,
    pub(crate) digest: [u8; 32],
}

/// The values that a document occupies, one for each constraint of the policy.
pub(crate) fn values(policy: &UniqueKeyPolicy, document: Raw<'_>) -> Vec<UniqueValue> {
    let digests = policy.keys().iter().map(|key| {
        let mut hasher = Sha256::new();
        for path in key.paths() {
            let value = document.path(path.names()).map_or(Value::Null, Raw::to_value);
            hasher.update(canonical(value).to_string());
            hasher.update([0]);
        }
        hasher.finalize().into()
    });
    (0..).zip(digests).map(|(constraint, digest)| UniqueValue { constraint, digest }).collect()
}

/// The same value always gives the same text: sorted properties, shortest numbers.
fn canonical(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(Number::from_f64(number.as_f64()).unwrap_or(number)),
        Value::Array(items) => items.into_iter().map(canonical).collect(),
        Value::Object(object) => {
            let mut members: Vec<_> =
                object.into_iter().map(|(name, value)| (name, canonical(value))).collect();
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(members.into_iter().collect())
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use model::json;

    use super::*;

    #[test]
    fn equal_values_have_one_text() {
        let text = |text: &str| canonical(json::parse(text.as_bytes()).unwrap()).to_string();
        assert_eq!(text(r#"{"b":1.0,"a":[1e1]}"#), text(r#"{ "a" : [10], "b" : 1 }"#));
        assert_ne!(text("[1,2]"), text("[2,1]"));
        assert_ne!(text("\"1\""), text("1"));
    }
}
