//! Batches as HybridRow, which the .NET SDK uses: a stream of operations, and one of
//! results.

use std::borrow::Cow;

use bytes::Bytes;
use hybrid_row::batch::{self as rows, BatchOperation, DOCUMENT};
use hybrid_row::{HybridRow, HybridRowError, VERSION};

use super::{OperationVerb, Outcome, Wording};
use crate::error::WireError;

/// Bytes of a result besides its body: columns, an etag, a charge.
const RESULT_BYTES: usize = 96;

/// Whether a body is in this form. JSON cannot begin so.
pub(super) fn is_hybrid(body: &[u8]) -> bool {
    body.first() == Some(&VERSION)
}

/// Up to `count_max` of the operations in a body.
pub(super) fn read(body: &Bytes, count_max: usize) -> Result<Vec<Wording<'_>>, WireError> {
    rows::operations(body)
        .take(count_max)
        .map(|operation| wording(body, operation.map_err(malformed)?))
        .collect()
}

fn wording<'a>(body: &'a Bytes, operation: BatchOperation<'a>) -> Result<Wording<'a>, WireError> {
    let number = operation.operation_type.ok_or_else(|| Wording::lacks("operationType"))?;
    if operation.resource_type.is_some_and(|kind| kind != DOCUMENT) {
        return Err(WireError::bad_request("The operations of a batch are on documents only."));
    }
    Ok(Wording {
        verb: OperationVerb::numbered(number)
            .ok_or_else(|| Wording::unknown(&number.to_string()))?,
        id: operation.id.map(Cow::Borrowed),
        key: operation.partition_key.map(Cow::Borrowed),
        body: operation.resource_body.map(|resource| body.slice_ref(resource)),
        if_match: operation.if_match.map(Cow::Borrowed),
        if_none_match: operation.if_none_match.map(Cow::Borrowed),
        minimal: operation.minimal.unwrap_or(false),
    })
}

pub(super) fn write(outcomes: &[Outcome]) -> Result<Vec<u8>, WireError> {
    // Clients show the report of the first failure as the message of the batch.
    let reports: Vec<Option<String>> = outcomes
        .iter()
        .map(|outcome| outcome.error.as_ref().map(|error| error.report().to_string()))
        .collect();
    let results: Vec<rows::OperationResult<'_>> = outcomes
        .iter()
        .zip(&reports)
        .map(|(outcome, report)| result(outcome, report.as_deref()))
        .collect();
    let bodies = results.iter().filter_map(|result| result.resource_body).map(<[u8]>::len);
    let bytes = bodies.sum::<usize>() + results.len() * RESULT_BYTES;
    rows::write(results.iter().map(HybridRow::from), bytes).map_err(malformed)
}

fn result<'a>(outcome: &'a Outcome, report: Option<&'a str>) -> rows::OperationResult<'a> {
    let error = outcome.error.as_ref();
    let substatus = error.map(|error| error.substatus).filter(|substatus| *substatus != 0);
    let retry_after_ms = error.and_then(|error| error.retry_after_ms);
    rows::OperationResult {
        status: Some(i32::from(outcome.status.as_u16())),
        sub_status: substatus.and_then(|substatus| i32::try_from(substatus).ok()),
        etag: outcome.etag.as_ref().map(|etag| etag.as_str()),
        resource_body: report.map(str::as_bytes).or(outcome.body.as_deref()),
        retry_after_ms: retry_after_ms.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX)),
        request_charge: Some(outcome.charge.request_units()),
    }
}

fn malformed(error: HybridRowError) -> WireError {
    WireError::bad_request(error.to_string())
}
