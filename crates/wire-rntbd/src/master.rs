//! The master partition: databases and containers, read and listed.

use http::StatusCode;
use model::json;
use protocol::continuation;
use protocol::error::WireError;
use protocol::page::Envelope;
use protocol::resource::{as_they_are, feed_name, status_of};
use protocol::statement::Statement;
use service::{
    Feed, Kind, ListResources, QueryResources, ResourceAction, ResourceReply, ResourceRest,
    Response, ServiceError,
};

use crate::codec::{ResourceType, request};
use crate::gateway::Call;
use crate::reply::Reply;
use crate::subject::unsupported;

/// Resources of a page if the client leaves their number to the server.
const PAGE_RESOURCES: usize = 100;

pub(crate) async fn read(call: &Call<'_>) -> Result<Reply, WireError> {
    kind(call)?;
    let conditions = call.parameters.conditions(call.operation);
    let link = call.subject.link()?;
    let response = call.catalogue(ResourceAction::Read { link, conditions }).await?;
    let ResourceReply { kind, etag, body, .. } = response.reply;
    let body = body.map(as_they_are).unwrap_or_default();
    Ok(Reply::of(status_of(kind), body).with_etag(etag).with_meta(&response.meta))
}

pub(crate) async fn list(call: &Call<'_>) -> Result<Reply, WireError> {
    let (parent, kind) = (call.subject.link()?, kind(call)?);
    let after = token(call).map(continuation::parse_name).transpose()?;
    let items_max = call.parameters.items_max(PAGE_RESOURCES);
    let response = call.catalogue(ListResources { parent, kind, after, items_max }).await?;
    page(call, kind, response, as_they_are).await
}

pub(crate) async fn query(call: &Call<'_>) -> Result<Reply, WireError> {
    let (parent, kind) = (call.subject.link()?, kind(call)?);
    let body = json::parse(&call.json_text()?).map_err(ServiceError::from)?;
    let Statement { text, parameters } = Statement::read(&body)?;
    let after = token(call).map(continuation::parse_resource).transpose()?;
    let items_max = call.parameters.items_max(PAGE_RESOURCES);
    let shown = as_they_are;
    let query = QueryResources { parent, kind, text, parameters, after, items_max, shown };
    let response = call.catalogue(query).await?;
    page(call, kind, response, |row| row).await
}

fn token<'a>(call: &'a Call<'_>) -> Option<&'a str> {
    call.parameters.text(request::CONTINUATION_TOKEN).filter(|text| !text.is_empty())
}

#[expect(clippy::wildcard_enum_match_arm, reason = "two of the types are served here")]
fn kind(call: &Call<'_>) -> Result<Kind, WireError> {
    match call.resource {
        ResourceType::Database => Ok(Kind::Database),
        ResourceType::Collection => Ok(Kind::Container),
        other => Err(unsupported(other, call.operation)),
    }
}

async fn page(
    call: &Call<'_>,
    kind: Kind,
    response: Response<Feed<ResourceRest>>,
    shown: fn(bytes::Bytes) -> bytes::Bytes,
) -> Result<Reply, WireError> {
    let Feed { owner_rid, bodies, rest } = response.reply;
    let count = bodies.len();
    let page = Envelope { owner_rid, name: feed_name(kind), rows: bodies };
    let body = page.body(call.service(), shown).await?;
    let rest = rest.as_ref().map(continuation::token);
    Ok(Reply::of(StatusCode::OK, body)
        .with_count(count)
        .with_meta(&response.meta)
        .with_continuation(rest))
}
