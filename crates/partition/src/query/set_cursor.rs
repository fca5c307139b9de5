//! Cursors over sets of items in the order of their ordinals: zig-zag intersection and
//! union.
//!
//! Entries with one value come in the order of ordinals, and so do the members of a logical
//! partition. Sets of them are intersected and united by advancing all cursors together:
//! nothing is held in memory, and whatever cannot be in the intersection is skipped by a
//! seek.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use bytes::Bytes;
use index::{EntryOrder, EntryRange};
use model::epk::Epk;
use storage::{Direction, KeyRange, ScanLimit, View};

use super::access::{IndexRange, OrdinalSet};
use crate::command::PartitionError;
use crate::key::{self, GROUP_AT, Keys};
use crate::record::RecordError;
use crate::rows::Rows;

/// A cursor over a set. Ordinals are plain numbers here, because one past the last is
/// possible, too.
pub(super) enum SetCursor<'v> {
    Equal(OrdinalRun<'v>),
    /// The items of one logical partition.
    Key(OrdinalRun<'v>),
    /// Those of a range, collected.
    Sorted {
        ordinals: Vec<u64>,
        at: usize,
        read: u64,
    },
    All(Vec<SetCursor<'v>>),
    Any {
        members: Vec<SetCursor<'v>>,
        next: BinaryHeap<Reverse<(u64, usize)>>,
        begun: bool,
    },
}

/// Keys that have a prefix and then an ordinal.
pub(super) struct OrdinalRun<'v> {
    rows: Rows<'v>,
    prefix: Bytes,
    /// The last result: it is requested again until the others agree.
    last: Option<u64>,
    read: u64,
}

impl<'v> OrdinalRun<'v> {
    fn open(view: &'v dyn View, prefix: Bytes, ordinals: &Range<u64>) -> OrdinalRun<'v> {
        let rows = Rows::new(view, run_of(&prefix, ordinals), Direction::Forward);
        OrdinalRun { rows, prefix, last: None, read: 0 }
    }

    fn seek(&mut self, least: u64) -> Result<Option<u64>, PartitionError> {
        match self.last {
            Some(last) if least <= last => return Ok(Some(last)),
            // The next one, which needs no key to seek by.
            Some(last) if least - 1 == last => drop(self.rows.next()?),
            Some(_) | None => self.rows.seek(&with_ordinal(&self.prefix, least).into()),
        }
        let found = self.rows.peek()?.map(|(key, _)| ordinal_of(key)).transpose()?;
        self.read += u64::from(found.is_some() && found != self.last);
        self.last = found;
        Ok(found)
    }
}

impl<'v> SetCursor<'v> {
    /// The items of logical partitions.
    pub(super) fn of_keys<'k>(
        view: &'v dyn View,
        keys: &Keys,
        positions: impl Iterator<Item = &'k Epk>,
        ordinals: &Range<u64>,
    ) -> SetCursor<'v> {
        let open = |epk| SetCursor::Key(OrdinalRun::open(view, keys.members(epk), ordinals));
        let members = positions.map(open).collect();
        SetCursor::Any { members, next: BinaryHeap::new(), begun: false }
    }

    /// Members with other ordinals than these may be left out.
    pub(super) fn open(
        view: &'v dyn View,
        keys: &Keys,
        (set, ordinals): (&OrdinalSet, &Range<u64>),
    ) -> Result<SetCursor<'v>, PartitionError> {
        let open_all = |sets: &[OrdinalSet]| -> Result<Vec<SetCursor<'v>>, PartitionError> {
            sets.iter().map(|set| SetCursor::open(view, keys, (set, ordinals))).collect()
        };
        Ok(match set {
            OrdinalSet::Equal(IndexRange { range, .. }) => {
                let entry = keys.index_entry(&range.start);
                SetCursor::Equal(OrdinalRun::open(view, entry, ordinals))
            }
            OrdinalSet::Within(IndexRange { range, .. }) => collected(view, stored(keys, range))?,
            OrdinalSet::All(sets) => SetCursor::All(open_all(sets)?),
            OrdinalSet::Any(sets) => {
                let members = open_all(sets)?;
                SetCursor::Any { members, next: BinaryHeap::new(), begun: false }
            }
        })
    }

    /// The first member from `least` on. Callers never seek backwards.
    pub(super) fn seek(&mut self, least: u64) -> Result<Option<u64>, PartitionError> {
        match self {
            SetCursor::Equal(run) | SetCursor::Key(run) => run.seek(least),
            SetCursor::Sorted { ordinals, at, .. } => {
                let rest = ordinals.get(*at..).unwrap_or_default();
                *at += rest.partition_point(|ordinal| *ordinal < least);
                Ok(ordinals.get(*at).copied())
            }
            SetCursor::All(members) => intersect(members, least),
            SetCursor::Any { members, next, begun } => {
                if !*begun {
                    *begun = true;
                    for (at, member) in members.iter_mut().enumerate() {
                        next.extend(member.seek(least)?.map(|ordinal| Reverse((ordinal, at))));
                    }
                }
                union(members, next, least)
            }
        }
    }

    /// Number of index entries read.
    pub(super) fn read(&self) -> u64 {
        match self {
            SetCursor::Key(_) => 0,
            SetCursor::Equal(run) => run.read,
            SetCursor::Sorted { read, .. } => *read,
            SetCursor::All(members) | SetCursor::Any { members, .. } => {
                members.iter().map(SetCursor::read).sum()
            }
        }
    }
}

