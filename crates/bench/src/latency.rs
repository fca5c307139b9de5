//! Latencies, all of them kept: the longest of ten million is one of the figures.

use std::time::Duration;

/// What one unit of a stored latency is: 32 bits reach to seven minutes.
const UNIT_NANOS: u128 = 100;

#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies {
    taken: Vec<u32>,
}

impl Latencies {
    pub(crate) fn add(&mut self, taken: Duration) {
        let units = taken.as_nanos() / UNIT_NANOS;
        self.taken.push(u32::try_from(units).unwrap_or(u32::MAX));
    }

    pub(crate) fn count(&self) -> u64 {
        self.taken.len() as u64
    }

    pub(crate) fn merge(&mut self, other: Latencies) {
        self.taken.extend(other.taken);
    }

    /// Microseconds that this many of 100,000 did not exceed, for each.
    pub(crate) fn micros_at<const N: usize>(mut self, of_100_000: [usize; N]) -> [f64; N] {
        self.taken.sort_unstable();
        of_100_000.map(|part| {
            let last = self.taken.len().saturating_sub(1);
            let at = (self.taken.len() * part / 100_000).min(last);
            let units = self.taken.get(at).copied().unwrap_or_default();
            f64::from(units) * UNIT_NANOS as f64 / 1e3
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_sorted_latencies() {
        let mut latencies = Latencies::default();
        (1..=1_000).rev().for_each(|micros| latencies.add(Duration::from_micros(micros)));
        assert_eq!(latencies.micros_at([50_000, 99_900, 100_000]), [501.0, 1_000.0, 1_000.0]);
    }
}
