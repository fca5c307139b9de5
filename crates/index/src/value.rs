//! Values as bytes whose order is the values' order.
//!
//! A value's bytes are never a prefix of another's, so that whatever is appended to them
//! cannot disturb the order. Strings keep their first 128 bytes; a mark says that there was
//! more. Arrays and objects are known by the hash that orders them.

use std::borrow::Cow;
use std::fmt;

use model::json::{DistinctHash, JsonKind, Number, Raw, Value, write_string};
use model::policy::SortOrder;

/// Bytes of a string that an entry keeps: an index term must stay small beside
/// a storage block, and strings that differ only later are rare.
pub(crate) const TEXT_BYTES_MAX: usize = 128;

pub(crate) const UNDEFINED: u8 = 0x10;
pub(crate) const NULL: u8 = 0x20;
const FALSE: u8 = 0x30;
const TRUE: u8 = 0x31;
const NUMBER: u8 = 0x40;
pub(crate) const STRING: u8 = 0x50;
pub(crate) const ARRAY: u8 = 0x60;
pub(crate) const OBJECT: u8 = 0x70;
/// The names of an object's members; see `absence.rs`.
pub(crate) const MEMBERS: u8 = 0x80;

/// Ends a string. Text bytes are written one higher than they are, so this is
/// below all of them: a string sorts before its continuations.
pub(crate) const WHOLE: u8 = 0x00;
/// Ends a string that was cut. UTF-8 ends at F4, so this is above all of them.
pub(crate) const CUT: u8 = 0xFF;

const SIGN: u64 = 1 << 63;

/// What the index knows of a value: scalars completely, arrays and objects by their hash.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexValue<'a> {
    /// There is no such property.
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    String(Cow<'a, str>),
    Array(DistinctHash),
    Object(DistinctHash),
}

/// A value read back from an entry.
#[derive(Clone, Debug, PartialEq)]
pub enum Decoded {
    Whole(IndexValue<'static>),
    /// The first bytes of a string that was longer.
    Cut(Vec<u8>),
}

/// Bytes that no entry has: damaged, or not an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("index entry ends too early")]
    Truncated,
    #[error("index entry has the unknown type tag {tag:02x}")]
    Tag { tag: u8 },
    #[error("index entry has a number that is not finite")]
    Number,
    #[error("index entry has a string that is not UTF-8")]
    Text,
}

impl<'a> From<&'a Value> for IndexValue<'a> {
    fn from(value: &'a Value) -> IndexValue<'a> {
        match value {
            Value::Null => IndexValue::Null,
            Value::Bool(truth) => IndexValue::Bool(*truth),
            Value::Number(number) => IndexValue::Number(number.as_f64()),
            Value::String(text) => IndexValue::String(Cow::Borrowed(text)),
            Value::Array(_) => IndexValue::Array(DistinctHash::of(value)),
            Value::Object(_) => IndexValue::Object(DistinctHash::of(value)),
        }
    }
}

impl<'a> IndexValue<'a> {
    /// A scalar of an item's text; `None` for an array or object, whose hash is that of its
    /// parts.
    pub(crate) fn scalar(raw: Raw<'a>) -> Option<IndexValue<'a>> {
        match raw.kind() {
            JsonKind::Null => Some(IndexValue::Null),
            JsonKind::Bool => Some(IndexValue::Bool(raw.as_bool().unwrap_or_default())),
            JsonKind::Number => Some(IndexValue::Number(raw.as_f64().unwrap_or_default())),
            JsonKind::String => Some(IndexValue::String(raw.as_str().unwrap_or_default())),
            JsonKind::Array | JsonKind::Object => None,
        }
    }
}

impl IndexValue<'_> {
    /// Appends the value's bytes, keeping at most `text_max` bytes of a string.
    pub(crate) fn encode(&self, text_max: usize, out: &mut Vec<u8>) {
        out.push(self.tag());
        match self {
            IndexValue::Number(number) => out.extend(ordered_bits(*number).to_be_bytes()),
            IndexValue::String(text) => encode_text(text.as_bytes(), text_max, out),
            IndexValue::Array(hash) | IndexValue::Object(hash) => out.extend(hash.to_bytes()),
            IndexValue::Undefined | IndexValue::Null | IndexValue::Bool(_) => {}
        }
    }

