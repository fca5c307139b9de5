//! What distinguishes keys with one hash.
//!
//! The version 2 hash does not resist attacks: a key with the hash of another is computed
//! in milliseconds. So in a position the hash is followed by a cryptographic digest of the
//! key itself. See `docs/formats/epk.md`.

use sha2::{Digest, Sha256};

use super::v2::STRING_END;
use crate::partition_key::KeyComponent;

/// Bytes of a digest. Keys with one hash can be made in any number, so a collision of eight
/// bytes would be found by trying 2^32 of them; 127 bits make it 2^63 for two keys of the
/// attacker's choice, and 2^127 for a given key.
pub(crate) const BYTES: usize = 16;

/// Positions of one EPK lie before the EPK followed by `FF`, which is where the range ends
/// that clients make of it.
const TOP_BIT: u8 = 0x80;

/// The digest of a whole key.
pub(crate) fn of(components: &[KeyComponent]) -> [u8; BYTES] {
    let mut input = Vec::with_capacity(64);
    for component in components {
        // Unambiguous: types say what follows, and strings are terminated.
        super::write_hash_input(&mut input, component, STRING_END);
    }
    let mut digest = [0; BYTES];
    digest.iter_mut().zip(Sha256::digest(&input)).for_each(|(to, from)| *to = from);
    let [top, ..] = &mut digest;
    *top &= !TOP_BIT;
    digest
}
