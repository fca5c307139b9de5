//! `pkranges`: the physical partitions, as clients' routing maps need them.
//!
//! Clients read this as a feed of changes: they send back the etag of the last answer until
//! there is nothing new (304). After a split only the new ranges come, and their `parents`
//! say which old ones to forget.

use http::Method;
use model::json::{Object, Value};
use model::rid::{ChildKind, ChildRid, ContainerRid};
use service::{Link, PartitionId, RangeInfo, Ranges, ReadRanges};

use crate::gateway::Call;
use crate::page;
use crate::reply::Answer;
use protocol::error::WireError;
use protocol::page::Envelope;

pub(crate) async fn feed(call: &Call<'_>, container: Link) -> Result<Answer, WireError> {
    if *call.method != Method::GET {
        return Err(call.not_allowed());
    }
    let response = call.container(container, ReadRanges).await?;
    let Ranges { container, change, mut ranges, .. } = response.reply;
    let incremental = call
        .headers
        .text("a-im")
        .is_some_and(|value| value.eq_ignore_ascii_case("incremental feed"));
    let seen = call.headers.text("if-none-match").filter(|_| incremental).and_then(parse_etag);
    ranges.retain(|range| seen.is_none_or(|seen| range.change > seen));
    let mut answer = if seen.is_some() && ranges.is_empty() {
        Answer::unchanged()
    } else {
        let owner_rid = container.to_string();
        let page = Envelope { owner_rid, name: "PartitionKeyRanges", rows: ranges };
        page::answer(page, call, move |range| body(container, &range).into()).await?
    };
    answer.set("etag", &format!("\"{change}\""));
    Ok(answer.with_meta(&response.meta))
}

fn parse_etag(text: &str) -> Option<u64> {
    text.trim_matches('"').parse().ok()
}

/// The resource id of a range.
pub(crate) fn range_rid(container: ContainerRid, range: PartitionId) -> String {
    let number = u64::from(range.0) + 1;
    let rid = ChildRid::new(container, ChildKind::PartitionKeyRange, number);
    rid.map(|rid| rid.to_string()).unwrap_or_default()
}

fn body(container: ContainerRid, range: &RangeInfo) -> String {
    let (database, rid) = (container.database(), range_rid(container, range.id));
    let mut object = Object::new();
    object.insert("_rid", rid.as_str());
    object.insert("id", range.id.to_string());
    object.insert("_etag", format!("\"{}\"", range.change));
    object.insert("minInclusive", range.range.min.to_string());
    object.insert("maxExclusive", range.range.max.to_string());
    object.insert("ridPrefix", range.id.0);
    object.insert("_self", format!("dbs/{database}/colls/{container}/pkranges/{rid}/"));
    let fraction = model::json::Number::from_f64(range.fraction).map_or(Value::Null, Value::Number);
    object.insert("throughputFraction", fraction);
    object.insert("status", "online");
    object.insert("parents", range.parents.iter().map(ToString::to_string).collect::<Value>());
    object.insert("ownedArchivalPKRangeIds", Value::Array(Vec::new()));
    object.insert("_ts", i64::try_from(range.ts_secs).unwrap_or(i64::MAX));
    object.insert("lsn", i64::try_from(range.lsn.get()).unwrap_or(i64::MAX));
    Value::Object(object).to_string()
}
