//! JSON as this database sees it: text first, trees only where needed.
//!
//! Documents are stored as text, so reads are a copy of bytes. [`Raw`] looks into such text
//! without building anything; [`Value`] is the tree for code that edits or computes (patch,
//! expressions, policies).
//!
//! JSON can spell one thing differently, and two readers of one text that understood it
//! differently would give two answers: an index and a scan, say, or the check of a key and
//! its hash. So what comes from a client is brought into [`canonical`] form once, before
//! anything else sees it: numbers have one spelling, an object names a property once (the
//! last one counts), strings have no bare control characters.

mod distinct;
mod number;
mod raw;
mod scanner;
mod value;

use std::borrow::Cow;

use bytes::Bytes;

pub use distinct::{DistinctHash, NestedHash, Place, PlacedHash, hash64};
pub use number::Number;
pub use raw::{JsonKind, Raw};
pub use value::{Object, Value};

/// Levels of nesting that a document may have, as in the service.
pub const DEPTH_MAX: usize = 128;

/// Why a text is not acceptable JSON, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {offset}")]
pub struct JsonError {
    /// Byte offset of the first character that cannot be accepted.
    pub offset: usize,
    pub problem: JsonProblem,
}

/// The kinds of unacceptable JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonProblem {
    #[error("unexpected end of text")]
    End,
    #[error("unexpected character")]
    Character,
    #[error("text after the end of the value")]
    Trailing,
    #[error("invalid escape sequence or unpaired surrogate")]
    Escape,
    #[error("control character in a string")]
    Control,
    #[error("number out of range")]
    NumberRange,
    #[error("more than {DEPTH_MAX} levels of nesting")]
    Depth,
    #[error("property named twice in one object")]
    Duplicate,
    #[error("text is not UTF-8")]
    Encoding,
}

/// Checks a client's text and brings it into canonical form, without blanks around it.
///
/// Nothing is copied if the text has that form already. Otherwise the result is at most
/// five times as long: `1e18` has 19 digits.
pub fn canonical(text: &[u8]) -> Result<Cow<'_, str>, JsonError> {
    scanner::Scanner::new(utf8(text)?).canonical()
}

/// [`canonical`] for a shared body.
pub fn canonical_body(body: &Bytes) -> Result<Bytes, JsonError> {
    Ok(match canonical(body)? {
        Cow::Borrowed(text) => body.slice_ref(text.as_bytes()),
        Cow::Owned(text) => text.into(),
    })
}

/// Checks a whole text that this database wrote and returns a view into it. Names must
/// be unique and control characters escaped.
pub fn parse_raw(text: &[u8]) -> Result<Raw<'_>, JsonError> {
    scanner::Scanner::new(utf8(text)?).document()
}

/// Parses a client's text into a tree.
pub fn parse(text: &[u8]) -> Result<Value, JsonError> {
    canonical(text).map(|text| Raw::trusted(&text).to_value())
}

/// Appends `text` as a JSON string with quotes, escaping only what must be.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut clean = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0C => "\\f",
            0x00..=0x1F => "",
            _ => continue,
        };
        out.push_str(
            text.get(clean..at).expect("escaped bytes are ASCII, so both ends are boundaries"),
        );
        if escape.is_empty() {
            out.push_str(&format!("\\u{byte:04x}"));
        } else {
            out.push_str(escape);
        }
        clean = at + 1;
    }
    out.push_str(text.get(clean..).expect("the last escaped byte is ASCII"));
    out.push('"');
}

fn utf8(text: &[u8]) -> Result<&str, JsonError> {
    std::str::from_utf8(text)
        .map_err(|e| JsonError { offset: e.valid_up_to(), problem: JsonProblem::Encoding })
}

#[cfg(test)]
mod tests;
