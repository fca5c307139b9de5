//! Reading the history: the change feed of all versions and deletes.
//!
//! As the feed of latest versions it merges buckets in the order of commits and cuts pages
//! between them. Changes of one partition key are found by the key history, so that reading
//! them costs what that key has, however much others change.

use model::epk::{Epk, EpkRange};
use model::partition_key::PartitionKey;
use model::position::Lsn;
use storage::{Direction, KeyRange, ScanLimit, View};

use super::{HistoryRecord, decode_horizon};
use crate::changes::Changes;
use crate::command::PartitionError;
use crate::config::Bucket;
use crate::key::{self, Group, HistoryPosition, Keys};
use crate::read::Reader;
use crate::record::RecordError;
use crate::rows::Rows;

/// Commits between two checks of the clock.
const PACE_COMMITS: u32 = 64;

const DAMAGED: RecordError = RecordError::Malformed { what: "history" };

/// The operations to read: all that [`Changes`] says but `since`, which there is none of.
#[derive(Clone, Debug)]
pub struct History(pub Changes);

/// Some operations, and the position that they reach.
#[derive(Debug, Default)]
pub struct HistoryPage {
    pub records: Vec<HistoryRecord>,
    /// The position where the page ended before it saw everything.
    pub cut: Option<Lsn>,
    /// Records that were read and are not in it: those of other keys.
    pub passed: u64,
}

impl Reader {
    /// Reads operations in the order in which they were done. Stops early when `go_on`
    /// returns false, which is called now and then.
    pub fn list_history(
        &self,
        view: &dyn View,
        History(changes): &History,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<HistoryPage, PartitionError> {
        let after = self.start_of_history(view, changes)?;
        let mut buckets = self.histories(view, &changes.within, after)?;
        let (mut page, mut room, mut commits) = (HistoryPage::default(), changes.bytes_max, 0_u32);
        let mut seen = after;
        while let Some(lsn) = earliest(&mut buckets)? {
            commits = commits.wrapping_add(1);
            let ended = page.records.len() >= changes.items_max.max(1);
            if ended || (commits.is_multiple_of(PACE_COMMITS) && !go_on()) {
                page.cut = Some(seen);
                break;
            }
            let (records, passed) = self.read_commit(&mut buckets, lsn, changes)?;
            let bytes = records.iter().map(HistoryRecord::bytes).sum();
            let full = page.records.len() + records.len() > changes.items_max || bytes > room;
            if full && !page.records.is_empty() && !records.is_empty() {
                page.cut = Some(seen);
                break;
            }
            room = room.saturating_sub(bytes);
            page.records.extend(records);
            page.passed += passed;
            seen = lsn;
        }
        Ok(page)
    }

    /// The position to begin after, if there is a complete history from there on.
    fn start_of_history(&self, view: &dyn View, changes: &Changes) -> Result<Lsn, PartitionError> {
        if !self.config().keeps_history() {
            return Err(PartitionError::NoHistory);
        }
        let end = self.end_of_log(view)?;
        let after = changes.after.unwrap_or(end);
        if after > end {
            return Err(PartitionError::NoSuchPosition { after, end });
        }
        for bucket in self.asked(&changes.within) {
            let horizon = self.horizon(view, bucket)?;
            if after < horizon {
                return Err(PartitionError::HistoryGone { after, horizon });
            }
        }
        Ok(after)
    }

    /// The position after which the history of a bucket is complete. Before the first
    /// operation under the policy there is nothing to be told.
    fn horizon(&self, view: &dyn View, bucket: &Bucket) -> Result<Lsn, PartitionError> {
        match view.get(&self.config().keys(bucket).horizon())? {
            Some(value) => Ok(decode_horizon(&value)?),
            None => Ok(Lsn::from_u64(self.head(view, bucket)?.lsn)),
        }
    }

    fn asked(&self, within: &EpkRange) -> impl Iterator<Item = &Bucket> {
        self.buckets().iter().filter(|bucket| bucket.range.overlaps(within))
    }

    fn histories<'v>(
        &self,
        view: &'v dyn View,
        within: &EpkRange,
        after: Lsn,
    ) -> Result<Vec<BucketHistory<'v>>, PartitionError> {
        self.asked(within)
            .map(|bucket| BucketHistory::open(view, self.config().keys(bucket), within, after))
            .collect()
    }

    /// The wanted records of one commit, in the order of its operations, and how many others
    /// were read.
    fn read_commit(
        &self,
        buckets: &mut [BucketHistory<'_>],
        lsn: Lsn,
        changes: &Changes,
    ) -> Result<(Vec<HistoryRecord>, u64), PartitionError> {
        let mut commit = Vec::new();
        for bucket in buckets {
            bucket.read_commit(lsn, &mut commit)?;
        }
        commit.sort_by_key(|(number, _)| *number);
        let read = commit.len();
        let records = commit.into_iter().map(|(_, record)| record);
        let records: Vec<_> = records.filter(|record| self.wants(record, changes)).collect();
        let passed = (read - records.len()) as u64;
        Ok((records, passed))
    }

    fn wants(&self, record: &HistoryRecord, changes: &Changes) -> bool {
        let definition = self.config().definition.partition_key();
        // Of a prefix, the range has other keys with the same hashes as well.
        let has_prefix = |prefix: &PartitionKey| definition.begins_with(record.json(), prefix);
        changes.within.contains(&record.epk) && changes.prefix.as_ref().is_none_or(has_prefix)
    }
}

