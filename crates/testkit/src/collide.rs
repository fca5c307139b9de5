//! Partition keys that collide, made to order.
//!
//! MurmurHash3 is no cryptographic hash: every step of it can be inverted. How a block of
//! input changes the state depends on the state before it and on nothing else, so from the
//! state before a block and the state wanted after it the block can be computed. Here a
//! block of letters comes first, and two blocks lead from there to the final state of the
//! victim's hash. Only that all bytes must be ASCII, as keys are text, is left to chance:
//! some 65,000 trials.

use model::partition_key::KeyComponent;

/// Bytes of the text: 15 after the type byte in the first block, then two blocks. The
/// terminator is alone in the tail.
const TEXT_BYTES: u64 = 47;
const INPUT_BYTES: u64 = 1 + TEXT_BYTES + 1;
const STRING: u8 = 0x08;
const STRING_END: u8 = 0xFF;

const LOW_FACTOR: u64 = 0x87C3_7B91_1142_53D5;
const HIGH_FACTOR: u64 = 0x4CF5_AD43_2745_937F;
const LOW_ADDEND: u64 = 0x52DC_E729;
const HIGH_ADDEND: u64 = 0x3849_5AB5;
const FINISH: [u64; 2] = [0xFF51_AFD7_ED55_8CCD, 0xC4CE_B9FE_1A85_EC53];

/// Of each byte of a word the bit that ASCII does not have.
const NOT_ASCII: u64 = 0x8080_8080_8080_8080;

/// A string key with the version 2 hash of another key, which may be of any type.
/// Other seeds give other strings.
#[must_use]
pub fn string_like(victim: &KeyComponent, seed: u32) -> String {
    let wanted = state_before_end(hash(&input_of(victim)));
    let mut block = [0; 16];
    block[0] = STRING;
    block[1..].copy_from_slice(format!("{seed:0>15}").as_bytes());
    let before = mix((0, 0), words(block));
    let end_high = u64::from_le_bytes(*b"collided");
    let high = undo_high(wanted, scramble_high(end_high));
    for trial in 0.. {
        let first_low = letters(trial);
        let low = mix_low(before, scramble_low(first_low));
        let first_high = unscramble_high(required_high((low, high), before.1));
        let end_low = unscramble_low(required_low(wanted.0, (low, high)));
        if (first_high | end_low) & NOT_ASCII == 0 {
            let mut text = block[1..].to_vec();
            for word in [first_low, first_high, end_low, end_high] {
                text.extend(word.to_le_bytes());
            }
            return String::from_utf8(text).expect("ASCII");
        }
    }
    unreachable!("there are 2^56 trials")
}

/// Eight letters for each number.
fn letters(number: u64) -> u64 {
    (0..8).fold(0, |word, at| word << 8 | (0x40 | (number >> (5 * at) & 0x1F)))
}

/// The state before finalisation, for the input that is made here. The two bits of a hash
/// that positions leave out may be anything.
fn state_before_end(hash: u128) -> (u64, u64) {
    let (low, high) = words(hash.to_le_bytes());
    let second = high.wrapping_sub(low);
    let first = low.wrapping_sub(second);
    let (first, second) = (unfinish(first), unfinish(second));
    let second = second.wrapping_sub(first);
    let first = first.wrapping_sub(second);
    let tail = scramble_low(u64::from(STRING_END));
    (first ^ INPUT_BYTES ^ tail, second ^ INPUT_BYTES)
}

fn mix(before: (u64, u64), (low, high): (u64, u64)) -> (u64, u64) {
    let first = mix_low(before, scramble_low(low));
    let second = (before.1 ^ scramble_high(high)).rotate_left(31).wrapping_add(first);
    (first, second.wrapping_mul(5).wrapping_add(HIGH_ADDEND))
}

fn mix_low(before: (u64, u64), scrambled: u64) -> u64 {
    let mixed = (before.0 ^ scrambled).rotate_left(27).wrapping_add(before.1);
    mixed.wrapping_mul(5).wrapping_add(LOW_ADDEND)
}

/// What the low word of a block must be scrambled to, to lead from a state to `wanted`.
fn required_low(wanted: u64, before: (u64, u64)) -> u64 {
    let mixed = wanted.wrapping_sub(LOW_ADDEND).wrapping_mul(inverse(5));
    mixed.wrapping_sub(before.1).rotate_right(27) ^ before.0
}

