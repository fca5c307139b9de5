//! A cursor over untrusted bytes.

use crate::codec::error::FrameError;

/// The bytes that are left, and their offset in the head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], offset: usize) -> Reader<'a> {
        Reader { rest: bytes, offset }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], FrameError> {
        let truncated = FrameError::Truncated { offset: self.offset };
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(truncated)?;
        self.rest = rest;
        self.offset += count;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let truncated = FrameError::Truncated { offset: self.offset };
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(truncated)?;
        self.rest = rest;
        self.offset += N;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, FrameError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, FrameError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, FrameError> {
        Ok(u32::from_le_bytes(self.array()?))
    }
}
