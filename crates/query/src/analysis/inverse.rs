//! From what a function or operator gives back to what it was given.
//!
//! Only where that is certain: doubles round, and some letters share their upper or lower
//! case with others.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not named says nothing, and that is true of every form"
)]

use std::collections::BTreeSet;

use super::domain::{Domain, Values};
use crate::functions::{lower, upper};
use crate::syntax::BinaryOp;

/// Spellings of a text in upper and lower case that are worth looking for each.
const SPELLINGS_MAX: usize = 32;

/// The values that a test can be true for, if it is true for some of a type.
pub(super) fn tested_in_part(name: &str) -> Option<Domain> {
    match name {
        "IS_INTEGER" | "IS_FINITE_NUMBER" => Some(Domain::numbers()),
        "IS_DATETIME" => Some(Domain::strings()),
        "ST_ISVALID" => Some(Domain::objects()),
        _ => None,
    }
}

/// The values that a test of types is true for.
pub(super) fn tested(name: &str) -> Option<Domain> {
    Some(match name {
        "IS_DEFINED" => Domain::defined(),
        "IS_NULL" => Domain { null: true, ..Domain::none() },
        "IS_BOOL" => Domain::bools(),
        "IS_NUMBER" => Domain::numbers(),
        "IS_STRING" => Domain::strings(),
        "IS_ARRAY" => Domain::arrays(),
        "IS_OBJECT" => Domain::objects(),
        "IS_PRIMITIVE" => Domain::primitives(),
        _ => return None,
    })
}

/// The arguments for which a function of one gives these values.
pub(super) fn arguments(name: &str, wanted: &Domain) -> Option<Domain> {
    let numbers = || wanted.numbers.as_points();
    let strings = || wanted.strings.as_points();
    match name {
        "ABS" => {
            let signed = numbers()?.iter().filter(|n| **n >= 0.0).flat_map(|n| [*n, -*n]);
            Some(Domain::of_numbers(Values::points(signed)))
        }
        "SIGN" if numbers()? == [0.0] => Some(Domain::of_numbers(Values::points([0.0]))),
        "LENGTH" if numbers()? == [0.0] => {
            Some(Domain::of_strings(Values::points([String::new()])))
        }
        "REVERSE" => {
            let turned = strings()?.iter().map(|text| text.chars().rev().collect());
            Some(Domain::of_strings(Values::points(turned)))
        }
        "LOWER" => cased(strings()?, lower),
        "UPPER" => cased(strings()?, upper),
        _ => None,
    }
}

/// The other operand of arithmetic whose result is among the wanted numbers.
pub(super) fn operands(
    op: BinaryOp,
    known: f64,
    known_is_left: bool,
    wanted: &Values<f64>,
) -> Values<f64> {
    let Some(points) = wanted.as_points() else { return Values::all() };
    let found: Option<Vec<f64>> =
        points.iter().map(|point| operand(op, known, known_is_left, *point)).collect();
    found.map_or(Values::all(), Values::points)
}

/// The one operand that gives the result. Results grow or fall with it, so if those
/// beside it give others, all further away do, too.
fn operand(op: BinaryOp, known: f64, known_is_left: bool, result: f64) -> Option<f64> {
    let guess = match (op, known_is_left) {
        (BinaryOp::Add, _) => result - known,
        (BinaryOp::Subtract, false) => result + known,
        (BinaryOp::Subtract, true) => known - result,
        (BinaryOp::Multiply, _) if known != 0.0 => result / known,
        (BinaryOp::Divide, false) if known != 0.0 => result * known,
        _ => return None,
    };
    let gives = |other: f64| {
        let (a, b) = if known_is_left { (known, other) } else { (other, known) };
        match op {
            BinaryOp::Add => a + b,
            BinaryOp::Subtract => a - b,
            BinaryOp::Multiply => a * b,
            _ => a / b,
        }
    };
    let certain = guess.is_finite()
        && known.is_finite()
        && gives(guess) == result
        && gives(guess.next_up()) != result
        && gives(guess.next_down()) != result;
    certain.then_some(guess)
}

/// Strings that begin so.
pub(super) fn beginning_with(prefix: String) -> Values<String> {
    let mut end: Vec<char> = prefix.chars().collect();
    while let Some(last) = end.pop() {
        // Surrogates are no characters, so the next one may be further.
        let next = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32);
        if let Some(next) = next {
            end.push(next);
            let end = end.into_iter().collect();
            return Values::span(Some((prefix, true)), Some((end, false)));
        }
    }
    Values::span(Some((prefix, true)), None)
}

/// Letters that take part in more than one pair of cases, or that only some maps change.
/// What a text with one of them was before cannot be told by its two cases.
fn is_plain(c: char) -> bool {
    let (low, high) = (lower(c), upper(c));
    let pair = lower(high) == low && upper(low) == high && (c == low || c == high);
    pair && (c.is_ascii() || ('\u{C0}'..='\u{24F}').contains(&c)) && !SHARED.contains(&low)
}

/// Lower-case letters that other letters than their own upper case become, or come from:
/// K (Kelvin), ſ, İ and ı, Å (Angstrom), and what has a form of its own in titles.
const SHARED: &[char] = &['k', 's', 'i', 'å', 'ı', 'ſ', 'ß', 'ǆ', 'ǉ', 'ǌ', 'ǳ', 'ŉ', 'ǰ', 'ÿ'];

/// The texts that a map of cases makes these of.
fn cased(texts: &[String], map: fn(char) -> char) -> Option<Domain> {
    let mut all = BTreeSet::new();
    for text in texts {
        // What the map changes is no result of it.
        if text.chars().any(|c| map(c) != c) {
            continue;
        }
        all.extend(spellings(text)?.as_points()?.iter().cloned());
    }
    Some(Domain::of_strings(Values::points(all)))
}

/// All texts that are the same but for their case; `None` if they are too many, or if
/// some letter of them has others that it may be taken for.
pub(super) fn spellings(text: &str) -> Option<Values<String>> {
    let mut all = vec![String::new()];
    for c in text.chars() {
        let (low, high) = (lower(c), upper(c));
        if low == high {
            if !is_caseless(c) {
                return None;
            }
            all.iter_mut().for_each(|text| text.push(c));
            continue;
        }
        if !is_plain(c) || all.len() * 2 > SPELLINGS_MAX {
            return None;
        }
        let mut others = all.clone();
        all.iter_mut().for_each(|text| text.push(low));
        others.iter_mut().for_each(|text| text.push(high));
        all.extend(others);
    }
    Some(Values::points(all))
}

/// Whether nothing else becomes the character either.
fn is_caseless(c: char) -> bool {
    c.is_ascii() || !c.is_alphabetic()
}
