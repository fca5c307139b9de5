//! Groups, and rows that are all different, along an index in the order of whose entries their
//! values are, until the page is full or has cost enough.
//!
//! Items with the same values are neighbours there, so rows are whole as soon as the next
//! values come. Of rows that are all different one item is looked at, where entries tell its
//! values.

use super::ordered::Trail;
use super::sheet::{More, Sheet};
use super::source::Source;
use super::stream::LOOK_AHEAD_MAX;
use super::{Filled, LONG_STEPS_MAX};

pub(super) fn fill(source: &mut Source<'_>, sheet: &mut Sheet<'_>) -> Filled {
    let run = &mut source.run(LONG_STEPS_MAX);
    let mut trail = Trail::new(source);
    loop {
        let Some((rows, end)) = source.next_values(run)? else { return Ok(None) };
        for row in rows {
            sheet.hits += 1;
            source.ledger.release(row.bytes());
            if let More::Break(place) = trail.offer(sheet, row) {
                return Ok(place);
            }
        }
        trail.meet(end);
        if sheet.is_full() {
            let has_more = source.candidates.has_more(LOOK_AHEAD_MAX)?;
            return Ok(has_more.then(|| trail.place()));
        }
        if !source.may_go_on(run) {
            return Ok(Some(trail.place()));
        }
    }
}
