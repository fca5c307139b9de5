//! A scan of one bucket along an access path.

use std::fmt;
use std::ops::{AddAssign, Range, SubAssign};
use std::sync::Arc;

use bytes::Bytes;
use model::epk::{Epk, EpkRange};
use model::partition_key::PartitionKey;
use model::policy::TimeToLive;
use model::position::{Ordinal, Timestamp};
use storage::{Direction, KeyRange, StorageError, View};

use super::absent::AbsentScan;
use super::access::AccessPath;
use super::set_cursor::{self, SetCursor};
use crate::command::PartitionError;
use crate::config::{Bucket, PartitionConfig};
use crate::key::{self, GROUP_AT, Group, Keys};
use crate::record::{Head, Item, KeyStatistics, RecordError};
use crate::rows::Rows;

/// Start position of a scan, if it is not its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanStart {
    /// At the first candidate that is not before all those with this prefix.
    At(Vec<u8>),
    /// At the first one after it.
    After(Vec<u8>),
    /// At the first one after all those with this prefix.
    AfterPrefix(Vec<u8>),
}

impl ScanStart {
    #[must_use]
    pub fn position(&self) -> &[u8] {
        match self {
            ScanStart::At(position)
            | ScanStart::After(position)
            | ScanStart::AfterPrefix(position) => position,
        }
    }
}

/// The position on the ring of a position of [`super::ScanOrder::Items`].
#[must_use]
pub fn position_epk(position: &[u8]) -> Option<Epk> {
    key::parse_item_name(position).map(|(epk, _)| epk)
}

/// Which items of a bucket are scanned.
#[derive(Clone, Debug)]
pub(super) struct ScanScope<'s> {
    /// Those in these parts of the ring.
    pub(super) within: &'s [EpkRange],
    /// The ordinals that they can have.
    pub(super) ordinals: &'s Range<u64>,
    /// And of them, if given, those whose partition keys have this prefix.
    pub(super) prefix: Option<&'s Arc<PartitionKey>>,
}

/// What a scan has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanStats {
    /// Index entries.
    pub entries: u64,
    pub items: u64,
    /// Bytes of the items' texts.
    pub bytes: u64,
}

impl AddAssign for ScanStats {
    fn add_assign(&mut self, other: ScanStats) {
        self.entries += other.entries;
        self.items += other.items;
        self.bytes += other.bytes;
    }
}

impl SubAssign for ScanStats {
    fn sub_assign(&mut self, other: ScanStats) {
        self.entries = self.entries.saturating_sub(other.entries);
        self.items = self.items.saturating_sub(other.items);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }
}

/// A cursor over one bucket along an access path.
pub(super) struct BucketScan<'v> {
    view: &'v dyn View,
    now: Timestamp,
    config: Arc<PartitionConfig>,
    keys: Keys,
    /// The scanned parts of the ring, where they do not contain all of the bucket.
    clip: Option<Vec<EpkRange>>,
    prefix: Option<Arc<PartitionKey>>,
    source: ScanSource<'v>,
    loaded: ScanStats,
}

enum ScanSource<'v> {
    Nothing,
    Items(Ranges<'v>),
    /// With the items that have none, if they belong there.
    Entries {
        ranges: Ranges<'v>,
        absent: Option<AbsentScan<'v>>,
        direction: Direction,
    },
    Set {
        members: SetCursor<'v>,
        next: Range<u64>,
    },
}

/// A position in a scan whose item is not loaded yet.
#[derive(Debug)]
pub(super) struct ScanEntry {
    pub(super) position: Bytes,
    target: Target,
}

/// An entry, or an item that needs no lookup.
#[derive(Debug)]
enum Target {
    Entry(u64),
    Item(Bytes),
}

