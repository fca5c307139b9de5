//! Merges the answers of several partitions into one order; the only module that combines
//! them.
//!
//! Steps of scans are merged k-way by their positions, sorted runs by the sort keys of
//! their rows, groups by their keys. A scan that has more than its first answer is
//! continued when the merge reaches the end of that. A partition is charged for what was
//! read up to the last of its steps that the page consumed, so look-ahead does not change
//! charges.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::iter;

use bytes::Bytes;
use model::position::Lsn;
use partition::{
    OutputRow, PartialPage, Point, ScanEnd, ScanProgress, ScanStats, ScanStep, ScanTimes,
    StepPosition,
};

use super::QueryFailure;
use super::fanout::{Fanout, PartitionScan, Unit};

/// Candidates that each of several partitions is asked for at first beyond its share of the
/// page. What the page does not consume was looked up for nothing, so it is few; each
/// further request to a partition doubles the number.
const SPARE_CANDIDATES: u64 = 1;

/// A row and the partition that it is from.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PartRow {
    pub(super) row: OutputRow,
    pub(super) part: usize,
}

/// The next step of a merge: that of one partition, or of all that have one there.
#[derive(Debug)]
pub(super) struct MergedStep {
    pub(super) position: Bytes,
    pub(super) is_shared: bool,
    /// Number of steps of one partition that it stands for.
    pub(super) count: u64,
    pub(super) candidates: u64,
    /// The partition that came first, and its step.
    pub(super) first: (usize, ScanStep),
    /// Those of further partitions, in their order.
    pub(super) others: Vec<(usize, ScanStep)>,
}

impl MergedStep {
    /// The steps of all partitions.
    pub(super) fn into_steps(self) -> impl Iterator<Item = (usize, ScanStep)> {
        iter::once(self.first).chain(self.others)
    }

    /// Number of evaluation steps.
    pub(super) fn evaluated(&self) -> usize {
        let others: usize = self.others.iter().map(|(_, step)| step.evaluated).sum();
        self.first.1.evaluated + others
    }

    /// Whether it has the one row that it can have.
    fn has_its_row(&self) -> bool {
        let has = |(_, step): &(usize, ScanStep)| step.is_one && !step.rows.is_empty();
        has(&self.first) || self.others.iter().any(has)
    }
}

/// Why there is no next step.
#[derive(Debug)]
pub(super) enum MergeEnd {
    /// All inputs are exhausted.
    Exhausted,
    /// The time slice of the page is over, or the budget of its only partition is used up.
    Stopped,
}

/// What one partition did for a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartStats {
    pub(super) stats: ScanStats,
    pub(super) times: ScanTimes,
    pub(super) lsn: Lsn,
}

/// Scans of several partitions, merged by position.
pub(super) struct StepMerge<'p> {
    inputs: Vec<Input<'p>>,
    backwards: bool,
}

struct Input<'p> {
    unit: &'p Unit,
    scan: PartitionScan<'p>,
    ahead: VecDeque<ScanStep>,
    /// Position of the next step, if its items were not loaded yet.
    peeked: Option<StepPosition>,
    /// Whether items are loaded only when it is their turn (late materialisation).
    is_lazy: bool,
    /// Why the last answer ended. `None` before the first one.
    end: Option<ScanEnd>,
    /// Candidates to request.
    chunk: u64,
    /// What was read up to the last consumed step.
    taken: ScanStats,
    /// For all answers.
    all: ScanStats,
    times: ScanTimes,
    lsn: Lsn,
    progress: ScanProgress,
    /// Items that were read for rows that another partition had returned already.
    spared: ScanStats,
}

