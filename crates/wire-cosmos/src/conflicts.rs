//! Conflicts: writes that lost against others in another region.
//!
//! There is one region, so no write ever lost: the feed of every container is empty.

use http::{Method, StatusCode};
use service::{ContainerAction, Link};

use crate::error::WireError;
use crate::gateway::Call;
use crate::reply::{Answer, envelope};
use crate::resources::is_query;

pub(crate) async fn feed(call: &Call<'_>, container: Link) -> Result<Answer, WireError> {
    if *call.method != Method::GET && !(*call.method == Method::POST && is_query(call)) {
        return Err(call.not_allowed());
    }
    let owner = owner_rid(call, container).await?;
    let mut answer = Answer::json(StatusCode::OK, envelope(&owner, "Conflicts", &[]));
    answer.set("x-ms-item-count", "0");
    Ok(answer)
}

pub(crate) async fn conflict(call: &Call<'_>, container: Link) -> Result<Answer, WireError> {
    if ![Method::GET, Method::DELETE].contains(call.method) {
        return Err(call.not_allowed());
    }
    owner_rid(call, container).await?;
    Err(WireError::not_found())
}

/// The container must be there, and the client be allowed to read it.
async fn owner_rid(call: &Call<'_>, container: Link) -> Result<String, WireError> {
    let response = call.container(container, ContainerAction::ReadRanges).await?;
    Ok(response.container.map(|name| name.rid.to_string()).unwrap_or_default())
}