/// Zig-zag intersection: all must agree, and the cursor that is furthest ahead is where the
/// others seek next.
fn intersect(members: &mut [SetCursor<'_>], mut least: u64) -> Result<Option<u64>, PartitionError> {
    let mut agreed = 0;
    while agreed < members.len() {
        agreed = 0;
        for member in members.iter_mut() {
            let Some(found) = member.seek(least)? else { return Ok(None) };
            if found > least {
                least = found;
                break;
            }
            agreed += 1;
        }
    }
    Ok(Some(least))
}

fn union(
    members: &mut [SetCursor<'_>],
    next: &mut BinaryHeap<Reverse<(u64, usize)>>,
    least: u64,
) -> Result<Option<u64>, PartitionError> {
    while let Some(Reverse((ordinal, at))) = next.peek().copied() {
        if ordinal >= least {
            return Ok(Some(ordinal));
        }
        next.pop();
        if let Some(member) = members.get_mut(at) {
            next.extend(member.seek(least)?.map(|ordinal| Reverse((ordinal, at))));
        }
    }
    Ok(None)
}

fn collected<'v>(view: &'v dyn View, range: KeyRange) -> Result<SetCursor<'v>, PartitionError> {
    let mut rows = Rows::new(view, range, Direction::Forward);
    let mut ordinals = Vec::new();
    while let Some((key, _)) = rows.next()? {
        ordinals.push(ordinal_of(&key)?);
    }
    ordinals.sort_unstable();
    ordinals.dedup();
    Ok(SetCursor::Sorted { ordinals, at: 0, read: rows.read })
}

/// Number of entries in a range; counting stops at `most`.
pub(crate) fn count_entries(
    view: &dyn View,
    keys: &Keys,
    range: &EntryRange,
    most: u64,
) -> Result<u64, PartitionError> {
    let mut rows = Rows::new(view, stored(keys, range), Direction::Forward);
    while rows.read < most && rows.next()?.is_some() {}
    Ok(rows.read)
}

