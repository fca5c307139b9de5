//! The candidates of a query, stretch after stretch.

use std::collections::BTreeSet;
use std::rc::Rc;

use index::{EntryOrder, Seek};
use model::epk::EpkRange;
use partition::{Access, Candidate, Choice, Effort, Problem, Start};

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
    access: &'p Access,
    stretches: std::vec::IntoIter<Stretch>,
    merge: Merge<'p>,
    watch: &'p Stopwatch<'p>,
    /// The stretch that is being read.
    current: Rc<EpkRange>,
    /// Where the first stretch begins: behind all of these.
    starts: Vec<Start>,
    /// One that was looked at already.
    ahead: Option<(usize, Candidate)>,
    /// How many there were so far.
    pub(super) met: u64,
    asked: BTreeSet<usize>,
    efforts: Vec<Effort>,
}

impl<'p> Candidates<'p> {
    /// Rows before the points need not be met, where candidates are in the order of rows.
    pub(super) fn new(
        query: &'p PageQuery,
        layout: &'p Layout,
        choice: &'p Choice,
        (points, watch): (&[&Point], &'p Stopwatch<'p>),
    ) -> Self {
        let behind = query.behind();
        let starts = match &choice.along {
            Some(along) => {
                let descends = query.descends();
                points.iter().map(|point| start_along(along, point, &descends)).collect()
            }
            None => behind.map(|behind| start_behind(&behind.position)).into_iter().collect(),
        };
        let merged = choice.ordered && !query.bound.order().is_empty();
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
            efforts: vec![Effort::default(); layout.parts.len()],
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
            Access::Items => Part::Loading,
            Access::Nothing | Access::Entries { .. } | Access::Set(_) => Part::Finding,
        }
    }

    pub(super) fn stretch(&self) -> &Rc<EpkRange> {
        &self.current
    }

    /// The partitions that were asked, and what they did.
    pub(super) fn efforts(mut self) -> Vec<(usize, Effort)> {
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

fn start_behind(position: &Position) -> Start {
    let key = position.key.clone();
    match position.rows {
        Some(_) => Start::At(key),
        None if position.cut => Start::Past(key),
        None => Start::Behind(key),
    }
}

/// Where the entries begin of which a row may be behind a point.
fn start_along(along: &EntryOrder, point: &Point, descends: &[bool]) -> Start {
    let Seek { key, whole } = along.seek(&point.place, descends);
    if point.past && whole { Start::Past(key) } else { Start::At(key) }
}
