//! Request units: what a request cost.

use std::fmt;

/// A cost in request units (RU).
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Charge(f64);

impl Charge {
    /// Takes a cost that was computed; it can neither be negative nor endless.
    #[must_use]
    pub fn new(request_units: f64) -> Charge {
        assert!(request_units.is_finite() && request_units >= 0.0, "a cost is a sum of costs");
        Charge(request_units)
    }

    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// As clients read it: at most two decimals, no more than needed.
impl fmt::Display for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.2}", self.0);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_have_no_more_decimals_than_they_need() {
        let shown = |units| Charge::new(units).to_string();
        assert_eq!(
            (shown(1.0).as_str(), shown(10.0).as_str(), shown(0.0).as_str()),
            ("1", "10", "0")
        );
        assert_eq!((shown(6.286).as_str(), shown(1.5).as_str()), ("6.29", "1.5"));
    }
}
