//! Decimal numbers of 34 digits (IEEE 754 decimal128).

use std::cmp::Ordering;
use std::fmt;

/// Digits that a number has at most.
pub(super) const DIGITS_MAX: usize = 34;
/// The number after the largest of 34 digits.
const DIGITS_END: u128 = 10_u128.pow(34);
/// The least and the greatest exponent of the last digit.
const EXPONENT_MIN: i16 = -6176;
const EXPONENT_MAX: i16 = 6111;
/// Below this exponent of the first digit, numbers are spelled with an exponent.
const PLAIN_MIN: i32 = -6;
/// Significant digits after the first one with which any double is written exactly.
const DOUBLE_FRACTION: usize = 766;

/// A decimal number as its digits, among which zeros at the end count: 1.0 and 1.00 are
/// equal, and not the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal(Form);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Nan,
    Infinity { negative: bool },
    Finite { negative: bool, digits: u128, exponent: i16 },
}

/// What is left of a decimal number without its special values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finite {
    pub(super) negative: bool,
    pub(super) digits: u128,
    pub(super) exponent: i16,
}

impl Decimal {
    pub const NAN: Decimal = Decimal(Form::Nan);

    #[must_use]
    pub fn infinity(negative: bool) -> Decimal {
        Decimal(Form::Infinity { negative })
    }

    /// `digits` × 10^`exponent`; `None` for what the format has no room for.
    #[must_use]
    pub fn new(negative: bool, digits: u128, exponent: i16) -> Option<Decimal> {
        let fits = digits < DIGITS_END && (EXPONENT_MIN..=EXPONENT_MAX).contains(&exponent);
        fits.then_some(Decimal(Form::Finite { negative, digits, exponent }))
    }

    /// Reads what is written here, and no other spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Decimal> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let decimal = match unsigned {
            "NaN" => Decimal::NAN,
            "Infinity" => Decimal::infinity(negative),
            _ => parse_finite(negative, unsigned)?,
        };
        (decimal.to_string() == text).then_some(decimal)
    }

    pub(super) fn finite(self) -> Result<Finite, f64> {
        match self.0 {
            Form::Nan => Err(f64::NAN),
            Form::Infinity { negative: false } => Err(f64::INFINITY),
            Form::Infinity { negative: true } => Err(f64::NEG_INFINITY),
            Form::Finite { negative, digits, exponent } => {
                Ok(Finite { negative, digits, exponent })
            }
        }
    }
}

fn parse_finite(negative: bool, text: &str) -> Option<Decimal> {
    let (number, exponent) = match text.split_once('E') {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = [whole, fraction].concat();
    let is_plain = (1..=DIGITS_MAX).contains(&digits.trim_start_matches('0').len().max(1));
    let is_plain = is_plain && digits.bytes().all(|byte| byte.is_ascii_digit());
    let exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let digits = digits.parse().ok().filter(|_| is_plain)?;
    Decimal::new(negative, digits, i16::try_from(exponent).ok()?)
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (negative, digits, exponent) = match self.0 {
            Form::Nan => return f.write_str("NaN"),
            Form::Infinity { negative } => {
                return f.write_str(if negative { "-Infinity" } else { "Infinity" });
            }
            Form::Finite { negative, digits, exponent } => (negative, digits.to_string(), exponent),
        };
        f.write_str(if negative { "-" } else { "" })?;
        let after_point = usize::try_from(-i32::from(exponent)).ok();
        let leading = leading_exponent(&digits, exponent);
        if let Some(after_point) = after_point.filter(|_| leading >= PLAIN_MIN) {
            let width = after_point + 1;
            let padded = format!("{digits:0>width$}");
            let (whole, fraction) = padded.split_at(padded.len() - after_point);
            let point = if fraction.is_empty() { "" } else { "." };
            return write!(f, "{whole}{point}{fraction}");
        }
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        write!(f, "{first}{point}{rest}E{leading:+}")
    }
}

/// The exponent of the first digit.
fn leading_exponent(digits: &str, exponent: i16) -> i32 {
    let last = i32::try_from(digits.len()).unwrap_or(i32::MAX) - 1;
    i32::from(exponent) + last
}

impl Finite {
    /// The nearest double, which may be infinite.
    pub(super) fn nearest(self) -> f64 {
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{}e{}", self.digits, self.exponent).parse().unwrap_or(f64::NAN)
    }

    /// The exponent of the first digit, and the digits as a number of [`DIGITS_MAX`] of them:
    /// together they compare as what is not zero does without its sign.
    pub(super) fn magnitude(self) -> (i16, u128) {
        let digits = self.digits.to_string();
        let leading = leading_exponent(&digits, self.exponent);
        let room = u32::try_from(DIGITS_MAX.saturating_sub(digits.len())).unwrap_or_default();
        (i16::try_from(leading).unwrap_or(i16::MAX), self.digits * 10_u128.pow(room))
    }

    /// Compares with a double exactly.
    pub(super) fn compare(self, double: f64) -> Ordering {
        if self.digits == 0 || double == 0.0 || !double.is_finite() {
            let own = if self.digits == 0 { 0.0 } else { self.sign() };
            return own.partial_cmp(&double).unwrap_or(Ordering::Equal);
        }
        if self.negative != double.is_sign_negative() {
            return self.sign().total_cmp(&double.signum());
        }
        let magnitude = self.compare_magnitude(double.abs());
        if self.negative { magnitude.reverse() } else { magnitude }
    }

    fn sign(self) -> f64 {
        if self.negative { -1.0 } else { 1.0 }
    }

    /// Digit by digit: with 767 digits any double is written as what it is.
    fn compare_magnitude(self, double: f64) -> Ordering {
        let written = format!("{double:.DOUBLE_FRACTION$e}");
        let (digits, exponent) = written.split_once('e').unwrap_or((&written, "0"));
        let theirs = digits.replace('.', "");
        let own = self.digits.to_string();
        let leading = leading_exponent(&own, self.exponent);
        let exponent: i32 = exponent.parse().unwrap_or_default();
        leading
            .cmp(&exponent)
            .then_with(|| own.trim_end_matches('0').cmp(theirs.trim_end_matches('0')))
    }
}
