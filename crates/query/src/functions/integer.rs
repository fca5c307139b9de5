//! Arithmetic on 64-bit integers. An argument with a fraction gives undefined. Overflow
//! wraps, as machine arithmetic does.

use super::{Function, defined, only};
use crate::eval::Datum;

pub(super) const TABLE: &[Function] = &[
    Function::new(&["INTADD"], (2, 2), |a| map2(a, |a, b| Some(a.wrapping_add(b)))),
    Function::new(&["INTSUB"], (2, 2), |a| map2(a, |a, b| Some(a.wrapping_sub(b)))),
    Function::new(&["INTMUL", "INTMULTIPLY"], (2, 2), |a| map2(a, |a, b| Some(a.wrapping_mul(b)))),
    Function::new(&["INTDIV"], (2, 2), |a| map2(a, divided)),
    Function::new(&["INTMOD"], (2, 2), |a| map2(a, remainder)),
    Function::new(&["INTBITAND"], (2, 2), |a| map2(a, |a, b| Some(a & b))),
    Function::new(&["INTBITOR"], (2, 2), |a| map2(a, |a, b| Some(a | b))),
    Function::new(&["INTBITXOR"], (2, 2), |a| map2(a, |a, b| Some(a ^ b))),
    Function::new(&["INTBITNOT"], (1, 1), complement),
    Function::new(&["INTBITLEFTSHIFT"], (2, 2), |a| map2(a, shifted_left)),
    Function::new(&["INTBITRIGHTSHIFT"], (2, 2), |a| map2(a, shifted_right)),
];

fn map2<'a>(arguments: &[Datum<'a>], f: impl Fn(i64, i64) -> Option<i64>) -> Datum<'a> {
    let [a, b] = arguments else { return Datum::Undefined };
    let result = a.as_i64().zip(b.as_i64()).and_then(|(a, b)| f(a, b));
    defined(result.map(Datum::number))
}

fn complement<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined(only(arguments).as_i64().map(|number| Datum::number(!number)))
}

fn divided(a: i64, b: i64) -> Option<i64> {
    (b != 0).then(|| a.wrapping_div(b))
}

fn remainder(a: i64, b: i64) -> Option<i64> {
    (b != 0).then(|| a.wrapping_rem(b))
}

fn shifted_left(a: i64, b: i64) -> Option<i64> {
    Some(a.wrapping_shl(places(b)))
}

fn shifted_right(a: i64, b: i64) -> Option<i64> {
    Some(a.wrapping_shr(places(b)))
}

/// Numbers are shifted by less than they have bits, as machines do.
fn places(count: i64) -> u32 {
    u32::try_from(count.rem_euclid(64)).unwrap_or(0)
}
