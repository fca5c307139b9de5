//! Builds a page: collects its rows and applies its limits.

use std::ops::ControlFlow;

use bytes::Bytes;
use partition::TopBounds;

use crate::query::PageQuery;
use crate::query::cursor::{Cursor, ResumePoint};

/// The rows of a page.
pub(super) struct PageBuilder<'q> {
    query: &'q PageQuery,
    pub(super) rows: Vec<Bytes>,
    pub(super) bytes: usize,
    /// Bytes of rows by partition.
    pub(super) output: Vec<u64>,
    /// Items that yielded a row.
    pub(super) hits: u64,
    /// Rows to skip before the first one.
    pub(super) skip: u64,
    /// Rows that were returned on this page and the previous ones.
    pub(super) given: u64,
}

/// Whether a page takes more rows. If not, the resume point of the next one, if there is
/// one.
pub(super) type More = ControlFlow<Option<ResumePoint>>;

impl<'q> PageBuilder<'q> {
    pub(super) fn new(query: &'q PageQuery, parts: usize) -> PageBuilder<'q> {
        let (skip, given) = query.counted();
        PageBuilder {
            query,
            rows: Vec::new(),
            bytes: 0,
            output: vec![0; parts],
            hits: 0,
            skip,
            given,
        }
    }

    /// Adds a row of a partition, unless OFFSET skips it. If the page is full, the row
    /// belongs to the next one, which begins at `next`.
    pub(super) fn offer(
        &mut self,
        row: (usize, String),
        next: impl FnOnce() -> ResumePoint,
    ) -> More {
        if self.skip == 0 {
            return self.put(row, next);
        }
        self.skip -= 1;
        More::Continue(())
    }

    /// As `offer`, where OFFSET has been applied.
    pub(super) fn put(&mut self, row: (usize, String), next: impl FnOnce() -> ResumePoint) -> More {
        let (part, text) = row;
        if !self.has_room_for(text.len()) {
            return More::Break(Some(next()));
        }
        self.given += 1;
        self.bytes += text.len();
        if let Some(output) = self.output.get_mut(part) {
            *output += text.len() as u64;
        }
        self.rows.push(text.into());
        if self.is_last() { More::Break(None) } else { More::Continue(()) }
    }

    /// Whether TOP or LIMIT allow no row after those that are here.
    pub(super) fn is_last(&self) -> bool {
        let (_, limit) = self.query.bound.window();
        self.given >= limit as u64
    }

    /// Whether it has no room for the shortest row.
    pub(super) fn is_full(&self) -> bool {
        !self.has_room_for(1)
    }

    /// Each page has a row, however long it is.
    fn has_room_for(&self, bytes: usize) -> bool {
        let bounds = &self.query.bounds;
        let fits = self.bytes.saturating_add(bytes) <= bounds.bytes;
        self.rows.is_empty() || (self.rows.len() < bounds.rows && fits)
    }

    /// Rows to fetch: OFFSET + page size + 1 (to detect a next page).
    pub(super) fn wanted(&self) -> usize {
        let before = usize::try_from(self.skip).unwrap_or(usize::MAX);
        before.saturating_add(self.query.bounds.rows).saturating_add(1)
    }

    /// The rows that it can need, if it skips `given` more, and one to know of a next page.
    pub(super) fn top_bounds(&self, given: usize) -> TopBounds {
        let skip = usize::try_from(self.skip).unwrap_or(usize::MAX).saturating_add(given);
        let rows = self.wanted().saturating_add(given);
        TopBounds { rows, skip, bytes: self.query.bounds.bytes }
    }

    /// The number of rows, and their bytes, that complete the query, if TOP or LIMIT bound
    /// it to this page, which must be the first.
    pub(super) fn last_page_rows(&self) -> Option<(usize, usize)> {
        let (offset, limit) = self.query.bound.window();
        let is_only = self.query.after.is_none() && limit <= self.query.bounds.rows;
        is_only.then(|| (offset.saturating_add(limit), self.query.bounds.bytes))
    }

    /// The number of rows that still fit in all, and whether TOP or LIMIT allow no more of
    /// them on any page.
    pub(super) fn rows_left(&self) -> (usize, bool) {
        let (_, limit) = self.query.bound.window();
        let left = limit.saturating_sub(usize::try_from(self.given).unwrap_or(usize::MAX));
        let rows = self.query.bounds.rows;
        if left <= rows { (left, true) } else { (rows, false) }
    }

    pub(super) fn cursor(&self, resume: ResumePoint) -> Cursor {
        let (query, skip, given) = (self.query.fingerprint, self.skip, self.given);
        Cursor { query, skip, given, resume }
    }
}
