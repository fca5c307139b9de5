//! Choosing an index for rows that are distinguished by values: groups and distinct rows.
//!
//! Along an index such a row is complete when the next value comes, so a page reads no more
//! items than those of its rows, but looks each of them up. Without it, all items are
//! scanned.

use query::{Bound, Order, Predicate, ValueKey};

use super::planner::{IndexMatch, LOOKUP_FACTOR, OrderedIndex, Planner, SORT_ITEMS_MAX};
use crate::command::PartitionError;

/// Upper bound of the values that are counted to find out whether all of them are needed:
/// more than a page has rows.
const VALUES_MAX: u64 = 2_000;

impl Planner<'_> {
    /// The index to scan, unless a full scan costs less.
    pub(super) fn by_value(
        &self,
        bound: &Bound,
        found: Option<&IndexMatch>,
    ) -> Result<Option<OrderedIndex>, PartitionError> {
        let Some(values) = value_keys(bound) else { return Ok(None) };
        let items = self.statistics.items()?;
        if self.is_little(items, found)? {
            return Ok(None);
        }
        let Some(served) = self.value_order(&values, bound)? else { return Ok(None) };
        let leads_past_others =
            !served.begun && self.statistics.is_narrow() && self.is_small(items)?;
        // A skip scan: of each value one item is loaded, if that one determines its row.
        let jumps = !bound.is_aggregated()
            && served.order.width() == values.len()
            && bound.filter().predicate == Predicate::Anything;
        let is_worth = !leads_past_others && (jumps || self.has_more_values(&served)?);
        Ok(is_worth.then_some(served))
    }

    /// Whether the query's items are few, or no more than what a full page reads anyway.
    fn is_little(&self, items: u64, found: Option<&IndexMatch>) -> Result<bool, PartitionError> {
        if items <= self.statistics.rows().saturating_mul(LOOKUP_FACTOR) {
            return Ok(true);
        }
        let Some(found) = found else { return Ok(false) };
        Ok(self.members(&found.set, SORT_ITEMS_MAX)? < SORT_ITEMS_MAX)
    }

    /// Whether an index has more values than the rows that are needed. If all values are
    /// needed, so are all items.
    fn has_more_values(&self, served: &OrderedIndex) -> Result<bool, PartitionError> {
        let most = self.statistics.rows().saturating_add(1);
        Ok(most <= VALUES_MAX
            && self.statistics.values(&served.range, &served.order, most)? >= most)
    }

    /// An index in the order of the first of the values, the more of them the better.
    fn value_order(
        &self,
        values: &[ValueKey],
        bound: &Bound,
    ) -> Result<Option<OrderedIndex>, PartitionError> {
        let names: Vec<_> = values
            .iter()
            .map_while(|key| {
                let path = key.path.as_ref().filter(|path| self.indexes.could_have(path))?;
                Some((path.names()?, key.descending))
            })
            .collect();
        for several in (2..=names.len()).rev() {
            let order = names.get(..several).unwrap_or_default();
            if let Ok(Some(served)) = self.composite_order(order, bound) {
                return Ok(Some(served));
            }
        }
        match values.first() {
            Some(ValueKey { path: Some(path), descending, required }) if !names.is_empty() => {
                self.along_path(&Order { path, descending: *descending }, bound, *required)
            }
            Some(_) | None => Ok(None),
        }
    }
}

/// The values that distinguish rows, if items with the same values make the same rows.
fn value_keys(bound: &Bound) -> Option<Vec<ValueKey>> {
    // Several groups may make one row.
    let is_told = !(bound.is_distinct() && bound.is_aggregated());
    let values = bound.value_order().filter(|_| is_told && !bound.gathers_documents())?;
    values.first()?.path.as_ref()?;
    Some(values)
}
