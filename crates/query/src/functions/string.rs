//! Functions on strings. Positions and lengths count characters.

mod convert;
mod search;

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{Function, MANY, at, defined, only};
use crate::eval::Datum;

/// Characters that REPLICATE may return, as in the planner of the .NET SDK.
const REPLICATE_CHARS_MAX: usize = 100_000;

pub(super) const TABLE: &[Function] = &[
    Function::new(&["CONCAT"], (2, MANY), concat),
    Function::new(&["CONTAINS"], (2, 3), |a| search::test(a, |s, t| s.contains(t))),
    Function::new(&["STARTSWITH"], (2, 3), |a| search::test(a, |s, t| s.starts_with(t))),
    Function::new(&["ENDSWITH"], (2, 3), |a| search::test(a, |s, t| s.ends_with(t))),
    Function::new(&["STRINGEQUALS", "STRING_EQUALS"], (2, 3), |a| search::test(a, |s, t| s == t)),
    Function::aware(&["CONTAINS_ALL_CS", "CONTAINSALLCS"], (2, MANY), |m, a| {
        search::all(m, a, false)
    })
    .taking_undefined(),
    Function::aware(&["CONTAINS_ALL_CI", "CONTAINSALLCI"], (2, MANY), |m, a| {
        search::all(m, a, true)
    })
    .taking_undefined(),
    Function::aware(&["CONTAINS_ANY_CS", "CONTAINSANYCS"], (2, MANY), |m, a| {
        search::any(m, a, false)
    })
    .taking_undefined(),
    Function::aware(&["CONTAINS_ANY_CI", "CONTAINSANYCI"], (2, MANY), |m, a| {
        search::any(m, a, true)
    })
    .taking_undefined(),
    Function::new(&["INDEX_OF", "INDEXOF"], (2, 3), search::index_of),
    Function::new(&["LASTINDEXOF"], (2, 3), search::last_index_of).taking_undefined(),
    Function::new(&["SUBSTRINGBEFORE"], (2, 2), |a| {
        search::cut(a, |s, t| Some(s.split_once(t)?.0))
    }),
    Function::new(&["SUBSTRINGAFTER"], (2, 2), |a| search::cut(a, |s, t| Some(s.split_once(t)?.1))),
    Function::new(&["LASTSUBSTRINGBEFORE"], (2, 2), |a| {
        search::cut(a, |s, t| Some(s.rsplit_once(t)?.0))
    }),
    Function::new(&["LASTSUBSTRINGAFTER"], (2, 2), |a| {
        search::cut(a, |s, t| Some(s.rsplit_once(t)?.1))
    }),
    Function::new(&["LEFT"], (2, 2), left),
    Function::new(&["RIGHT"], (2, 2), right),
    Function::new(&["SUBSTRING"], (3, 3), substring),
    Function::new(&["LENGTH"], (1, 1), length),
    Function::new(&["LOWER"], (1, 1), |a| map(a, |s| lowered(s).into())),
    Function::new(&["UPPER"], (1, 1), |a| map(a, |s| raised(s).into())),
    Function::new(&["REVERSE"], (1, 1), |a| map(a, |s| s.chars().rev().collect::<String>().into())),
    Function::new(&["TRIM"], (1, 2), |a| trim(a, (true, true))),
    Function::new(&["LTRIM"], (1, 2), |a| trim(a, (true, false))),
    Function::new(&["RTRIM"], (1, 2), |a| trim(a, (false, true))),
    Function::new(&["REPLACE"], (3, 3), replace).sized(replaced_bytes),
    Function::new(&["REPLICATE"], (2, 2), replicate),
    Function::new(&["STRINGJOIN", "STRING_JOIN"], (2, 2), join).sized(joined_bytes),
    Function::new(&["STRINGSPLIT", "STRING_SPLIT"], (2, 2), split).sized(split_bytes),
    Function::new(&["TOSTRING", "TO_STRING"], (1, 1), convert::to_string),
    Function::aware(&["STRINGTOARRAY", "STRING_TO_ARRAY"], (1, 1), convert::to_array),
    Function::aware(&["STRINGTOBOOLEAN", "STRING_TO_BOOLEAN"], (1, 1), convert::to_boolean),
    Function::aware(&["STRINGTONULL", "STRING_TO_NULL"], (1, 1), convert::to_null),
    Function::aware(&["STRINGTONUMBER", "STRING_TO_NUMBER"], (1, 1), convert::to_number),
    Function::aware(&["STRINGTOOBJECT", "STRING_TO_OBJECT"], (1, 1), convert::to_object),
];

/// The result of a function from one string to another.
fn map<'a>(arguments: &[Datum<'a>], f: impl Fn(&str) -> Cow<'_, str>) -> Datum<'a> {
    defined(only(arguments).as_str().map(|text| Datum::string(f(&text).into_owned())))
}

/// The text in lower case, character by character: none becomes two, and none depends on
/// its neighbours.
fn lowered(text: &str) -> String {
    text.chars().map(lower).collect()
}

fn raised(text: &str) -> String {
    text.chars().map(upper).collect()
}

/// Cases come in pairs: a letter whose lower case belongs to another stays as it is.
pub(crate) fn lower(letter: char) -> char {
    let other = alone(letter, letter.to_lowercase());
    if alone(other, other.to_uppercase()) == letter { other } else { letter }
}

