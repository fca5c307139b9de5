//! The commit record: one reserved key that every engine batch writes.
//!
//! Its number names the state of the store. It is what the commit watermark records,
//! and what makes a hole in the journal visible.

use bytes::Bytes;

use super::decode::Reader;

pub(super) const KEY: &[u8] = b"\xFFcommit";

const VERSION: u8 = 1;

pub(super) fn encode(commit: u64) -> Bytes {
    let mut value = vec![VERSION];
    value.extend_from_slice(&commit.to_be_bytes());
    value.extend_from_slice(&crc32fast::hash(&value).to_be_bytes());
    value.into()
}

pub(super) fn decode(value: &[u8]) -> Option<u64> {
    let (body, crc) = value.split_last_chunk::<4>()?;
    let intact = crc32fast::hash(body) == u32::from_be_bytes(*crc);
    let mut reader = Reader::new(body);
    reader.expect(&[VERSION])?;
    let commit = reader.array().map(u64::from_be_bytes)?;
    (intact && reader.remaining() == 0).then_some(commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_decodes_and_nothing_else_does() {
        let good = encode(77).to_vec();
        assert_eq!(decode(&good), Some(77));
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&bad), None, "bit {bit}");
        }
        assert_eq!(decode(&good[1..]), None);
    }
}
