//! The string forms: plain, from a dictionary, packed, and by reference.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use super::reader::{Reader, Width};
use super::{BinaryJsonError, Result};

/// The strings that are a marker each, from 20 on.
const SYSTEM_STRINGS: [&str; 32] = [
    "$s",
    "$t",
    "$v",
    "_attachments",
    "_etag",
    "_rid",
    "_self",
    "_ts",
    "attachments/",
    "coordinates",
    "geometry",
    "GeometryCollection",
    "id",
    "url",
    "Value",
    "label",
    "LineString",
    "link",
    "MultiLineString",
    "MultiPoint",
    "MultiPolygon",
    "name",
    "Name",
    "Type",
    "Point",
    "Polygon",
    "properties",
    "type",
    "value",
    "Feature",
    "FeatureCollection",
    "_id",
];

/// Whether a marker begins a string; typed GUIDs and bytes, which JSON also shows as
/// strings, do not.
pub(super) fn is_string(marker: u8) -> bool {
    matches!(marker, 0x20..=0x67 | 0x71..=0xC6)
}

/// Reads the string whose marker, at `offset`, has just been taken.
pub(super) fn read<'a>(input: &mut Reader<'a>, marker: u8, offset: usize) -> Result<Cow<'a, str>> {
    match marker {
        0xC3 => referred(input, Width::One, offset),
        0xC4 => referred(input, Width::Two, offset),
        0xC5 => referred(input, Width::Three, offset),
        0xC6 => referred(input, Width::Four, offset),
        _ => inline(input, marker, offset),
    }
}

/// Follows a reference to an earlier string.
///
/// It has to point back, to a string that ends before the reference and is not a reference
/// itself, so there are no chains or cycles to bound.
fn referred<'a>(input: &mut Reader<'a>, width: Width, offset: usize) -> Result<Cow<'a, str>> {
    let target = input.size(width)?;
    let mut earlier = input.between(target, offset);
    let text = match earlier.byte() {
        // Byte 0 names the format, though it looks like an empty string.
        Ok(marker) if target > 0 && !is_reference(marker) => inline(&mut earlier, marker, target),
        Ok(_) | Err(_) => return Err(BinaryJsonError::Reference { offset }),
    };
    text.map_err(|_| BinaryJsonError::Reference { offset })
}

fn is_reference(marker: u8) -> bool {
    matches!(marker, 0xC3..=0xC6)
}

fn inline<'a>(input: &mut Reader<'a>, marker: u8, offset: usize) -> Result<Cow<'a, str>> {
    let text = match marker {
        0x20..=0x3F => return system(marker, offset).map(Cow::Borrowed),
        0x40..=0x67 => return Err(BinaryJsonError::UserString { offset }),
        0x71 => base64(input, Width::One, Alphabet::Standard)?,
        0x72 => base64(input, Width::Two, Alphabet::Standard)?,
        0x73 => base64(input, Width::One, Alphabet::Url)?,
        0x74 => base64(input, Width::Two, Alphabet::Url)?,
        0x75 => guid(input, lower_hex)?,
        0x76 => guid(input, upper_hex)?,
        0x77 => format!("\"{}\"", guid(input, lower_hex)?),
        0x78 => nibbles(input, lower_hex)?,
        0x79 => nibbles(input, upper_hex)?,
        0x7A => nibbles(input, date_time)?,
        0x7B => packed_from_base(input, 4, offset)?,
        0x7C => packed_from_base(input, 5, offset)?,
        0x7D => packed_from_base(input, 6, offset)?,
        0x7E => packed(input, 7, Width::One)?,
        0x7F => packed(input, 7, Width::Two)?,
        0x80..=0xBF => return utf8(input, usize::from(marker & 0x3F)),
        0xC0 => return sized_utf8(input, Width::One),
        0xC1 => return sized_utf8(input, Width::Two),
        0xC2 => return sized_utf8(input, Width::Four),
        _ => return Err(BinaryJsonError::Marker { marker, offset }),
    };
    Ok(Cow::Owned(text))
}

fn system(marker: u8, offset: usize) -> Result<&'static str> {
    let number = usize::from(marker & 0x1F);
    SYSTEM_STRINGS.get(number).copied().ok_or(BinaryJsonError::Marker { marker, offset })
}

fn sized_utf8<'a>(input: &mut Reader<'a>, width: Width) -> Result<Cow<'a, str>> {
    let length = input.size(width)?;
    utf8(input, length)
}

fn utf8<'a>(input: &mut Reader<'a>, length: usize) -> Result<Cow<'a, str>> {
    let offset = input.offset();
    let text = std::str::from_utf8(input.bytes(length)?)
        .map_err(|error| BinaryJsonError::Encoding { offset: offset + error.valid_up_to() })?;
    Ok(Cow::Borrowed(text))
}

#[derive(Clone, Copy)]
enum Alphabet {
    Standard,
    Url,
}

