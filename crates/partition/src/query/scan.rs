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

/// Logical partitions whose members are merged. Of more, items are found otherwise.
pub const KEYS_MAX: usize = 64;

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

/// Which items of a bucket are scanned.
#[derive(Clone, Debug)]
pub(super) struct ScanScope<'s> {
    /// Those in these parts of the ring.
    pub(super) within: &'s [EpkRange],
    /// And of them those with these ordinals.
    pub(super) ordinals: &'s Range<u64>,
    /// And of those, if given, the ones whose partition keys have this prefix.
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
    /// The names of items, in the order of creation.
    Names(Rows<'v>),
    /// The members of one logical partition, in the order of creation.
    Members {
        rows: Rows<'v>,
        epk: Epk,
    },
    /// With the items that have none, if they belong there.
    Entries {
        ranges: Ranges<'v>,
        absent: Option<AbsentScan<'v>>,
        direction: Direction,
    },
    Set {
        members: SetCursor<'v>,
        next: Range<u64>,
        own: Option<OwnEntries>,
    },
}

/// The entries of items that were found in single logical partitions: those of others that
/// were passed do not count.
struct OwnEntries {
    per_item: u64,
    found: u64,
}

/// A position in a scan whose item is not loaded yet.
#[derive(Debug)]
pub(super) struct ScanEntry {
    pub(super) position: Bytes,
    target: Target,
}

/// A position that a scan has come to.
pub(super) struct Found {
    pub(super) entry: ScanEntry,
    /// The number of its scan among those that are merged.
    pub(super) scan: usize,
    /// Entries that all of them had read by then.
    pub(super) entries: u64,
}

/// What is known of an item.
#[derive(Debug)]
enum Target {
    Entry(u64),
    /// The key of the item.
    Key(Bytes),
    Item(Bytes),
    /// It is in another part of the ring.
    Outside,
}

