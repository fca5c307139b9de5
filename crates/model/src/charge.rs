//! Request units: what a request cost, and how that follows from what was done.
//!
//! [`Work`] is counted where it is done, [`Tariff`] turns it into a [`Charge`].
//! Both are pure values, so that a partition's budget and a client's bill are
//! computed by the same function from the same counts. Why the tariff has the
//! shape it has: `docs/design/charge.md`.

mod tariff;
mod work;

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

pub use tariff::Tariff;
pub use work::{Scanned, Work, Written};

/// The service's charges are whole multiples of this part of a request unit.
const UNITS_PER_REQUEST_UNIT: u32 = 21;

/// A cost, exact: a whole number of 21sts of a request unit (RU).
///
/// Sums of charges are exact, too, in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Charge(u64);

impl Charge {
    pub const ZERO: Charge = Charge(0);

    #[must_use]
    pub const fn from_units(units: u64) -> Charge {
        Charge(units)
    }

    /// In 21sts of a request unit.
    #[must_use]
    pub const fn units(self) -> u64 {
        self.0
    }

    /// In request units, to the nearest double.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "no request costs 2^53 units")]
    pub fn request_units(self) -> f64 {
        self.0 as f64 / f64::from(UNITS_PER_REQUEST_UNIT)
    }
}

impl Add for Charge {
    type Output = Charge;

    fn add(self, other: Charge) -> Charge {
        Charge(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Charge {
    fn add_assign(&mut self, other: Charge) {
        *self = *self + other;
    }
}

impl Sum for Charge {
    fn sum<I: Iterator<Item = Charge>>(charges: I) -> Charge {
        charges.fold(Charge::ZERO, Charge::add)
    }
}

/// As the service writes it: 15 significant digits if they give back the same
/// double, else 17 (`6.2857142857142856`, where the shortest would be
/// `6.285714285714286`).
impl fmt::Display for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = u64::from(UNITS_PER_REQUEST_UNIT);
        if self.0.is_multiple_of(units) {
            return write!(f, "{}", self.0 / units);
        }
        let (number, whole) = (self.request_units(), self.0 / units);
        // A zero before the point is not a significant digit; neither is the one after it,
        // in charges below a tenth.
        let whole_digits = whole.checked_ilog10().map_or(0, |digits| digits as usize + 1);
        let leading_zeros = usize::from(self.0 < units.div_ceil(10));
        let decimals = |digits: usize| digits.saturating_sub(whole_digits) + leading_zeros;
        let short = format!("{number:.*}", decimals(15));
        if short.parse() == Ok(number) {
            return f.write_str(short.trim_end_matches('0'));
        }
        let long = format!("{number:.*}", decimals(17));
        f.write_str(long.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(units: u64) -> String {
        Charge::from_units(units).to_string()
    }

    #[test]
    fn charges_are_written_as_the_service_writes_them() {
        // Seen on the wire of the live service.
        assert_eq!(shown(132), "6.2857142857142856");
        for (units, text) in [
            (0, "0"),
            (1, "0.047619047619047616"),
            (2, "0.095238095238095233"),
            (3, "0.14285714285714285"),
            (8, "0.38095238095238093"),
            (21, "1"),
            (26, "1.2380952380952381"),
            (210, "10"),
            (3064, "145.9047619047619"),
        ] {
            assert_eq!(shown(units), text, "{units}");
        }
    }

    proptest! {
        #[test]
        fn text_gives_back_the_charge(units in 0..100_000_000_u64) {
            let text = shown(units);
            prop_assert_eq!(text.parse::<f64>().unwrap(), Charge::from_units(units).request_units());
            let digits = text.replace('.', "").trim_start_matches('0').len();
            prop_assert!(digits <= 17, "{}", text);
        }

        #[test]
        fn sums_are_exact(units in proptest::collection::vec(0..1_000_000_u64, 0..50)) {
            let sum: Charge = units.iter().copied().map(Charge::from_units).sum();
            prop_assert_eq!(sum.units(), units.iter().sum::<u64>());
        }
    }
}
