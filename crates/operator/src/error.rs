//! Why a request was refused, and the one mapping of that to status codes.

use http::StatusCode;
use service::{Remedy, ServiceError};

use crate::backup::BackupRefused;
use crate::keys::KeyNotKept;
use crate::reply::{OperatorReply, json, problem};
use crate::scripts;

#[derive(Debug, thiserror::Error)]
pub(crate) enum OperatorError {
    /// The request cannot be understood.
    #[error("{0}")]
    Malformed(String),
    #[error(transparent)]
    Backup(#[from] BackupRefused),
    #[error(transparent)]
    Key(#[from] KeyNotKept),
    #[error(transparent)]
    Service(#[from] ServiceError),
}

impl OperatorError {
    pub(crate) fn malformed(message: impl Into<String>) -> OperatorError {
        OperatorError::Malformed(message.into())
    }

    pub(crate) fn reply(&self) -> OperatorReply {
        let (status, code) = self.status();
        if let OperatorError::Service(ServiceError::Script { fault, .. }) = self {
            let mut body = scripts::failed(fault);
            body["code"] = code.into();
            return json(status, &body);
        }
        problem(status, code, &self.to_string())
    }

    fn status(&self) -> (StatusCode, &'static str) {
        let error = match self {
            OperatorError::Malformed(_) => return (StatusCode::BAD_REQUEST, "BadRequest"),
            OperatorError::Backup(BackupRefused::Conflict(_)) => {
                return (StatusCode::CONFLICT, "Conflict");
            }
            OperatorError::Key(_) => {
                return (StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError");
            }
            OperatorError::Backup(BackupRefused::Service(error))
            | OperatorError::Service(error) => error,
        };
        match (error, error.remedy()) {
            (ServiceError::Scaling, _) => (StatusCode::LOCKED, "Locked"),
            (ServiceError::Throttled { .. }, _) => {
                (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests")
            }
            (_, Remedy::Correct) => (StatusCode::BAD_REQUEST, "BadRequest"),
            (_, Remedy::Reread | Remedy::Refresh) => (StatusCode::NOT_FOUND, "NotFound"),
            (_, Remedy::Retry) => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
            (_, Remedy::Operator) => (StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError"),
        }
    }
}