/// The same for the high word, where `before` is the high half of the state.
fn required_high(wanted: (u64, u64), before: u64) -> u64 {
    undo_high(wanted, 0) ^ before
}

/// The high half of the state before a block whose high word is scrambled to this.
fn undo_high(after: (u64, u64), scrambled: u64) -> u64 {
    let mixed = after.1.wrapping_sub(HIGH_ADDEND).wrapping_mul(inverse(5));
    mixed.wrapping_sub(after.0).rotate_right(31) ^ scrambled
}

fn scramble_low(word: u64) -> u64 {
    word.wrapping_mul(LOW_FACTOR).rotate_left(31).wrapping_mul(HIGH_FACTOR)
}

fn unscramble_low(word: u64) -> u64 {
    word.wrapping_mul(inverse(HIGH_FACTOR)).rotate_right(31).wrapping_mul(inverse(LOW_FACTOR))
}

fn scramble_high(word: u64) -> u64 {
    word.wrapping_mul(HIGH_FACTOR).rotate_left(33).wrapping_mul(LOW_FACTOR)
}

fn unscramble_high(word: u64) -> u64 {
    word.wrapping_mul(inverse(LOW_FACTOR)).rotate_right(33).wrapping_mul(inverse(HIGH_FACTOR))
}

fn finish(mut word: u64) -> u64 {
    word ^= word >> 33;
    for factor in FINISH {
        word = word.wrapping_mul(factor);
        word ^= word >> 33;
    }
    word
}

fn unfinish(mut word: u64) -> u64 {
    // A shift by more than half undoes itself.
    word ^= word >> 33;
    for factor in FINISH.into_iter().rev() {
        word = word.wrapping_mul(inverse(factor));
        word ^= word >> 33;
    }
    word
}

/// The multiplicative inverse of an odd number, by Newton's method.
const fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut round = 0;
    while round < 6 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        round += 1;
    }
    inverse
}

fn input_of(key: &KeyComponent) -> Vec<u8> {
    match key {
        KeyComponent::Undefined => vec![0x00],
        KeyComponent::Null => vec![0x01],
        KeyComponent::Bool(truth) => vec![0x02 + u8::from(*truth)],
        KeyComponent::Number(number) => [&[0x05], number.to_le_bytes().as_slice()].concat(),
        KeyComponent::String(text) => [&[STRING], text.as_bytes(), &[STRING_END]].concat(),
    }
}

fn hash(input: &[u8]) -> u128 {
    let (blocks, tail) = input.as_chunks::<16>();
    let (mut first, mut second) =
        blocks.iter().fold((0, 0), |state, block| mix(state, words(*block)));
    let mut padded = [0; 16];
    padded[..tail.len()].copy_from_slice(tail);
    let (low, high) = words(padded);
    let length = input.len() as u64;
    first ^= scramble_low(low) ^ length;
    second ^= scramble_high(high) ^ length;
    first = first.wrapping_add(second);
    second = second.wrapping_add(first);
    (first, second) = (finish(first), finish(second));
    first = first.wrapping_add(second);
    second = second.wrapping_add(first);
    u128::from(second) << 64 | u128::from(first)
}

fn words(block: [u8; 16]) -> (u64, u64) {
    let (words, _) = block.as_chunks::<8>();
    (u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_have_the_hash_that_was_asked_for() {
        let victims = [
            KeyComponent::from("ada"),
            KeyComponent::from("a name that is longer than one block of the hash"),
            KeyComponent::from(42.0),
            KeyComponent::Undefined,
            KeyComponent::Null,
            KeyComponent::Bool(true),
        ];
        for victim in victims {
            let mut made: Vec<String> = (0..4).map(|seed| string_like(&victim, seed)).collect();
            for text in &made {
                let own = KeyComponent::from(text.as_str());
                assert_eq!(hash(&input_of(&own)), hash(&input_of(&victim)), "{victim:?}");
                assert_ne!(own, victim);
            }
            made.sort();
            made.dedup();
            assert_eq!(made.len(), 4);
        }
    }
}
