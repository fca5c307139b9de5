//! Databases, containers, users, permissions, scripts and offers.

use bytes::Bytes;
use http::Method;
use model::json::Value;
use service::{
    Feed, Kind, Link, ListResources, Migration, OfferType, QueryResources, ResourceAction,
    ResourceReply, ResourceRest, Response,
};

use crate::gateway::Call;
use crate::headers::{CONTINUATION, IS_UPSERT, PAGE_ITEMS_DEFAULT};
use crate::issuer::Issuer;
use crate::page;
use crate::query::is_query;
use crate::reply::Answer;
use crate::scripts;
use crate::usage;
use protocol::continuation;
use protocol::error::WireError;
use protocol::page::Envelope;
use protocol::resource::{as_they_are, as_they_were, feed_name, status_of};
use protocol::statement::Statement;

/// Requests on all resources of a kind.
pub(crate) async fn feed(call: &Call<'_>, parent: Link, kind: Kind) -> Result<Answer, WireError> {
    let issuer = Issuer::of(call, kind)?;
    match *call.method {
        Method::GET => list(call, parent, kind).await,
        Method::POST if is_query(call.headers) => query(call, parent, kind).await,
        Method::POST if call.headers.flag(IS_UPSERT) => {
            let action = ResourceAction::Upsert { parent, kind, body: call.json()? };
            Ok(one(call, issuer.as_ref(), call.catalogue(action).await?).await)
        }
        Method::POST => {
            check_key(call, kind)?;
            let (body, throughput) = (call.json()?, call.headers.throughput(call.limits())?);
            let offer_type = call.headers.text(OFFER_TYPE).and_then(OfferType::parse);
            let action = ResourceAction::Create { parent, kind, body, throughput, offer_type };
            Ok(one(call, issuer.as_ref(), call.catalogue(action).await?).await)
        }
        _ => Err(call.not_allowed()),
    }
}

const OFFER_TYPE: &str = "x-ms-offer-type";

/// Tokens of permissions that are issued before the worker serves others: each is looked up
/// and signed, which takes some microseconds.
const TOKENS_AT_ONCE: usize = 8;

/// Since this version a new container needs a key.
const KEYS_REQUIRED: &str = "2018-12-31";

fn check_key(call: &Call<'_>, kind: Kind) -> Result<(), WireError> {
    let is_required = kind == Kind::Container
        && call.headers.speaks(KEYS_REQUIRED)
        && !call.limits().has_fixed_containers();
    if is_required && call.json()?.get("partitionKey").is_none_or(Value::is_null) {
        return Err(WireError::bad_request(
            "The input content is invalid because the required properties - 'partitionKey; ' - are missing",
        ));
    }
    Ok(())
}

/// Requests on one resource.
pub(crate) async fn resource(call: &Call<'_>, link: Link) -> Result<Answer, WireError> {
    let conditions = call.headers.conditions()?;
    // It has no effect on resources, but it must be valid.
    call.headers.session()?;
    let kind = link.kind().ok_or_else(|| call.not_allowed())?;
    let issuer = Issuer::of(call, kind)?;
    let action = match *call.method {
        Method::GET if kind == Kind::Container && usage::is_asked_for(call) => {
            return usage::answer(call, link, conditions).await;
        }
        Method::GET => ResourceAction::Read { link, conditions },
        Method::PUT => match migration(call, &link)? {
            Some(migration) => ResourceAction::MigrateOffer { link, migration, conditions },
            None => ResourceAction::Replace { link, body: call.json()?, conditions },
        },
        Method::DELETE => ResourceAction::Delete { link, conditions },
        Method::POST if kind == Kind::StoredProcedure => {
            return scripts::execute(call, link).await;
        }
        _ => return Err(call.not_allowed()),
    };
    Ok(one(call, issuer.as_ref(), call.catalogue(action).await?).await)
}

