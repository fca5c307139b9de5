//! Numbers of several types in one exact order.

use std::cmp::Ordering;

use super::decimal::{Decimal, Finite};
use crate::json::Number;

/// A number and its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TypedNumber {
    Int32(i32),
    Int64(i64),
    Double(f64),
    Decimal(Decimal),
}

/// A number's exact value: the greatest double that is not above it, and the number itself
/// if it is not that double.
#[derive(Clone, Copy, Debug)]
pub struct ExactNumber {
    /// May be infinite, or NaN, which is below all others.
    pub floor: f64,
    pub beyond: Option<BeyondDouble>,
}

/// A number that is no double: 34 digits, and the exponent of the first one. Its sign is
/// that of the double below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BeyondDouble {
    pub exponent: i16,
    pub digits: u128,
}

impl TypedNumber {
    /// The type that a number of JSON stands for.
    pub(super) fn plain(number: Number) -> TypedNumber {
        match number.as_i64() {
            None => TypedNumber::Double(number.as_f64()),
            Some(integer) => match i32::try_from(integer) {
                Ok(integer) => TypedNumber::Int32(integer),
                Err(_) => TypedNumber::Int64(integer),
            },
        }
    }

    /// The number of JSON that stands for this one and its type.
    pub(super) fn to_plain(self) -> Option<Number> {
        let plain = match self {
            TypedNumber::Int32(own) => Number::from(i64::from(own)),
            TypedNumber::Int64(own) => Number::from(own),
            TypedNumber::Double(own) => Number::from_f64(own)?,
            TypedNumber::Decimal(_) => return None,
        };
        (TypedNumber::plain(plain) == self).then_some(plain)
    }

    #[must_use]
    pub fn exact(self) -> ExactNumber {
        let is = |floor: f64| ExactNumber { floor, beyond: None };
        let finite = match self {
            TypedNumber::Int32(own) => return is(f64::from(own)),
            TypedNumber::Double(own) => return is(own),
            TypedNumber::Int64(own) => {
                Finite { negative: own < 0, digits: own.unsigned_abs().into(), exponent: 0 }
            }
            TypedNumber::Decimal(own) => match own.finite() {
                Ok(finite) => finite,
                Err(special) => return is(special),
            },
        };
        let nearest = finite.nearest();
        let floor = match finite.compare(nearest) {
            Ordering::Equal => return is(nearest),
            Ordering::Greater => nearest,
            Ordering::Less => nearest.next_down(),
        };
        let (exponent, digits) = finite.magnitude();
        ExactNumber { floor, beyond: Some(BeyondDouble { exponent, digits }) }
    }
}

impl Ord for ExactNumber {
    fn cmp(&self, other: &ExactNumber) -> Ordering {
        // NaN compares with nothing, itself included.
        let nan = other.floor.is_nan().cmp(&self.floor.is_nan());
        let floors = self.floor.partial_cmp(&other.floor).unwrap_or(nan);
        floors.then_with(|| match (self.beyond, other.beyond) {
            (Some(a), Some(b)) if self.floor < 0.0 => b.cmp(&a),
            (a, b) => a.cmp(&b),
        })
    }
}

impl PartialOrd for ExactNumber {
    fn partial_cmp(&self, other: &ExactNumber) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ExactNumber {
    fn eq(&self, other: &ExactNumber) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ExactNumber {}
