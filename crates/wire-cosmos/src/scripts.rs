//! Stored procedures, and the names of triggers.

use http::StatusCode;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use service::{ExecuteProcedure, Link, ProcedureResult, ServiceError};

use crate::gateway::Call;
use crate::reply::Answer;
use crate::system_properties;
use protocol::error::WireError;

const ENABLE_LOGGING: &str = "x-ms-documentdb-script-enable-logging";
/// What a script printed, percent-encoded.
pub(crate) const LOG: &str = "x-ms-documentdb-script-log-results";

/// As `encodeURIComponent` of JavaScript has it.
const LOG_ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

pub(crate) const PRE_TRIGGER: &str = "x-ms-documentdb-pre-trigger-include";
pub(crate) const POST_TRIGGER: &str = "x-ms-documentdb-post-trigger-include";

/// The trigger that a client names. The service runs one before and one after a write.
pub(crate) fn trigger(call: &Call<'_>, header: &str) -> Result<Option<String>, WireError> {
    let name = call.headers.text(header).map(str::trim).filter(|name| !name.is_empty());
    if name.is_some_and(|name| name.contains(',')) {
        let message = format!("Currently only one trigger is permitted per operation: {header}.");
        return Err(WireError::bad_request(message));
    }
    Ok(name.map(str::to_owned))
}

/// Runs a stored procedure.
pub(crate) async fn execute(call: &Call<'_>, link: Link) -> Result<Answer, WireError> {
    let (container, name) = link.split().ok_or_else(|| call.not_allowed())?;
    if trigger(call, PRE_TRIGGER)?.or(trigger(call, POST_TRIGGER)?).is_some() {
        return Err(WireError::bad_request("One of the specified inputs is invalid"));
    }
    let procedure = ExecuteProcedure {
        name,
        key: call.headers.partition_key()?,
        arguments: call.json_text()?,
        session: call.headers.session()?,
        system: system_properties::of_items(),
    };
    let wants_log = call.headers.flag(ENABLE_LOGGING);
    let response = call.try_container(container, procedure).await.map_err(|failure| {
        let mut script_log = None;
        if let ServiceError::Script { log, .. } = &failure.error {
            script_log = wants_log.then(|| encoded(log));
        }
        WireError { script_log, ..WireError::from(failure) }
    })?;
    let ProcedureResult { body, log } = response.reply;
    let mut answer = Answer::json(StatusCode::OK, body.unwrap_or_default());
    if wants_log {
        answer.set(LOG, &encoded(&log));
    }
    Ok(answer.with_meta(&response.meta))
}

fn encoded(log: &str) -> String {
    utf8_percent_encode(log, LOG_ENCODED).to_string()
}
