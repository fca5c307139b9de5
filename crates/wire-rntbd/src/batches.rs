//! Transactional batches and bulk requests.

use protocol::batch::{BatchAnswer, BatchRequest, plainly_missing};
use protocol::error::WireError;
use service::{Batch, Bulk, BulkPace, Failure, ResponseMeta, ServiceError};

use crate::codec::request;
use crate::gateway::Call;
use crate::reply::Reply;

pub(crate) async fn answer(call: &Call<'_>) -> Result<Reply, WireError> {
    let (parameters, limits) = (call.parameters, call.service().limits());
    let session = parameters.session(call.range())?;
    let (minimal, operations_max) = (parameters.wants_minimal(), limits.batch_operations_max);
    let batch = BatchRequest::read(call.body()?, minimal, operations_max)?;
    if !parameters.flag(request::IS_BATCH_ATOMIC) {
        return bulk(call, batch).await;
    }
    let key = parameters.partition_key()?;
    let key =
        key.ok_or_else(|| WireError::bad_request("A transactional batch needs a partition key."))?;
    let (operations, shape) = batch.atomic()?;
    let bare = parameters.flag(request::EXCLUDE_SYSTEM_PROPERTIES);
    let batch = Batch { key, operations, session };
    match call.try_container(call.subject.container()?, batch).await? {
        Ok(response) => Ok(of(shape.done(response.reply, bare)?, &response.meta)),
        Err(Failure { error: ServiceError::Batch { at, error }, meta }) => {
            Ok(of(shape.failed(at, *error, meta.charge)?, &meta))
        }
        Err(failure) => Err(failure.into()),
    }
}

async fn bulk(call: &Call<'_>, batch: BatchRequest) -> Result<Reply, WireError> {
    let parameters = call.parameters;
    let pace = match parameters.flag(request::SHOULD_BATCH_CONTINUE_ON_ERROR) {
        true => BulkPace::All,
        false => BulkPace::UpToFailure,
    };
    let (operations, shape) = batch.bulk()?;
    let range = parameters.range()?.or(call.range());
    let bulk = Bulk { range, operations, pace };
    let response = call.container(call.subject.container()?, bulk).await;
    let response = response.map_err(plainly_missing)?;
    let bare = parameters.flag(request::EXCLUDE_SYSTEM_PROPERTIES);
    Ok(of(shape.each_done(response.reply, bare)?, &response.meta))
}

fn of(BatchAnswer { status, body, .. }: BatchAnswer, meta: &ResponseMeta) -> Reply {
    Reply::of(status, body).with_meta(meta)
}
