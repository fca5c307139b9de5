//! What a container holds and may hold, for clients that request it with the container.

use bytes::Bytes;
use model::json::{self, Object, Value};
use model::limits::Limits;
use model::partition_key::PartitionKey;
use service::{
    Amount, Conditions, Holding, KeySize, Link, PartitionStatistics, RangeInfo, Ranges,
    ReadStatistics, ResourceAction, ResourceReply, Response, ResponseMeta,
};

use crate::gateway::Call;
use crate::reply::Answer;
use crate::resources::of_its_time;
use protocol::error::WireError;
use protocol::resource::status_of;

const POPULATE_QUOTA: &str = "x-ms-documentdb-populatequotainfo";
const POPULATE_STATISTICS: &str = "x-ms-documentdb-populatepartitionstatistics";
const ALL_KEYS: &str = "x-ms-cosmos-internal-get-all-partition-key-stats";
const QUOTA: &str = "x-ms-resource-quota";
const USAGE: &str = "x-ms-resource-usage";
const INDEX_PROGRESS: &str = "x-ms-documentdb-collection-index-transformation-progress";

/// Keys that are named per partition: as many as the service's own charts show.
const LARGEST_KEYS: usize = 3;

/// And if all are requested: an answer has to fit into memory.
const ALL_KEYS_MAX: usize = 10_000;

/// The size of something in the unit of these headers and properties.
const KB: u64 = 1024;

pub(crate) fn is_asked_for(call: &Call<'_>) -> bool {
    call.headers.flag(POPULATE_QUOTA) || call.headers.flag(POPULATE_STATISTICS)
}

/// Reads a container together with what it holds.
pub(crate) async fn answer(
    call: &Call<'_>,
    link: Link,
    conditions: Conditions,
) -> Result<Answer, WireError> {
    let read = ResourceAction::Read { link: link.clone(), conditions };
    let mut response = call.catalogue(read).await?;
    let layout = call.ranges_of(link.clone()).await?;
    response.meta.add(&layout.meta);
    let ResourceReply { kind, etag, body, .. } = response.reply;
    let Ranges { ranges, index_percent, .. } = layout.reply;
    let body = match body {
        Some(body) if call.headers.flag(POPULATE_STATISTICS) => {
            Some(with_statistics(call, link, &body, &mut response.meta).await?)
        }
        other => other,
    };
    let body = body.map(|body| of_its_time(call, body));
    let mut answer = Answer::json(status_of(kind), body.unwrap_or_default());
    if call.headers.flag(POPULATE_QUOTA) {
        answer.set(QUOTA, &quota(call.limits()));
        answer.set(USAGE, &usage(&ranges));
        answer.set(INDEX_PROGRESS, &index_percent.to_string());
    }
    Ok(answer.with_etag(etag.as_ref()).with_meta(&response.meta))
}

/// A container grows without end; `-1` says so.
fn quota(limits: &Limits) -> String {
    let item = limits.item_bytes_max / KB;
    format!("documentSize={item};documentsSize=-1;documentsCount=-1;collectionSize=-1;")
}

fn usage(ranges: &[RangeInfo]) -> String {
    let bytes = ranges.iter().map(|range| range.item_bytes).sum();
    used(bytes, ranges.iter().map(|range| range.items).sum())
}

/// Has the names of the quota in their order, though no item counts as used: a client finds
/// a usage by the index of its quota (DocumentClient of .NET).
fn used(bytes: u64, count: u64) -> String {
    let size = bytes.div_ceil(KB);
    format!("documentSize=0;documentsSize={size};documentsCount={count};collectionSize={size};")
}

/// What there may be beside an item or script, and what there is.
pub(crate) fn of(holding: &Holding) -> [(&'static str, String); 2] {
    let (quota, usage) = match *holding {
        Holding::Items { count, bytes, bytes_max, item_bytes_max } => {
            let (item, size) = (item_bytes_max / KB, bytes_max / KB);
            let quota = format!(
                "documentSize={item};documentsSize={size};documentsCount=-1;collectionSize={size};"
            );
            (quota, used(bytes, count))
        }
        Holding::Scripts { procedures, triggers, functions } => {
            let list = |number: fn(Amount) -> usize| {
                format!(
                    "functions={};storedProcedures={};triggers={};",
                    number(functions),
                    number(procedures),
                    number(triggers)
                )
            };
            (list(|amount| amount.max), list(|amount| amount.count))
        }
    };
    [(QUOTA, quota), (USAGE, usage)]
}

/// Adds a line for each physical partition to a container's body.
async fn with_statistics(
    call: &Call<'_>,
    link: Link,
    body: &Bytes,
    meta: &mut ResponseMeta,
) -> Result<Bytes, WireError> {
    let keys_max = if call.headers.flag(ALL_KEYS) { ALL_KEYS_MAX } else { LARGEST_KEYS };
    let Response { reply: partitions, meta: read } =
        call.container(link, ReadStatistics { keys_max }).await?;
    meta.add(&read);
    let Ok(Value::Object(mut container)) = json::parse(body) else { return Ok(body.clone()) };
    container.insert("statistics", partitions.iter().map(line).collect::<Value>());
    Ok(Value::Object(container).to_string().into())
}

fn line(statistics: &PartitionStatistics) -> Value {
    let (partition, keys) = (&statistics.partition, &statistics.keys);
    let key = |size: &KeySize| {
        Object::from_iter([
            ("partitionKey", size.key.as_ref().map_or(Value::Null, key_value)),
            ("sizeInKB", number(size.bytes.div_ceil(KB))),
        ])
    };
    let largest = keys.by_bytes.iter().map(|size| Value::Object(key(size)));
    Value::Object(Object::from_iter([
        ("id", Value::from(partition.id.to_string())),
        ("sizeInKB", number(partition.bytes.div_ceil(KB))),
        ("documentCount", number(partition.items)),
        ("sampledDistinctPartitionKeyCount", number(keys.keys)),
        ("partitionKeys", largest.collect::<Value>()),
    ]))
}

/// A key as clients write it in their requests.
fn key_value(key: &PartitionKey) -> Value {
    json::parse(key.to_string().as_bytes()).unwrap_or(Value::Null)
}

fn number(number: u64) -> Value {
    Value::from(i64::try_from(number).unwrap_or(i64::MAX))
}
