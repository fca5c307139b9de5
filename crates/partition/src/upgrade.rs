//! Carrying buckets over from the versions of the format before this one.
//!
//! A new store is filled from an old one, bucket by bucket and in chunks. Items are the
//! truth: each is read as the old version wrote it, rewritten, and stored with everything
//! that the maintainers (`derived.rs`) derive from it. Derived data of the old store
//! is not read at all, so none of its formats has to be known here.
//!
//! What stays is all that clients have seen and may present again: LSN, step and `_ts`, of
//! which etags, session tokens and positions in the change feed are made. What changes from
//! version 1 to 2:
//!
//! - The text loses its system properties, which version 1 kept at its end.
//! - An ordinal was a hash prefix (20 bits) before a number (40 bits); it becomes the
//!   number, which is unique in its container and grows with creation. So heads and maps,
//!   which always had the number alone, stay as they are.
//!
//! Version 2 has all that version 3 has but the history, which begins with the next write.
//!
//! Each chunk is one batch, and the progress is part of it ([`UpgradeProgress`]): whenever a
//! process ends, the next one goes on where the last batch ended. When a bucket ends, what
//! was read of it must be what its old head says.

use bytes::Bytes;
use model::position::{Lsn, Ordinal, Timestamp};
use storage::{Direction, KeyRange, ScanLimit, View, WriteBatch};

use crate::bucket_writer::{BucketWriter, Mark};
use crate::command::PartitionError;
use crate::config::{Bucket, PartitionConfig};
use crate::derived::{Change, Version};
use crate::document;
use crate::key::{BucketNumber, ContainerNumber, Group, Keys};
use crate::overlay::Overlay;
use crate::read::{Position, parse_item_key};
use crate::record::{self, Head, Item, RecordError};
use crate::write_set::WriteSet;

/// Bits of the number in an ordinal of version 1. Above it was a hash prefix.
const NUMBER_BITS: u32 = 40;

/// Items and bytes of items in a chunk. Entries can be several times as much, and the batch
/// is built in memory; it is still large enough that waiting for the disk costs little.
const CHUNK_LIMIT: ScanLimit = ScanLimit { rows: 512, bytes: 512 << 10 };

/// Where the progress is kept while a store is being filled. No container has this number:
/// it would be the four-billionth.
const PROGRESS_KEY: &[u8] = b"\xFEupgrade";

/// How far an upgrade is: everything before `bucket` is carried over, and of it all items up
/// to `after`. Stored in the store that is being filled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpgradeProgress {
    pub container: ContainerNumber,
    pub bucket: BucketNumber,
    /// Items and bytes that were read of this bucket.
    items: u64,
    bytes: u64,
    /// Those of all buckets.
    pub items_total: u64,
    pub bytes_total: u64,
    /// The key of the last item.
    after: Bytes,
}

impl UpgradeProgress {
    /// What a store that is being filled says, if it is.
    pub fn stored(view: &dyn View) -> Result<Option<UpgradeProgress>, PartitionError> {
        let value = view.get(PROGRESS_KEY)?;
        Ok(value.map(|value| UpgradeProgress::decode(&value)).transpose()?)
    }

    /// The batch that ends an upgrade: a store without progress is complete.
    #[must_use]
    pub fn end() -> WriteBatch {
        let mut batch = WriteBatch::new();
        batch.delete(PROGRESS_KEY);
        batch
    }

    fn encode(&self) -> Bytes {
        let numbers = [self.items, self.bytes, self.items_total, self.bytes_total];
        let ids = [self.container.0, self.bucket.0];
        let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
        let ids = ids.iter().flat_map(|id| id.to_le_bytes());
        record::seal(numbers.chain(ids).chain(self.after.iter().copied()))
    }

    fn decode(value: &[u8]) -> Result<UpgradeProgress, RecordError> {
        const WHAT: &str = "progress";
        let mut payload = record::open(WHAT, value)?;
        let [items, bytes, items_total, bytes_total] = record::take_u64s(&mut payload, WHAT)?;
        let container = ContainerNumber(u32::from_le_bytes(record::take(&mut payload, WHAT)?));
        let bucket = BucketNumber(u32::from_le_bytes(record::take(&mut payload, WHAT)?));
        let after = Bytes::copy_from_slice(payload);
        Ok(UpgradeProgress { container, bucket, items, bytes, items_total, bytes_total, after })
    }

    /// Moves on to a bucket, unless it is already there.
    fn enter(&mut self, container: ContainerNumber, bucket: BucketNumber) {
        if (self.container, self.bucket) != (container, bucket) {
            let (items_total, bytes_total) = (self.items_total, self.bytes_total);
            let start = UpgradeProgress::default();
            *self = UpgradeProgress { container, bucket, items_total, bytes_total, ..start };
        }
    }

    fn count(&mut self, items: u64, bytes: u64) {
        self.items += items;
        self.bytes += bytes;
        self.items_total += items;
        self.bytes_total += bytes;
    }
}

/// How the old store has its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldItems {
    Version1,
    /// As this version writes them.
    AsNow,
}

/// Carries one bucket over.
#[derive(Debug)]
pub struct BucketUpgrade<'a> {
    config: &'a PartitionConfig,
    bucket: &'a Bucket,
    keys: Keys,
    old: &'a dyn View,
    items: OldItems,
    chunk: ScanLimit,
}