    /// Appends the value's bytes as a part of a composite entry.
    pub(crate) fn encode_part(&self, order: SortOrder, text_max: usize, out: &mut Vec<u8>) {
        let start = out.len();
        self.encode(text_max, out);
        if order == SortOrder::Descending {
            out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
        }
    }

    pub(crate) fn tag(&self) -> u8 {
        match self {
            IndexValue::Undefined => UNDEFINED,
            IndexValue::Null => NULL,
            IndexValue::Bool(false) => FALSE,
            IndexValue::Bool(true) => TRUE,
            IndexValue::Number(_) => NUMBER,
            IndexValue::String(_) => STRING,
            IndexValue::Array(_) => ARRAY,
            IndexValue::Object(_) => OBJECT,
        }
    }

    /// Whether an entry with this value's bytes certainly has this value, if `text_max`
    /// bytes of a text are kept. A client that wants two arrays with one hash can make them.
    pub(crate) fn is_proof_in(&self, text_max: usize) -> bool {
        match self {
            IndexValue::Array(_) | IndexValue::Object(_) => false,
            IndexValue::Undefined
            | IndexValue::Null
            | IndexValue::Bool(_)
            | IndexValue::Number(_)
            | IndexValue::String(_) => self.is_ordered_in(text_max),
        }
    }

    /// Whether no two values with these bytes are told apart by the order of the language.
    pub(crate) fn is_ordered_in(&self, text_max: usize) -> bool {
        match self {
            IndexValue::String(text) => text.len() <= text_max,
            IndexValue::Undefined
            | IndexValue::Null
            | IndexValue::Bool(_)
            | IndexValue::Number(_)
            | IndexValue::Array(_)
            | IndexValue::Object(_) => true,
        }
    }
}

/// Whether all values that equal this one have one entry. Integers that have one double are
/// equal, and so are arrays and objects of them, but these have hashes of their own.
#[must_use]
pub fn has_one_entry(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        Value::Array(_) | Value::Object(_) => !rounds_integers(value),
    }
}

fn rounds_integers(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => false,
        Value::Number(number) => number.beyond_double().is_some(),
        Value::Array(items) => items.iter().any(rounds_integers),
        Value::Object(object) => object.iter().any(|(_, member)| rounds_integers(member)),
    }
}

/// The lowest and the highest tag of each type that a predicate can require.
pub(crate) fn tags_of(kind: JsonKind) -> (u8, u8) {
    match kind {
        JsonKind::Null => (NULL, NULL),
        JsonKind::Bool => (FALSE, TRUE),
        JsonKind::Number => (NUMBER, NUMBER),
        JsonKind::String => (STRING, STRING),
        JsonKind::Array => (ARRAY, ARRAY),
        JsonKind::Object => (OBJECT, OBJECT),
    }
}

/// The tags of everything but undefined.
pub(crate) const DEFINED: (u8, u8) = (NULL, OBJECT);
/// The tags of everything.
pub(crate) const ANY: (u8, u8) = (UNDEFINED, OBJECT);

/// Appends text without its terminator.
pub(crate) fn encode_text_open(text: &[u8], out: &mut Vec<u8>) {
    out.extend(text.iter().map(|byte| byte.wrapping_add(1)));
}

pub(crate) fn encode_text(text: &[u8], text_max: usize, out: &mut Vec<u8>) {
    match text.get(..text_max) {
        Some(kept) if text.len() > text_max => {
            encode_text_open(kept, out);
            out.push(CUT);
        }
        Some(_) | None => {
            encode_text_open(text, out);
            out.push(WHOLE);
        }
    }
}

