//! Lists of items, and queries on them: a page of one partition at a time.

use bytes::Bytes;
use http::StatusCode;
use model::json;
use model::json::{Object, Value};
use protocol::changes::FeedMode;
use protocol::error::WireError;
use protocol::page::Envelope;
use protocol::statement::Statement;
use protocol::{changes, continuation, metrics, resume, system_properties};
use service::{
    Approach, ChangeFeed, ChangeList, Cursor, Feed, ItemQuery, ListItems, QueryReport, QueryRows,
    QuerySource, Scope, ServiceError,
};

use crate::codec::request;
use crate::gateway::Call;
use crate::reply::Reply;

/// Rows of a page if the client leaves their number to the server: the most that a page is
/// documented to have. Bytes, time and charge end most pages before.
const PAGE_ROWS: usize = 1_000;

pub(crate) async fn list(call: &Call<'_>) -> Result<Reply, WireError> {
    if let Some(kind) = call.parameters.text(request::A_IM) {
        return changes(call, kind).await;
    }
    let list = ListItems {
        scope: scope(call)?,
        session: call.parameters.session(call.range())?,
        after: after(call)?,
        items_max: call.parameters.items_max(PAGE_ROWS),
        system: Some(system_properties::of_items()),
    };
    let response = call.container(call.subject.container()?, list).await?;
    let Feed { owner_rid, bodies, rest } = response.reply;
    let reply = page(call, Envelope { owner_rid, name: "Documents", rows: bodies }).await?;
    Ok(reply.with_meta(&response.meta).with_continuation(rest.as_ref().map(token)))
}

/// The change feed. Its etag is the position after it, also of one that has nothing new.
async fn changes(call: &Call<'_>, kind: &str) -> Result<Reply, WireError> {
    let parameters = call.parameters;
    let invalid = |name| WireError::bad_request(format!("The value of {name} is invalid."));
    match changes::mode(kind).ok_or_else(|| invalid("A_IM"))? {
        FeedMode::LatestVersions => {}
        FeedMode::AllVersions => {
            let what = "The change feed of all versions and deletes in direct mode";
            return Err(WireError::later(what));
        }
    }
    let start = changes::start(parameters.text(request::MATCH).unwrap_or_default());
    let since = parameters.text(request::IF_MODIFIED_SINCE).filter(|text| !text.is_empty());
    let since = since.map(|text| changes::since(text).ok_or_else(|| invalid("IfModifiedSince")));
    let form = parameters.text(request::CHANGE_FEED_WIRE_FORMAT_VERSION).unwrap_or_default();
    let form = changes::form(form).ok_or_else(|| invalid("ChangeFeedWireFormatVersion"))?;
    let list = ChangeList {
        scope: scope(call)?,
        session: parameters.session(call.range())?,
        start: start.ok_or_else(|| invalid("Match"))?,
        since: since.transpose()?,
        items_max: parameters.items_max(PAGE_ROWS),
    };
    let response = call.container(call.subject.container()?, list).await?;
    let ChangeFeed { owner_rid, changes: rows, through, complete } = response.reply;
    let reply = if rows.is_empty() && complete {
        Reply::of(StatusCode::NOT_MODIFIED, Bytes::new()).with_count(0)
    } else {
        let view = view(call);
        let page = Envelope { owner_rid, name: "Documents", rows };
        let count = page.rows.len();
        let body = page.body(call.service(), move |change| view(form(&change))).await?;
        Reply::of(StatusCode::OK, body).with_count(count)
    };
    Ok(reply.with_feed_etag(format!("\"{through}\"")).with_meta(&response.meta))
}

/// How the client wants to see items, or rows.
fn view(call: &Call<'_>) -> fn(Bytes) -> Bytes {
    let bare = call.parameters.flag(request::EXCLUDE_SYSTEM_PROPERTIES);
    if bare { system_properties::without } else { |row| row }
}

pub(crate) async fn query(call: &Call<'_>) -> Result<Reply, WireError> {
    let body = json::parse(&call.json_text()?).map_err(ServiceError::from)?;
    let Statement { text, parameters } = Statement::read(&body)?;
    let query = ItemQuery {
        source: QuerySource::Text(text),
        parameters,
        scope: scope(call)?,
        // The client routes by itself, and merges what partitions answer.
        across_partitions: true,
        merges: false,
        session: call.parameters.session(call.range())?,
        after: after(call)?,
        resume: resume::filter(&body)?,
        items_max: call.parameters.items_max(PAGE_ROWS),
        approach: Approach::Index,
        system: Some(system_properties::of_items()),
        is_timed: call.parameters.flag(request::POPULATE_QUERY_METRICS),
        names_indexes: names_indexes(call),
    };
    let response = call.container(call.subject.container()?, query).await?;
    let QueryRows { owner_rid, rows, rest, report } = response.reply;
    let reply = page(call, Envelope { owner_rid, name: "Documents", rows }).await?;
    let reply = reported(call, reply, &report);
    Ok(reply.with_meta(&response.meta).with_continuation(rest.as_ref().map(token)))
}

/// Whether the client asked which indexes the query uses, in either form.
fn names_indexes(call: &Call<'_>) -> bool {
    call.parameters.flag(request::POPULATE_INDEX_METRICS)
        || call.parameters.flag(request::POPULATE_INDEX_METRICS_V2)
}

/// Adds the metrics that the client asked for.
fn reported(call: &Call<'_>, reply: Reply, report: &QueryReport) -> Reply {
    let parameters = call.parameters;
    let keyed = parameters.text(request::PARTITION_KEY).is_some();
    // Clients of the second form take a later page that has it for an error.
    let is_first = parameters.text(request::CONTINUATION_TOKEN).is_none();
    let timed = parameters.flag(request::POPULATE_QUERY_METRICS);
    let indexes = if parameters.flag(request::POPULATE_INDEX_METRICS_V2) && is_first {
        Some(metrics::index_use_v2(&report.usage, keyed))
    } else {
        let asked = parameters.flag(request::POPULATE_INDEX_METRICS);
        asked.then(|| metrics::index_use(&report.usage, keyed))
    };
    // Rows with equal sort values come in the direction of the first of them, which clients must
    // know to resume between two of them.
    let direction =
        Object::from_iter([("reverseRidEnabled", true), ("reverseIndexScan", report.backwards)]);
    reply
        .with_query_execution_info(Value::Object(direction).to_string())
        .with_metrics(timed.then(|| metrics::of(report)), indexes)
}

/// The items that the request is about: with a key those, otherwise those of the range that the
/// client names and has addressed.
fn scope(call: &Call<'_>) -> Result<Scope, WireError> {
    let (key, within) = (call.parameters.partition_key()?, call.parameters.within()?);
    let named = call.parameters.range()?;
    if let Some(named) = named.filter(|named| Some(*named) != call.range()) {
        return Err(call.range_gone(named));
    }
    let range = if key.is_some() { named } else { named.or_else(|| call.range()) };
    Ok(Scope { key, range, within })
}

fn after(call: &Call<'_>) -> Result<Option<Cursor>, WireError> {
    let token = call.parameters.text(request::CONTINUATION_TOKEN).filter(|text| !text.is_empty());
    Ok(token.map(continuation::parse_cursor).transpose()?.flatten())
}

fn token(rest: &Cursor) -> String {
    continuation::cursor_token(rest, false)
}

async fn page(call: &Call<'_>, page: Envelope<Bytes>) -> Result<Reply, WireError> {
    let count = page.rows.len();
    let body = page.body(call.service(), view(call)).await?;
    Ok(Reply::of(StatusCode::OK, body).with_count(count))
}
