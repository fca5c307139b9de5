//! Where the rows of a page come from.
//!
//! Items are met one after the other, at a pace that lets other queries run, and a run of
//! the query makes rows of each. Rows are handed on one by one: a short query may make
//! millions of them of one item.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;
use std::rc::Rc;

use index::{EntryEnd, encode_order, encode_ordinal, values_place};
use model::position::Ordinal;
use partition::{AccessPlan, Candidate, Item};
use query::{Ledger, QueryError, Row, Run, STEPS_MAX};

use super::trail::Spot;
use crate::query::candidates::Candidates;
use crate::query::cursor::Position;
use crate::query::layout::Layout;
use crate::query::point::Point;
use crate::query::stopwatch::{Part, Stopwatch};
use crate::query::threads::Turn;
use crate::query::{PageQuery, QueryFailure};

/// Candidates between two looks at the clock, and steps: a hundredth of a second.
pub(super) const PACE_CANDIDATES: u64 = 16;
const PACE_STEPS: usize = STEPS_MAX / 100;

/// What a kept row takes besides its texts: a list that grows has up to twice the room
/// that it needs.
pub(super) const ROW_BYTES: usize = 2 * size_of::<Made>();

/// Whether whoever takes rows wants more.
type Flow = Result<ControlFlow<()>, QueryError>;

pub(super) const MORE: Flow = Ok(ControlFlow::Continue(()));

/// The items behind the cursor of a query.
pub(super) struct Source<'p> {
    pub(super) query: &'p PageQuery,
    pub(super) layout: &'p Layout,
    pub(super) choice: &'p AccessPlan,
    pub(super) candidates: Candidates<'p>,
    /// What the page keeps in memory.
    pub(super) ledger: Rc<Ledger>,
    turn: &'p Turn,
    pub(super) watch: &'p Stopwatch<'p>,
    /// Steps that were left at the last look at the clock.
    paced_at: usize,
    /// For each key of the order, whether it descends.
    order: Vec<bool>,
    /// Whether rows are told apart by their values, in the order of which they are then.
    is_by_value: bool,
    /// Rows are behind all of these.
    points: Vec<&'p Point>,
}

/// A row.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Made {
    /// Where it belongs in the order: the sort keys, then the item, in the direction of
    /// the first key, then the number of the row; or the values by which rows are told
    /// apart. Empty where rows need not be sorted.
    pub(super) place: Vec<u8>,
    /// The partition that it is from.
    pub(super) part: usize,
    pub(super) text: String,
    /// What DISTINCT compares where there is an order; empty otherwise.
    pub(super) identity: String,
}

impl<'p> Source<'p> {
    pub(super) fn new(
        query: &'p PageQuery,
        layout: &'p Layout,
        choice: &'p AccessPlan,
        ledger: Rc<Ledger>,
        (turn, watch): (&'p Turn, &'p Stopwatch<'p>),
        points: Vec<&'p Point>,
    ) -> Source<'p> {
        let candidates = Candidates::new(query, layout, choice, (&points, watch));
        let (order, is_by_value) = (query.descends(), query.value_order().is_some());
        Source {
            query,
            layout,
            choice,
            candidates,
            ledger,
            turn,
            watch,
            paced_at: usize::MAX,
            order,
            is_by_value,
            points,
        }
    }

    /// Goes to the next item and gives its rows to `sink`.
    pub(super) fn next(
        &mut self,
        run: &mut Run<'_>,
        sink: &mut dyn FnMut(&Spot, Made) -> Flow,
    ) -> Result<Option<Spot>, QueryFailure> {
        let Some((part, candidate)) = self.candidates.next()? else { return Ok(None) };
        let spot = self.spot(Position::of(&candidate.position));
        self.make(run, part, candidate.item.as_ref(), &mut |row| sink(&spot, row))?;
        Ok(Some(spot))
    }

    /// Goes to the next item along the index of the order and gives its rows to `sink`.
    /// Where entries do not tell items apart that the order does, it goes to all of them at
    /// once. Says where they end.
    pub(super) fn next_in_order(
        &mut self,
        run: &mut Run<'_>,
        sink: &mut dyn FnMut(Made) -> Flow,
    ) -> Result<Option<EntryEnd>, QueryFailure> {
        let Some((part, candidate)) = self.candidates.next()? else { return Ok(None) };
        let Some(along) = &self.choice.along else { return Ok(None) };
        let cut = along.cut_of(&candidate.position);
        let Some(shared) = cut.and_then(|cut| candidate.position.get(..cut)) else {
            let end = along.end(&candidate.position, &self.order);
            self.make(run, part, candidate.item.as_ref(), sink)?;
            return Ok(Some(end));
        };
        let shared = shared.to_vec();
        for row in self.group(run, part, candidate, &shared)? {
            if sink(row)?.is_break() {
                break;
            }
        }
        Ok(Some(along.end(&shared, &self.order)))
    }

