//! Numbers in their one canonical form.
//!
//! What clients spell differently (`5`, `5.0`, `50e-1`) is one number here, with one
//! spelling, before anything hashes, indexes or stores it: comparing texts and comparing
//! values then agree. Integers within 64 bits are exact. Everything else is a double, in
//! the fewest digits that lead back to it.

use std::cmp::Ordering;
use std::fmt::{self, Write as _};

/// From here on doubles are no longer 64-bit integers.
const INTEGERS_END: f64 = 9_223_372_036_854_775_808.0;

/// From here on doubles skip integers.
const DOUBLES_SKIP: f64 = 9_007_199_254_740_992.0;

/// Below this, and from [`INTEGERS_END`] on, doubles are spelled with an exponent:
/// a row of digits without a point would be read as an integer that it is not.
const PLAIN_MIN: f64 = 1e-7;

/// Any number with this many digits is an integer within 64 bits.
const INTEGER_DIGITS: usize = 18;

/// Any decimal with this many digits is the shortest spelling of its double: no two
/// decimals of at most this length lead to one double.
const DOUBLE_DIGITS: usize = 15;

/// A finite number. Comparing and computing use the double, as the service does;
/// integers keep their digits.
#[derive(Clone, Copy, Debug)]
pub struct Number(Form);

#[derive(Clone, Copy, Debug)]
enum Form {
    Integer(i64),
    /// Never an integer within 64 bits.
    Double(f64),
}

impl Number {
    /// Reads a number that the grammar accepts.
    ///
    /// Returns `None` where the value is too large for a double.
    pub(super) fn from_spelling(text: &str) -> Option<Number> {
        match text.parse() {
            Ok(integer) => Some(Number(Form::Integer(integer))),
            Err(_) => Number::from_f64(text.parse().ok()?),
        }
    }

    /// Whether a text without exponent, with these digits after its point, can be
    /// recognised as canonical by its length, as most can. Others may be canonical all the
    /// same.
    pub(super) fn is_plain(text: &str, fraction: Option<&str>) -> bool {
        match fraction {
            None => text.len() <= INTEGER_DIGITS && text != "-0",
            // Not too many digits, and not so small that it takes an exponent.
            Some(fraction) => {
                text.len() <= DOUBLE_DIGITS
                    && !fraction.ends_with('0')
                    && !fraction.starts_with("000000")
            }
        }
    }

    /// Whether this is the canonical spelling of the number.
    pub(super) fn is_spelled(self, text: &str) -> bool {
        let mut expected = Expected(text);
        write!(expected, "{self}").is_ok() && expected.0.is_empty()
    }

    /// A computed number; `None` for NaN and infinities, which JSON cannot express.
    #[must_use]
    pub fn from_f64(value: f64) -> Option<Number> {
        if !value.is_finite() {
            return None;
        }
        let integral = value.fract() == 0.0 && (-INTEGERS_END..INTEGERS_END).contains(&value);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "integral and in range, as checked above"
        )]
        let form = if integral { Form::Integer(value as i64) } else { Form::Double(value) };
        Some(Number(form))
    }

    #[must_use]
    pub fn as_f64(self) -> f64 {
        match self.0 {
            #[expect(
                clippy::cast_precision_loss,
                reason = "numbers compare as doubles; the integer keeps every digit"
            )]
            Form::Integer(integer) => integer as f64,
            Form::Double(double) => double,
        }
    }

    /// What an integer has beyond its double; `None` where every integer is a double, or
    /// none has 64 bits. Numbers whose doubles are equal are the same exactly if they agree
    /// in this.
    #[must_use]
    pub fn beyond_double(self) -> Option<i16> {
        let double = self.as_f64();
        if !(DOUBLES_SKIP..=INTEGERS_END).contains(&double.abs()) {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "integral and in range")]
        let rounded = double as i128;
        let exact = self.as_i64().map_or(rounded, i128::from);
        Some(i16::try_from(exact - rounded).expect("doubles below 2^63 skip 1,023 at most"))
    }

    /// The exact integer, if it is one within 64 bits.
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        match self.0 {
            Form::Integer(integer) => Some(integer),
            Form::Double(_) => None,
        }
    }
}

/// Accepts only what it begins with; the remainder has not been written yet.
struct Expected<'a>(&'a str);

impl fmt::Write for Expected<'_> {
    fn write_str(&mut self, written: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(written).ok_or(fmt::Error)?;
        Ok(())
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Number {
        Number(Form::Integer(value))
    }
}

impl From<u32> for Number {
    fn from(value: u32) -> Number {
        Number::from(i64::from(value))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.cmp(other) == Ordering::Equal
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
        self.as_f64().partial_cmp(&other.as_f64()).expect("numbers are finite")
    }
}

/// The canonical spelling.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Form::Integer(integer) => write!(f, "{integer}"),
            Form::Double(double) if (PLAIN_MIN..INTEGERS_END).contains(&double.abs()) => {
                write!(f, "{double}")
            }
            Form::Double(double) => write!(f, "{double:e}"),
        }
    }
}