/// One step of it.
#[derive(Debug)]
pub struct CarriedChunk {
    /// The items, what is derived from them, the head and the progress. Empty if there is
    /// nothing in the bucket.
    pub batch: WriteBatch,
    /// The progress when the batch is durable.
    pub progress: UpgradeProgress,
    pub is_last: bool,
}

impl<'a> BucketUpgrade<'a> {
    /// From a view of the old store.
    #[must_use]
    pub fn new(
        config: &'a PartitionConfig,
        bucket: &'a Bucket,
        (old, items): (&'a dyn View, OldItems),
    ) -> BucketUpgrade<'a> {
        BucketUpgrade { config, bucket, keys: config.keys(bucket), old, items, chunk: CHUNK_LIMIT }
    }

    /// The next chunk, on top of a view of the new store that shows all before it.
    pub fn next(
        &self,
        new: Box<dyn View>,
        before: &UpgradeProgress,
    ) -> Result<CarriedChunk, PartitionError> {
        let mut progress = before.clone();
        progress.enter(self.config.container, self.bucket.number);
        let old_head = head(self.old, &self.keys)?;
        let so_far = head(new.as_ref(), &self.keys)?.unwrap_or_default();
        let chunk = self.old.scan(&self.rest(&progress), Direction::Forward, self.chunk)?;
        let overlay = Overlay::default();
        let mut writes = WriteSet::new(&overlay, new);
        let mark = mark(&old_head.unwrap_or_default());
        let items = self.read(&chunk.rows, &mut progress)?;
        let mut head = so_far.at(&mark);
        for of_key in items.chunk_by(|(a, _), (b, _)| a.epk == b.epk) {
            head = self.write(of_key, head, &mark, &mut writes)?;
        }
        if let Some((key, _)) = chunk.rows.last() {
            progress.after = key.clone();
        }
        if old_head.is_some() {
            writes.write(self.keys.head(), Some(head.encode()));
        }
        let is_last = chunk.rest.is_none();
        if is_last {
            self.check(&progress, &old_head.unwrap_or_default())?;
        }
        if !writes.is_empty() {
            writes.write(Bytes::from_static(PROGRESS_KEY), Some(progress.encode()));
        }
        Ok(CarriedChunk { batch: writes.into_batch(), progress, is_last })
    }

    /// The items that were not carried over yet.
    fn rest(&self, progress: &UpgradeProgress) -> KeyRange {
        let mut range = KeyRange::prefix(&self.keys.group(Group::Item));
        if !progress.after.is_empty() {
            range.start = [progress.after.as_ref(), &[0]].concat().into();
        }
        range
    }

    fn read(
        &self,
        rows: &[(Bytes, Bytes)],
        progress: &mut UpgradeProgress,
    ) -> Result<Vec<(Position, Item)>, PartitionError> {
        let mut items = Vec::with_capacity(rows.len());
        for (key, value) in rows {
            let old = Item::decode(value)?;
            let (bytes, item) = match self.items {
                OldItems::Version1 => (old.text.len() as u64, rewritten(old)?),
                OldItems::AsNow => (old.bytes(), old),
            };
            progress.count(1, bytes);
            items.push((parse_item_key(key)?, item));
        }
        Ok(items)
    }

    /// Writes items of one key, and returns the head after them.
    fn write(
        &self,
        items: &[(Position, Item)],
        head: Head,
        mark: &Mark,
        writes: &mut WriteSet<'_>,
    ) -> Result<Head, PartitionError> {
        let Some((Position { epk, .. }, _)) = items.first() else { return Ok(head) };
        let mut writer = BucketWriter::new(self.config, epk, self.bucket, head);
        for (Position { id, .. }, item) in items {
            let new = Version::new(id, item);
            writer.write(writes, Change { old: None, new: Some(&new), event: None })?;
        }
        Ok(writer.write_head(writes, mark).1)
    }

    /// What was read must be what the old head says.
    fn check(&self, progress: &UpgradeProgress, old: &Head) -> Result<(), PartitionError> {
        if (progress.items, progress.bytes) == (old.items, old.bytes) {
            return Ok(());
        }
        Err(PartitionError::Miscounted {
            container: self.config.container.0,
            bucket: self.bucket.number.0,
            recorded: (old.items, old.bytes),
            found: (progress.items, progress.bytes),
        })
    }
}

fn mark(head: &Head) -> Mark {
    let (lsn, now) = (Lsn::from_u64(head.lsn), Timestamp::from_millis(head.ts_millis));
    Mark { lsn, now, next_number: head.next_number }
}

/// Heads are the same in all versions.
fn head(view: &dyn View, keys: &Keys) -> Result<Option<Head>, PartitionError> {
    Ok(view.get(&keys.head())?.map(|value| Head::decode(&value)).transpose()?)
}

/// An item of version 1 as one of version 2.
fn rewritten(old: Item) -> Result<Item, RecordError> {
    let number = old.ordinal.as_u64() & ((1 << NUMBER_BITS) - 1);
    let ordinal = Ordinal::from_u64(number).ok_or(RecordError::Malformed { what: "item" })?;
    let text = document::without_system_properties(&old.text);
    Ok(Item { ordinal, text, ..old })
}

#[cfg(test)]
mod tests;
