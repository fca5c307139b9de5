//! A cursor over untrusted bytes.

use crate::Result;
use crate::error::HybridRowError;

/// Seven bits a byte: ten bytes hold 64 bits.
const VARUINT_BYTES_MAX: u32 = 10;

/// The bytes that are left, and their offset from the beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes, offset: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let truncated = HybridRowError::Truncated { offset: self.offset };
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(truncated)?;
        self.rest = rest;
        self.offset += count;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let truncated = HybridRowError::Truncated { offset: self.offset };
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(truncated)?;
        self.rest = rest;
        self.offset += N;
        Ok(*taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    pub(crate) fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    /// Low bits first; the high bit of a byte says that more follow.
    pub(crate) fn varuint(&mut self) -> Result<u64> {
        let too_long = HybridRowError::Varint { offset: self.offset };
        let mut value = 0_u64;
        for at in 0..VARUINT_BYTES_MAX {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            let shifted = bits << (7 * at);
            if shifted >> (7 * at) != bits {
                return Err(too_long);
            }
            value |= shifted;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(too_long)
    }

    /// Length-prefixed bytes.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let offset = self.offset;
        let length = self.varuint()?;
        let length = usize::try_from(length).map_err(|_| HybridRowError::Truncated { offset })?;
        self.take(length)
    }

    /// `length` bytes, which must be UTF-8.
    pub(crate) fn text(&mut self, length: usize) -> Result<&'a str> {
        let offset = self.offset;
        let bytes = self.take(length)?;
        std::str::from_utf8(bytes).map_err(|_| HybridRowError::Encoding { offset })
    }
}

pub(crate) fn write_varuint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = value.to_le_bytes()[0] & 0x7F;
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}
