//! Choices that a seed repeats.

/// A generator that gives the same numbers for the same seed (xorshift).
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Seeds that lie side by side begin far apart.
    pub(crate) fn new(seed: u64) -> Dice {
        let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Dice((mixed ^ (mixed >> 31)) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.next() % end).unwrap_or_default()
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, odds: usize) -> bool {
        self.below(odds) == 0
    }

    /// One of a list that is not empty.
    pub(crate) fn pick<'l, T: ?Sized>(&mut self, list: &[&'l T]) -> &'l T {
        let at = self.below(list.len());
        list.get(at).copied().expect("the list is not empty")
    }
}
