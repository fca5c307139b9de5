//! Offers: the format of throughput, and what is stored about it.
//!
//! What may be requested is decided by `model::throughput`; the stored form is specified in
//! `docs/formats/catalogue.md`.

use cluster::ThroughputBucket;
use model::json::{Object, Value};
use model::throughput::Throughput;

use crate::catalogue::Record;
use crate::error::ServiceError;

/// Autoscale scales down to one part in this many of its maximum.
const AUTOSCALE_IDLE_PART: u32 = 10;

/// Stands in the content of an offer while it is pending. Reads of an offer have a header for
/// this; those who find it by a query, as the Python SDK does, have its text only.
const PENDING: &str = "isOfferReplacePending";

/// The throughput of a container or database, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) throughput: Throughput,
    /// The highest that was ever requested.
    pub(crate) highest: u32,
    /// Whether a client requested it; a default is not enforced.
    pub(crate) asked: bool,
    /// Whether splits are needed before all of it can be used.
    pub(crate) pending: bool,
    pub(crate) buckets: Vec<ThroughputBucket>,
    /// When the buckets were last changed.
    pub(crate) buckets_at_secs: u64,
}

/// What clients see of an offer besides its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferStatus {
    /// The smallest throughput that it can be changed to.
    pub minimum: u32,
    /// Whether a change of it is still being carried out.
    pub pending: bool,
}

/// The sizes that collections were once sold in. They are only names now: the content of an
/// offer decides its throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferType(&'static str);

impl OfferType {
    /// No size at all, as for all later offers.
    pub(crate) const NONE: OfferType = OfferType("Invalid");

    #[must_use]
    pub fn parse(name: &str) -> Option<OfferType> {
        let known = ["S1", "S2", "S3", OfferType::NONE.0].into_iter();
        known.map(OfferType).find(|known| known.0.eq_ignore_ascii_case(name))
    }

    pub(crate) fn as_str(self) -> &'static str {
        self.0
    }
}

/// The other kind of throughput that an offer is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    ToAutoscale,
    ToManual,
}

/// The resource id of what an offer is for.
pub(crate) fn offer_owner(offer: &Record) -> Option<&str> {
    offer.definition.get("offerResourceId").and_then(Value::as_str)
}

impl Offer {
    pub(crate) fn new(throughput: Throughput, asked: bool) -> Offer {
        Offer {
            throughput,
            highest: throughput.rate(),
            asked,
            pending: false,
            buckets: Vec::new(),
            buckets_at_secs: 0,
        }
    }

    pub(crate) fn read(record: &Record) -> Result<Offer, ServiceError> {
        let content = record.definition.get("content").unwrap_or(&Value::Null);
        let history = content.get("offerMinimumThroughputParameters");
        let highest =
            whole(history.and_then(|history| history.get("maxThroughputEverProvisioned")));
        let private = &record.private;
        let buckets = private.get("buckets").and_then(Value::as_array);
        let buckets: Option<Vec<_>> = buckets
            .map(|list| list.iter().map(parse_bucket).collect())
            .unwrap_or_else(|| Some(Vec::new()));
        let damaged = || ServiceError::internal(format!("offer {} is malformed", record.rid));
        Ok(Offer {
            // It was checked when it was written.
            throughput: parse_content(content, 0)?,
            highest: highest.unwrap_or(0),
            asked: private.get("asked").and_then(Value::as_bool).unwrap_or(false),
            pending: content.get(PENDING).and_then(Value::as_bool).unwrap_or(false),
            buckets: buckets.ok_or_else(damaged)?,
            buckets_at_secs: whole(private.get("bucketsAt")).map_or(0, u64::from),
        })
    }

    pub(crate) fn write(&self, record: &mut Record) {
        record.definition.insert("content", content(self));
        let private = &mut record.private;
        private.insert("asked", self.asked);
        if !self.buckets.is_empty() || self.buckets_at_secs > 0 {
            private.insert("buckets", self.buckets.iter().map(bucket_value).collect::<Value>());
            private.insert("bucketsAt", i64::try_from(self.buckets_at_secs).unwrap_or(i64::MAX));
        }
    }

