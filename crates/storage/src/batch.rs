//! Writes that become durable together or not at all.

use bytes::Bytes;

/// Longest key. The engine stores key lengths in 16 bits.
pub const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// Longest value. Far above any document (2 MB), far below the engine's 32-bit
/// length, so that one batch can neither stall the queue nor overflow a length.
pub const VALUE_BYTES_MAX: usize = 64 << 20;

/// Keys that begin with this byte belong to the store itself: they can neither
/// be written nor seen through the door.
pub const RESERVED_PREFIX: u8 = 0xFF;

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    Put { key: Bytes, value: Bytes },
    Delete { key: Bytes },
}

impl Write {
    #[must_use]
    pub fn key(&self) -> &Bytes {
        match self {
            Write::Put { key, .. } | Write::Delete { key } => key,
        }
    }

    /// The value to be stored, or `None` for a delete.
    #[must_use]
    pub fn value(&self) -> Option<&Bytes> {
        match self {
            Write::Put { value, .. } => Some(value),
            Write::Delete { .. } => None,
        }
    }
}

/// Ordered writes: a later write of a key replaces an earlier one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteBatch {
    writes: Vec<Write>,
    bytes: usize,
    relief: bool,
}

impl WriteBatch {
    #[must_use]
    pub fn new() -> WriteBatch {
        WriteBatch::default()
    }

    /// Marks writes that lead to space being given back, such as the drop of a container.
    /// On a full disk they may use space that is reserved for them, so they have to be few.
    #[must_use]
    pub fn for_relief(self, relief: bool) -> WriteBatch {
        WriteBatch { relief, ..self }
    }

    #[must_use]
    pub fn is_relief(&self) -> bool {
        self.relief
    }

    pub fn put(&mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.push(Write::Put { key: key.into(), value: value.into() });
    }

    pub fn delete(&mut self, key: impl Into<Bytes>) {
        self.push(Write::Delete { key: key.into() });
    }

    /// Number of writes, counting a key as often as it was written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Bytes of all keys and values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn iter(&self) -> impl Iterator<Item = &Write> {
        self.writes.iter()
    }

    pub(crate) fn into_writes(self) -> Vec<Write> {
        self.writes
    }

    fn push(&mut self, write: Write) {
        self.bytes += write.key().len() + write.value().map_or(0, Bytes::len);
        self.writes.push(write);
    }

    /// The first write that no backend can take, if there is one.
    pub(crate) fn invalid_write(&self) -> Option<InvalidWrite> {
        self.writes.iter().find_map(InvalidWrite::of)
    }
}

/// Why a write is invalid. A bug in the caller, so it is refused and logged rather than
/// returned as a value to branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidWrite {
    #[error("empty key")]
    EmptyKey,
    #[error("key of {len} bytes, at most {KEY_BYTES_MAX} fit")]
    KeyTooLong { len: usize },
    #[error("value of {len} bytes, at most {VALUE_BYTES_MAX} fit")]
    ValueTooLong { len: usize },
    #[error("key begins with the reserved byte 0xFF")]
    ReservedKey,
}

impl InvalidWrite {
    fn of(write: &Write) -> Option<InvalidWrite> {
        let (key, value_len) = (write.key(), write.value().map_or(0, Bytes::len));
        match key.first() {
            None => Some(InvalidWrite::EmptyKey),
            Some(&RESERVED_PREFIX) => Some(InvalidWrite::ReservedKey),
            Some(_) if key.len() > KEY_BYTES_MAX => {
                Some(InvalidWrite::KeyTooLong { len: key.len() })
            }
            Some(_) if value_len > VALUE_BYTES_MAX => {
                Some(InvalidWrite::ValueTooLong { len: value_len })
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_counts_keys_and_values() {
        let mut batch = WriteBatch::new();
        assert!(batch.is_empty());
        batch.put("key", "value");
        batch.delete("key");
        assert_eq!((batch.len(), batch.bytes()), (2, 11));
    }

    #[test]
    fn writes_that_no_backend_can_take_are_named() {
        let invalid_write = |key: &[u8], value: usize| {
            let mut batch = WriteBatch::new();
            batch.put("fine", "");
            batch.put(Bytes::copy_from_slice(key), vec![0; value]);
            batch.invalid_write()
        };
        assert_eq!(invalid_write(b"", 0), Some(InvalidWrite::EmptyKey));
        assert_eq!(invalid_write(b"\xFF", 0), Some(InvalidWrite::ReservedKey));
        assert_eq!(invalid_write(b"\xFE\xFF", 0), None);
        assert_eq!(invalid_write(&vec![1; KEY_BYTES_MAX], 0), None);
        let len = KEY_BYTES_MAX + 1;
        assert_eq!(invalid_write(&vec![1; len], 0), Some(InvalidWrite::KeyTooLong { len }));
        let len = VALUE_BYTES_MAX + 1;
        assert_eq!(invalid_write(b"k", len), Some(InvalidWrite::ValueTooLong { len }));
    }
}
