//! How postings become keys and values: what the designs differ in.

use std::cell::Cell;
use std::ops::ControlFlow;

use anyhow::Result;
use bytes::Bytes;
use index::EntryRange;
use storage::{Chunk, Direction, KeyRange, ScanLimit, View, WriteBatch};

use super::change::{Bucket, Postings};

/// Gets postings in order, until it has enough.
pub(super) type Visit<'v> = dyn FnMut(&[u8]) -> Result<ControlFlow<()>> + 'v;

/// The postings of a bucket between two entries, in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'r> {
    pub(super) bucket: Bucket,
    pub(super) range: &'r EntryRange,
    pub(super) direction: Direction,
    /// Postings that are probably enough.
    pub(super) about: usize,
}

impl Wanted<'_> {
    pub(super) fn has(&self, posting: &[u8]) -> bool {
        posting >= self.range.start.as_slice() && posting < self.range.end.as_slice()
    }
}

/// One way to store postings.
pub(super) trait TermStore: Send + Sync {
    /// Stages changes of the postings of one bucket.
    fn write(
        &mut self,
        reading: &Reading<'_>,
        bucket: Bucket,
        changes: &Postings,
        batch: &mut WriteBatch,
    ) -> Result<()>;

    fn scan(&self, reading: &Reading<'_>, wanted: Wanted<'_>, visit: &mut Visit<'_>) -> Result<()>;

    /// How many postings there are.
    fn count(&self, reading: &Reading<'_>, wanted: Wanted<'_>) -> Result<u64> {
        let mut count = 0;
        self.scan(reading, wanted, &mut |_| {
            count += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(count)
    }

    /// Reads again what it keeps in memory, as after a restart.
    fn reopen(&mut self, reading: &Reading<'_>) -> Result<()>;

    /// Work that waits for its turn, if there is enough of it.
    fn fold(&mut self, _reading: &Reading<'_>) -> Result<Option<WriteBatch>> {
        Ok(None)
    }
}

/// A view that counts what is read of it.
#[derive(Debug)]
pub(super) struct Reading<'v> {
    view: &'v dyn View,
    pub(super) keys: Cell<u64>,
    pub(super) bytes: Cell<u64>,
}

impl<'v> Reading<'v> {
    pub(super) fn new(view: &'v dyn View) -> Reading<'v> {
        Reading { view, keys: Cell::new(0), bytes: Cell::new(0) }
    }

    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let value = self.view.get(key)?;
        self.note(key, value.as_deref().unwrap_or_default());
        Ok(value)
    }

    pub(super) fn scan(
        &self,
        range: &KeyRange,
        direction: Direction,
        rows: usize,
    ) -> Result<Chunk> {
        let limit = ScanLimit::rows(rows.clamp(1, ScanLimit::ROWS_DEFAULT));
        let chunk = self.view.scan(range, direction, limit)?;
        chunk.rows.iter().for_each(|(key, value)| self.note(key, value));
        Ok(chunk)
    }

    /// All rows of a range, in order.
    pub(super) fn each(
        &self,
        range: KeyRange,
        direction: Direction,
        about: usize,
        mut row: impl FnMut(&Bytes, &Bytes) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut rest = Some(range);
        while let Some(range) = rest {
            let chunk = self.scan(&range, direction, about)?;
            for (key, value) in &chunk.rows {
                if row(key, value)?.is_break() {
                    return Ok(());
                }
            }
            rest = chunk.rest;
        }
        Ok(())
    }

    fn note(&self, key: &[u8], value: &[u8]) {
        self.keys.set(self.keys.get() + 1);
        self.bytes.set(self.bytes.get() + (key.len() + value.len()) as u64);
    }
}
