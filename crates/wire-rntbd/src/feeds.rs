//! Lists of items, and queries on them: a page of one partition at a time.

use http::StatusCode;
use model::json;
use model::json::{Object, Value};
use protocol::error::WireError;
use protocol::page::Envelope;
use protocol::statement::Statement;
use protocol::{continuation, resume, system_properties};
use service::{
    Approach, Cursor, Feed, ItemQuery, ListItems, QueryRows, QuerySource, Scope, ServiceError,
};

use crate::codec::request;
use crate::gateway::Call;
use crate::reply::Reply;
use crate::subject::unsupported;

/// Rows of a page if the client leaves their number to the server: the most that a page is
/// documented to have. Bytes, time and charge end most pages before.
const PAGE_ROWS: usize = 1_000;

pub(crate) async fn list(call: &Call<'_>) -> Result<Reply, WireError> {
    if call.parameters.text(request::A_IM).is_some() {
        return Err(unsupported(call.resource, call.operation));
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
        is_timed: false,
        names_indexes: false,
    };
    let response = call.container(call.subject.container()?, query).await?;
    let QueryRows { owner_rid, rows, rest, report } = response.reply;
    let reply = page(call, Envelope { owner_rid, name: "Documents", rows }).await?;
    // Rows with equal sort values come in the direction of the first of them, which clients must
    // know to resume between two of them.
    let direction =
        Object::from_iter([("reverseRidEnabled", true), ("reverseIndexScan", report.backwards)]);
    Ok(reply
        .with_meta(&response.meta)
        .with_continuation(rest.as_ref().map(token))
        .with_query_execution_info(Value::Object(direction).to_string()))
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

async fn page(call: &Call<'_>, page: Envelope<bytes::Bytes>) -> Result<Reply, WireError> {
    let bare = call.parameters.flag(request::EXCLUDE_SYSTEM_PROPERTIES);
    let shown = move |row| if bare { system_properties::without(row) } else { row };
    let count = page.rows.len();
    let body = page.body(call.service(), shown).await?;
    Ok(Reply::of(StatusCode::OK, body).with_count(count))
}
