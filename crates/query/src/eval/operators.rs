//! Operators on values. Wrong types never fail: they give undefined.

use std::cmp::Ordering;

use super::compare::{equal, primitive_order};
use super::datum::Datum;
use crate::syntax::{BinaryOp, UnaryOp};

/// A truth value of three-valued logic: `None` is undefined.
pub(crate) type Truth = Option<bool>;

impl<'a> From<Truth> for Datum<'a> {
    fn from(truth: Truth) -> Datum<'a> {
        truth.map_or(Datum::Undefined, Datum::Bool)
    }
}

/// One operand that is false decides; otherwise one that is not true makes the result
/// undefined.
pub(crate) fn and(a: Truth, b: Truth) -> Truth {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        (None, _) | (_, None) => None,
    }
}

pub(crate) fn or(a: Truth, b: Truth) -> Truth {
    not(and(not(a), not(b)))
}

pub(crate) fn not(a: Truth) -> Truth {
    a.map(|truth| !truth)
}

pub(crate) fn unary<'a>(op: UnaryOp, operand: &Datum<'a>) -> Datum<'a> {
    let number =
        |f: fn(f64) -> f64| operand.as_f64().map_or(Datum::Undefined, |n| Datum::number(f(n)));
    match op {
        UnaryOp::Not => not(operand.as_bool()).into(),
        UnaryOp::Minus => operand.as_numeric().map_or(Datum::Undefined, |n| Datum::Number(-n)),
        UnaryOp::Plus => number(|n| n),
        UnaryOp::BitNot => number(|n| f64::from(!to_int32(n))),
    }
}

pub(crate) fn binary<'a>(op: BinaryOp, a: &Datum<'a>, b: &Datum<'a>) -> Datum<'a> {
    match op {
        BinaryOp::Equal => equality(a, b).into(),
        BinaryOp::NotEqual => not(equality(a, b)).into(),
        BinaryOp::Less => relation(a, b, Ordering::is_lt).into(),
        BinaryOp::LessEqual => relation(a, b, Ordering::is_le).into(),
        BinaryOp::Greater => relation(a, b, Ordering::is_gt).into(),
        BinaryOp::GreaterEqual => relation(a, b, Ordering::is_ge).into(),
        BinaryOp::Concat => match (a.as_str(), b.as_str()) {
            (Some(a), Some(b)) => Datum::string(format!("{a}{b}")),
            _ => Datum::Undefined,
        },
        BinaryOp::Add
        | BinaryOp::Subtract
        | BinaryOp::Multiply
        | BinaryOp::Divide
        | BinaryOp::Modulo
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::ShiftLeft
        | BinaryOp::ShiftRight
        | BinaryOp::ShiftRightUnsigned => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => Datum::number(arithmetic(op, a, b)),
            _ => Datum::Undefined,
        },
    }
}

/// Undefined on either side is undefined; different types are just not equal.
pub(crate) fn equality(a: &Datum<'_>, b: &Datum<'_>) -> Truth {
    (a.is_defined() && b.is_defined()).then(|| equal(a, b))
}

pub(crate) fn relation(a: &Datum<'_>, b: &Datum<'_>, holds: fn(Ordering) -> bool) -> Truth {
    primitive_order(a, b).map(|order| order.is_some_and(holds))
}

fn arithmetic(op: BinaryOp, a: f64, b: f64) -> f64 {
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a * b,
        BinaryOp::Divide => a / b,
        BinaryOp::Modulo => a % b,
        BinaryOp::BitAnd => f64::from(to_int32(a) & to_int32(b)),
        BinaryOp::BitOr => f64::from(to_int32(a) | to_int32(b)),
        BinaryOp::BitXor => f64::from(to_int32(a) ^ to_int32(b)),
        BinaryOp::ShiftLeft => f64::from(to_int32(a).wrapping_shl(to_uint32(b))),
        BinaryOp::ShiftRight => f64::from(to_int32(a).wrapping_shr(to_uint32(b))),
        BinaryOp::ShiftRightUnsigned => f64::from(to_uint32(a).wrapping_shr(to_uint32(b))),
        BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Less
        | BinaryOp::LessEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterEqual
        | BinaryOp::Concat => f64::NAN,
    }
}

/// As JavaScript does: truncate, keep the low 32 bits; what is not finite is zero.
fn to_uint32(number: f64) -> u32 {
    const RANGE: f64 = 4_294_967_296.0;
    if !number.is_finite() {
        return 0;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the remainder is integral, not negative and below 2^32"
    )]
    let low = number.trunc().rem_euclid(RANGE) as u32;
    low
}

fn to_int32(number: f64) -> i32 {
    to_uint32(number).cast_signed()
}
