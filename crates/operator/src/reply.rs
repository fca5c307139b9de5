//! Answers as bytes.

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use serde_json::Value;

pub type OperatorReply = Response<Bytes>;

#[must_use]
pub fn json(status: StatusCode, body: &Value) -> OperatorReply {
    with_type(status, Bytes::from(body.to_string()), "application/json")
}

/// An error in the shape of the Cosmos protocol's, which clients expect from whatever
/// answers.
#[must_use]
pub fn problem(status: StatusCode, code: &str, message: &str) -> OperatorReply {
    json(status, &serde_json::json!({ "code": code, "message": message }))
}

pub(crate) fn with_type(
    status: StatusCode,
    body: Bytes,
    content_type: &'static str,
) -> OperatorReply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

pub(crate) fn not_found() -> OperatorReply {
    problem(StatusCode::NOT_FOUND, "NotFound", "There is nothing at this path.")
}

pub(crate) fn not_allowed(allowed: &'static str) -> OperatorReply {
    let message = format!("This path takes {allowed}.");
    let mut refusal = problem(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", &message);
    refusal.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    refusal
}

pub(crate) fn unauthorised() -> OperatorReply {
    let message = "This path takes the account key as a bearer token.";
    let mut refusal = problem(StatusCode::UNAUTHORIZED, "Unauthorized", message);
    refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    refusal
}

pub(crate) fn starting() -> OperatorReply {
    let message = "The server is starting.";
    problem(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
}
