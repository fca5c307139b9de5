//! Removal of expired items.
//!
//! Every answer leaves expired items out, whether or not they are still stored; this frees
//! their space. When an item expires is computed from the policy in force and never stored,
//! so that a changed policy counts at once. Due items are found nevertheless without
//! reading the others: items with a ttl of their own have entries in the order of ttl and
//! time, and those without one expire in the order of the log.

use model::policy::TimeToLive;
use model::position::{Lsn, Ordinal, Timestamp};
use storage::{Direction, KeyRange, View};

use crate::bucket_writer::Mark;
use crate::changes;
use crate::command::PartitionError;
use crate::derived::Version;
use crate::dual_write::DualWriter;
use crate::key::{self, BucketNumber, Group, Keys};
use crate::moving::Copied;
use crate::read::{Position, Reader, stored_name};
use crate::record::RecordError;
use crate::rows::Rows;
use crate::sequencer::Partition;

/// Entries that one search reads of each kind. With as many different ttls as items, none
/// of which are due, the next search continues after them.
const LOOKS_MAX: usize = 1_000;

/// Where the next search begins.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// All items before this position have a ttl of their own.
    log: Lsn,
    /// Items with shorter own ttls were searched last time.
    ttl: u32,
}

impl Default for Passed {
    fn default() -> Passed {
        Passed { log: Lsn::ZERO, ttl: 0 }
    }
}

impl Partition {
    /// Removes those of these items that have expired. For clients nothing changes, so it
    /// takes no position, unless the history is to tell of it.
    pub fn expire(&mut self, now: Timestamp, names: &[Position]) -> Result<Copied, PartitionError> {
        if self.config().keeps_history() || self.has_horizons() {
            return self.expire_with_history(now, names);
        }
        self.rewrite(names, |writer, id| expire(writer, now, id))
    }

    /// The same as a commit for each key.
    fn expire_with_history(
        &mut self,
        now: Timestamp,
        names: &[Position],
    ) -> Result<Copied, PartitionError> {
        self.recover_if_broken()?;
        let (mut items, mut bytes) = (0, 0);
        for of_key in names.chunk_by(|a, b| a.epk == b.epk) {
            let Some(Position { epk, .. }) = of_key.first() else { continue };
            let mark = Mark { lsn: self.lsn().next(), now: now.max(self.now()), ..self.mark() };
            let mut writer = self.recording_writer(epk, (mark.lsn, mark.now))?;
            for Position { id, .. } in of_key {
                items += u64::from(expire(&mut writer, now, id)?);
            }
            let changes = writer.finish(&mark);
            let batch = self.commit(changes, mark.now);
            if !batch.is_empty() {
                bytes += batch.bytes() as u64;
                drop(self.submit(batch));
            }
        }
        Ok(Copied { items, bytes, ticket: self.barrier() })
    }
}

fn expire(writer: &mut DualWriter<'_>, now: Timestamp, id: &str) -> Result<bool, PartitionError> {
    match writer.find(id)? {
        Some(item) if writer.config().is_expired(&item, now) => {
            writer.expire(&Version::new(id, &item))?;
            Ok(true)
        }
        Some(_) | None => Ok(false),
    }
}

impl Reader {
    /// Expired items of a bucket, at most `max`, in the order of keys. Empty only when
    /// there are none, or when the search is to continue at `passed` another time.
    pub fn expired(
        &self,
        (view, now): (&dyn View, Timestamp),
        bucket: BucketNumber,
        passed: &mut Passed,
        max: usize,
    ) -> Result<Vec<Position>, PartitionError> {
        let ttl = self.config().definition.ttl();
        if ttl == TimeToLive::Off {
            return Ok(Vec::new());
        }
        let keys = self.config().keys_of(bucket);
        let mut names = Vec::new();
        passed.ttl = by_own_ttl((view, now), &keys, passed.ttl, (&mut names, max))?;
        if matches!(ttl, TimeToLive::After(_)) {
            passed.log = self.by_default((view, now), &keys, passed.log, (&mut names, max))?;
        }
        names.sort_unstable_by(|a, b| (&a.epk, &a.id).cmp(&(&b.epk, &b.id)));
        Ok(names)
    }

    /// Those without a ttl of their own, from a position on; returns the position from
    /// where there may be more.
    fn by_default(
        &self,
        (view, now): (&dyn View, Timestamp),
        keys: &Keys,
        mut start: Lsn,
        (names, max): (&mut Vec<Position>, usize),
    ) -> Result<Lsn, PartitionError> {
        let mut rows = Rows::new(view, changes::from(keys, start.get()), Direction::Forward);
        let mut found = false;
        for _ in 0..LOOKS_MAX {
            let Some((key, _)) = rows.next()?.filter(|_| names.len() < max) else { break };
            let (lsn, ordinal) = changes::parse_key(&key)?;
            if !found {
                start = lsn;
            }
            let item = changes::changed(view, keys, (lsn, ordinal))?;
            if item.own_ttl.is_some() {
                continue;
            }
            if !self.config().is_expired(&item, now) {
                // Nor have those after it.
                break;
            }
            found = true;
            names.push(stored_name(view, keys, ordinal)?);
        }
        Ok(start)
    }
}

/// Those with a ttl of their own, from a ttl on; returns the ttl to begin with next time.
fn by_own_ttl(
    (view, now): (&dyn View, Timestamp),
    keys: &Keys,
    start: u32,
    (names, max): (&mut Vec<Position>, usize),
) -> Result<u32, PartitionError> {
    let mut range = KeyRange::prefix(&keys.group(Group::Expiry));
    range.start = keys.expiry_of(start);
    let (mut rows, mut at) = (Rows::new(view, range, Direction::Forward), start);
    for _ in 0..LOOKS_MAX {
        let Some((key, _)) = rows.next()? else { return Ok(0) };
        let (ttl, ts_secs, ordinal) = parse_expiry(&key)?;
        at = ttl;
        if names.len() == max {
            break;
        }
        if ts_secs.saturating_add(u64::from(ttl)) <= now.secs() {
            names.push(stored_name(view, keys, ordinal)?);
        } else if let Some(longer) = ttl.checked_add(1) {
            // Those after it with the same ttl are younger.
            rows.seek(&keys.expiry_of(longer));
        }
    }
    Ok(at)
}

fn parse_expiry(key: &[u8]) -> Result<(u32, u64, Ordinal), RecordError> {
    let parsed = || {
        let (_, _, _, rest) = key::split(key)?;
        let (times, ordinal) = key::parse_trailing_ordinal(rest)?;
        let (ttl, ts_secs) = times.split_first_chunk::<4>()?;
        let ts_secs = ts_secs.try_into().ok()?;
        Some((u32::from_be_bytes(*ttl), u64::from_be_bytes(ts_secs), ordinal))
    };
    parsed().ok_or(RecordError::Malformed { what: "expiry entry" })
}
