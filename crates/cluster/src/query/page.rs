//! From candidates to rows.
//!
//! Most queries *stream*: what a candidate gives is a row of the page, until the page
//! is full, or there is no more in its portion (`portion.rs`). Where no index has the order that is asked for, the first rows behind the
//! cursor are *sorted* out of all. And what must see everything first (groups,
//! aggregates, DISTINCT) is made *again* for each page.

use std::collections::{BTreeSet, BinaryHeap};
use std::ops::ControlFlow;

use bytes::Bytes;
use index::encode_order;
use model::charge::Scanned;
use model::epk::EpkRange;
use model::position::Timestamp;
use partition::{Candidate, Choice, Way};
use query::{Bound, QueryError, Row, Run, STEPS_MAX};

use super::candidates::Candidates;
use super::cursor::{Cursor, CursorError, Place, Position};
use super::layout::{Layout, Scene};
use super::portion::Portion;
use super::threads::Pace;
use super::{PageQuery, QueryFailure, QueryPage, QueryReport};
use crate::cluster::Served;
use crate::container::Container;

/// Candidates between two looks at the clock, and steps: a hundredth of a second.
const PACE_CANDIDATES: u64 = 16;
const PACE_STEPS: usize = STEPS_MAX / 100;

/// Candidates that are looked at to see whether there is another row behind a full page.
const LOOK_AHEAD_MAX: u64 = 32;

/// Steps of a query that cannot stop half-way. It is stopped by the clock long before.
const LONG_STEPS_MAX: usize = STEPS_MAX * 1_000;

/// Steps of a query over all documents at once, in which nobody looks at the clock.
const GATHERED_STEPS_MAX: usize = STEPS_MAX * 5;

/// Bytes of rows that are kept while they are sorted or compared.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What a kept row takes besides its texts.
const ROW_BYTES: usize = 64;

/// Answers a page.
pub(super) fn answer(
    container: &Container,
    now: Timestamp,
    mut query: PageQuery,
    pace: &mut Pace<'_>,
) -> Result<QueryPage, QueryFailure> {
    if query.after.as_ref().is_some_and(|after| after.query != query.fingerprint) {
        return Err(CursorError::OtherQuery.into());
    }
    let portion = if is_in_any_order(&query.bound) {
        let place = query.after.as_ref().map(|after| &after.place);
        Portion::next(&container.layout().0, &query.within, place)
    } else {
        Portion::whole(&query.within)
    };
    query.within = portion.within;
    let query = &query;
    let layout = Layout::of(container, now, &query.within)?;
    let scene = Scene { layout: &layout, query };
    let choice = match layout.parts.first() {
        Some(part) => part.reader.choose((&query.bound, query.approach), &scene, came(query))??,
        None => Choice::nothing(),
    };
    let choosing = pace.elapsed();
    let mut pager = Pager::new(query, &layout, &choice, pace);
    let rest = pager.fill()?;
    let rest =
        rest.or_else(|| pager.cursor(Place::From(portion.beyond.filter(|_| pager.left() > 0)?)));
    let mut page = pager.finish(rest);
    page.report.times.choosing = choosing;
    page.report.times.total = pace.elapsed();
    Ok(page)
}

/// Whether rows may come as they are met: neither an order nor other rows matter to them.
fn is_in_any_order(bound: &Bound) -> bool {
    let is_of_all = !bound.reads_documents() || bound.gathers_documents() || bound.is_aggregated();
    !is_of_all && !bound.is_distinct() && bound.order().is_empty()
}

/// The way that the page before went, and a key on it.
fn came(query: &PageQuery) -> Option<(Way, &[u8])> {
    match query.after.as_ref().map(|after| &after.place) {
        Some(Place::Behind { way, position, .. }) => Some((*way, &position.key)),
        Some(Place::Again | Place::From(_)) | None => None,
    }
}

struct Pager<'p, 't> {
    query: &'p PageQuery,
    layout: &'p Layout,
    choice: &'p Choice,
    candidates: Candidates<'p>,
    pace: &'p mut Pace<'t>,
    /// Rows to leave out before the first one.
    skip: u64,
    /// Rows that were given on this page and the ones before.
    given: u64,
    rows: Vec<Bytes>,
    row_bytes: usize,
    /// Bytes that each partition gave.
    output: Vec<u64>,
    hits: u64,
    /// Where the page before ended.
    resumed: Option<Position>,
    /// The last place that was met, and how many rows there were at it.
    last: Option<(Position, u32)>,
    /// The stretch that it is in: the next row may already be in another one.
    last_stretch: EpkRange,
    /// Steps that were left at the last look at the clock.
    paced_at: usize,
}

