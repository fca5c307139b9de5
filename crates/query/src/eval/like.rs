//! LIKE patterns: `%` any run, `_` any character, `[abc]`, `[a-f]`, `[^…]`.

use super::budget::Budget;
use crate::error::QueryError;

/// A pattern that is compiled once, however many rows it is matched against.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    AnyRun,
    AnyCharacter,
    Character(char),
    /// The ranges are in order and disjoint: there may be as many as the pattern is long.
    Set {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

/// What all texts that match a pattern have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fits {
    /// They are this text.
    Exactly(String),
    /// They have this prefix, and whatever has it matches.
    Prefix(String),
    /// They have this prefix.
    AtMost(String),
}

impl Part {
    /// Whether the part matches this character.
    fn takes(&self, c: char) -> bool {
        match self {
            Part::AnyRun => false,
            Part::AnyCharacter => true,
            Part::Character(own) => *own == c,
            Part::Set { negated, ranges } => {
                let next = ranges.partition_point(|(low, _)| *low <= c);
                let holds = next.checked_sub(1).and_then(|at| ranges.get(at));
                holds.is_some_and(|(_, high)| c <= *high) != *negated
            }
        }
    }
}

impl Pattern {
    pub(crate) fn new(pattern: &str, escape: Option<char>) -> Pattern {
        Pattern { parts: parts(pattern, escape) }
    }

    /// Whether the whole text matches.
    ///
    /// Greedy with one backtracking point: when a part does not match, only the last run
    /// can have been too short, so nothing before it is tried again.
    pub(crate) fn matches(&self, text: &str, budget: &Budget) -> Result<bool, QueryError> {
        let (mut rest, mut p) = (text, 0);
        let mut last_run: Option<(&str, usize)> = None;
        loop {
            budget.spend_steps(1)?;
            let mut chars = rest.chars();
            match (chars.next(), self.parts.get(p)) {
                (None, None) => return Ok(true),
                (_, Some(Part::AnyRun)) => {
                    last_run = Some((rest, p));
                    p += 1;
                    continue;
                }
                (Some(c), Some(part)) if part.takes(c) => {
                    (rest, p) = (chars.as_str(), p + 1);
                    continue;
                }
                _ => {}
            }
            let Some((start, run)) = last_run else { return Ok(false) };
            let mut longer = start.chars();
            if longer.next().is_none() {
                return Ok(false);
            }
            last_run = Some((longer.as_str(), run));
            (rest, p) = (longer.as_str(), run + 1);
        }
    }

    pub(crate) fn fits(&self) -> Fits {
        let mut prefix = String::new();
        let mut parts = self.parts.iter();
        for part in parts.by_ref() {
            match part {
                Part::Character(c) => prefix.push(*c),
                Part::AnyRun if parts.as_slice().is_empty() => return Fits::Prefix(prefix),
                Part::AnyRun | Part::AnyCharacter | Part::Set { .. } => {
                    return Fits::AtMost(prefix);
                }
            }
        }
        Fits::Exactly(prefix)
    }
}

fn parts(pattern: &str, escape: Option<char>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut chars = pattern.chars();
    // A set that does not close is searched for once: none after it closes, either.
    let mut closes = true;
    while let Some(c) = chars.next() {
        let part = match c {
            _ if Some(c) == escape => chars.next().map_or(Part::Character(c), Part::Character),
            '%' => Part::AnyRun,
            '_' => Part::AnyCharacter,
            '[' if closes => match set(chars.as_str()) {
                Some((set, rest)) => {
                    chars = rest.chars();
                    set
                }
                None => {
                    closes = false;
                    Part::Character('[')
                }
            },
            _ => Part::Character(c),
        };
        parts.push(part);
    }
    parts
}

/// Reads a set after its opening bracket; `None` if it does not close.
fn set(text: &str) -> Option<(Part, &str)> {
    let (inside, rest) = text.split_once(']')?;
    let (negated, inside) = match inside.strip_prefix('^') {
        Some(inside) => (true, inside),
        None => (false, inside),
    };
    let mut ranges = Vec::new();
    let mut chars = inside.chars();
    while let Some(low) = chars.next() {
        let mut ahead = chars.clone();
        match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) => {
                ranges.push((low, high));
                chars = ahead;
            }
            _ => ranges.push((low, low)),
        }
    }
    let ranges = apart(ranges);
    match ranges.as_slice() {
        [(only, last)] if only == last && !negated => Some((Part::Character(*only), rest)),
        _ => Some((Part::Set { negated, ranges }, rest)),
    }
}

/// Sorts ranges and joins those that meet; reversed ones are empty.
fn apart(mut ranges: Vec<(char, char)>) -> Vec<(char, char)> {
    ranges.retain(|(low, high)| low <= high);
    ranges.sort_unstable();
    let mut apart: Vec<(char, char)> = Vec::new();
    for (low, high) in ranges {
        match apart.last_mut() {
            Some((_, last)) if low <= *last => *last = high.max(*last),
            _ => apart.push((low, high)),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_known_from_the_start_of_the_pattern() {
        let fits = |pattern: &str| Pattern::new(pattern, Some('!')).fits();
        assert_eq!(fits("a!%b"), Fits::Exactly("a%b".into()));
        assert_eq!(fits("ab%"), Fits::Prefix("ab".into()));
        assert_eq!(fits("a%b"), Fits::AtMost("a".into()));
        assert_eq!(fits("a_"), Fits::AtMost("a".into()));
        assert_eq!(fits("%"), Fits::Prefix(String::new()));
    }
}
