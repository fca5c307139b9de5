//! Single items.

use http::StatusCode;
use model::name::ItemId;
use protocol::error::WireError;
use protocol::resource::status_of;
use protocol::system_properties;
use service::{
    Conditions, EffectKind, ItemAction, ItemOperation, ItemResult, Response, TriggeredAction,
};

use crate::codec::{OperationType, request};
use crate::gateway::Call;
use crate::reply::Reply;
use crate::subject::unsupported;

pub(crate) async fn answer(call: &Call<'_>) -> Result<Reply, WireError> {
    let is_named = !matches!(call.operation, OperationType::Create | OperationType::Upsert);
    let answer = perform(call, operation(call)?).await;
    if is_named { answer.map_err(without_owner) } else { answer }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "six of the operations are on one item")]
fn operation(call: &Call<'_>) -> Result<ItemOperation, WireError> {
    let Conditions { if_match, if_none_match } = call.parameters.conditions(call.operation);
    let id = || {
        let id = call.subject.name().unwrap_or_default();
        ItemId::parse(id).map_err(|error| WireError::bad_request(error.to_string()))
    };
    Ok(match call.operation {
        OperationType::Read => ItemOperation::Read { id: id()?, if_none_match },
        OperationType::Create => ItemOperation::Create { body: call.json_text()? },
        OperationType::Upsert => ItemOperation::Upsert { body: call.json_text()?, if_match },
        OperationType::Replace => {
            ItemOperation::Replace { id: id()?, body: call.json_text()?, if_match }
        }
        OperationType::Delete => ItemOperation::Delete { id: id()?, if_match },
        OperationType::Patch => {
            ItemOperation::Patch { id: id()?, body: call.body()?.clone(), if_match }
        }
        other => return Err(unsupported(call.resource, other)),
    })
}

/// Does it, with the triggers that the client names.
async fn perform(call: &Call<'_>, operation: ItemOperation) -> Result<Reply, WireError> {
    let (container, parameters) = (call.subject.container()?, call.parameters);
    let is_read = matches!(operation, ItemOperation::Read { .. });
    let session = parameters.session(call.range())?;
    let action = ItemAction { key: parameters.partition_key()?, operation, session };
    let pre = parameters.trigger(request::PRE_TRIGGER_INCLUDE)?;
    let post = parameters.trigger(request::POST_TRIGGER_INCLUDE)?;
    if is_read || pre.is_none() && post.is_none() {
        return Ok(one(call, call.container(container, action).await?));
    }
    let system = system_properties::of_items();
    let triggered = TriggeredAction { action, pre, post, system };
    let Response { reply, meta } = call.container(container, triggered).await?;
    let answer = one(call, Response { reply: reply.item, meta });
    Ok(match reply.answer {
        Some(changed) if !parameters.wants_minimal() => answer.with_payload(changed.into()),
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

fn one(call: &Call<'_>, response: Response<ItemResult>) -> Reply {
    let ItemResult { kind, stamp, text, .. } = response.reply;
    let wrote = matches!(kind, EffectKind::Created | EffectKind::Replaced);
    let text = text.filter(|_| !(wrote && call.parameters.wants_minimal()));
    let bare = call.parameters.flag(request::EXCLUDE_SYSTEM_PROPERTIES);
    let body = text.zip(stamp.as_ref());
    let body = body.map(|(text, stamp)| system_properties::shown(text, stamp, bare));
    Reply::of(status_of(kind), body.unwrap_or_default())
        .with_etag(stamp.map(|stamp| stamp.etag))
        .with_meta(&response.meta)
}
