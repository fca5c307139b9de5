//! Batches as JSON, which all other SDKs use: an array of operations, and one of results.

use bytes::Bytes;
use model::json::{Raw, write_string};

use super::{OperationVerb, Outcome, Wording};
use crate::error::WireError;

/// Up to `count_max` of the operations in a body of canonical form.
pub(super) fn read(body: &Bytes, count_max: usize) -> Result<Vec<Wording<'_>>, WireError> {
    let raw = Raw::trusted(std::str::from_utf8(body).unwrap_or_default());
    raw.elements().take(count_max).map(|raw| wording(body, raw)).collect()
}

fn wording<'a>(body: &'a Bytes, raw: Raw<'a>) -> Result<Wording<'a>, WireError> {
    let text = |name: &str| raw.get(name).and_then(Raw::as_str);
    let verb = text("operationType").ok_or_else(|| Wording::lacks("operationType"))?;
    let resource = raw.get("resourceBody");
    Ok(Wording {
        verb: OperationVerb::named(&verb).ok_or_else(|| Wording::unknown(&verb))?,
        id: text("id"),
        key: text("partitionKey"),
        body: resource.map(|resource| body.slice_ref(resource.text().as_bytes())),
        if_match: text("ifMatch"),
        if_none_match: text("ifNoneMatch"),
        minimal: raw.get("minimalReturnPreference").and_then(Raw::as_bool).unwrap_or(false),
    })
}

pub(super) fn write(outcomes: &[Outcome]) -> String {
    let lines: Vec<String> = outcomes.iter().map(line).collect();
    format!("[{}]", lines.join(","))
}

fn line(outcome: &Outcome) -> String {
    let Outcome { status, charge, etag, body, error } = outcome;
    let mut out = format!("{{\"statusCode\":{}", status.as_u16());
    if let Some(error) = error {
        out.push_str(&format!(",\"subStatusCode\":{}", error.substatus));
    }
    out.push_str(&format!(",\"requestCharge\":{charge}"));
    if let Some(etag) = etag {
        out.push_str(",\"eTag\":");
        write_string(&mut out, etag.as_str());
    }
    if let Some(body) = body {
        out.push_str(",\"resourceBody\":");
        out.push_str(std::str::from_utf8(body).unwrap_or("null"));
    }
    if let Some(error) = error {
        if let Some(ms) = error.retry_after_ms {
            out.push_str(&format!(",\"retryAfterMilliseconds\":{ms}"));
        }
        out.push_str(",\"message\":");
        write_string(&mut out, &error.message);
    }
    out.push('}');
    out
}
