//! Substring search.

use super::super::{at, defined, only};
use super::lowered;
use crate::eval::{Ambient, Datum, Evaluated, Truth, and, or};

/// A test of one string against another. A third argument that is true makes
/// it ignore case.
pub(super) fn test<'a>(arguments: &[Datum<'a>], holds: fn(&str, &str) -> bool) -> Datum<'a> {
    defined((|| {
        let (text, other) = (at(arguments, 0).as_str()?, at(arguments, 1).as_str()?);
        let ignores_case = match arguments.get(2) {
            Some(flag) => flag.as_bool()?,
            None => false,
        };
        Some(Datum::Bool(if ignores_case {
            holds(&lowered(&text), &lowered(&other))
        } else {
            holds(&text, &other)
        }))
    })())
}

/// Whether the text holds all the terms, in three-valued logic.
pub(super) fn all<'a>(
    ambient: &Ambient,
    arguments: &[Datum<'a>],
    ignores_case: bool,
) -> Evaluated<'a> {
    terms(ambient, arguments, ignores_case, Some(true), and)
}

/// Whether the text holds one of the terms, in three-valued logic.
pub(super) fn any<'a>(
    ambient: &Ambient,
    arguments: &[Datum<'a>],
    ignores_case: bool,
) -> Evaluated<'a> {
    terms(ambient, arguments, ignores_case, Some(false), or)
}

/// Searches for each term; every one of them costs a pass over the text.
fn terms<'a>(
    ambient: &Ambient,
    arguments: &[Datum<'a>],
    ignores_case: bool,
    start: Truth,
    join: fn(Truth, Truth) -> Truth,
) -> Evaluated<'a> {
    let fold = |datum: &Datum<'_>| {
        let text = datum.as_str()?;
        Some(if ignores_case { lowered(&text) } else { text.into_owned() })
    };
    let text = fold(only(arguments));
    let mut joined = start;
    for term in arguments.iter().skip(1) {
        ambient.budget.spend_reading(text.as_ref().map_or(0, String::len))?;
        let found = text.as_ref().zip(fold(term)).map(|(text, term)| text.contains(&term));
        joined = join(joined, found);
    }
    Ok(joined.into())
}

/// Of a position, the low 32 bits count, with their sign.
fn low_half(position: i64) -> i64 {
    (position << 32) >> 32
}

/// The position of the first match at or after the start; -1 if there is none.
pub(super) fn index_of<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let (text, part) = (at(arguments, 0).as_str()?, at(arguments, 1).as_str()?);
        let start = arguments.get(2).map_or(Some(0), Datum::as_i64).map(low_half)?;
        let find = |start: usize| {
            let mut offsets = text.char_indices().map(|(offset, _)| offset).chain([text.len()]);
            let offset = offsets.nth(start)?;
            text.get(offset..)?.find(&*part).map(|found| offset + found)
        };
        Some(position(&text, usize::try_from(start).ok().and_then(find)))
    })())
}

/// The position of the last match that lies at or before the start as a whole.
pub(super) fn last_index_of<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let (text, part) = (at(arguments, 0).as_str()?, at(arguments, 1).as_str()?);
        let length = text.chars().count();
        let start = match arguments.get(2).filter(|start| start.is_defined()) {
            Some(start) => {
                usize::try_from(low_half(start.as_i64()?)).ok().filter(|start| *start <= length)
            }
            None => Some(length),
        };
        let find = |start: usize| {
            // Nothing is found where a character stands.
            let end = start.min(length.saturating_sub(1)) + usize::from(!part.is_empty());
            let offset = text.char_indices().nth(end).map_or(text.len(), |(offset, _)| offset);
            text.get(..offset)?.rfind(&*part)
        };
        Some(position(&text, start.and_then(find)))
    })())
}

/// A byte offset as a position in characters; -1 for none.
fn position<'a>(text: &str, offset: Option<usize>) -> Datum<'a> {
    match offset.and_then(|offset| text.get(..offset)) {
        Some(before) => Datum::count(before.chars().count()),
        None => Datum::number(-1_i64),
    }
}

/// The part of a text before or after another; undefined if it is not there.
pub(super) fn cut<'a>(
    arguments: &[Datum<'a>],
    part: for<'t> fn(&'t str, &str) -> Option<&'t str>,
) -> Datum<'a> {
    defined((|| {
        let (text, separator) = (at(arguments, 0).as_str()?, at(arguments, 1).as_str()?);
        Some(Datum::string(part(&text, &separator)?.to_owned()))
    })())
}