impl<'p> StepMerge<'p> {
    /// Merges the scans of the units. A single one keeps to its own budget; of several,
    /// each is asked for its share of the page first.
    pub(super) fn new(
        fanout: &'p Fanout<'p>,
        units: &'p [Unit],
        backwards: bool,
    ) -> Result<StepMerge<'p>, QueryFailure> {
        let parts = units.len() as u64;
        let input = |unit: &'p Unit| {
            let budget = &unit.query.budget;
            let wanted = budget.skip.saturating_add(budget.rows as u64);
            let share = if parts > 1 { wanted / parts + SPARE_CANDIDATES } else { u64::MAX };
            Ok(Input {
                is_lazy: parts > 1,
                ..Input::new(unit, fanout.open(unit)?, budget.candidates.min(share))
            })
        };
        let inputs = units.iter().map(input).collect::<Result<_, QueryFailure>>()?;
        Ok(StepMerge { inputs, backwards })
    }

    /// The next step in the order of positions.
    pub(super) fn next(&mut self) -> Result<Result<MergedStep, MergeEnd>, QueryFailure> {
        for input in &mut self.inputs {
            if !input.is_ready()? {
                return Ok(Err(MergeEnd::Stopped));
            }
        }
        let heads = self.inputs.iter().enumerate();
        let heads = heads.filter_map(|(at, input)| Some((at, input.head()?)));
        let backwards = self.backwards;
        let first = heads.min_by(|(_, one), (_, other)| compare(*one, *other, backwards));
        let Some((first, _)) = first else { return Ok(Err(MergeEnd::Exhausted)) };
        let Some(input) = self.inputs.get_mut(first) else { return Ok(Err(MergeEnd::Exhausted)) };
        let Some(step) = input.pop()? else { return Ok(Err(MergeEnd::Stopped)) };
        let (position, is_shared) = (step.position.clone(), step.is_shared);
        let (count, candidates) = (step.steps, step.candidates);
        let (others, part) = (Vec::new(), input.unit.part);
        let first_step = (part, step);
        let mut merged =
            MergedStep { position, is_shared, count, candidates, first: first_step, others };
        if is_shared {
            self.gather(first, &mut merged)?;
        }
        Ok(Ok(merged))
    }

    /// Adds the steps of other partitions at the same position. Where there can be only one
    /// row, a single scan would have read no further than the partition that has it.
    fn gather(&mut self, first: usize, merged: &mut MergedStep) -> Result<(), QueryFailure> {
        for at in (0..self.inputs.len()).filter(|at| *at != first) {
            let Some(input) = self.inputs.get_mut(at) else { continue };
            let is_like = |head: Head<'_>| head.is_shared && *head.position == merged.position;
            if !input.head().is_some_and(is_like) {
                continue;
            }
            let before = input.taken;
            if let Some(step) = input.pop()? {
                if merged.has_its_row() {
                    input.spared += items_since(before, step.stats);
                } else {
                    merged.candidates += step.candidates;
                }
                merged.others.push((input.unit.part, step));
            }
        }
        Ok(())
    }

    /// Whether there is another step. A single partition has looked ahead when it had
    /// filled a page; otherwise partitions are queried again unless one of them has a step.
    pub(super) fn has_more(&mut self) -> Result<bool, QueryFailure> {
        if self.inputs.iter().any(|input| input.head().is_some()) {
            return Ok(true);
        }
        if let [input] = self.inputs.as_slice()
            && input.has_looked_ahead()
        {
            return Ok(input.end != Some(ScanEnd::Exhausted));
        }
        for input in &mut self.inputs {
            if !input.is_ready()? || input.head().is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What each contacted partition did, up to the last consumed step.
    pub(super) fn stats(&self) -> impl Iterator<Item = (usize, PartStats)> {
        let asked = self.inputs.iter().filter(|input| input.end.is_some());
        asked.map(|input| (input.unit.part, input.stats()))
    }
}

impl<'p> Input<'p> {
    fn new(unit: &'p Unit, scan: PartitionScan<'p>, chunk: u64) -> Input<'p> {
        Input {
            unit,
            scan,
            ahead: VecDeque::new(),
            peeked: None,
            is_lazy: false,
            end: None,
            chunk,
            taken: ScanStats::default(),
            all: ScanStats::default(),
            times: ScanTimes::default(),
            lsn: Lsn::from_u64(0),
            progress: ScanProgress::default(),
            spared: ScanStats::default(),
        }
    }

    /// Makes the next step available, unless there is none; false if it cannot be had on
    /// this page.
    fn is_ready(&mut self) -> Result<bool, QueryFailure> {
        while self.head().is_none() {
            match &self.end {
                Some(ScanEnd::Exhausted) => return Ok(true),
                Some(ScanEnd::Time) => return Ok(false),
                Some(ScanEnd::Failed(error)) => return Err(error.clone().into()),
                Some(ScanEnd::Budget) | None => {
                    if !self.peek()? {
                        self.ask()?;
                    }
                }
            }
        }
        Ok(true)
    }

    /// Finds the position of the next step, if that needs no loading of items.
    fn peek(&mut self) -> Result<bool, QueryFailure> {
        let is_first = self.end.is_none();
        let Some((scan, slice)) = self.scan.as_open().filter(|_| self.is_lazy) else {
            return Ok(false);
        };
        self.peeked = scan.position().map_err(|error| slice.failure(error))?;
        if is_first || self.peeked.is_none() {
            (self.taken, self.lsn) = (scan.stats(), scan.lsn());
        }
        let is_end = self.peeked.is_none();
        self.end = Some(if is_end { ScanEnd::Exhausted } else { ScanEnd::Budget });
        self.chunk = 1;
        Ok(true)
    }

    /// Whether the partition knew that a page was full, and looked ahead for another step.
    fn has_looked_ahead(&self) -> bool {
        let (ScanProgress { rows, bytes, .. }, budget) = (self.progress, &self.unit.query.budget);
        rows > 0 && (rows >= budget.rows || bytes >= budget.bytes)
    }

    fn ask(&mut self) -> Result<(), QueryFailure> {
        let page = self.scan.next_page(self.chunk)?;
        self.chunk = self.chunk.saturating_mul(2);
        let PartialPage { steps, opening, stats, end, times, lsn, progress, .. } = page;
        if self.end.is_none() {
            (self.taken, self.lsn) = (opening, lsn);
        }
        if steps.is_empty() {
            self.taken = stats;
        }
        (self.ahead, self.all) = (steps.into(), stats);
        (self.times, self.progress, self.end) = (times, progress, Some(end));
        Ok(())
    }

    /// The position of the next step.
    fn head(&self) -> Option<Head<'_>> {
        let (position, is_shared) = match (self.ahead.front(), &self.peeked) {
            (Some(step), _) => (&step.position, step.is_shared),
            (None, Some(step)) => (&step.position, step.is_shared),
            (None, None) => return None,
        };
        Some(Head { position, is_shared })
    }

    /// Takes the next step. `None` if the time slice ends before it.
    fn pop(&mut self) -> Result<Option<ScanStep>, QueryFailure> {
        if self.peeked.take().is_some() {
            self.ask()?;
        }
        let Some(step) = self.ahead.pop_front() else {
            return match &self.end {
                Some(ScanEnd::Failed(error)) => Err(error.clone().into()),
                _ => Ok(None),
            };
        };
        let is_end = self.ahead.is_empty() && self.end == Some(ScanEnd::Exhausted);
        self.taken = if is_end { self.all } else { step.stats };
        Ok(Some(step))
    }

    fn stats(&self) -> PartStats {
        let mut stats = self.taken;
        stats -= self.spared;
        PartStats { stats, times: self.times, lsn: self.lsn }
    }
}

