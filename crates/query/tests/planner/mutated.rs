//! Queries of a corpus with a word too many, too few, or of another query.

use super::dice::Dice;

/// Words that are put in where none was.
const WORDS: &[&str] = &[
    "SELECT", "VALUE", "DISTINCT", "TOP", "FROM", "JOIN", "IN", "WHERE", "GROUP", "BY", "ORDER",
    "ASC", "OFFSET", "LIMIT", "AND", "OR", "NOT", "BETWEEN", "LIKE", "EXISTS", "ARRAY", "AS",
    "undefined", "null", "true", "1", "'x'", "c", "c.a", "@p", "(", ")", "[", "]", "{", "}", ",",
    ".", ":", "?", "??", "=", "!=", "<", "+", "-", "*", "/", "%", "||", "~", "COUNT(1)", "udf.f(1)",
];

/// A query with up to three changes; `other` lends words.
pub(crate) fn query(text: &str, other: &str, dice: &mut Dice) -> String {
    let mut words: Vec<String> = words(text);
    let lent = self::words(other);
    for _ in 0..=dice.below(3) {
        change(&mut words, &lent, dice);
    }
    words.concat()
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

/// Names and numbers, strings, blanks, and signs one by one.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let part = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            '\'' | '"' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            c if part(c) || c == '@' => rest[c.len_utf8()..]
                .find(|c| !part(c))
                .map_or(rest.len(), |end| end + c.len_utf8()),
            c if c.is_whitespace() => rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        words.push(rest[..length].to_owned());
        rest = &rest[length..];
    }
    words
}
