//! Resource tokens for the permissions of an answer.

use bytes::Bytes;
use model::json::{self, Value};
use model::position::Timestamp;
use protocol::error::WireError;
use protocol::token::issue;
use service::Kind;

use crate::gateway::Call;

/// How long a token is valid unless its reader asks for less or more.
const LIFE_SECS_DEFAULT: u64 = 3_600;
const EXPIRY: &str = "x-ms-documentdb-expiry-seconds";

/// Adds tokens to the permissions of an answer.
#[derive(Debug)]
pub(crate) struct Issuer {
    until: Timestamp,
}

impl Issuer {
    /// The issuer for answers about resources of a kind; `None` if they get no tokens.
    /// Called before anything is done, as it may refuse the request.
    pub(crate) fn of(call: &Call<'_>, kind: Kind) -> Result<Option<Issuer>, WireError> {
        if kind != Kind::Permission {
            return Ok(None);
        }
        let until = call.now().secs() + life_secs(call)?;
        Ok(Some(Issuer { until: Timestamp::from_millis(until * 1000) }))
    }

    /// The permission with a token, if it grants anything.
    pub(crate) async fn with_token(&self, call: &Call<'_>, body: Bytes) -> Bytes {
        runtime::short_work(1);
        let Ok(permission) = json::parse(&body) else { return body };
        let Some(grant) = call.grant(&permission).await else { return body };
        let Value::Object(mut permission) = permission else { return body };
        permission.insert("_token", issue(&call.signing_key(), &grant, self.until));
        Value::Object(permission).to_string().into()
    }
}

fn life_secs(call: &Call<'_>) -> Result<u64, WireError> {
    let Some(text) = call.headers.text(EXPIRY) else { return Ok(LIFE_SECS_DEFAULT) };
    let limits = call.limits();
    let (min, max) = (limits.resource_token_secs_min, limits.resource_token_secs_max);
    let secs = text.trim().parse().ok().filter(|secs| (min..=max).contains(secs));
    secs.ok_or_else(|| {
        WireError::bad_request(format!(
            "The value of the header {EXPIRY} must be a number of seconds from {min} to {max}."
        ))
    })
}