/// The items that were read between two steps.
fn items_since(before: ScanStats, mut after: ScanStats) -> ScanStats {
    after -= before;
    ScanStats { entries: 0, ..after }
}

/// The position of the next step of an input.
#[derive(Clone, Copy)]
struct Head<'i> {
    position: &'i Bytes,
    is_shared: bool,
}

fn compare(one: Head<'_>, other: Head<'_>, backwards: bool) -> Ordering {
    let positions = one.position.cmp(other.position);
    if backwards { positions.reverse() } else { positions }
}

/// The first rows of several sorted runs: a k-way merge, done as a stable sort, which
/// detects runs.
pub(super) fn merge_runs(runs: Vec<(usize, Vec<OutputRow>)>) -> Vec<PartRow> {
    let tagged = |(part, rows): (usize, Vec<OutputRow>)| {
        rows.into_iter().map(move |row| PartRow { row, part })
    };
    let mut rows: Vec<PartRow> = runs.into_iter().flat_map(tagged).collect();
    sort_runs(&mut rows);
    rows
}

/// Sorts what consists of a few sorted runs, which this sort recognises.
pub(super) fn sort_runs(rows: &mut [PartRow]) {
    rows.sort_by(|one, other| one.row.sort_key.cmp(&other.row.sort_key));
}

/// Removes rows that previous pages returned, where the resume point does not name them one
/// by one because its key is truncated: of the rows that begin like it, in order, as many
/// as are done.
pub(super) fn without_given(points: &[&Point], mut rows: Vec<PartRow>) -> Vec<PartRow> {
    for point in points {
        let is_among = |row: &PartRow| point.is_among(&row.row.sort_key);
        let Some(first) = rows.iter().position(is_among) else { continue };
        let among = rows.iter().skip(first).map(|row| &*row.row.sort_key);
        let done = point.done(among);
        rows.drain(first..first + done);
    }
    rows
}

/// Rows that their sort keys distinguish: the first of each, and no more than wanted.
pub(super) fn distinct_runs(runs: Vec<(usize, Vec<OutputRow>)>, wanted: usize) -> Vec<PartRow> {
    let mut rows = merge_runs(runs);
    rows.dedup_by(|next, kept| next.row.sort_key == kept.row.sort_key);
    rows.truncate(wanted);
    rows
}
