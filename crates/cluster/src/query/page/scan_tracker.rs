//! The resume point of a page in scan order.
//!
//! The tracker keeps the last position that was passed; the resume point is made once, when
//! the page ends.

use bytes::Bytes;
use model::epk::EpkRange;
use partition::{POSITION_BYTES_MAX, ScanOrder};

use super::builder::{More, PageBuilder};
use super::execution::Execution;
use crate::query::cursor::{AfterEntry, ResumePoint, RowPosition};
use crate::query::merge::PartRow;

/// The last row, or item without one, that was passed.
pub(super) struct ScanTracker<'p> {
    order: ScanOrder,
    /// The position where the previous page ended in the middle of an item.
    resumed: Option<&'p RowPosition>,
    group: EpkRange,
    position: Bytes,
    /// Rows at its position so far.
    rows: u32,
}

impl<'p> ScanTracker<'p> {
    pub(super) fn new(execution: &Execution<'p>) -> ScanTracker<'p> {
        let resumed = execution.query.after_entry().map(|after| &after.position);
        let (group, position) = (EpkRange::full(), Bytes::new());
        ScanTracker { order: execution.plan.order(), resumed, group, position, rows: 0 }
    }

    /// Offers a row at a position to the page, unless a previous one returned it.
    pub(super) fn offer(
        &mut self,
        page: &mut PageBuilder<'_>,
        at: (&EpkRange, &Bytes),
        row: PartRow,
    ) -> More {
        let rows = self.rows_at(at.1);
        if rows >= self.given_at(at.1) {
            page.offer((row.part, row.row.text), || self.before(at.1))?;
        }
        self.pass(at, rows + 1);
        More::Continue(())
    }

    /// Passes an item without a row.
    pub(super) fn pass_item(&mut self, at: (&EpkRange, &Bytes)) {
        self.pass(at, self.rows_at(at.1));
    }

    /// The point after everything that was passed.
    pub(super) fn after(&self) -> ResumePoint {
        self.resume_point(None)
    }

    /// The number of rows at a position that previous pages returned.
    fn given_at(&self, position: &Bytes) -> u32 {
        let resumed = self.resumed.filter(|resumed| resumed.is_at(kept(position)));
        resumed.and_then(|resumed| resumed.rows).unwrap_or_default()
    }

    /// The point after the last row, if the next one is there.
    fn before(&self, next: &Bytes) -> ResumePoint {
        let is_cut = self.position.len() > POSITION_BYTES_MAX;
        let may_have_more = is_cut || kept(&self.position) == kept(next);
        self.resume_point(may_have_more.then_some(self.rows))
    }

    fn resume_point(&self, rows: Option<u32>) -> ResumePoint {
        let position = RowPosition { rows, ..RowPosition::of(&self.position) };
        ResumePoint::AfterEntry(AfterEntry {
            group: self.group.clone(),
            order: self.order,
            position,
        })
    }

    fn rows_at(&self, position: &Bytes) -> u32 {
        if kept(&self.position) == kept(position) { self.rows } else { 0 }
    }

    fn pass(&mut self, (group, position): (&EpkRange, &Bytes), rows: u32) {
        if self.group != *group {
            self.group = group.clone();
        }
        (self.position, self.rows) = (position.clone(), rows);
    }
}

/// The part of a position that a cursor keeps.
fn kept(position: &[u8]) -> &[u8] {
    position.get(..POSITION_BYTES_MAX).unwrap_or(position)
}
