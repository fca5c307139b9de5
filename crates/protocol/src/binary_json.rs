//! Cosmos binary JSON: what the Rust SDK sends for an item, and the .NET SDK on request,
//! without a header that announces it.
//!
//! Bodies are turned into text here, at the edge, so that no other layer knows of
//! a second encoding: documents are stored, indexed and returned as text. The
//! bytes are described in `docs/formats/binary-json.md`.
//!
//! The format lets few bytes stand for many (a string can be referenced again and again,
//! 65,535 empty arrays are seven bytes), so the text has a limit of its own. The content is
//! not judged here: which of two properties of one name counts, say, is decided where every
//! document is checked.

mod numbers;
mod reader;
mod strings;

use model::json::{self, DEPTH_MAX};

use self::numbers::NumberKind;
use self::reader::{Reader, Width};

/// The first byte of a body in this format. No JSON text begins with it.
const FORMAT: u8 = 0x80;

/// Bytes of text that one body may become: twice the largest item. An item beyond its own
/// limit is refused as one, with the answer for that; this limit is for decompression
/// bombs.
const TEXT_BYTES_MAX: usize = 4 << 20;

/// Why a body is not acceptable; offsets are those of the whole body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BinaryJsonError {
    #[error("binary JSON begins with the byte 80")]
    Format,
    #[error("binary JSON ends inside a value or its container, at byte {offset}")]
    Truncated { offset: usize },
    #[error("binary JSON goes on after the end of its value, at byte {offset}")]
    Trailing { offset: usize },
    #[error("unknown marker {marker:02X} in binary JSON at byte {offset}")]
    Marker { marker: u8, offset: usize },
    #[error("marker {marker:02X} in binary JSON is not a property name, at byte {offset}")]
    Name { marker: u8, offset: usize },
    #[error("binary JSON names a string of a dictionary it does not contain, at byte {offset}")]
    UserString { offset: usize },
    #[error("string reference in binary JSON does not lead back to a string, at byte {offset}")]
    Reference { offset: usize },
    #[error("string in binary JSON is not UTF-8 text, at byte {offset}")]
    Encoding { offset: usize },
    #[error("base64 string in binary JSON has an impossible padding, at byte {offset}")]
    Padding { offset: usize },
    #[error("number in binary JSON is not finite, at byte {offset}")]
    NotFinite { offset: usize },
    #[error("binary JSON announces {announced} members and has {found}, at byte {offset}")]
    Count { announced: usize, found: usize, offset: usize },
    #[error("more than {DEPTH_MAX} levels of nesting in binary JSON at byte {offset}")]
    Depth { offset: usize },
    #[error("binary JSON stands for more than {TEXT_BYTES_MAX} bytes of text")]
    TooLarge,
}

type Result<T> = std::result::Result<T, BinaryJsonError>;

/// Whether a body is in this format rather than text.
pub fn is_binary(body: &[u8]) -> bool {
    body.first() == Some(&FORMAT)
}

/// The body as compact JSON text, its numbers in their shortest spelling.
pub fn decode(body: &[u8]) -> Result<String> {
    if !is_binary(body) {
        return Err(BinaryJsonError::Format);
    }
    let mut input = Reader::new(body);
    input.byte()?;
    let mut decoder = Decoder { text: String::with_capacity(body.len()) };
    decoder.value(&mut input, 0)?;
    if !input.is_empty() {
        return Err(BinaryJsonError::Trailing { offset: input.offset() });
    }
    Ok(decoder.text)
}

/// The text so far. Only one scalar at a time may take it past the limit, and then it is
/// discarded.
struct Decoder {
    text: String,
}

/// The two containers: alike in their framing, not in their members.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Container {
    Array,
    Object,
}

impl Decoder {
    /// Writes the next value, which is inside `depth` containers.
    fn value(&mut self, input: &mut Reader<'_>, depth: usize) -> Result<()> {
        let offset = input.offset();
        let marker = input.byte()?;
        match marker {
            0xE0..=0xE7 => self.container(input, marker, Container::Array, depth),
            0xE8..=0xEF => self.container(input, marker, Container::Object, depth),
            0xF0 | 0xF1 => self.uniform_array(input, marker, depth),
            0xF2 | 0xF3 => self.uniform_arrays(input, marker, depth),
            _ => self.scalar(input, marker, offset),
        }
    }

    // Separate from `value`, which recurses and should have a small frame.
    fn scalar(&mut self, input: &mut Reader<'_>, marker: u8, offset: usize) -> Result<()> {
        match marker {
            0xD0 => self.put("null"),
            0xD1 => self.put("false"),
            0xD2 => self.put("true"),
            0xD3 => self.string(&strings::guid_value(input)?),
            0xDD => self.string(&strings::blob(input, Width::One)?),
            0xDE => self.string(&strings::blob(input, Width::Two)?),
            0xDF => self.string(&strings::blob(input, Width::Four)?),
            _ => match NumberKind::of(marker) {
                Some(kind) => self.number(input, kind),
                None => self.string(&strings::read(input, marker, offset)?),
            },
        }
    }

