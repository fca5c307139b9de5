//! A selective scan of one partition's items, in sequence or in pieces that run in parallel.
//!
//! The scan begins as any other. If it has not filled the page after some hundred items,
//! there are two quicker ways than looking up one item after the other. Where the page
//! probably holds all rows that are left, and may read all items, these are read in the order
//! of their keys and the rows sorted by creation (`whole.rs`).
//!
//! Otherwise the ordinals ahead of it are cut into pieces of some hundred, which are scanned
//! on the available cores and consumed in order. A piece that fits the page as a whole is
//! taken as it is. The first one that does not is where the page ends: it is scanned again,
//! with the rest of the page's budget. So pages end where a single scan would have ended them.

use std::ops::ControlFlow;

use model::epk::EpkRange;
use partition::{
    AccessPath, PartialPage, ScanBudget, ScanEnd, ScanProgress, StatisticsQuery, Task, ordinal_at,
};
use query::STEPS_MAX;

use super::Filled;
use super::builder::PageBuilder;
use super::execution::Execution;
use super::stream::StepTaker;
use super::whole;
use crate::query::QueryFailure;
use crate::query::cursor::ResumePoint;
use crate::query::fanout::{Unit, go_on_after};
use crate::query::merge::MergedStep;

/// Items after which a page that is not full is scanned in pieces.
const ALONE_ITEMS: u64 = 250;

/// Approximate number of items in a piece: a millisecond.
const PIECE_ITEMS: u64 = 500;

/// Ordinals per item up to which they are dense enough to be cut.
const SPARSE_MIN: u64 = 4;

/// Time of looking up an item, relative to reading it in sequence: 13 µs to 1.2 µs where few
/// are in memory, half of that where all are.
const LOOKUP_FACTOR: u64 = 5;

/// Whether the access path is a scan of the items of one partition.
pub(super) fn can_cut(execution: &Execution<'_>) -> bool {
    let is_range = |within: &[EpkRange]| match within {
        [range] => range.position().is_none(),
        _ => false,
    };
    *execution.plan.access == AccessPath::Created
        && execution.fanout.parts.len() == 1
        && is_range(&execution.query.within)
}

pub(super) fn fill(execution: &mut Execution<'_>, page: &mut PageBuilder<'_>) -> Filled {
    let budget = execution.budget(page);
    let Some(unit) = execution.units(Task::Scan, budget).pop() else { return Ok(None) };
    let mut scan = Scan {
        taker: StepTaker::new(execution),
        unit,
        budget,
        progress: ScanProgress::default(),
        scanned: 0,
        evaluated: 0,
        is_cut: false,
        begun_at: None,
    };
    loop {
        match scan.alone(execution, page)? {
            ControlFlow::Break(point) => return Ok(point),
            ControlFlow::Continue(()) => {}
        }
        if scan.is_better_sorted(execution)? {
            return whole::sort_rest(execution, page, scan.taker.tracker);
        }
        match scan.in_pieces(execution, page)? {
            ControlFlow::Break(point) => return Ok(point),
            ControlFlow::Continue(()) => {}
        }
    }
}

/// Whether a page takes more. If not, the resume point of the next one, if there is one.
type Taken = Result<ControlFlow<Option<ResumePoint>>, QueryFailure>;

/// A scan of a partition's items.
struct Scan<'p> {
    taker: StepTaker<'p>,
    /// What is left to scan.
    unit: Unit,
    /// Of the whole page.
    budget: ScanBudget,
    progress: ScanProgress,
    scanned: u64,
    evaluated: usize,
    /// Whether pieces were tried and did not pay.
    is_cut: bool,
    /// The first ordinal that was scanned.
    begun_at: Option<u64>,
}

