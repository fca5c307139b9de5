//! The change feed: the latest version of each item, in the order of commits.
//!
//! The log has one entry for each live item, at the position of its last change. So a
//! reader of the change feed scans keys in order, sees an item that changed twice once, and
//! has no state but a position. A position is between two commits; a page therefore has all
//! items of a commit or none.

use std::ops::Range;

use bytes::Bytes;
use model::epk::EpkRange;
use model::partition_key::PartitionKey;
use model::position::{Lsn, Ordinal, Timestamp};
use storage::{Direction, KeyRange, ScanLimit, View};

use crate::command::PartitionError;
use crate::key::{self, Group, Keys};
use crate::read::{Position, Reader, stored_name};
use crate::record::{Item, RecordError};
use crate::rows::Rows;

/// Commits between two checks of the clock.
const PACE_COMMITS: u32 = 64;

/// The changes to read.
#[derive(Clone, Debug)]
pub struct Changes {
    /// Those of items in this part of the ring.
    pub within: EpkRange,
    /// And, if given, those of partition keys with this prefix.
    pub prefix: Option<PartitionKey>,
    /// Those after this position; without one, only future ones.
    pub after: Option<Lsn>,
    /// And, if given, those of this second and later ones.
    pub since: Option<Timestamp>,
    /// A page ends where the next commit would not fit. One always fits.
    pub items_max: usize,
    pub bytes_max: u64,
}

/// Some changes, and the position that they reach.
#[derive(Debug, Default)]
pub struct ChangePage {
    pub items: Vec<Item>,
    /// The position where the page ended before it saw every change. All up to there have
    /// been read, however few of them match.
    pub cut: Option<Lsn>,
    /// Changes that were read and are not in it: of other keys, and of expired items.
    pub passed: u64,
}

impl Reader {
    /// Reads changes in the order in which they were made. Stops early when `go_on` returns
    /// false, which is called now and then.
    pub fn list_changes(
        &self,
        (view, now): (&dyn View, Timestamp),
        changes: &Changes,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<ChangePage, PartitionError> {
        let end = self.end_of_log(view)?;
        let after = changes.after.unwrap_or(end);
        if after > end {
            return Err(PartitionError::NoSuchPosition { after, end });
        }
        let mut logs = self.logs(view, changes, after)?;
        let (mut page, mut room, mut commits) = (ChangePage::default(), changes.bytes_max, 0_u32);
        let mut seen = after;
        while let Some(lsn) = earliest(&mut logs)? {
            commits = commits.wrapping_add(1);
            let ended = page.items.len() >= changes.items_max.max(1);
            if ended || (commits.is_multiple_of(PACE_COMMITS) && !go_on()) {
                page.cut = Some(seen);
                break;
            }
            let mut commit = Commit::default();
            for log in &mut logs {
                log.read_commit(lsn, &changes.within, &mut commit)?;
            }
            let read = commit.items.len();
            commit.items.retain(|item| {
                !self.config().is_expired(item, now)
                    && self.config().has_prefix(item, changes.prefix.as_ref())
            });
            commit.passed += (read - commit.items.len()) as u64;
            commit.items.sort_by_key(|item| item.step);
            let bytes = commit.items.iter().map(|item| item.text.len() as u64).sum();
            let full = page.items.len() + commit.items.len() > changes.items_max || bytes > room;
            if full && !page.items.is_empty() && !commit.items.is_empty() {
                page.cut = Some(seen);
                break;
            }
            room = room.saturating_sub(bytes);
            page.items.append(&mut commit.items);
            page.passed += commit.passed;
            seen = lsn;
        }
        Ok(page)
    }

    /// The position of the last commit that a view shows. Not taken from the sequencer: a
    /// client may have seen a commit whose durability the sequencer has not noticed yet.
    pub(crate) fn end_of_log(&self, view: &dyn View) -> Result<Lsn, PartitionError> {
        Ok(Lsn::from_u64(self.size(view)?.lsn).max(self.config().lsn_floor))
    }

    /// The logs of the buckets concerned, each from its start position.
    fn logs<'v>(
        &self,
        view: &'v dyn View,
        changes: &Changes,
        after: Lsn,
    ) -> Result<Vec<Log<'v>>, PartitionError> {
        let asked = self.buckets().iter().filter(|bucket| bucket.range.overlaps(&changes.within));
        asked
            .map(|bucket| {
                let keys = self.config().keys(bucket);
                let mut first = after.get().saturating_add(1);
                if let Some(since) = changes.since {
                    let end = self.head(view, bucket)?.lsn.saturating_add(1);
                    first = first_since((view, &keys), first..end, since)?;
                }
                Ok(Log::open(view, keys, first))
            })
            .collect()
    }
}

