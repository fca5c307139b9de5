//! The keys of the account: `/_orrery/keys`.
//!
//! A GET says which there are, and never what they are: a client that has learned one of them must
//! not learn the others. A POST replaces one by a key that the server makes, and is
//! the only answer that has it.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use service::identity::{AccountKeyKind, AccountKeys};

use crate::error::OperatorError;
use crate::process::Process;
use crate::request::parse;

/// Why a key was not replaced; the old one is still valid.
#[derive(Debug, thiserror::Error)]
#[error("the new key could not be kept, so the old one stays: {0}")]
pub struct KeyNotKept(pub String);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    rotate: String,
}

pub(crate) fn show(keys: &AccountKeys) -> Value {
    let there_is = |kind: AccountKeyKind| (kind.name().to_owned(), json!(keys.get(kind).is_some()));
    Value::Object(AccountKeyKind::ALL.into_iter().map(there_is).collect())
}

pub(crate) async fn rotate(process: &dyn Process, body: &Bytes) -> Result<Value, OperatorError> {
    let Wanted { rotate } = parse(body, r#"{"rotate":"primary"}"#)?;
    let kind = AccountKeyKind::from_name(&rotate).ok_or_else(|| {
        let known = AccountKeyKind::ALL.map(AccountKeyKind::name).join(", ");
        OperatorError::malformed(format!("'{rotate}' is none of {known}"))
    })?;
    let key = process.rotate_key(kind).await?;
    tracing::warn!(kind = kind.name(), "a key of the account was replaced");
    Ok(json!({ "kind": kind.name(), "key": key.reveal() }))
}