/// A row.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Made {
    text: String,
    /// What DISTINCT compares; empty without it.
    identity: String,
    /// What tells it from others at its position; empty where the position does.
    mark: Vec<u8>,
}

/// A row with its place in the order and the partition it is from.
type Kept = (Vec<u8>, usize, Made);

/// What became of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Yes,
    /// The page is full: the row is for the next one.
    No,
    /// It was the last one that is wanted.
    Last,
}

impl<'p, 't> Pager<'p, 't> {
    fn new(
        query: &'p PageQuery,
        layout: &'p Layout,
        choice: &'p Choice,
        pace: &'p mut Pace<'t>,
    ) -> Pager<'p, 't> {
        let (offset, _) = query.bound.window();
        let (skip, given) = match &query.after {
            Some(after) => (after.skip, after.given),
            None => (offset as u64, 0),
        };
        let (last_stretch, resumed) = match query.after.as_ref().map(|after| &after.place) {
            Some(Place::Behind { stretch, position, .. }) => {
                (stretch.clone(), Some(position.clone()))
            }
            Some(Place::Again | Place::From(_)) | None => (EpkRange::full(), None),
        };
        Pager {
            query,
            layout,
            choice,
            candidates: Candidates::new(query, layout, choice),
            pace,
            skip,
            given,
            rows: Vec::new(),
            row_bytes: 0,
            output: vec![0; layout.parts.len()],
            hits: 0,
            resumed,
            last: None,
            last_stretch,
            paced_at: usize::MAX,
        }
    }

    /// Makes the rows. Says where the next page begins.
    fn fill(&mut self) -> Result<Option<Cursor>, QueryFailure> {
        let bound = &self.query.bound;
        if self.left() == 0 {
            return Ok(None);
        }
        if !bound.reads_documents() || bound.gathers_documents() {
            return self.gathered();
        }
        if bound.is_aggregated() {
            return self.aggregated();
        }
        let sorts = !bound.order().is_empty() && !self.choice.ordered;
        match (bound.is_distinct(), sorts) {
            (true, true) => self.distinct_sorted(),
            (true, false) => self.distinct(),
            (false, true) => self.sorted(),
            (false, false) => self.streamed(),
        }
    }

    fn streamed(&mut self) -> Result<Option<Cursor>, QueryFailure> {
        let mut run = Run::new(&self.query.bound, STEPS_MAX);
        let mut looked_ahead = 0;
        while let Some((part, candidate)) = self.candidates.next()? {
            let (position, rows) = self.rows_of(&mut run, part, candidate)?;
            self.hits += u64::from(!rows.is_empty());
            if rows.is_empty() {
                self.meet(&position);
            }
            for row in rows {
                match self.offer(&position, part, row) {
                    Taken::Yes => {}
                    Taken::No => return Ok(self.behind_last(&position)),
                    Taken::Last => return Ok(None),
                }
            }
            looked_ahead += u64::from(self.is_full());
            let out_of_time =
                self.is_time_to_look(&run) && !self.pace.go_on(self.query.bounds.time);
            let costs_enough = self.candidates.met >= self.query.bounds.met;
            let is_long = looked_ahead > LOOK_AHEAD_MAX || run.steps_left() < STEPS_MAX / 2;
            if !(is_long || out_of_time || costs_enough) {
                continue;
            }
            if !position.is_shared() {
                return Ok(self.behind_last(&Position::default()));
            }
            // The next page would begin with the same items.
            self.pace.go_on_to_the_end()?;
        }
        Ok(None)
    }

