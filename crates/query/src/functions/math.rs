//! Mathematics on doubles.

use std::f64::consts::PI;

use super::{Function, defined, only};
use crate::eval::Datum;
use crate::number::Numeric;

pub(super) const TABLE: &[Function] = &[
    Function::new(&["ABS"], (1, 1), |a| map(a, f64::abs)),
    Function::new(&["ACOS"], (1, 1), |a| map(a, f64::acos)),
    Function::new(&["ASIN"], (1, 1), |a| map(a, f64::asin)),
    Function::new(&["ATAN"], (1, 1), |a| map(a, f64::atan)),
    Function::new(&["ATN2"], (2, 2), |a| map2(a, f64::atan2)),
    Function::new(&["CEILING"], (1, 1), |a| map(a, f64::ceil)),
    Function::new(&["COS"], (1, 1), |a| map(a, f64::cos)),
    Function::new(&["COT"], (1, 1), |a| map(a, |n| 1.0 / n.tan())),
    Function::new(&["DEGREES"], (1, 1), |a| map(a, |n| n * 180.0 / PI)),
    Function::new(&["EXP"], (1, 1), |a| map(a, f64::exp)),
    Function::new(&["FLOOR"], (1, 1), |a| map(a, f64::floor)),
    Function::new(&["LOG"], (1, 2), log),
    Function::new(&["LOG10"], (1, 1), |a| map(a, f64::log10)),
    Function::new(&["NUMBERBIN"], (1, 2), number_bin),
    Function::new(&["PI"], (0, 0), |_| Datum::number(PI)),
    Function::new(&["POWER"], (2, 2), |a| map2(a, f64::powf)),
    Function::new(&["RADIANS"], (1, 1), |a| map(a, |n| n * PI / 180.0)),
    Function::new(&["ROUND"], (1, 2), round),
    Function::new(&["SIGN"], (1, 1), |a| map(a, sign)),
    Function::new(&["SIN"], (1, 1), |a| map(a, f64::sin)),
    Function::new(&["SQRT"], (1, 1), |a| map(a, f64::sqrt)),
    Function::new(&["SQUARE"], (1, 1), |a| map(a, |n| n * n)),
    Function::new(&["TAN"], (1, 1), |a| map(a, f64::tan)),
    Function::new(&["TRUNC"], (1, 1), |a| map(a, f64::trunc)),
];

fn map<'a>(arguments: &[Datum<'a>], f: impl Fn(f64) -> f64) -> Datum<'a> {
    defined(only(arguments).as_f64().map(|number| Datum::number(f(number))))
}

fn map2<'a>(arguments: &[Datum<'a>], f: impl Fn(f64, f64) -> f64) -> Datum<'a> {
    let [a, b] = arguments else { return Datum::Undefined };
    defined(a.as_f64().zip(b.as_f64()).map(|(a, b)| Datum::number(f(a, b))))
}

fn log<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    match arguments {
        [_, _] => map2(arguments, log_of),
        _ => map(arguments, f64::ln),
    }
}

fn log_of(number: f64, base: f64) -> f64 {
    if base == 10.0 {
        number.log10()
    } else if base == 2.0 {
        number.log2()
    } else {
        number.ln() / base.ln()
    }
}

/// To an integer, or to a number of decimals; halves away from zero.
fn round<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    let [number, decimals] = arguments else { return map(arguments, f64::round) };
    defined((|| {
        let decimals = decimals.as_i64()?;
        // An integer has no decimals, and may not be representable as a double.
        if decimals >= 0
            && let Some(Numeric::Integer(whole)) = number.as_numeric()
        {
            return Some(Datum::number(whole));
        }
        let number = number.as_f64()?;
        let scale = 10_f64.powi(i32::try_from(decimals.unsigned_abs()).unwrap_or(i32::MAX));
        if decimals < 0 {
            return Some(Datum::number((number / scale).round() * scale));
        }
        let scaled = number * scale;
        // Beyond the range of doubles there is nothing to round.
        Some(Datum::number(if scaled.is_finite() { scaled.round() / scale } else { number }))
    })())
}

fn sign(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number.signum() }
}

/// The largest multiple of the bin's size that is not above the number; the
/// size may be negative, which turns the direction round.
fn number_bin<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let number = only(arguments).as_numeric()?;
        let size = arguments.get(1).map_or(Some(Numeric::Integer(1)), Datum::as_numeric)?;
        if let (Numeric::Integer(number), Numeric::Integer(size)) = (number, size)
            && let Some(bin) = integer_bin(number, size)
        {
            return Some(Datum::number(bin));
        }
        let (number, size) = (number.as_f64(), size.as_f64());
        (size != 0.0).then(|| Datum::number((number / size).floor() * size))
    })())
}

fn integer_bin(number: i64, size: i64) -> Option<i64> {
    let past = number.checked_rem(size)?;
    let below = past != 0 && (past < 0) != (size < 0);
    number.checked_sub(past)?.checked_sub(if below { size } else { 0 })
}
