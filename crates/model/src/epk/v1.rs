//! Version 1 of the hash: a 32-bit hash in an order-preserving form, followed
//! by the key's own components. See `docs/formats/epk.md`.
//!
//! The three official clients that compute it disagree on unusual inputs (negative
//! integers, null, strings cut inside a character). The rules here are the ones that
//! reproduce the published production values; where a client routes differently the
//! server's answer counts, because servers in gateway mode compute the hash themselves.

use std::borrow::Cow;

use super::Epk;
use crate::murmur;
use crate::partition_key::KeyComponent;

/// UTF-16 code units of a string that take part in the hash.
const STRING_UNITS_MAX: usize = 100;
/// A string up to this many bytes is written whole, with a terminator.
const STRING_BYTES_WHOLE: usize = 100;
/// Of longer strings this many bytes are written, without a terminator.
const STRING_BYTES_CUT: usize = 101;
const STRING_END: u8 = 0x00;

/// The whole key as bytes in ring order, after its hash.
pub(crate) fn encode(components: &[KeyComponent]) -> Vec<u8> {
    let cut: Vec<KeyComponent> = components.iter().map(cut).collect();
    let mut input = Vec::with_capacity(64);
    for component in &cut {
        super::write_hash_input(&mut input, component, STRING_END);
    }
    let mut out = boundary(murmur::hash32(&input));
    for component in &cut {
        write_ordered(&mut out, component);
    }
    out
}

/// The first position on the ring of a key with this hash.
pub(crate) fn boundary(hash: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    write_ordered_number(&mut out, f64::from(hash));
    out
}

/// The hash at a position: the start of the ring is zero, its end the largest.
/// What follows the hash in a position does not count.
pub(crate) fn hash_at(epk: &Epk) -> u32 {
    match epk.as_bytes().split_first() {
        None => 0,
        Some((&super::TYPE_NUMBER, ordered)) => read_ordered_hash(ordered),
        Some((first, _)) => {
            if *first < super::TYPE_NUMBER {
                0
            } else {
                u32::MAX
            }
        }
    }
}

fn cut(component: &KeyComponent) -> KeyComponent {
    match component {
        KeyComponent::String(text) => KeyComponent::String(cut_string(text).into_owned()),
        KeyComponent::Undefined
        | KeyComponent::Null
        | KeyComponent::Bool(_)
        | KeyComponent::Number(_) => component.clone(),
    }
}

/// The first 100 UTF-16 code units. Half a surrogate pair cannot be written as
/// UTF-8; the platform that defined this hash writes the replacement character.
fn cut_string(text: &str) -> Cow<'_, str> {
    let mut units = 0;
    for (at, c) in text.char_indices() {
        let width = c.len_utf16();
        if units + width > STRING_UNITS_MAX {
            let kept = text.get(..at).expect("char_indices gives boundaries");
            let broken = units < STRING_UNITS_MAX;
            return if broken {
                Cow::Owned(format!("{kept}{}", char::REPLACEMENT_CHARACTER))
            } else {
                Cow::Borrowed(kept)
            };
        }
        units += width;
    }
    Cow::Borrowed(text)
}

fn write_ordered(out: &mut Vec<u8>, component: &KeyComponent) {
    match component {
        KeyComponent::Number(number) => write_ordered_number(out, super::normalised(*number)),
        KeyComponent::String(text) => write_ordered_string(out, text),
        KeyComponent::Undefined | KeyComponent::Null | KeyComponent::Bool(_) => {
            out.push(super::type_byte(component));
        }
    }
}

fn write_ordered_string(out: &mut Vec<u8>, text: &str) {
    out.push(super::TYPE_STRING);
    let whole = text.len() <= STRING_BYTES_WHOLE;
    let kept = if whole { text.len() } else { STRING_BYTES_CUT };
    out.extend(text.bytes().take(kept).map(|byte| byte.wrapping_add(1)));
    if whole {
        out.push(STRING_END);
    }
}

fn write_ordered_number(out: &mut Vec<u8>, number: f64) {
    const SIGN: u64 = 1 << 63;
    const MORE: u8 = 1;
    let bits = number.to_bits();
    let ordered = if bits & SIGN == 0 { bits ^ SIGN } else { bits.wrapping_neg() };
    out.push(super::TYPE_NUMBER);
    out.push(top_byte(ordered));
    let mut rest = ordered << 8;
    loop {
        let group = top_byte(rest) & !MORE;
        rest <<= 7;
        if rest == 0 {
            out.push(group);
            return;
        }
        out.push(group | MORE);
    }
}

/// The inverse of [`write_ordered_number`] for whole numbers of 32 bits; what lies outside
/// them becomes the nearest one.
fn read_ordered_hash(bytes: &[u8]) -> u32 {
    const SIGN: u64 = 1 << 63;
    const FRACTION_BITS: u64 = 52;
    let Some((top, groups)) = bytes.split_first() else { return 0 };
    let mut ordered = u64::from(*top) << 56;
    for (at, group) in groups.iter().take(8).enumerate() {
        ordered |= u64::from(group >> 1) << (49 - 7 * at);
        if group & 1 == 0 {
            break;
        }
    }
    let bits = ordered ^ SIGN;
    let exponent = (bits >> FRACTION_BITS).checked_sub(1023);
    match exponent {
        // Below one, or negative.
        None => 0,
        Some(exponent @ 0..32) => {
            let number = (bits & ((1 << FRACTION_BITS) - 1) | 1 << FRACTION_BITS)
                >> (FRACTION_BITS - exponent);
            u32::try_from(number).expect("an exponent below 32 leaves 32 bits")
        }
        Some(_) => {
            if ordered & SIGN == 0 {
                0
            } else {
                u32::MAX
            }
        }
    }
}

fn top_byte(bits: u64) -> u8 {
    let [top, ..] = bits.to_be_bytes();
    top
}
