//! Unique keys: values that may occur once in a logical partition.

use bytes::Bytes;
use model::json::{Number, Raw, Value};
use model::policy::UniqueKeyPolicy;
use sha2::{Digest, Sha256};

use super::{Change, Entry, Maintainer, Scope, Version};
use crate::command::PartitionError;
use crate::key::Group;
use crate::record::RecordError;
use crate::write_set::WriteSet;

/// The owner of each unique value.
pub(super) struct UniqueValues;

impl Maintainer for UniqueValues {
    fn group(&self) -> Group {
        Group::Unique
    }

    fn entries(&self, scope: &Scope<'_>, version: &Version<'_>) -> Result<Vec<Entry>, RecordError> {
        let owner = Bytes::copy_from_slice(&version.item.ordinal.as_u64().to_be_bytes());
        let entry = |key| Entry { key, value: owner.clone(), is_term: true };
        let values = version.unique_values(scope.config).iter();
        Ok(values.map(|value| entry(value.key(scope))).collect())
    }
}

/// The owner of a unique value that a change would take over and the item does not have
/// yet.
pub(crate) fn rival(
    scope: &Scope<'_>,
    change: Change<'_>,
    writes: &WriteSet<'_>,
) -> Result<Option<Bytes>, PartitionError> {
    let held = change.old.map_or(&[][..], |old| old.unique_values(scope.config));
    let wanted = change.new.map_or(&[][..], |new| new.unique_values(scope.config));
    for value in wanted.iter().filter(|value| !held.contains(value)) {
        if let Some(owner) = writes.get(&value.key(scope))? {
            return Ok(Some(owner));
        }
    }
    Ok(None)
}

/// One constraint with the digest of an item's values for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UniqueValue {
    constraint: u8,
    digest: [u8; 32],
}

impl UniqueValue {
    fn key(&self, scope: &Scope<'_>) -> Bytes {
        scope.keys.unique(scope.epk, self.constraint, &self.digest)
    }
}

/// The values that a document occupies, one for each constraint of the policy.
pub(super) fn values(policy: &UniqueKeyPolicy, document: Raw<'_>) -> Vec<UniqueValue> {
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
