//! A page of rows as an answer.

use bytes::Bytes;
use http::StatusCode;
use protocol::error::WireError;
use protocol::page::{Envelope, EnvelopeRow};

use crate::gateway::Call;
use crate::reply::{Answer, ITEM_COUNT};

/// The answer with all rows, each as `shown` makes it of them: JSON text.
pub(crate) async fn answer<T: EnvelopeRow>(
    page: Envelope<T>,
    call: &Call<'_>,
    shown: impl Fn(T) -> Bytes + Send + 'static,
) -> Result<Answer, WireError> {
    let count = page.rows.len();
    let mut answer = Answer::json(StatusCode::OK, page.body(call.service(), shown).await?);
    answer.set(ITEM_COUNT, &count.to_string());
    Ok(answer)
}
