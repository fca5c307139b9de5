//! The hashes that DISTINCT and ORDER BY use for arrays and objects.
//!
//! Clients that merge pages of several partitions order arrays among themselves, and
//! objects, by a hash of 128 bits, so sorted pages must use the same. It is part of the
//! wire contract: clients send it back to say where they stopped. The hash of 64 bits is
//! what the language's own function returns. Both traverse a value alike and differ in the
//! width of their words and in their seeds.
//!
//! The seed of a value depends on its place in the array or object around it (the name, the
//! index), and on nothing further out. So one traversal from the inside out gives the hash
//! of every array and object in a value, at two hashes for each instead of one: as a value
//! of its own, and in its place ([`NestedHash`]).

use std::sync::LazyLock;

use super::{DEPTH_MAX, JsonKind, Number, Raw, Value};
use crate::murmur::{hash64_seeded, hash128_seeded};

/// The two halves of a hash, the low one first.
type Halves = (u64, u64);

/// A word of a hash: seeds and results have the same type.
trait Word: Copy + PartialEq + 'static {
    /// The seed for each kind of value.
    const SEEDS: Seeds<Self>;
    const ZERO: Self;

    fn hash(input: &[u8], seed: Self) -> Self;
    /// The hash of a hash.
    fn folded(self, seed: Self) -> Self;
    fn plus(self, index: u64) -> Self;
    fn xor(self, other: Self) -> Self;
}

struct Seeds<W> {
    null: W,
    no: W,
    yes: W,
    string: W,
    number: W,
    array: W,
    index: W,
    object: W,
    name: W,
}

const ROOT: Halves = (0xbfc2_359e_afc0_e2b7, 0x8846_e002_84c4_cf1f);

impl Word for Halves {
    const SEEDS: Seeds<Halves> = Seeds {
        null: (0x1380_f68b_b3b0_cfe4, 0x156c_918b_f564_ee48),
        no: (0xc1be_517f_e893_b40c, 0xe9fc_8a4c_531c_d0dd),
        yes: (0xf86d_4abf_9a41_2e74, 0x7884_8836_5c8a_985d),
        string: (0x61f5_3f0a_4420_4cfb, 0x0948_1be8_ef4b_56dd),
        number: (0x2400_e8b8_94ce_9c2a, 0x790b_e1ea_bd7b_9481),
        array: (0xfa57_3b01_4c4d_c18e, 0xa014_512c_858e_b115),
        index: (0xfe05_7204_216d_b999, 0x5b1c_c317_8bd9_c593),
        object: (0x77b2_85ac_511a_ef30, 0x3dcf_1872_4582_2449),
        name: (0xc915_dde0_5849_2a8a, 0x7c8b_e2eb_a72e_4634),
    };
    const ZERO: Halves = (0, 0);

    fn hash(input: &[u8], seed: Halves) -> Halves {
        hash128_seeded(input, seed)
    }

    fn folded(self, seed: Halves) -> Halves {
        hash128_seeded(&bytes(self), seed)
    }

    fn plus(self, index: u64) -> Halves {
        split(joined(self).wrapping_add(index.into()))
    }

    fn xor(self, other: Halves) -> Halves {
        (self.0 ^ other.0, self.1 ^ other.1)
    }
}

impl Word for u64 {
    const SEEDS: Seeds<u64> = Seeds {
        null: 0xc9a6_2cde_5e5e_46a9,
        no: 0xb9d5_13f6_4037_4a9e,
        yes: 0xa966_435d_d651_d0ef,
        string: 0xc495_960b_1bf3_031d,
        number: 0x92d5_e4f1_9fb0_b3fe,
        array: 0x47f9_1c76_36e3_eacc,
        index: 0xa6a9_465f_6993_03c9,
        object: 0x048a_1e6f_4a51_fdd4,
        name: 0x1dfc_e123_ef7f_079e,
    };
    const ZERO: u64 = 0;

    fn hash(input: &[u8], seed: u64) -> u64 {
        hash64_seeded(input, seed)
    }

    fn folded(self, seed: u64) -> u64 {
        hash64_seeded(&self.to_le_bytes(), seed)
    }

    fn plus(self, index: u64) -> u64 {
        self.wrapping_add(index)
    }

    fn xor(self, other: u64) -> u64 {
        self ^ other
    }
}

/// The hash of 64 bits that the function `HASH` of the query language gives.
#[must_use]
pub fn hash64(value: &Value, seed: i64) -> i64 {
    hashed(value, seed.cast_unsigned()).cast_signed()
}

/// A value's hash. Hashes compare as clients order arrays, and objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DistinctHash([u8; 16]);

