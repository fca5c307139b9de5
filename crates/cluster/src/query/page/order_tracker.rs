//! The resume point of a page in the order of the query.

use bytes::Bytes;
use index::{EntryEnd, EntryOrder};
use partition::{Point, SORT_KEY_BYTES_MAX};

use super::builder::{More, PageBuilder};
use super::execution::Execution;
use crate::query::PageQuery;
use crate::query::cursor::{AfterRow, ResumePoint};
use crate::query::merge::PartRow;

/// Bytes after the values in a sort key: the item and the number of the row.
const TAIL_BYTES: usize = size_of::<u64>() + size_of::<u32>();

/// Tracks the last row, or entry, that was passed.
pub(super) struct OrderTracker<'p> {
    query: &'p PageQuery,
    point: Point,
    /// The entry that was passed since. Its end becomes a point only when the page ends.
    entry: Option<Bytes>,
    along: Option<&'p EntryOrder>,
    order: Vec<bool>,
    /// The sort values of the last row, where they imply that all rows with the same values
    /// are passed.
    keys: Option<Vec<u8>>,
    by_keys: bool,
}

impl<'p> OrderTracker<'p> {
    pub(super) fn new(execution: &Execution<'p>) -> OrderTracker<'p> {
        let point = execution.query.after_row().map(|after| after.point.clone());
        OrderTracker {
            query: execution.query,
            point: point.unwrap_or_default(),
            entry: None,
            along: execution.plan.along.as_ref(),
            order: execution.order.clone(),
            keys: None,
            by_keys: false,
        }
    }

    /// A tracker that ends after all items with the same sort values, where it can: the
    /// item of a row may be gone when another item has the same row.
    pub(super) fn by_keys(execution: &Execution<'p>) -> OrderTracker<'p> {
        OrderTracker { by_keys: true, ..OrderTracker::new(execution) }
    }

    /// Offers a row to the page.
    pub(super) fn offer(&mut self, page: &mut PageBuilder<'_>, row: PartRow) -> More {
        let PartRow { row, part } = row;
        let keys = self.by_keys.then(|| {
            let end = row.sort_key.len().saturating_sub(TAIL_BYTES);
            row.sort_key.get(..end).unwrap_or_default().to_vec()
        });
        page.offer((part, row.text), || self.point_before(keys.as_deref()))?;
        self.point = Point::after(row.sort_key, &self.point);
        (self.keys, self.entry) = (keys, None);
        More::Continue(())
    }

    /// The point after everything that was passed, before a row with these keys.
    fn point_before(&self, next: Option<&[u8]>) -> ResumePoint {
        let is_short = |keys: &&Vec<u8>| keys.len() <= SORT_KEY_BYTES_MAX;
        match self.keys.as_ref().filter(is_short) {
            Some(keys) if next != Some(keys) => {
                let point = Point::past(keys.clone());
                ResumePoint::AfterRow(AfterRow::new(&self.query.scope, point))
            }
            Some(_) | None => self.after(),
        }
    }

    /// Advances to the end of an entry.
    pub(super) fn pass_entry(&mut self, entry: Bytes) {
        (self.point, self.entry) = (Point::default(), Some(entry));
    }

    /// The point after everything that was passed.
    pub(super) fn after(&self) -> ResumePoint {
        let point = self.end_of_entry().unwrap_or_else(|| self.point.clone());
        ResumePoint::AfterRow(AfterRow::new(&self.query.scope, point))
    }

    fn end_of_entry(&self) -> Option<Point> {
        let EntryEnd { sort_key, past } = self.along?.end(self.entry.as_ref()?, &self.order);
        Some(Point { sort_key, past, given: None })
    }
}
