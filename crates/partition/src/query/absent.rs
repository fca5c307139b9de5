//! The items of a bucket that have no value at a path, in the order of ordinals.
//!
//! Each set of property names that objects have is a run of entries in that order. The runs
//! of items without the value are merged (k-way), so every result is such an item, and the
//! cost of finding the runs depends on the number of sets of names.

use std::collections::BinaryHeap;
use std::ops::Range;

use bytes::Bytes;
use index::{Absence, EntryRange};
use model::position::Ordinal;
use model::system_properties::SYSTEM_PROPERTIES;
use storage::{Direction, KeyRange, View};

use super::set_cursor::{self, SetsOfNames};
use crate::command::PartitionError;
use crate::key::{self, Keys};
use crate::record::{Item, RecordError};
use crate::rows::Rows;

/// A cursor over such items.
pub(super) struct AbsentScan<'v> {
    view: &'v dyn View,
    keys: Keys,
    absence: &'v Absence,
    /// The range of ordinals to return.
    ordinals: Range<u64>,
    direction: Direction,
    runs: Option<Vec<Run<'v>>>,
    /// The next ordinal of each run that has one, complemented in forward scans so that the
    /// one that comes next is the greatest.
    heads: BinaryHeap<(u64, usize)>,
    /// Sets of names, and entries of runs that were collected.
    looked_at: u64,
}

/// Items in the order of ordinals.
enum Run<'v> {
    Rows(Rows<'v>),
    /// In reverse: the last one comes next.
    Collected(Vec<u64>),
}

impl<'v> AbsentScan<'v> {
    pub(super) fn new(
        view: &'v dyn View,
        keys: &Keys,
        absence: &'v Absence,
        ordinals: Range<u64>,
        direction: Direction,
    ) -> AbsentScan<'v> {
        AbsentScan {
            view,
            keys: *keys,
            absence,
            ordinals,
            direction,
            runs: None,
            heads: BinaryHeap::new(),
            looked_at: 0,
        }
    }

    /// The next one: the entry that it would have, and its ordinal.
    pub(super) fn next(&mut self) -> Result<Option<(Vec<u8>, u64)>, PartitionError> {
        if self.ordinals.is_empty() {
            return Ok(None);
        }
        if self.runs.is_none() {
            self.runs = Some(self.open()?);
            let runs = self.runs.as_ref().map_or(0, Vec::len);
            (0..runs).try_for_each(|run| self.advance(run))?;
        }
        let Some((turned, run)) = self.heads.pop() else { return Ok(None) };
        self.advance(run)?;
        let ordinal = self.turned(turned);
        let position = [self.absence.key.as_slice(), &ordinal.to_be_bytes()].concat();
        Ok(Some((position, ordinal)))
    }

    /// Skips the rest, if their entries would have this prefix.
    pub(super) fn skip(&mut self, beginning: &[u8]) {
        if self.absence.key == beginning {
            self.ordinals = 0..0;
        }
    }

    /// Number of entries read.
    pub(super) fn read(&self) -> u64 {
        let read = |run: &Run<'_>| match run {
            Run::Rows(rows) => rows.read,
            Run::Collected(_) => 0,
        };
        self.looked_at + self.runs.iter().flatten().map(read).sum::<u64>()
    }

    fn turned(&self, ordinal: u64) -> u64 {
        if self.direction == Direction::Forward { !ordinal } else { ordinal }
    }

    fn advance(&mut self, run: usize) -> Result<(), PartitionError> {
        let ordinal = match self.runs.as_mut().and_then(|runs| runs.get_mut(run)) {
            Some(Run::Rows(rows)) => {
                rows.next()?.map(|(key, _)| set_cursor::ordinal_of(&key)).transpose()?
            }
            Some(Run::Collected(ordinals)) => ordinals.pop(),
            None => None,
        };
        let turned = ordinal.map(|ordinal| self.turned(ordinal));
        self.heads.extend(turned.map(|turned| (turned, run)));
        Ok(())
    }

    fn open(&mut self) -> Result<Vec<Run<'v>>, PartitionError> {
        let mut runs = Vec::new();
        for range in &self.absence.runs {
            runs.push(self.run(&self.keys.index_entry(&range.start)));
        }
        for object in &self.absence.objects {
            let mut sets = SetsOfNames::new(self.view, &self.keys, &object.range);
            while let Some((keys, ordinal)) = sets.next()? {
                self.looked_at += 1;
                if !self.has_value(ordinal, &object.names)? {
                    runs.push(self.run(&keys.start));
                }
            }
        }
        for range in &self.absence.others {
            runs.push(self.collected(range)?);
        }
        Ok(runs)
    }

    /// The matching items whose keys have this prefix.
    fn run(&self, beginning: &[u8]) -> Run<'v> {
        let at = |ordinal: u64| -> Bytes { [beginning, &ordinal.to_be_bytes()].concat().into() };
        let range = KeyRange::new(at(self.ordinals.start), at(self.ordinals.end));
        Run::Rows(Rows::new(self.view, range, self.direction))
    }

    fn collected(&mut self, range: &EntryRange) -> Result<Run<'v>, PartitionError> {
        let range = set_cursor::stored(&self.keys, range);
        let mut rows = Rows::new(self.view, range, Direction::Forward);
        let mut ordinals = Vec::new();
        while let Some((key, _)) = rows.next()? {
            let ordinal = set_cursor::ordinal_of(&key)?;
            ordinals.extend(Some(ordinal).filter(|ordinal| self.ordinals.contains(ordinal)));
        }
        self.looked_at += rows.read;
        ordinals.sort_unstable();
        if self.direction == Direction::Forward {
            ordinals.reverse();
        }
        Ok(Run::Collected(ordinals))
    }

    /// Whether an item, and so every item with the same names, has a value at a path.
    fn has_value(&self, ordinal: u64, names: &[String]) -> Result<bool, PartitionError> {
        let damaged = |what| RecordError::Malformed { what };
        let ordinal = Ordinal::from_u64(ordinal).ok_or(damaged("index key"))?;
        let name = self.view.get(&self.keys.ordinal(ordinal))?.ok_or(damaged("ordinal"))?;
        let (epk, id) = key::parse_item_name(&name).ok_or(damaged("ordinal"))?;
        let item = self.view.get(&self.keys.item(&epk, id))?.ok_or(damaged("index key"))?;
        let item = Item::decode(&item)?;
        Ok(is_added(names) || item.json().path(names).is_some())
    }
}

/// Whether it is the path of a system property, which every item has.
fn is_added(names: &[String]) -> bool {
    matches!(names, [name] if SYSTEM_PROPERTIES.contains(&name.as_str()))
}
