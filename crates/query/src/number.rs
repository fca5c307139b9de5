//! Numbers as the language computes with them.

use std::ops::Neg;

use model::json::Number;

/// A double, or an integer that is kept with all its digits.
///
/// Comparing and computing use the double, as the service does; the digits
/// matter to the integer functions and to what is printed.
#[derive(Clone, Copy, Debug)]
pub enum Numeric {
    Integer(i64),
    Double(f64),
}

impl Numeric {
    /// Reads a JSON number.
    pub(crate) fn from_spelling(text: &str) -> Option<Numeric> {
        match text.parse::<i64>() {
            Ok(integer) => Some(Numeric::Integer(integer)),
            Err(_) => text.parse::<f64>().ok().map(Numeric::Double),
        }
    }

    /// Sixteen digits are the bits of a signed integer; `None` for more.
    pub(crate) fn from_hexadecimal(digits: &str) -> Option<Numeric> {
        let bits = u64::from_str_radix(digits, 16).ok()?;
        Some(Numeric::Integer(bits.cast_signed()))
    }

    #[must_use]
    pub fn as_f64(self) -> f64 {
        match self {
            #[expect(
                clippy::cast_precision_loss,
                reason = "numbers compare and compute as doubles, as in the service"
            )]
            Numeric::Integer(integer) => integer as f64,
            Numeric::Double(double) => double,
        }
    }

    /// The exact integer; `None` for fractions, and for doubles that may stand for
    /// several integers.
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        /// From here on doubles skip integers.
        const BEYOND: f64 = 9_007_199_254_740_992.0;
        match self {
            Numeric::Integer(integer) => Some(integer),
            Numeric::Double(double) if double.fract() == 0.0 && double.abs() < BEYOND =>
            {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "integral and in range, as checked above"
                )]
                Some(double as i64)
            }
            Numeric::Double(_) => None,
        }
    }

    /// The JSON number; `None` for NaN and infinities, which JSON cannot represent.
    #[must_use]
    pub fn to_number(self) -> Option<Number> {
        match self {
            Numeric::Integer(integer) => Some(Number::from(integer)),
            Numeric::Double(double) => Number::from_f64(double),
        }
    }

    /// The number as the language prints it, NaN and infinities included.
    #[must_use]
    pub fn spelling(self) -> String {
        match (self.to_number(), self.as_f64()) {
            (Some(number), _) => number.to_string(),
            (None, double) if double.is_nan() => "NaN".to_owned(),
            (None, double) if double > 0.0 => "Infinity".to_owned(),
            (None, _) => "-Infinity".to_owned(),
        }
    }
}

impl Neg for Numeric {
    type Output = Numeric;

    /// Integers keep their digits where the negative fits.
    fn neg(self) -> Numeric {
        match self {
            Numeric::Integer(integer) => {
                integer.checked_neg().map_or(Numeric::Double(-self.as_f64()), Numeric::Integer)
            }
            Numeric::Double(double) => Numeric::Double(-double),
        }
    }
}

impl PartialEq for Numeric {
    /// Same value. NaN equals itself here: this is for comparing trees, not
    /// for the language's `=`.
    fn eq(&self, other: &Numeric) -> bool {
        match (self, other) {
            (Numeric::Integer(a), Numeric::Integer(b)) => a == b,
            _ => self.as_f64().total_cmp(&other.as_f64()).is_eq(),
        }
    }
}

impl Eq for Numeric {}

impl From<f64> for Numeric {
    fn from(double: f64) -> Numeric {
        Numeric::Double(double)
    }
}

impl From<i64> for Numeric {
    fn from(integer: i64) -> Numeric {
        Numeric::Integer(integer)
    }
}

impl From<Number> for Numeric {
    fn from(number: Number) -> Numeric {
        number.as_i64().map_or(Numeric::Double(number.as_f64()), Numeric::Integer)
    }
}
