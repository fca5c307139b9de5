//! Taking bytes apart without trusting a length.

use std::fmt;

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

/// Why a folder cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage(pub(crate) String);

pub(crate) type Result<T> = std::result::Result<T, Damage>;

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(crate) fn damage<T>(what: impl Into<String>) -> Result<T> {
    Err(Damage(what.into()))
}

/// What makes a claim about bytes an error when it does not hold.
pub(crate) fn require(holds: bool, what: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Damage(what())) }
}

/// Checksum as tables, lists and archives have it.
pub(crate) fn check_128(bytes: &[u8], expected: u128, what: &str) -> Result<()> {
    require(xxh3_128(bytes) == expected, || format!("{what} fails its checksum"))
}

pub(crate) fn hash_64(bytes: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(bytes, seed)
}

/// Bytes that are read from the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    /// What they are, for errors.
    what: &'a str,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(what: &'a str, bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes, what }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            return damage(format!("{} ends early", self.what));
        };
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| Damage(format!("{} ends early", self.what)))
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn u128(&mut self) -> Result<u128> {
        self.array().map(u128::from_le_bytes)
    }

    /// Keys have their numbers so.
    pub(crate) fn u32_be(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64_be(&mut self) -> Result<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Seven bits in a byte, the lowest first.
    pub(crate) fn varint(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        damage(format!("{} has a number without an end", self.what))
    }

    /// A length, and as many bytes.
    pub(crate) fn counted(&mut self) -> Result<&'a [u8]> {
        let len = self.varint()?;
        self.take(size(len)?)
    }

    pub(crate) fn expect(&mut self, bytes: &[u8]) -> Result<()> {
        let found = self.take(bytes.len())?;
        require(found == bytes, || format!("{}: {found:02x?} instead of {bytes:02x?}", self.what))
    }

    pub(crate) fn end(&self) -> Result<()> {
        require(self.rest.is_empty(), || format!("{} goes on too long", self.what))
    }
}

pub(crate) fn size(number: impl TryInto<usize>) -> Result<usize> {
    number.try_into().map_err(|_| Damage("a length that no file has".to_owned()))
}

/// Part of a file, by position and length.
pub(crate) fn part<'a>(what: &str, bytes: &'a [u8], at: u64, len: u64) -> Result<&'a [u8]> {
    let (start, len) = (size(at)?, size(len)?);
    let found = start.checked_add(len).and_then(|end| bytes.get(start..end));
    found.ok_or_else(|| Damage(format!("{what} is said to be outside its file")))
}
