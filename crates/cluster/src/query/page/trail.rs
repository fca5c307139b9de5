//! Where a page has come to, among items that are met one after the other.

use std::rc::Rc;

use model::epk::EpkRange;
use partition::ScanOrder;

use super::sheet::{More, Sheet};
use super::source::{Made, Source};
use crate::query::cursor::{Behind, Place, Position};

/// A place on the way to the items.
#[derive(Clone)]
pub(super) struct Spot {
    /// The part of the ring that is being read.
    pub(super) stretch: Rc<EpkRange>,
    pub(super) position: Position,
    /// How many of the rows there were given on the pages before.
    pub(super) given: u32,
}

/// The last row, or item without one, that was passed.
pub(super) struct Trail {
    way: ScanOrder,
    last: Spot,
    /// Rows at its place so far.
    rows: u32,
}

impl Trail {
    pub(super) fn new(source: &Source<'_>) -> Trail {
        Trail { way: source.choice.way(), last: source.spot(Position::default()), rows: 0 }
    }

    /// Offers a row to the page, unless one before has it.
    pub(super) fn offer(&mut self, sheet: &mut Sheet<'_>, spot: &Spot, row: Made) -> More {
        let rows = self.rows_at(spot);
        if rows >= spot.given {
            sheet.offer((row.part, row.text), || self.before(&spot.position))?;
        }
        self.pass(spot, rows + 1);
        More::Continue(())
    }

    /// Goes past an item that gives no row.
    pub(super) fn meet(&mut self, spot: &Spot) {
        self.pass(spot, self.rows_at(spot));
    }

    /// The place behind everything that was passed.
    pub(super) fn behind(&self) -> Place {
        self.place(None)
    }

    /// The place behind the last row, if the next one is there.
    fn before(&self, next: &Position) -> Place {
        let last = &self.last.position;
        let may_have_more = last.key == next.key || last.cut;
        self.place(may_have_more.then_some(self.rows))
    }

    fn place(&self, rows: Option<u32>) -> Place {
        let Spot { stretch, position, .. } = self.last.clone();
        let position = Position { rows, ..position };
        Place::Behind(Behind { stretch: EpkRange::clone(&stretch), way: self.way, position })
    }

    fn rows_at(&self, spot: &Spot) -> u32 {
        if self.last.position.key == spot.position.key { self.rows } else { 0 }
    }

    fn pass(&mut self, spot: &Spot, rows: u32) {
        (self.last, self.rows) = (spot.clone(), rows);
    }
}
