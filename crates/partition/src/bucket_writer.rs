//! Writes the items of one logical partition to one bucket.
//!
//! Nothing outside [`crate::dual_write`] writes items with it: which buckets an item is
//! written to is decided there.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use model::charge::Written;
use model::epk::Epk;
use model::position::{Lsn, Timestamp};

use crate::command::Problem;
use crate::derived::Change;
use crate::key::{self, BucketNumber, Keys};
use crate::record::{Head, Item, KeyStatistics, RecordError};
use crate::setup::{Bucket, Setup};
use crate::unique;
use crate::write_set::WriteSet;

/// The keys of one logical partition in one bucket.
#[derive(Debug)]
pub(crate) struct BucketWriter<'a> {
    setup: &'a Setup,
    epk: &'a Epk,
    bucket: BucketNumber,
    keys: Keys,
    head: Head,
    resized: bool,
}

/// The point up to which a partition has come, as heads record it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) lsn: Lsn,
    pub(crate) now: Timestamp,
    pub(crate) next_number: u64,
}

impl Head {
    /// The head of the same bucket when the partition has come to another point.
    pub(crate) fn at(self, mark: &Mark) -> Head {
        let Mark { lsn, now, next_number } = *mark;
        Head { lsn: lsn.get(), ts_millis: now.millis(), next_number, ..self }
    }
}