impl<'v> BucketScan<'v> {
    /// Opens the scan, after all start positions.
    pub(super) fn open(
        (view, now): (&'v dyn View, Timestamp),
        config: &Arc<PartitionConfig>,
        bucket: &Bucket,
        access: &AccessPath,
        wanted: &ScanScope<'_>,
        starts: &[ScanStart],
    ) -> Result<BucketScan<'v>, PartitionError> {
        let ScanScope { within, ordinals, prefix } = *wanted;
        let keys = config.keys(bucket);
        let source = match access {
            AccessPath::Nothing => ScanSource::Nothing,
            AccessPath::Items => {
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
                let rest = within.iter().rev().map(|within| KeySpan {
                    range: of_keys(within),
                    probe: within.position().filter(|_| probed).map(|epk| keys.statistics(epk)),
                });
                ScanSource::Items(Ranges::new(view, rest.collect(), Direction::Forward))
            }
            AccessPath::Entries { ranges, absent, backwards, .. } => {
                let direction = if *backwards { Direction::Backward } else { Direction::Forward };
                let group = keys.group(Group::Index);
                let mut rest: Vec<KeyRange> =
                    ranges.iter().map(|range| set_cursor::stored(&keys, range)).collect();
                rest.iter_mut().for_each(|range| begin(range, &group, starts, direction));
                if direction == Direction::Forward {
                    rest.reverse();
                }
                let rest = rest.into_iter().map(|range| KeySpan { range, probe: None });
                let ranges = Ranges::new(view, rest.collect(), direction);
                let absent = absent.as_ref().map(|absence| {
                    let beginning = keys.index_entry(&absence.key);
                    let mut range = KeyRange::prefix(&beginning);
                    begin(&mut range, &group, starts, direction);
                    let asked = ordinals_in(&range, &beginning, ordinals);
                    AbsentScan::new(view, &keys, absence, asked, direction)
                });
                ScanSource::Entries { ranges, absent, direction }
            }
            AccessPath::Set(set) => {
                let members = SetCursor::open(view, &keys, (set, ordinals))?;
                let first = starts.iter().map(|start| match start {
                    ScanStart::At(position) => ordinal_at(position),
                    ScanStart::After(position) | ScanStart::AfterPrefix(position) => {
                        ordinal_at(position).saturating_add(1)
                    }
                });
                let first = first.max().unwrap_or_default();
                let next = ordinals.start.max(first)..ordinals.end;
                ScanSource::Set { members, next }
            }
        };
        let whole = within.iter().any(|within| within.covers(&bucket.range));
        let clip = (!whole).then(|| within.to_vec());
        let (prefix, loaded) = (prefix.cloned(), ScanStats::default());
        Ok(BucketScan { view, now, config: Arc::clone(config), keys, clip, prefix, source, loaded })
    }

    /// The next position. Its item is loaded later ([`load_all`], late materialisation): a
    /// merge of many scans needs only the one that comes first.
    pub(super) fn advance(&mut self) -> Result<Option<ScanEntry>, PartitionError> {
        match &mut self.source {
            ScanSource::Nothing => Ok(None),
            ScanSource::Items(ranges) => {
                let Some((key, value)) = ranges.next()? else { return Ok(None) };
                Ok(Some(ScanEntry { position: position_in(&key), target: Target::Item(value) }))
            }
            ScanSource::Entries { ranges, absent, direction } => {
                if *direction == Direction::Forward
                    && let Some(found) = next_absent(absent)?
                {
                    return Ok(Some(found));
                }
                let Some((key, _)) = ranges.next()? else {
                    // Read backwards, they come last.
                    return next_absent(absent);
                };
                let target = Target::Entry(set_cursor::ordinal_of(&key)?);
                Ok(Some(ScanEntry { position: position_in(&key), target }))
            }
            ScanSource::Set { members, next } => {
                if next.is_empty() {
                    return Ok(None);
                }
                let found = members.seek(next.start)?.filter(|ordinal| next.contains(ordinal));
                let Some(ordinal) = found else {
                    next.start = next.end;
                    return Ok(None);
                };
                next.start = ordinal + 1;
                let position = Bytes::copy_from_slice(&ordinal.to_be_bytes());
                Ok(Some(ScanEntry { position, target: Target::Entry(ordinal) }))
            }
        }
    }

    /// Skips all positions with this prefix, if they come next along an index.
    pub(super) fn skip(&mut self, beginning: &[u8]) {
        let ScanSource::Entries { ranges, absent, .. } = &mut self.source else { return };
        absent.iter_mut().for_each(|absent| absent.skip(beginning));
        ranges.current.skip(&self.keys.index_entry(beginning));
    }

    /// The item at a position that this scan returned.
    fn load(&mut self, entry: ScanEntry) -> Result<Option<Item>, PartitionError> {
        let value = match entry.target {
            Target::Item(value) => Some(value),
            Target::Entry(ordinal) => match self.key_of(ordinal)? {
                Some(key) => Some(self.view.get(&key)?.ok_or_else(dangling)?),
                None => None,
            },
        };
        let mut loaded = self.loaded;
        let item = self.checked(value.as_ref(), &mut loaded)?;
        self.loaded = loaded;
        Ok(item)
    }

