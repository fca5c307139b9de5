//! Offers: the throughput that was asked for.

use model::json::{Object, Value};
use model::limits::{Limits, Provisioned};

use crate::error::ServiceError;

/// Throughput in request units per second, as a client asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throughput {
    Manual(u32),
    /// Scales by itself up to this.
    Autoscale(u32),
}

impl Throughput {
    /// What a container gets whose creator said nothing.
    pub(crate) fn default_of(limits: &Limits) -> Throughput {
        Throughput::Manual(limits.throughput_min)
    }

    /// Checks range and step, in the service's words. Without a partition key
    /// there can be one partition only, and no more than it can serve.
    pub(crate) fn check(self, limits: &Limits, keyless: bool) -> Result<Throughput, ServiceError> {
        let (value, min, step) = match self {
            Throughput::Manual(value) => (value, limits.throughput_min, limits.throughput_step),
            Throughput::Autoscale(value) => {
                (value, limits.autoscale_throughput_min, limits.autoscale_throughput_step)
            }
        };
        let max = if keyless { limits.keyless_throughput_max } else { limits.throughput_max };
        if (min..=max).contains(&value) && value.is_multiple_of(step) {
            return Ok(self);
        }
        Err(ServiceError::invalid(format!(
            "The offer should have valid throughput values between {min} and {max} inclusive in increments of {step}."
        )))
    }

    /// What a container with this offer is created with.
    pub(crate) fn provisioned(self) -> Provisioned {
        match self {
            Throughput::Manual(rate) => Provisioned::Manual(rate),
            Throughput::Autoscale(rate) => Provisioned::Autoscale(rate),
        }
    }

    /// Reads the `content` of an offer that a client replaces.
    pub(crate) fn parse_content(content: &Value) -> Result<Throughput, ServiceError> {
        let rate = |value: Option<&Value>| {
            value.and_then(Value::as_number)?.as_i64().and_then(|n| u32::try_from(n).ok())
        };
        let autoscale =
            content.get("offerAutopilotSettings").filter(|settings| !settings.is_null());
        let parsed = match autoscale {
            Some(settings) => rate(settings.get("maxThroughput")).map(Throughput::Autoscale),
            None => rate(content.get("offerThroughput")).map(Throughput::Manual),
        };
        parsed.ok_or_else(|| {
            ServiceError::invalid("The offer's content must state a throughput as a whole number.")
        })
    }

    /// The `content` of an offer; `highest` is the highest ever asked for.
    pub(crate) fn content(self, highest: u32) -> Object {
        let mut content = Object::new();
        let (Throughput::Manual(rate) | Throughput::Autoscale(rate)) = self;
        content.insert("offerThroughput", rate);
        content.insert("offerIsRUPerMinuteThroughputEnabled", false);
        if let Throughput::Autoscale(max) = self {
            content.insert("offerAutopilotSettings", Object::from_iter([("maxThroughput", max)]));
        }
        let history = Object::from_iter([("maxThroughputEverProvisioned", highest)]);
        content.insert("offerMinimumThroughputParameters", history);
        content
    }

    pub(crate) fn rate(self) -> u32 {
        let (Throughput::Manual(rate) | Throughput::Autoscale(rate)) = self;
        rate
    }
}
