//! The MurmurHash3 variants that partition keys and distinct values are hashed with.
//!
//! Written here because the result is part of the wire contract: clients
//! compute the same hashes, so an update of a dependency must not change them.

/// MurmurHash3 x86, 32 bits, seed 0.
pub(crate) fn hash32(input: &[u8]) -> u32 {
    let (blocks, tail) = input.as_chunks::<4>();
    let mut hash = blocks.iter().fold(0u32, |hash, block| {
        (hash ^ scramble32(u32::from_le_bytes(*block)))
            .rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xE654_6B64)
    });
    // An empty tail scrambles to zero, so no check is needed.
    hash ^= scramble32(u32::from_le_bytes(padded(tail)));
    hash ^= u32::try_from(input.len()).expect("keys are far shorter than 4 GiB");
    finish32(hash)
}

fn scramble32(block: u32) -> u32 {
    block.wrapping_mul(0xCC9E_2D51).rotate_left(15).wrapping_mul(0x1B87_3593)
}

fn finish32(mut hash: u32) -> u32 {
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85EB_CA6B);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xC2B2_AE35);
    hash ^ (hash >> 16)
}

/// The 64-bit variant of MurmurHash3 x64 that the service hashes values with: its first
/// word alone, over blocks of eight bytes.
pub(crate) fn hash64_seeded(input: &[u8], seed: u64) -> u64 {
    let (blocks, tail) = input.as_chunks::<8>();
    let hash = blocks.iter().fold(seed, |hash, block| {
        (hash ^ scramble_low(u64::from_le_bytes(*block)))
            .rotate_left(27)
            .wrapping_mul(5)
            .wrapping_add(0x52DC_E729)
    });
    let length = u64::try_from(input.len()).expect("a length fits 64 bits");
    finish64(hash ^ scramble_low(u64::from_le_bytes(padded(tail))) ^ length)
}

/// MurmurHash3 x64, 128 bits, seed 0, as the number whose high half is the second word.
pub(crate) fn hash128(input: &[u8]) -> u128 {
    let (low, high) = hash128_seeded(input, (0, 0));
    (u128::from(high) << 64) | u128::from(low)
}

/// MurmurHash3 x64, 128 bits, with a seed for each of its two words.
pub(crate) fn hash128_seeded(input: &[u8], seed: (u64, u64)) -> (u64, u64) {
    let (blocks, tail) = input.as_chunks::<16>();
    let (mut first, mut second) = blocks.iter().fold(seed, |state, block| mix(state, *block));
    let (low, high) = halves(padded(tail));
    first ^= scramble_low(low);
    second ^= scramble_high(high);
    let length = u64::try_from(input.len()).expect("a length fits 64 bits");
    first ^= length;
    second ^= length;
    first = first.wrapping_add(second);
    second = second.wrapping_add(first);
    first = finish64(first);
    second = finish64(second);
    first = first.wrapping_add(second);
    second = second.wrapping_add(first);
    (first, second)
}

fn mix((mut first, mut second): (u64, u64), block: [u8; 16]) -> (u64, u64) {
    let (low, high) = halves(block);
    first = (first ^ scramble_low(low)).rotate_left(27).wrapping_add(second);
    first = first.wrapping_mul(5).wrapping_add(0x52DC_E729);
    second = (second ^ scramble_high(high)).rotate_left(31).wrapping_add(first);
    second = second.wrapping_mul(5).wrapping_add(0x3849_5AB5);
    (first, second)
}

const LOW_FACTOR: u64 = 0x87C3_7B91_1142_53D5;
const HIGH_FACTOR: u64 = 0x4CF5_AD43_2745_937F;

fn scramble_low(word: u64) -> u64 {
    word.wrapping_mul(LOW_FACTOR).rotate_left(31).wrapping_mul(HIGH_FACTOR)
}

fn scramble_high(word: u64) -> u64 {
    word.wrapping_mul(HIGH_FACTOR).rotate_left(33).wrapping_mul(LOW_FACTOR)
}

fn finish64(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    hash ^ (hash >> 33)
}

/// The two little-endian words of a block.
fn halves(block: [u8; 16]) -> (u64, u64) {
    let (words, _) = block.as_chunks::<8>();
    match words {
        [low, high] => (u64::from_le_bytes(*low), u64::from_le_bytes(*high)),
        _ => unreachable!("16 bytes are two words"),
    }
}

fn padded<const N: usize>(tail: &[u8]) -> [u8; N] {
    let mut block = [0; N];
    for (slot, byte) in block.iter_mut().zip(tail) {
        *slot = *byte;
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the reference implementation's documentation and test suites,
    /// with tails of every length around a block.
    #[test]
    fn known_hashes() {
        assert_eq!(hash32(b""), 0);
        assert_eq!(hash32(b"test"), 0xBA6B_D213);
        assert_eq!(hash32(b"Hello, world!"), 0xC036_3E43);
        assert_eq!(hash32(b"The quick brown fox jumps over the lazy dog"), 0x2E4F_F723);
        assert_eq!(hash128(b""), 0);
        let fox = hash128(b"The quick brown fox jumps over the lazy dog");
        assert_eq!(fox, 0x7A43_3CA9_C49A_9347_E34B_BC7B_BC07_1B6C);
    }
}
