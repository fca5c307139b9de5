//! Values with types that JSON does not have, as bytes whose order is the values' order.
//!
//! They have tags of their own, above those of JSON, and are for entries under paths of
//! their own (`docs/formats/index.md`, *Typed values*): what JSON clients order and search
//! by is not touched. No item has such entries in this version.

use model::typed::{BeyondDouble, ExactNumber, Typed};

use crate::value::{TEXT_BYTES_MAX, encode_text, ordered_bits};

const MIN_KEY: u8 = 0xA0;
const NULL: u8 = 0xA4;
const NUMBER: u8 = 0xA8;
const STRING: u8 = 0xAC;
const BINARY: u8 = 0xB8;
const GUID: u8 = 0xBA;
const OBJECT_ID: u8 = 0xBC;
const FALSE: u8 = 0xC0;
const TRUE: u8 = 0xC1;
const DATE: u8 = 0xC4;
const TIMESTAMP: u8 = 0xC8;
const MAX_KEY: u8 = 0xDF;

/// Bytes of binary data that an entry keeps, as of a text.
const BINARY_BYTES_MAX: usize = TEXT_BYTES_MAX;

/// After a double: the number is that double, or it follows.
const IS_DOUBLE: u8 = 0;
const IS_BEYOND: u8 = 1;

const SIGN: u64 = 1 << 63;
const SHORT_SIGN: u16 = 1 << 15;

/// Appends the bytes of a typed value. Returns whether they are all of it: a long string or
/// binary is truncated.
pub fn encode_typed(value: &Typed, out: &mut Vec<u8>) -> bool {
    match value {
        Typed::MinKey => out.push(MIN_KEY),
        Typed::Null => out.push(NULL),
        Typed::Number(number) => encode_number(number.exact(), out),
        Typed::String(text) => {
            out.push(STRING);
            encode_text(text.as_bytes(), TEXT_BYTES_MAX, out);
            return text.len() <= TEXT_BYTES_MAX;
        }
        Typed::Binary { subtype, bytes } => {
            out.push(BINARY);
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            out.extend(length.to_be_bytes());
            out.push(*subtype);
            out.extend(bytes.iter().take(BINARY_BYTES_MAX));
            return bytes.len() <= BINARY_BYTES_MAX;
        }
        Typed::Guid(bytes) => tagged(GUID, bytes, out),
        Typed::ObjectId(bytes) => tagged(OBJECT_ID, bytes, out),
        Typed::Bool(truth) => out.push(if *truth { TRUE } else { FALSE }),
        Typed::Date(date) => {
            let (millis, ticks) = date.parts();
            tagged(DATE, &(millis.cast_unsigned() ^ SIGN).to_be_bytes(), out);
            out.extend(ticks.to_be_bytes());
        }
        Typed::Timestamp { seconds, increment } => {
            tagged(TIMESTAMP, &seconds.to_be_bytes(), out);
            out.extend(increment.to_be_bytes());
        }
        Typed::MaxKey => out.push(MAX_KEY),
    }
    true
}

fn tagged(tag: u8, payload: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend(payload);
}

fn encode_number(ExactNumber { floor, beyond }: ExactNumber, out: &mut Vec<u8>) {
    // NaN is below all numbers; minus infinity begins with 00 0F.
    let bits = if floor.is_nan() { 0 } else { ordered_bits(floor) };
    tagged(NUMBER, &bits.to_be_bytes(), out);
    let Some(BeyondDouble { exponent, digits }) = beyond else {
        out.push(IS_DOUBLE);
        return;
    };
    out.push(IS_BEYOND);
    let start = out.len();
    out.extend((exponent.cast_unsigned() ^ SHORT_SIGN).to_be_bytes());
    out.extend(digits.to_be_bytes());
    if floor < 0.0 {
        out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
}
