//! Heavy hitters in bounded memory: a space-saving sketch.
//!
//! While there are free counters every key has its own. After that a new key takes over the
//! smallest counter and adds to it, and remembers its value as the possible error. So
//! counts are never too low, and a key that has more than one part in `capacity` of the
//! whole cannot be missing.

use model::charge::Charge;
use model::epk::Epk;

use super::HeavyKey;

#[derive(Debug)]
pub(super) struct Heavy {
    capacity: usize,
    entries: Vec<HeavyKey>,
}

impl Heavy {
    pub(super) fn new(capacity: usize) -> Heavy {
        Heavy { capacity, entries: Vec::new() }
    }

    pub(super) fn entries(&self) -> &[HeavyKey] {
        &self.entries
    }

    pub(super) fn add(&mut self, position: &Epk, charge: Charge) {
        if let Some(known) = self.entries.iter_mut().find(|entry| entry.position == *position) {
            known.charge += charge;
            return;
        }
        let new = HeavyKey { position: position.clone(), charge, error: Charge::default() };
        if self.entries.len() < self.capacity {
            self.entries.push(new);
        } else if let Some(lightest) = self.entries.iter_mut().min_by_key(|entry| entry.charge) {
            let error = lightest.charge;
            *lightest = HeavyKey { charge: error + charge, error, ..new };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const CAPACITY: usize = 8;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn no_heavy_key_is_missing_and_no_count_too_low(
            stream in proptest::collection::vec((0..40_u8, 1..100_u64), 0..300),
        ) {
            let mut heavy = Heavy::new(CAPACITY);
            let mut exact = BTreeMap::<u8, u64>::new();
            for (key, units) in &stream {
                heavy.add(&Epk::from_bytes(&[*key]).unwrap(), Charge::from_units(*units));
                *exact.entry(*key).or_default() += units;
            }
            prop_assert!(heavy.entries().len() <= CAPACITY);
            let total: u64 = exact.values().sum();
            for (key, units) in exact {
                let position = Epk::from_bytes(&[key]).unwrap();
                let found = heavy.entries().iter().find(|entry| entry.position == position);
                prop_assert!(found.is_some() || units * CAPACITY as u64 <= total, "key {}", key);
                if let Some(found) = found {
                    prop_assert!(found.charge.units() >= units);
                    prop_assert!(found.charge.units() - found.error.units() <= units);
                }
            }
        }
    }
}
