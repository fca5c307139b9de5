//! One way through one bucket.

use std::fmt;
use std::ops::{AddAssign, Range};
use std::sync::Arc;

use bytes::Bytes;
use model::epk::{Epk, EpkRange};
use model::partition_key::PartitionKey;
use model::policy::TimeToLive;
use model::position::{Ordinal, Timestamp};
use storage::{Direction, KeyRange, StorageError, View};

use super::absent::Absent;
use super::access::Access;
use super::set::{self, Members};
use crate::command::Problem;
use crate::key::{self, GROUP_AT, Group, Keys};
use crate::record::{Head, Item, KeyStatistics, RecordError};
use crate::rows::Rows;
use crate::setup::{Bucket, Setup};

/// An item that a query may be about.
#[derive(Debug)]
pub struct Candidate {
    pub position: Vec<u8>,
    /// None if it turned out to have expired, or to be outside of what is asked for.
    pub item: Option<Item>,
}

/// Where a walk begins, if not at its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the first candidate that is not before all those that begin so.
    At(Vec<u8>),
    /// With the first one behind it.
    Behind(Vec<u8>),
    /// With the first one behind all those that begin so.
    Past(Vec<u8>),
}

/// Which items of a bucket a walk is about.
#[derive(Clone, Debug)]
pub struct Wanted<'s> {
    /// Those in these parts of the ring.
    pub within: &'s [EpkRange],
    /// The ordinals that they can have.
    pub ordinals: &'s Range<u64>,
    /// And of them, if given, those whose keys begin so.
    pub prefix: Option<&'s Arc<PartitionKey>>,
}

/// What a walk has looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Index entries.
    pub entries: u64,
    pub items: u64,
    /// Bytes of the items' texts.
    pub bytes: u64,
}

impl AddAssign for Effort {
    fn add_assign(&mut self, other: Effort) {
        self.entries += other.entries;
        self.items += other.items;
        self.bytes += other.bytes;
    }
}

/// Goes through one bucket.
pub struct Walk<'v> {
    view: &'v dyn View,
    now: Timestamp,
    setup: Arc<Setup>,
    keys: Keys,
    /// The parts of the ring that are asked for, where they do not have all of the bucket.
    clip: Option<Vec<EpkRange>>,
    prefix: Option<Arc<PartitionKey>>,
    source: Source<'v>,
    loaded: Effort,
}

enum Source<'v> {
    Nothing,
    Items(Ranges<'v>),
    /// With the items that have none, if they belong there.
    Entries {
        ranges: Ranges<'v>,
        absent: Option<Absent<'v>>,
        direction: Direction,
    },
    Set {
        members: Members<'v>,
        next: Range<u64>,
    },
}

/// A place on a walk.
#[derive(Debug)]
pub struct Found {
    pub position: Vec<u8>,
    what: What,
}

/// An entry, or an item that needs no looking up.
#[derive(Debug)]
enum What {
    Entry(u64),
    Item(Bytes),
}

