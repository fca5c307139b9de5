//! MurmurHash3, as published: partition keys and distinct hashes are made with it.

/// x64 128, whose two words begin as `h1` and `h2`.
pub(crate) fn x64_128(input: &[u8], (mut h1, mut h2): (u64, u64)) -> (u64, u64) {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let mix_1 = |k: u64| k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let mix_2 = |k: u64| k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let (blocks, tail) = input.as_chunks::<16>();
    for block in blocks {
        let (low, high) = halves(u128::from_le_bytes(*block));
        h1 = (h1 ^ mix_1(low)).rotate_left(27).wrapping_add(h2);
        h1 = h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 = (h2 ^ mix_2(high)).rotate_left(31).wrapping_add(h1);
        h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let mut last = [0; 16];
    last.iter_mut().zip(tail).for_each(|(to, from)| *to = *from);
    let (low, high) = halves(u128::from_le_bytes(last));
    h2 ^= mix_2(high);
    h1 ^= mix_1(low);
    let len = input.len() as u64;
    (h1, h2) = (h1 ^ len, h2 ^ len);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2) = (finish_64(h1), finish_64(h2));
    h1 = h1.wrapping_add(h2);
    (h1, h2.wrapping_add(h1))
}

/// The low half of a number, and the high one.
pub(crate) fn halves(both: u128) -> (u64, u64) {
    let mask = u128::from(u64::MAX);
    let half = |part: u128| u64::try_from(part & mask).unwrap_or(0);
    (half(both), half(both >> 64))
}

fn finish_64(mut h: u64) -> u64 {
    h = (h ^ h >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ h >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ h >> 33
}

/// x86 32 with seed 0.
pub(crate) fn x86_32(input: &[u8]) -> u32 {
    let mix = |k: u32| k.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let (blocks, tail) = input.as_chunks::<4>();
    let mut h = blocks.iter().fold(0_u32, |h, block| {
        let h = (h ^ mix(u32::from_le_bytes(*block))).rotate_left(13);
        h.wrapping_mul(5).wrapping_add(0xe654_6b64)
    });
    let mut last = [0; 4];
    last.iter_mut().zip(tail).for_each(|(to, from)| *to = *from);
    h ^= mix(u32::from_le_bytes(last));
    h ^= u32::try_from(input.len()).unwrap_or(0);
    h = (h ^ h >> 16).wrapping_mul(0x85eb_ca6b);
    h = (h ^ h >> 13).wrapping_mul(0xc2b2_ae35);
    h ^ h >> 16
}
