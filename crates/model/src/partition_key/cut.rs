//! Where to cut a range of the ring, and how much of the ring it is.
//!
//! Positions are byte strings of any length; half-way between two of them means
//! half-way between the *hashes* they stand for, which is where clients and the
//! published boundaries expect a cut.

use super::{HashVersion, PartitionKeyDefinition};
use crate::epk::{Epk, EpkRange, v1, v2};

use v2::HASH_BYTES as LEVEL_BYTES;

impl PartitionKeyDefinition {
    /// The position half-way through a range: where a split for throughput cuts.
    /// `None` when there is no hash between its ends.
    ///
    /// Halving the fresh boundaries of 2^n or 3 ranges gives the fresh boundaries of
    /// twice as many; those of other numbers may differ by one hash, as both round.
    ///
    /// In a hierarchical container the answer has as few levels as possible, so a
    /// first-level value is cut only when the range lies within it.
    #[must_use]
    pub fn midpoint(&self, range: &EpkRange) -> Option<Epk> {
        let inside = |at: &Epk| range.min < *at && *at < range.max;
        match self.version() {
            HashVersion::V1 => {
                let (min, max) = (v1::hash_at(&range.min), v1::hash_at(&range.max));
                let half = min + max.checked_sub(min)? / 2;
                Some(Epk::new(&v1::boundary(half))).filter(inside)
            }
            HashVersion::V2 => {
                let levels = self.levels();
                let half = halfway(&digits(&range.min, levels), &digits(&range.max, levels));
                (1..=levels).filter_map(|kept| half.get(..kept)).map(concatenated).find(inside)
            }
        }
    }

    /// The part of the ring that a range covers, from 0 to 1, judging by its first level:
    /// ranges within one first-level value count as nothing.
    #[must_use]
    pub fn share(&self, range: &EpkRange) -> f64 {
        let point = |epk: &Epk| match self.version() {
            HashVersion::V1 => f64::from(v1::hash_at(epk)),
            HashVersion::V2 => {
                let top = digits(epk, 1).first().map_or(0, |hash| hash >> (v2::HASH_BITS - 32));
                f64::from(u32::try_from(top).expect("32 of 126 bits are left"))
            }
        };
        (point(&range.max) - point(&range.min)).max(0.0) / f64::from(u32::MAX)
    }
}

/// The position of these version 2 hashes, one per level.
pub(super) fn concatenated(hashes: &[u128]) -> Epk {
    let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_be_bytes()).collect();
    Epk::new(&bytes)
}

/// A position as one hash per level. What is missing at its end counts as zero,
/// and the end of the ring as the largest hash.
fn digits(epk: &Epk, levels: usize) -> Vec<u128> {
    let mut chunks = epk.as_bytes().chunks(LEVEL_BYTES);
    let digit = |chunk: &[u8]| {
        let mut bytes = [0; LEVEL_BYTES];
        bytes.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
        u128::from_be_bytes(bytes).min(v2::HASH_MAX)
    };
    (0..levels).map(|_| chunks.next().map_or(0, digit)).collect()
}

/// Half the sum of two numbers, each given as hashes from the most significant down.
fn halfway(low: &[u128], high: &[u128]) -> Vec<u128> {
    let mut carry = 0;
    let mut sum: Vec<u128> = low.iter().zip(high).map(|(low, high)| low + high).collect();
    for digit in sum.iter_mut().rev() {
        *digit += carry;
        carry = *digit >> v2::HASH_BITS;
        *digit &= v2::HASH_MAX;
    }
    for digit in &mut sum {
        let whole = carry << v2::HASH_BITS | *digit;
        carry = whole & 1;
        *digit = whole >> 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::partition_key::{KeyKind, KeyPath, PartitionKey};

    fn definition(paths: &[&str], version: HashVersion) -> PartitionKeyDefinition {
        let kind = if paths.len() > 1 { KeyKind::MultiHash } else { KeyKind::Hash };
        let paths = paths.iter().map(|path| KeyPath::parse(path).unwrap()).collect();
        PartitionKeyDefinition::new(paths, kind, version).unwrap()
    }

    fn all() -> [PartitionKeyDefinition; 3] {
        [
            definition(&["/a"], HashVersion::V1),
            definition(&["/a"], HashVersion::V2),
            definition(&["/a", "/b", "/c"], HashVersion::V2),
        ]
    }

    #[test]
    fn halving_gives_the_published_boundaries() {
        for definition in all() {
            for ranges in [1, 2, 4, 8, 16, 3] {
                let (whole, halves) =
                    (definition.boundaries(ranges), definition.boundaries(2 * ranges));
                for (range, halves) in whole.iter().zip(halves.chunks(2)) {
                    let cut = definition.midpoint(range).unwrap();
                    assert_eq!(cut, halves[0].max, "{:?} {range}", definition.version());
                }
            }
        }
    }

    #[test]
    fn shares_add_up() {
        for definition in all() {
            for ranges in [1, 2, 3, 7] {
                for range in definition.boundaries(ranges) {
                    let share = definition.share(&range);
                    assert!((share - 1.0 / f64::from(ranges)).abs() < 1e-8, "{share}");
                }
            }
        }
    }

    #[test]
    fn a_first_level_value_is_cut_only_from_inside() {
        let [.., definition] = all();
        let tenant = definition.prefix_range(&PartitionKey::new(["tenant"])).unwrap();
        let cut = definition.midpoint(&tenant).unwrap();
        assert_eq!(cut.as_bytes().len(), 2 * LEVEL_BYTES);
        let user = definition.prefix_range(&PartitionKey::new(["tenant", "user"])).unwrap();
        assert_eq!(definition.midpoint(&user).unwrap().as_bytes().len(), 3 * LEVEL_BYTES);
        // From this tenant to the end of the ring it stays whole.
        let rest = EpkRange::new(tenant.min, Epk::max());
        assert_eq!(definition.midpoint(&rest).unwrap().as_bytes().len(), LEVEL_BYTES);
    }

    #[test]
    fn nothing_lies_between_neighbours() {
        for definition in all() {
            let point = definition.epk(&PartitionKey::new(vec!["x"; definition.paths().len()]));
            let epk = point.unwrap();
            assert_eq!(definition.midpoint(&EpkRange::around(epk)), None);
        }
    }

    proptest! {
        #[test]
        fn hashes_are_found_again(hash: u32, tail: Vec<u8>) {
            let mut bytes = v1::boundary(hash);
            bytes.extend(tail.iter().take(100));
            prop_assert_eq!(v1::hash_at(&Epk::new(&bytes)), hash);
        }

        #[test]
        fn any_bytes_have_a_hash(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let _ = v1::hash_at(&Epk::new(&bytes));
        }

        #[test]
        fn a_midpoint_lies_inside(a: Vec<u8>, b: Vec<u8>, which in 0usize..3) {
            let epk = |bytes: &[u8]| Epk::new(&bytes[..bytes.len().min(40)]);
            let range = EpkRange::new(epk(&a), epk(&b));
            let definition = &all()[which];
            if let Some(cut) = definition.midpoint(&range) {
                prop_assert!(range.min < cut && cut < range.max);
            }
        }
    }
}
