//! Where and when: positions in a partition's log, numbers of items, times.

use std::fmt;

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

/// The number inside an item's `_rid`. Its container never uses it twice, and inside a
/// physical partition ordinals grow with creation: items are in the order in which they
/// were created wherever nothing else orders them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ordinal(u64);

impl Ordinal {
    /// The resource id leaves 60 bits to the ordinal.
    pub const BITS: u32 = 60;
    pub const MAX: u64 = (1 << Ordinal::BITS) - 1;

    /// `None` unless the number is in 1..=[`Ordinal::MAX`]. Zero is left out because
    /// clients take document number 0 for "no document".
    #[must_use]
    pub fn from_u64(number: u64) -> Option<Ordinal> {
        (1..=Ordinal::MAX).contains(&number).then_some(Ordinal(number))
    }

    #[must_use]
    pub fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for Ordinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ordinal({})", self.0)
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
    fn ordinals_have_sixty_bits_and_are_not_zero() {
        assert_eq!(Ordinal::from_u64(0), None);
        assert_eq!(Ordinal::from_u64(Ordinal::MAX + 1), None);
        assert_eq!(Ordinal::from_u64(Ordinal::MAX).map(Ordinal::as_u64), Some((1 << 60) - 1));
    }

    #[test]
    fn positions_and_times() {
        assert_eq!(Lsn::ZERO.next().next().get(), 2);
        assert!(Lsn::from_u64(7) < Lsn::from_u64(8));
        assert_eq!(Timestamp::from_millis(1999).secs(), 1);
    }
}