    /// The rate it has from now on.
    pub(crate) fn change(&mut self, throughput: Throughput) {
        self.throughput = throughput;
        self.highest = self.highest.max(throughput.rate());
        self.asked = true;
    }
}

/// Reads autoscale settings, which requests and offers spell the same.
pub fn parse_autoscale(settings: &Value, autoscale_min: u32) -> Result<Throughput, ServiceError> {
    let max = integer(settings.get("maxThroughput")).ok_or_else(|| {
        ServiceError::invalid("The autoscale settings must state maxThroughput as a whole number.")
    })?;
    if max < 0 {
        return Err(ServiceError::invalid(format!(
            "Requested throughput {max} is less than required minimum throughput {autoscale_min}."
        )));
    }
    let policy =
        settings.get("autoUpgradePolicy").and_then(|policy| policy.get("throughputPolicy"));
    let percent = policy.and_then(|policy| policy.get("incrementPercent"));
    let increment_percent = match percent.filter(|percent| !percent.is_null()) {
        None => None,
        percent => Some(whole(percent).ok_or_else(|| {
            ServiceError::invalid(
                "The incrementPercent of autoscale settings must be a whole number.",
            )
        })?),
    };
    Ok(Throughput::Autoscale { max: saturated(max), increment_percent })
}

/// Reads a manual throughput. Values out of range are refused when it is checked.
#[must_use]
pub fn manual_throughput(rate: i64) -> Throughput {
    Throughput::Manual(saturated(rate))
}

/// Reads the `content` of an offer. The error for a negative autoscale maximum names
/// `autoscale_min`; everything else is checked later.
pub(crate) fn parse_content(
    content: &Value,
    autoscale_min: u32,
) -> Result<Throughput, ServiceError> {
    let autoscale = content.get("offerAutopilotSettings").filter(|settings| !settings.is_null());
    if let Some(settings) = autoscale {
        return parse_autoscale(settings, autoscale_min);
    }
    integer(content.get("offerThroughput")).map(manual_throughput).ok_or_else(|| {
        ServiceError::invalid("The offer's content must state a throughput as a whole number.")
    })
}

/// What clients read of an offer.
fn content(offer: &Offer) -> Object {
    let mut content = Object::new();
    let shown = match offer.throughput {
        Throughput::Manual(rate) => rate,
        // What an idle one has scaled down to.
        Throughput::Autoscale { max, .. } => max / AUTOSCALE_IDLE_PART,
    };
    content.insert("offerThroughput", shown);
    content.insert("offerIsRUPerMinuteThroughputEnabled", false);
    if let Throughput::Autoscale { max, increment_percent } = offer.throughput {
        let mut settings = Object::from_iter([("maxThroughput", max)]);
        if let Some(percent) = increment_percent {
            let policy = Object::from_iter([("incrementPercent", percent)]);
            let policy = Object::from_iter([("throughputPolicy", Value::Object(policy))]);
            settings.insert("autoUpgradePolicy", policy);
        }
        content.insert("offerAutopilotSettings", settings);
    }
    let history = Object::from_iter([("maxThroughputEverProvisioned", offer.highest)]);
    content.insert("offerMinimumThroughputParameters", history);
    if offer.pending {
        content.insert(PENDING, true);
    }
    content
}

fn bucket_value(bucket: &ThroughputBucket) -> Value {
    Object::from_iter([("id", bucket.id), ("maxThroughputPercentage", bucket.percent_max)]).into()
}

/// In the format of the service's own management interface.
pub(crate) fn parse_bucket(value: &Value) -> Option<ThroughputBucket> {
    let id = whole(value.get("id"))?;
    let percent_max = whole(value.get("maxThroughputPercentage"))?;
    Some(ThroughputBucket { id, percent_max })
}

/// A whole number that fits.
pub(crate) fn whole(value: Option<&Value>) -> Option<u32> {
    integer(value).and_then(|number| u32::try_from(number).ok())
}

fn integer(value: Option<&Value>) -> Option<i64> {
    value.and_then(Value::as_number)?.as_i64()
}

fn saturated(rate: i64) -> u32 {
    u32::try_from(rate.max(0)).unwrap_or(u32::MAX)
}
