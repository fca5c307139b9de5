//! Rows that come in their order as items are met along an index, until the page is full
//! or has cost enough.

use std::ops::ControlFlow;

use index::EntryEnd;
use query::STEPS_MAX;

use super::Filled;
use super::sheet::{More, Sheet};
use super::source::{Made, Source};
use super::stream::LOOK_AHEAD_MAX;
use crate::query::PageQuery;
use crate::query::cursor::{Past, Place};
use crate::query::point::{PLACE_BYTES_MAX, Point};

pub(super) fn fill(source: &mut Source<'_>, sheet: &mut Sheet<'_>) -> Filled {
    let run = &mut source.run(STEPS_MAX);
    let (mut trail, mut looked_ahead) = (Trail::new(source), 0);
    loop {
        let (mut is_hit, mut more) = (false, More::Continue(()));
        let met = source.next_in_order(run, &mut |row| {
            is_hit = true;
            more = trail.offer(sheet, row);
            Ok(if more.is_break() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        let Some(end) = met else { return Ok(None) };
        sheet.hits += u64::from(is_hit);
        if let More::Break(place) = more {
            return Ok(place);
        }
        trail.meet(end);
        looked_ahead += u64::from(sheet.is_full());
        if !source.may_go_on(run) || looked_ahead > LOOK_AHEAD_MAX {
            return Ok(Some(trail.place()));
        }
    }
}

/// Where a page has come to in the order of the query.
pub(super) struct Trail<'p> {
    query: &'p PageQuery,
    point: Point,
    /// What the last row is sorted by, where that tells that all rows sorted by the same are
    /// behind.
    keys: Option<Vec<u8>>,
    by_keys: bool,
}

impl<'p> Trail<'p> {
    pub(super) fn new(source: &Source<'p>) -> Trail<'p> {
        let point = source.query.past().map(|past| past.point.clone());
        let point = point.unwrap_or_default();
        Trail { query: source.query, point, keys: None, by_keys: false }
    }

    /// One that ends behind all items that are sorted by the same, where it can: the item
    /// that a row is from may be gone when another has the same row.
    pub(super) fn by_keys(source: &Source<'p>) -> Trail<'p> {
        Trail { by_keys: true, ..Trail::new(source) }
    }

    /// Offers a row to the page.
    pub(super) fn offer(&mut self, sheet: &mut Sheet<'_>, row: Made) -> More {
        let keys = self.by_keys.then(|| row.keys().to_vec());
        let Made { place, part, text, .. } = row;
        sheet.offer((part, text), || self.place_before(keys.as_deref()))?;
        self.point = Point::behind(&place, &self.point);
        self.keys = keys;
        More::Continue(())
    }

    /// The place behind everything that was passed, before a row with these keys.
    fn place_before(&self, next: Option<&[u8]>) -> Place {
        let is_short = |keys: &&Vec<u8>| keys.len() <= PLACE_BYTES_MAX;
        match self.keys.as_ref().filter(is_short) {
            Some(keys) if next != Some(keys) => {
                Place::Past(Past::new(&self.query.scope, Point::past(keys.clone())))
            }
            Some(_) | None => self.place(),
        }
    }

    /// Goes to where an entry ends.
    pub(super) fn meet(&mut self, EntryEnd { place, past }: EntryEnd) {
        self.point = Point { place, past, given: None };
    }

    /// The place behind everything that was passed.
    pub(super) fn place(&self) -> Place {
        Place::Past(Past::new(&self.query.scope, self.point.clone()))
    }
}
