//! GUIDs in Microsoft's order of bytes.

use std::fmt;

/// A GUID as it is in a frame: its first three fields are little-endian, the rest is in the order
/// in which it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guid(pub [u8; 16]);

/// Where each byte of the text is in the frame. A hyphen precedes those in [`HYPHENS`].
const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
const HYPHENS: [usize; 4] = [4, 6, 8, 10];

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, from) in ORDER.iter().enumerate() {
            if HYPHENS.contains(&at) {
                f.write_str("-")?;
            }
            let byte = self.0.get(*from).copied().unwrap_or_default();
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_three_fields_are_turned_round() {
        let bytes = [
            [0xCC, 0x22, 0x33, 0x8F, 0x86, 0x17, 0xB4, 0x4D],
            [0x9B, 0x97, 0xB2, 0x29, 0xC2, 0xC6, 0xF0, 0xAA],
        ];
        let guid = Guid(bytes.concat().try_into().unwrap());
        assert_eq!(guid.to_string(), "8f3322cc-1786-4db4-9b97-b229c2c6f0aa");
    }
}