    /// Goes to the next items along an index whose entries tell no difference between their
    /// values. Gives the rows that they make, in order, and says where they end.
    pub(super) fn next_values(
        &mut self,
        run: &mut Run<'_>,
    ) -> Result<Option<(Vec<Made>, EntryEnd)>, QueryFailure> {
        let Some((part, first)) = self.candidates.next()? else { return Ok(None) };
        let Some(along) = &self.choice.along else { return Ok(None) };
        let (shared, is_told) = along.values(&first.position);
        let end = along.end(shared, &self.order);
        let is_one = is_told && along.width() == self.order.len();
        let shared = shared.to_vec();
        let rows = if self.query.bound.is_aggregated() {
            self.groups_of(run, first, &shared)?
        } else {
            self.distinct_of(run, (part, first), (&shared, is_one))?
        };
        Ok(Some((rows, end)))
    }

    /// A run of the query that may take so many steps.
    pub(super) fn run(&self, steps: usize) -> Run<'p> {
        Run::within(&self.query.bound, steps, Rc::clone(&self.ledger))
    }

    /// Gives all rows of all items to `keep`, with their places in the order, for as long as
    /// it wants more.
    pub(super) fn each_placed(
        &mut self,
        run: &mut Run<'_>,
        mut keep: impl FnMut(&Self, Made) -> Flow,
    ) -> Result<(), QueryFailure> {
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue()
            && let Some((part, candidate)) = self.candidates.next()?
        {
            self.make(run, part, candidate.item.as_ref(), &mut |row| {
                flow = keep(self, row)?;
                Ok(flow)
            })?;
            self.keep_pace(run)?;
        }
        Ok(())
    }

    /// A place on the way, in the part of the ring that is being read.
    pub(super) fn spot(&self, position: Position) -> Spot {
        let resumed = self.query.behind().map(|behind| &behind.position);
        let resumed = resumed.filter(|resumed| resumed.is_at(&position.key));
        let given = resumed.and_then(|resumed| resumed.rows).unwrap_or_default();
        Spot { stretch: Rc::clone(self.candidates.stretch()), position, given }
    }

    /// Whether a page that can end anywhere may look at more: it has not cost enough.
    pub(super) fn may_go_on(&mut self, run: &Run<'_>) -> bool {
        let in_time = !self.is_time_to_look(run) || self.turn.go_on(self.query.bounds.time);
        let costs_enough = self.candidates.met >= self.query.bounds.met;
        in_time && !costs_enough && run.steps_left() >= STEPS_MAX / 2
    }

    /// Lets others run every now and then, where everything has to be looked at.
    pub(super) fn keep_pace(&mut self, run: &Run<'_>) -> Result<(), QueryFailure> {
        if self.is_time_to_look(run) { self.go_on_to_the_end() } else { Ok(()) }
    }

    pub(super) fn go_on_to_the_end(&mut self) -> Result<(), QueryFailure> {
        self.turn.go_on_to_the_end()
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

    /// The rows of all items at a place that several share, sorted.
    fn group(
        &mut self,
        run: &mut Run<'_>,
        part: usize,
        first: Candidate,
        shared: &[u8],
    ) -> Result<Vec<Made>, QueryFailure> {
        let (mut kept, mut next) = (Kept::new(&self.ledger), Some(first));
        while let Some(Candidate { item, .. }) = next {
            let mut sink = |row| kept.add(row).map(ControlFlow::Continue);
            self.make(run, part, item.as_ref(), &mut sink)?;
            self.go_on_to_the_end()?;
            next = self.candidates.next_like(shared)?;
        }
        Ok(self.without_given(kept.sorted()))
    }

    /// The groups of all items at a place.
    fn groups_of(
        &mut self,
        run: &mut Run<'_>,
        first: Candidate,
        shared: &[u8],
    ) -> Result<Vec<Made>, QueryFailure> {
        let mut next = Some(first);
        while let Some(Candidate { item, .. }) = next {
            if let Some(item) = &item {
                let _ = run.document(item.json(), &mut |_| MORE)?;
            }
            self.keep_pace(run)?;
            next = self.candidates.next_like(shared)?;
        }
        self.group_rows(run)
    }

    /// The rows of the groups so far that are behind the cursor, in order.
    fn group_rows(&self, run: &mut Run<'_>) -> Result<Vec<Made>, QueryFailure> {
        let mut kept = Kept::new(&self.ledger);
        let _ = run.finish(&mut |row| {
            let place = self.value_place(&row)?;
            if self.is_behind(&place) {
                return MORE;
            }
            let Some(text) = self.text(&row)? else { return MORE };
            let row = Made { place, part: 0, text, identity: String::new() };
            kept.add(row).map(ControlFlow::Continue)
        })?;
        Ok(self.without_given(kept.sorted()))
    }

    /// The rows of all items at a place that differ. If there can be only one, it is looked for
    /// no further than to the first item that has it.
    fn distinct_of(
        &mut self,
        run: &mut Run<'_>,
        (part, first): (usize, Candidate),
        (shared, is_one): (&[u8], bool),
    ) -> Result<Vec<Made>, QueryFailure> {
        let (mut rows, mut next, ledger) = (BTreeMap::new(), Some(first), Rc::clone(&self.ledger));
        while let Some(Candidate { item, .. }) = next {
            self.make(run, part, item.as_ref(), &mut |row| {
                // Texts of what is equal may differ.
                if let Entry::Vacant(place) = rows.entry(row.place.clone()) {
                    ledger.keep(row.bytes())?;
                    place.insert(row);
                }
                MORE
            })?;
            self.keep_pace(run)?;
            if is_one && !rows.is_empty() {
                self.candidates.skip(shared)?;
                break;
            }
            next = self.candidates.next_like(shared)?;
        }
        Ok(self.without_given(rows.into_values().collect()))
    }

    /// Leaves out those of the rows that the pages before gave, where the point behind them
    /// does not tell which these are: rows in order, all that are like the last of them.
    pub(super) fn without_given(&self, mut rows: Vec<Made>) -> Vec<Made> {
        for point in &self.points {
            let Some(first) = rows.iter().position(|row| point.is_among(&row.place)) else {
                continue;
            };
            let among = rows.iter().skip(first).map(|row| &*row.place);
            rows.drain(first..first + point.done(among));
        }
        rows
    }

    /// Whether a row may be one of those that only [`Source::without_given`] can tell.
    pub(super) fn is_among(&self, row: &Made) -> bool {
        self.points.iter().any(|point| point.is_among(&row.place))
    }

    /// Gives the rows of an item to `sink`, with their places if there is an order.
    fn make(
        &self,
        run: &mut Run<'_>,
        part: usize,
        item: Option<&Item>,
        sink: &mut dyn FnMut(Made) -> Flow,
    ) -> Result<(), QueryFailure> {
        let Some(item) = item else { return Ok(()) };
        let (is_distinct, mut number) = (self.query.bound.is_distinct(), 0_u32);
        let _ = run.document(item.json(), &mut |row: Row<'_, '_>| {
            number += 1;
            let place = self.place(&row, item.ordinal, number)?;
            if self.is_behind(&place) {
                return MORE;
            }
            let Some(text) = self.text(&row)? else { return MORE };
            let compares = is_distinct && !self.is_by_value;
            let identity = if compares { row.identity() } else { String::new() };
            sink(Made { place, part, text, identity })
        })?;
        Ok(())
    }

    /// The JSON text of a row; `None` drops it.
    pub(super) fn text(&self, row: &Row<'_, '_>) -> Result<Option<String>, QueryError> {
        self.watch.measure(Part::Writing, || row.text())
    }

    fn is_behind(&self, place: &[u8]) -> bool {
        self.points.iter().any(|point| point.is_behind(place))
    }

    /// Where a row belongs that is told from others by its values.
    pub(super) fn value_place(&self, row: &Row<'_, '_>) -> Result<Vec<u8>, QueryError> {
        let values = row.values()?;
        let descends = self.order.iter().copied();
        let bound = &self.query.bound;
        let in_order = bound.orders_groups() || !bound.order().is_empty();
        Ok(values_place(values.iter().map(Option::as_ref).zip(descends), in_order))
    }

    /// Where a row of an item belongs.
    fn place(
        &self,
        row: &Row<'_, '_>,
        ordinal: Ordinal,
        number: u32,
    ) -> Result<Vec<u8>, QueryError> {
        if self.is_by_value {
            return self.value_place(row);
        }
        let mut place = Vec::new();
        if self.order.is_empty() {
            return Ok(place);
        }
        for (key, descends) in row.keys()?.iter().zip(&self.order) {
            encode_order(key.as_ref(), *descends, &mut place);
        }
        encode_ordinal(ordinal.as_u64(), self.order.first() == Some(&true), &mut place);
        place.extend(number.to_be_bytes());
        Ok(place)
    }
}

impl Made {
    /// What it is sorted by: its place without the item and the number of the row.
    pub(super) fn keys(&self) -> &[u8] {
        const TAIL_BYTES: usize = size_of::<u64>() + size_of::<u32>();
        self.place.get(..self.place.len().saturating_sub(TAIL_BYTES)).unwrap_or_default()
    }

    pub(super) fn bytes(&self) -> usize {
        self.place.capacity() + self.text.capacity() + self.identity.capacity() + ROW_BYTES
    }
}

/// Rows that are kept to be sorted. What they take is counted until the page is done.
pub(super) struct Kept {
    rows: Vec<Made>,
    ledger: Rc<Ledger>,
}

impl Kept {
    pub(super) fn new(ledger: &Rc<Ledger>) -> Kept {
        Kept { rows: Vec::new(), ledger: Rc::clone(ledger) }
    }

    pub(super) fn add(&mut self, row: Made) -> Result<(), QueryError> {
        self.ledger.keep(row.bytes())?;
        self.rows.push(row);
        Ok(())
    }

    pub(super) fn sorted(mut self) -> Vec<Made> {
        self.rows.sort_unstable();
        self.rows
    }
}
