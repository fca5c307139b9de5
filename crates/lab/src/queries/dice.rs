//! Random choices, reproducible from a seed.

use runtime::{Random, SeededRandom};

#[derive(Debug)]
pub struct Dice {
    random: SeededRandom,
}

impl Dice {
    #[must_use]
    pub fn new(seed: u64) -> Dice {
        Dice { random: SeededRandom::new(seed) }
    }

    pub fn seed(&self) -> u64 {
        self.random.next_u64()
    }

    /// A number below `end`, which is not 0.
    pub fn below(&self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.random.next_u64() % end).unwrap_or_default()
    }

    /// True once in `odds` times.
    pub fn once_in(&self, odds: usize) -> bool {
        self.below(odds) == 0
    }

    /// One of a list that is not empty.
    pub fn pick<'l, T>(&self, list: &'l [T]) -> &'l T {
        list.get(self.below(list.len())).expect("the list is not empty")
    }
}