    fn container(
        &mut self,
        input: &mut Reader<'_>,
        marker: u8,
        container: Container,
        depth: usize,
    ) -> Result<()> {
        let [open, close] = match container {
            Container::Array => ["[", "]"],
            Container::Object => ["{", "}"],
        };
        self.open(input, open, depth)?;
        match marker & 0x07 {
            0 => {}
            1 => self.member(input, container, depth + 1)?,
            form => self.members(input, form, container, depth + 1)?,
        }
        self.put(close)
    }

    /// Members, preceded by their length in bytes and, in the last three forms, their
    /// number. The length alone says where they end; the number has to agree.
    fn members(
        &mut self,
        input: &mut Reader<'_>,
        form: u8,
        container: Container,
        depth: usize,
    ) -> Result<()> {
        let width = match form {
            2 | 5 => Width::One,
            3 | 6 => Width::Two,
            _ => Width::Four,
        };
        let length = input.size(width)?;
        let announced = if form >= 5 { Some(input.size(width)?) } else { None };
        let mut members = input.part(length)?;
        let mut found = 0;
        while !members.is_empty() {
            self.separate(found)?;
            self.member(&mut members, container, depth)?;
            found += 1;
        }
        let offset = input.offset();
        match announced {
            Some(announced) if announced != found => {
                Err(BinaryJsonError::Count { announced, found, offset })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn member(&mut self, input: &mut Reader<'_>, container: Container, depth: usize) -> Result<()> {
        if container == Container::Object {
            self.name(input)?;
        }
        self.value(input, depth)
    }

    fn name(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let offset = input.offset();
        let marker = input.byte()?;
        if !strings::is_string(marker) {
            return Err(BinaryJsonError::Name { marker, offset });
        }
        self.string(&strings::read(input, marker, offset)?)?;
        self.put(":")
    }

    /// Numbers of one kind, which is given once for all of them.
    fn uniform_array(&mut self, input: &mut Reader<'_>, marker: u8, depth: usize) -> Result<()> {
        let kind = uniform_kind(input)?;
        let count = input.size(uniform_width(marker))?;
        self.numbers(input, kind, count, depth)
    }

    /// Arrays of one kind and one length, which are given once for all of them.
    fn uniform_arrays(&mut self, input: &mut Reader<'_>, marker: u8, depth: usize) -> Result<()> {
        let offset = input.offset();
        let inner = input.byte()?;
        // The counts of both levels have the same width.
        if inner != marker - 2 {
            return Err(BinaryJsonError::Marker { marker: inner, offset });
        }
        let kind = uniform_kind(input)?;
        let inner_count = input.size(uniform_width(inner))?;
        let outer_count = input.size(uniform_width(marker))?;
        self.open(input, "[", depth)?;
        for written in 0..outer_count {
            self.separate(written)?;
            self.numbers(input, kind, inner_count, depth + 1)?;
        }
        self.put("]")
    }

    fn numbers(
        &mut self,
        input: &mut Reader<'_>,
        kind: NumberKind,
        count: usize,
        depth: usize,
    ) -> Result<()> {
        self.open(input, "[", depth)?;
        for written in 0..count {
            self.separate(written)?;
            self.number(input, kind)?;
        }
        self.put("]")
    }

    fn open(&mut self, input: &Reader<'_>, bracket: &str, depth: usize) -> Result<()> {
        if depth >= DEPTH_MAX {
            return Err(BinaryJsonError::Depth { offset: input.offset() });
        }
        self.put(bracket)
    }

    fn separate(&mut self, written: usize) -> Result<()> {
        if written == 0 { Ok(()) } else { self.put(",") }
    }

    fn number(&mut self, input: &mut Reader<'_>, kind: NumberKind) -> Result<()> {
        kind.write(input, &mut self.text)?;
        self.check_size(0)
    }

    fn string(&mut self, value: &str) -> Result<()> {
        self.check_size(value.len())?;
        json::write_string(&mut self.text, value);
        // Escapes made it longer than it was.
        self.check_size(0)
    }

    fn put(&mut self, text: &str) -> Result<()> {
        self.check_size(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    fn check_size(&self, more: usize) -> Result<()> {
        if self.text.len() + more > TEXT_BYTES_MAX {
            return Err(BinaryJsonError::TooLarge);
        }
        Ok(())
    }
}

fn uniform_width(marker: u8) -> Width {
    if marker & 1 == 0 { Width::One } else { Width::Two }
}

fn uniform_kind(input: &mut Reader<'_>) -> Result<NumberKind> {
    let offset = input.offset();
    let marker = input.byte()?;
    NumberKind::of_uniform(marker).ok_or(BinaryJsonError::Marker { marker, offset })
}

#[cfg(test)]
mod tests;
