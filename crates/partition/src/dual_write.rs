//! Which buckets an item is written to: the dual write of a move, defined once.
//!
//! An item is in the bucket that owns its key. While that bucket moves (see
//! [`crate::config::Move`]), every write goes to the move target as well. The target may
//! not hold the item yet, so the change is computed for each bucket by itself: a target
//! that does not hold the old version gets the whole of the new one. Reads, unique values
//! and limits use the owner alone, and only work done there is charged to the client.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::charge::Written;
use model::epk::Epk;
use model::position::{Lsn, Ordinal, Timestamp};
use storage::WriteBatch;

use crate::bucket_writer::{BucketWriter, Mark};
use crate::command::PartitionError;
use crate::config::{Bucket, PartitionConfig};
use crate::derived::{Change, Version};
use crate::history::{HistoryKind, Recorder};
use crate::key::BucketNumber;
use crate::record::{Head, Item, KeyStatistics};
use crate::sequencer::Partition;
use crate::write_set::WriteSet;

/// The only writer of items: to the bucket of a logical partition and, while it moves, to
/// the move target.
#[derive(Debug)]
pub(crate) struct DualWriter<'a> {
    config: &'a PartitionConfig,
    writes: WriteSet<'a>,
    owner: BucketWriter<'a>,
    target: Option<BucketWriter<'a>>,
    /// The horizon of the owner's history, if it has one.
    horizon: Option<Lsn>,
    /// Present in commands of containers that keep a history.
    recorder: Option<Recorder>,
}

/// A computed batch, and the heads after it.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) batch: WriteBatch,
    pub(crate) heads: Vec<(BucketNumber, Head)>,
    /// A bucket whose history begins or ends with it.
    pub(crate) horizon: Option<(BucketNumber, Option<Lsn>)>,
}

impl Partition {
    /// The writer of a logical partition, on top of everything that was applied before.
    pub(crate) fn dual_writer<'a>(
        &'a self,
        epk: &'a Epk,
    ) -> Result<DualWriter<'a>, PartitionError> {
        let config: &PartitionConfig = self.config();
        let writer =
            |bucket: &Bucket| BucketWriter::new(config, epk, bucket, self.head(bucket.number));
        let bucket = config.bucket_of(epk).ok_or(PartitionError::Gone)?;
        Ok(DualWriter {
            config,
            writes: self.write_set()?,
            owner: writer(bucket),
            target: config.move_target_of(epk).map(writer),
            horizon: self.horizon(bucket.number),
            recorder: None,
        })
    }

    /// The writer of a command, which records what it does if the container keeps a history.
    pub(crate) fn recording_writer<'a>(
        &'a self,
        epk: &'a Epk,
        (lsn, now): (Lsn, Timestamp),
    ) -> Result<DualWriter<'a>, PartitionError> {
        let writer = self.dual_writer(epk)?;
        let recorder = self.config().keeps_history().then(|| Recorder::new(lsn, now));
        Ok(DualWriter { recorder, ..writer })
    }
}