impl DistinctHash {
    /// The hash of a value, which is at most as deep as documents may be.
    #[must_use]
    pub fn of(value: &Value) -> DistinctHash {
        DistinctHash(bytes(hashed(value, ROOT)))
    }

    /// The hash of bytes, whether or not they are text.
    #[must_use]
    pub fn of_bytes(input: &[u8]) -> DistinctHash {
        DistinctHash(bytes(Word::hash(input, Halves::SEEDS.string.folded(ROOT))))
    }

    /// The hash whose bytes these are.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> DistinctHash {
        DistinctHash(bytes)
    }

    /// The hash whose halves a client names.
    #[must_use]
    pub fn from_halves(low: i64, high: i64) -> DistinctHash {
        DistinctHash(bytes((low.cast_unsigned(), high.cast_unsigned())))
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

fn joined((low, high): Halves) -> u128 {
    (u128::from(high) << 64) | u128::from(low)
}

fn bytes(halves: Halves) -> [u8; 16] {
    joined(halves).to_le_bytes()
}

/// Where a value stands, which is a part of its hash.
#[derive(Clone, Copy, Debug)]
pub struct Place(Halves);

/// The hash of a value in its place.
#[derive(Clone, Copy, Debug)]
pub struct PlacedHash(Halves);

/// The seed for the names of members.
static NAME_SEED: LazyLock<Halves> =
    LazyLock::new(|| Halves::SEEDS.string.folded(Halves::SEEDS.name));

impl Place {
    /// In no array or object.
    pub const ALONE: Place = Place(ROOT);

    #[must_use]
    pub fn element(index: u64) -> Place {
        Place(Halves::SEEDS.index.plus(index))
    }

    #[must_use]
    pub fn member(name: &str) -> Place {
        Place(Word::hash(name.as_bytes(), *NAME_SEED))
    }

    /// The hash of a value in this place.
    #[must_use]
    pub fn hash(self, value: Raw<'_>) -> PlacedHash {
        PlacedHash(hashed_text(value, self.0, DEPTH_MAX))
    }
}

/// An array or object whose parts are hashed one after the other: as a value of its own and
/// in its place at once, so that no part is hashed for both.
#[derive(Clone, Copy, Debug)]
pub struct NestedHash {
    alone: Sum<Halves>,
    placed: Sum<Halves>,
}

impl NestedHash {
    #[must_use]
    pub fn array(place: Place) -> NestedHash {
        NestedHash { alone: Sum::array(ROOT), placed: Sum::array(place.0) }
    }

    #[must_use]
    pub fn object(place: Place) -> NestedHash {
        NestedHash { alone: Sum::object(ROOT), placed: Sum::object(place.0) }
    }

    /// Adds the next element, or a member.
    pub fn add(&mut self, part: PlacedHash) {
        self.alone.add(part.0);
        self.placed.add(part.0);
    }

    /// The hash as a value of its own, and in its place.
    #[must_use]
    pub fn finish(self) -> (DistinctHash, PlacedHash) {
        (DistinctHash(bytes(self.alone.finish())), PlacedHash(self.placed.finish()))
    }
}

/// The hash of an array or object up to some of its parts.
#[derive(Clone, Copy, Debug)]
enum Sum<W> {
    Array(W),
    Object { start: W, members: W },
}

impl<W: Word> Sum<W> {
    fn array(seed: W) -> Sum<W> {
        Sum::Array(W::SEEDS.array.folded(seed))
    }

    fn object(seed: W) -> Sum<W> {
        Sum::Object { start: W::SEEDS.object.folded(seed), members: W::ZERO }
    }

    fn add(&mut self, part: W) {
        match self {
            Sum::Array(sum) => *sum = part.folded(*sum),
            Sum::Object { members, .. } => *members = members.xor(part),
        }
    }

    fn finish(self) -> W {
        match self {
            Sum::Object { start, members } if members != W::ZERO => members.folded(start),
            Sum::Array(sum) | Sum::Object { start: sum, .. } => sum,
        }
    }
}

fn hashed<W: Word>(value: &Value, seed: W) -> W {
    let own = W::SEEDS;
    match value {
        Value::Null => own.null.folded(seed),
        Value::Bool(truth) => hashed_truth(*truth, seed),
        Value::Number(number) => hashed_number(number, seed),
        Value::String(text) => hashed_string(text, seed),
        Value::Array(items) => {
            let mut sum = Sum::array(seed);
            for (item, index) in items.iter().zip(0_u64..) {
                sum.add(hashed(item, own.index.plus(index)));
            }
            sum.finish()
        }
        Value::Object(object) => {
            let mut sum = Sum::object(seed);
            let name_seed = own.string.folded(own.name);
            for (name, member) in object.iter() {
                sum.add(hashed(member, W::hash(name.as_bytes(), name_seed)));
            }
            sum.finish()
        }
    }
}

/// The same of a text. What is nested deeper than documents may be counts as null.
fn hashed_text(value: Raw<'_>, seed: Halves, depth: usize) -> Halves {
    let null = || Halves::SEEDS.null.folded(seed);
    let Some(below) = depth.checked_sub(1) else { return null() };
    match value.kind() {
        JsonKind::Null => null(),
        JsonKind::Bool => hashed_truth(value.as_bool().unwrap_or_default(), seed),
        JsonKind::Number => value.as_number().map_or_else(null, |own| hashed_number(&own, seed)),
        JsonKind::String => hashed_string(&value.as_str().unwrap_or_default(), seed),
        JsonKind::Array => {
            let mut sum = Sum::array(seed);
            for (element, index) in value.elements().zip(0_u64..) {
                sum.add(hashed_text(element, Place::element(index).0, below));
            }
            sum.finish()
        }
        JsonKind::Object => {
            let mut sum = Sum::object(seed);
            for (name, member) in value.members() {
                sum.add(hashed_text(member, Place::member(&name).0, below));
            }
            sum.finish()
        }
    }
}

fn hashed_truth<W: Word>(truth: bool, seed: W) -> W {
    if truth { W::SEEDS.yes.folded(seed) } else { W::SEEDS.no.folded(seed) }
}

fn hashed_number<W: Word>(number: &Number, seed: W) -> W {
    W::hash(&number_bytes(number), W::SEEDS.number.folded(seed))
}

fn hashed_string<W: Word>(text: &str, seed: W) -> W {
    W::hash(text.as_bytes(), W::SEEDS.string.folded(seed))
}

fn split(number: u128) -> Halves {
    let half = |part: u128| u64::try_from(part & u128::from(u64::MAX)).unwrap_or_default();
    (half(number), half(number >> 64))
}

/// Bits of an integer that a double keeps after the leading one.
const MANTISSA_BITS: u32 = 52;
const EXPONENT_BIAS: u64 = 1023;
/// Bits of an integer's mantissa, and those of them that no double has.
const WIDE_BITS: u32 = 62;
const EXTRA_BITS: u32 = WIDE_BITS - MANTISSA_BITS;

/// The double, followed by what a double cannot keep of an integer.
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

    /// Values that the service's own planner gives for the function.
    #[test]
    fn recorded_hashes_of_64_bits() {
        for (value, seed, hash) in [
            ("null", 0, 766_155_438_505_752_088),
            ("null", 1, 7_320_820_698_839_588_991),
            ("true", -1, 4_723_348_126_254_306_443),
            (r#""x""#, 0, 6_315_374_462_337_646_931),
            (r#""x""#, 5, -5_049_776_073_348_156_976),
            (r#""""#, 0, 2_501_454_490_990_260_405),
            ("1", 0, 6_281_156_381_425_082_778),
            ("1", -1, 387_200_765_162_022_104),
            ("[]", 0, -171_493_006_512_160_207),
            ("[null]", 0, -8_360_818_322_968_855_080),
            ("{}", 2, -9_066_530_995_192_925_093),
        ] {
            let value = crate::json::parse(value.as_bytes()).unwrap();
            assert_eq!(hash64(&value, seed), hash, "{value} from {seed}");
        }
    }

    /// Parts that are hashed as they come give what the value gives.
    #[test]
    fn parts_add_up() {
        for text in ["[]", "{}", r#"[1,[2,{"a":null}],"x"]"#, r#"{"a":[true],"b":{"a":-1.5}}"#] {
            let value = crate::json::parse(text.as_bytes()).unwrap();
            let raw = crate::json::parse_raw(text.as_bytes()).unwrap();
            assert_eq!(bytes(Place::ALONE.hash(raw).0), DistinctHash::of(&value).to_bytes());
            let place = Place::member("p");
            let is_array = raw.kind() == JsonKind::Array;
            let mut sum =
                if is_array { NestedHash::array(place) } else { NestedHash::object(place) };
            for (element, index) in raw.elements().zip(0..) {
                sum.add(Place::element(index).hash(element));
            }
            for (name, member) in raw.members() {
                sum.add(Place::member(&name).hash(member));
            }
            let (alone, placed) = sum.finish();
            assert_eq!((alone, placed.0), (DistinctHash::of(&value), place.hash(raw).0), "{text}");
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
