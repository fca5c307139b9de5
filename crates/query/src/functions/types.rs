//! Type checks, which are always true or false, and choices.

use super::{Function, MANY, at, defined, only};
use crate::eval::{Datum, Type};

pub(super) const TABLE: &[Function] = &[
    Function::new(&["IS_ARRAY", "ISARRAY"], (1, 1), |a| is(a, Type::Array)).taking_undefined(),
    Function::new(&["IS_BOOL", "ISBOOL", "IS_BOOLEAN"], (1, 1), |a| is(a, Type::Bool))
        .taking_undefined(),
    Function::new(&["IS_NULL", "ISNULL"], (1, 1), |a| is(a, Type::Null)).taking_undefined(),
    Function::new(&["IS_NUMBER", "ISNUMBER"], (1, 1), |a| is(a, Type::Number)).taking_undefined(),
    Function::new(&["IS_OBJECT", "ISOBJECT"], (1, 1), |a| is(a, Type::Object)).taking_undefined(),
    Function::new(&["IS_STRING", "ISSTRING"], (1, 1), |a| is(a, Type::String)).taking_undefined(),
    Function::new(&["IS_DEFINED", "ISDEFINED"], (1, 1), is_defined).taking_undefined(),
    Function::new(&["IS_PRIMITIVE", "ISPRIMITIVE"], (1, 1), is_primitive).taking_undefined(),
    Function::new(&["IS_INTEGER", "ISINTEGER"], (1, 1), is_integer).taking_undefined(),
    Function::new(&["IS_FINITE_NUMBER", "ISFINITENUMBER"], (1, 1), is_finite_number)
        .taking_undefined(),
    Function::new(&["IIF"], (3, 3), iif).taking_undefined(),
    Function::new(&["CHOOSE"], (2, MANY), choose).taking_undefined(),
];

fn is<'a>(arguments: &[Datum<'a>], kind: Type) -> Datum<'a> {
    Datum::Bool(only(arguments).type_of() == kind)
}

fn is_defined<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    Datum::Bool(only(arguments).is_defined())
}

fn is_primitive<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    let kind = only(arguments).type_of();
    Datum::Bool(matches!(kind, Type::Null | Type::Bool | Type::Number | Type::String))
}

fn is_integer<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    Datum::Bool(only(arguments).as_i64().is_some())
}

fn is_finite_number<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    Datum::Bool(only(arguments).as_f64().is_some_and(f64::is_finite))
}

fn iif<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    let holds = only(arguments).as_bool() == Some(true);
    at(arguments, if holds { 1 } else { 2 }).clone()
}

/// Counts its choices from one.
fn choose<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    let place = only(arguments).as_i64().filter(|place| *place > 0);
    defined(place.and_then(|place| arguments.get(usize::try_from(place).ok()?)).cloned())
}
