//! Brings what several partitions answer into one order: the one place where answers of
//! partitions are put together.
//!
//! Steps of scans are merged k-way by their positions, sorted runs by the sort keys of their
//! rows, groups by their keys. A scan that has more than it answered at once is asked again
//! when the merge comes to its end, from after its last step. What a partition is charged for
//! is what was read up to the last of its steps that the page took, so it does not matter how
//! far ahead it was asked.

use std::cmp::Ordering;
use std::collections::VecDeque;

use bytes::Bytes;
use model::epk::EpkRange;
use model::position::Lsn;
use partition::{
    OutputRow, PartialPage, PartitionQuery, Point, ScanEnd, ScanProgress, ScanStart, ScanStats,
    ScanStep, ScanTimes,
};

use super::QueryFailure;
use super::fanout::{Fanout, Unit};

/// Candidates that each of several partitions is asked for at first beyond its share of the
/// page. What the page does not take was looked up for nothing, so it is few; each time a
/// partition is asked again it is for twice as many.
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
    /// The part of the ring that it is in.
    pub(super) group: EpkRange,
    pub(super) position: Bytes,
    pub(super) is_shared: bool,
    /// How many steps of one partition it stands for.
    pub(super) count: u64,
    pub(super) candidates: u64,
    /// In the order of partitions.
    pub(super) steps: Vec<(usize, ScanStep)>,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Next {
    Step(MergedStep),
    /// There is nothing left.
    Exhausted,
    /// The time of the page is over, or the budget of its only partition is used up.
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
    fanout: &'p Fanout<'p>,
    inputs: Vec<Input>,
    backwards: bool,
}

struct Input {
    unit: Unit,
    groups: Vec<EpkRange>,
    ahead: VecDeque<ScanStep>,
    /// Why the last answer ends where it does. None before the first one.
    end: Option<ScanEnd>,
    /// Candidates to ask for.
    chunk: u64,
    /// What was read for the answers before.
    before: ScanStats,
    /// What was read for the last answer, up to the last step that was taken.
    taken: ScanStats,
    /// For all of the last answer.
    all: ScanStats,
    times: ScanTimes,
    lsn: Lsn,
    progress: ScanProgress,
    /// Steps of evaluation of the last answer.
    evaluated: usize,
    /// Items that were looked at for rows that another partition had given.
    spared: ScanStats,
    /// Where the last step was.
    last: Option<(EpkRange, Bytes, bool)>,
}