impl<'v> Walk<'v> {
    /// Begins, behind all starts.
    pub(crate) fn open(
        (view, now): (&'v dyn View, Timestamp),
        setup: &Arc<Setup>,
        bucket: &Bucket,
        access: &Access,
        wanted: &Wanted<'_>,
        starts: &[Start],
    ) -> Result<Walk<'v>, Problem> {
        let Wanted { within, ordinals, prefix } = *wanted;
        let keys = setup.keys(bucket);
        let source = match access {
            Access::Nothing => Source::Nothing,
            Access::Items => {
                let group = keys.group(Group::Item);
                let of_keys = |within: &EpkRange| {
                    let mut range = KeyRange::prefix(&group);
                    range.start = range.start.max(keys.item(&within.min, ""));
                    if within.max < bucket.range.max {
                        range.end = Some(keys.item(&within.max, ""));
                    }
                    begin(&mut range, &group, starts, Direction::Forward);
                    range
                };
                let probed = within.len() > 1;
                let rest = within.iter().rev().map(|within| Stretch {
                    range: of_keys(within),
                    probe: within.position().filter(|_| probed).map(|epk| keys.statistics(epk)),
                });
                Source::Items(Ranges::new(view, rest.collect(), Direction::Forward))
            }
            Access::Entries { ranges, absent, backwards, .. } => {
                let direction = if *backwards { Direction::Backward } else { Direction::Forward };
                let group = keys.group(Group::Index);
                let mut rest: Vec<KeyRange> =
                    ranges.iter().map(|range| set::stored(&keys, range)).collect();
                rest.iter_mut().for_each(|range| begin(range, &group, starts, direction));
                if direction == Direction::Forward {
                    rest.reverse();
                }
                let rest = rest.into_iter().map(|range| Stretch { range, probe: None });
                let ranges = Ranges::new(view, rest.collect(), direction);
                let absent = absent.as_ref().map(|absence| {
                    let beginning = keys.index_entry(&absence.key);
                    let mut range = KeyRange::prefix(&beginning);
                    begin(&mut range, &group, starts, direction);
                    let asked = ordinals_in(&range, &beginning, ordinals);
                    Absent::new(view, &keys, absence, asked, direction)
                });
                Source::Entries { ranges, absent, direction }
            }
            Access::Set(set) => {
                let members = Members::open(view, &keys, (set, ordinals))?;
                let first = starts.iter().map(|start| match start {
                    Start::At(position) => ordinal_at(position),
                    Start::Behind(position) | Start::Past(position) => {
                        ordinal_at(position).saturating_add(1)
                    }
                });
                let first = first.max().unwrap_or_default();
                let next = ordinals.start.max(first)..ordinals.end;
                Source::Set { members, next }
            }
        };
        let whole = within.iter().any(|within| within.covers(&bucket.range));
        let clip = (!whole).then(|| within.to_vec());
        let (prefix, loaded) = (prefix.cloned(), Effort::default());
        Ok(Walk { view, now, setup: Arc::clone(setup), keys, clip, prefix, source, loaded })
    }

    /// The next place on the way. What is there is looked at when it is [loaded](Walk::load):
    /// whoever goes many ways at once needs only the one that comes first.
    pub fn advance(&mut self) -> Result<Option<Found>, Problem> {
        match &mut self.source {
            Source::Nothing => Ok(None),
            Source::Items(ranges) => {
                let Some((key, value)) = ranges.next()? else { return Ok(None) };
                Ok(Some(Found { position: position_in(&key), what: What::Item(value) }))
            }
            Source::Entries { ranges, absent, direction } => {
                if *direction == Direction::Forward
                    && let Some(found) = next_absent(absent)?
                {
                    return Ok(Some(found));
                }
                let Some((key, _)) = ranges.next()? else {
                    // Read backwards, they come last.
                    return next_absent(absent);
                };
                let what = What::Entry(set::ordinal_of(&key)?);
                Ok(Some(Found { position: position_in(&key), what }))
            }
            Source::Set { members, next } => {
                if next.is_empty() {
                    return Ok(None);
                }
                let found = members.seek(next.start)?.filter(|ordinal| next.contains(ordinal));
                let Some(ordinal) = found else {
                    next.start = next.end;
                    return Ok(None);
                };
                next.start = ordinal + 1;
                let position = ordinal.to_be_bytes().to_vec();
                Ok(Some(Found { position, what: What::Entry(ordinal) }))
            }
        }
    }

    /// Leaves out all places that begin so, if they are what comes next along an index.
    pub fn skip(&mut self, beginning: &[u8]) {
        let Source::Entries { ranges, absent, .. } = &mut self.source else { return };
        absent.iter_mut().for_each(|absent| absent.skip(beginning));
        ranges.current.skip(&self.keys.index_entry(beginning));
    }

    /// The item at a place that this walk found.
    pub fn load(&mut self, Found { position, what }: Found) -> Result<Candidate, Problem> {
        let value = match what {
            What::Item(value) => Some(value),
            What::Entry(ordinal) => self.item_of(ordinal)?,
        };
        let item = value.as_ref().map(Item::decode).transpose()?;
        if let Some(item) = &item {
            self.loaded.items += 1;
            self.loaded.bytes += item.bytes();
        }
        let prefix = self.prefix.as_deref();
        let item = item.filter(|item| {
            !self.setup.is_expired(item, self.now) && self.setup.has_prefix(item, prefix)
        });
        Ok(Candidate { position, item })
    }