/// The inverse.
pub(crate) fn upper(letter: char) -> char {
    let other = alone(letter, letter.to_uppercase());
    if alone(other, other.to_lowercase()) == letter { other } else { letter }
}

/// The one letter that a letter becomes, or itself where it would become several.
fn alone(letter: char, mut others: impl Iterator<Item = char>) -> char {
    match (others.next(), others.next()) {
        (Some(other), None) => other,
        _ => letter,
    }
}

fn concat<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    let texts: Option<String> = arguments.iter().map(Datum::as_str).collect();
    defined(texts.map(Datum::string))
}

fn length<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined(only(arguments).as_str().map(|text| Datum::count(text.chars().count())))
}

fn left<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let (text, count) = (at(arguments, 0).as_str()?, at(arguments, 1).as_i64()?);
        Some(Datum::string(slice(&text, 0, count).to_owned()))
    })())
}

fn right<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let (text, count) = (at(arguments, 0).as_str()?, at(arguments, 1).as_i64()?);
        let length = i64::try_from(text.chars().count()).ok()?;
        let count = count.clamp(0, length);
        Some(Datum::string(slice(&text, length - count, count).to_owned()))
    })())
}

/// A negative start gives nothing: it does not count from the end.
fn substring<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let (start, count) = (at(arguments, 1).as_i64()?, at(arguments, 2).as_i64()?);
        Some(Datum::string(slice(&at(arguments, 0).as_str()?, start, count).to_owned()))
    })())
}

/// At most `count` characters from `start`; empty where either is out of range.
fn slice(text: &str, start: i64, count: i64) -> &str {
    let (Ok(start), Ok(count)) = (usize::try_from(start), usize::try_from(count)) else {
        return "";
    };
    let offset = |text: &str, chars: usize| {
        text.char_indices().nth(chars).map_or(text.len(), |(offset, _)| offset)
    };
    let rest = text.get(offset(text, start)..).unwrap_or_default();
    rest.get(..offset(rest, count)).unwrap_or_default()
}

/// The second argument is a set of characters; without one, blanks are removed.
fn trim<'a>(arguments: &[Datum<'a>], (start, end): (bool, bool)) -> Datum<'a> {
    defined((|| {
        let text = only(arguments).as_str()?;
        let set = match arguments.get(1) {
            Some(set) => Some(set.as_str()?).filter(|set| !set.is_empty()),
            None => None,
        };
        // A set, because both the text and the list of characters may be long.
        let set: Option<BTreeSet<char>> = set.map(|set| set.chars().collect());
        let goes = |c: char| set.as_ref().map_or(c.is_whitespace(), |set| set.contains(&c));
        let mut kept = &*text;
        if start {
            kept = kept.trim_start_matches(goes);
        }
        if end {
            kept = kept.trim_end_matches(goes);
        }
        Some(Datum::string(kept.to_owned()))
    })())
}

/// An empty text to search for has no meaning.
fn replace<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let (text, old) = (at(arguments, 0).as_str()?, at(arguments, 1).as_str()?);
        let new = at(arguments, 2).as_str()?;
        (!old.is_empty()).then(|| Datum::string(text.replace(&*old, &new)))
    })())
}

fn replaced_bytes(arguments: &[Datum<'_>]) -> usize {
    let text = |place| at(arguments, place).as_str().unwrap_or_default();
    let (whole, old, new) = (text(0), text(1), text(2));
    let matches = if old.is_empty() { 0 } else { whole.matches(&*old).count() };
    whole.len().saturating_add(matches.saturating_mul(new.len()))
}

fn replicate<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let text = at(arguments, 0).as_str()?;
        let times = usize::try_from(at(arguments, 1).as_i64()?).ok()?;
        let chars = text.chars().count().checked_mul(times)?;
        (chars <= REPLICATE_CHARS_MAX).then(|| Datum::string(text.repeat(times)))
    })())
}

fn join<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let (items, separator) = (at(arguments, 0).elements()?, at(arguments, 1).as_str()?);
        let texts: Vec<_> = items.iter().map(Datum::as_str).collect::<Option<_>>()?;
        Some(Datum::string(texts.join(&*separator)))
    })())
}

fn joined_bytes(arguments: &[Datum<'_>]) -> usize {
    let items = at(arguments, 0).elements().map_or(0, |items| items.len());
    let separator = at(arguments, 1).as_str().map_or(0, |separator| separator.len());
    at(arguments, 0).weight().saturating_add(items.saturating_mul(separator))
}

fn split_bytes(arguments: &[Datum<'_>]) -> usize {
    let text = |place| at(arguments, place).as_str().unwrap_or_default();
    let (whole, separator) = (text(0), text(1));
    let parts = if separator.is_empty() { 1 } else { whole.matches(&*separator).count() + 1 };
    parts.saturating_mul(Datum::OVERHEAD).saturating_add(whole.len())
}

fn split<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let (text, separator) = (at(arguments, 0).as_str()?, at(arguments, 1).as_str()?);
        if separator.is_empty() {
            return Some(Datum::array([Datum::string(text.into_owned())]));
        }
        let parts = text.split(&*separator).map(|part| Datum::string(part.to_owned()));
        Some(Datum::array(parts.collect::<Vec<_>>()))
    })())
}