/// Bits that compare, as unsigned numbers, like the doubles they came from.
pub(crate) fn ordered_bits(number: f64) -> u64 {
    // -0 equals 0, so they must be one key.
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn from_ordered_bits(bits: u64) -> f64 {
    f64::from_bits(if bits & SIGN == 0 { !bits } else { bits & !SIGN })
}

impl Decoded {
    /// Reads one value and advances `input` past it.
    pub fn read(input: &mut &[u8]) -> Result<Decoded, DecodeError> {
        Decoded::read_part(input, SortOrder::Ascending)
    }

    /// Reads one part of a composite entry and advances `input` past it.
    pub(crate) fn read_part(input: &mut &[u8], order: SortOrder) -> Result<Decoded, DecodeError> {
        let mut reader = Reader { input, order };
        let whole = match reader.byte()? {
            UNDEFINED => IndexValue::Undefined,
            NULL => IndexValue::Null,
            FALSE => IndexValue::Bool(false),
            TRUE => IndexValue::Bool(true),
            NUMBER => IndexValue::Number(reader.number()?),
            STRING => return reader.text(),
            ARRAY => IndexValue::Array(DistinctHash::from_bytes(reader.bytes()?)),
            OBJECT => IndexValue::Object(DistinctHash::from_bytes(reader.bytes()?)),
            tag => return Err(DecodeError::Tag { tag }),
        };
        Ok(Decoded::Whole(whole))
    }
}

/// Takes bytes off the front, inverting those of a descending part.
struct Reader<'a, 'b> {
    input: &'a mut &'b [u8],
    order: SortOrder,
}

impl Reader<'_, '_> {
    fn byte(&mut self) -> Result<u8, DecodeError> {
        let (first, rest) = self.input.split_first().ok_or(DecodeError::Truncated)?;
        *self.input = rest;
        Ok(match self.order {
            SortOrder::Ascending => *first,
            SortOrder::Descending => !*first,
        })
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut bytes = [0; N];
        for slot in &mut bytes {
            *slot = self.byte()?;
        }
        Ok(bytes)
    }

    fn number(&mut self) -> Result<f64, DecodeError> {
        let number = from_ordered_bits(u64::from_be_bytes(self.bytes()?));
        if number.is_finite() { Ok(number) } else { Err(DecodeError::Number) }
    }

    fn text(&mut self) -> Result<Decoded, DecodeError> {
        let mut text = Vec::new();
        loop {
            match self.byte()? {
                WHOLE => break,
                CUT => return Ok(Decoded::Cut(text)),
                byte => text.push(byte - 1),
            }
        }
        let text = String::from_utf8(text).map_err(|_| DecodeError::Text)?;
        Ok(Decoded::Whole(IndexValue::String(Cow::Owned(text))))
    }
}

impl fmt::Display for IndexValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexValue::Undefined => f.write_str("undefined"),
            IndexValue::Null => f.write_str("null"),
            IndexValue::Bool(truth) => write!(f, "{truth}"),
            IndexValue::Number(number) => match Number::from_f64(*number) {
                Some(number) => write!(f, "{number}"),
                None => f.write_str("not a number"),
            },
            IndexValue::String(text) => {
                let mut quoted = String::new();
                write_string(&mut quoted, text);
                f.write_str(&quoted)
            }
            IndexValue::Array(_) => f.write_str("[…]"),
            IndexValue::Object(_) => f.write_str("{…}"),
        }
    }
}

impl fmt::Display for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decoded::Whole(value) => value.fmt(f),
            // A cut inside a character shows as a replacement character.
            Decoded::Cut(text) => {
                IndexValue::String(String::from_utf8_lossy(text)).fmt(f)?;
                f.write_str("…")
            }
        }
    }
}
