//! Offers: how throughput is spelled. What may be asked for says `model::throughput`.

use model::json::{Object, Value};
use model::throughput::Throughput;

use crate::error::ServiceError;

/// Reads autoscale settings, which requests and offers spell the same.
#[must_use]
pub fn parse_autoscale(settings: &Value) -> Option<Throughput> {
    let policy =
        settings.get("autoUpgradePolicy").and_then(|policy| policy.get("throughputPolicy"));
    let increment_percent = whole(policy.and_then(|policy| policy.get("incrementPercent")));
    whole(settings.get("maxThroughput")).map(|max| Throughput::Autoscale { max, increment_percent })
}

/// Reads the `content` of an offer that a client replaces.
pub(crate) fn parse_content(content: &Value) -> Result<Throughput, ServiceError> {
    let autoscale = content.get("offerAutopilotSettings").filter(|settings| !settings.is_null());
    let parsed = match autoscale {
        Some(settings) => parse_autoscale(settings),
        None => whole(content.get("offerThroughput")).map(Throughput::Manual),
    };
    parsed.ok_or_else(|| {
        ServiceError::invalid("The offer's content must state a throughput as a whole number.")
    })
}

/// The `content` of an offer; `highest` is the highest ever asked for.
pub(crate) fn content(throughput: Throughput, highest: u32) -> Object {
    let mut content = Object::new();
    content.insert("offerThroughput", throughput.rate());
    content.insert("offerIsRUPerMinuteThroughputEnabled", false);
    if let Throughput::Autoscale { max, increment_percent } = throughput {
        let mut settings = Object::from_iter([("maxThroughput", max)]);
        if let Some(percent) = increment_percent {
            let policy = Object::from_iter([("incrementPercent", percent)]);
            let policy = Object::from_iter([("throughputPolicy", Value::Object(policy))]);
            settings.insert("autoUpgradePolicy", policy);
        }
        content.insert("offerAutopilotSettings", settings);
    }
    let history = Object::from_iter([("maxThroughputEverProvisioned", highest)]);
    content.insert("offerMinimumThroughputParameters", history);
    content
}

/// A whole number that fits.
pub(crate) fn whole(value: Option<&Value>) -> Option<u32> {
    value.and_then(Value::as_number)?.as_i64().and_then(|number| u32::try_from(number).ok())
}
