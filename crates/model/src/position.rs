//! Where and when: positions in a partition's log, numbers of items, times.

use std::fmt;

use crate::epk::HashPrefix;

/// Position in a partition's write log. Strictly increasing, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lsn(u64);

impl Lsn {
    /// The position before the first write.
    pub const ZERO: Lsn = Lsn(0);

    /// For decoders of stored bytes and of what clients send. New positions come
    /// from [`Lsn::next`].
    #[must_use]
    pub const fn from_u64(number: u64) -> Lsn {
        Lsn(number)
    }

    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }

    /// Returns the next position.
    ///
    /// Panics on overflow: no sequence of writes gets there, so the counter is
    /// corrupt and going on would reuse positions.
    #[must_use]
    pub fn next(self) -> Lsn {
        Lsn(self.0.checked_add(1).expect("LSN overflow"))
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number inside an item's `_rid`: its hash prefix, then a number that its container
/// never uses twice. Index entries end in it, so entries of one logical partition are
/// adjacent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ordinal(u64);

impl Ordinal {
    /// The resource id leaves 60 bits to the ordinal.
    pub const BITS: u32 = 60;
    pub const NUMBER_BITS: u32 = Ordinal::BITS - HashPrefix::BITS;
    pub const NUMBER_MAX: u64 = (1 << Ordinal::NUMBER_BITS) - 1;

    /// `None` unless the number is in 1..=[`Ordinal::NUMBER_MAX`]. Zero is left
    /// out because clients take document number 0 for "no document".
    #[must_use]
    pub fn new(hash_prefix: HashPrefix, number: u64) -> Option<Ordinal> {
        let valid = (1..=Ordinal::NUMBER_MAX).contains(&number);
        valid.then(|| Ordinal(u64::from(hash_prefix.get()) << Ordinal::NUMBER_BITS | number))
    }

    /// Decodes a stored or sent ordinal; `None` if it is not one.
    #[must_use]
    pub fn from_u64(bits: u64) -> Option<Ordinal> {
        let hash_prefix =
            u32::try_from(bits >> Ordinal::NUMBER_BITS).ok().and_then(HashPrefix::new)?;
        Ordinal::new(hash_prefix, bits & Ordinal::NUMBER_MAX)
    }

    #[must_use]
    pub fn as_u64(self) -> u64 {
        self.0
    }

    #[must_use]
    pub fn hash_prefix(self) -> HashPrefix {
        u32::try_from(self.0 >> Ordinal::NUMBER_BITS)
            .ok()
            .and_then(HashPrefix::new)
            .expect("an ordinal has 60 bits")
    }

    #[must_use]
    pub fn number(self) -> u64 {
        self.0 & Ordinal::NUMBER_MAX
    }
}

impl fmt::Debug for Ordinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ordinal({:05x}:{})", self.hash_prefix().get(), self.number())
    }
}

/// A point in time, as milliseconds since the start of 1970 (UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(u64);

impl Timestamp {
    #[must_use]
    pub fn from_millis(millis: u64) -> Timestamp {
        Timestamp(millis)
    }

    #[must_use]
    pub fn millis(self) -> u64 {
        self.0
    }

    /// Whole seconds, rounded down: the precision of `_ts`.
    #[must_use]
    pub fn secs(self) -> u64 {
        self.0 / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_keep_place_and_number() {
        let ordinal = Ordinal::new(HashPrefix::MAX, Ordinal::NUMBER_MAX).unwrap();
        assert_eq!(ordinal.as_u64(), (1 << 60) - 1);
        assert_eq!(
            (ordinal.hash_prefix(), ordinal.number()),
            (HashPrefix::MAX, Ordinal::NUMBER_MAX)
        );
        assert_eq!(Ordinal::new(HashPrefix::MIN, 0), None);
        assert_eq!(Ordinal::new(HashPrefix::MIN, Ordinal::NUMBER_MAX + 1), None);
        assert_eq!(Ordinal::from_u64(1 << 60 | 1), None);
        assert_eq!(Ordinal::from_u64(1), Ordinal::new(HashPrefix::MIN, 1));
    }

    #[test]
    fn positions_and_times() {
        assert_eq!(Lsn::ZERO.next().next().get(), 2);
        assert!(Lsn::from_u64(7) < Lsn::from_u64(8));
        assert_eq!(Timestamp::from_millis(1999).secs(), 1);
    }
}
