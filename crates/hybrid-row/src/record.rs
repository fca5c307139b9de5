//! RecordIO: rows one after another, each preceded by its length and checksum.
//!
//! A stream begins with a segment header, and further ones may come between records. A
//! header says how long it is and, optionally, what the rows are; readers know.

use crate::Result;
use crate::error::HybridRowError;
use crate::layout::{Column, RowLayout, Storage};
use crate::reader::Reader;
use crate::row::HybridRow;
use crate::value::{Kind, RowValue};

const LENGTH: &str = "length";
const CHECKSUM: &str = "crc32";

static SEGMENT: RowLayout = RowLayout::new(
    2_147_473_648,
    &[
        Column::new(LENGTH, Kind::I32, Storage::Fixed),
        Column::new("comment", Kind::Text, Storage::Sparse),
        Column::new("sdl", Kind::Text, Storage::Sparse),
        Column::new("schema", Kind::Binary, Storage::Sparse),
    ],
);
/// Up to where a segment's header says how long it is.
const SEGMENT_BYTES_MIN: usize = 10;

static RECORD: RowLayout = RowLayout::new(
    2_147_473_649,
    &[
        Column::new(LENGTH, Kind::I32, Storage::Required),
        Column::new(CHECKSUM, Kind::U32, Storage::Required),
    ],
);
const RECORD_BYTES: usize = 13;
const LENGTH_BYTES: usize = size_of::<i32>();
const CHECKSUM_BYTES: usize = size_of::<u32>();

/// The rows of a stream, as bytes whose checksums were verified. Ends after the first
/// error.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    offset: usize,
    begun: bool,
}

impl<'a> Records<'a> {
    #[must_use]
    pub fn new(stream: &'a [u8]) -> Records<'a> {
        Records { rest: stream, offset: 0, begun: false }
    }

    fn read(&mut self) -> Result<Option<&'a [u8]>> {
        while !self.rest.is_empty() {
            if schema_of(self.rest)? == SEGMENT.schema {
                self.skip_segment()?;
                self.begun = true;
            } else if self.begun {
                return self.record().map(Some);
            } else {
                return Err(HybridRowError::NoSegment);
            }
        }
        if self.begun { Ok(None) } else { Err(HybridRowError::NoSegment) }
    }

    fn skip_segment(&mut self) -> Result<()> {
        let offset = self.offset;
        let head = self.peek(SEGMENT_BYTES_MIN)?;
        let length = length_of(&HybridRow::read(&SEGMENT, head)?, offset)?;
        if length < SEGMENT_BYTES_MIN {
            let length = i32::try_from(length).unwrap_or_default();
            return Err(HybridRowError::Length { length, offset });
        }
        HybridRow::read(&SEGMENT, self.take(length)?)?;
        Ok(())
    }

    fn record(&mut self) -> Result<&'a [u8]> {
        let offset = self.offset;
        let head = HybridRow::read(&RECORD, self.take(RECORD_BYTES)?)?;
        let row = self.take(length_of(&head, offset)?)?;
        if head.get(CHECKSUM) != Some(RowValue::U32(crc32fast::hash(row))) {
            return Err(HybridRowError::Checksum { offset });
        }
        Ok(row)
    }

    fn peek(&self, count: usize) -> Result<&'a [u8]> {
        self.rest.get(..count).ok_or(HybridRowError::Truncated { offset: self.offset })
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let truncated = HybridRowError::Truncated { offset: self.offset };
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(truncated)?;
        self.rest = rest;
        self.offset += count;
        Ok(taken)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<&'a [u8]>;

    fn next(&mut self) -> Option<Result<&'a [u8]>> {
        let next = self.read().transpose();
        if matches!(next, Some(Err(_))) {
            (self.rest, self.begun) = (&[], true);
        }
        next
    }
}

fn schema_of(row: &[u8]) -> Result<i32> {
    let mut input = Reader::new(row);
    input.byte()?;
    input.i32()
}

fn length_of(head: &HybridRow<'_>, offset: usize) -> Result<usize> {
    let Some(RowValue::I32(length)) = head.get(LENGTH) else {
        return Err(HybridRowError::Length { length: 0, offset });
    };
    usize::try_from(length).map_err(|_| HybridRowError::Length { length, offset })
}

/// Writes a stream of one segment.
#[derive(Clone, Debug)]
pub struct RecordWriter {
    out: Vec<u8>,
}

impl RecordWriter {
    /// Expects rows of `row_bytes` bytes in all.
    #[must_use]
    pub fn with_capacity(rows: usize, row_bytes: usize) -> RecordWriter {
        let bytes = SEGMENT_BYTES_MIN + rows.saturating_mul(RECORD_BYTES).saturating_add(row_bytes);
        let mut out = Vec::with_capacity(bytes);
        // Nothing is said about the rows, so this is all of the header.
        let length = i32::try_from(SEGMENT_BYTES_MIN).expect("it is a small constant");
        head(&SEGMENT, &[(LENGTH, RowValue::I32(length))]).write(&mut out);
        RecordWriter { out }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// A row that is too long for a record; nothing of it is written then.
    pub fn push(&mut self, row: &HybridRow<'_>) -> Result<()> {
        let start = self.out.len();
        let unknown = [(LENGTH, RowValue::I32(0)), (CHECKSUM, RowValue::U32(0))];
        head(&RECORD, &unknown).write(&mut self.out);
        let row_start = self.out.len();
        row.write(&mut self.out);
        let (before, written) = self.out.split_at_mut(row_start);
        let (bytes, checksum) = (written.len(), crc32fast::hash(written));
        let Ok(length) = i32::try_from(bytes) else {
            self.out.truncate(start);
            return Err(HybridRowError::TooLong { bytes });
        };
        let known =
            before.split_last_chunk_mut::<CHECKSUM_BYTES>().and_then(|(before, checksum_at)| {
                Some((before.last_chunk_mut::<LENGTH_BYTES>()?, checksum_at))
            });
        let (length_at, checksum_at) = known.expect("the header ends with these two");
        *length_at = length.to_le_bytes();
        *checksum_at = checksum.to_le_bytes();
        Ok(())
    }

    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.out
    }
}

fn head<'a>(layout: &'static RowLayout, columns: &[(&'a str, RowValue<'a>)]) -> HybridRow<'a> {
    let mut row = HybridRow::new(layout);
    for (name, value) in columns {
        row.set(name, *value).expect("it is a column of this type");
    }
    row
}
