//! Version 2 of the hash: one 126-bit number per key, or per level of a
//! hierarchical key. See `docs/formats/epk.md`.

use crate::murmur;
use crate::partition_key::KeyComponent;

/// Bits of the hash that count; the two top bits of the 128 are cleared so that
/// every hash sorts below the end of the ring, `FF`.
pub(crate) const HASH_BITS: u32 = 126;

/// Bytes of one hash.
pub(crate) const HASH_BYTES: usize = 16;

/// The largest hash.
pub(crate) const HASH_MAX: u128 = u128::MAX >> (128 - HASH_BITS);

/// Closes a string in the hash input. No UTF-8 text contains it.
pub(super) const STRING_END: u8 = 0xFF;

/// Hashes the components as one.
pub(crate) fn hash(components: &[KeyComponent]) -> u128 {
    let mut input = Vec::with_capacity(64);
    for component in components {
        super::write_hash_input(&mut input, component, STRING_END);
    }
    murmur::hash128(&input) & HASH_MAX
}