/// Base64 text, stored as the bytes it encodes: the number of its groups of four
/// characters, how many `=` the last one has, the bytes. If the text left the `=` out,
/// their number is inverted.
fn base64(input: &mut Reader<'_>, width: Width, alphabet: Alphabet) -> Result<String> {
    let groups = input.size(width)?;
    let offset = input.offset();
    let padding = input.byte()?;
    let (missing, engine) = match (padding, alphabet) {
        (0..=2, Alphabet::Standard) => (padding, STANDARD),
        (0..=2, Alphabet::Url) => (padding, URL_SAFE),
        (0xFD..=0xFF, Alphabet::Standard) => (!padding, STANDARD_NO_PAD),
        (0xFD..=0xFF, Alphabet::Url) => (!padding, URL_SAFE_NO_PAD),
        _ => return Err(BinaryJsonError::Padding { offset }),
    };
    let length = (3 * groups).checked_sub(usize::from(missing));
    let bytes = input.bytes(length.ok_or(BinaryJsonError::Padding { offset })?)?;
    Ok(engine.encode(bytes))
}

/// A typed GUID: its first three fields are little-endian, as in .NET's memory.
pub(super) fn guid_value(input: &mut Reader<'_>) -> Result<String> {
    let first = u32::from_le_bytes(input.array()?);
    let second = u16::from_le_bytes(input.array()?);
    let third = u16::from_le_bytes(input.array()?);
    let fourth = u16::from_be_bytes(input.array()?);
    let [a, b, c, d, e, f] = input.array()?;
    let fifth = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
    Ok(format!("{first:08x}-{second:04x}-{third:04x}-{fourth:04x}-{fifth:012x}"))
}

/// Typed bytes, which JSON can only show as base64.
pub(super) fn blob(input: &mut Reader<'_>, width: Width) -> Result<String> {
    let length = input.size(width)?;
    Ok(STANDARD.encode(input.bytes(length)?))
}

/// A GUID's text: its 32 digits, four bits each, in the order in which they are
/// written.
fn guid(input: &mut Reader<'_>, digit: fn(u8) -> char) -> Result<String> {
    let digits = Unpacked::new(input.bytes(16)?, 4).map(digit);
    let mut text = String::with_capacity(36);
    for (place, digit) in digits.enumerate() {
        if matches!(place, 8 | 12 | 16 | 20) {
            text.push('-');
        }
        text.push(digit);
    }
    Ok(text)
}

/// Text over an alphabet of sixteen characters.
fn nibbles(input: &mut Reader<'_>, character: fn(u8) -> char) -> Result<String> {
    let count = input.size(Width::One)?;
    Ok(unpacked(input, 4, count)?.map(character).collect())
}

/// ASCII text in `bits` bits for each character.
fn packed(input: &mut Reader<'_>, bits: usize, width: Width) -> Result<String> {
    let count = input.size(width)?;
    Ok(unpacked(input, bits, count)?.map(char::from).collect())
}

/// ASCII text whose characters are counted from the lowest of them.
fn packed_from_base(input: &mut Reader<'_>, bits: usize, offset: usize) -> Result<String> {
    let count = input.size(Width::One)?;
    let base = input.byte()?;
    unpacked(input, bits, count)?
        .map(|value| value.checked_add(base).filter(u8::is_ascii).map(char::from))
        .collect::<Option<String>>()
        .ok_or(BinaryJsonError::Encoding { offset })
}

/// The bits after the last character are padding and have no meaning.
fn unpacked<'a>(
    input: &mut Reader<'a>,
    bits: usize,
    count: usize,
) -> Result<impl Iterator<Item = u8> + 'a> {
    let bytes = input.bytes((count * bits).div_ceil(8))?;
    Ok(Unpacked::new(bytes, bits).take(count))
}

/// Small values from a stream of bits, the lowest bit of the first byte first.
struct Unpacked<'a> {
    bytes: std::slice::Iter<'a, u8>,
    bits: usize,
    /// Bits taken from `bytes` and not yet given out, and how many.
    window: u16,
    held: usize,
}

impl<'a> Unpacked<'a> {
    /// `bits` is at most 8.
    fn new(bytes: &'a [u8], bits: usize) -> Unpacked<'a> {
        Unpacked { bytes: bytes.iter(), bits, window: 0, held: 0 }
    }
}

impl Iterator for Unpacked<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.held < self.bits {
            self.window |= u16::from(*self.bytes.next()?) << self.held;
            self.held += 8;
        }
        let value = self.window & ((1 << self.bits) - 1);
        self.window >>= self.bits;
        self.held -= self.bits;
        u8::try_from(value).ok()
    }
}

fn lower_hex(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).expect("four bits are one digit")
}

fn upper_hex(nibble: u8) -> char {
    lower_hex(nibble).to_ascii_uppercase()
}

fn date_time(nibble: u8) -> char {
    match nibble {
        0 => ' ',
        1..=10 => char::from(b'0' + nibble - 1),
        11 => ':',
        12 => '-',
        13 => '.',
        14 => 'T',
        _ => 'Z',
    }
}
