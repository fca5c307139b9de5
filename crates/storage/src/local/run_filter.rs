//! A filter for each flushed run: which of them a key can be in.
//!
//! Several runs are as they were flushed, and a key that is looked up may be in any of
//! them; most are not there, because creating an item looks for one that does not exist. The
//! engine has a filter in each table, but asking it takes several cache misses. This one is
//! made of the keys while they are flushed, and takes one: all bits of a key are in one
//! cache line (a blocked Bloom filter).
//!
//! It lives as long as the process. A run that was flushed before the last start has none,
//! and is asked by the engine's filter alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use lsm_tree::TableId;
use xxhash_rust::xxh3::xxh3_64;

/// Filters by the number of a table.
pub(super) type RunFilters = BTreeMap<TableId, Arc<RunFilter>>;

/// Bits of a block: a cache line.
const BLOCK_BITS: usize = 512;

/// Bits of the filter for each key. One lookup in a hundred of absent keys is not spared.
const BITS_PER_KEY: usize = 10;

/// Bits that a key sets.
const PROBES: usize = 6;

/// Bits that number a bit of a block.
const PROBE_BITS: u32 = 9;

/// An odd number whose bits look random: the golden ratio.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

/// The hash of a key, which the engine's filters use as well.
pub(super) fn key_hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// The keys of a run, approximately.
pub(super) struct RunFilter {
    blocks: Vec<Block>,
}

#[repr(align(64))]
#[derive(Clone, Copy, Default)]
struct Block([u64; BLOCK_BITS / 64]);

impl RunFilter {
    pub(super) fn of(hashes: &[u64]) -> RunFilter {
        let blocks = (hashes.len() * BITS_PER_KEY).div_ceil(BLOCK_BITS).max(1);
        let mut filter = RunFilter { blocks: vec![Block::default(); blocks] };
        for hash in hashes {
            let at = filter.block_of(*hash);
            if let Some(Block(words)) = filter.blocks.get_mut(at) {
                words.iter_mut().zip(mask(*hash)).for_each(|(word, bits)| *word |= bits);
            }
        }
        filter
    }

    /// False if no key with this hash is in the run.
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let block = self.blocks.get(self.block_of(hash));
        block.is_none_or(|Block(words)| {
            words.iter().zip(mask(hash)).all(|(word, bits)| word & bits == bits)
        })
    }

    fn block_of(&self, hash: u64) -> usize {
        let at = (u128::from(hash) * self.blocks.len() as u128) >> 64;
        usize::try_from(at).unwrap_or(0)
    }
}

/// The bits of a key in its block.
fn mask(hash: u64) -> [u64; BLOCK_BITS / 64] {
    // Other bits than those that choose the block: nine at a time, from the top.
    let mut bits = hash.wrapping_mul(MIX);
    let mut words = [0; BLOCK_BITS / 64];
    for _ in 0..PROBES {
        bits = bits.rotate_left(PROBE_BITS);
        let bit = bits % BLOCK_BITS as u64;
        for (at, word) in (0_u64..).zip(&mut words) {
            *word |= u64::from(bit / 64 == at) << (bit % 64);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(from: u64, to: u64) -> Vec<u64> {
        (from..to).map(|key| key_hash(&key.to_be_bytes())).collect()
    }

    #[test]
    fn it_contains_its_keys_and_hardly_any_others() {
        for len in [0, 1, 7, 1_000, 50_000] {
            let filter = RunFilter::of(&hashes(0, len));
            assert!(hashes(0, len).into_iter().all(|hash| filter.may_contain(hash)));
            let wrong = hashes(1 << 40, (1 << 40) + 20_000);
            let wrong = wrong.into_iter().filter(|hash| filter.may_contain(*hash)).count();
            assert!(wrong < 20_000 / 40, "{wrong} of 20000 with {len} keys");
        }
    }
}