impl<'v> BucketScan<'v> {
    /// Opens the scan, after all start positions.
    pub(super) fn open(
        (view, now): (&'v dyn View, Timestamp),
        config: &Arc<PartitionConfig>,
        bucket: &Bucket,
        access: &'v AccessPath,
        wanted: &ScanScope<'_>,
        starts: &[ScanStart],
    ) -> Result<BucketScan<'v>, PartitionError> {
        let ScanScope { within, ordinals, prefix } = *wanted;
        let keys = config.keys(bucket);
        let whole = within.iter().any(|within| within.covers(&bucket.range));
        let is_keys = !whole
            && within.len() <= KEYS_MAX
            && within.iter().all(|within| within.position().is_some());
        let positions = || within.iter().filter_map(EpkRange::position);
        let source = match access {
            AccessPath::Nothing => ScanSource::Nothing,
            AccessPath::Created => {
                ScanSource::created(view, &keys, within, is_keys, from_starts(ordinals, starts))
            }
            AccessPath::Items => ScanSource::items(view, &keys, bucket, within),
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
                let next = from_starts(ordinals, starts);
                let mut members = SetCursor::open(view, &keys, (set, &next))?;
                let own = is_keys.then(|| OwnEntries { per_item: set.leaves(), found: 0 });
                if is_keys {
                    let of_keys = SetCursor::of_keys(view, &keys, positions(), &next);
                    members = SetCursor::All(vec![of_keys, members]);
                }
                ScanSource::Set { members, next, own }
            }
        };
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
            ScanSource::Names(rows) => {
                let Some((key, name)) = rows.next()? else { return Ok(None) };
                let target = match item_key(&self.keys, self.clip.as_deref(), Some(&name))? {
                    Some(item) => Target::Key(item),
                    None => Target::Outside,
                };
                Ok(Some(ScanEntry { position: position_in(&key), target }))
            }
            ScanSource::Members { rows, epk } => {
                let Some((key, id)) = rows.next()? else { return Ok(None) };
                let malformed = |_| RecordError::Malformed { what: "member" };
                let target =
                    Target::Key(self.keys.item(epk, std::str::from_utf8(&id).map_err(malformed)?));
                let position = key.slice(key.len().saturating_sub(size_of::<u64>())..);
                Ok(Some(ScanEntry { position, target }))
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
            ScanSource::Set { members, next, own } => {
                if next.is_empty() {
                    return Ok(None);
                }
                let found = members.seek(next.start)?.filter(|ordinal| next.contains(ordinal));
                let Some(ordinal) = found else {
                    next.start = next.end;
                    return Ok(None);
                };
                next.start = ordinal + 1;
                own.iter_mut().for_each(|own| own.found += 1);
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

    /// The item at a position that this scan returned. Adds it to what was loaded.
    fn load(
        &self,
        target: &Target,
        loaded: &mut ScanStats,
    ) -> Result<Option<Item>, PartitionError> {
        let value = match target {
            Target::Item(value) => return self.checked(Some(value), loaded),
            Target::Outside => None,
            Target::Key(key) => Some(self.view.get(key)?.ok_or_else(dangling)?),
            Target::Entry(ordinal) => match self.key_of(*ordinal)? {
                Some(key) => Some(self.view.get(&key)?.ok_or_else(dangling)?),
                None => None,
            },
        };
        self.checked(value.as_ref(), loaded)
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
                Target::Entry(_) | Target::Key(_) | Target::Item(_) | Target::Outside => {
                    let mut loaded = self.loaded;
                    let item = self.load(&found.target, &mut loaded)?;
                    self.loaded = loaded;
                    item.is_some()
                }
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
            ScanSource::Nothing | ScanSource::Names(_) | ScanSource::Members { .. } => 0,
            ScanSource::Items(ranges) => ranges.probed,
            ScanSource::Entries { ranges, absent, .. } => {
                ranges.read + ranges.current.read + absent.as_ref().map_or(0, AbsentScan::read)
            }
            ScanSource::Set { own: Some(own), .. } => own.per_item * own.found,
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
        item_key(&self.keys, self.clip.as_deref(), name.as_deref())
    }

    /// The key of an item's name.
    fn name_key(&self, ordinal: u64) -> Result<Bytes, PartitionError> {
        Ok(self.keys.ordinal(Ordinal::from_u64(ordinal).ok_or_else(dangling)?))
    }
}

impl<'v> ScanSource<'v> {
    /// All items in parts of the ring, in the order of keys.
    fn items(
        view: &'v dyn View,
        keys: &Keys,
        bucket: &Bucket,
        within: &[EpkRange],
    ) -> ScanSource<'v> {
        let group = keys.group(Group::Item);
        let of_keys = |within: &EpkRange| {
            let mut range = KeyRange::prefix(&group);
            range.start = range.start.max(keys.item(&within.min, ""));
            if within.max < bucket.range.max {
                range.end = Some(keys.item(&within.max, ""));
            }
            range
        };
        let probed = within.len() > 1;
        let rest = within.iter().rev().map(|within| KeySpan {
            range: of_keys(within),
            probe: within.position().filter(|_| probed).map(|epk| keys.statistics(epk)),
        });
        ScanSource::Items(Ranges::new(view, rest.collect(), Direction::Forward))
    }

    /// The same in the order of creation.
    fn created(
        view: &'v dyn View,
        keys: &Keys,
        within: &[EpkRange],
        is_keys: bool,
        ordinals: Range<u64>,
    ) -> ScanSource<'v> {
        let rows = |prefix: &[u8]| {
            Rows::new(view, set_cursor::run_of(prefix, &ordinals), Direction::Forward)
        };
        match within {
            _ if !is_keys => ScanSource::Names(rows(&keys.group(Group::Ordinal))),
            [EpkRange { min: epk, .. }] => {
                ScanSource::Members { rows: rows(&keys.members(epk)), epk: epk.clone() }
            }
            several => {
                let positions = several.iter().filter_map(EpkRange::position);
                let members = SetCursor::of_keys(view, keys, positions, &ordinals);
                ScanSource::Set { members, next: ordinals, own: None }
            }
        }
    }
}

