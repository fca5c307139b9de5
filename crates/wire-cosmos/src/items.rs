//! Items: one at a time, as feeds, in batches.

use http::{Method, StatusCode};
use model::epk::{Epk, EpkRange};
use model::name::ItemId;
use service::{
    Conditions, EffectKind, Feed, ItemAction, ItemOperation, ItemResult, Link, ListItems,
    PartitionId, Response, Scope, TriggeredAction,
};

use crate::batch;
use crate::changes;
use crate::gateway::Call;
use crate::headers::{
    CONTINUATION, END_EPK, Headers, IS_BATCH, IS_QUERY_PLAN, IS_UPSERT, PAGE_ITEMS_DEFAULT,
    RANGE_ID, START_EPK,
};
use crate::page;
use crate::query::{self, is_query};
use crate::reply::Answer;
use crate::scripts::{self, POST_TRIGGER, PRE_TRIGGER};
use crate::system_properties::{self, shown};
use protocol::continuation;
use protocol::error::WireError;
use protocol::page::Envelope;
use protocol::resource::status_of;

/// Requests on the items of a container. Headers decide what a POST is, in this order.
pub(crate) async fn feed(call: &Call<'_>, container: Link) -> Result<Answer, WireError> {
    match *call.method {
        Method::GET if call.headers.text(changes::KIND).is_some() => {
            changes::list(call, container).await
        }
        Method::GET => list(call, container).await,
        Method::POST if call.headers.flag(IS_QUERY_PLAN) => query::plan(call, container).await,
        Method::POST if call.headers.flag(IS_BATCH) => batch::answer(call, container).await,
        Method::POST if is_query(call.headers) => query::answer(call, container).await,
        Method::POST => write(call, container).await,
        _ => Err(call.not_allowed()),
    }
}

/// Whether a POST on the items of a container changes none of them: a query or a plan.
pub(crate) fn only_asks(headers: Headers<'_>) -> bool {
    headers.flag(IS_QUERY_PLAN) || (!headers.flag(IS_BATCH) && is_query(headers))
}

/// Requests on one item.
pub(crate) async fn item(call: &Call<'_>, container: Link, id: &str) -> Result<Answer, WireError> {
    let id = ItemId::parse(id).map_err(|error| WireError::bad_request(error.to_string()))?;
    let key = call.headers.partition_key()?;
    let Conditions { if_match, if_none_match } = call.headers.conditions()?;
    let session = call.headers.session()?;
    let operation = match *call.method {
        Method::GET => ItemOperation::Read { id, if_none_match },
        Method::PUT => ItemOperation::Replace { id, body: call.json_text()?, if_match },
        Method::DELETE => ItemOperation::Delete { id, if_match },
        Method::PATCH => ItemOperation::Patch { id, body: call.body()?.clone(), if_match },
        _ => return Err(call.not_allowed()),
    };
    let action = ItemAction { key, operation, session };
    perform(call, container, action).await.map_err(without_owner)
}

/// Does it, with the triggers that the client names.
async fn perform(
    call: &Call<'_>,
    container: Link,
    action: ItemAction,
) -> Result<Answer, WireError> {
    let (pre, post) = (scripts::trigger(call, PRE_TRIGGER)?, scripts::trigger(call, POST_TRIGGER)?);
    let is_read = matches!(action.operation, ItemOperation::Read { .. });
    if is_read || pre.is_none() && post.is_none() {
        return Ok(one(call, call.container(container, action).await?));
    }
    let system = system_properties::of_items();
    let triggered = TriggeredAction { action, pre, post, system };
    let Response { reply, meta } = call.container(container, triggered).await?;
    let answer = one(call, Response { reply: reply.item, meta });
    Ok(match reply.answer {
        Some(changed) if !call.headers.wants_minimal() => answer.with_body(changed),
        Some(_) | None => answer,
    })
}

/// An error about a missing item does not reveal the resource id of its container.
fn without_owner(mut error: WireError) -> WireError {
    let owner = error.meta.as_mut().and_then(|meta| meta.owner.as_mut());
    if let Some(owner) = owner.filter(|_| error.status == StatusCode::NOT_FOUND) {
        owner.rid = "".into();
    }
    error
}

async fn write(call: &Call<'_>, container: Link) -> Result<Answer, WireError> {
    call.headers.check_indexing_directive()?;
    let session = call.headers.session()?;
    let (key, body) = (call.headers.partition_key()?, call.json_text()?);
    let operation = if call.headers.flag(IS_UPSERT) {
        ItemOperation::Upsert { body, if_match: call.headers.conditions()?.if_match }
    } else {
        ItemOperation::Create { body }
    };
    perform(call, container, ItemAction { key, operation, session }).await
}

async fn list(call: &Call<'_>, container: Link) -> Result<Answer, WireError> {
    let after = call.headers.text(CONTINUATION).map(continuation::parse_cursor).transpose()?;
    let after = after.flatten();
    let scope = scope(call)?;
    let items_max = call.headers.items_max(PAGE_ITEMS_DEFAULT)?;
    let session = call.headers.session()?;
    let system = Some(system_properties::of_items());
    let list = ListItems { scope, session, after, items_max, system };
    let response = call.container(container, list).await?;
    let Feed { owner_rid, bodies, rest } = response.reply;
    let rest = rest.as_ref().map(|rest| continuation::cursor_token(rest, false));
    let page = Envelope { owner_rid, name: "Documents", rows: bodies };
    let answer = page::answer(page, call, system_properties::view(call)).await?;
    Ok(answer.with_meta(&response.meta).with_continuation(rest.as_deref()))
}

/// The items that a client's headers select.
pub(crate) fn scope(call: &Call<'_>) -> Result<Scope, WireError> {
    Ok(Scope {
        key: call.headers.partition_key()?,
        range: range_id(call)?,
        within: epk_range(call)?,
    })
}

/// The physical partition that a client addresses; `<container rid>,<id>` is the old form.
pub(crate) fn range_id(call: &Call<'_>) -> Result<Option<PartitionId>, WireError> {
    let Some(text) = call.headers.text(RANGE_ID).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let id = text.rsplit(',').next().unwrap_or(text);
    let id = id.trim().parse().map_err(|_| call.headers.invalid(RANGE_ID))?;
    Ok(Some(PartitionId(id)))
}

fn epk_range(call: &Call<'_>) -> Result<EpkRange, WireError> {
    let bound = |name: &'static str, default: Epk| match call.headers.text(name) {
        Some(text) if !text.is_empty() => {
            Epk::from_hex(text).map_err(|_| call.headers.invalid(name))
        }
        Some(_) | None => Ok(default),
    };
    Ok(EpkRange::new(bound(START_EPK, Epk::MIN)?, bound(END_EPK, Epk::max())?))
}

fn one(call: &Call<'_>, response: Response<ItemResult>) -> Answer {
    let ItemResult { kind, stamp, text, .. } = response.reply;
    let wrote = matches!(kind, EffectKind::Created | EffectKind::Replaced);
    let text = text.filter(|_| !(wrote && call.headers.wants_minimal()));
    let body = text.zip(stamp.as_ref()).map(|(text, stamp)| shown(call, text, stamp));
    Answer::json(status_of(kind), body.unwrap_or_default())
        .with_etag(stamp.as_ref().map(|stamp| &stamp.etag))
        .with_meta(&response.meta)
}
