//! The rows of a key range, read ahead in chunks.

use std::collections::VecDeque;

use bytes::Bytes;
use storage::{Direction, KeyRange, ScanLimit, StorageError, View};

/// Rows of the first chunk: most queries want few. Each chunk is larger than the one
/// before, up to the usual size.
const FIRST_ROWS: usize = 16;
const GROWTH: usize = 4;

/// Reads a range row by row.
pub(crate) struct Rows<'v> {
    view: &'v dyn View,
    direction: Direction,
    /// What was not read yet.
    rest: Option<KeyRange>,
    ahead: VecDeque<(Bytes, Bytes)>,
    chunk: usize,
    /// Rows that were returned.
    pub(crate) read: u64,
}

impl<'v> Rows<'v> {
    pub(crate) fn new(view: &'v dyn View, range: KeyRange, direction: Direction) -> Rows<'v> {
        let rest = Some(range).filter(|range| !range.is_empty());
        Rows { view, direction, rest, ahead: VecDeque::new(), chunk: FIRST_ROWS, read: 0 }
    }

    pub(crate) fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, StorageError> {
        self.fill()?;
        let row = self.ahead.pop_front();
        self.read += u64::from(row.is_some());
        Ok(row)
    }

    pub(crate) fn peek(&mut self) -> Result<Option<&(Bytes, Bytes)>, StorageError> {
        self.fill()?;
        Ok(self.ahead.front())
    }

    /// Skips keys with this prefix, if they come next.
    pub(crate) fn skip(&mut self, beginning: &[u8]) {
        let before = self.ahead.len();
        while self.ahead.front().is_some_and(|(key, _)| key.starts_with(beginning)) {
            self.ahead.pop_front();
        }
        if self.ahead.len() < before {
            // A skip will most likely be followed by another.
            self.chunk = FIRST_ROWS;
        }
        let Some(rest) = self.rest.as_mut().filter(|_| self.ahead.is_empty()) else { return };
        let left_out = KeyRange::prefix(beginning);
        match (self.direction, left_out.end) {
            (Direction::Forward, Some(end)) => rest.start = end.max(rest.start.clone()),
            (Direction::Forward, None) => self.rest = None,
            (Direction::Backward, _) => {
                let end =
                    rest.end.take().map_or(left_out.start.clone(), |end| end.min(left_out.start));
                rest.end = Some(end);
            }
        }
        self.rest.take_if(|rest| rest.is_empty());
    }

    /// Skips what comes before `key`. For ranges that are read forwards.
    pub(crate) fn seek(&mut self, key: &Bytes) {
        while self.ahead.front().is_some_and(|(first, _)| first < key) {
            self.ahead.pop_front();
        }
        if self.ahead.is_empty()
            && let Some(rest) = &mut self.rest
            && rest.start < key
        {
            rest.start = key.clone();
            // A seek will most likely be followed by another.
            self.chunk = FIRST_ROWS;
            if rest.is_empty() {
                self.rest = None;
            }
        }
    }

    fn fill(&mut self) -> Result<(), StorageError> {
        while self.ahead.is_empty() {
            let Some(range) = self.rest.take() else { return Ok(()) };
            let chunk = self.view.scan(&range, self.direction, ScanLimit::rows(self.chunk))?;
            self.chunk = self.chunk.saturating_mul(GROWTH).min(ScanLimit::ROWS_DEFAULT);
            self.ahead.extend(chunk.rows);
            self.rest = chunk.rest;
        }
        Ok(())
    }
}
