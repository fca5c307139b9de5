//! Key ranges and the chunks that a scan is cut into.

use bytes::Bytes;

use crate::{RESERVED_PREFIX, StorageError, VerifyReport, View};

/// Keys from `start` up to, not including, `end`; without `end`, all the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub start: Bytes,
    pub end: Option<Bytes>,
}

impl KeyRange {
    #[must_use]
    pub fn new(start: impl Into<Bytes>, end: impl Into<Bytes>) -> KeyRange {
        KeyRange { start: start.into(), end: Some(end.into()) }
    }

    #[must_use]
    pub fn all() -> KeyRange {
        KeyRange { start: Bytes::new(), end: None }
    }

    /// All keys that begin with `prefix`.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> KeyRange {
        KeyRange { start: Bytes::copy_from_slice(prefix), end: after_prefix(prefix) }
    }

    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.start.as_ref() && self.end.as_ref().is_none_or(|end| key < end.as_ref())
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    /// What is left after `last` was returned.
    fn after(&self, last: &Bytes, direction: Direction) -> KeyRange {
        match direction {
            Direction::Forward => KeyRange { start: successor(last), end: self.end.clone() },
            Direction::Backward => KeyRange { start: self.start.clone(), end: Some(last.clone()) },
        }
    }

    /// The range without the keys that belong to the store itself, which sort after all
    /// others; `None` when no key can be in it.
    pub(crate) fn visible(&self) -> Option<(&[u8], &[u8])> {
        const RESERVED: &[u8] = &[RESERVED_PREFIX];
        let end = self.end.as_deref().map_or(RESERVED, |end| end.min(RESERVED));
        (*self.start < *end).then_some((&*self.start, end))
    }
}

/// The first key after all keys that begin with `prefix`, if there is one.
fn after_prefix(prefix: &[u8]) -> Option<Bytes> {
    let (last, rest) = prefix.split_last()?;
    match last.checked_add(1) {
        Some(next) => Some(extended(rest, next)),
        None => after_prefix(rest),
    }
}

/// The smallest key greater than `key`.
fn successor(key: &[u8]) -> Bytes {
    extended(key, 0)
}

/// A key with a byte at its end, in one allocation.
fn extended(key: &[u8], byte: u8) -> Bytes {
    let mut longer = Vec::with_capacity(key.len() + 1);
    longer.extend_from_slice(key);
    longer.push(byte);
    longer.into()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}

/// Where a chunk ends. Whichever is reached first counts; the row that crosses
/// the byte limit is still part of the chunk, so a chunk has at least one row
/// when the range does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanLimit {
    pub rows: usize,
    pub bytes: usize,
}

/// Rows that a chunk has room for at first. Most chunks have few.
const ROWS_AT_ONCE: usize = 16;

impl ScanLimit {
    /// Enough to make the cost of a chunk negligible, few enough to stay well below a 2 ms
    /// slice of a query thread.
    pub const ROWS_DEFAULT: usize = 512;

    /// Bounds what a scan over large documents holds in memory at a time.
    pub const BYTES_DEFAULT: usize = 1 << 20;

    #[must_use]
    pub fn rows(rows: usize) -> ScanLimit {
        ScanLimit { rows, ..ScanLimit::default() }
    }

    fn reached(self, rows: usize, bytes: usize) -> bool {
        rows >= self.rows.max(1) || bytes >= self.bytes.max(1)
    }
}

impl Default for ScanLimit {
    fn default() -> ScanLimit {
        ScanLimit { rows: ScanLimit::ROWS_DEFAULT, bytes: ScanLimit::BYTES_DEFAULT }
    }
}

/// A run of rows and what is still to be scanned, in the same direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    pub rows: Vec<(Bytes, Bytes)>,
    /// `None` when the range is exhausted: a chunk that stops at its limit looks one row
    /// further, so an empty rest is never requested.
    pub rest: Option<KeyRange>,
}

impl Chunk {
    pub(crate) fn collect(
        rows: impl Iterator<Item = Result<(Bytes, Bytes), StorageError>>,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Result<Chunk, StorageError> {
        let rows_max = limit.rows.min(ROWS_AT_ONCE);
        let mut chunk = Chunk { rows: Vec::with_capacity(rows_max), ..Chunk::default() };
        let mut bytes = 0;
        for row in rows {
            let (key, value) = row?;
            if limit.reached(chunk.rows.len(), bytes) {
                chunk.rest = chunk.rows.last().map(|(last, _)| range.after(last, direction));
                break;
            }
            bytes += key.len() + value.len();
            chunk.rows.push((key, value));
        }
        Ok(chunk)
    }
}

/// Reads every row of `view` and counts.
pub(crate) fn verify_rows(view: &dyn View) -> Result<VerifyReport, StorageError> {
    let mut report = VerifyReport::default();
    let mut rest = Some(KeyRange::all());
    while let Some(range) = rest {
        let chunk = view.scan(&range, Direction::Forward, ScanLimit::default())?;
        for (key, value) in &chunk.rows {
            report.rows += 1;
            report.bytes += (key.len() + value.len()) as u64;
        }
        rest = chunk.rest;
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_the_next_one_begins() {
        let end = |prefix: &[u8]| KeyRange::prefix(prefix).end;
        assert_eq!(end(b"ab").as_deref(), Some(b"ac".as_slice()));
        assert_eq!(end(b"a\xFF").as_deref(), Some(b"b".as_slice()));
        assert_eq!(end(b"\xFF\xFF"), None);
        assert_eq!(end(b""), None);
    }

    #[test]
    fn reserved_keys_are_never_visible() {
        assert_eq!(KeyRange::all().visible(), Some((b"".as_slice(), b"\xFF".as_slice())));
        assert_eq!(KeyRange::prefix(b"\xFF").visible(), None);
        assert_eq!(KeyRange::new("b", "a").visible(), None);
        assert_eq!(KeyRange::new("a", "b").visible(), Some((b"a".as_slice(), b"b".as_slice())));
    }

    #[test]
    fn a_chunk_stops_at_its_limit_and_knows_the_rest() {
        let rows = ["a", "b", "c"].map(|key| Ok((Bytes::from(key), Bytes::from("1"))));
        let limit = ScanLimit::rows(2);
        let range = KeyRange::all();
        let chunk = Chunk::collect(rows.into_iter(), &range, Direction::Forward, limit).unwrap();
        assert_eq!(chunk.rows.len(), 2);
        assert_eq!(chunk.rest.unwrap().start, Bytes::from("b\0"));
    }

    #[test]
    fn a_chunk_that_just_fits_has_no_rest() {
        let rows = ["b", "a"].map(|key| Ok((Bytes::from(key), Bytes::from("1"))));
        let limit = ScanLimit { rows: 2, bytes: 4 };
        let chunk =
            Chunk::collect(rows.into_iter(), &KeyRange::all(), Direction::Backward, limit).unwrap();
        assert_eq!((chunk.rows.len(), chunk.rest), (2, None));
    }
}