impl<'a> DualWriter<'a> {
    /// A writer whose writes are never submitted, so that a move target need not be told.
    pub(crate) fn on_trial(
        config: &'a PartitionConfig,
        epk: &'a Epk,
        writes: WriteSet<'a>,
        head: Head,
    ) -> Result<DualWriter<'a>, PartitionError> {
        let bucket = config.bucket_of(epk).ok_or(PartitionError::Gone)?;
        let owner = BucketWriter::new(config, epk, bucket, head);
        Ok(DualWriter { config, writes, owner, target: None, horizon: None, recorder: None })
    }

    /// What such a writer has staged, and the head of its bucket.
    pub(crate) fn into_trial(self) -> (BTreeMap<Bytes, Option<Bytes>>, Head) {
        (self.writes.into_staged(), self.owner.head())
    }

    /// The id of the item with that ordinal, if it is in this logical partition.
    pub(crate) fn id_of(&self, ordinal: Ordinal) -> Result<Option<String>, PartitionError> {
        self.owner.id_of(&self.writes, ordinal)
    }

    pub(crate) fn config(&self) -> &'a PartitionConfig {
        self.config
    }

    /// The stored item of that id, expired or not.
    pub(crate) fn find(&self, id: &str) -> Result<Option<Item>, PartitionError> {
        self.owner.find(&self.writes, id)
    }

    /// The owner of a unique value that `new` would take over and `old` does not have.
    pub(crate) fn rival(
        &self,
        old: Option<&Version<'_>>,
        new: &Version<'_>,
    ) -> Result<Option<Bytes>, PartitionError> {
        self.owner.rival(&self.writes, Change { old, new: Some(new), event: None })
    }

    /// The id of the item that owns a unique value, as its entry names it.
    pub(crate) fn owner_id(&self, owner: &[u8]) -> Result<Option<String>, PartitionError> {
        self.owner.owner_id(&self.writes, owner)
    }

    /// The size of the logical partition.
    pub(crate) fn size(&self) -> Result<KeyStatistics, PartitionError> {
        self.owner.size(&self.writes)
    }

    /// Bytes of the bucket, with what was written so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.owner.bytes()
    }

    /// Writes an item in place of `old`, whose id may be another, or as a new one.
    pub(crate) fn put(
        &mut self,
        old: Option<&Version<'_>>,
        new: &Version<'_>,
    ) -> Result<Written, PartitionError> {
        self.record(Change { old, new: Some(new), event: None }, HistoryKind::Delete)
    }

    pub(crate) fn remove(&mut self, old: &Version<'_>) -> Result<Written, PartitionError> {
        self.record(Change { old: Some(old), new: None, event: None }, HistoryKind::Delete)
    }

    /// Removes an expired item, for which no client asked.
    pub(crate) fn expire(&mut self, old: &Version<'_>) -> Result<Written, PartitionError> {
        self.record(Change { old: Some(old), new: None, event: None }, HistoryKind::Expiry)
    }

    /// Writes a change, with its record where there is to be one.
    fn record(
        &mut self,
        change: Change<'_>,
        removal: HistoryKind,
    ) -> Result<Written, PartitionError> {
        let definition = self.config.definition.partition_key();
        let epk = self.owner.epk();
        let recorder = self.recorder.as_mut();
        let event = recorder.and_then(|recorder| recorder.record(definition, epk, change, removal));
        self.write(Change { event: event.as_ref(), ..change })
    }

    /// Copies an item to the move target; returns whether the item existed and was not
    /// there yet.
    pub(crate) fn copy(&mut self, id: &str) -> Result<bool, PartitionError> {
        let Some(target) = &mut self.target else { return Err(PartitionError::Gone) };
        match self.owner.find(&self.writes, id)? {
            Some(item) if !target.holds(&self.writes, &item)? => {
                let new = Version::new(id, &item);
                let change = Change { old: None, new: Some(&new), event: None };
                target.write(&mut self.writes, change)?;
                Ok(true)
            }
            Some(_) | None => Ok(false),
        }
    }

    /// The dual write itself.
    fn write(&mut self, change: Change<'_>) -> Result<Written, PartitionError> {
        let written = self.owner.write(&mut self.writes, change)?;
        if let Some(target) = &mut self.target {
            let old = match change.old {
                Some(old) if target.holds(&self.writes, old.item)? => Some(old),
                Some(_) | None => None,
            };
            target.write(&mut self.writes, Change { old, ..change })?;
        }
        Ok(written)
    }

    /// The batch of a command. It takes a position, which all heads record.
    pub(crate) fn finish(mut self, mark: &Mark) -> Changes {
        let horizon = self.move_horizon();
        Changes { horizon, ..self.finish_with(mark, |_| true) }
    }

    /// The batch of a rewrite. It takes no position, so a head changes only if there is
    /// more or less in its bucket.
    pub(crate) fn finish_rewrite(self, mark: &Mark) -> Changes {
        self.finish_with(mark, |writer| writer.is_resized())
    }

    fn finish_with(mut self, mark: &Mark, wants_head: fn(&BucketWriter<'_>) -> bool) -> Changes {
        let mut changes = Changes::default();
        if !self.writes.is_empty() {
            let writers = std::iter::once(self.owner).chain(self.target);
            let with_head = writers.filter(wants_head);
            let heads = with_head.map(|mut writer| writer.write_head(&mut self.writes, mark));
            changes.heads.extend(heads);
        }
        changes.batch = self.writes.into_batch();
        changes
    }

    /// A history begins with the first operation under its policy, and is incomplete after
    /// the first one without.
    fn move_horizon(&mut self) -> Option<(BucketNumber, Option<Lsn>)> {
        let horizon = match (&self.recorder, self.horizon) {
            (Some(_), None) => Some(Lsn::from_u64(self.owner.head().lsn)),
            (None, Some(_)) => None,
            (Some(_), Some(_)) | (None, None) => return None,
        };
        if self.writes.is_empty() {
            return None;
        }
        self.owner.write_horizon(&mut self.writes, horizon);
        Some((self.owner.bucket(), horizon))
    }
}
