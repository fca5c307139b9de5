//! The candidates of a query, stretch after stretch.

use std::collections::BTreeSet;
use std::rc::Rc;

use index::{EntryOrder, Seek, told_of_values};
use model::epk::EpkRange;
use partition::{AccessPath, AccessPlan, Candidate, Problem, ScanStart, ScanStats};

use super::PageQuery;
use super::cursor::Position;
use super::layout::{Layout, Stretch};
use super::merge::Merge;
use super::point::Point;
use super::stopwatch::{Part, Stopwatch};

/// Goes through all candidates behind the cursor of a query.
pub(super) struct Candidates<'p> {
    query: &'p PageQuery,
    layout: &'p Layout,
    access: &'p AccessPath,
    stretches: std::vec::IntoIter<Stretch>,
    merge: Merge<'p>,
    watch: &'p Stopwatch<'p>,
    /// The stretch that is being read.
    current: Rc<EpkRange>,
    /// Where the first stretch begins: behind all of these.
    starts: Vec<ScanStart>,
    /// One that was looked at already.
    ahead: Option<(usize, Candidate)>,
    /// How many there were so far.
    pub(super) met: u64,
    asked: BTreeSet<usize>,
    efforts: Vec<ScanStats>,
}

impl<'p> Candidates<'p> {
    /// Rows before the points need not be met, where candidates are in the order of rows.
    pub(super) fn new(
        query: &'p PageQuery,
        layout: &'p Layout,
        choice: &'p AccessPlan,
        (points, watch): (&[&Point], &'p Stopwatch<'p>),
    ) -> Self {
        let behind = query.behind();
        let starts = match &choice.along {
            Some(along) => {
                let (descends, by_value) = (query.descends(), query.value_order().is_some());
                let start = if by_value { start_at_value } else { start_along };
                points.iter().map(|point| start(along, point, &descends)).collect()
            }
            None => behind.map(|behind| start_behind(&behind.position)).into_iter().collect(),
        };
        let merged = choice.along.is_some();
        let stretches = layout.stretches(query, merged, behind.map(|behind| &behind.stretch));
        Candidates {
            query,
            layout,
            access: &choice.access,
            stretches: stretches.into_iter(),
            merge: Merge::default(),
            watch,
            current: Rc::new(EpkRange::full()),
            starts,
            ahead: None,
            met: 0,
            asked: BTreeSet::new(),
            efforts: vec![ScanStats::default(); layout.parts.len()],
        }
    }

    /// The next candidate and the partition it is in.
    pub(super) fn next(&mut self) -> Result<Option<(usize, Candidate)>, Problem> {
        if let Some(ahead) = self.ahead.take() {
            return Ok(Some(ahead));
        }
        loop {
            if let Some(found) = self.merge.next((self.watch, self.way()))? {
                self.met += 1;
                return Ok(Some(found));
            }
            if !self.next_stretch()? {
                return Ok(None);
            }
        }
    }

    /// The next candidate, if its position begins like this.
    pub(super) fn next_like(&mut self, shared: &[u8]) -> Result<Option<Candidate>, Problem> {
        match self.next()? {
            Some((_, next)) if next.position.starts_with(shared) => Ok(Some(next)),
            other => {
                self.ahead = other;
                Ok(None)
            }
        }
    }

    /// Leaves out those whose positions begin like this, if they are what comes next.
    pub(super) fn skip(&mut self, shared: &[u8]) -> Result<(), Problem> {
        self.ahead.take_if(|(_, next)| next.position.starts_with(shared));
        let merge = &mut self.merge;
        self.watch.measure(Part::Finding, || merge.skip(shared))
    }

    /// Whether there is another item, among the next few candidates at least.
    pub(super) fn has_more(&mut self, looked_at: u64) -> Result<bool, Problem> {
        for _ in 0..looked_at {
            self.ahead = self.next()?;
            match &self.ahead {
                None => return Ok(false),
                Some((_, Candidate { item: Some(_), .. })) => return Ok(true),
                Some((_, Candidate { item: None, .. })) => self.ahead = None,
            }
        }
        Ok(true)
    }

    /// Counts the next ones, so many at most, without looking into items as far as
    /// entries tell; `None` when there are no more.
    pub(super) fn count(&mut self, most: u64) -> Result<Option<u64>, Problem> {
        loop {
            let merge = &mut self.merge;
            if let Some(count) = self.watch.measure(Part::Finding, || merge.count(most))? {
                return Ok(Some(count));
            }
            if !self.next_stretch()? {
                return Ok(None);
            }
        }
    }

    /// What going on counts as: without an index, items are read on the way.
    fn way(&self) -> Part {
        match self.access {
            AccessPath::Items => Part::Loading,
            AccessPath::Nothing | AccessPath::Entries { .. } | AccessPath::Set(_) => Part::Finding,
        }
    }

    pub(super) fn stretch(&self) -> &Rc<EpkRange> {
        &self.current
    }

    /// The partitions that were asked, and what they did.
    pub(super) fn efforts(mut self) -> Vec<(usize, ScanStats)> {
        self.note_efforts();
        let effort = |part: usize| self.efforts.get(part).copied().unwrap_or_default();
        self.asked.iter().map(|part| (*part, effort(*part))).collect()
    }

    fn next_stretch(&mut self) -> Result<bool, Problem> {
        self.note_efforts();
        let Some(stretch) = self.stretches.next() else { return Ok(false) };
        let starts = std::mem::take(&mut self.starts);
        let walks = self.layout.walks(self.query, self.access, &stretch, &starts)?;
        self.asked.extend(walks.iter().map(|(part, _)| *part));
        self.merge = Merge::new(walks, self.access.is_backwards());
        self.current = Rc::new(stretch.range);
        Ok(true)
    }

    fn note_efforts(&mut self) {
        for (part, effort) in std::mem::take(&mut self.merge).efforts() {
            if let Some(sum) = self.efforts.get_mut(part) {
                *sum += effort;
            }
        }
    }
}

fn start_behind(position: &Position) -> ScanStart {
    let key = position.key.clone();
    match position.rows {
        Some(_) => ScanStart::At(key),
        None if position.cut => ScanStart::AfterPrefix(key),
        None => ScanStart::After(key),
    }
}

/// Where the entries begin of which a row may be behind a point.
fn start_along(along: &EntryOrder, point: &Point, descends: &[bool]) -> ScanStart {
    let Seek { key, whole } = along.seek(&point.place, descends);
    if point.past && whole { ScanStart::AfterPrefix(key) } else { ScanStart::At(key) }
}

/// The same for rows that are told apart by values.
fn start_at_value(along: &EntryOrder, point: &Point, descends: &[bool]) -> ScanStart {
    let (told, is_all) = told_of_values(&point.place);
    let Seek { key, whole } = along.seek_values(told, descends);
    if point.past && whole && is_all { ScanStart::AfterPrefix(key) } else { ScanStart::At(key) }
}
