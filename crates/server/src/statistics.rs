//! The statistics of a physical partition as JSON.

use serde_json::{Value, json};
use service::{KeyCharge, KeySize, PartitionKey, PartitionStatistics};

use crate::layout;

pub(crate) fn describe(statistics: &PartitionStatistics) -> Value {
    let PartitionStatistics { partition, usage, keys, heaviest } = statistics;
    let mut body = layout::describe(partition);
    body["throughputFraction"] = json!(usage.fraction);
    body["throughput"] = json!(usage.throughput);
    body["requestUnits"] = json!(usage.totals.charge.request_units());
    body["requests"] = json!(usage.totals.requests);
    body["throttledRequests"] = json!(usage.totals.throttled);
    body["normalizedRUConsumption"] = json!(usage.normalised);
    body["distinctKeys"] = json!(keys.keys);
    body["distinctKeysAreAll"] = json!(keys.complete);
    body["topKeysBySize"] = keys.by_bytes.iter().map(size).collect();
    body["topKeysByItems"] = keys.by_items.iter().map(size).collect();
    body["topKeysByRequestUnits"] = heaviest.iter().map(charge).collect();
    body
}

fn size(size: &KeySize) -> Value {
    json!({
        "key": key(size.key.as_ref()),
        "epk": size.epk.to_string(),
        "items": size.items,
        "bytes": size.bytes,
    })
}

fn charge(one: &KeyCharge) -> Value {
    json!({
        "key": key(one.key.as_ref()),
        "epk": one.epk.to_string(),
        "requestUnits": one.charge.request_units(),
        "requestUnitsError": one.error.request_units(),
    })
}

/// As clients write it in their requests.
fn key(key: Option<&PartitionKey>) -> Value {
    key.and_then(|key| serde_json::from_str(&key.to_string()).ok()).unwrap_or(Value::Null)
}
