//! The one reader of JSON text, strict about everything the grammar says.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::raw::{hex4, unescape};
use super::{DEPTH_MAX, JsonError, Number, Problem, Raw};

/// Objects up to this many properties are checked for repeated names by
/// comparing each with each, which needs no memory; larger ones use a set.
const LINEAR_NAMES_MAX: usize = 12;

type Check = Result<(), Problem>;

/// A position in a text.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, at: 0 }
    }

    /// Starts behind the opening bracket of a checked array or object.
    pub(super) fn inside(text: &'a str, open: u8) -> Option<Scanner<'a>> {
        (text.as_bytes().first() == Some(&open)).then_some(Scanner { text, at: 1 })
    }

    /// Checks a whole document.
    pub(super) fn document(mut self) -> Result<Raw<'a>, JsonError> {
        let checked = self.checked_document();
        checked.map_err(|problem| JsonError { offset: self.at, problem })
    }

    fn checked_document(&mut self) -> Result<Raw<'a>, Problem> {
        self.blanks();
        let start = self.at;
        self.value(0)?;
        let raw = Raw::new(self.since(start));
        self.blanks();
        if self.at < self.text.len() { Err(Problem::Trailing) } else { Ok(raw) }
    }

    /// The next `name: value` of a checked object.
    pub(super) fn next_member(&mut self) -> Option<(Cow<'a, str>, Raw<'a>)> {
        self.separator();
        if self.peek() != Some(b'"') {
            return None;
        }
        let name = self.name().ok()?;
        self.blanks();
        self.expect(b':').ok()?;
        self.blanks();
        Some((unescape(name), self.skipped()?))
    }

    /// The next element of a checked array.
    pub(super) fn next_element(&mut self) -> Option<Raw<'a>> {
        self.separator();
        if matches!(self.peek(), None | Some(b']')) { None } else { self.skipped() }
    }

    fn separator(&mut self) {
        self.blanks();
        if self.peek() == Some(b',') {
            self.at += 1;
            self.blanks();
        }
    }

    /// Steps over one checked value: only brackets and strings need looking at.
    fn skipped(&mut self) -> Option<Raw<'a>> {
        let start = self.at;
        let mut open = 0_usize;
        loop {
            match self.peek()? {
                b'"' => self.string().ok()?,
                b'{' | b'[' => {
                    open += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    open = open.checked_sub(1)?;
                    self.at += 1;
                }
                b't' | b'f' | b'n' | b'-' | b'0'..=b'9' => self.scalar(),
                _ => self.at += 1,
            }
            if open == 0 {
                return Some(Raw::new(self.since(start)));
            }
        }
    }

    /// Steps over a checked literal or number.
    fn scalar(&mut self) {
        while matches!(self.peek(), Some(b) if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'+' | b'.'))
        {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Check {
        match self.peek().ok_or(Problem::End)? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(Problem::Character),
        }
    }

    fn object(&mut self, depth: usize) -> Check {
        let start = self.open(depth)?;
        if self.closes(b'}') {
            return Ok(());
        }
        let mut names: Vec<&'a str> = Vec::new();
        loop {
            let name_at = self.at;
            if self.peek().ok_or(Problem::End)? != b'"' {
                return Err(Problem::Character);
            }
            names.push(self.name()?);
            self.blanks();
            self.expect(b':')?;
            self.blanks();
            self.value(depth + 1)?;
            if names.len() <= LINEAR_NAMES_MAX && repeats_last(&names) {
                self.at = name_at;
                return Err(Problem::Duplicate);
            }
            if !self.continues(b'}')? {
                break;
            }
        }
        if names.len() > LINEAR_NAMES_MAX && repeats_any(&names) {
            self.at = start;
            return Err(Problem::Duplicate);
        }
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Check {
        self.open(depth)?;
        if self.closes(b']') {
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            if !self.continues(b']')? {
                return Ok(());
            }
        }
    }

    /// Enters a bracket; returns where it stands.
    fn open(&mut self, depth: usize) -> Result<usize, Problem> {
        if depth >= DEPTH_MAX {
            return Err(Problem::Depth);
        }
        let start = self.at;
        self.at += 1;
        self.blanks();
        Ok(start)
    }

    fn closes(&mut self, close: u8) -> bool {
        let closes = self.peek() == Some(close);
        self.at += usize::from(closes);
        closes
    }

    /// After an element: true for a comma, false for the closing bracket.
    fn continues(&mut self, close: u8) -> Result<bool, Problem> {
        self.blanks();
        if self.closes(close) {
            return Ok(false);
        }
        self.expect(b',')?;
        self.blanks();
        Ok(true)
    }

    /// Reads a string and returns its body between the quotes, escapes and all.
    fn name(&mut self) -> Result<&'a str, Problem> {
        let start = self.at + 1;
        self.string()?;
        Ok(self.text.get(start..self.at - 1).unwrap_or_default())
    }

    fn string(&mut self) -> Check {
        self.at += 1;
        loop {
            match self.peek().ok_or(Problem::End)? {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => self.escape()?,
                0x00..=0x1F => return Err(Problem::Control),
                _ => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Check {
        self.at += 1;
        match self.peek().ok_or(Problem::End)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                self.at += 1;
                Ok(())
            }
            b'u' => {
                self.at += 1;
                match self.unicode()? {
                    0xD800..=0xDBFF => self.low_surrogate(),
                    0xDC00..=0xDFFF => Err(Problem::Escape),
                    _ => Ok(()),
                }
            }
            _ => Err(Problem::Escape),
        }
    }

    fn low_surrogate(&mut self) -> Check {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u")) {
            return Err(Problem::Escape);
        }
        self.at += 2;
        if (0xDC00..=0xDFFF).contains(&self.unicode()?) { Ok(()) } else { Err(Problem::Escape) }
    }

    fn unicode(&mut self) -> Result<u32, Problem> {
        let (code, _) = self.text.get(self.at..).and_then(hex4).ok_or(Problem::Escape)?;
        self.at += 4;
        Ok(code)
    }

    fn literal(&mut self, word: &str) -> Check {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(Problem::Character);
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Check {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        if Number::fits(self.since(start)) { Ok(()) } else { Err(Problem::NumberRange) }
    }

    fn digits(&mut self) -> Check {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at > start {
            return Ok(());
        }
        Err(if self.peek().is_none() { Problem::End } else { Problem::Character })
    }

    fn expect(&mut self, byte: u8) -> Check {
        match self.peek() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(Problem::Character),
            None => Err(Problem::End),
        }
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }
}

fn repeats_last(names: &[&str]) -> bool {
    let Some((last, earlier)) = names.split_last() else { return false };
    let last = unescape(last);
    earlier.iter().any(|name| unescape(name) == last)
}

fn repeats_any(names: &[&str]) -> bool {
    let mut seen = BTreeSet::new();
    names.iter().any(|name| !seen.insert(unescape(name)))
}