async fn list(call: &Call<'_>, parent: Link, kind: Kind) -> Result<Answer, WireError> {
    let after = call.headers.text(CONTINUATION).map(continuation::parse_name).transpose()?;
    let items_max = call.headers.items_max(PAGE_ITEMS_DEFAULT)?;
    let response = call.catalogue(ListResources { parent, kind, after, items_max }).await?;
    feed_answer(call, kind, response, view(call)).await
}

async fn query(call: &Call<'_>, parent: Link, kind: Kind) -> Result<Answer, WireError> {
    let Statement { text, parameters } = Statement::read(&call.json()?)?;
    let after = call.headers.text(CONTINUATION).map(continuation::parse_resource).transpose()?;
    let items_max = call.headers.items_max(PAGE_ITEMS_DEFAULT)?;
    let shown = view(call);
    let query = QueryResources { parent, kind, text, parameters, after, items_max, shown };
    let response = call.catalogue(query).await?;
    feed_answer(call, kind, response, |row| row).await
}

/// The migration to the other kind of throughput that a client asks for. Its body, if there
/// is one, does not matter.
fn migration(call: &Call<'_>, link: &Link) -> Result<Option<Migration>, WireError> {
    if link.kind() != Some(Kind::Offer) {
        return Ok(None);
    }
    let to_autoscale = call.headers.flag("x-ms-cosmos-migrate-offer-to-autopilot");
    let to_manual = call.headers.flag("x-ms-cosmos-migrate-offer-to-manual-throughput");
    match (to_autoscale, to_manual) {
        (false, false) => Ok(None),
        (true, false) => Ok(Some(Migration::ToAutoscale)),
        (false, true) => Ok(Some(Migration::ToManual)),
        (true, true) => Err(WireError::bad_request(
            "An offer cannot be migrated to both autoscale and manual throughput.",
        )),
    }
}

/// The last version whose clients know containers without a key, and the old kinds of
/// indexes.
const OLD: &str = "2018-09-17";

/// How clients of this version see resources.
fn view(call: &Call<'_>) -> fn(Bytes) -> Bytes {
    if call.headers.speaks_at_most(OLD) { as_they_were } else { as_they_are }
}

/// A resource as clients of this version know it.
pub(crate) fn of_its_time(call: &Call<'_>, body: Bytes) -> Bytes {
    view(call)(body)
}

async fn one(
    call: &Call<'_>,
    issuer: Option<&Issuer>,
    response: Response<ResourceReply>,
) -> Answer {
    let ResourceReply { kind, etag, body, offer } = response.reply;
    let body = match (issuer, body) {
        (Some(issuer), Some(body)) => Some(issuer.with_token(call, body).await),
        (_, body) => body,
    };
    let body = body.map(|body| of_its_time(call, body));
    let mut answer = Answer::json(status_of(kind), body.unwrap_or_default())
        .with_etag(etag.as_ref())
        .with_meta(&response.meta);
    if response.meta.shares_throughput {
        answer.set("x-ms-share-throughput", "true");
    }
    if let Some(offer) = offer {
        answer.set("x-ms-cosmos-min-throughput", &offer.minimum.to_string());
        answer.set("x-ms-offer-replace-pending", &offer.pending.to_string());
    }
    answer
}

async fn feed_answer(
    call: &Call<'_>,
    kind: Kind,
    response: Response<Feed<ResourceRest>>,
    shown: fn(Bytes) -> Bytes,
) -> Result<Answer, WireError> {
    let Feed { owner_rid, mut bodies, rest } = response.reply;
    if let Some(issuer) = Issuer::of(call, kind)? {
        for (body, done) in bodies.iter_mut().zip(1..) {
            *body = issuer.with_token(call, std::mem::take(body)).await;
            if usize::is_multiple_of(done, TOKENS_AT_ONCE) {
                runtime::yield_now().await;
            }
        }
    }
    let rest = rest.as_ref().map(continuation::token);
    let page = Envelope { owner_rid, name: feed_name(kind), rows: bodies };
    let answer = page::answer(page, call, shown).await?;
    Ok(answer.with_meta(&response.meta).with_continuation(rest.as_deref()))
}
