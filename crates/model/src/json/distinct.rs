//! The hash by which clients tell values apart and sort arrays and objects.
//!
//! Clients that merge pages of several partitions order arrays among themselves, and
//! objects, by this hash, so whoever hands them sorted pages must do the same. It is
//! part of the wire contract: clients send it back to say where they stopped.

use super::{Number, Value};
use crate::murmur::hash128_seeded;

/// The two halves of a hash, the low one first.
type Halves = (u64, u64);

const ROOT: Halves = (0xbfc2_359e_afc0_e2b7, 0x8846_e002_84c4_cf1f);
const NULL: Halves = (0x1380_f68b_b3b0_cfe4, 0x156c_918b_f564_ee48);
const FALSE: Halves = (0xc1be_517f_e893_b40c, 0xe9fc_8a4c_531c_d0dd);
const TRUE: Halves = (0xf86d_4abf_9a41_2e74, 0x7884_8836_5c8a_985d);
const STRING: Halves = (0x61f5_3f0a_4420_4cfb, 0x0948_1be8_ef4b_56dd);
const NUMBER: Halves = (0x2400_e8b8_94ce_9c2a, 0x790b_e1ea_bd7b_9481);
const ARRAY: Halves = (0xfa57_3b01_4c4d_c18e, 0xa014_512c_858e_b115);
const INDEX: Halves = (0xfe05_7204_216d_b999, 0x5b1c_c317_8bd9_c593);
const OBJECT: Halves = (0x77b2_85ac_511a_ef30, 0x3dcf_1872_4582_2449);
const NAME: Halves = (0xc915_dde0_5849_2a8a, 0x7c8b_e2eb_a72e_4634);

/// A value's hash. Hashes compare as clients order arrays, and objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DistinctHash([u8; 16]);

impl DistinctHash {
    /// The hash of a value, which is as deep as documents may be.
    #[must_use]
    pub fn of(value: &Value) -> DistinctHash {
        let (low, high) = hashed(value, ROOT);
        DistinctHash(bytes(low, high))
    }

    /// The hash of bytes, which are a text or not.
    #[must_use]
    pub fn of_bytes(input: &[u8]) -> DistinctHash {
        let (low, high) = hash(input, folded(STRING, ROOT));
        DistinctHash(bytes(low, high))
    }

    /// The hash whose halves a client names.
    #[must_use]
    pub fn from_halves(low: i64, high: i64) -> DistinctHash {
        DistinctHash(bytes(low.cast_unsigned(), high.cast_unsigned()))
    }

    /// Its halves as clients name them, the low one first.
    #[must_use]
    pub fn halves(self) -> (i64, i64) {
        let number = u128::from_le_bytes(self.0);
        let half = |shift: u32| {
            let low = (number >> shift) & u128::from(u64::MAX);
            u64::try_from(low).unwrap_or_default().cast_signed()
        };
        (half(0), half(64))
    }

