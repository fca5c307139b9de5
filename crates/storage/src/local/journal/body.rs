//! The writes of one commit as bytes.
//!
//! Keys come in order, and most begin as the one before: only the rest is written. What is
//! left compresses well, since the documents of a group of commits resemble each other.

use bytes::Bytes;

use super::super::decode::Reader;
use crate::committer::MergedBatch;

/// Below this there is hardly anything to gain.
const COMPRESSED_BYTES_MIN: usize = 256;

/// The length that stands for a delete; a value of `n` bytes has `n + 1`.
const DELETED: u64 = 0;

pub(super) fn encode(writes: &MergedBatch, bytes: &mut Vec<u8>) {
    bytes.clear();
    let mut before: &[u8] = &[];
    for (key, value) in writes {
        let shared = before.iter().zip(key.iter()).take_while(|(one, other)| one == other).count();
        let rest = key.get(shared..).unwrap_or_default();
        put_number(bytes, shared as u64);
        put_number(bytes, rest.len() as u64);
        put_number(bytes, value.as_ref().map_or(DELETED, |value| value.len() as u64 + 1));
        bytes.extend_from_slice(rest);
        bytes.extend_from_slice(value.as_deref().unwrap_or_default());
        before = key;
    }
}

/// Appends the body to `record`, compressed if that makes it shorter. Returns whether it was.
pub(super) fn compress(body: &[u8], record: &mut Vec<u8>) -> bool {
    let start = record.len();
    if body.len() >= COMPRESSED_BYTES_MIN {
        record.resize(start + lz4_flex::block::get_maximum_output_size(body.len()), 0);
        let space = record.get_mut(start..).unwrap_or_default();
        match lz4_flex::block::compress_into(body, space) {
            Ok(len) if len < body.len() => {
                record.truncate(start + len);
                return true;
            }
            Ok(_) | Err(_) => record.truncate(start),
        }
    }
    record.extend_from_slice(body);
    false
}

/// Reads what was stored; `plain` is its length before it was compressed, or 0. The bytes
/// have passed their checksum, so `None` means that another version wrote them.
pub(super) fn decode(plain: u32, stored: &[u8]) -> Option<MergedBatch> {
    if plain == 0 {
        return decode_plain(stored);
    }
    let body = lz4_flex::block::decompress(stored, usize::try_from(plain).ok()?).ok()?;
    decode_plain(&body)
}

fn decode_plain(bytes: &[u8]) -> Option<MergedBatch> {
    let (mut reader, mut writes) = (Reader::new(bytes), MergedBatch::new());
    let mut key = Vec::new();
    while reader.remaining() > 0 {
        let (shared, rest) = (number(&mut reader)?, number(&mut reader)?);
        let len = number(&mut reader)?;
        key.truncate(usize::try_from(shared).ok().filter(|shared| *shared <= key.len())?);
        key.extend_from_slice(reader.take(usize::try_from(rest).ok()?)?);
        let value = match len.checked_sub(1) {
            None => None,
            Some(len) => Some(Bytes::copy_from_slice(reader.take(usize::try_from(len).ok()?)?)),
        };
        writes.insert(Bytes::copy_from_slice(&key), value);
    }
    Some(writes)
}

/// Seven bits in each byte, the lowest first; all but the last have the eighth bit set.
fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(0x80 | (number & 0x7F) as u8);
        number >>= 7;
    }
    bytes.push((number & 0x7F) as u8);
}

fn number(reader: &mut Reader<'_>) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = reader.u8()?;
        number |= u64::from(byte & 0x7F).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn there_and_back(writes: &MergedBatch) -> MergedBatch {
        let (mut body, mut stored) = (Vec::new(), Vec::new());
        encode(writes, &mut body);
        let compressed = compress(&body, &mut stored);
        let plain = if compressed { u32::try_from(body.len()).unwrap() } else { 0 };
        decode(plain, &stored).unwrap()
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes(
            writes in prop::collection::btree_map(
                prop::collection::vec(0_u8..4, 0..40),
                prop::option::of(prop::collection::vec(any::<u8>(), 0..300)),
                0..60,
            )
        ) {
            let bytes = |bytes: Vec<u8>| Bytes::from(bytes);
            let writes: MergedBatch =
                writes.into_iter().map(|(key, value)| (bytes(key), value.map(bytes))).collect();
            prop_assert_eq!(there_and_back(&writes), writes);
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            plain in 0_u32..4_000,
        ) {
            let _writes = decode(plain, &bytes);
        }
    }

    #[test]
    fn keys_of_one_index_take_little() {
        let key = |number: u64| Bytes::from(format!("container bucket path {number:08}"));
        let writes: MergedBatch =
            (0..100).map(|number| (key(number), Some(Bytes::new()))).collect();
        let mut body = Vec::new();
        encode(&writes, &mut body);
        assert!(body.len() < 100 * 6, "{} bytes for 100 keys", body.len());
    }
}
