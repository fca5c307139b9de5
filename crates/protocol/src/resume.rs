//! Where clients resume an ordered query, in the body of a query:
//! `"resumeFilter":{"value":[8],"rid":"…","exclude":false}`.
//!
//! There is one value for each key of the order. An empty array stands for undefined;
//! arrays and objects are given by their hashes, as `{"type":"array","low":…,"high":…}`.

use model::json::{DistinctHash, JsonKind, Value};
use model::rid::ItemRid;
use service::{ResumeFilter, SortValue};

use crate::error::WireError;

/// The filter in the body of a query, if there is one.
/// # Errors
/// It is malformed.
pub fn filter(body: &Value) -> Result<Option<ResumeFilter>, WireError> {
    match body.get("resumeFilter").filter(|filter| !filter.is_null()) {
        None => Ok(None),
        Some(filter) => parse(filter).map(Some).ok_or_else(malformed),
    }
}

fn parse(filter: &Value) -> Option<ResumeFilter> {
    let value = filter.get("value")?.as_array()?;
    let keys = value.iter().map(key).collect::<Option<Vec<SortValue>>>()?;
    let item = match filter.get("rid") {
        None | Some(Value::Null) => None,
        Some(Value::String(rid)) => Some(ItemRid::parse(rid).ok()?.ordinal()),
        Some(_) => return None,
    };
    let exclude = match filter.get("exclude") {
        None | Some(Value::Null) => false,
        Some(exclude) => exclude.as_bool()?,
    };
    Some(ResumeFilter { keys, item, exclude })
}

fn key(value: &Value) -> Option<SortValue> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Some(SortValue::Value(value.clone()))
        }
        Value::Array(items) => items.is_empty().then_some(SortValue::Undefined),
        Value::Object(hash) => {
            let kind = match hash.get("type")?.as_str()? {
                "array" => JsonKind::Array,
                "object" => JsonKind::Object,
                _ => return None,
            };
            let half = |name: &str| hash.get(name)?.as_number()?.as_i64();
            Some(SortValue::Hashed(kind, DistinctHash::from_halves(half("low")?, half("high")?)))
        }
    }
}

fn malformed() -> WireError {
    WireError::bad_request("The request body has a malformed 'resumeFilter'.")
}
