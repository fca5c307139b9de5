//! What a container holds and may hold, for clients that ask for it with the container.

use bytes::Bytes;
use http::StatusCode;
use model::json::{self, Object, Value};
use model::limits::Limits;
use service::{CatalogueAction, Conditions, ContainerAction, Link, RangeInfo, Reply};

use crate::error::WireError;
use crate::gateway::Call;
use crate::reply::{Answer, status_of};

const POPULATE_QUOTA: &str = "x-ms-documentdb-populatequotainfo";
const POPULATE_STATISTICS: &str = "x-ms-documentdb-populatepartitionstatistics";
const INDEX_PROGRESS: &str = "x-ms-documentdb-collection-index-transformation-progress";

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
    let read = CatalogueAction::Read { link: link.clone(), conditions };
    let mut response = call.catalogue(read).await?;
    let layout = call.container(link, ContainerAction::ReadRanges).await?;
    response.receipt.add(&layout.receipt);
    let (Reply::One { kind, etag, body }, Reply::Ranges { ranges, fully_indexed, .. }) =
        (response.reply, layout.reply)
    else {
        return Ok(Answer::empty(StatusCode::INTERNAL_SERVER_ERROR));
    };
    let body = if call.headers.flag(POPULATE_STATISTICS) {
        body.map(|body| with_statistics(&body, &ranges))
    } else {
        body
    };
    let mut answer = Answer::json(status_of(kind), body.unwrap_or_default());
    if call.headers.flag(POPULATE_QUOTA) {
        answer.set("x-ms-resource-quota", &quota(call.limits()));
        answer.set("x-ms-resource-usage", &usage(&ranges));
        // Items are not indexed anew when the policy changes: how many still have old
        // entries is not known then.
        if fully_indexed {
            answer.set(INDEX_PROGRESS, "100");
        }
    }
    Ok(answer.with_etag(etag.as_ref()).with_receipt(&response.receipt))
}

/// A container grows without end; `-1` says so.
fn quota(limits: &Limits) -> String {
    format!("documentSize={};documentsSize=-1;documentsCount=-1;", limits.item_bytes_max / KB)
}

fn usage(ranges: &[RangeInfo]) -> String {
    let bytes: u64 = ranges.iter().map(|range| range.item_bytes).sum();
    let items: u64 = ranges.iter().map(|range| range.items).sum();
    format!("documentsSize={};documentsCount={items};", bytes.div_ceil(KB))
}

/// Adds a line for each physical partition to a container's body.
fn with_statistics(body: &Bytes, ranges: &[RangeInfo]) -> Bytes {
    let line = |range: &RangeInfo| {
        let number = |number: u64| Value::from(i64::try_from(number).unwrap_or(i64::MAX));
        Object::from_iter([
            ("id", Value::from(range.id.to_string())),
            ("sizeInKB", number(range.item_bytes.div_ceil(KB))),
            ("documentCount", number(range.items)),
        ])
    };
    let Ok(Value::Object(mut container)) = json::parse(body) else { return body.clone() };
    container.insert("statistics", ranges.iter().map(line).map(Value::Object).collect::<Value>());
    Value::Object(container).to_string().into()
}
