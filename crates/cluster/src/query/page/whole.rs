//! Results that are made as a whole: each of their rows depends on all items.
//!
//! Nothing is kept between pages, so each page makes the whole result again and leaves
//! out the rows that were given. Which ones these are is told by what they are: groups by
//! their keys, rows that are all different by their values, in the order of the query if it
//! has one. So what is written between two pages neither repeats nor hides another row.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::rc::Rc;

use query::{Ledger, QueryError, Row, Run, STEPS_MAX};

use super::ordered::Trail;
use super::sheet::{More, Sheet};
use super::source::{Kept, MORE, Made, PACE_CANDIDATES, ROW_BYTES, Source};
use super::{Filled, LONG_STEPS_MAX};
use crate::query::cursor::Place;
use crate::query::point::Point;
use crate::query::stopwatch::{Part, Stopwatch};

/// Steps of a query over all documents at once, in which nobody looks at the clock.
const GATHERED_STEPS_MAX: usize = STEPS_MAX * 5;

/// Rows that differ from each other: the first ones behind the cursor, in the order of their
/// values. Where any will do and all of them fit on the page, no more are looked for.
pub(super) fn distinct(source: &mut Source<'_>, sheet: &mut Sheet<'_>) -> Filled {
    let is_unordered = source.query.bound.order().is_empty();
    let enough = sheet.last_page_rows().filter(|_| is_unordered);
    let mut first = First::new(source, sheet);
    source.each_placed(&mut source.run(LONG_STEPS_MAX), |_, row| {
        if first.wants(&row.place) {
            first.add(row)?;
        }
        let is_enough = enough.is_some_and(|(rows, bytes)| first.has(rows, bytes));
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(first.fill(source, sheet))
}

/// The first of each, in the order of the query. What was given before is not again.
pub(super) fn distinct_in_order(source: &mut Source<'_>, sheet: &mut Sheet<'_>) -> Filled {
    let run = &mut source.run(LONG_STEPS_MAX);
    let mut distinct = Distinct::new(&source.ledger);
    let mut results = Results { trail: Trail::by_keys(source), ..Results::new(source) };
    if source.choice.ordered {
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue() {
            let met = source.next_in_order(run, &mut |row| {
                if distinct.is_new(&row)? {
                    flow = results.take(sheet, row);
                }
                Ok(flow)
            })?;
            if met.is_none() {
                break;
            }
            source.keep_pace(run)?;
        }
    } else {
        let mut all = Kept::new(&source.ledger);
        source.each_placed(run, |_, row| all.add(row).map(ControlFlow::Continue))?;
        return first_of_each(source, sheet, all, results);
    }
    Ok(results.finish(sheet))
}

/// The first of each, of rows that are all there.
fn first_of_each(
    source: &Source<'_>,
    sheet: &mut Sheet<'_>,
    all: Kept,
    mut results: Results<'_>,
) -> Filled {
    let mut distinct = Distinct::new(&source.ledger);
    for row in all.sorted() {
        source.ledger.release(row.bytes());
        if distinct.is_new(&row)? && results.take(sheet, row).is_break() {
            break;
        }
    }
    Ok(results.finish(sheet))
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
    if bound.is_distinct() && bound.orders_groups() {
        return distinct_groups(source, &mut run, sheet);
    }
    let mut first = First::new(source, sheet);
    let _ = run.finish(&mut |row: Row<'_, '_>| {
        let place = source.value_place(&row)?;
        if !first.wants(&place) {
            return MORE;
        }
        let Some(text) = source.text(&row)? else { return MORE };
        first.add(Made { place, part: 0, text, identity: String::new() })?;
        MORE
    })?;
    Ok(first.fill(source, sheet))
}

/// The first of groups whose rows are the same, in the order of the query.
fn distinct_groups(source: &Source<'_>, run: &mut Run<'_>, sheet: &mut Sheet<'_>) -> Filled {
    let mut all = Kept::new(&source.ledger);
    let _ = run.finish(&mut |row: Row<'_, '_>| {
        let Some(text) = source.text(&row)? else { return MORE };
        let (place, identity) = (source.value_place(&row)?, row.identity());
        all.add(Made { place, part: 0, text, identity }).map(ControlFlow::Continue)
    })?;
    first_of_each(source, sheet, all, Results::new(source))
}

/// The first rows behind the cursor, of many that are told apart by their places.
struct First<'p> {
    rows: BTreeMap<Vec<u8>, Made>,
    wanted: usize,
    text_bytes: usize,
    point: Option<&'p Point>,
    /// Of these some were given, and which ones is known when all are there.
    among: BTreeMap<Vec<u8>, Made>,
    ledger: Rc<Ledger>,
}

impl<'p> First<'p> {
    fn new(source: &Source<'p>, sheet: &Sheet<'_>) -> First<'p> {
        let point = source.query.past().map(|past| &past.point);
        let (rows, among) = (BTreeMap::new(), BTreeMap::new());
        let ledger = Rc::clone(&source.ledger);
        First { rows, wanted: sheet.wanted(), text_bytes: 0, point, among, ledger }
    }

    /// Whether a row is one of them, as far as is known.
    fn wants(&self, place: &[u8]) -> bool {
        let is_last = || self.rows.last_key_value().is_some_and(|(last, _)| **last < *place);
        let is_beyond = self.rows.len() >= self.wanted && is_last();
        let is_given = self.point.is_some_and(|point| point.is_behind(place));
        let is_there = self.rows.contains_key(place) || self.among.contains_key(place);
        !is_beyond && !is_given && !is_there
    }

    fn add(&mut self, row: Made) -> Result<(), QueryError> {
        let bytes = |row: &Made| row.bytes() + row.place.len();
        self.ledger.keep(bytes(&row))?;
        if self.point.is_some_and(|point| point.is_among(&row.place)) {
            self.among.insert(row.place.clone(), row);
            return Ok(());
        }
        self.text_bytes += row.text.len();
        self.rows.insert(row.place.clone(), row);
        if self.rows.len() > self.wanted {
            self.ledger.release(self.rows.pop_last().map_or(0, |(_, last)| bytes(&last)));
        }
        Ok(())
    }

    /// Whether there are so many, and no more than so many bytes of them.
    fn has(&self, rows: usize, bytes: usize) -> bool {
        self.rows.len() >= rows && self.text_bytes <= bytes
    }

    /// Puts them on the page. Says where the next one begins.
    fn fill(self, source: &Source<'_>, sheet: &mut Sheet<'_>) -> Option<Place> {
        let mut trail = Trail::new(source);
        let among = source.without_given(self.among.into_values().collect());
        let more = among
            .into_iter()
            .chain(self.rows.into_values())
            .try_for_each(|row| trail.offer(sheet, row));
        sheet.hits = sheet.rows.len() as u64;
        more.break_value().flatten()
    }
}

