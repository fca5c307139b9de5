//! Results that are made as a whole: each of their rows depends on all items.
//!
//! Nothing is kept between pages, so each page makes the whole result again and leaves
//! out the rows that were given.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::rc::Rc;

use query::{Ledger, QueryError, Row, STEPS_MAX};

use super::sheet::Sheet;
use super::source::{Kept, MORE, Made, PACE_CANDIDATES, ROW_BYTES, Source};
use super::{Filled, LONG_STEPS_MAX};
use crate::query::cursor::Place;
use crate::query::stopwatch::{Part, Stopwatch};

/// Steps of a query over all documents at once, in which nobody looks at the clock.
const GATHERED_STEPS_MAX: usize = STEPS_MAX * 5;

/// Rows that differ from all before them.
pub(super) fn distinct(source: &mut Source<'_>, sheet: &mut Sheet<'_>) -> Filled {
    let run = &mut source.run(LONG_STEPS_MAX);
    let (mut distinct, wanted) = (Distinct::new(&source.ledger), sheet.wanted_behind(sheet.given));
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
        let mut all = Kept::new(&source.ledger);
        source.each_placed(run, |row| all.add(row))?;
        all.sorted().into_iter().try_for_each(|row| {
            source.ledger.release(row.bytes());
            distinct.add(row)
        })?;
    }
    Ok(put_behind(sheet, sheet.skip, distinct.rows))
}

/// One row of all items, or of each group.
pub(super) fn aggregate(source: &mut Source<'_>, sheet: &mut Sheet<'_>) -> Filled {
    let bound = &source.query.bound;
    let mut run = source.run(LONG_STEPS_MAX);
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
    let mut page = Behind::new(sheet, sheet.skip, source.watch);
    let _ = run.finish(&mut |row| page.take(&row))?;
    Ok(page.rest())
}

/// Runs the query over all documents at once, where it must see all of them or none.
pub(super) fn gather(source: &mut Source<'_>, sheet: &mut Sheet<'_>) -> Filled {
    let bound = &source.query.bound;
    let mut items = Vec::new();
    while bound.reads_documents()
        && let Some((_, candidate)) = source.candidates.next()?
    {
        if let Some(item) = candidate.item {
            source.ledger.keep(item.text.len() + ROW_BYTES)?;
            items.push(item);
        }
        source.go_on_to_the_end()?;
    }
    let documents = items.iter().map(|item| item.json());
    // OFFSET is applied to the rows before they come.
    let mut page = Behind::new(sheet, 0, source.watch);
    bound
        .execute_each(documents, GATHERED_STEPS_MAX, &source.ledger, &mut |row| page.take(&row))?;
    Ok(page.rest())
}

/// The rows of a whole result that come behind those that were given, put on the page one
/// by one: the result itself is never there at once.
struct Behind<'s, 'q> {
    sheet: &'s mut Sheet<'q>,
    /// Rows that are still left out.
    before: u64,
    rest: Option<Place>,
    watch: &'s Stopwatch<'s>,
}

impl<'s, 'q> Behind<'s, 'q> {
    fn new(sheet: &'s mut Sheet<'q>, offset: u64, watch: &'s Stopwatch<'s>) -> Behind<'s, 'q> {
        let before = sheet.given.saturating_add(offset);
        Behind { sheet, before, rest: None, watch }
    }

    fn take(&mut self, row: &Row<'_, '_>) -> Result<ControlFlow<()>, QueryError> {
        let text = self.watch.measure(Part::Writing, || row.text())?;
        let Some(text) = text else { return MORE };
        if self.before > 0 {
            self.before -= 1;
            return MORE;
        }
        match self.sheet.put((0, text), || Place::Again) {
            ControlFlow::Continue(()) => MORE,
            ControlFlow::Break(rest) => {
                self.rest = rest;
                Ok(ControlFlow::Break(()))
            }
        }
    }

    fn rest(self) -> Option<Place> {
        self.sheet.hits = self.sheet.rows.len() as u64;
        self.rest
    }
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

struct Distinct {
    seen: BTreeSet<String>,
    rows: Vec<(usize, String)>,
    ledger: Rc<Ledger>,
}

impl Distinct {
    fn new(ledger: &Rc<Ledger>) -> Distinct {
        Distinct { seen: BTreeSet::new(), rows: Vec::new(), ledger: Rc::clone(ledger) }
    }

    fn add(&mut self, row: Made) -> Result<(), QueryError> {
        let bytes = row.text.capacity() + row.identity.capacity() + ROW_BYTES;
        if self.seen.insert(row.identity) {
            self.ledger.keep(bytes)?;
            self.rows.push((row.part, row.text));
        }
        Ok(())
    }
}