/// Number of items of a set in logical partitions; counting stops at `most`. Takes no more
/// steps than these have items, whatever others the set has.
pub(crate) fn count_members<'k>(
    view: &dyn View,
    keys: &Keys,
    (set, positions): (&OrdinalSet, impl Iterator<Item = &'k Epk>),
    most: u64,
) -> Result<u64, PartitionError> {
    let ordinals = 0..u64::MAX;
    let of_keys = SetCursor::of_keys(view, keys, positions, &ordinals);
    let mut members = SetCursor::All(vec![of_keys, SetCursor::open(view, keys, (set, &ordinals))?]);
    let (mut count, mut least) = (0, 0);
    while count < most
        && let Some(found) = members.seek(least)?
    {
        (count, least) = (count + 1, found + 1);
    }
    Ok(count)
}

/// Number of distinct values in a part of an index, as far as its entries show; counting
/// stops at `most`.
pub(crate) fn count_values(
    view: &dyn View,
    keys: &Keys,
    (range, order): (&EntryRange, &EntryOrder),
    most: u64,
) -> Result<u64, PartitionError> {
    let mut rows = Rows::new(view, stored(keys, range), Direction::Forward);
    while rows.read < most
        && let Some((key, _)) = rows.next()?
    {
        let (group, entry) = key.split_at_checked(GROUP_AT + 1).unwrap_or((&key, &[]));
        rows.skip(&[group, order.values(entry).0].concat());
    }
    Ok(rows.read)
}

/// Number of sets of names among entries for the names of members; counting stops at
/// `most`.
pub(crate) fn count_sets_of_names(
    view: &dyn View,
    keys: &Keys,
    range: &EntryRange,
    most: u64,
) -> Result<u64, PartitionError> {
    let (mut sets, mut count) = (SetsOfNames::new(view, keys, range), 0);
    while count < most && sets.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// A skip scan from one set of names to the next.
pub(super) struct SetsOfNames<'v> {
    view: &'v dyn View,
    rest: KeyRange,
}

impl<'v> SetsOfNames<'v> {
    pub(super) fn new(view: &'v dyn View, keys: &Keys, range: &EntryRange) -> SetsOfNames<'v> {
        SetsOfNames { view, rest: stored(keys, range) }
    }

    /// The keys of items with the next set of names, and one of the items.
    pub(super) fn next(&mut self) -> Result<Option<(KeyRange, u64)>, PartitionError> {
        let chunk = self.view.scan(&self.rest, Direction::Forward, ScanLimit::rows(1))?;
        let Some((key, _)) = chunk.rows.into_iter().next() else { return Ok(None) };
        let malformed = RecordError::Malformed { what: "index key" };
        let entry = key.get(GROUP_AT + 1..).and_then(index::same_members).ok_or(malformed)?;
        let run = KeyRange::prefix(key.get(..GROUP_AT + 1 + entry.len()).unwrap_or(&key));
        // Without an end nothing comes after it.
        self.rest.start = run.end.clone().or(self.rest.end.clone()).unwrap_or_default();
        Ok(Some((run, ordinal_of(&key)?)))
    }
}

/// The keys of a bucket that have an entry in the range.
pub(super) fn stored(keys: &Keys, range: &EntryRange) -> KeyRange {
    KeyRange::new(keys.index_entry(&range.start), keys.index_entry(&range.end))
}

/// The keys that have a prefix and then one of these ordinals.
pub(super) fn run_of(prefix: &[u8], ordinals: &Range<u64>) -> KeyRange {
    let bound = |ordinal| Bytes::from(with_ordinal(prefix, ordinal));
    KeyRange::new(bound(ordinals.start), bound(ordinals.end))
}

fn with_ordinal(entry: &[u8], ordinal: u64) -> Vec<u8> {
    [entry, ordinal.to_be_bytes().as_slice()].concat()
}

pub(super) fn ordinal_of(key: &[u8]) -> Result<u64, PartitionError> {
    let malformed = RecordError::Malformed { what: "index key" };
    let (_, ordinal) = key::parse_trailing_ordinal(key).ok_or(malformed)?;
    Ok(ordinal.as_u64())
}
