//! Makes new inputs out of old ones, the same ones from the same seed.

use runtime::{Random, SeededRandom};

/// Longer inputs find little more and take longer.
const INPUT_BYTES_MAX: usize = 64 * 1024;
/// Changes made to one input at most: few, or nothing of its shape is left.
const CHANGES_MAX: usize = 6;
/// Bytes inserted or repeated at once at most.
const RUN_BYTES_MAX: usize = 32;

/// Bytes that are special to one of our formats: ends of ranges, signs that open and close,
/// escapes, separators, digits.
const TELLING_BYTES: &[u8] = b"\x00\x01\x7f\x80\xfe\xff\"'\\{}[]():,;./*-+eE019@$_ \n";

/// An endless, repeatable supply of inputs near those of a corpus.
#[derive(Debug)]
pub struct Mutator {
    corpus: Vec<Vec<u8>>,
    random: SeededRandom,
}

impl Mutator {
    /// The same corpus in the same order and the same seed give the same inputs.
    #[must_use]
    pub fn new(mut corpus: Vec<Vec<u8>>, seed: u64) -> Mutator {
        if corpus.is_empty() {
            corpus.push(Vec::new());
        }
        Mutator { corpus, random: SeededRandom::new(seed) }
    }

    /// The corpus itself.
    #[must_use]
    pub fn corpus(&self) -> &[Vec<u8>] {
        &self.corpus
    }

    /// The next input: one of the corpus with a few changes.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.pick().to_vec();
        for _ in 0..=self.below(CHANGES_MAX) {
            self.change(&mut input);
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    }

    fn change(&self, input: &mut Vec<u8>) {
        match self.below(7) {
            0 => self.flip_bit(input),
            1 => self.replace_byte(input),
            2 => self.insert_bytes(input),
            3 => self.delete_range(input),
            4 => self.repeat_range(input),
            5 => self.splice(input),
            _ => input.truncate(self.below(input.len() + 1)),
        }
    }

    fn flip_bit(&self, input: &mut [u8]) {
        let (at, bit) = (self.below(input.len()), self.below(8));
        if let Some(byte) = input.get_mut(at) {
            *byte ^= 1 << bit;
        }
    }

    fn replace_byte(&self, input: &mut [u8]) {
        let (at, new) = (self.below(input.len()), self.byte());
        if let Some(byte) = input.get_mut(at) {
            *byte = new;
        }
    }

    fn insert_bytes(&self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let count = 1 + self.below(RUN_BYTES_MAX);
        let bytes: Vec<u8> = (0..count).map(|_| self.byte()).collect();
        input.splice(at..at, bytes);
    }

    fn delete_range(&self, input: &mut Vec<u8>) {
        let (start, end) = self.range(input.len());
        input.drain(start..end);
    }

    fn repeat_range(&self, input: &mut Vec<u8>) {
        let (start, end) = self.range(input.len());
        let repeated: Vec<u8> = input.drain(start..end).collect();
        let copies = repeated.repeat(2 + self.below(RUN_BYTES_MAX));
        input.splice(start..start, copies.into_iter().take(INPUT_BYTES_MAX));
    }

    /// The head of this input and the tail of another.
    fn splice(&self, input: &mut Vec<u8>) {
        let other = self.pick();
        let (head, tail) = (self.below(input.len() + 1), self.below(other.len() + 1));
        input.truncate(head);
        input.extend(other.iter().skip(tail));
    }

    fn pick(&self) -> &[u8] {
        self.corpus.get(self.below(self.corpus.len())).map_or(&[], Vec::as_slice)
    }

    fn byte(&self) -> u8 {
        let telling = TELLING_BYTES.get(self.below(TELLING_BYTES.len() * 2)).copied();
        telling.unwrap_or_else(|| self.random.next_u64().to_le_bytes()[0])
    }

    /// Start and end of a part of `len` bytes.
    fn range(&self, len: usize) -> (usize, usize) {
        let (a, b) = (self.below(len + 1), self.below(len + 1));
        (a.min(b), a.max(b))
    }

    /// A number below `bound`; 0 if there is none. The bias of the remainder does
    /// not matter here.
    fn below(&self, bound: usize) -> usize {
        let bound = bound.max(1) as u64;
        usize::try_from(self.random.next_u64() % bound).expect("it is below a usize")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(seed: u64) -> Vec<Vec<u8>> {
        let mut mutator = Mutator::new(vec![b"{\"a\":[1,2]}".to_vec(), b"null".to_vec()], seed);
        (0..500).map(|_| mutator.next_input()).collect()
    }

    #[test]
    fn a_seed_fixes_the_inputs() {
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
    }

    #[test]
    fn inputs_differ_and_stay_bounded() {
        let mut made = inputs(7);
        assert!(made.iter().all(|input| input.len() <= INPUT_BYTES_MAX));
        made.sort();
        made.dedup();
        assert!(made.len() > 400, "only {} of 500 differ", made.len());
    }

    #[test]
    fn an_empty_corpus_still_gives_inputs() {
        let mut mutator = Mutator::new(Vec::new(), 1);
        assert!((0..100).any(|_| !mutator.next_input().is_empty()));
    }
}
