//! Queries of a corpus with a word too many, too few, or of another query.

use super::dice::Dice;
use super::words::words;

/// Words that are put in where none was.
const WORDS: &[&str] = &[
    "SELECT",
    "VALUE",
    "DISTINCT",
    "TOP",
    "FROM",
    "JOIN",
    "IN",
    "WHERE",
    "GROUP",
    "BY",
    "ORDER",
    "ASC",
    "OFFSET",
    "LIMIT",
    "AND",
    "OR",
    "NOT",
    "BETWEEN",
    "LIKE",
    "EXISTS",
    "ARRAY",
    "AS",
    "undefined",
    "null",
    "true",
    "1",
    "'x'",
    "c",
    "c.a",
    "@p",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ".",
    ":",
    "?",
    "??",
    "=",
    "!=",
    "<",
    "+",
    "-",
    "*",
    "/",
    "%",
    "||",
    "~",
    "COUNT(1)",
    "udf.f(1)",
];

/// A query with up to three changes; `other` lends words.
pub(crate) fn query(text: &str, other: &str, dice: &mut Dice) -> String {
    let mut changed = words(text);
    let lent = words(other);
    for _ in 0..=dice.below(3) {
        change(&mut changed, &lent, dice);
    }
    changed.concat()
}

fn change(words: &mut Vec<String>, lent: &[String], dice: &mut Dice) {
    let at = dice.below(words.len());
    let word = |dice: &mut Dice| match dice.below(2) {
        0 => dice.pick(WORDS).to_owned(),
        _ => {
            let at = dice.below(lent.len());
            lent.get(at).cloned().unwrap_or_default()
        }
    };
    match dice.below(7) {
        0 if at < words.len() => drop(words.remove(at)),
        1 => words.insert(at, format!(" {} ", word(dice))),
        2 | 3 if at < words.len() => words[at] = word(dice),
        4 if at + 2 < words.len() => words.swap(at, at + 2),
        5 if at < words.len() => words.insert(at, words[at].clone()),
        _ => {
            let from = dice.below(lent.len());
            words.truncate(at);
            words.extend(lent.iter().skip(from).cloned());
        }
    }
}
