//! A bounded cursor, the only code that touches the bytes of a body.

use super::{BinaryJsonError, Result};

/// A part of a body, read from its beginning.
///
/// Offsets are those of the whole body, which stays accessible: string references count
/// from its first byte.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    body: &'a [u8],
    at: usize,
    end: usize,
}

/// How many bytes a length, count or reference takes; the lowest comes first.
#[derive(Clone, Copy)]
pub(super) enum Width {
    One,
    Two,
    Three,
    Four,
}

impl<'a> Reader<'a> {
    pub(super) fn new(body: &'a [u8]) -> Reader<'a> {
        Reader { body, at: 0, end: body.len() }
    }

    /// The bytes of the same body from `at` up to `end`.
    pub(super) fn between(&self, at: usize, end: usize) -> Reader<'a> {
        Reader { body: self.body, at, end }
    }

    pub(super) fn offset(&self) -> usize {
        self.at
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let truncated = BinaryJsonError::Truncated { offset: self.at };
        let end = self.at.checked_add(count).filter(|end| *end <= self.end).ok_or(truncated)?;
        let bytes = self.body.get(self.at..end).ok_or(truncated)?;
        self.at = end;
        Ok(bytes)
    }

    /// Takes the next bytes as a reader of their own, which cannot leave them.
    pub(super) fn part(&mut self, count: usize) -> Result<Reader<'a>> {
        let at = self.at;
        self.bytes(count)?;
        Ok(self.between(at, self.at))
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.bytes(N)?;
        Ok(*bytes.first_chunk().expect("as many bytes as were asked for"))
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    /// An unsigned number of the given width.
    pub(super) fn size(&mut self, width: Width) -> Result<usize> {
        let size = match width {
            Width::One => u32::from(self.byte()?),
            Width::Two => u32::from(u16::from_le_bytes(self.array()?)),
            Width::Three => {
                let [low, middle, high] = self.array()?;
                u32::from_le_bytes([low, middle, high, 0])
            }
            Width::Four => u32::from_le_bytes(self.array()?),
        };
        // Too large for this machine is larger than any body on it.
        Ok(usize::try_from(size).unwrap_or(usize::MAX))
    }
}