impl<'a> BucketWriter<'a> {
    pub(crate) fn new(
        setup: &'a Setup,
        epk: &'a Epk,
        bucket: &Bucket,
        head: Head,
    ) -> BucketWriter<'a> {
        let keys = Keys::new(setup.container, bucket.number);
        BucketWriter { setup, epk, bucket: bucket.number, keys, head, resized: false }
    }

    /// The stored item of that id, expired or not.
    pub(crate) fn find(&self, writes: &WriteSet<'_>, id: &str) -> Result<Option<Item>, Problem> {
        let value = writes.get(&self.keys.item(self.epk, id))?;
        Ok(value.as_ref().map(Item::decode).transpose()?)
    }

    /// Whether this bucket holds an item, in whatever version. Asked by ordinal, as
    /// the id may change.
    pub(crate) fn holds(&self, writes: &WriteSet<'_>, item: &Item) -> Result<bool, Problem> {
        Ok(writes.get(&self.keys.ordinal(item.ordinal))?.is_some())
    }

    /// The id of the item that owns a unique value, as its entry names it.
    pub(crate) fn owner_id(
        &self,
        writes: &WriteSet<'_>,
        owner: &[u8],
    ) -> Result<Option<String>, Problem> {
        let Some((_, ordinal)) = key::parse_trailing_ordinal(owner) else { return Ok(None) };
        let name = writes.get(&self.keys.ordinal(ordinal))?;
        let name = name.as_deref().and_then(key::parse_item_name);
        Ok(name.map(|(_, id)| id.to_owned()))
    }

    /// The owner of a unique value that a change would take.
    pub(crate) fn rival(
        &self,
        writes: &WriteSet<'_>,
        change: Change<'_>,
    ) -> Result<Option<Bytes>, Problem> {
        let held = self.unique_keys(change.old.map(|old| old.item));
        for key in self.unique_keys(change.new.map(|new| new.item)).difference(&held) {
            if let Some(owner) = writes.get(key)? {
                return Ok(Some(owner));
            }
        }
        Ok(None)
    }

    /// Writes the item and everything that repeats something about it.
    pub(crate) fn write(
        &mut self,
        writes: &mut WriteSet<'_>,
        change: Change<'_>,
    ) -> Result<Written, Problem> {
        let Change { old, new } = change;
        let renamed = old.zip(new).is_some_and(|(old, new)| old.id != new.id);
        if let Some(old) = old.filter(|_| renamed || new.is_none()) {
            writes.write(self.keys.item(self.epk, old.id), None);
        }
        if let Some(new) = new {
            writes.write(self.keys.item(self.epk, new.id), Some(new.item.encode()));
        }
        match (old, new) {
            (Some(old), None) => writes.write(self.keys.ordinal(old.item.ordinal), None),
            (_, Some(new)) if renamed || old.is_none() => {
                let name = key::item_name(self.epk, new.id);
                writes.write(self.keys.ordinal(new.item.ordinal), Some(name));
            }
            (_, _) => {}
        }
        let (old, new) = (old.map(|old| old.item), new.map(|new| new.item));
        let (removed, added) = (old.map(Item::own_bytes), new.map(Item::own_bytes));
        let mut written = Written { removed, added, ..Written::default() };
        self.write_unique(writes, old, new, &mut written);
        self.write_log(writes, old, new);
        self.write_expiry(writes, old, new);
        self.count(writes, old, new)?;
        self.write_entries(writes, old, new, &mut written)?;
        Ok(written)
    }

    /// Bytes of the bucket with what this command has done so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.head.bytes
    }

    /// Whether the number of items or of bytes has changed.
    pub(crate) fn is_resized(&self) -> bool {
        self.resized
    }

    /// Writes the head, and says what it is now.
    pub(crate) fn write_head(
        &mut self,
        writes: &mut WriteSet<'_>,
        mark: &Mark,
    ) -> (BucketNumber, Head) {
        self.head = self.head.at(mark);
        writes.write(self.keys.head(), Some(self.head.encode()));
        (self.bucket, self.head)
    }

    /// Index entries that both versions share are left alone.
    fn write_entries(
        &self,
        writes: &mut WriteSet<'_>,
        old: Option<&Item>,
        new: Option<&Item>,
        written: &mut Written,
    ) -> Result<(), Problem> {
        let (before, after) = (self.entries(old)?, self.entries(new)?);
        for (entry, is_term) in before.iter().filter(|(entry, _)| !after.contains_key(*entry)) {
            written.terms_removed += u32::from(*is_term);
            writes.write(entry.clone(), None);
        }
        for (entry, is_term) in after.iter().filter(|(entry, _)| !before.contains_key(*entry)) {
            written.terms_added += u32::from(*is_term);
            writes.write(entry.clone(), Some(Bytes::new()));
        }
        Ok(())
    }

    /// The keys of an item's index entries, and which of them are terms.
    fn entries(&self, item: Option<&Item>) -> Result<BTreeMap<Bytes, bool>, RecordError> {
        let mut keys = BTreeMap::new();
        if let Some(item) = item {
            self.setup.index_terms(item, |entry, is_term| {
                keys.insert(self.keys.index(entry, item.ordinal), is_term);
            })?;
        }
        Ok(keys)
    }

    fn write_log(&self, writes: &mut WriteSet<'_>, old: Option<&Item>, new: Option<&Item>) {
        if let Some(old) = old {
            writes.write(self.keys.log(old.lsn, old.ordinal), None);
        }
        if let Some(new) = new {
            writes.write(self.keys.log(new.lsn, new.ordinal), Some(key::terminated(self.epk)));
        }
    }

    fn write_expiry(&self, writes: &mut WriteSet<'_>, old: Option<&Item>, new: Option<&Item>) {
        if let Some(key) = old.and_then(|item| expiry_key(&self.keys, item)) {
            writes.write(key, None);
        }
        if let Some(key) = new.and_then(|item| expiry_key(&self.keys, item)) {
            writes.write(key, Some(Bytes::new()));
        }
    }

    fn write_unique(
        &self,
        writes: &mut WriteSet<'_>,
        old: Option<&Item>,
        new: Option<&Item>,
        written: &mut Written,
    ) {
        let (before, after) = (self.unique_keys(old), self.unique_keys(new));
        for key in before.difference(&after) {
            written.terms_removed += 1;
            writes.write(key.clone(), None);
        }
        let Some(new) = new else { return };
        for key in after.difference(&before) {
            written.terms_added += 1;
            let owner = Bytes::copy_from_slice(&new.ordinal.as_u64().to_be_bytes());
            writes.write(key.clone(), Some(owner));
        }
    }

    fn unique_keys(&self, item: Option<&Item>) -> BTreeSet<Bytes> {
        item.into_iter()
            .flat_map(|item| unique_keys(self.setup, &self.keys, self.epk, item))
            .collect()
    }

    /// The size of the logical partition.
    pub(crate) fn size(&self, writes: &WriteSet<'_>) -> Result<KeyStatistics, Problem> {
        match writes.get(&self.keys.statistics(self.epk))? {
            Some(value) => Ok(KeyStatistics::decode(&value)?),
            None => Ok(KeyStatistics::default()),
        }
    }

    /// Keeps the sizes of the bucket and of the logical partition.
    fn count(
        &mut self,
        writes: &mut WriteSet<'_>,
        old: Option<&Item>,
        new: Option<&Item>,
    ) -> Result<(), Problem> {
        if old.map(Item::bytes) == new.map(Item::bytes) {
            return Ok(());
        }
        let (key, mut statistics) = (self.keys.statistics(self.epk), self.size(writes)?);
        for (items, bytes) in [
            (&mut statistics.items, &mut statistics.bytes),
            (&mut self.head.items, &mut self.head.bytes),
        ] {
            *items = adjust(*items, u64::from(new.is_some()), u64::from(old.is_some()))?;
            *bytes = adjust(*bytes, new.map_or(0, Item::bytes), old.map_or(0, Item::bytes))?;
        }
        self.resized = true;
        writes.write(key, (statistics.items > 0).then(|| statistics.encode()));
        Ok(())
    }
}

/// A count that would fall below zero never counted what is being removed.
fn adjust(count: u64, add: u64, subtract: u64) -> Result<u64, RecordError> {
    let sum = count.checked_add(add).and_then(|sum| sum.checked_sub(subtract));
    sum.ok_or(RecordError::Malformed { what: "key statistics or head" })
}

/// Only items with an own ttl above zero have one: the others expire, if at
/// all, in the order of the log.
pub(crate) fn expiry_key(keys: &Keys, item: &Item) -> Option<Bytes> {
    let ttl = u32::try_from(item.own_ttl?.as_seconds()).ok()?;
    Some(keys.expiry(ttl, item.ts.secs(), item.ordinal))
}

/// The keys of the unique values that an item occupies.
pub(crate) fn unique_keys(setup: &Setup, keys: &Keys, epk: &Epk, item: &Item) -> Vec<Bytes> {
    let values = unique::values(setup.definition.unique_keys(), item.json());
    values.iter().map(|value| keys.unique(epk, value.constraint, &value.digest)).collect()
}
