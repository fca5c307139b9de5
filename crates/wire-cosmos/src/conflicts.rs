//! Conflicts: writes that lost against others in another region.
//!
//! There is one region, so no write ever lost: the feed of every container is empty.

use bytes::Bytes;
use http::Method;
use service::{Link, ReadRanges};

use crate::gateway::Call;
use crate::page;
use crate::query::is_query;
use crate::reply::Answer;
use protocol::error::WireError;
use protocol::page::Envelope;

pub(crate) async fn feed(call: &Call<'_>, container: Link) -> Result<Answer, WireError> {
    if *call.method != Method::GET && !(*call.method == Method::POST && is_query(call.headers)) {
        return Err(call.not_allowed());
    }
    call.require_conflicts(&container)?;
    let response = call.container(container, ReadRanges).await?;
    let owner = response.meta.owner.as_ref().map(|owner| owner.rid.to_string());
    let page =
        Envelope { owner_rid: owner.unwrap_or_default(), name: "Conflicts", rows: Vec::new() };
    let answer = page::answer(page, call, |conflict: Bytes| conflict).await?;
    Ok(answer.with_meta(&response.meta))
}

pub(crate) async fn conflict(call: &Call<'_>, container: Link) -> Result<Answer, WireError> {
    if ![Method::GET, Method::DELETE].contains(call.method) {
        return Err(call.not_allowed());
    }
    call.require_conflicts(&container)?;
    // The container must exist, and the client must be allowed to read it.
    call.container(container, ReadRanges).await?;
    Err(WireError::not_found())
}
