//! The history behind clients' backs: removing what is too old, and copying it to the
//! buckets that replace a moving one.
//!
//! Both go in chunks that the sequencer computes between commands, and neither takes a
//! position. Records never change, so a chunk may be read before it gets its turn. A bucket
//! that moves is not trimmed meanwhile: what was copied already would stay.

use std::sync::Arc;

use bytes::Bytes;
use model::epk::Epk;
use model::position::{Lsn, Timestamp};
use storage::{Direction, KeyRange, ScanLimit, Ticket, View};

use super::feed::parse_key;
use super::{HistoryRecord, encode_horizon};
use crate::command::PartitionError;
use crate::key::{BucketNumber, Group, HistoryPosition};
use crate::read::Reader;
use crate::rows::Rows;
use crate::sequencer::Partition;

/// A record that is to be removed.
#[derive(Clone, Debug)]
pub struct Outdated {
    at: HistoryPosition,
    epk: Epk,
}

/// A record as it is stored.
#[derive(Clone, Debug)]
pub struct HistoryRow {
    at: HistoryPosition,
    epk: Epk,
    value: Bytes,
}

/// Bytes of records that are copied at once, unless one has more.
const COPY_BYTES: usize = 1 << 20;

impl Reader {
    /// The oldest records of a bucket that are to be removed, at most `max`.
    pub fn outdated_history(
        &self,
        (view, now): (&dyn View, Timestamp),
        bucket: BucketNumber,
        max: usize,
    ) -> Result<Vec<Outdated>, PartitionError> {
        if self.config().is_moving(bucket) {
            return Ok(Vec::new());
        }
        let keys = self.config().keys_of(bucket);
        let range = KeyRange::prefix(&keys.group(Group::History));
        let (mut rows, mut outdated) = (Rows::new(view, range, Direction::Forward), Vec::new());
        if rows.peek()?.is_none() {
            return Ok(outdated);
        }
        let latest = self.time_of_bucket(view, bucket)?;
        while outdated.len() < max
            && let Some((key, value)) = rows.next()?
        {
            let at = parse_key(&key)?;
            let HistoryRecord { mark, epk, .. } = HistoryRecord::decode(at.lsn, &value)?;
            if !self.config().is_outdated(mark.ts, latest, now) {
                break;
            }
            outdated.push(Outdated { at, epk });
        }
        Ok(outdated)
    }

    fn time_of_bucket(
        &self,
        view: &dyn View,
        bucket: BucketNumber,
    ) -> Result<Timestamp, PartitionError> {
        let mut buckets = self.buckets().iter();
        let bucket = buckets.find(|own| own.number == bucket).ok_or(PartitionError::Gone)?;
        Ok(Timestamp::from_millis(self.head(view, bucket)?.ts_millis))
    }

    /// Records of a moving bucket after a position, in order; none at the end.
    pub fn history_rows(
        &self,
        view: &dyn View,
        bucket: BucketNumber,
        after: Option<&HistoryRow>,
        max: usize,
    ) -> Result<Vec<HistoryRow>, PartitionError> {
        let keys = self.config().keys_of(bucket);
        let mut range = KeyRange::prefix(&keys.group(Group::History));
        if let Some(after) = after {
            range.start = [keys.history(after.at).as_ref(), &[0]].concat().into();
        }
        let limit = ScanLimit { rows: max, bytes: COPY_BYTES };
        let chunk = view.scan(&range, Direction::Forward, limit)?;
        let row = |(key, value): (Bytes, Bytes)| {
            let at = parse_key(&key)?;
            let epk = HistoryRecord::decode(at.lsn, &value)?.epk;
            Ok(HistoryRow { at, epk, value })
        };
        chunk.rows.into_iter().map(row).collect()
    }
}

impl Partition {
    /// Removes the oldest records of a bucket.
    pub fn trim_history(
        &mut self,
        bucket: BucketNumber,
        outdated: &[Outdated],
    ) -> Result<Ticket, PartitionError> {
        self.recover_if_broken()?;
        let Some(last) = outdated.last().filter(|_| !self.config().is_moving(bucket)) else {
            return Ok(self.barrier());
        };
        let keys = self.config().keys_of(bucket);
        let mut writes = self.write_set()?;
        for Outdated { at, epk } in outdated {
            writes.write(keys.history(*at), None);
            writes.write(keys.key_history(epk, *at), None);
        }
        let raised = self.horizon(bucket).filter(|horizon| *horizon < last.at.lsn);
        if raised.is_some() {
            writes.write(keys.horizon(), Some(encode_horizon(last.at.lsn)));
        }
        let batch = writes.into_batch().for_relief(true);
        if raised.is_some() {
            self.set_horizon(bucket, Some(last.at.lsn));
        }
        Ok(self.submit(batch))
    }

    /// Copies records of a moving bucket to the move targets.
    pub fn copy_history(&mut self, rows: &[HistoryRow]) -> Result<Ticket, PartitionError> {
        self.recover_if_broken()?;
        let config = Arc::clone(self.config());
        let mut writes = self.write_set()?;
        for HistoryRow { at, epk, value } in rows {
            let target = config.move_target_of(epk).ok_or(PartitionError::Gone)?;
            let keys = config.keys(target);
            writes.write(keys.history(*at), Some(value.clone()));
            writes.write(keys.key_history(epk, *at), Some(Bytes::new()));
        }
        let batch = writes.into_batch();
        Ok(if batch.is_empty() { self.barrier() } else { self.submit(batch) })
    }

    /// The horizon that the targets of a moved bucket get: its own, or, before its first
    /// operation under the policy, the position up to which it has nothing to tell.
    pub(crate) fn horizon_to_move(&self, from: BucketNumber) -> Option<Lsn> {
        let own = self.horizon(from);
        let start = || Lsn::from_u64(self.head(from).lsn);
        self.config().keeps_history().then(|| own.unwrap_or_else(start))
    }
}
