//! The resume point of a page in the order of creation.
//!
//! The tracker keeps the last item that was passed; the resume point is made once, when the
//! page ends.

use model::epk::EpkRange;

use super::builder::{More, PageBuilder};
use super::execution::Execution;
use crate::query::cursor::{AfterItem, ResumePoint};
use crate::query::merge::PartRow;

/// The last row, or item without one, that was passed.
pub(super) struct ScanTracker<'p> {
    /// Where the previous page ended in the middle of an item.
    resumed: Option<&'p AfterItem>,
    group: EpkRange,
    ordinal: u64,
    /// Rows of this item so far.
    rows: u32,
}

impl<'p> ScanTracker<'p> {
    pub(super) fn new(execution: &Execution<'p>) -> ScanTracker<'p> {
        let resumed = execution.query.after_item();
        let ordinal = resumed.map_or(0, |after| after.ordinal);
        ScanTracker { resumed, group: execution.group(), ordinal, rows: 0 }
    }

    /// Offers a row of an item to the page, unless a previous one returned it.
    pub(super) fn offer(&mut self, page: &mut PageBuilder<'_>, ordinal: u64, row: PartRow) -> More {
        let rows = self.rows_of(ordinal);
        if rows >= self.given_of(ordinal) {
            page.offer((row.part, row.row.text), || self.before(ordinal))?;
        }
        (self.ordinal, self.rows) = (ordinal, rows + 1);
        More::Continue(())
    }

    /// Passes an item without a row.
    pub(super) fn pass_item(&mut self, ordinal: u64) {
        (self.ordinal, self.rows) = (ordinal, self.rows_of(ordinal));
    }

    /// The point after everything that was passed.
    pub(super) fn after(&self) -> ResumePoint {
        ResumePoint::AfterItem(self.passed())
    }

    /// The last item that was passed.
    pub(super) fn passed(&self) -> AfterItem {
        self.last(None)
    }

    /// The number of an item's rows that previous pages returned.
    fn given_of(&self, ordinal: u64) -> u32 {
        let resumed = self.resumed.filter(|resumed| resumed.ordinal == ordinal);
        resumed.and_then(|resumed| resumed.rows).unwrap_or_default()
    }

    /// The point after the last row, if the next one is of this item.
    fn before(&self, next: u64) -> ResumePoint {
        ResumePoint::AfterItem(self.last((self.ordinal == next).then_some(self.rows)))
    }

    fn last(&self, rows: Option<u32>) -> AfterItem {
        AfterItem { group: self.group.clone(), ordinal: self.ordinal, rows }
    }

    fn rows_of(&self, ordinal: u64) -> u32 {
        if self.ordinal == ordinal { self.rows } else { 0 }
    }
}
