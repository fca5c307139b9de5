//! The clock of the server: `/_orrery/clock`.
//!
//! A GET tells the time. A POST sets the clock ahead, where the server was started with one
//! that can be.

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use service::{Operator, ServerTime};

use crate::error::OperatorError;
use crate::request::parse;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Wanted {
    advance_seconds: u64,
}

pub(crate) fn show(operator: &Operator<'_>) -> Result<Value, OperatorError> {
    Ok(describe(operator.time()?))
}

pub(crate) async fn advance(operator: Operator<'_>, body: &Bytes) -> Result<Value, OperatorError> {
    let Wanted { advance_seconds } = parse(body, r#"{"advanceSeconds":2592000}"#)?;
    Ok(describe(operator.advance_time(Duration::from_secs(advance_seconds)).await?))
}

fn describe(ServerTime { now, ahead }: ServerTime) -> Value {
    json!({
        "virtual": ahead.is_some(),
        "unixMs": now.as_unix_ms(),
        "aheadSeconds": ahead.unwrap_or_default().as_secs(),
    })
}
