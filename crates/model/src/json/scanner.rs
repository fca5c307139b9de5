//! The one reader of JSON text, strict about everything the grammar says.
//!
//! It checks, and on request rewrites into canonical form while it checks: text
//! that has that form already, which nearly all has, is not copied.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::raw::{hex4, unescape};
use super::{DEPTH_MAX, JsonError, JsonProblem, Number, Raw};

/// Objects with up to this many properties are checked for repeated names by comparing all
/// pairs, which needs no memory; larger ones use a set.
const LINEAR_NAMES_MAX: usize = 12;

type Check = Result<(), JsonProblem>;

/// A position in a text.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// Absent if the text is to stay as it is: it must be canonical then, except for the
    /// spelling of numbers.
    rewritten: Option<Rewritten>,
}

/// The text in canonical form: what is here, then what follows `copied` in the source.
/// Empty as long as the two are the same.
#[derive(Debug)]
struct Rewritten {
    text: String,
    copied: usize,
}

/// A property that is being scanned.
struct Member<'a> {
    /// As written, escapes and all.
    name: &'a str,
    /// Where it begins in the source, and in the rewritten text.
    source: usize,
    target: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, at: 0, rewritten: None }
    }

    /// Starts after the opening bracket of a checked array or object.
    pub(super) fn inside(text: &'a str, open: u8) -> Option<Scanner<'a>> {
        let starts = text.as_bytes().first() == Some(&open);
        starts.then_some(Scanner { text, at: 1, rewritten: None })
    }

    /// Checks a whole document.
    pub(super) fn document(mut self) -> Result<Raw<'a>, JsonError> {
        let checked = self.checked_document();
        checked.map_err(|problem| JsonError { offset: self.at, problem })
    }

    /// Checks a whole document and brings it into canonical form.
    pub(super) fn canonical(mut self) -> Result<Cow<'a, str>, JsonError> {
        self.blanks();
        self.rewritten = Some(Rewritten { text: String::new(), copied: self.at });
        let as_written = self.checked_document();
        let as_written = as_written.map_err(|problem| JsonError { offset: self.at, problem })?;
        Ok(match self.rewritten {
            Some(Rewritten { mut text, copied }) if !text.is_empty() => {
                text.push_str(self.text.get(copied..).unwrap_or_default().trim_end());
                Cow::Owned(text)
            }
            Some(_) | None => Cow::Borrowed(as_written.text()),
        })
    }

    fn checked_document(&mut self) -> Result<Raw<'a>, JsonProblem> {
        self.blanks();
        let start = self.at;
        self.value(0)?;
        let raw = Raw::new(self.since(start));
        self.blanks();
        if self.at < self.text.len() { Err(JsonProblem::Trailing) } else { Ok(raw) }
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
        match self.peek().ok_or(JsonProblem::End)? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(JsonProblem::Character),
        }
    }

    fn object(&mut self, depth: usize) -> Check {
        self.open(depth)?;
        if self.closes(b'}') {
            return Ok(());
        }
        let mut members: Vec<Member<'a>> = Vec::new();
        loop {
            members.push(self.member(depth)?);
            if !self.continues(b'}')? {
                break;
            }
        }
        let Some(repeated) = repeated(&members) else { return Ok(()) };
        if self.rewritten.is_none() {
            self.at = repeated.source;
            return Err(JsonProblem::Duplicate);
        }
        self.keep_last(&members);
        Ok(())
    }

    fn member(&mut self, depth: usize) -> Result<Member<'a>, JsonProblem> {
        if self.peek().ok_or(JsonProblem::End)? != b'"' {
            return Err(JsonProblem::Character);
        }
        let (source, target) = (self.at, self.target());
        let name = self.name()?;
        self.blanks();
        self.expect(b':')?;
        self.blanks();
        self.value(depth + 1)?;
        Ok(Member { name, source, target })
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

    /// Enters a bracket.
    fn open(&mut self, depth: usize) -> Check {
        if depth >= DEPTH_MAX {
            return Err(JsonProblem::Depth);
        }
        self.at += 1;
        self.blanks();
        Ok(())
    }

    fn closes(&mut self, close: u8) -> bool {
        let closes = self.peek() == Some(close);
        self.at += usize::from(closes);
        closes
    }

    /// After an element: true for a comma, false for the closing bracket.
    fn continues(&mut self, close: u8) -> Result<bool, JsonProblem> {
        self.blanks();
        if self.closes(close) {
            return Ok(false);
        }
        self.expect(b',')?;
        self.blanks();
        Ok(true)
    }

    /// Reads a string and returns its body between the quotes, escapes and all.
    fn name(&mut self) -> Result<&'a str, JsonProblem> {
        let start = self.at + 1;
        self.string()?;
        Ok(self.text.get(start..self.at - 1).unwrap_or_default())
    }

    fn string(&mut self) -> Check {
        self.at += 1;
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            let plain = rest.iter().position(|byte| matches!(byte, 0x00..=0x1F | b'"' | b'\\'));
            self.at += plain.unwrap_or(rest.len());
            match self.peek().ok_or(JsonProblem::End)? {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => self.escape()?,
                b'\t' => self.control("\\t")?,
                b'\n' => self.control("\\n")?,
                b'\r' => self.control("\\r")?,
                0x00..=0x1F => return Err(JsonProblem::Control),
                _ => self.at += 1,
            }
        }
    }

    /// Whitespace control characters: clients send them unescaped in strings, and the
    /// service accepts them.
    fn control(&mut self, escape: &str) -> Check {
        if self.rewritten.is_none() {
            return Err(JsonProblem::Control);
        }
        let start = self.at;
        self.at += 1;
        self.replace_since(start, escape);
        Ok(())
    }

    fn escape(&mut self) -> Check {
        self.at += 1;
        match self.peek().ok_or(JsonProblem::End)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                self.at += 1;
                Ok(())
            }
            b'u' => {
                self.at += 1;
                match self.unicode()? {
                    0xD800..=0xDBFF => self.low_surrogate(),
                    0xDC00..=0xDFFF => Err(JsonProblem::Escape),
                    _ => Ok(()),
                }
            }
            _ => Err(JsonProblem::Escape),
        }
    }

    fn low_surrogate(&mut self) -> Check {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u")) {
            return Err(JsonProblem::Escape);
        }
        self.at += 2;
        if (0xDC00..=0xDFFF).contains(&self.unicode()?) { Ok(()) } else { Err(JsonProblem::Escape) }
    }

    fn unicode(&mut self) -> Result<u32, JsonProblem> {
        let (code, _) = self.text.get(self.at..).and_then(hex4).ok_or(JsonProblem::Escape)?;
        self.at += 4;
        Ok(code)
    }

    fn literal(&mut self, word: &str) -> Check {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(JsonProblem::Character);
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
        let mut fraction = None;
        if self.peek() == Some(b'.') {
            self.at += 1;
            let start = self.at;
            self.digits()?;
            fraction = Some(self.since(start));
        }
        let exponent = matches!(self.peek(), Some(b'e' | b'E'));
        if exponent {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        let spelling = self.since(start);
        if !exponent && Number::is_plain(spelling, fraction) {
            return Ok(());
        }
        let number = Number::from_spelling(spelling).ok_or(JsonProblem::NumberRange)?;
        if self.rewritten.is_some() && !number.is_spelled(spelling) {
            self.replace_since(start, &number.to_string());
        }
        Ok(())
    }

    fn digits(&mut self) -> Check {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at > start {
            return Ok(());
        }
        Err(if self.peek().is_none() { JsonProblem::End } else { JsonProblem::Character })
    }

    /// The offset of the next byte in the rewritten text.
    fn target(&self) -> usize {
        self.rewritten.as_ref().map_or(self.at, |done| done.text.len() + (self.at - done.copied))
    }

    /// Replaces what was read since `start`.
    fn replace_since(&mut self, start: usize, with: &str) {
        let Some(done) = &mut self.rewritten else { return };
        done.text.push_str(self.text.get(done.copied..start).unwrap_or_default());
        done.text.push_str(with);
        done.copied = self.at;
    }

    /// Of properties with one name the last one is kept. The last of all is kept in any
    /// case, so every other one ends where its successor begins, comma included.
    fn keep_last(&mut self, members: &[Member<'a>]) {
        let at = self.at;
        self.replace_since(at, "");
        let Some(done) = &mut self.rewritten else { return };
        let Some(start) = members.first().map(|first| first.target) else { return };
        let all = done.text.split_off(start);
        let mut seen = BTreeSet::new();
        let mut last: Vec<bool> =
            members.iter().rev().map(|member| seen.insert(unescape(member.name))).collect();
        last.reverse();
        let ends = members.iter().skip(1).map(|next| next.target - start).chain([all.len()]);
        for ((member, end), last) in members.iter().zip(ends).zip(last) {
            if last {
                done.text.push_str(all.get(member.target - start..end).unwrap_or_default());
            }
        }
    }

    fn expect(&mut self, byte: u8) -> Check {
        match self.peek() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(JsonProblem::Character),
            None => Err(JsonProblem::End),
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

/// A property with the name of an earlier one.
fn repeated<'m, 'a>(members: &'m [Member<'a>]) -> Option<&'m Member<'a>> {
    if members.len() > LINEAR_NAMES_MAX {
        let mut seen = BTreeSet::new();
        return members.iter().find(|member| !seen.insert(unescape(member.name)));
    }
    let repeats = |(at, member): &(usize, &Member<'a>)| {
        let name = unescape(member.name);
        members.iter().take(*at).any(|earlier| unescape(earlier.name) == name)
    };
    members.iter().enumerate().find(repeats).map(|(_, member)| member)
}