/// The key of the item with a name; `None` if it is not in the scanned part of the ring.
fn item_key(
    keys: &Keys,
    clip: Option<&[EpkRange]>,
    name: Option<&[u8]>,
) -> Result<Option<Bytes>, PartitionError> {
    let damaged = || RecordError::Malformed { what: "ordinal" };
    let name = name.ok_or_else(damaged)?;
    if let Some(clip) = clip {
        let (epk, _) = key::take_epk(name).ok_or_else(damaged)?;
        if !is_among(clip, &epk) {
            return Ok(None);
        }
    }
    // A damaged name leads to no item.
    Ok(Some(keys.named_item(name)))
}

/// The ordinals that are left from start positions on.
fn from_starts(ordinals: &Range<u64>, starts: &[ScanStart]) -> Range<u64> {
    let firsts = starts.iter().map(|start| match start {
        ScanStart::At(position) => ordinal_at(position),
        ScanStart::After(position) | ScanStart::AfterPrefix(position) => {
            ordinal_at(position).saturating_add(1)
        }
    });
    firsts.fold(ordinals.start, u64::max).min(ordinals.end)..ordinals.end
}

/// An index entry without an item.
fn dangling() -> RecordError {
    RecordError::Malformed { what: "index key" }
}

/// Loads the item at a position that one of the scans returned. Adds it to what was loaded.
pub(super) fn load(
    scans: &[BucketScan<'_>],
    Found { entry, scan, .. }: &Found,
    loaded: &mut ScanStats,
) -> Result<Option<Item>, PartitionError> {
    scan_at(scans, *scan)?.load(&entry.target, loaded)
}

/// Loads the items at positions that scans of one view returned, by batched lookups: first
/// their names, then the items. Hands on each with what had been read for it and those
/// before it.
pub(super) fn load_all(
    view: &dyn View,
    scans: &[BucketScan<'_>],
    mut found: Vec<Found>,
    loaded: &mut ScanStats,
    mut take: impl FnMut(Bytes, Option<Item>, ScanStats),
) -> Result<(), PartitionError> {
    let names = view.multi_get(&name_keys(scans, &found)?)?;
    let items = view.multi_get(&item_keys(scans, &mut found, names)?)?;
    let mut items = items.into_iter();
    for Found { entry, scan, entries } in found {
        let value = match entry.target {
            Target::Item(value) => Some(value),
            Target::Entry(_) | Target::Key(_) => Some(items.next().flatten().ok_or_else(dangling)?),
            Target::Outside => None,
        };
        let item = scan_at(scans, scan)?.checked(value.as_ref(), loaded)?;
        take(entry.position, item, ScanStats { entries, ..*loaded });
    }
    Ok(())
}

fn scan_at<'s, 'v>(
    scans: &'s [BucketScan<'v>],
    at: usize,
) -> Result<&'s BucketScan<'v>, PartitionError> {
    scans.get(at).ok_or(PartitionError::Gone)
}

/// The keys of the names of all items that have to be looked up.
fn name_keys(scans: &[BucketScan<'_>], found: &[Found]) -> Result<Vec<Bytes>, PartitionError> {
    let mut keys = Vec::with_capacity(found.len());
    for Found { entry, scan, .. } in found {
        if let Target::Entry(ordinal) = entry.target {
            keys.push(scan_at(scans, *scan)?.name_key(ordinal)?);
        }
    }
    Ok(keys)
}

/// The keys of the items with these names. Marks the others as outside.
fn item_keys(
    scans: &[BucketScan<'_>],
    found: &mut [Found],
    names: Vec<Option<Bytes>>,
) -> Result<Vec<Bytes>, PartitionError> {
    let (mut keys, mut names) = (Vec::with_capacity(found.len()), names.into_iter());
    for Found { entry, scan, .. } in found {
        match &entry.target {
            Target::Entry(_) => {
                let (scan, name) = (scan_at(scans, *scan)?, names.next().flatten());
                match item_key(&scan.keys, scan.clip.as_deref(), name.as_deref())? {
                    Some(key) => keys.push(key),
                    None => entry.target = Target::Outside,
                }
            }
            Target::Key(key) => keys.push(key.clone()),
            Target::Item(_) | Target::Outside => {}
        }
    }
    Ok(keys)
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

/// The ordinal at a position in the order of creation. Positions come from clients, so any
/// bytes are possible.
#[must_use]
pub fn ordinal_at(position: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(position).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(bytes)
}
