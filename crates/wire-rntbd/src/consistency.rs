//! Barriers: how far a replica has come.
//!
//! A client that has read two different positions waits until enough replicas have reached the
//! greater one: it asks each for its position until they have. The copies here are one, so the
//! first answer is enough. A position that is not reached yet is no error: the client asks again.

use protocol::error::WireError;
use service::ReadRanges;

use crate::gateway::Call;
use crate::reply::Reply;

/// The position of the partition that was addressed. A barrier costs nothing.
pub(crate) async fn barrier(call: &Call<'_>) -> Result<Reply, WireError> {
    let Some(range) = call.range() else { return Ok(Reply::ok()) };
    let container = call.subject.container()?;
    let mut response = call.container(container, ReadRanges).await?;
    response.meta.charge = model::charge::Charge::ZERO;
    let found = response.reply.ranges.iter().find(|info| info.id == range);
    let found = found.ok_or_else(|| call.range_gone(range))?;
    Ok(Reply::ok().with_meta(&response.meta).at(range, found.lsn))
}