impl Scan<'_> {
    /// The rest of the page's budget.
    fn rest(&self) -> ScanBudget {
        ScanBudget {
            candidates: self.budget.candidates.saturating_sub(self.scanned),
            steps: self.budget.steps.saturating_sub(self.evaluated),
            progress: self.progress,
            ..self.budget
        }
    }

    /// Scans on this thread, a number of items or to the end of the page.
    fn alone(&mut self, execution: &mut Execution<'_>, page: &mut PageBuilder<'_>) -> Taken {
        let rest = self.rest();
        let most = if self.is_cut { u64::MAX } else { ALONE_ITEMS };
        self.unit.query.budget = ScanBudget { candidates: rest.candidates.min(most), ..rest };
        let answered = execution.fanout.execute(&self.unit)?;
        self.take(execution, page, answered)
    }

    /// Takes an answer as a whole.
    fn take(
        &mut self,
        execution: &mut Execution<'_>,
        page: &mut PageBuilder<'_>,
        mut answered: PartialPage,
    ) -> Taken {
        execution.note_page(self.unit.part, &answered);
        self.progress = answered.progress;
        self.scanned += answered.candidates;
        self.evaluated += answered.evaluated;
        for step in std::mem::take(&mut answered.steps) {
            self.begun_at.get_or_insert_with(|| ordinal_at(&step.position));
            self.unit.query.starts.clear();
            go_on_after(&mut self.unit.query, &step.position, false);
            let merged = MergedStep {
                position: step.position.clone(),
                is_shared: false,
                count: step.steps,
                candidates: step.candidates,
                first: (self.unit.part, step),
                others: Vec::new(),
            };
            if let ControlFlow::Break(point) = self.taker.take(execution, page, merged) {
                return Ok(ControlFlow::Break(point));
            }
        }
        match answered.end {
            ScanEnd::Budget => Ok(ControlFlow::Continue(())),
            ScanEnd::Exhausted => Ok(ControlFlow::Break(None)),
            ScanEnd::Time => Ok(ControlFlow::Break(Some(self.taker.tracker.after()))),
            ScanEnd::Failed(error) => Err(error.into()),
        }
    }

    /// Whether the page probably holds all rows that are left, and reading all items in
    /// sequence costs less than looking up those that are left.
    fn is_better_sorted(&self, execution: &Execution<'_>) -> Result<bool, QueryFailure> {
        let Some((next, per_item)) = self.density().filter(|_| !self.is_cut) else {
            return Ok(false);
        };
        let left = self.last_ordinal(execution)?.saturating_sub(next) / per_item;
        let rows = left.saturating_mul(self.progress.made) / self.scanned.max(1);
        let room = self.budget.rows.saturating_sub(self.progress.rows) as u64;
        if rows > room / 2 {
            return Ok(false);
        }
        let (items, affordable) = (execution.items()?, self.budget.candidates - self.scanned);
        Ok(items <= affordable && items <= left.saturating_mul(LOOKUP_FACTOR))
    }

    /// Scans pieces of the ring in parallel.
    fn in_pieces(&mut self, execution: &mut Execution<'_>, page: &mut PageBuilder<'_>) -> Taken {
        let pieces = self.pieces(execution)?;
        if pieces.len() < 2 {
            self.is_cut = true;
            return Ok(ControlFlow::Continue(()));
        }
        let (fanout, begun) = (execution.fanout, self.progress);
        let mut ended = ControlFlow::Continue(());
        fanout.side_by_side(pieces, |piece, answered| {
            let progress = self.added(&answered, begun);
            let answered = if self.fits(&answered, progress) {
                // There is more after this piece.
                PartialPage { end: ScanEnd::Budget, progress, ..answered }
            } else {
                let rest = self.rest();
                self.is_cut = true;
                let mut exact = piece.clone();
                exact.query.budget = rest;
                let answered = fanout.execute(&exact)?;
                let is_through = answered.end == ScanEnd::Exhausted;
                let end = if is_through { ScanEnd::Budget } else { answered.end };
                PartialPage { end, ..answered }
            };
            ended = self.take(execution, page, answered)?;
            self.leave(&piece);
            let is_done = ended.is_break() || self.is_cut;
            Ok(if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(ended)
    }

    /// The progress of the page with a piece added, whose counts began where those of all
    /// pieces did.
    fn added(&self, answered: &PartialPage, begun: ScanProgress) -> ScanProgress {
        let (own, piece) = (self.progress, answered.progress);
        ScanProgress {
            made: own.made + piece.made.saturating_sub(begun.made),
            rows: own.rows + piece.rows.saturating_sub(begun.rows),
            bytes: own.bytes + piece.bytes.saturating_sub(begun.bytes),
            looked_ahead: own.looked_ahead,
        }
    }

    /// Whether the page continues after a whole piece.
    fn fits(&self, answered: &PartialPage, progress: ScanProgress) -> bool {
        answered.end == ScanEnd::Exhausted
            && progress.rows < self.budget.rows
            && progress.bytes < self.budget.bytes
            && self.scanned + answered.candidates < self.budget.candidates
            && self.evaluated + answered.evaluated <= STEPS_MAX / 2
    }

    /// Moves the scan past a piece.
    fn leave(&mut self, piece: &Unit) {
        let ordinals = &mut self.unit.query.ordinals;
        ordinals.start = ordinals.start.max(piece.query.ordinals.end);
    }

    /// The ordinals ahead of the scan, as far as the page may get, in pieces.
    fn pieces(&self, execution: &Execution<'_>) -> Result<Vec<Unit>, QueryFailure> {
        let is_begun = self.progress.made >= self.budget.skip && !self.is_cut;
        let Some((next, per_item)) = self.density().filter(|_| is_begun) else {
            return Ok(Vec::new());
        };
        if per_item > SPARSE_MIN {
            return Ok(Vec::new());
        }
        let end = self.last_ordinal(execution)?.saturating_add(1);
        let (width, affordable) = (PIECE_ITEMS * per_item, self.items_left() / PIECE_ITEMS);
        let pieces = (next..end).step_by(usize::try_from(width).unwrap_or(usize::MAX));
        let piece = |(number, start): (u64, u64)| {
            let mut unit = self.unit.clone();
            unit.query.ordinals = start..start.saturating_add(width).min(end);
            unit.query.budget = self.rest();
            unit.query.part = self.scanned.wrapping_add(number);
            unit
        };
        let pieces = pieces.take(usize::try_from(affordable).unwrap_or(0));
        Ok((1..).zip(pieces).map(piece).collect())
    }

    /// The next ordinal, and how many of those so far there were for each item.
    fn density(&self) -> Option<(u64, u64)> {
        let query = &self.unit.query;
        let last = ordinal_at(query.starts.last()?.position()).max(query.ordinals.start);
        let passed = last.saturating_sub(self.begun_at?);
        Some((last.saturating_add(1), passed.div_ceil(self.scanned.max(1)).max(1)))
    }

    fn last_ordinal(&self, execution: &Execution<'_>) -> Result<u64, QueryFailure> {
        let Some(part) = execution.fanout.parts.get(self.unit.part) else { return Ok(0) };
        let within = &execution.query.within;
        Ok(execution.fanout.statistics(part, within, &StatisticsQuery::LastOrdinal)?)
    }

    /// Approximate number of items that the page may still scan.
    fn items_left(&self) -> u64 {
        let left = self.budget.candidates.saturating_sub(self.scanned);
        let rows = self.budget.rows.saturating_sub(self.progress.rows) as u64;
        let per_row = self.scanned / self.progress.made.max(1);
        if self.progress.made == 0 { left } else { left.min(rows.saturating_mul(per_row)) }
    }
}
