//! Positions on a container's hash ring, and ranges of them.
//!
//! The effective partition key (EPK) decides which physical partition holds an
//! item. Clients compute it too, so the bytes are a contract; the rules are in
//! `docs/formats/epk.md`. Hashing needs the container's definition, therefore
//! keys become EPKs in [`crate::partition_key::PartitionKeyDefinition`].
//!
//! Different keys can have one EPK. The *position* at which a key's items are stored is the
//! EPK followed by what distinguishes the key from others with the same EPK, so it extends
//! the EPK, and a cut of the ring at EPKs leaves all positions of one EPK on one side.

pub(crate) mod digest;
pub(crate) mod v1;
pub(crate) mod v2;

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::hex;
use crate::partition_key::KeyComponent;

/// Bytes that an EPK may have. The longest real one, of a version 1 string, has
/// 109; longer input is not an EPK and is refused where it enters.
pub const EPK_BYTES_MAX: usize = 128;

/// Two levels of hashes, a digest, and what ends the range of one position. All EPKs of
/// hashes fit as well; positions of three levels and of version 1 are longer.
const INLINE_BYTES: usize = 2 * v2::HASH_BYTES + digest::BYTES + 1;

/// A point on the ring: a byte string, ordered as bytes. An EPK, or the position of a
/// key, which begins with its EPK.
///
/// Kept inline up to two levels of hashes, so that routing seldom allocates.
#[derive(Clone)]
pub struct Epk(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; INLINE_BYTES] },
    Shared(Arc<[u8]>),
}

/// Why some bytes or text are not an EPK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EpkError {
    #[error("effective partition key of {bytes} bytes, at most {EPK_BYTES_MAX} are possible")]
    TooLong { bytes: usize },
    #[error("effective partition key is not an even number of hexadecimal digits")]
    NotHex,
}

impl Epk {
    /// The start of the ring; also the one position of keyless containers.
    pub const MIN: Epk = Epk(Repr::Inline { len: 0, bytes: [0; INLINE_BYTES] });

    /// The end of the ring, which is after every key.
    #[must_use]
    pub const fn max() -> Epk {
        let mut bytes = [0; INLINE_BYTES];
        bytes[0] = 0xFF;
        Epk(Repr::Inline { len: 1, bytes })
    }

    /// Takes bytes as they were stored or sent.
    pub fn from_bytes(bytes: &[u8]) -> Result<Epk, EpkError> {
        if bytes.len() > EPK_BYTES_MAX {
            return Err(EpkError::TooLong { bytes: bytes.len() });
        }
        Ok(Epk::new(bytes))
    }

    /// Reads hexadecimal digits of either case.
    pub fn from_hex(text: &str) -> Result<Epk, EpkError> {
        if text.len() > 2 * EPK_BYTES_MAX {
            return Err(EpkError::TooLong { bytes: text.len() / 2 });
        }
        hex::decode(text).map(|bytes| Epk::new(&bytes)).ok_or(EpkError::NotHex)
    }

    pub(crate) fn new(bytes: &[u8]) -> Epk {
        debug_assert!(bytes.len() <= EPK_BYTES_MAX, "no key makes an EPK this long");
        let mut inline = [0; INLINE_BYTES];
        match (u8::try_from(bytes.len()), inline.get_mut(..bytes.len())) {
            (Ok(len), Some(slot)) => {
                slot.copy_from_slice(bytes);
                Epk(Repr::Inline { len, bytes: inline })
            }
            _ => Epk(Repr::Shared(bytes.into())),
        }
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => {
                bytes.get(..usize::from(*len)).expect("an inline length is within the array")
            }
            Repr::Shared(bytes) => bytes,
        }
    }

    /// The exclusive end of everything that begins with these bytes, in the form clients
    /// use: the last byte plus one, with carry. There is none after a string of `FF` bytes,
    /// and the empty one stands for the whole ring.
    #[must_use]
    fn successor(&self) -> Epk {
        let mut bytes = self.as_bytes().to_vec();
        for byte in bytes.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                return Epk::new(&bytes);
            }
        }
        Epk::max()
    }

    /// The exclusive end of the keys that begin with these hashes.
    pub(crate) fn prefix_end(&self) -> Epk {
        let mut bytes = self.as_bytes().to_vec();
        bytes.push(0xFF);
        Epk::new(&bytes)
    }
}

impl PartialEq for Epk {
    fn eq(&self, other: &Epk) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Epk {}

impl PartialOrd for Epk {
    fn partial_cmp(&self, other: &Epk) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Epk {
    fn cmp(&self, other: &Epk) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl fmt::Display for Epk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::Upper(self.as_bytes()).fmt(f)
    }
}

impl fmt::Debug for Epk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Epk({self})")
    }
}

/// Nothing lies between a byte string and the same one followed by this.
const AFTER: &[u8] = &[0];

/// A half-open range of the ring, `min` inclusive and `max` exclusive.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EpkRange {
    pub min: Epk,
    pub max: Epk,
}

impl EpkRange {
    #[must_use]
    pub fn new(min: Epk, max: Epk) -> EpkRange {
        EpkRange { min, max }
    }

    /// The whole ring.
    #[must_use]
    pub fn full() -> EpkRange {
        EpkRange { min: Epk::MIN, max: Epk::max() }
    }

    #[must_use]
    pub fn contains(&self, epk: &Epk) -> bool {
        self.min <= *epk && *epk < self.max
    }

    /// Whether `other` lies inside. An empty range lies inside every range.
    #[must_use]
    pub fn covers(&self, other: &EpkRange) -> bool {
        other.is_empty() || (self.min <= other.min && other.max <= self.max)
    }

