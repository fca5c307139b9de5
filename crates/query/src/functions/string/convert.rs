//! From values to strings and back.

use model::json::{self, JsonKind, Raw};

use super::super::only;
use crate::eval::{Ambient, Datum, Evaluated, Type};
use crate::syntax::Spelled;

/// Strings stay as they are; arrays and objects become compact JSON.
pub(super) fn to_string<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    let datum = only(arguments);
    if datum.type_of() == Type::String {
        return datum.clone();
    }
    let mut out = String::new();
    write(datum, &mut out);
    Datum::string(out)
}

fn write(datum: &Datum<'_>, out: &mut String) {
    match datum.type_of() {
        Type::Undefined => {}
        Type::Null => out.push_str("null"),
        Type::Bool => out.push_str(if datum.as_bool() == Some(true) { "true" } else { "false" }),
        Type::Number => out.extend(datum.as_numeric().map(|number| Spelled(number).to_string())),
        Type::String => json::write_string(out, &datum.as_str().unwrap_or_default()),
        Type::Array => {
            out.push('[');
            for (at, element) in datum.elements().unwrap_or_default().iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(element, out);
            }
            out.push(']');
        }
        Type::Object => {
            out.push('{');
            for (at, (name, value)) in datum.members().unwrap_or_default().iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                json::write_string(out, name);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
    }
}

pub(super) fn to_array<'a>(ambient: &Ambient, arguments: &[Datum<'a>]) -> Evaluated<'a> {
    parsed(ambient, arguments, JsonKind::Array)
}

pub(super) fn to_boolean<'a>(ambient: &Ambient, arguments: &[Datum<'a>]) -> Evaluated<'a> {
    parsed(ambient, arguments, JsonKind::Bool)
}

pub(super) fn to_null<'a>(ambient: &Ambient, arguments: &[Datum<'a>]) -> Evaluated<'a> {
    parsed(ambient, arguments, JsonKind::Null)
}

pub(super) fn to_object<'a>(ambient: &Ambient, arguments: &[Datum<'a>]) -> Evaluated<'a> {
    parsed(ambient, arguments, JsonKind::Object)
}

/// A number in a string, which may begin with zeros.
pub(super) fn to_number<'a>(ambient: &Ambient, arguments: &[Datum<'a>]) -> Evaluated<'a> {
    let Some(text) = only(arguments).as_str() else { return Ok(Datum::Undefined) };
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    let (sign, digits) = text.split_at(usize::from(text.starts_with('-')));
    let zeros = digits.bytes().take_while(|byte| *byte == b'0').count();
    let significant =
        digits.get(zeros..).filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let digits = significant.or(digits.get(zeros.saturating_sub(1)..)).unwrap_or(digits);
    parsed(ambient, &[Datum::string(format!("{sign}{digits}"))], JsonKind::Number)
}

/// The JSON value in a string, if it is of that kind.
fn parsed<'a>(ambient: &Ambient, arguments: &[Datum<'a>], kind: JsonKind) -> Evaluated<'a> {
    let Some(text) = only(arguments).as_str() else { return Ok(Datum::Undefined) };
    let Ok(canonical) = json::canonical(text.as_bytes()) else { return Ok(Datum::Undefined) };
    let raw = Raw::trusted(&canonical);
    if raw.kind() != kind {
        return Ok(Datum::Undefined);
    }
    ambient.budget.spend_reading(Datum::Json(raw).effort())?;
    Ok(Datum::owned(raw.to_value()))
}
