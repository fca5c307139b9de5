//! Numbers of which few are drawn often, as the Yahoo! Cloud Serving Benchmark draws them.
//!
//! The method is that of Gray et al., "Quickly generating billion-record synthetic
//! databases" (1994): one sum over all numbers beforehand, then constant time for each draw.

use runtime::{Random, SeededRandom};

/// The skew that YCSB uses.
const THETA: f64 = 0.99;

/// Rank 0 is drawn most often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zipf {
    count: f64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    pub(crate) fn new(count: u64) -> Zipf {
        let zeta = (1..=count).map(|rank| (rank as f64).powf(-THETA)).sum::<f64>();
        let two = 1.0 + 0.5_f64.powf(THETA);
        let count = count as f64;
        let eta = (1.0 - (2.0 / count).powf(1.0 - THETA)) / (1.0 - two / zeta);
        Zipf { count, zeta, eta }
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number between zero and the count, which was an integer"
    )]
    pub(crate) fn rank(&self, random: &dyn Random) -> u64 {
        let drawn = unit(random);
        let scaled = drawn * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5_f64.powf(THETA) {
            return 1;
        }
        let rank = self.count * (self.eta * drawn - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        (rank as u64).min(self.count as u64 - 1)
    }

    /// The same, with the frequent numbers spread over all.
    pub(crate) fn scattered(&self, random: &dyn Random, count: u64) -> u64 {
        SeededRandom::new(self.rank(random)).next_u64() % count
    }
}

/// Between zero and one.
fn unit(random: &dyn Random) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_numbers_are_drawn_often() {
        let (zipf, random) = (Zipf::new(10_000), SeededRandom::new(1));
        let ranks: Vec<u64> = (0..10_000).map(|_| zipf.rank(&random)).collect();
        let top = ranks.iter().filter(|rank| **rank < 100).count();
        assert!((4_500..6_500).contains(&top), "{top} of 10,000 draws are of 1 % of the numbers");
        assert!(ranks.iter().all(|rank| *rank < 10_000));
        assert!(ranks.iter().any(|rank| *rank > 5_000));
    }
}