    /// The rows of a candidate, in order, and their place. Where the index does not
    /// tell some candidates apart that the order does, those of all of them.
    fn rows_of(
        &mut self,
        run: &mut Run<'_>,
        part: usize,
        first: Candidate,
    ) -> Result<(Position, Vec<Made>), QueryFailure> {
        let ordered = !self.query.bound.order().is_empty();
        let reader = self.layout.parts.get(part).filter(|_| ordered).map(|part| &part.reader);
        let Some(cut) = reader.and_then(|reader| reader.cut_of(&first.position)) else {
            let position = Position::of(&first.position);
            let rows = self.rows_of_one(run, &first, &position)?;
            return Ok((position, rows));
        };
        let shared = first.position.get(..cut).unwrap_or_default().to_vec();
        let (mut kept, mut bytes, mut next) = (Vec::new(), 0, Some(first));
        while let Some(candidate) = next {
            self.keep_rows(run, part, &candidate, &mut |row| {
                bytes += size_of(&row);
                kept.push(row);
                check_kept(bytes)
            })?;
            self.pace.go_on_to_the_end()?;
            next = self.candidates.next_like(&shared)?;
        }
        kept.sort_unstable();
        self.find_mark(&shared, &kept);
        let marked = |(place, _, row): Kept| Made { mark: mark_of(&place).to_vec(), ..row };
        Ok((Position::cut(&shared), kept.into_iter().map(marked).collect()))
    }

    /// Counts anew how many rows were given of those at a place: others may have been
    /// written among them since.
    fn find_mark(&mut self, shared: &[u8], kept: &[Kept]) {
        let is_here = |resumed: &&mut Position| resumed.is_at(shared) && !resumed.mark.is_empty();
        let Some(resumed) = self.resumed.as_mut().filter(is_here) else { return };
        let last = kept.iter().rposition(|(place, ..)| mark_of(place) == resumed.mark);
        if let Some(last) = last {
            resumed.rows = u32::try_from(last + 1).ok();
        }
    }

