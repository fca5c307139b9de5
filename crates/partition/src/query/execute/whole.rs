//! Blocking tasks, which scan all items: top-N rows, distinct rows, groups, and the items
//! themselves.

use std::collections::{BTreeMap, BinaryHeap};
use std::ops::ControlFlow;
use std::rc::Rc;

use bytes::Bytes;
use query::{Ledger, QueryError};

use super::{
    ExecuteError, Executor, LONG_STEPS_MAX, MORE, OutputRow, PACE_CANDIDATES, PartialPage, ScanEnd,
    SortBuffer,
};
use crate::query::request::{ROW_BYTES, TopBounds};
use crate::record::Item;

impl Executor<'_> {
    /// The first rows of all, in the order of the query.
    pub(super) fn top_rows(
        mut self,
        page: PartialPage,
        bounds: TopBounds,
    ) -> Result<PartialPage, ExecuteError> {
        let (mut first, ledger) = (TopRows::new(bounds, &self.ledger), Rc::clone(&self.ledger));
        let (mut among, points) = (SortBuffer::new(&ledger), &self.query.points);
        let run = &mut self.run(LONG_STEPS_MAX);
        self.each_row(run, |row| {
            if points.iter().any(|point| point.is_among(&row.sort_key)) {
                return among.add(row).map(ControlFlow::Continue);
            }
            first.add(row).map(ControlFlow::Continue)
        })?;
        let (rows, among) = (first.rows.into_sorted_vec(), among.sorted());
        Ok(self.finished(PartialPage { rows, among, ..page }, ScanEnd::Exhausted))
    }

    /// The first of the rows that are distinguished by their sort keys.
    pub(super) fn distinct(
        mut self,
        page: PartialPage,
        wanted: usize,
        enough: Option<(usize, usize)>,
    ) -> Result<PartialPage, ExecuteError> {
        let (mut first, mut among) = (BTreeMap::<Vec<u8>, OutputRow>::new(), BTreeMap::new());
        let (mut text_bytes, mut end) = (0, ScanEnd::Exhausted);
        let (ledger, points) = (Rc::clone(&self.ledger), &self.query.points);
        let bytes = |row: &OutputRow| row.footprint() + row.sort_key.len();
        let run = &mut self.run(LONG_STEPS_MAX);
        self.each_row(run, |row| {
            let is_last = || first.last_key_value().is_some_and(|(last, _)| *last < row.sort_key);
            let is_there = first.contains_key(&row.sort_key) || among.contains_key(&row.sort_key);
            let is_beyond = first.len() >= wanted && is_last();
            if !is_there && !is_beyond {
                ledger.keep(bytes(&row))?;
                if points.iter().any(|point| point.is_among(&row.sort_key)) {
                    among.insert(row.sort_key.clone(), row);
                } else {
                    text_bytes += row.text.len();
                    first.insert(row.sort_key.clone(), row);
                    if first.len() > wanted {
                        ledger.release(first.pop_last().map_or(0, |(_, last)| bytes(&last)));
                    }
                }
            }
            if enough.is_some_and(|(rows, bytes)| first.len() >= rows && text_bytes <= bytes) {
                end = ScanEnd::Budget;
                return Ok(ControlFlow::Break(()));
            }
            MORE
        })?;
        let (rows, among) = (first.into_values().collect(), among.into_values().collect());
        Ok(self.finished(PartialPage { rows, among, ..page }, end))
    }

    /// Groups of all items.
    pub(super) fn aggregate(mut self, page: PartialPage) -> Result<PartialPage, ExecuteError> {
        let mut run = self.run(LONG_STEPS_MAX);
        if self.query.covers_filter && self.query.bound.counts_documents() {
            while let Some(count) = self.candidates.count(PACE_CANDIDATES)? {
                run.add_documents(count);
                self.slice.go_on_to_the_end()?;
            }
        } else {
            while let Some(candidate) = self.candidates.next()? {
                if let Some(item) = &candidate.item {
                    self.run_on(&mut run, item, &mut |_| MORE)?;
                }
                self.keep_pace(&run)?;
            }
        }
        let aggregate = run.take_partial();
        Ok(self.finished(PartialPage { aggregate, ..page }, ScanEnd::Exhausted))
    }

    /// The texts of all items.
    pub(super) fn documents(mut self, page: PartialPage) -> Result<PartialPage, ExecuteError> {
        let mut documents = Vec::new();
        while let Some(candidate) = self.candidates.next()? {
            if let Some(item) = candidate.item {
                let text = self.shown(item);
                self.ledger.keep(text.len() + ROW_BYTES)?;
                documents.push(text);
            }
            self.slice.go_on_to_the_end()?;
        }
        Ok(self.finished(PartialPage { documents, ..page }, ScanEnd::Exhausted))
    }

    /// The text of an item with its system properties.
    fn shown(&self, item: Item) -> Bytes {
        match &self.query.system {
            Some(system) => system.shown(item.json().text(), &item.stamp(self.container)).into(),
            None => item.text,
        }
    }
}

/// The first rows so far.
struct TopRows {
    bounds: TopBounds,
    rows: BinaryHeap<OutputRow>,
    /// Bytes of their texts, and of the longest that there was.
    bytes: usize,
    largest: usize,
    ledger: Rc<Ledger>,
}

impl TopRows {
    fn new(bounds: TopBounds, ledger: &Rc<Ledger>) -> TopRows {
        let rows = BinaryHeap::new();
        TopRows { bounds, rows, bytes: 0, largest: 0, ledger: Rc::clone(ledger) }
    }

    fn add(&mut self, row: OutputRow) -> Result<(), QueryError> {
        self.ledger.keep(row.footprint())?;
        self.bytes += row.text.len();
        self.largest = self.largest.max(row.text.len());
        self.rows.push(row);
        while let Some(last) = self.rows.peek() {
            let before = self.bytes - last.text.len();
            if !self.bounds.is_beyond(self.rows.len(), before, self.largest) {
                break;
            }
            self.bytes = before;
            self.ledger.release(last.footprint());
            self.rows.pop();
        }
        Ok(())
    }
}
