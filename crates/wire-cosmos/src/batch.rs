//! Transactional batches and bulk requests, in their JSON form.

use bytes::Bytes;
use http::StatusCode;
use model::charge::Charge;
use model::json::{self, Raw, write_string};
use model::name::ItemId;
use model::partition_key::PartitionKey;
use model::session::SessionToken;
use service::{
    BulkOperation, BulkPace, BulkResult, ContainerAction, EffectKind, EtagMatch, Failure,
    ItemOperation, ItemResult, Link, Reply, ServiceError,
};

use crate::error::WireError;
use crate::gateway::Call;
use crate::headers::{BATCH_ATOMIC, BATCH_CONTINUE};
use crate::items::range_id;
use crate::reply::{Answer, status_of};

/// First byte of a batch in the .NET SDK's HybridRow encoding.
const HYBRID_ROW: u8 = 0x81;

/// One operation as it stands in the body.
#[derive(Debug)]
struct Parsed {
    operation: ItemOperation,
    key: Option<PartitionKey>,
    minimal: bool,
}

pub(crate) async fn answer(call: &Call<'_>, container: Link) -> Result<Answer, WireError> {
    let session = call.headers.session()?;
    let body = call.body()?;
    if body.first() == Some(&HYBRID_ROW) {
        return Err(WireError::later("A batch in HybridRow encoding (the .NET SDK's)"));
    }
    let raw = json::parse_raw(body).map_err(ServiceError::from)?;
    let mut parsed =
        raw.elements().map(|raw| parse(body, raw)).collect::<Result<Vec<Parsed>, WireError>>()?;
    if call.headers.wants_minimal() {
        parsed.iter_mut().for_each(|parsed| parsed.minimal = true);
    }
    if call.headers.flag(BATCH_ATOMIC) {
        atomic(call, container, parsed, session).await
    } else {
        bulk(call, container, parsed).await
    }
}

async fn atomic(
    call: &Call<'_>,
    container: Link,
    parsed: Vec<Parsed>,
    session: Option<SessionToken>,
) -> Result<Answer, WireError> {
    let key = call.headers.partition_key()?;
    let key =
        key.ok_or_else(|| WireError::bad_request("A transactional batch needs a partition key."))?;
    let minimal: Vec<bool> = parsed.iter().map(|parsed| parsed.minimal).collect();
    let operations = parsed.into_iter().map(|parsed| parsed.operation).collect();
    let action = ContainerAction::Batch { key, operations, session };
    match call.try_container(container, action).await {
        Ok(response) => {
            let Reply::Batch { results } = &response.reply else {
                return Ok(Answer::empty(StatusCode::INTERNAL_SERVER_ERROR));
            };
            let lines =
                results.iter().zip(&minimal).map(|(result, minimal)| done(result, *minimal));
            Ok(Answer::json(StatusCode::OK, array(lines)).with_receipt(&response.receipt))
        }
        Err(Failure { error: ServiceError::Batch { at, error }, receipt }) => {
            let lines = failed(at, *error, receipt.charge, minimal.len());
            Ok(Answer::json(StatusCode::MULTI_STATUS, lines).with_receipt(&receipt))
        }
        Err(failure) => Err(failure.into()),
    }
}

async fn bulk(call: &Call<'_>, container: Link, parsed: Vec<Parsed>) -> Result<Answer, WireError> {
    let pace = match call.headers.flag(BATCH_CONTINUE) {
        true => BulkPace::All,
        false => BulkPace::UpToFailure,
    };
    let minimal: Vec<bool> = parsed.iter().map(|parsed| parsed.minimal).collect();
    let keyed = |parsed: Parsed| {
        let key = parsed
            .key
            .ok_or_else(|| WireError::bad_request("An operation has no partitionKey."))?;
        Ok(BulkOperation { key, operation: parsed.operation })
    };
    let operations = parsed.into_iter().map(keyed).collect::<Result<Vec<_>, WireError>>()?;
    let action = ContainerAction::Bulk { range: range_id(call)?, operations, pace };
    let response = call.container(container, action).await.map_err(plainly_missing)?;
    let Reply::Bulk { results } = response.reply else {
        return Ok(Answer::empty(StatusCode::INTERNAL_SERVER_ERROR));
    };
    let all_done = results.iter().all(|bulk| bulk.result.is_ok());
    let lines =
        results.into_iter().zip(minimal).map(
            |(BulkResult { result, charge }, minimal)| match result {
                Ok(result) => done(&result, minimal),
                Err(error) => refused(&error.into(), charge),
            },
        );
    let status = if all_done { StatusCode::OK } else { StatusCode::MULTI_STATUS };
    Ok(Answer::json(status, array(lines)).with_receipt(&response.receipt))
}

