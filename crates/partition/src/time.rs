//! The time of a partition, and setting it back.
//!
//! Time never goes back in a partition: the log, the expiry entries and the search for
//! changes since a time rely on it. So when the clock goes back a little, commands get the
//! time of the last one. When it goes back far, it was wrong before: one write under such a
//! clock would pin `_ts` for years, and with it the TTL of everything that follows. Then
//! commands that would record a time are refused, until the clock has caught up or an
//! operator sets the partition's time back.

use std::sync::Arc;

use model::position::Timestamp;
use storage::Ticket;

use crate::bucket_writer::Mark;
use crate::command::{Command, Operation, PartitionError};
use crate::config::Bucket;
use crate::derived::Version;
use crate::moving::Copied;
use crate::read::Position;
use crate::record::{Head, Item};
use crate::sequencer::Partition;

/// How far a partition's time may be ahead of the clock: as much as a step of NTP, a drift
/// or a resumed virtual machine amounts to, and little enough that such a `_ts` does no
/// harm.
const AHEAD_MS_MAX: u64 = 5 * 60 * 1_000;

impl Partition {
    /// The time of a command. One that removes something is always accepted, at the
    /// partition's own time: dropping a container has to work.
    pub(crate) fn time_of(
        &self,
        now: Timestamp,
        command: &Command,
    ) -> Result<Timestamp, PartitionError> {
        let recorded = self.now();
        let is_near = recorded.millis().saturating_sub(now.millis()) <= AHEAD_MS_MAX;
        let removes = |operation: &Operation| matches!(operation, Operation::Delete { .. });
        let reads = |operation: &Operation| matches!(operation, Operation::Read { .. });
        let operations = &command.operations;
        if is_near || operations.iter().any(removes) || operations.iter().all(reads) {
            return Ok(now.max(recorded));
        }
        Err(PartitionError::ClockBehind { recorded, now })
    }

    /// Sets the time of those of these items that were written later than `now` to `now`.
    /// Their positions stay, and so times still never go back along the log; their etags
    /// change. The change feed does not show it.
    pub fn restamp(
        &mut self,
        now: Timestamp,
        names: &[Position],
    ) -> Result<Copied, PartitionError> {
        self.rewrite(names, |writer, id| match writer.find(id)? {
            Some(old) if old.ts > now => {
                let new = Item { ts: now, ..old.clone() };
                writer.put(Some(&Version::new(id, &old)), &Version::new(id, &new))?;
                Ok(true)
            }
            Some(_) | None => Ok(false),
        })
    }

    /// Sets the time back to `now`. Only once no item is left that was written later.
    pub fn reset_time(&mut self, now: Timestamp) -> Result<Ticket, PartitionError> {
        self.recover_if_broken()?;
        let mark = Mark { now: now.min(self.now()), ..self.mark() };
        let config = Arc::clone(self.config());
        let written = |bucket: &&Bucket| self.head(bucket.number) != Head::default();
        let buckets: Vec<&Bucket> = config.written_buckets().filter(written).collect();
        let batch = self.write_heads(buckets, &mark)?;
        self.set_now(mark.now);
        Ok(if batch.is_empty() { self.barrier() } else { self.submit(batch) })
    }
}
