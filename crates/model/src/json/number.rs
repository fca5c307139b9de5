//! Numbers that remember how they were written.

use std::cmp::Ordering;
use std::fmt;

/// A finite JSON number: its value as a double, and its spelling.
///
/// The spelling is what clients get back (`1.0` stays `1.0`, and integers
/// beyond 2^53 keep all their digits); comparing and computing use the double,
/// as the service does.
#[derive(Clone, Debug)]
pub struct Number {
    value: f64,
    text: Box<str>,
}

impl Number {
    /// Takes the spelling of a number that the scanner accepted.
    ///
    /// Returns `None` where the value is too large for a double.
    pub(super) fn from_spelling(text: &str) -> Option<Number> {
        let value: f64 = text.parse().ok()?;
        value.is_finite().then(|| Number { value, text: text.into() })
    }

    /// Whether a spelling stays within the range of doubles.
    pub(super) fn fits(text: &str) -> bool {
        // Few digits and no exponent cannot leave the range: no need to parse.
        (text.len() < 300 && !text.contains(['e', 'E'])) || text.parse().is_ok_and(f64::is_finite)
    }

    /// A computed number in its shortest spelling; `None` for NaN and infinities,
    /// which JSON cannot say.
    #[must_use]
    pub fn from_f64(value: f64) -> Option<Number> {
        if !value.is_finite() {
            return None;
        }
        // Zero has one spelling: JSON readers disagree on "-0".
        let value = if value == 0.0 { 0.0 } else { value };
        let magnitude = value.abs();
        let text = if magnitude != 0.0 && !(1e-7..1e21).contains(&magnitude) {
            format!("{value:e}")
        } else {
            format!("{value}")
        };
        Some(Number { value, text: text.into() })
    }

    #[must_use]
    pub fn as_f64(&self) -> f64 {
        self.value
    }

    /// The value as an integer, if it was written as one and fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        self.text.parse().ok()
    }

    /// The spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Number {
        #[expect(
            clippy::cast_precision_loss,
            reason = "numbers compare as doubles; the spelling keeps every digit"
        )]
        let double = value as f64;
        Number { value: double, text: value.to_string().into() }
    }
}

impl From<u32> for Number {
    fn from(value: u32) -> Number {
        Number::from(i64::from(value))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.value == other.value
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Number) -> Ordering {
        self.value.partial_cmp(&other.value).expect("numbers are finite")
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