/// Of a bulk request the service does not say what is missing.
fn plainly_missing(error: WireError) -> WireError {
    if error.status == StatusCode::NOT_FOUND { WireError { substatus: 0, ..error } } else { error }
}

fn parse(body: &Bytes, raw: Raw<'_>) -> Result<Parsed, WireError> {
    let text = |name: &str| raw.get(name).and_then(Raw::as_str);
    let missing = |name: &str| WireError::bad_request(format!("An operation has no '{name}'."));
    let id = || {
        let id = text("id").ok_or_else(|| missing("id"))?;
        ItemId::parse(&id).map_err(|error| WireError::bad_request(error.to_string()))
    };
    let document = || -> Result<Bytes, WireError> {
        let resource = raw.get("resourceBody").ok_or_else(|| missing("resourceBody"))?;
        Ok(body.slice_ref(resource.text().as_bytes()))
    };
    let etag = |name: &str| text(name).map(|value| EtagMatch(value.into_owned()));
    let if_match = etag("ifMatch");
    let kind = text("operationType").ok_or_else(|| missing("operationType"))?;
    let operation = match kind.as_ref() {
        "Create" => ItemOperation::Create { body: document()? },
        "Upsert" => ItemOperation::Upsert { body: document()?, if_match },
        "Read" => ItemOperation::Read { id: id()?, if_none_match: etag("ifNoneMatch") },
        "Replace" => ItemOperation::Replace { id: id()?, body: document()?, if_match },
        "Delete" => ItemOperation::Delete { id: id()?, if_match },
        "Patch" => ItemOperation::Patch { id: id()?, body: document()?, if_match },
        other => {
            return Err(WireError::bad_request(format!(
                "'{other}' is not an operation of a batch."
            )));
        }
    };
    let key = text("partitionKey")
        .map(|key| PartitionKey::parse_header(&key).map_err(WireError::key))
        .transpose()?;
    let minimal = raw.get("minimalReturnPreference").and_then(Raw::as_bool).unwrap_or(false);
    Ok(Parsed { operation, key, minimal })
}

fn array(lines: impl Iterator<Item = String>) -> String {
    let lines: Vec<String> = lines.collect();
    format!("[{}]", lines.join(","))
}

fn done(result: &ItemResult, minimal: bool) -> String {
    let status = status_of(result.kind).as_u16();
    let mut out = format!("{{\"statusCode\":{status},\"requestCharge\":{}", result.charge);
    if let Some(etag) = &result.etag {
        out.push_str(",\"eTag\":");
        write_string(&mut out, etag.as_str());
    }
    let wrote = matches!(result.kind, EffectKind::Created | EffectKind::Replaced);
    if let Some(body) = result.body.as_ref().filter(|_| !(minimal && wrote)) {
        out.push_str(",\"resourceBody\":");
        out.push_str(std::str::from_utf8(body).unwrap_or("null"));
    }
    out.push('}');
    out
}

fn refused(error: &WireError, charge: Charge) -> String {
    let (status, substatus) = (error.status.as_u16(), error.substatus);
    let mut out = format!(
        "{{\"statusCode\":{status},\"subStatusCode\":{substatus},\"requestCharge\":{charge}"
    );
    if let Some(ms) = error.retry_after_ms {
        out.push_str(&format!(",\"retryAfterMilliseconds\":{ms}"));
    }
    out.push_str(",\"message\":");
    write_string(&mut out, &error.message);
    out.push('}');
    out
}

/// The operation that failed carries its error and the charge, all others depended on it.
fn failed(at: usize, error: ServiceError, charge: Charge, count: usize) -> String {
    let error = WireError::from(error);
    let dependency = WireError::from(ServiceError::Dependency);
    array((0..count).map(|position| {
        if position == at { refused(&error, charge) } else { refused(&dependency, Charge::ZERO) }
    }))
}