    /// Bytes that compare as the hashes do: the halves as they lie in memory, which is
    /// what clients compare.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}

fn bytes(low: u64, high: u64) -> [u8; 16] {
    ((u128::from(high) << 64) | u128::from(low)).to_le_bytes()
}

fn hash(input: &[u8], seed: Halves) -> Halves {
    hash128_seeded(input, seed)
}

/// The hash of a hash.
fn folded((low, high): Halves, seed: Halves) -> Halves {
    hash(&bytes(low, high), seed)
}

fn hashed(value: &Value, seed: Halves) -> Halves {
    match value {
        Value::Null => folded(NULL, seed),
        Value::Bool(false) => folded(FALSE, seed),
        Value::Bool(true) => folded(TRUE, seed),
        Value::Number(number) => hash(&number_bytes(number), folded(NUMBER, seed)),
        Value::String(text) => hash(text.as_bytes(), folded(STRING, seed)),
        Value::Array(items) => {
            let start = folded(ARRAY, seed);
            items.iter().zip(0_u64..).fold(start, |sum, (item, index)| {
                let (low, high) = INDEX;
                let total = ((u128::from(high) << 64) | u128::from(low)).wrapping_add(index.into());
                folded(hashed(item, split(total)), sum)
            })
        }
        Value::Object(object) => {
            let start = folded(OBJECT, seed);
            let name_seed = folded(STRING, NAME);
            let members = object.iter().fold((0, 0), |(low, high), (name, member)| {
                let (own_low, own_high) = hashed(member, hash(name.as_bytes(), name_seed));
                (low ^ own_low, high ^ own_high)
            });
            if members == (0, 0) { start } else { folded(members, start) }
        }
    }
}

fn split(number: u128) -> Halves {
    let half = |part: u128| u64::try_from(part & u128::from(u64::MAX)).unwrap_or_default();
    (half(number), half(number >> 64))
}

/// Bits of an integer that a double keeps behind the leading one.
const MANTISSA_BITS: u32 = 52;
const EXPONENT_BIAS: u64 = 1023;
/// Bits of an integer's mantissa, and those of them that no double has.
const WIDE_BITS: u32 = 62;
const EXTRA_BITS: u32 = WIDE_BITS - MANTISSA_BITS;

/// The double, and behind it what a double cannot keep of an integer.
fn number_bytes(number: &Number) -> [u8; 10] {
    let wide = number.as_i64().filter(|integer| *integer != i64::MIN).and_then(wide_bits);
    let whole = number.as_i64().map_or(number.as_f64(), |_| number.as_f64() + 0.0);
    let (bits, extra) = wide.unwrap_or((whole.to_bits(), 0));
    let mut out = [0; 10];
    let all = bits.to_le_bytes().into_iter().chain(extra.to_le_bytes());
    out.iter_mut().zip(all).for_each(|(to, from)| *to = from);
    out
}

/// The bits of an integer that spans more bits than a double keeps: as a double, cut
/// off, and the rest.
fn wide_bits(integer: i64) -> Option<(u64, u16)> {
    let magnitude = integer.unsigned_abs();
    let highest = magnitude.checked_ilog2()?;
    if highest - magnitude.trailing_zeros() <= MANTISSA_BITS {
        return None;
    }
    let sign = u64::from(integer < 0) << 63;
    let exponent = (u64::from(highest) + EXPONENT_BIAS) << MANTISSA_BITS;
    let mantissa = (magnitude << (WIDE_BITS - highest)) & ((1 << WIDE_BITS) - 1);
    let rest = mantissa & ((1 << EXTRA_BITS) - 1);
    let extra = u16::try_from(rest << (16 - EXTRA_BITS)).unwrap_or_default();
    Some((sign | exponent | (mantissa >> EXTRA_BITS), extra))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> String {
        let (low, high) = DistinctHash::of(&crate::json::parse(text.as_bytes()).unwrap()).halves();
        format!("{high:016x}{low:016x}")
    }

    #[test]
    fn recorded_hashes() {
        for (value, hash) in [
            ("null", "898efbf2680daea39e24d6ae6653417d"),
            ("false", "6e88aa4242f017b7705f12581a61118f"),
            ("true", "cd4d51ab869f071ff019c3e4a55c0125"),
            (r#""""#, "a78446cf287029a585b395a161a2a9a1"),
            ("[]", "7d54f729ff4a63ffa2ef3ca359538082"),
            ("{}", "14b86a60aa01a7381438743e80b965d8"),
            ("1234", "a94bf61335c9fba42c28d7d9895d1434"),
            ("[null]", "3e8e8c77472338352f80ea6235fb6e41"),
            (r#"{"prop":null}"#, "a3d5880c264194b40e763e0b097a94d4"),
        ] {
            assert_eq!(hex(value), hash, "{value}");
        }
    }

    #[test]
    fn halves_lead_back() {
        let hash = DistinctHash::of(&Value::Bool(true));
        let (low, high) = hash.halves();
        assert_eq!((low, high), (-1_145_669_243_394_850_523, -3_653_173_925_587_777_761));
        assert_eq!(DistinctHash::from_halves(low, high), hash);
    }
}
