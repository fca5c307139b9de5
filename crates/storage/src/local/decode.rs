//! Reading fields from bytes that may be damaged.

/// A cursor over untrusted bytes. Every read either fits or fails; nothing here can panic
/// or allocate more than is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// What was read since `earlier`, an older copy of this reader.
    pub(crate) fn since(&self, earlier: Reader<'a>) -> &'a [u8] {
        let len = earlier.bytes.len().saturating_sub(self.bytes.len());
        earlier.bytes.get(..len).unwrap_or_default()
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn u128(&mut self) -> Option<u128> {
        self.array().map(u128::from_le_bytes)
    }

    /// Text with a 16-bit length prefix.
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let len = self.u16()?;
        str::from_utf8(self.take(usize::from(len))?).ok()
    }

    /// Consumes exactly these bytes.
    pub(crate) fn expect(&mut self, expected: &[u8]) -> Option<()> {
        (self.take(expected.len())? == expected).then_some(())
    }
}