impl<'p> StepMerge<'p> {
    /// Merges what each of the units gives. A single one keeps to its own budget; of several,
    /// each is asked for its share of the page first.
    pub(super) fn new(fanout: &'p Fanout<'p>, units: Vec<Unit>, backwards: bool) -> StepMerge<'p> {
        let parts = units.len() as u64;
        let inputs = units.into_iter().map(|mut unit| {
            let budget = &mut unit.query.budget;
            let mut chunk = budget.candidates;
            if parts > 1 {
                budget.coalesces = false;
                budget.textless = 0;
                let wanted = budget.skip.saturating_add(budget.rows as u64);
                chunk = chunk.min((wanted / parts).saturating_add(SPARE_CANDIDATES));
            }
            Input::new(unit, chunk)
        });
        StepMerge { fanout, inputs: inputs.collect(), backwards }
    }

    /// The next step in the order of positions.
    pub(super) fn next(&mut self) -> Result<Next, QueryFailure> {
        let fanout = self.fanout;
        for input in &mut self.inputs {
            if !input.is_ready(fanout)? {
                return Ok(Next::Stopped);
            }
        }
        let heads = self.inputs.iter().enumerate();
        let heads = heads.filter_map(|(at, input)| Some((at, input.head()?)));
        let backwards = self.backwards;
        let first = heads.min_by(|(_, one), (_, other)| compare(*one, *other, backwards));
        let Some((first, _)) = first else { return Ok(Next::Exhausted) };
        let Some((group, step)) = self.inputs.get_mut(first).and_then(Input::pop) else {
            return Ok(Next::Exhausted);
        };
        let (position, is_shared) = (step.position.clone(), step.is_shared);
        let (count, candidates) = (step.steps, step.candidates);
        let mut merged =
            MergedStep { group, position, is_shared, count, candidates, steps: Vec::new() };
        merged.steps.push((self.part(first), step));
        if is_shared {
            self.gather(first, &mut merged);
        }
        Ok(Next::Step(merged))
    }

    /// Adds the steps of other partitions at the same position. Where one row is all that
    /// there can be, one scan would have looked no further than to the partition that has it.
    fn gather(&mut self, first: usize, merged: &mut MergedStep) {
        let has_rows = |(_, step): &(usize, ScanStep)| step.is_one && !step.rows.is_empty();
        for at in (0..self.inputs.len()).filter(|at| *at != first) {
            let Some(input) = self.inputs.get_mut(at) else { continue };
            let is_like = |step: &ScanStep| step.is_shared && step.position == merged.position;
            if !input.ahead.front().is_some_and(is_like) {
                continue;
            }
            let before = input.taken;
            if let Some((_, step)) = input.pop() {
                if merged.steps.iter().any(has_rows) {
                    input.spared += items_since(before, step.stats);
                } else {
                    merged.candidates += step.candidates;
                }
                merged.steps.push((input.unit.part, step));
            }
        }
    }

    fn part(&self, at: usize) -> usize {
        self.inputs.get(at).map_or(0, |input| input.unit.part)
    }

    /// Whether there is another step. A single partition has looked when it had filled a page;
    /// otherwise they are asked again unless one of them has a step.
    pub(super) fn has_more(&mut self) -> Result<bool, QueryFailure> {
        if self.inputs.iter().any(|input| !input.ahead.is_empty()) {
            return Ok(true);
        }
        if let [input] = self.inputs.as_slice()
            && input.has_looked_ahead()
        {
            return Ok(input.end != Some(ScanEnd::Exhausted));
        }
        let fanout = self.fanout;
        for input in &mut self.inputs {
            if !input.is_ready(fanout)? || !input.ahead.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What each partition that was asked did, up to the last step that was taken.
    pub(super) fn stats(&self) -> impl Iterator<Item = (usize, PartStats)> {
        let asked = self.inputs.iter().filter(|input| input.end.is_some());
        asked.map(|input| (input.unit.part, input.stats()))
    }
}

impl Input {
    fn new(unit: Unit, chunk: u64) -> Input {
        Input {
            unit,
            groups: Vec::new(),
            ahead: VecDeque::new(),
            end: None,
            chunk,
            before: ScanStats::default(),
            taken: ScanStats::default(),
            all: ScanStats::default(),
            times: ScanTimes::default(),
            lsn: Lsn::from_u64(0),
            progress: ScanProgress::default(),
            evaluated: 0,
            spared: ScanStats::default(),
            last: None,
        }
    }

    /// Sees to it that the next step is there, unless there is none; false if it cannot be
    /// had on this page.
    fn is_ready(&mut self, fanout: &Fanout<'_>) -> Result<bool, QueryFailure> {
        while self.ahead.is_empty() {
            match &self.end {
                Some(ScanEnd::Exhausted) => return Ok(true),
                Some(ScanEnd::Time) => return Ok(false),
                Some(ScanEnd::Failed(error)) => return Err(error.clone().into()),
                Some(ScanEnd::Budget) | None => self.ask(fanout)?,
            }
        }
        Ok(true)
    }

    /// Whether the partition knew that a page was full, and looked for another step.
    fn has_looked_ahead(&self) -> bool {
        let (ScanProgress { rows, bytes, .. }, budget) = (self.progress, &self.unit.query.budget);
        rows > 0 && (rows >= budget.rows || bytes >= budget.bytes)
    }

    fn ask(&mut self, fanout: &Fanout<'_>) -> Result<(), QueryFailure> {
        let is_first = self.end.is_none();
        let query = &mut self.unit.query;
        query.budget.candidates = self.chunk;
        query.budget.progress = self.progress;
        query.budget.steps = query.budget.steps.saturating_sub(self.evaluated);
        self.chunk = self.chunk.saturating_mul(2);
        if let Some((group, position, is_shared)) = self.last.take() {
            go_on_after(query, group, &position, is_shared);
        }
        let page = fanout.execute(&self.unit)?;
        self.before += self.taken;
        (self.progress, self.evaluated) = (page.progress, page.evaluated);
        let PartialPage { groups, steps, opening, stats, end, times, lsn, .. } = page;
        if is_first {
            (self.taken, self.lsn) = (opening, lsn);
        } else {
            // The first candidates had been found before.
            self.before -= opening;
            self.taken = opening;
        }
        if steps.is_empty() {
            self.taken = stats;
        }
        self.times += times;
        (self.groups, self.ahead, self.all) = (groups, steps.into(), stats);
        self.end = Some(end);
        Ok(())
    }

    /// Where the next step is.
    fn head(&self) -> Option<(&EpkRange, &Bytes)> {
        let step = self.ahead.front()?;
        Some((self.groups.get(step.group)?, &step.position))
    }

    fn pop(&mut self) -> Option<(EpkRange, ScanStep)> {
        let step = self.ahead.pop_front()?;
        let group = self.groups.get(step.group)?.clone();
        let is_end = self.ahead.is_empty() && self.end == Some(ScanEnd::Exhausted);
        self.taken = if is_end { self.all } else { step.stats };
        self.last = Some((group.clone(), step.position.clone(), step.is_shared));
        Some((group, step))
    }

    fn stats(&self) -> PartStats {
        let mut stats = self.before;
        stats += self.taken;
        stats -= self.spared;
        PartStats { stats, times: self.times, lsn: self.lsn }
    }
}

/// The items that were looked at between two steps.
fn items_since(before: ScanStats, mut after: ScanStats) -> ScanStats {
    after -= before;
    ScanStats { entries: 0, ..after }
}

/// Has a query go on after the step that a scan of it came to.
pub(super) fn go_on_after(
    query: &mut PartitionQuery,
    group: EpkRange,
    position: &Bytes,
    is_shared: bool,
) {
    let key = position.to_vec();
    let start = if is_shared { ScanStart::AfterPrefix(key) } else { ScanStart::After(key) };
    if query.along.is_some() {
        query.starts.push(start);
    } else {
        query.current = Some(group);
        query.starts = vec![start];
    }
}

fn compare(
    (one_group, one): (&EpkRange, &Bytes),
    (other_group, other): (&EpkRange, &Bytes),
    backwards: bool,
) -> Ordering {
    let positions = one.cmp(other);
    let positions = if backwards { positions.reverse() } else { positions };
    one_group.min.cmp(&other_group.min).then(positions)
}

/// The first rows of several sorted runs: a k-way merge, which a stable sort of runs is.
pub(super) fn merge_runs(runs: Vec<(usize, Vec<OutputRow>)>, wanted: usize) -> Vec<PartRow> {
    let tagged = |(part, rows): (usize, Vec<OutputRow>)| {
        rows.into_iter().map(move |row| PartRow { row, part })
    };
    let mut rows: Vec<PartRow> = runs.into_iter().flat_map(tagged).collect();
    rows.sort_by(|one, other| one.row.sort_key.cmp(&other.row.sort_key));
    rows.truncate(wanted);
    rows
}

/// Leaves out those of the rows that the pages before gave, where the point after them
/// does not tell which these are: rows in order, all that are like the last of them.
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

/// Rows that are told apart by their sort keys, the first of each and no more than wanted.
pub(super) fn distinct_runs(runs: Vec<(usize, Vec<OutputRow>)>, wanted: usize) -> Vec<PartRow> {
    let mut rows = merge_runs(runs, usize::MAX);
    rows.dedup_by(|next, kept| next.row.sort_key == kept.row.sort_key);
    rows.truncate(wanted);
    rows
}
