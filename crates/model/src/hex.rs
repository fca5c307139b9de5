//! Bytes as hexadecimal digits.

use std::fmt;

/// Shows bytes in capital digits, as clients spell effective partition keys.
#[derive(Clone, Copy, Debug)]
pub struct Upper<'a>(pub &'a [u8]);

/// Shows bytes in small digits.
#[derive(Clone, Copy, Debug)]
pub struct Lower<'a>(pub &'a [u8]);

impl fmt::Display for Upper<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl fmt::Display for Lower<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Reads digits of either case; `None` if there is anything else, or half a byte.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let (pairs, half) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok();
    pairs.iter().map(byte).collect::<Option<Vec<u8>>>().filter(|_| half.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_and_nothing_else_is() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&Upper(&all).to_string()), Some(all.clone()));
        assert_eq!(decode(&Lower(&all).to_string()), Some(all));
        assert_eq!((decode(""), decode("0aF")), (Some(Vec::new()), None));
        for broken in ["+1", "0x", " 1", "g0", "ä"] {
            assert_eq!(decode(broken), None, "{broken}");
        }
    }
}
