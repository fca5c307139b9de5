//! Results that are made as a whole: each of their rows depends on all items.
//!
//! Nothing is kept between pages, so each page makes the whole result again and leaves
//! out the rows that were given.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use query::{QueryError, Run, STEPS_MAX};

use super::sheet::Sheet;
use super::source::{Kept, MORE, Made, PACE_CANDIDATES, ROW_BYTES, Source, check_kept};
use super::{Filled, LONG_STEPS_MAX};
use crate::query::cursor::Place;

/// Steps of a query over all documents at once, in which nobody looks at the clock.
const GATHERED_STEPS_MAX: usize = STEPS_MAX * 5;

/// Rows that differ from all before them.
pub(super) fn distinct(source: &mut Source<'_, '_>, sheet: &mut Sheet<'_>) -> Filled {
    let run = &mut Run::new(&source.query.bound, LONG_STEPS_MAX);
    let (mut distinct, wanted) = (Distinct::default(), sheet.wanted_behind(sheet.given));
    if source.choice.ordered {
        while distinct.rows.len() < wanted {
            let met =
                source.next(run, &mut |_, row| distinct.add(row).map(ControlFlow::Continue))?;
            if met.is_none() {
                break;
            }
            source.keep_pace(run)?;
        }
    } else {
        let mut all = Kept::default();
        source.each_placed(run, |row| all.add(row))?;
        all.sorted().into_iter().try_for_each(|row| distinct.add(row))?;
    }
    Ok(put_behind(sheet, sheet.skip, distinct.rows))
}

/// One row of all items, or of each group.
pub(super) fn aggregate(source: &mut Source<'_, '_>, sheet: &mut Sheet<'_>) -> Filled {
    let bound = &source.query.bound;
    let mut run = Run::new(bound, LONG_STEPS_MAX);
    if source.choice.exact && bound.counts_documents() {
        while let Some(count) = source.candidates.count(PACE_CANDIDATES)? {
            run.add_documents(count);
            source.go_on_to_the_end()?;
        }
    } else {
        while let Some((_, candidate)) = source.candidates.next()? {
            if let Some(item) = &candidate.item {
                let _ = run.document(item.json(), &mut |_| MORE)?;
            }
            source.keep_pace(&run)?;
        }
    }
    let rows = run.finish()?.into_iter().map(|row| (0, row.to_string()));
    Ok(put_behind(sheet, sheet.skip, rows))
}

/// Runs the query over all documents at once, where it must see all of them or none.
pub(super) fn gather(source: &mut Source<'_, '_>, sheet: &mut Sheet<'_>) -> Filled {
    let bound = &source.query.bound;
    let (mut items, mut bytes) = (Vec::new(), 0);
    while bound.reads_documents()
        && let Some((_, candidate)) = source.candidates.next()?
    {
        if let Some(item) = candidate.item {
            bytes += item.text.len() + ROW_BYTES;
            check_kept(bytes)?;
            items.push(item);
        }
        source.go_on_to_the_end()?;
    }
    let documents = items.iter().map(|item| item.json());
    let rows = bound.execute_within(documents, GATHERED_STEPS_MAX)?;
    // OFFSET has been applied to them.
    Ok(put_behind(sheet, 0, rows.into_iter().map(|row| (0, row.to_string()))))
}

/// Puts the next rows of a whole result on the page: those behind the ones that OFFSET
/// leaves out, and behind the ones that were given.
fn put_behind(
    sheet: &mut Sheet<'_>,
    offset: u64,
    rows: impl IntoIterator<Item = (usize, String)>,
) -> Option<Place> {
    let before = usize::try_from(sheet.given.saturating_add(offset)).unwrap_or(usize::MAX);
    let mut rows = rows.into_iter().skip(before);
    let more = rows.try_for_each(|row| sheet.put(row, || Place::Again));
    sheet.hits = sheet.rows.len() as u64;
    more.break_value().flatten()
}

#[derive(Default)]
struct Distinct {
    seen: BTreeSet<String>,
    rows: Vec<(usize, String)>,
    bytes: usize,
}

impl Distinct {
    fn add(&mut self, row: Made) -> Result<(), QueryError> {
        let bytes = row.text.len() + row.identity.len() + ROW_BYTES;
        if self.seen.insert(row.identity) {
            self.rows.push((row.part, row.text));
            self.bytes += bytes;
        }
        check_kept(self.bytes)
    }
}
