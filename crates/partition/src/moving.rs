//! Backfill of a move: copying a bucket's items to the buckets that replace it.
//!
//! From the moment a partition knows of a move, every write goes to the move target as well
//! ([`crate::dual_write`]). What was there before is copied in chunks, each computed by the
//! sequencer like a command: it reads the present version of each item, so a copy can never
//! overwrite a newer version with an older one, and it skips what the move target holds
//! already, so copying is idempotent and may start over at any time. Copies keep positions,
//! ordinals and times, and take no position themselves. The history, where there is one, is
//! copied in the same way ([`crate::history`]).

use std::sync::Arc;

use storage::{Direction, KeyRange, ScanLimit, Ticket, View, WriteBatch};

use crate::bucket_writer::Mark;
use crate::command::PartitionError;
use crate::config::Bucket;
use crate::dual_write::{Changes, DualWriter};
use crate::history::encode_horizon;
use crate::key::{BucketNumber, Group};
use crate::read::{Position, Reader, parse_item_key};
use crate::sequencer::Partition;

/// A chunk of copies.
#[derive(Debug)]
#[must_use = "the copies are there only after the ticket"]
pub struct Copied {
    pub items: u64,
    pub bytes: u64,
    pub ticket: Ticket,
}

impl Partition {
    /// Copies items of a moving bucket to the move targets.
    pub fn copy(&mut self, names: &[Position]) -> Result<Copied, PartitionError> {
        self.rewrite(names, |writer, id| writer.copy(id))
    }

    /// Rewrites items of which only the names are known, key by key. `work` does it for one
    /// item, and returns whether there was something to do.
    pub(crate) fn rewrite(
        &mut self,
        names: &[Position],
        work: impl Fn(&mut DualWriter<'_>, &str) -> Result<bool, PartitionError>,
    ) -> Result<Copied, PartitionError> {
        self.recover_if_broken()?;
        let (mut items, mut bytes) = (0, 0);
        for of_key in names.chunk_by(|a, b| a.epk == b.epk) {
            let Some(Position { epk, .. }) = of_key.first() else { continue };
            let mut writer = self.dual_writer(epk)?;
            for Position { id, .. } in of_key {
                items += u64::from(work(&mut writer, id)?);
            }
            let Changes { batch, heads, .. } = writer.finish_rewrite(&self.mark());
            if !batch.is_empty() {
                bytes += batch.bytes() as u64;
                self.set_heads(heads);
                drop(self.submit(batch));
            }
        }
        Ok(Copied { items, bytes, ticket: self.barrier() })
    }

    /// Checks whether the move targets hold everything that a moving bucket holds. If so,
    /// their heads are brought up to the partition's mark: the bucket's own head, which may
    /// alone record the last ordinal given out, is removed with it.
    pub fn complete_move(&mut self, from: BucketNumber) -> Result<Option<Ticket>, PartitionError> {
        self.recover_if_broken()?;
        let config = Arc::clone(self.config());
        let Some(moving) = config.moves.iter().find(|moving| moving.from == from) else {
            return Err(PartitionError::Gone);
        };
        let source = self.head(from);
        let targets = moving.into.iter().map(|bucket| self.head(bucket.number));
        let sums =
            targets.fold((0, 0), |(items, bytes), head| (items + head.items, bytes + head.bytes));
        if sums != (source.items, source.bytes) {
            return Ok(None);
        }
        let mut batch = self.write_heads(&moving.into, &self.mark())?;
        let horizon = self.horizon_to_move(from).map(encode_horizon);
        for key in moving.into.iter().map(|bucket| config.keys(bucket).horizon()) {
            match &horizon {
                Some(horizon) => batch.put(key, horizon.clone()),
                // It may have had one when it was complete before.
                None => batch.delete(key),
            }
        }
        Ok(Some(self.submit(batch)))
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { lsn: self.lsn(), now: self.now(), next_number: self.next_number() }
    }

    /// Writes a mark to the heads of some buckets.
    pub(crate) fn write_heads<'b>(
        &mut self,
        buckets: impl IntoIterator<Item = &'b Bucket>,
        mark: &Mark,
    ) -> Result<WriteBatch, PartitionError> {
        let (mut writes, mut heads) = (self.write_set()?, Vec::new());
        for bucket in buckets {
            let head = self.head(bucket.number).at(mark);
            writes.write(self.config().keys(bucket).head(), Some(head.encode()));
            heads.push((bucket.number, head));
        }
        let batch = writes.into_batch();
        self.set_heads(heads);
        Ok(batch)
    }
}

impl Reader {
    /// The names of the items stored in one bucket, after `after`, in order. Fewer than
    /// `max` only at the end.
    pub fn names(
        &self,
        view: &dyn View,
        bucket: BucketNumber,
        after: Option<&Position>,
        max: usize,
    ) -> Result<Vec<Position>, PartitionError> {
        let keys = self.config().keys_of(bucket);
        let mut range = KeyRange::prefix(&keys.group(Group::Item));
        if let Some(Position { epk, id }) = after {
            range.start = keys.after_item(epk, id);
        }
        let mut names = Vec::new();
        loop {
            let rows = max.saturating_sub(names.len());
            let limit = ScanLimit { rows, ..ScanLimit::default() };
            let chunk = view.scan(&range, Direction::Forward, limit)?;
            for (key, _) in &chunk.rows {
                names.push(parse_item_key(key)?);
            }
            match chunk.rest {
                Some(rest) if names.len() < max => range = rest,
                Some(_) | None => return Ok(names),
            }
        }
    }
}
