//! Equality and order.
//!
//! There are two orders. The operators `<` and its kin are defined between
//! values of one primitive type only; sorting, MIN and MAX put any two values
//! in order, type first.

use std::borrow::Cow;
use std::cmp::Ordering;

use model::json::{DistinctHash, Number, Object, Value, write_string};

use super::datum::{Datum, Type};
use crate::number::Numeric;

/// Deep equality by value: `1` equals `1.0`, and objects are equal in any order of members.
/// Undefined equals nothing; the caller treats it separately.
pub(crate) fn equal(a: &Datum<'_>, b: &Datum<'_>) -> bool {
    let kind = a.type_of();
    if kind != b.type_of() {
        return false;
    }
    match kind {
        Type::Undefined => false,
        Type::Null => true,
        Type::Bool => a.as_bool() == b.as_bool(),
        Type::Number => a.as_f64() == b.as_f64(),
        Type::String => a.as_str() == b.as_str(),
        Type::Array => {
            let (a, b) = (a.elements().unwrap_or_default(), b.elements().unwrap_or_default());
            a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| equal(a, b))
        }
        Type::Object => {
            let (a, b) = (sorted_members(a), sorted_members(b));
            a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.0 == b.0 && equal(&a.1, &b.1))
        }
    }
}

/// The order of two values of one primitive type; `None` where `<` is undefined. NaN is
/// unordered with everything, which is `Some(None)`.
pub(crate) fn primitive_order(a: &Datum<'_>, b: &Datum<'_>) -> Option<Option<Ordering>> {
    let kind = a.type_of();
    if kind != b.type_of() {
        return None;
    }
    match kind {
        Type::Null => Some(Some(Ordering::Equal)),
        Type::Bool => Some(Some(a.as_bool().cmp(&b.as_bool()))),
        Type::Number => Some(a.as_f64()?.partial_cmp(&b.as_f64()?)),
        Type::String => Some(Some(a.as_str().cmp(&b.as_str()))),
        Type::Undefined | Type::Array | Type::Object => None,
    }
}

/// The order of any two values: by type, then within it, arrays and objects by their
/// hashes. NaN comes last among the numbers.
pub(crate) fn total_order(a: &Datum<'_>, b: &Datum<'_>) -> Ordering {
    let kind = a.type_of();
    let by_type = kind.cmp(&b.type_of());
    if by_type != Ordering::Equal {
        return by_type;
    }
    match kind {
        Type::Undefined | Type::Null | Type::Bool | Type::String => {
            primitive_order(a, b).flatten().unwrap_or(Ordering::Equal)
        }
        Type::Number => {
            number_order(a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN))
        }
        Type::Array | Type::Object => distinct_hash(a).cmp(&distinct_hash(b)),
    }
}

/// The order of numbers that [`total_order`] does not tell apart though they are two
/// values to DISTINCT and GROUP BY.
pub(crate) fn order_beyond_doubles(a: &Datum<'_>, b: &Datum<'_>) -> Ordering {
    let part = |datum: &Datum<'_>| {
        datum.as_numeric().and_then(Numeric::to_number).and_then(Number::beyond_double)
    };
    part(a).cmp(&part(b))
}

/// `None` where a value is too large to be built.
fn distinct_hash(datum: &Datum<'_>) -> Option<DistinctHash> {
    datum.to_value().ok().flatten().map(|value| DistinctHash::of(&value))
}

fn number_order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn sorted_members<'a>(object: &Datum<'a>) -> Vec<(Cow<'a, str>, Datum<'a>)> {
    let mut members = object.members().unwrap_or_default();
    members.sort_by(|a, b| a.0.cmp(&b.0));
    members
}

/// A text that two values share exactly if they are equal: for sets of values that
/// operators and functions look into. Undefined has the empty text.
pub(crate) fn identity(datum: &Datum<'_>) -> String {
    let mut out = String::new();
    let rounded = |number: Numeric| Numeric::Double(number.as_f64());
    write_identity(datum, &rounded, &mut out);
    out
}

/// A text that two values share exactly if DISTINCT and GROUP BY treat them as one: as
/// [`identity`], but integers differ in every digit, because the hash does by which clients
/// distinguish values. Undefined, which is a group of its own, has the empty text.
pub(crate) fn distinction(datum: &Datum<'_>) -> String {
    let mut out = String::new();
    write_identity(datum, &|number| number, &mut out);
    out
}

fn write_identity(datum: &Datum<'_>, shown: &dyn Fn(Numeric) -> Numeric, out: &mut String) {
    match datum.type_of() {
        Type::Undefined => {}
        Type::Null => out.push('n'),
        Type::Bool => out.push(if datum.as_bool() == Some(true) { 't' } else { 'f' }),
        Type::Number => {
            let number = datum.as_numeric().unwrap_or(Numeric::Double(f64::NAN));
            out.push_str(&shown(number).spelling());
        }
        Type::String => write_string(out, &datum.as_str().unwrap_or_default()),
        Type::Array => {
            out.push('[');
            for element in datum.elements().unwrap_or_default() {
                write_identity(&element, shown, out);
                out.push(',');
            }
            out.push(']');
        }
        Type::Object => {
            out.push('{');
            for (name, value) in sorted_members(datum) {
                write_string(out, &name);
                write_identity(&value, shown, out);
                out.push(',');
            }
            out.push('}');
        }
    }
}

/// The value that distinguishes a row from others and sorts it among them, where rows are
/// groups or distinct. Values of one [`distinction`] have one that is the same in every
/// digit; a value that JSON cannot represent has a substitute. `None` is undefined.
pub(crate) fn representative(datum: &Datum<'_>) -> Option<Value> {
    let defined = |datum: &Datum<'_>| representative(datum).unwrap_or(Value::Null);
    Some(match datum.type_of() {
        Type::Undefined => return None,
        Type::Null => Value::Null,
        Type::Bool => Value::Bool(datum.as_bool() == Some(true)),
        Type::Number => {
            let number = datum.as_numeric().unwrap_or(Numeric::Double(f64::NAN));
            let stand_in = || vec![Value::from(number.spelling())].into();
            number.to_number().map_or_else(stand_in, Value::Number)
        }
        Type::String => Value::String(datum.as_str().unwrap_or_default().into_owned()),
        Type::Array => datum.elements().unwrap_or_default().iter().map(defined).collect(),
        Type::Object => {
            let members = datum.members().unwrap_or_default().into_iter();
            let members = members.map(|(name, value)| (name.into_owned(), defined(&value)));
            members.collect::<Object>().into()
        }
    })
}