/// The unread rest of a bucket's history.
struct BucketHistory<'v> {
    view: &'v dyn View,
    keys: Keys,
    rows: Rows<'v>,
    /// The rows are those of a key's history, which have no records.
    of_one_key: bool,
}

impl<'v> BucketHistory<'v> {
    /// After a position, of all keys or, if the range has only one, of that.
    fn open(
        view: &'v dyn View,
        keys: Keys,
        within: &EpkRange,
        after: Lsn,
    ) -> Result<BucketHistory<'v>, PartitionError> {
        let first = Lsn::from_u64(after.get().saturating_add(1));
        let (of_one_key, range) = match only_key(view, &keys, within)? {
            Some(epk) => {
                let mut range = KeyRange::prefix(&keys.key_histories(&epk));
                range.start = keys.key_history_from(&epk, first);
                (true, range)
            }
            None => {
                let mut range = KeyRange::prefix(&keys.group(Group::History));
                range.start = keys.history_from(first);
                (false, range)
            }
        };
        Ok(BucketHistory {
            view,
            keys,
            rows: Rows::new(view, range, Direction::Forward),
            of_one_key,
        })
    }

    fn position(&mut self) -> Result<Option<HistoryPosition>, PartitionError> {
        let Some((key, _)) = self.rows.peek()? else { return Ok(None) };
        Ok(Some(parse_key(key)?))
    }

    /// Reads the records of this commit, if they are next.
    fn read_commit(
        &mut self,
        lsn: Lsn,
        commit: &mut Vec<(u32, HistoryRecord)>,
    ) -> Result<(), PartitionError> {
        while let Some(at) = self.position()?.filter(|at| at.lsn == lsn) {
            let Some((_, value)) = self.rows.next()? else { return Ok(()) };
            let value = if self.of_one_key {
                self.view.get(&self.keys.history(at))?.ok_or(DAMAGED)?
            } else {
                value
            };
            commit.push((at.number, HistoryRecord::decode(lsn, &value)?));
        }
        Ok(())
    }
}

pub(super) fn parse_key(key: &[u8]) -> Result<HistoryPosition, RecordError> {
    let (_, _, _, rest) = key::split(key).ok_or(DAMAGED)?;
    let (_, at) = HistoryPosition::take(rest).ok_or(DAMAGED)?;
    Ok(at)
}

fn earliest(buckets: &mut [BucketHistory<'_>]) -> Result<Option<Lsn>, PartitionError> {
    let mut earliest = None;
    for bucket in buckets {
        earliest = earliest.into_iter().chain(bucket.position()?.map(|at| at.lsn)).min();
    }
    Ok(earliest)
}

/// The partition key within a range, if there is a history of only one. Clients ask for a
/// key by the range of its hash, which other keys can have as well.
fn only_key(
    view: &dyn View,
    keys: &Keys,
    within: &EpkRange,
) -> Result<Option<Epk>, PartitionError> {
    let mut range = KeyRange::prefix(&keys.group(Group::KeyHistory));
    range.start = keys.key_histories(&within.min);
    let Some(epk) = first_key(view, &range)?.filter(|epk| within.contains(epk)) else {
        // None at all: the history of the first one is empty, too.
        return Ok(Some(within.min.clone()));
    };
    let beyond = KeyRange::prefix(&keys.key_histories(&epk)).end;
    let Some(beyond) = beyond else { return Ok(Some(epk)) };
    let next = first_key(view, &KeyRange { start: beyond, ..range })?;
    Ok(next.is_none_or(|next| !within.contains(&next)).then_some(epk))
}

fn first_key(view: &dyn View, range: &KeyRange) -> Result<Option<Epk>, PartitionError> {
    let chunk = view.scan(range, Direction::Forward, ScanLimit::rows(1))?;
    let Some((key, _)) = chunk.rows.first() else { return Ok(None) };
    let (_, _, _, rest) = key::split(key).ok_or(DAMAGED)?;
    let (epk, _) = key::take_epk(rest).ok_or(DAMAGED)?;
    Ok(Some(epk))
}
