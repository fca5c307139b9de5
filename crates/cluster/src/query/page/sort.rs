//! The first rows behind the cursor, sorted out of all there are.

use std::collections::BinaryHeap;
use std::rc::Rc;

use super::sheet::Sheet;
use super::source::Source;
use super::trail::Trail;
use super::{Filled, LONG_STEPS_MAX};
use crate::query::cursor::Position;

pub(super) fn fill(source: &mut Source<'_>, sheet: &mut Sheet<'_>) -> Filled {
    let resumed = source.resumed();
    let given = resumed.and_then(|resumed| resumed.rows).unwrap_or_default();
    let wanted = sheet.wanted_behind(given.into());
    let (mut first, ledger) = (BinaryHeap::new(), Rc::clone(&source.ledger));
    source.each_placed(&mut source.run(LONG_STEPS_MAX), |row| {
        if resumed.is_none_or(|resumed| resumed.is_before(&row.place)) {
            ledger.keep(row.bytes())?;
            first.push(row);
            if first.len() > wanted {
                ledger.release(first.pop().map_or(0, |last| last.bytes()));
            }
        }
        Ok(())
    })?;
    let mut trail = Trail::new(source);
    let more = first.into_sorted_vec().into_iter().try_for_each(|row| {
        sheet.hits += 1;
        trail.offer(sheet, &source.spot(Position::of(&row.place)), row)
    });
    Ok(more.break_value().flatten())
}
