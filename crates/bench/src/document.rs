//! The documents that every mode writes, so that their figures belong together.
//!
//! One kilobyte of JSON, of which most is a text that barely compresses, and as many
//! indexed values as an ordinary item has. Document `n` is the same in each run, and its
//! version changes only what an update would change.

use std::fmt::Write as _;

use runtime::{Random as _, SeededRandom};

/// Bytes of text that make a document one kilobyte.
const TEXT_BYTES: usize = 850;

/// Documents that share a partition key.
pub(crate) const ITEMS_PER_KEY: u64 = 100;

const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";

/// Steps from one `s` to the next: they are spread over all documents, as hashes would be.
const STRIDE: u64 = 7_919;

/// The documents of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Documents {
    loaded: u64,
}

impl Documents {
    pub(crate) fn new(loaded: u64) -> Documents {
        Documents { loaded: loaded.max(1) }
    }

    /// How many there are before anything is measured.
    pub(crate) fn loaded(self) -> u64 {
        self.loaded
    }

    fn keys(self) -> u64 {
        self.loaded.div_ceil(ITEMS_PER_KEY)
    }

    /// The partition key. Neighbours have different ones.
    pub(crate) fn key(self, number: u64) -> String {
        format!("p{}", number % self.keys())
    }

    /// A value that exactly one of the loaded documents has.
    pub(crate) fn name(self, number: u64) -> String {
        let number =
            if number < self.loaded { number.wrapping_mul(STRIDE) % self.loaded } else { number };
        format!("str{number}")
    }

    /// Appends a document with its own key.
    pub(crate) fn write(self, number: u64, version: u64, out: &mut String) {
        self.write_keyed(&self.key(number), number, version, out);
    }

    /// Appends a document with another key.
    pub(crate) fn write_keyed(self, key: &str, number: u64, version: u64, out: &mut String) {
        let (group, open, name) = (number % 10, number.is_multiple_of(2), self.name(number));
        let (team, at) = (number / 64, 1_700_000_000 + number);
        // Writing to a string cannot fail.
        let _written = write!(
            out,
            r#"{{"id":"i{number}","pk":"{key}","n":{number},"g":{group},"s":"{name}","ok":{open},"v":{version},"team":"t{team}","at":{at},"price":{}.25,"tags":["new","c{group}"],"address":{{"city":"Ulm","zip":"{:05}"}},"text":""#,
            version * 100 + group,
            number % 100_000,
        );
        write_text(number ^ version << 40, out);
        out.push_str(r#""}"#);
    }

    pub(crate) fn text(self, number: u64, version: u64) -> String {
        let mut text = String::with_capacity(TEXT_BYTES + 512);
        self.write(number, version, &mut text);
        text
    }
}

/// Ten letters of each random number: the client must stay cheap.
fn write_text(seed: u64, out: &mut String) {
    let random = SeededRandom::new(seed);
    let mut left = TEXT_BYTES;
    while left > 0 {
        let mut bits = random.next_u64();
        for _ in 0..left.min(10) {
            out.push(char::from(LETTERS[usize::try_from(bits % 64).unwrap_or_default()]));
            bits >>= 6;
        }
        left -= left.min(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_a_kilobyte_and_a_name_of_its_own() {
        let documents = Documents::new(1_000);
        let text = documents.text(500, 3);
        assert!((950..1_100).contains(&text.len()), "{}", text.len());
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
        let mut names: Vec<_> = (0..1_000).map(|number| documents.name(number)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 1_000);
    }
}
