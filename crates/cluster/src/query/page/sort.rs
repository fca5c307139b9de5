//! The first rows behind the cursor, sorted out of all there are.

use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::rc::Rc;

use super::ordered::Trail;
use super::sheet::Sheet;
use super::source::{Kept, MORE, Source};
use super::{Filled, LONG_STEPS_MAX};

pub(super) fn fill(source: &mut Source<'_>, sheet: &mut Sheet<'_>) -> Filled {
    let wanted = sheet.wanted();
    let (mut first, ledger) = (BinaryHeap::new(), Rc::clone(&source.ledger));
    // Of these some were given, and which ones is known when all are there.
    let (mut among, mut rows) = (Kept::new(&ledger), Vec::new());
    source.each_placed(&mut source.run(LONG_STEPS_MAX), |source, row| {
        if source.is_among(&row) {
            return among.add(row).map(ControlFlow::Continue);
        }
        ledger.keep(row.bytes())?;
        first.push(row);
        if first.len() > wanted {
            ledger.release(first.pop().map_or(0, |last| last.bytes()));
        }
        MORE
    })?;
    rows.append(&mut source.without_given(among.sorted()));
    rows.append(&mut first.into_sorted_vec());
    let mut trail = Trail::new(source);
    let more = rows.into_iter().try_for_each(|row| {
        sheet.hits += 1;
        trail.offer(sheet, row)
    });
    Ok(more.break_value().flatten())
}