    /// Counts the next candidates, so many at most, and says whether these were the last.
    /// It is all of them at once where their number is written down. Items that an index
    /// finds are not looked into, unless they may have expired or be another key's.
    pub fn count(&mut self, most: u64) -> Result<(u64, bool), Problem> {
        let lasting = self.setup.definition.ttl() == TimeToLive::Off;
        let sure = lasting && self.prefix.is_none();
        if sure
            && matches!(self.source, Source::Items(_))
            && let Some(known) = self.known_count()?
        {
            return Ok((known, true));
        }
        let mut count = 0;
        for _ in 0..most {
            let Some(found) = self.advance()? else { return Ok((count, true)) };
            let is_there = match found.what {
                What::Entry(ordinal) if sure => self.is_inside(ordinal)?,
                What::Entry(_) | What::Item(_) => self.load(found)?.item.is_some(),
            };
            count += u64::from(is_there);
        }
        Ok((count, false))
    }

    fn is_inside(&self, ordinal: u64) -> Result<bool, Problem> {
        Ok(self.clip.is_none() || self.key_of(ordinal)?.is_some())
    }

    /// How many items there are, where that is written down: in the bucket, and in
    /// each logical partition.
    fn known_count(&self) -> Result<Option<u64>, Problem> {
        let Some(clip) = &self.clip else {
            let head = self.view.get(&self.keys.head())?;
            let head = head.map(|head| Head::decode(&head)).transpose()?;
            return Ok(Some(head.unwrap_or_default().items));
        };
        let mut count = 0;
        for within in clip {
            let Some(epk) = within.position() else { return Ok(None) };
            if let Some(statistics) = self.view.get(&self.keys.statistics(epk))? {
                count += KeyStatistics::decode(&statistics)?.items;
            }
        }
        Ok(Some(count))
    }

    #[must_use]
    pub fn effort(&self) -> Effort {
        let entries = match &self.source {
            Source::Nothing => 0,
            Source::Items(ranges) => ranges.probed,
            Source::Entries { ranges, absent, .. } => {
                ranges.read + ranges.current.read + absent.as_ref().map_or(0, Absent::read)
            }
            Source::Set { members, .. } => members.read(),
        };
        Effort { entries, ..self.loaded }
    }

    /// What is stored of an item; `None` if it is not in the part of the ring that is
    /// asked for.
    fn item_of(&self, ordinal: u64) -> Result<Option<Bytes>, Problem> {
        let Some(key) = self.key_of(ordinal)? else { return Ok(None) };
        let damaged = RecordError::Malformed { what: "index key" };
        Ok(Some(self.view.get(&key)?.ok_or(damaged)?))
    }

    /// Where an item is stored; `None` if that is not in the part of the ring that is
    /// asked for.
    fn key_of(&self, ordinal: u64) -> Result<Option<Bytes>, Problem> {
        let damaged = |what| RecordError::Malformed { what };
        let ordinal = Ordinal::from_u64(ordinal).ok_or(damaged("index key"))?;
        let name = self.view.get(&self.keys.ordinal(ordinal))?.ok_or(damaged("ordinal"))?;
        let (epk, id) = key::parse_item_name(&name).ok_or(damaged("ordinal"))?;
        Ok(self
            .clip
            .as_ref()
            .is_none_or(|clip| is_among(clip, &epk))
            .then(|| self.keys.item(&epk, id)))
    }
}

fn next_absent(absent: &mut Option<Absent<'_>>) -> Result<Option<Found>, Problem> {
    let Some(walk) = absent else { return Ok(None) };
    let found = walk.next()?;
    Ok(found.map(|(position, ordinal)| Found { position, what: What::Entry(ordinal) }))
}

