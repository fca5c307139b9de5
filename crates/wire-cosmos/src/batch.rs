//! Transactional batches and bulk requests, as their headers ask for them.

use protocol::batch::{BatchAnswer, BatchRequest, plainly_missing};
use protocol::error::WireError;
use service::{Batch, Bulk, BulkPace, Failure, Link, ResponseMeta, ServiceError};

use crate::gateway::Call;
use crate::headers::{BATCH_ATOMIC, BATCH_CONTINUE};
use crate::items::range_id;
use crate::reply::Answer;
use crate::system_properties;

pub(crate) async fn answer(call: &Call<'_>, container: Link) -> Result<Answer, WireError> {
    // Read first: a wrong token refuses the request whatever is in its body.
    let session = call.headers.session()?;
    let operations_max = call.limits().batch_operations_max;
    let batch = BatchRequest::read(call.body()?, call.headers.wants_minimal(), operations_max)?;
    if !call.headers.flag(BATCH_ATOMIC) {
        return bulk(call, container, batch).await;
    }
    let key = call.headers.partition_key()?;
    let key =
        key.ok_or_else(|| WireError::bad_request("A transactional batch needs a partition key."))?;
    let (operations, shape) = batch.atomic()?;
    match call.try_container(container, Batch { key, operations, session }).await {
        Ok(response) => {
            let done = shape.done(response.reply, system_properties::are_excluded(call))?;
            Ok(of(done, &response.meta))
        }
        Err(Failure { error: ServiceError::Batch { at, error }, meta }) => {
            Ok(of(shape.failed(at, *error, meta.charge)?, &meta))
        }
        Err(failure) => Err(failure.into()),
    }
}

async fn bulk(call: &Call<'_>, container: Link, batch: BatchRequest) -> Result<Answer, WireError> {
    let pace = match call.headers.flag(BATCH_CONTINUE) {
        true => BulkPace::All,
        false => BulkPace::UpToFailure,
    };
    let (operations, shape) = batch.bulk()?;
    let bulk = Bulk { range: range_id(call)?, operations, pace };
    let response = call.container(container, bulk).await.map_err(plainly_missing)?;
    let done = shape.each_done(response.reply, system_properties::are_excluded(call))?;
    Ok(of(done, &response.meta))
}

fn of(BatchAnswer { status, body, is_binary }: BatchAnswer, meta: &ResponseMeta) -> Answer {
    let answer = if is_binary { Answer::binary(status, body) } else { Answer::json(status, body) };
    answer.with_meta(meta)
}