/// The rows of a result in the order of their places, from the cursor on.
struct Results<'p> {
    point: Option<&'p Point>,
    trail: Trail<'p>,
    /// Rows of which the cursor does not tell, one by one, which were given.
    held: Vec<Made>,
    rest: Option<Place>,
}

impl<'p> Results<'p> {
    fn new(source: &Source<'p>) -> Results<'p> {
        let point = source.query.past().map(|past| &past.point);
        Results { point, trail: Trail::new(source), held: Vec::new(), rest: None }
    }

    fn is_behind(&self, place: &[u8]) -> bool {
        self.point.is_some_and(|point| point.is_behind(place))
    }

    /// Takes the next row; whether there is room for more.
    fn take(&mut self, sheet: &mut Sheet<'_>, row: Made) -> ControlFlow<()> {
        if self.is_behind(&row.place) {
            return ControlFlow::Continue(());
        }
        if self.point.is_some_and(|point| point.is_among(&row.place)) {
            self.held.push(row);
            return ControlFlow::Continue(());
        }
        self.release(sheet)?;
        self.put(sheet, row)
    }

    /// Gives the rows that were held, once all of them are there.
    fn release(&mut self, sheet: &mut Sheet<'_>) -> ControlFlow<()> {
        let held = std::mem::take(&mut self.held);
        let places = held.iter().map(|row| &*row.place);
        let done = self.point.map_or(0, |point| point.done(places));
        held.into_iter().skip(done).try_for_each(|row| self.put(sheet, row))
    }

    fn put(&mut self, sheet: &mut Sheet<'_>, row: Made) -> ControlFlow<()> {
        match self.trail.offer(sheet, row) {
            More::Continue(()) => ControlFlow::Continue(()),
            More::Break(rest) => {
                self.rest = rest;
                ControlFlow::Break(())
            }
        }
    }

    fn finish(mut self, sheet: &mut Sheet<'_>) -> Option<Place> {
        let _ = self.release(sheet);
        sheet.hits = sheet.rows.len() as u64;
        self.rest
    }
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

/// The rows of a whole result that come behind so many that were given, put on the page one
/// by one: the result itself is never there at once. They have nothing else in common by
/// which the last one could be found again.
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

/// What rows are compared with.
struct Distinct {
    seen: BTreeSet<String>,
    ledger: Rc<Ledger>,
}

impl Distinct {
    fn new(ledger: &Rc<Ledger>) -> Distinct {
        Distinct { seen: BTreeSet::new(), ledger: Rc::clone(ledger) }
    }

    fn is_new(&mut self, row: &Made) -> Result<bool, QueryError> {
        if self.seen.contains(&row.identity) {
            return Ok(false);
        }
        self.ledger.keep(row.identity.len() + ROW_BYTES)?;
        Ok(self.seen.insert(row.identity.clone()))
    }
}
