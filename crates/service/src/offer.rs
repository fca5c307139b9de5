//! Offers: the throughput that was asked for.

use model::json::{Object, Value};
use model::limits::{Limits, Provisioned};

use crate::error::ServiceError;

/// Throughput in request units per second, as a client asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throughput {
    Manual(u32),
    /// Scales by itself up to `max`, which may grow by so many percent when it is
    /// used up. That wish is kept and not acted on.
    Autoscale {
        max: u32,
        increment_percent: Option<u32>,
    },
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
            Throughput::Autoscale { max, .. } => {
                (max, limits.autoscale_throughput_min, limits.autoscale_throughput_step)
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
            Throughput::Autoscale { max, .. } => Provisioned::Autoscale(max),
        }
    }

    /// Reads the `content` of an offer that a client replaces.
    pub(crate) fn parse_content(content: &Value) -> Result<Throughput, ServiceError> {
        let autoscale =
            content.get("offerAutopilotSettings").filter(|settings| !settings.is_null());
        let parsed = match autoscale {
            Some(settings) => Throughput::parse_autoscale(settings),
            None => whole(content.get("offerThroughput")).map(Throughput::Manual),
        };
        parsed.ok_or_else(|| {
            ServiceError::invalid("The offer's content must state a throughput as a whole number.")
        })
    }

    /// Reads autoscale settings, which requests and offers spell the same.
    #[must_use]
    pub fn parse_autoscale(settings: &Value) -> Option<Throughput> {
        let policy =
            settings.get("autoUpgradePolicy").and_then(|policy| policy.get("throughputPolicy"));
        let increment_percent = whole(policy.and_then(|policy| policy.get("incrementPercent")));
        whole(settings.get("maxThroughput"))
            .map(|max| Throughput::Autoscale { max, increment_percent })
    }

    /// The `content` of an offer; `highest` is the highest ever asked for.
    pub(crate) fn content(self, highest: u32) -> Object {
        let mut content = Object::new();
        content.insert("offerThroughput", self.rate());
        content.insert("offerIsRUPerMinuteThroughputEnabled", false);
        if let Throughput::Autoscale { max, increment_percent } = self {
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

    pub(crate) fn rate(self) -> u32 {
        let (Throughput::Manual(rate) | Throughput::Autoscale { max: rate, .. }) = self;
        rate
    }
}

fn whole(value: Option<&Value>) -> Option<u32> {
    value.and_then(Value::as_number)?.as_i64().and_then(|number| u32::try_from(number).ok())
}