    /// The item of a stored value, counted; `None` if it has expired or has another
    /// partition key.
    fn checked(
        &self,
        value: Option<&Bytes>,
        loaded: &mut ScanStats,
    ) -> Result<Option<Item>, PartitionError> {
        let item = value.map(Item::decode).transpose()?;
        if let Some(item) = &item {
            loaded.items += 1;
            loaded.bytes += item.bytes();
        }
        let prefix = self.prefix.as_deref();
        Ok(item.filter(|item| {
            !self.config.is_expired(item, self.now) && self.config.has_prefix(item, prefix)
        }))
    }

    /// Counts the next candidates, `most` at most, and returns whether these were the last.
    /// Counts all of them at once where their number is stored. Items that an index finds
    /// are not loaded, unless they may have expired or have another partition key.
    pub(super) fn count(&mut self, most: u64) -> Result<(u64, bool), PartitionError> {
        let lasting = self.config.definition.ttl() == TimeToLive::Off;
        let sure = lasting && self.prefix.is_none();
        if sure
            && matches!(self.source, ScanSource::Items(_))
            && let Some(known) = self.known_count()?
        {
            return Ok((known, true));
        }
        let mut count = 0;
        for _ in 0..most {
            let Some(found) = self.advance()? else { return Ok((count, true)) };
            let is_there = match found.target {
                Target::Entry(ordinal) if sure => self.is_inside(ordinal)?,
                Target::Entry(_) | Target::Item(_) => self.load(found)?.is_some(),
            };
            count += u64::from(is_there);
        }
        Ok((count, false))
    }

    fn is_inside(&self, ordinal: u64) -> Result<bool, PartitionError> {
        Ok(self.clip.is_none() || self.key_of(ordinal)?.is_some())
    }

    /// The number of items, where it is stored: for the bucket, and for each logical
    /// partition.
    fn known_count(&self) -> Result<Option<u64>, PartitionError> {
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

    /// Index entries that were read.
    pub(super) fn entries(&self) -> u64 {
        match &self.source {
            ScanSource::Nothing => 0,
            ScanSource::Items(ranges) => ranges.probed,
            ScanSource::Entries { ranges, absent, .. } => {
                ranges.read + ranges.current.read + absent.as_ref().map_or(0, AbsentScan::read)
            }
            ScanSource::Set { members, .. } => members.read(),
        }
    }

    /// What was read while candidates were counted.
    pub(super) fn stats(&self) -> ScanStats {
        ScanStats { entries: self.entries(), ..self.loaded }
    }

    /// The key of an item; `None` if it is not in the scanned part of the ring.
    fn key_of(&self, ordinal: u64) -> Result<Option<Bytes>, PartitionError> {
        let name = self.view.get(&self.name_key(ordinal)?)?;
        self.item_key(name.as_deref())
    }

    /// The key of an item's name.
    fn name_key(&self, ordinal: u64) -> Result<Bytes, PartitionError> {
        Ok(self.keys.ordinal(Ordinal::from_u64(ordinal).ok_or_else(dangling)?))
    }

    /// The key of the item with a name; `None` if it is not in the scanned part of the
    /// ring.
    fn item_key(&self, name: Option<&[u8]>) -> Result<Option<Bytes>, PartitionError> {
        let damaged = || RecordError::Malformed { what: "ordinal" };
        let (epk, id) = name.and_then(key::parse_item_name).ok_or_else(damaged)?;
        let is_inside = self.clip.as_ref().is_none_or(|clip| is_among(clip, &epk));
        Ok(is_inside.then(|| self.keys.item(&epk, id)))
    }
}

/// An index entry without an item.
fn dangling() -> RecordError {
    RecordError::Malformed { what: "index key" }
}

/// Loads the items at positions that scans of one view returned, each with the number of
/// its scan, by batched lookups: first their names, then the items. Adds up what was loaded
/// after each.
pub(super) fn load_all(
    view: &dyn View,
    scans: &[BucketScan<'_>],
    entries: &[(usize, ScanEntry)],
    loaded: &mut ScanStats,
) -> Result<Vec<(Option<Item>, ScanStats)>, PartitionError> {
    let scan = |at: usize| scans.get(at).ok_or(PartitionError::Gone);
    let mut names = Vec::new();
    for (at, entry) in entries {
        if let Target::Entry(ordinal) = entry.target {
            names.push(scan(*at)?.name_key(ordinal)?);
        }
    }
    let mut names = view.multi_get(&names)?.into_iter();
    let (mut keys, mut is_looked_up) = (Vec::new(), Vec::with_capacity(entries.len()));
    for (at, entry) in entries {
        let key = match entry.target {
            Target::Entry(_) => scan(*at)?.item_key(names.next().flatten().as_deref())?,
            Target::Item(_) => None,
        };
        is_looked_up.push(key.is_some());
        keys.extend(key);
    }
    let mut values = view.multi_get(&keys)?.into_iter();
    let mut items = Vec::with_capacity(entries.len());
    for ((at, entry), is_looked_up) in entries.iter().zip(is_looked_up) {
        let value = match &entry.target {
            Target::Item(value) => Some(value.clone()),
            Target::Entry(_) if is_looked_up => Some(values.next().flatten().ok_or_else(dangling)?),
            Target::Entry(_) => None,
        };
        let item = scan(*at)?.checked(value.as_ref(), loaded)?;
        items.push((item, *loaded));
    }
    Ok(items)
}

fn next_absent(absent: &mut Option<AbsentScan<'_>>) -> Result<Option<ScanEntry>, PartitionError> {
    let Some(scan) = absent else { return Ok(None) };
    let found = scan.next()?;
    Ok(found.map(|(position, ordinal)| ScanEntry {
        position: position.into(),
        target: Target::Entry(ordinal),
    }))
}

/// The ordinals of the keys with a prefix within a range of keys, as far as they are
/// scanned.
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
    rest: Vec<KeySpan>,
    /// Rows of the ranges before the current one.
    read: u64,
    /// Ranges that were probed first.
    probed: u64,
}

/// One of many ranges.
struct KeySpan {
    range: KeyRange,
    /// A key that exists if the range has rows. A point lookup is many times quicker than
    /// starting a range scan, and of a long list most are empty.
    probe: Option<Bytes>,
}

/// Whether one of many ranges contains a position. They are in order and disjoint.
fn is_among(ranges: &[EpkRange], epk: &Epk) -> bool {
    let next = ranges.partition_point(|range| range.min <= *epk);
    next.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|range| range.contains(epk))
}