    #[must_use]
    pub fn overlaps(&self, other: &EpkRange) -> bool {
        self.intersect(other).is_some()
    }

    /// What both have in common, unless that is empty.
    #[must_use]
    pub fn intersect(&self, other: &EpkRange) -> Option<EpkRange> {
        let min = (&self.min).max(&other.min);
        let max = (&self.max).min(&other.max);
        (min < max).then(|| EpkRange { min: min.clone(), max: max.clone() })
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.min >= self.max
    }

    /// The range of one position and nothing else, not even of longer ones that begin with
    /// it.
    #[must_use]
    pub fn of(position: Epk) -> EpkRange {
        let max = Epk::new(&[position.as_bytes(), AFTER].concat());
        EpkRange { min: position, max }
    }

    /// Everything that clients mean by one EPK: the positions of every key that has it.
    #[must_use]
    pub fn around(epk: Epk) -> EpkRange {
        let max = epk.successor();
        EpkRange { min: epk, max }
    }

    /// The position, if the range holds only one.
    #[must_use]
    pub fn position(&self) -> Option<&Epk> {
        let end = self.max.as_bytes().strip_prefix(self.min.as_bytes());
        (end == Some(AFTER)).then_some(&self.min)
    }
}

impl fmt::Display for EpkRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.min, self.max)
    }
}

impl fmt::Debug for EpkRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

const TYPE_UNDEFINED: u8 = 0x00;
const TYPE_NULL: u8 = 0x01;
const TYPE_FALSE: u8 = 0x02;
const TYPE_TRUE: u8 = 0x03;
const TYPE_NUMBER: u8 = 0x05;
const TYPE_STRING: u8 = 0x08;

fn type_byte(component: &KeyComponent) -> u8 {
    match component {
        KeyComponent::Undefined => TYPE_UNDEFINED,
        KeyComponent::Null => TYPE_NULL,
        KeyComponent::Bool(false) => TYPE_FALSE,
        KeyComponent::Bool(true) => TYPE_TRUE,
        KeyComponent::Number(_) => TYPE_NUMBER,
        KeyComponent::String(_) => TYPE_STRING,
    }
}

/// Appends what a component contributes to the input of either hash.
fn write_hash_input(out: &mut Vec<u8>, component: &KeyComponent, string_end: u8) {
    out.push(type_byte(component));
    match component {
        KeyComponent::Number(number) => {
            out.extend_from_slice(&normalised(*number).to_le_bytes());
        }
        KeyComponent::String(text) => {
            out.extend_from_slice(text.as_bytes());
            out.push(string_end);
        }
        KeyComponent::Undefined | KeyComponent::Null | KeyComponent::Bool(_) => {}
    }
}

/// The two zeros are one key.
pub(crate) fn normalised(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epk(hex: &str) -> Epk {
        Epk::from_hex(hex).unwrap()
    }

    #[test]
    fn a_string_sorts_before_its_extensions() {
        assert!(epk("") < epk("00"));
        assert!(epk("05C1") < epk("05C100"));
        assert!(epk("3FFF") < Epk::max());
        assert_eq!(epk("0aFf").to_string(), "0AFF");
    }

    #[test]
    fn foreign_text_is_refused() {
        assert_eq!(Epk::from_hex("0"), Err(EpkError::NotHex));
        assert_eq!(Epk::from_hex("+1"), Err(EpkError::NotHex));
        assert_eq!(Epk::from_hex("ä"), Err(EpkError::NotHex));
        let long = "00".repeat(EPK_BYTES_MAX + 1);
        assert_eq!(Epk::from_hex(&long), Err(EpkError::TooLong { bytes: EPK_BYTES_MAX + 1 }));
        assert!(Epk::from_hex(&"00".repeat(EPK_BYTES_MAX)).is_ok());
    }

    #[test]
    fn successors_carry() {
        assert_eq!(epk("01FF").successor(), epk("0200"));
        assert_eq!(epk("0100").successor(), epk("0101"));
        assert_eq!(Epk::MIN.successor(), Epk::max());
    }

    #[test]
    fn ranges_of_one_position_are_told_from_others() {
        for one in ["", "01FF", "0100", "FFFF"].map(epk) {
            assert_eq!(EpkRange::of(one.clone()).position(), Some(&one));
        }
        assert_eq!(EpkRange::of(epk("01")), EpkRange::new(epk("01"), epk("0100")));
        assert!(!EpkRange::of(epk("01")).contains(&epk("0100")));
        let around = EpkRange::around(epk("01FF"));
        assert!(around.contains(&epk("01FF")) && around.contains(&epk("01FFFF")));
        assert!(!around.contains(&epk("0200")));
        for several in [around, EpkRange::full(), EpkRange::new(epk("01"), epk("02"))] {
            assert_eq!(several.position(), None, "{several}");
        }
    }

    #[test]
    fn range_arithmetic() {
        let (left, right) =
            (EpkRange::new(Epk::MIN, epk("1F")), EpkRange::new(epk("1F"), epk("FF")));
        assert!(!left.overlaps(&right));
        assert!(left.contains(&Epk::MIN) && !left.contains(&epk("1F")));
        assert!(right.contains(&epk("1F")) && !right.contains(&Epk::max()));
        assert_eq!(EpkRange::full().intersect(&left), Some(left.clone()));
        assert!(EpkRange::full().covers(&right) && !left.covers(&right));
        assert!(EpkRange::new(epk("1F"), epk("1F")).is_empty());
    }
}
