//! The transaction of one command while it is executed.
//!
//! Only when all its operations succeed does a transaction become one batch; otherwise it
//! is dropped and nothing happened.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::charge::Written;
use model::position::{Lsn, Ordinal, Timestamp};

use crate::bucket_writer::Mark;
use crate::command::PartitionError;
use crate::config::PartitionConfig;
use crate::derived::Version;
use crate::document::Document;
use crate::dual_write::{Changes, DualWriter};
use crate::ordinal_blocks::OrdinalBlocks;
use crate::record::{Head, Item};

/// The transaction of one command, in one logical partition.
#[derive(Debug)]
pub(crate) struct Transaction<'a> {
    pub(crate) config: &'a PartitionConfig,
    pub(crate) writer: DualWriter<'a>,
    /// Bytes of the partition's other buckets, if it cannot grow.
    pub(crate) elsewhere: u64,
    pub(crate) ordinals: OrdinalBlocks,
    pub(crate) lsn: Lsn,
    pub(crate) now: Timestamp,
    /// Position of the current operation in the command.
    pub(crate) step: u16,
}

impl Transaction<'_> {
    /// The live item of that id. An expired one is removed as a side effect: for every
    /// client it is gone already, and its removal is not charged.
    pub(crate) fn find(&mut self, id: &str) -> Result<Option<Item>, PartitionError> {
        let Some(item) = self.writer.find(id)? else {
            return Ok(None);
        };
        if self.config.is_expired(&item, self.now) {
            self.writer.expire(&Version::new(id, &item))?;
            return Ok(None);
        }
        Ok(Some(item))
    }

    /// Writes a document in place of `old`, whose id may be another, or as a new item.
    pub(crate) fn put(
        &mut self,
        document: &Document,
        old: Option<&Version<'_>>,
    ) -> Result<(Item, Written), PartitionError> {
        let ordinal = match old {
            Some(old) => old.item.ordinal,
            None => self.next_ordinal()?,
        };
        let item = self.compose(document, ordinal);
        self.check_room(old.map_or(0, |old| old.item.bytes()), item.bytes())?;
        let new = Version::new(document.id().as_str(), &item);
        while let Some(owner) = self.writer.rival(old, &new)? {
            self.evict_expired(&owner)?;
        }
        let written = self.writer.put(old, &new)?;
        Ok((item, written))
    }

    /// Whether logical partition and container may grow by the difference of two versions.
    fn check_room(&self, old_bytes: u64, new_bytes: u64) -> Result<(), PartitionError> {
        let limits = &self.config.limits;
        let Some(growth) = new_bytes.checked_sub(old_bytes).filter(|growth| *growth > 0) else {
            return Ok(());
        };
        let max = limits.logical_partition_bytes_max;
        if self.writer.size()?.bytes.saturating_add(growth) > max {
            return Err(PartitionError::KeyFull { gib: limits.gib_unscaled(max) });
        }
        let max = limits.partition_bytes_max(self.config.growth);
        let stored = self.elsewhere.saturating_add(self.writer.bytes());
        if stored.saturating_add(growth) > max {
            return Err(PartitionError::ContainerFull { gib: limits.gib_unscaled(max) });
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, old: &Version<'_>) -> Result<Written, PartitionError> {
        self.writer.remove(old)
    }

    /// The batch of a command, empty when it only read, and the remaining ordinals.
    pub(crate) fn finish(self) -> (Changes, OrdinalBlocks) {
        let mark = Mark { lsn: self.lsn, now: self.now, next_number: self.ordinals.next() };
        (self.writer.finish(&mark), self.ordinals)
    }

    /// What a trial goes on with after an operation.
    pub(crate) fn into_trial(self) -> (BTreeMap<Bytes, Option<Bytes>>, Head, OrdinalBlocks) {
        let (staged, head) = self.writer.into_trial();
        (staged, head, self.ordinals)
    }

    fn compose(&self, document: &Document, ordinal: Ordinal) -> Item {
        Item {
            lsn: self.lsn,
            ordinal,
            ts: self.now,
            step: self.step,
            own_ttl: document.own_ttl(),
            policy_version: self.config.policy_version,
            text: document.stored(),
        }
    }

    fn next_ordinal(&mut self) -> Result<Ordinal, PartitionError> {
        let number = self.ordinals.take().ok_or(PartitionError::OutOfOrdinals)?;
        Ordinal::from_u64(number).ok_or(PartitionError::OutOfOrdinals)
    }

    /// A unique value is taken: an error, unless its owner has expired.
    fn evict_expired(&mut self, owner: &[u8]) -> Result<(), PartitionError> {
        match self.writer.owner_id(owner)? {
            // `find` removes it when it has expired, and the value becomes free.
            Some(id) if self.find(&id)?.is_none() => Ok(()),
            Some(_) | None => Err(PartitionError::UniqueKey),
        }
    }
}
