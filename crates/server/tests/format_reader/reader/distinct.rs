//! The hash that stands for an array or object: `docs/formats/index.md`, "Distinct hash".

use serde_json::{Number, Value};

use super::murmur::{halves, x64_128};

/// The two words of a hash, or of a seed.
type Hash = (u64, u64);

pub(crate) const ROOT: Hash = (0xbfc2_359e_afc0_e2b7, 0x8846_e002_84c4_cf1f);
pub(crate) const NULL: Hash = (0x1380_f68b_b3b0_cfe4, 0x156c_918b_f564_ee48);
pub(crate) const FALSE: Hash = (0xc1be_517f_e893_b40c, 0xe9fc_8a4c_531c_d0dd);
pub(crate) const TRUE: Hash = (0xf86d_4abf_9a41_2e74, 0x7884_8836_5c8a_985d);
pub(crate) const STRING: Hash = (0x61f5_3f0a_4420_4cfb, 0x0948_1be8_ef4b_56dd);
pub(crate) const NUMBER: Hash = (0x2400_e8b8_94ce_9c2a, 0x790b_e1ea_bd7b_9481);
pub(crate) const ARRAY: Hash = (0xfa57_3b01_4c4d_c18e, 0xa014_512c_858e_b115);
pub(crate) const INDEX: Hash = (0xfe05_7204_216d_b999, 0x5b1c_c317_8bd9_c593);
pub(crate) const OBJECT: Hash = (0x77b2_85ac_511a_ef30, 0x3dcf_1872_4582_2449);
pub(crate) const NAME: Hash = (0xc915_dde0_5849_2a8a, 0x7c8b_e2eb_a72e_4634);

/// The payload of an entry.
pub(crate) fn payload(value: &Value) -> [u8; 16] {
    bytes(hash(value, ROOT))
}

fn hash(value: &Value, seed: Hash) -> Hash {
    match value {
        Value::Null => of(NULL, seed),
        Value::Bool(false) => of(FALSE, seed),
        Value::Bool(true) => of(TRUE, seed),
        Value::String(text) => x64_128(text.as_bytes(), of(STRING, seed)),
        Value::Number(number) => x64_128(&number_bytes(number), of(NUMBER, seed)),
        Value::Array(elements) => {
            let start = joined(INDEX);
            (0_u128..).zip(elements).fold(of(ARRAY, seed), |sum, (at, element)| {
                of(hash(element, halves(start.wrapping_add(at))), sum)
            })
        }
        Value::Object(members) => {
            let start = of(OBJECT, seed);
            let members = members.iter().fold((0, 0), |(h1, h2): Hash, (name, member)| {
                let place = x64_128(name.as_bytes(), of(STRING, NAME));
                let member = hash(member, place);
                (h1 ^ member.0, h2 ^ member.1)
            });
            if members == (0, 0) { start } else { of(members, start) }
        }
    }
}

/// The hash of a hash.
fn of(input: Hash, seed: Hash) -> Hash {
    x64_128(&bytes(input), seed)
}

fn joined((h1, h2): Hash) -> u128 {
    u128::from(h2) << 64 | u128::from(h1)
}

fn bytes(hash: Hash) -> [u8; 16] {
    joined(hash).to_le_bytes()
}

/// A double, and what a wide integer has beyond it.
fn number_bytes(number: &Number) -> Vec<u8> {
    let plain = || (number.as_f64().unwrap_or(f64::NAN).to_bits(), 0);
    let (double, beyond) = number.as_i64().and_then(wide).unwrap_or_else(plain);
    [&double.to_le_bytes()[..], &beyond.to_le_bytes()].concat()
}

/// Both of an integer that has bits beyond a double.
fn wide(integer: i64) -> Option<(u64, u16)> {
    let size = integer.unsigned_abs();
    let highest = size.checked_ilog2()?;
    if highest - size.trailing_zeros() <= 52 {
        return None;
    }
    // Shifted until the highest bit is gone, the 62 that follow it are the upper ones.
    let following = size << (63 - highest) << 1;
    let sign = integer.cast_unsigned() & 1 << 63;
    let exponent = u64::from(highest + 1023) << 52;
    let beyond = u16::try_from(following << 52 >> 54).ok()? << 6;
    Some((sign | exponent | following >> 12, beyond))
}