impl<'v> Ranges<'v> {
    fn new(view: &'v dyn View, rest: Vec<KeySpan>, direction: Direction) -> Ranges<'v> {
        let nothing = KeyRange::new(Bytes::new(), Bytes::new());
        let current = Rows::new(view, nothing, direction);
        Ranges { view, direction, current, rest, read: 0, probed: 0 }
    }

    fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, StorageError> {
        loop {
            if let Some(row) = self.current.next()? {
                return Ok(Some(row));
            }
            let Some(KeySpan { range, probe }) = self.rest.pop() else { return Ok(None) };
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

impl fmt::Debug for BucketScan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketScan").field("entries", &self.entries()).finish_non_exhaustive()
    }
}

/// Narrows a range to the start position of a scan.
fn begin(range: &mut KeyRange, group: &[u8], starts: &[ScanStart], direction: Direction) {
    starts.iter().for_each(|start| begin_at(range, group, start, direction));
}

fn begin_at(range: &mut KeyRange, group: &[u8], start: &ScanStart, direction: Direction) {
    let at = |position: &[u8]| -> Bytes { [group, position].concat().into() };
    let behind = |position: &[u8]| -> Bytes { [group, position, &[0]].concat().into() };
    let (first, end) = match (start, direction) {
        (ScanStart::At(position), Direction::Forward) => (Some(at(position)), None),
        (ScanStart::After(position), Direction::Forward) => (Some(behind(position)), None),
        (ScanStart::At(position), Direction::Backward) => {
            (None, KeyRange::prefix(&at(position)).end)
        }
        (ScanStart::After(position) | ScanStart::AfterPrefix(position), Direction::Backward) => {
            (None, Some(at(position)))
        }
        (ScanStart::AfterPrefix(position), Direction::Forward) => {
            // Without an end there is nothing after it.
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

/// A key without its bucket and group, as a slice, not a copy.
fn position_in(key: &Bytes) -> Bytes {
    key.slice((GROUP_AT + 1).min(key.len())..)
}

/// The ordinal at a position. Positions come from clients, so any bytes are possible.
fn ordinal_at(position: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(position).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(bytes)
}
