//! Writes the items of one logical partition to one bucket.
//!
//! Which buckets an item is written to is decided by [`crate::dual_write`]; only
//! [`crate::upgrade`], which fills buckets from others, writes items with it as well.

use bytes::Bytes;
use model::charge::Written;
use model::epk::Epk;
use model::position::{Lsn, Ordinal, Timestamp};

use crate::command::PartitionError;
use crate::config::{Bucket, PartitionConfig};
use crate::derived::{self, Change, MAINTAINERS, Scope, Version};
use crate::history::encode_horizon;
use crate::key::{self, BucketNumber, Keys};
use crate::record::{Head, Item, KeyStatistics};
use crate::write_set::WriteSet;

/// The keys of one logical partition in one bucket, and the bucket's head.
#[derive(Debug)]
pub(crate) struct BucketWriter<'a> {
    scope: Scope<'a>,
    bucket: BucketNumber,
    head: Head,
    resized: bool,
}

/// The state of a partition that heads record: its position, its time and its next ordinal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) lsn: Lsn,
    pub(crate) now: Timestamp,
    pub(crate) next_number: u64,
}

impl Head {
    /// The head of the same bucket at another mark.
    pub(crate) fn at(self, mark: &Mark) -> Head {
        let Mark { lsn, now, next_number } = *mark;
        Head { lsn: lsn.get(), ts_millis: now.millis(), next_number, ..self }
    }
}

impl<'a> BucketWriter<'a> {
    pub(crate) fn new(
        config: &'a PartitionConfig,
        epk: &'a Epk,
        bucket: &Bucket,
        head: Head,
    ) -> BucketWriter<'a> {
        let scope = Scope { config, keys: Keys::new(config.container, bucket.number), epk };
        BucketWriter { scope, bucket: bucket.number, head, resized: false }
    }

    /// The stored item of that id, expired or not.
    pub(crate) fn find(
        &self,
        writes: &WriteSet<'_>,
        id: &str,
    ) -> Result<Option<Item>, PartitionError> {
        let value = writes.get(&self.scope.keys.item(self.scope.epk, id))?;
        Ok(value.as_ref().map(Item::decode).transpose()?)
    }

    /// Whether this bucket holds an item, in whatever version. Asked by ordinal, as
    /// the id may change.
    pub(crate) fn holds(&self, writes: &WriteSet<'_>, item: &Item) -> Result<bool, PartitionError> {
        Ok(writes.get(&self.scope.keys.ordinal(item.ordinal))?.is_some())
    }

    /// The id of the item that owns a unique value, as its entry names it.
    pub(crate) fn owner_id(
        &self,
        writes: &WriteSet<'_>,
        owner: &[u8],
    ) -> Result<Option<String>, PartitionError> {
        let Some((_, ordinal)) = key::parse_trailing_ordinal(owner) else { return Ok(None) };
        let name = writes.get(&self.scope.keys.ordinal(ordinal))?;
        let name = name.as_deref().and_then(key::parse_item_name);
        Ok(name.map(|(_, id)| id.to_owned()))
    }

    /// The id of the item with that ordinal, if it is in this logical partition.
    pub(crate) fn id_of(
        &self,
        writes: &WriteSet<'_>,
        ordinal: Ordinal,
    ) -> Result<Option<String>, PartitionError> {
        let name = writes.get(&self.scope.keys.ordinal(ordinal))?;
        let name = name.as_deref().and_then(key::parse_item_name);
        Ok(name.filter(|(epk, _)| epk == self.scope.epk).map(|(_, id)| id.to_owned()))
    }

    /// The owner of a unique value that a change would take over.
    pub(crate) fn rival(
        &self,
        writes: &WriteSet<'_>,
        change: Change<'_>,
    ) -> Result<Option<Bytes>, PartitionError> {
        derived::rival(&self.scope, change, writes)
    }

    /// Writes the item and its derived data.
    pub(crate) fn write(
        &mut self,
        writes: &mut WriteSet<'_>,
        change: Change<'_>,
    ) -> Result<Written, PartitionError> {
        let Change { old, new, .. } = change;
        let key = |version: &Version<'_>| self.scope.keys.item(self.scope.epk, version.id);
        if let Some(old) = old.filter(|old| new.is_none_or(|new| new.id != old.id)) {
            writes.write(key(old), None);
        }
        if let Some(new) = new {
            writes.write(key(new), Some(new.item.encode()));
        }
        let own_bytes = |version: &Version<'_>| version.item.own_bytes();
        let (removed, added) = (old.map(own_bytes), new.map(own_bytes));
        let mut written = Written { removed, added, ..Written::default() };
        for maintainer in MAINTAINERS {
            maintainer.stage(&self.scope, change, writes, &mut written)?;
        }
        self.count(change)?;
        Ok(written)
    }

    fn count(&mut self, change: Change<'_>) -> Result<(), PartitionError> {
        if change.is_resizing() {
            let Head { items, bytes, .. } = self.head;
            let mut total = KeyStatistics { items, bytes };
            change.count(&mut total)?;
            (self.head.items, self.head.bytes) = (total.items, total.bytes);
            self.resized = true;
        }
        Ok(())
    }

    pub(crate) fn head(&self) -> Head {
        self.head
    }

    /// Bytes of the bucket, including the writes of this command so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.head.bytes
    }

    /// Whether the number of items or of bytes has changed.
    pub(crate) fn is_resized(&self) -> bool {
        self.resized
    }

    /// The size of the logical partition.
    pub(crate) fn size(&self, writes: &WriteSet<'_>) -> Result<KeyStatistics, PartitionError> {
        derived::read_statistics(&self.scope, writes)
    }

    /// Sets or removes the horizon of the bucket's history.
    pub(crate) fn write_horizon(&self, writes: &mut WriteSet<'_>, horizon: Option<Lsn>) {
        writes.write(self.scope.keys.horizon(), horizon.map(encode_horizon));
    }

    pub(crate) fn epk(&self) -> &'a Epk {
        self.scope.epk
    }

    pub(crate) fn bucket(&self) -> BucketNumber {
        self.bucket
    }

    /// Writes the head, and returns it.
    pub(crate) fn write_head(
        &mut self,
        writes: &mut WriteSet<'_>,
        mark: &Mark,
    ) -> (BucketNumber, Head) {
        self.head = self.head.at(mark);
        writes.write(self.scope.keys.head(), Some(self.head.encode()));
        (self.bucket, self.head)
    }
}
