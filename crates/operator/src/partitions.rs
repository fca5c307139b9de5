//! Physical partitions: `/_orrery/partitions`, `/_orrery/split` and `/_orrery/merge`.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use service::{
    Halve, KeyCharge, KeySize, LayoutChange, Operator, PartitionInfo, PartitionKey,
    PartitionStatistics,
};

use crate::error::OperatorError;
use crate::request::{container, link, parameter, parse, range, ranges};

/// Keys that are named of each partition: as many as the service's own charts show.
const KEYS_DEFAULT: usize = 3;
const KEYS_MAX: usize = 1_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Split {
    container: String,
    range: String,
    #[serde(default)]
    halve: HalveBy,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Merge {
    container: String,
    ranges: Vec<String>,
}

/// What a split halves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HalveBy {
    /// The hashes, and with them the throughput.
    #[default]
    Hashes,
    /// The bytes that are stored.
    Bytes,
}

/// The physical partitions of the container that the query names, with as many of their
/// largest keys as it asks for.
pub(crate) async fn list(operator: Operator<'_>, query: &str) -> Result<Value, OperatorError> {
    let container = container(query)?;
    let keys_max = match parameter(query, "keys") {
        None => KEYS_DEFAULT,
        Some(count) => count.parse().ok().filter(|count| *count <= KEYS_MAX).ok_or_else(|| {
            OperatorError::malformed(format!("'{count}' is not a number of keys up to {KEYS_MAX}"))
        })?,
    };
    let partitions = operator.statistics(&link(&container)?, keys_max).await?;
    let partitions: Vec<Value> = partitions.iter().map(statistics).collect();
    Ok(json!({ "container": container, "partitions": partitions }))
}

pub(crate) async fn split(operator: Operator<'_>, body: &Bytes) -> Result<Value, OperatorError> {
    let wanted: Split = parse(body, r#"{"container":"dbs/D/colls/C","range":"0"}"#)?;
    let halve = match wanted.halve {
        HalveBy::Hashes => Halve::Hashes,
        HalveBy::Bytes => Halve::Bytes,
    };
    let container = link(&wanted.container)?;
    let change = operator.split(&container, range(&wanted.range)?, halve).await?;
    Ok(layout_change(&wanted.container, &change))
}

pub(crate) async fn merge(operator: Operator<'_>, body: &Bytes) -> Result<Value, OperatorError> {
    let wanted: Merge = parse(body, r#"{"container":"dbs/D/colls/C","ranges":["1","2"]}"#)?;
    let ranges = ranges(wanted.ranges.iter().map(String::as_str))?;
    let change = operator.merge(&link(&wanted.container)?, &ranges).await?;
    Ok(layout_change(&wanted.container, &change))
}

fn layout_change(container: &str, change: &LayoutChange) -> Value {
    json!({
        "container": container,
        "old": change.old.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "new": change.new.iter().map(partition).collect::<Vec<_>>(),
        "pauseMs": change.pause.as_secs_f64() * 1_000.0,
    })
}

fn partition(partition: &PartitionInfo) -> Value {
    json!({
        "id": partition.id.to_string(),
        "minInclusive": partition.range.min.to_string(),
        "maxExclusive": partition.range.max.to_string(),
        "parents": partition.parents.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "lsn": partition.lsn.get(),
        "items": partition.items,
        "bytes": partition.bytes,
    })
}

fn statistics(statistics: &PartitionStatistics) -> Value {
    let PartitionStatistics { partition: info, usage, keys, heaviest } = statistics;
    let mut body = partition(info);
    body["throughputFraction"] = json!(usage.fraction);
    body["throughput"] = json!(usage.throughput);
    body["requestUnits"] = json!(usage.totals.charge.request_units());
    body["requests"] = json!(usage.totals.requests);
    body["throttledRequests"] = json!(usage.totals.throttled);
    body["normalizedRUConsumption"] = json!(usage.normalised);
    body["distinctKeys"] = json!(keys.keys);
    body["distinctKeysAreAll"] = json!(keys.complete);
    body["topKeysBySize"] = keys.by_bytes.iter().map(key_size).collect();
    body["topKeysByItems"] = keys.by_items.iter().map(key_size).collect();
    body["topKeysByRequestUnits"] = heaviest.iter().map(key_charge).collect();
    body
}

fn key_size(size: &KeySize) -> Value {
    json!({
        "key": key(size.key.as_ref()),
        "epk": size.epk.to_string(),
        "items": size.items,
        "bytes": size.bytes,
    })
}

fn key_charge(one: &KeyCharge) -> Value {
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
