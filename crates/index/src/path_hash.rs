//! Eight bytes that stand for a path.
//!
//! Hashing is keyed, because property names come from untrusted clients: one who could make
//! two paths share a hash could make one property's values appear as another's.

use model::policy::{PolicyPathStep, SortOrder};

/// The hash of a path in one container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathHash(u64);

/// Messages that no property name can be, since UTF-8 has no such bytes.
const MEMBERS: &[u8] = &[0xFC];
const ITEM: &[u8] = &[0xFD];
const COMPOSITE: u8 = 0xFE;
const ELEMENTS: &[u8] = &[0xFF];

impl PathHash {
    /// The set of no paths.
    pub(crate) const NONE: PathHash = PathHash(0);

    pub(crate) fn item(seed: u64) -> PathHash {
        PathHash(sip24(seed, 0, ITEM))
    }

    pub(crate) fn property(self, seed: u64, name: &str) -> PathHash {
        PathHash(sip24(seed, self.0, name.as_bytes()))
    }

    pub(crate) fn elements(self, seed: u64) -> PathHash {
        PathHash(sip24(seed, self.0, ELEMENTS))
    }

    /// The names of members of the object at this path.
    pub(crate) fn members(self, seed: u64) -> PathHash {
        PathHash(sip24(seed, self.0, MEMBERS))
    }

    /// The hash of a set of paths, independent of their order.
    pub(crate) fn together(self, other: PathHash) -> PathHash {
        PathHash(self.0 ^ other.0)
    }

    pub(crate) fn step(self, seed: u64, step: &PolicyPathStep) -> PathHash {
        match step {
            PolicyPathStep::Property(name) => self.property(seed, name),
            PolicyPathStep::Elements => self.elements(seed),
        }
    }

    /// The hash of a composite index over `parts`.
    pub(crate) fn composite(seed: u64, parts: &[(PathHash, SortOrder)]) -> PathHash {
        let mut message = vec![COMPOSITE];
        for (path, order) in parts {
            message.extend(path.to_bytes());
            message.push(match order {
                SortOrder::Ascending => 0,
                SortOrder::Descending => 1,
            });
        }
        PathHash(sip24(seed, PathHash::item(seed).0, &message))
    }

    #[must_use]
    pub fn to_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    #[must_use]
    pub fn from_bytes(bytes: [u8; 8]) -> PathHash {
        PathHash(u64::from_be_bytes(bytes))
    }
}

/// SipHash-2-4 with the key `k0`, `k1`.
fn sip24(k0: u64, k1: u64, message: &[u8]) -> u64 {
    let mut state = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let (words, tail) = message.as_chunks::<8>();
    for word in words {
        absorb(&mut state, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    for (slot, byte) in last.iter_mut().zip(tail) {
        *slot = *byte;
    }
    let [_, _, _, _, _, _, _, length] = &mut last;
    // The length modulo 256, as the algorithm requires.
    *length = u8::try_from(message.len() & 0xFF).expect("masked to one byte");
    absorb(&mut state, u64::from_le_bytes(last));
    let [_, _, third, _] = &mut state;
    *third ^= 0xFF;
    (0..4).for_each(|_| round(&mut state));
    state.into_iter().fold(0, |hash, word| hash ^ word)
}

fn absorb(state: &mut [u64; 4], word: u64) {
    let [_, _, _, fourth] = state;
    *fourth ^= word;
    round(state);
    round(state);
    let [first, _, _, _] = state;
    *first ^= word;
}

fn round([a, b, c, d]: &mut [u64; 4]) {
    *a = a.wrapping_add(*b);
    *c = c.wrapping_add(*d);
    *b = b.rotate_left(13) ^ *a;
    *d = d.rotate_left(16) ^ *c;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*b);
    *a = a.wrapping_add(*d);
    *b = b.rotate_left(17) ^ *c;
    *d = d.rotate_left(21) ^ *a;
    *c = c.rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors published with the algorithm: key 00…0F, messages 00, 00 01, …
    #[test]
    fn is_siphash_2_4() {
        let k0 = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7]);
        let k1 = u64::from_le_bytes([8, 9, 10, 11, 12, 13, 14, 15]);
        let message: Vec<u8> = (0..15).collect();
        assert_eq!(sip24(k0, k1, &message), 0xa129_ca61_49be_45e5);
        assert_eq!(sip24(k0, k1, &[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(sip24(k0, k1, &message[..8]), 0x93f5_f579_9a93_2462);
    }

    #[test]
    fn tells_steps_containers_and_directions_apart() {
        let item = PathHash::item(7);
        let a = item.property(7, "a");
        let hashes = [
            item,
            a,
            item.elements(7),
            item.property(7, "[]"),
            item.property(7, "a/b"),
            a.property(7, "b"),
            PathHash::item(8).property(8, "a"),
            PathHash::composite(7, &[(a, SortOrder::Ascending)]),
            PathHash::composite(7, &[(a, SortOrder::Descending)]),
        ];
        let distinct: std::collections::BTreeSet<PathHash> = hashes.into_iter().collect();
        assert_eq!(distinct.len(), hashes.len());
    }
}
