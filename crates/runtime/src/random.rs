//! Randomness, real and seeded.
//!
//! Keys and ids are drawn from here, so the real twin asks the operating system every time
//! instead of expanding a seed of its own.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

pub trait Random: Send + Sync + fmt::Debug {
    fn next_u64(&self) -> u64;

    /// Fills `bytes`; the same draws as calling [`Random::next_u64`] for every
    /// eight bytes begun, least significant byte first.
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(size_of::<u64>()) {
            let drawn = self.next_u64().to_le_bytes();
            for (to, from) in chunk.iter_mut().zip(drawn) {
                *to = from;
            }
        }
    }
}

/// The operating system's randomness, fit for keys and secrets.
#[derive(Clone, Copy, Debug)]
pub struct RealRandom;

impl Random for RealRandom {
    /// Panics when the operating system has no randomness to give: going on with
    /// guessable keys would be worse than stopping.
    fn next_u64(&self) -> u64 {
        getrandom::u64().expect("the operating system has a source of randomness")
    }

    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system has a source of randomness");
    }
}

/// `SplitMix64`: the same seed gives the same numbers on every machine. For tests
/// and simulations only, since anyone can compute the next number.
#[derive(Debug)]
pub struct SeededRandom {
    state: AtomicU64,
}

impl SeededRandom {
    /// The generator's increment: the golden ratio as a 64-bit fraction.
    const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

    #[must_use]
    pub fn new(seed: u64) -> SeededRandom {
        SeededRandom { state: AtomicU64::new(seed) }
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        let before = self.state.fetch_add(SeededRandom::GAMMA, Ordering::Relaxed);
        mix(before.wrapping_add(SeededRandom::GAMMA))
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeded_numbers_are_the_published_splitmix64_ones() {
        let random = SeededRandom::new(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(drawn, published);
    }

    #[test]
    fn fill_draws_like_next() {
        let mut bytes = [0; 11];
        SeededRandom::new(3).fill(&mut bytes);
        let random = SeededRandom::new(3);
        let mut expected = random.next_u64().to_le_bytes().to_vec();
        expected.extend_from_slice(&random.next_u64().to_le_bytes()[..3]);
        assert_eq!(bytes.as_slice(), expected);
    }

    #[test]
    fn real_numbers_do_not_repeat() {
        let drawn: std::collections::BTreeSet<u64> =
            (0..1_000).map(|_| RealRandom.next_u64()).collect();
        assert_eq!(drawn.len(), 1_000);
        let mut bytes = [0; 32];
        RealRandom.fill(&mut bytes);
        assert_ne!(bytes, [0; 32]);
    }
}
