//! Writes the items of one logical partition to one bucket.
//!
//! An item is in the bucket that owns its key. While that bucket moves (see
//! [`crate::setup::Move`]), each command writes to the move target as well. The target
//! may not hold the item yet, so what changes is worked out for each bucket by itself:
//! one that does not hold the old version gets the whole of the new one.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use model::charge::Written;
use model::epk::Epk;
use model::position::{Lsn, Timestamp};

use crate::command::Problem;
use crate::key::{self, BucketNumber, Keys};
use crate::record::{Head, Item, KeyStatistics, RecordError};
use crate::setup::Setup;
use crate::unique;
use crate::write_set::WriteSet;

/// The keys of one logical partition in one bucket.
#[derive(Debug)]
pub(crate) struct BucketWriter<'a> {
    setup: &'a Setup,
    epk: &'a Epk,
    bucket: BucketNumber,
    pub(crate) keys: Keys,
    head: Head,
}

/// The point up to which a partition has come, as heads record it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) lsn: Lsn,
    pub(crate) now: Timestamp,
    pub(crate) next_number: u64,
}

impl<'a> BucketWriter<'a> {
    pub(crate) fn new(
        setup: &'a Setup,
        epk: &'a Epk,
        bucket: BucketNumber,
        head: Head,
    ) -> BucketWriter<'a> {
        BucketWriter { setup, epk, bucket, keys: Keys::new(setup.container, bucket), head }
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

    /// Writes an item in place of `old`, or as a new one.
    pub(crate) fn put(
        &mut self,
        writes: &mut WriteSet<'_>,
        id: &str,
        old: Option<&Item>,
        new: &Item,
    ) -> Result<Written, Problem> {
        if old.is_none() {
            let name = key::item_name(self.epk, id);
            writes.write(self.keys.ordinal(new.ordinal), Some(name));
        }
        writes.write(self.keys.item(self.epk, id), Some(new.encode()));
        self.write_derived(writes, old, Some(new))
    }

    pub(crate) fn remove(
        &mut self,
        writes: &mut WriteSet<'_>,
        id: &str,
        old: &Item,
    ) -> Result<Written, Problem> {
        writes.write(self.keys.ordinal(old.ordinal), None);
        writes.write(self.keys.item(self.epk, id), None);
        self.write_derived(writes, Some(old), None)
    }

    /// Moves an item to another id; `put` writes it there.
    pub(crate) fn rename(&self, writes: &mut WriteSet<'_>, id: &str, new_id: &str, item: &Item) {
        writes.write(self.keys.item(self.epk, id), None);
        let name = key::item_name(self.epk, new_id);
        writes.write(self.keys.ordinal(item.ordinal), Some(name));
    }

    /// The owner of a unique value that `new` would take and `old` does not have.
    pub(crate) fn rival(
        &self,
        writes: &WriteSet<'_>,
        old: Option<&Item>,
        new: &Item,
    ) -> Result<Option<Bytes>, Problem> {
        let held = self.unique_keys(old);
        for key in self.unique_keys(Some(new)).difference(&held) {
            if let Some(owner) = writes.get(key)? {
                return Ok(Some(owner));
            }
        }
        Ok(None)
    }

    /// Bytes of the bucket with what this command has done so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.head.bytes
    }

    /// Writes the head, and says what it is now.
    pub(crate) fn write_head(
        &mut self,
        writes: &mut WriteSet<'_>,
        mark: &Mark,
    ) -> (BucketNumber, Head) {
        let Mark { lsn, now, next_number } = *mark;
        self.head.lsn = lsn.get();
        self.head.ts_millis = now.millis();
        self.head.next_number = next_number;
        writes.write(self.keys.head(), Some(self.head.encode()));
        (self.bucket, self.head)
    }

    /// Everything that repeats something about the item.
    fn write_derived(
        &mut self,
        writes: &mut WriteSet<'_>,
        old: Option<&Item>,
        new: Option<&Item>,
    ) -> Result<Written, Problem> {
        let (removed, added) = (old.map(Item::own_bytes), new.map(Item::own_bytes));
        let mut written = Written { removed, added, ..Written::default() };
        self.write_unique(writes, old, new, &mut written);
        self.write_log(writes, old, new);
        self.write_expiry(writes, old, new);
        self.count(writes, old, new)?;
        self.write_entries(writes, old, new, &mut written)?;
        Ok(written)
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
