//! Rows that come as their items are met, in no order, until the page is full or has cost
//! enough.

use std::ops::ControlFlow;

use query::STEPS_MAX;

use super::Filled;
use super::sheet::{More, Sheet};
use super::source::Source;
use super::trail::Trail;

/// Items that are looked at to see whether there is another row behind a full page.
pub(super) const LOOK_AHEAD_MAX: u64 = 32;

pub(super) fn fill(source: &mut Source<'_>, sheet: &mut Sheet<'_>) -> Filled {
    let run = &mut source.run(STEPS_MAX);
    let (mut trail, mut looked_ahead) = (Trail::new(source), 0);
    loop {
        let (mut is_hit, mut more) = (false, More::Continue(()));
        let met = source.next(run, &mut |spot, row| {
            is_hit = true;
            more = trail.offer(sheet, spot, row);
            Ok(if more.is_break() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        let Some(spot) = met else { return Ok(None) };
        sheet.hits += u64::from(is_hit);
        if let More::Break(place) = more {
            return Ok(place);
        }
        if !is_hit {
            trail.meet(&spot);
        }
        looked_ahead += u64::from(sheet.is_full());
        if source.may_go_on(run) && looked_ahead <= LOOK_AHEAD_MAX {
            continue;
        }
        if !spot.position.cut {
            return Ok(Some(trail.behind()));
        }
        // The next page would begin with the same items.
        source.go_on_to_the_end()?;
    }
}