/// The ordinals that keys have behind a beginning, within a range of keys, as far as they
/// are asked for.
fn ordinals_in(range: &KeyRange, beginning: &[u8], asked: &Range<u64>) -> Range<u64> {
    // The first ordinal whose key is not before another key.
    let first_from = |key: &[u8]| -> Option<u64> {
        let rest = key.strip_prefix(beginning)?;
        let first = ordinal_at(rest);
        Some(if rest.len() > size_of::<u64>() { first.saturating_add(1) } else { first })
    };
    let nothing = u64::MAX..u64::MAX;
    let Some(start) = first_from(&range.start) else { return nothing };
    let end = range.end.as_ref().and_then(|end| first_from(end)).unwrap_or(u64::MAX);
    start.max(asked.start)..end.min(asked.end)
}

/// The rows of ranges, one after the other.
struct Ranges<'v> {
    view: &'v dyn View,
    direction: Direction,
    current: Rows<'v>,
    /// The last one comes next.
    rest: Vec<Stretch>,
    /// Rows of the ranges before the current one.
    read: u64,
    /// Ranges that were looked for first.
    probed: u64,
}

/// One of many ranges.
struct Stretch {
    range: KeyRange,
    /// A key that is there if the range has rows. Looking for one key is many times
    /// quicker than beginning to read a range, and of a long list most have none.
    probe: Option<Bytes>,
}

/// Whether one of many ranges has a position. They are in order and apart.
fn is_among(ranges: &[EpkRange], epk: &Epk) -> bool {
    let next = ranges.partition_point(|range| range.min <= *epk);
    next.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|range| range.contains(epk))
}

impl<'v> Ranges<'v> {
    fn new(view: &'v dyn View, rest: Vec<Stretch>, direction: Direction) -> Ranges<'v> {
        let nothing = KeyRange::new(Bytes::new(), Bytes::new());
        let current = Rows::new(view, nothing, direction);
        Ranges { view, direction, current, rest, read: 0, probed: 0 }
    }

    fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, StorageError> {
        loop {
            if let Some(row) = self.current.next()? {
                return Ok(Some(row));
            }
            let Some(Stretch { range, probe }) = self.rest.pop() else { return Ok(None) };
            if let Some(probe) = probe {
                self.probed += 1;
                if self.view.get(&probe)?.is_none() {
                    continue;
                }
            }
            self.read += self.current.read;
            self.current = Rows::new(self.view, range, self.direction);
        }
    }
}

impl fmt::Debug for Walk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Walk").field("effort", &self.effort()).finish_non_exhaustive()
    }
}

/// Lets a range begin where a walk does.
fn begin(range: &mut KeyRange, group: &[u8], starts: &[Start], direction: Direction) {
    starts.iter().for_each(|start| begin_at(range, group, start, direction));
}

fn begin_at(range: &mut KeyRange, group: &[u8], start: &Start, direction: Direction) {
    let at = |position: &[u8]| -> Bytes { [group, position].concat().into() };
    let behind = |position: &[u8]| -> Bytes { [group, position, &[0]].concat().into() };
    let (first, end) = match (start, direction) {
        (Start::At(position), Direction::Forward) => (Some(at(position)), None),
        (Start::Behind(position), Direction::Forward) => (Some(behind(position)), None),
        (Start::At(position), Direction::Backward) => (None, KeyRange::prefix(&at(position)).end),
        (Start::Behind(position) | Start::Past(position), Direction::Backward) => {
            (None, Some(at(position)))
        }
        (Start::Past(position), Direction::Forward) => {
            // Without an end there is nothing behind it.
            let end = KeyRange::prefix(&at(position)).end;
            (end.or_else(|| range.end.clone()), None)
        }
    };
    if let Some(first) = first {
        range.start = std::mem::take(&mut range.start).max(first);
    }
    if let Some(end) = end {
        range.end = Some(range.end.take().map_or(end.clone(), |old| old.min(end)));
    }
}

/// What is left of a key without what names its bucket and group.
fn position_in(key: &[u8]) -> Vec<u8> {
    key.get(GROUP_AT + 1..).unwrap_or_default().to_vec()
}

/// The ordinal at a place. Places come from clients, so any bytes are one.
fn ordinal_at(position: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(position).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(bytes)
}
