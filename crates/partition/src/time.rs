//! The time of a partition, and setting it back.
//!
//! Time never goes back in a partition: the log, the expiry entries and the search for
//! changes since a time rely on it. So when the clock goes back a little, commands are
//! given the time of the last one. When it goes back far, it was wrong before: one write
//! under such a clock would pin `_ts` for years, and with it the TTL of all that follows.
//! Then what would carry a time is refused, until the clock has come near again or
//! somebody sets the partition's time back.

use bytes::Bytes;
use model::epk::Epk;
use model::position::Timestamp;
use model::rid::ItemRid;
use storage::{Batch, Ticket};

use crate::bucket_writer::Mark;
use crate::command::{Command, Operation, Problem};
use crate::document;
use crate::moving::Copied;
use crate::read::Position;
use crate::record::{Head, Item};
use crate::sequencer::Partition;
use crate::setup::{Bucket, Setup};

/// How far a partition's time may be ahead of the clock: what a step of NTP, a drift or a
/// resumed virtual machine amounts to, and little enough that nobody minds such a `_ts`.
const AHEAD_MS_MAX: u64 = 5 * 60 * 1_000;

impl Partition {
    /// The time that a command takes place at. One that removes something is always let
    /// through, at the partition's own time: dropping a container has to work.
    pub(crate) fn time_of(&self, now: Timestamp, command: &Command) -> Result<Timestamp, Problem> {
        let recorded = self.now();
        let is_near = recorded.millis().saturating_sub(now.millis()) <= AHEAD_MS_MAX;
        let removes = |operation: &Operation| matches!(operation, Operation::Delete { .. });
        let reads = |operation: &Operation| matches!(operation, Operation::Read { .. });
        let operations = &command.operations;
        if is_near || operations.iter().any(removes) || operations.iter().all(reads) {
            return Ok(now.max(recorded));
        }
        Err(Problem::ClockBehind { recorded, now })
    }

    /// Gives those of these items that were written later than `now` the time `now`. Their
    /// positions stay, and so times still never go back along the log; their etags change.
    /// Clients are told of no change.
    pub fn restamp(&mut self, now: Timestamp, names: &[Position]) -> Result<Copied, Problem> {
        self.rewrite(names, |partition, epk, names| partition.restamp_key(now, epk, names))
    }

    fn restamp_key(
        &mut self,
        now: Timestamp,
        epk: &Epk,
        names: &[Position],
    ) -> Result<(u64, Batch), Problem> {
        let bucket = self.setup().bucket_of(epk).ok_or(Problem::Gone)?;
        let mut owner = self.writer(bucket, epk);
        let mut target = self.setup().move_target_of(epk).map(|bucket| self.writer(bucket, epk));
        let (mut writes, mut changed) = (self.write_set()?, 0);
        for Position { id, .. } in names {
            let Some(old) = owner.find(&writes, id)?.filter(|item| item.ts > now) else { continue };
            let new = restamped(self.setup(), &old, now);
            if let Some(target) = &mut target
                && target.holds(&writes, &old)?
            {
                target.put(&mut writes, id, Some(&old), &new)?;
            }
            owner.put(&mut writes, id, Some(&old), &new)?;
            changed += 1;
        }
        if writes.is_empty() {
            return Ok((0, Batch::new()));
        }
        let mark = self.mark();
        let mut heads = vec![owner.write_head(&mut writes, &mark)];
        heads.extend(target.map(|mut target| target.write_head(&mut writes, &mark)));
        let batch = writes.into_batch();
        heads.into_iter().for_each(|head| self.set_head(head));
        Ok((changed, batch))
    }

    /// Sets the time back to `now`. Only once no item is left that was written later.
    pub fn reset_time(&mut self, now: Timestamp) -> Result<Ticket, Problem> {
        self.recover_if_broken()?;
        let mark = Mark { now: now.min(self.now()), ..self.mark() };
        let setup = self.setup().clone();
        let (mut writes, mut heads) = (self.write_set()?, Vec::new());
        let written = |bucket: &&Bucket| self.head(bucket.number) != Head::default();
        for bucket in setup.homes().filter(written) {
            heads.push(self.writer(bucket, &bucket.range.min).write_head(&mut writes, &mark));
        }
        let batch = writes.into_batch();
        heads.into_iter().for_each(|head| self.set_head(head));
        self.set_now(mark.now);
        Ok(if batch.is_empty() { self.barrier() } else { self.submit(batch) })
    }
}

fn restamped(setup: &Setup, old: &Item, now: Timestamp) -> Item {
    let mut item = Item { ts: now, text: Bytes::new(), ..old.clone() };
    let rid = ItemRid::new(setup.container_rid, item.ordinal);
    item.text = document::stored(old.json(), rid, &item.etag(), now);
    item
}