/// The items of one commit.
#[derive(Default)]
struct Commit {
    items: Vec<Item>,
    passed: u64,
}

/// The unread rest of a bucket's log.
struct Log<'v> {
    view: &'v dyn View,
    keys: Keys,
    rows: Rows<'v>,
}

impl<'v> Log<'v> {
    fn open(view: &'v dyn View, keys: Keys, first: u64) -> Log<'v> {
        Log { view, keys, rows: Rows::new(view, from(&keys, first), Direction::Forward) }
    }

    /// The position of the next entry.
    fn position(&mut self) -> Result<Option<Lsn>, PartitionError> {
        let Some((key, _)) = self.rows.peek()? else { return Ok(None) };
        Ok(Some(parse_key(key)?.0))
    }

    /// Reads the items of this commit, if they are next.
    fn read_commit(
        &mut self,
        lsn: Lsn,
        within: &EpkRange,
        commit: &mut Commit,
    ) -> Result<(), PartitionError> {
        while self.position()? == Some(lsn) {
            let Some((key, epk)) = self.rows.next()? else { return Ok(()) };
            let (epk, _) = key::take_epk(&epk).ok_or(DAMAGED)?;
            if within.contains(&epk) {
                commit.items.push(changed(self.view, &self.keys, parse_key(&key)?)?);
            } else {
                commit.passed += 1;
            }
        }
        Ok(())
    }
}

fn earliest(logs: &mut [Log<'_>]) -> Result<Option<Lsn>, PartitionError> {
    let mut earliest = None;
    for log in logs {
        earliest = earliest.into_iter().chain(log.position()?).min();
    }
    Ok(earliest)
}

const DAMAGED: RecordError = RecordError::Malformed { what: "log entry" };

/// The first of these positions in the log of a bucket with a change of a later second.
/// Times never go back along a log, so this is a binary search.
fn first_since(
    (view, keys): (&dyn View, &Keys),
    positions: Range<u64>,
    since: Timestamp,
) -> Result<u64, PartitionError> {
    let (mut low, mut high) = (positions.start, positions.end);
    while low < high {
        let middle = low + (high - low) / 2;
        let chunk = view.scan(&from(keys, middle), Direction::Forward, ScanLimit::rows(1))?;
        let Some((key, _)) = chunk.rows.first() else {
            high = middle;
            continue;
        };
        let item = changed(view, keys, parse_key(key)?)?;
        if item.ts.secs() > since.secs() {
            high = middle;
        } else {
            low = item.lsn.get().saturating_add(1);
        }
    }
    Ok(low)
}

/// The log of a bucket from a position on.
pub(crate) fn from(keys: &Keys, first: u64) -> KeyRange {
    let mut range = KeyRange::prefix(&keys.group(Group::Log));
    range.start = keys.log_position(Lsn::from_u64(first));
    range
}

pub(crate) fn parse_key(key: &Bytes) -> Result<(Lsn, Ordinal), RecordError> {
    let (_, _, _, rest) = key::split(key).ok_or(DAMAGED)?;
    let (lsn, ordinal) = key::parse_trailing_ordinal(rest).ok_or(DAMAGED)?;
    let lsn = lsn.try_into().map_err(|_| DAMAGED)?;
    Ok((Lsn::from_u64(u64::from_be_bytes(lsn)), ordinal))
}

/// The item that a log entry refers to.
pub(crate) fn changed(
    view: &dyn View,
    keys: &Keys,
    (lsn, ordinal): (Lsn, Ordinal),
) -> Result<Item, PartitionError> {
    let Position { epk, id } = stored_name(view, keys, ordinal)?;
    let item = Item::decode(&view.get(&keys.item(&epk, &id))?.ok_or(DAMAGED)?)?;
    if item.lsn == lsn { Ok(item) } else { Err(DAMAGED.into()) }
}
