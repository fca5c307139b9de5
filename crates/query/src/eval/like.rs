//! LIKE patterns: `%` any run, `_` any character, `[abc]`, `[a-f]`, `[^…]`.

use super::budget::Budget;
use crate::error::QueryError;

#[derive(Debug)]
enum Part {
    AnyRun,
    AnyCharacter,
    Character(char),
    Set { negated: bool, ranges: Vec<(char, char)> },
}

impl Part {
    /// Whether the part stands for this one character.
    fn takes(&self, c: char) -> bool {
        match self {
            Part::AnyRun => false,
            Part::AnyCharacter => true,
            Part::Character(own) => *own == c,
            Part::Set { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

/// Whether the whole text fits the pattern.
pub(crate) fn matches(
    text: &str,
    pattern: &str,
    escape: Option<char>,
    budget: &Budget,
) -> Result<bool, QueryError> {
    let parts = parts(pattern, escape);
    let text: Vec<char> = text.chars().collect();
    fits(&text, &parts, budget)
}

/// Greedy with one point of return: when a part does not fit, only the last
/// run can have been too short, so nothing before it is tried again.
fn fits(text: &[char], parts: &[Part], budget: &Budget) -> Result<bool, QueryError> {
    let (mut t, mut p) = (0, 0);
    let mut last_run: Option<(usize, usize)> = None;
    loop {
        budget.spend_like_step()?;
        let (next_char, next_part) = (text.get(t), parts.get(p));
        match (next_char, next_part) {
            (None, None) => return Ok(true),
            (_, Some(Part::AnyRun)) => {
                last_run = Some((t, p));
                p += 1;
                continue;
            }
            (Some(c), Some(part)) if part.takes(*c) => {
                (t, p) = (t + 1, p + 1);
                continue;
            }
            _ => {}
        }
        match last_run {
            Some((start, run)) if start < text.len() => {
                last_run = Some((start + 1, run));
                (t, p) = (start + 1, run + 1);
            }
            _ => return Ok(false),
        }
    }
}

fn parts(pattern: &str, escape: Option<char>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        let part = match c {
            _ if Some(c) == escape => chars.next().map_or(Part::Character(c), Part::Character),
            '%' => Part::AnyRun,
            '_' => Part::AnyCharacter,
            '[' => match set(chars.as_str()) {
                Some((set, rest)) => {
                    chars = rest.chars();
                    set
                }
                None => Part::Character('['),
            },
            _ => Part::Character(c),
        };
        parts.push(part);
    }
    parts
}

/// Reads a set behind its opening bracket; `None` if it does not close.
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
    Some((Part::Set { negated, ranges }, rest))
}
