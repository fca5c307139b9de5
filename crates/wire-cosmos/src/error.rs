//! Errors as this protocol writes them.

use http::StatusCode;
use model::json::{Object, Value};
use protocol::error::{Detail, WireError};

use crate::route::PathError;

/// The body that clients parse.
pub(crate) fn body(error: &WireError, activity_id: &str) -> String {
    let context = match &error.detail {
        Detail::Unplanned(_) => "Gateway Failed to Retrieve Query Plan: ",
        Detail::None | Detail::Query(_) | Detail::Plan(_) => "",
    };
    let report = error.report();
    let message = format!("{context}Message: {report}\r\nActivityId: {activity_id}");
    let mut body = Object::from_iter([("code", code(error.status)), ("message", message.as_str())]);
    if let Detail::Plan(plan) = &error.detail {
        body.insert("additionalErrorInfo", plan.to_string());
    }
    Value::Object(body).to_string()
}

/// The word for a status.
pub(crate) fn code(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        408 => "RequestTimeout",
        409 => "Conflict",
        410 => "Gone",
        412 => "PreconditionFailed",
        413 => "RequestEntityTooLarge",
        423 => "Locked",
        424 => "FailedDependency",
        429 => "TooManyRequests",
        449 => "RetryWith",
        503 => "ServiceUnavailable",
        _ => "InternalServerError",
    }
}

impl From<PathError> for WireError {
    fn from(error: PathError) -> WireError {
        let status = match error {
            PathError::Unknown => StatusCode::NOT_FOUND,
            PathError::TooLong
            | PathError::Encoding
            | PathError::Empty
            | PathError::Filter
            | PathError::DirectMode => StatusCode::BAD_REQUEST,
        };
        WireError::new(status, 0, error.to_string())
    }
}
