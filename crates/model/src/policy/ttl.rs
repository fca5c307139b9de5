//! Time to live: when an item expires.
//!
//! No expiry date is stored. It is computed from the item's `_ts`, its own `ttl` and the
//! container's current default, so that a changed default applies to every item at once.

use std::num::NonZeroU32;

use super::PolicyError;
use super::fields::Fields;
use crate::json::{JsonKind, Raw, Value};

/// The largest ttl the service takes, in seconds.
const TTL_SECONDS_MAX: i64 = i32::MAX as i64;

/// A container's `defaultTtl`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeToLive {
    /// No `defaultTtl`: nothing expires, whatever the items say.
    #[default]
    Off,
    /// -1: only items with a `ttl` of their own expire.
    Never,
    /// Items expire this many seconds after their last change.
    After(NonZeroU32),
}

/// An item's own `ttl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnTtl {
    /// -1: never, although the container has a default.
    Never,
    After(NonZeroU32),
}

/// A container's `analyticalStorageTtl`: kept for the client, since there is no analytical
/// store here to apply it to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnalyticalTtl {
    /// 0: the analytical store is off.
    Off,
    /// -1: kept for ever.
    Never,
    After(NonZeroU32),
}

/// When an item expires, in seconds since 1970; `None` is never.
///
/// The item is gone once the clock reaches this second.
#[must_use]
pub fn expires_at(ts_secs: u64, own: Option<OwnTtl>, default: TimeToLive) -> Option<u64> {
    let ttl = match (default, own) {
        (TimeToLive::Off, _) | (_, Some(OwnTtl::Never)) | (TimeToLive::Never, None) => None,
        (_, Some(OwnTtl::After(ttl))) | (TimeToLive::After(ttl), None) => Some(ttl),
    };
    ttl.map(|ttl| ts_secs.saturating_add(u64::from(ttl.get())))
}

impl TimeToLive {
    pub(super) fn read(container: &Fields<'_>) -> Result<TimeToLive, PolicyError> {
        match container.integer("defaultTtl")? {
            None => Ok(TimeToLive::Off),
            Some(-1) => Ok(TimeToLive::Never),
            Some(ttl) => seconds(ttl).map(TimeToLive::After),
        }
    }

    pub(super) fn to_value(self) -> Option<Value> {
        match self {
            TimeToLive::Off => None,
            TimeToLive::Never => Some(Value::from(-1_i64)),
            TimeToLive::After(ttl) => Some(Value::from(ttl.get())),
        }
    }
}

impl OwnTtl {
    /// Reads the value of an item's `ttl` property.
    pub fn parse(value: Raw<'_>) -> Result<OwnTtl, PolicyError> {
        let refused = || PolicyError::Ttl { ttl: shown(value) };
        let ttl = value.as_number().and_then(|number| number.as_i64()).ok_or_else(refused)?;
        match ttl {
            -1 => Ok(OwnTtl::Never),
            ttl => seconds(ttl).map(OwnTtl::After),
        }
    }

    /// Finds and reads the `ttl` of an item.
    pub fn of_item(item: Raw<'_>) -> Result<Option<OwnTtl>, PolicyError> {
        item.get("ttl").map(OwnTtl::parse).transpose()
    }

    /// The number a client would write, as a compact field of a record.
    #[must_use]
    pub fn as_seconds(self) -> i32 {
        match self {
            OwnTtl::Never => -1,
            OwnTtl::After(ttl) => {
                i32::try_from(ttl.get()).expect("a ttl is at most the largest i32")
            }
        }
    }

    /// The inverse of [`OwnTtl::as_seconds`]; `None` for what it never gives.
    #[must_use]
    pub fn from_seconds(seconds: i32) -> Option<OwnTtl> {
        match seconds {
            -1 => Some(OwnTtl::Never),
            _ => u32::try_from(seconds).ok().and_then(NonZeroU32::new).map(OwnTtl::After),
        }
    }
}

impl AnalyticalTtl {
    pub(super) fn read(container: &Fields<'_>) -> Result<Option<AnalyticalTtl>, PolicyError> {
        Ok(match container.integer("analyticalStorageTtl")? {
            None => None,
            Some(0) => Some(AnalyticalTtl::Off),
            Some(-1) => Some(AnalyticalTtl::Never),
            Some(ttl) => Some(AnalyticalTtl::After(seconds(ttl)?)),
        })
    }

    pub(super) fn to_value(self) -> Value {
        match self {
            AnalyticalTtl::Off => Value::from(0_u32),
            AnalyticalTtl::Never => Value::from(-1_i64),
            AnalyticalTtl::After(ttl) => Value::from(ttl.get()),
        }
    }
}

fn seconds(ttl: i64) -> Result<NonZeroU32, PolicyError> {
    let refused = || PolicyError::Ttl { ttl: ttl.to_string() };
    if ttl > TTL_SECONDS_MAX {
        return Err(refused());
    }
    u32::try_from(ttl).ok().and_then(NonZeroU32::new).ok_or_else(refused)
}

/// A refused ttl for the message: large values by their type only.
fn shown(value: Raw<'_>) -> String {
    match value.kind() {
        JsonKind::Array => "[…]".to_owned(),
        JsonKind::Object => "{…}".to_owned(),
        JsonKind::String => "a string".to_owned(),
        // A number may be written with any number of digits.
        JsonKind::Null | JsonKind::Bool | JsonKind::Number => {
            value.text().chars().take(32).collect()
        }
    }
}