    /// The rows of one candidate, or as many of them as fill the page and one more:
    /// a short query may make millions of rows of an item.
    fn rows_of_one(
        &self,
        run: &mut Run<'_>,
        candidate: &Candidate,
        position: &Position,
    ) -> Result<Vec<Made>, QueryFailure> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        let Some(item) = &candidate.item else { return Ok(rows) };
        let drops = !self.choice.keeps_undefined && !self.query.bound.order().is_empty();
        let unseen = self.unseen_at(position);
        let page = self.query.bounds.rows.saturating_sub(self.rows.len());
        let wanted = unseen.saturating_add(page).saturating_add(1);
        let mut sink = |row: Row<'_, '_>| {
            if drops && row.keys()?.iter().any(Option::is_none) {
                return Ok(ControlFlow::Continue(()));
            }
            let Some(made) = self.made(&row)? else { return Ok(ControlFlow::Continue(())) };
            if rows.len() < unseen {
                rows.push(Made::default());
                return Ok(ControlFlow::Continue(()));
            }
            bytes += made.text.len() + made.identity.len() + ROW_BYTES;
            rows.push(made);
            let fills_page =
                bytes > self.query.bounds.bytes && rows.len() > unseen.saturating_add(1);
            if self.query.bound.is_distinct() || (rows.len() < wanted && !fills_page) {
                check_kept(bytes)?;
                return Ok(ControlFlow::Continue(()));
            }
            Ok(ControlFlow::Break(()))
        };
        let _ = run.document(item.json(), &mut sink)?;
        Ok(rows)
    }

    /// How many rows from a place on are only counted: those that were given before,
    /// and those that OFFSET leaves out.
    fn unseen_at(&self, position: &Position) -> usize {
        if self.query.bound.is_distinct() {
            return 0;
        }
        let resumed = self.resumed.as_ref().filter(|resumed| resumed.is_at(&position.key));
        let passed = resumed.and_then(|resumed| resumed.rows).unwrap_or_default();
        let passed = u64::from(passed.saturating_sub(self.rows_at(position)));
        usize::try_from(passed.saturating_add(self.skip)).unwrap_or(usize::MAX)
    }

    fn made(&self, row: &Row<'_, '_>) -> Result<Option<Made>, QueryError> {
        let identity =
            || if self.query.bound.is_distinct() { row.identity() } else { String::new() };
        let made = |text| Made { text, identity: identity(), mark: Vec::new() };
        Ok(row.text()?.map(made))
    }

    /// Gives each row of a candidate to `keep`, with its place in the order: the sort
    /// keys, then the item, in the direction of the first key, then the row.
    fn keep_rows(
        &self,
        run: &mut Run<'_>,
        part: usize,
        candidate: &Candidate,
        keep: &mut dyn FnMut(Kept) -> Result<(), QueryError>,
    ) -> Result<(), QueryFailure> {
        let Some(item) = &candidate.item else { return Ok(()) };
        let ways: Vec<bool> = self.query.bound.order().iter().map(|key| key.descending).collect();
        let ordinal = item.ordinal.as_u64();
        let ordinal = if ways.first() == Some(&true) { !ordinal } else { ordinal };
        let mut number = 0_u32;
        let mut sink = |row: Row<'_, '_>| {
            number += 1;
            let keys = row.keys()?;
            let dropped = !self.choice.keeps_undefined && keys.iter().any(Option::is_none);
            if let Some(made) = self.made(&row)?.filter(|_| !dropped) {
                let mut place = Vec::new();
                for (key, descending) in keys.iter().zip(&ways) {
                    encode_order(key.as_ref(), *descending, &mut place);
                }
                place.extend(ordinal.to_be_bytes());
                place.extend(number.to_be_bytes());
                keep((place, part, made))?;
            }
            Ok(ControlFlow::Continue(()))
        };
        let _ = run.document(item.json(), &mut sink)?;
        Ok(())
    }

    /// The first rows behind the cursor, sorted out of all there are.
    fn sorted(&mut self) -> Result<Option<Cursor>, QueryFailure> {
        let resumed = self.resumed.clone();
        let passed = resumed.as_ref().and_then(|resumed| resumed.rows).unwrap_or_default();
        let wanted = self.skip.saturating_add(u64::from(passed));
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let wanted = wanted.saturating_add(self.query.bounds.rows).saturating_add(1);
        let (mut first, mut bytes) = (BinaryHeap::new(), 0);
        self.each_row(|row| {
            if !resumed.as_ref().is_none_or(|resumed| resumed.is_before(&row.0)) {
                return Ok(());
            }
            bytes += size_of(&row);
            first.push(row);
            if first.len() > wanted {
                bytes -= first.pop().as_ref().map_or(0, size_of);
            }
            check_kept(bytes)
        })?;
        for (key, part, row) in first.into_sorted_vec() {
            self.hits += 1;
            let position = Position::of(&key);
            match self.offer(&position, part, row) {
                Taken::Yes => {}
                Taken::No => return Ok(self.behind_last(&position)),
                Taken::Last => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Gives all rows of all candidates to `keep`, with their places in the order.
    fn each_row(
        &mut self,
        mut keep: impl FnMut(Kept) -> Result<(), QueryError>,
    ) -> Result<(), QueryFailure> {
        let mut run = Run::new(&self.query.bound, LONG_STEPS_MAX);
        while let Some((part, candidate)) = self.candidates.next()? {
            self.keep_rows(&mut run, part, &candidate, &mut keep)?;
            self.keep_pace(&run)?;
        }
        Ok(())
    }

    fn keep_pace(&mut self, run: &Run<'_>) -> Result<(), QueryFailure> {
        if self.is_time_to_look(run) {
            self.pace.go_on_to_the_end()?;
        }
        Ok(())
    }

    /// Whether enough was done since the last look at the clock.
    fn is_time_to_look(&mut self, run: &Run<'_>) -> bool {
        let left = run.steps_left();
        let many_steps = self.paced_at.saturating_sub(left) >= PACE_STEPS;
        let is_time = many_steps || self.candidates.met.is_multiple_of(PACE_CANDIDATES);
        if is_time {
            self.paced_at = left;
        }
        is_time
    }

    fn distinct(&mut self) -> Result<Option<Cursor>, QueryFailure> {
        let (offset, _) = self.query.bound.window();
        let wanted = self.given.saturating_add(offset as u64);
        let wanted = wanted.saturating_add(self.query.bounds.rows as u64).saturating_add(1);
        let mut run = Run::new(&self.query.bound, LONG_STEPS_MAX);
        let mut rows = Distinct::default();
        while let Some((part, candidate)) = self.candidates.next()? {
            let (_, made) = self.rows_of(&mut run, part, candidate)?;
            for row in made {
                rows.add(part, row)?;
            }
            if rows.rows.len() as u64 >= wanted {
                break;
            }
            self.keep_pace(&run)?;
        }
        Ok(self.again(rows.rows.into_iter()))
    }

    fn distinct_sorted(&mut self) -> Result<Option<Cursor>, QueryFailure> {
        let (mut all, mut bytes) = (Vec::new(), 0);
        self.each_row(|row| {
            bytes += size_of(&row);
            all.push(row);
            check_kept(bytes)
        })?;
        all.sort_unstable();
        let mut rows = Distinct::default();
        for (_, part, row) in all {
            rows.add(part, row)?;
        }
        Ok(self.again(rows.rows.into_iter()))
    }

    fn aggregated(&mut self) -> Result<Option<Cursor>, QueryFailure> {
        let mut run = Run::new(&self.query.bound, LONG_STEPS_MAX);
        if self.choice.exact && self.query.bound.counts_documents() {
            while let Some(count) = self.candidates.count(PACE_CANDIDATES)? {
                run.add_documents(count);
                self.pace.go_on_to_the_end()?;
            }
        } else {
            while let Some((_, candidate)) = self.candidates.next()? {
                let mut no_rows = |_: Row<'_, '_>| Ok(ControlFlow::Continue(()));
                if let Some(item) = &candidate.item {
                    let _ = run.document(item.json(), &mut no_rows)?;
                }
                self.keep_pace(&run)?;
            }
        }
        let rows = run.finish()?;
        Ok(self.again(rows.into_iter().map(|row| (0, row.to_string()))))
    }

    /// Runs the query over all documents at once, where it must see all of them or none.
    fn gathered(&mut self) -> Result<Option<Cursor>, QueryFailure> {
        let (mut items, mut bytes) = (Vec::new(), 0);
        while self.query.bound.reads_documents()
            && let Some((_, candidate)) = self.candidates.next()?
        {
            if let Some(item) = candidate.item {
                bytes += item.text.len() + ROW_BYTES;
                check_kept(bytes)?;
                items.push(item);
            }
            self.pace.go_on_to_the_end()?;
        }
        let documents = items.iter().map(|item| item.json());
        let rows = self.query.bound.execute_within(documents, GATHERED_STEPS_MAX)?;
        Ok(self.rest_of(self.given, rows.into_iter().map(|row| (0, row.to_string()))))
    }

    /// Takes one row in, unless the page is full.
    fn offer(&mut self, position: &Position, part: usize, row: Made) -> Taken {
        let met = self.rows_at(position);
        let given_before = |resumed: &Position| {
            resumed.is_at(&position.key) && met < resumed.rows.unwrap_or_default()
        };
        let Made { text, mark, .. } = row;
        if !self.resumed.as_ref().is_some_and(given_before) {
            if self.skip > 0 {
                self.skip -= 1;
            } else if self.is_full_for(&text) {
                return Taken::No;
            } else {
                self.give(part, text);
                if self.left() == 0 {
                    return Taken::Last;
                }
            }
        }
        self.pass(Position { mark, ..position.clone() }, met + 1);
        Taken::Yes
    }

    /// Remembers the place that was reached.
    fn pass(&mut self, position: Position, rows: u32) {
        self.last = Some((position, rows));
        if self.last_stretch != *self.candidates.stretch() {
            self.last_stretch = self.candidates.stretch().clone();
        }
    }

    /// How many rows there were at a place so far.
    fn rows_at(&self, position: &Position) -> u32 {
        let same = self.last.as_ref().filter(|(last, _)| last.key == position.key);
        same.map_or(0, |(_, rows)| *rows)
    }

    /// Goes past a candidate that gives no row.
    fn meet(&mut self, position: &Position) {
        self.pass(position.clone(), self.rows_at(position));
    }

    /// Gives the rows of a whole result that are next.
    fn again(&mut self, rows: impl Iterator<Item = (usize, String)>) -> Option<Cursor> {
        let (offset, _) = self.query.bound.window();
        self.rest_of(self.given.saturating_add(offset as u64), rows)
    }

    /// Gives the rows behind so many.
    fn rest_of(
        &mut self,
        before: u64,
        rows: impl Iterator<Item = (usize, String)>,
    ) -> Option<Cursor> {
        let before = usize::try_from(before).unwrap_or(usize::MAX);
        for (part, text) in rows.skip(before) {
            if self.is_full_for(&text) {
                return self.cursor(Place::Again);
            }
            self.hits += 1;
            self.give(part, text);
            if self.left() == 0 {
                return None;
            }
        }
        None
    }

    fn give(&mut self, part: usize, text: String) {
        self.given += 1;
        self.row_bytes += text.len();
        if let Some(output) = self.output.get_mut(part) {
            *output += text.len() as u64;
        }
        self.rows.push(text.into());
    }

    /// Rows that TOP or LIMIT still allow.
    fn left(&self) -> u64 {
        let (_, wanted) = self.query.bound.window();
        (wanted as u64).saturating_sub(self.given)
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= self.query.bounds.rows.max(1)
            || self.row_bytes >= self.query.bounds.bytes
    }

    /// Whether a row is for the next page. Each page has one, however long it is.
    fn is_full_for(&self, text: &str) -> bool {
        let is_over = self.row_bytes.saturating_add(text.len()) > self.query.bounds.bytes;
        self.is_full() || (is_over && !self.rows.is_empty())
    }

    /// The cursor behind the last row, or candidate, that was met. `next` is where the
    /// row stands that is for the next page; empty if there is none yet.
    fn behind_last(&self, next: &Position) -> Option<Cursor> {
        let (mut position, rows) = match &self.last {
            Some(last) => last.clone(),
            None => (self.resumed.clone()?, 0),
        };
        let is_group_done = next.key.is_empty() && position.is_group();
        let unfinished = position.key == next.key || position.cut;
        if self.last.is_some() {
            position.rows = (unfinished && !is_group_done).then_some(rows);
        }
        let stretch = self.last_stretch.clone();
        let way = self.choice.way();
        self.cursor(Place::Behind { stretch, way, position })
    }

    fn cursor(&self, place: Place) -> Option<Cursor> {
        let (query, skip, given) = (self.query.fingerprint, self.skip, self.given);
        Some(Cursor { query, skip, given, place })
    }

    fn finish(self, rest: Option<Cursor>) -> QueryPage {
        let mut report = QueryReport {
            access: self.choice.to_string(),
            hits: self.hits,
            rows: self.rows.len() as u64,
            row_bytes: self.row_bytes as u64,
            backwards: self.query.bound.order().first().is_some_and(|key| key.descending),
            usage: self.choice.usage.clone(),
            ..QueryReport::default()
        };
        let mut served = Vec::new();
        for (at, effort) in self.candidates.efforts() {
            let Some(part) = self.layout.parts.get(at) else { continue };
            report.entries += effort.entries;
            report.items += effort.items;
            report.bytes += effort.bytes;
            report.partitions.push(part.range);
            let output_bytes = self.output.get(at).copied().unwrap_or_default();
            let value = Scanned { items: effort.items, entries: effort.entries, output_bytes };
            served.push(Served { range: part.range, lsn: part.lsn, value });
        }
        QueryPage { rows: self.rows, rest, served, report }
    }
}

/// Rows that differ from all before them.
#[derive(Default)]
struct Distinct {
    seen: BTreeSet<String>,
    rows: Vec<(usize, String)>,
    bytes: usize,
}

impl Distinct {
    fn add(&mut self, part: usize, row: Made) -> Result<(), QueryError> {
        let bytes = row.text.len() + row.identity.len() + ROW_BYTES;
        if self.seen.insert(row.identity) {
            self.rows.push((part, row.text));
            self.bytes += bytes;
        }
        check_kept(self.bytes)
    }
}

/// What a place ends with: the item and the number of the row.
fn mark_of(place: &[u8]) -> &[u8] {
    const BYTES: usize = std::mem::size_of::<u64>() + std::mem::size_of::<u32>();
    place.get(place.len().saturating_sub(BYTES)..).unwrap_or_default()
}

fn size_of((key, _, row): &Kept) -> usize {
    key.len() + row.text.len() + row.identity.len() + ROW_BYTES
}

fn check_kept(bytes: usize) -> Result<(), QueryError> {
    let what = "bytes kept while sorting or comparing rows";
    if bytes > KEPT_BYTES_MAX {
        return Err(QueryError::Limit { what, limit: KEPT_BYTES_MAX });
    }
    Ok(())
}
