//! The writes of one command while it is being worked out.
//!
//! A transaction reads its own staged writes first, then the writes that are
//! not durable yet, then a view. Only when all operations succeeded does it
//! become one batch; otherwise it is dropped and nothing happened.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use model::epk::Epk;
use model::partition_key::Location;
use model::position::{Lsn, Ordinal, Timestamp};
use model::rid::ItemRid;
use storage::{Batch, View};

use crate::command::{Problem, Work};
use crate::document::Document;
use crate::key::{self, Keys};
use crate::numbers::Numbers;
use crate::overlay::Overlay;
use crate::record::{Head, Item, KeyStatistics, RecordError};
use crate::setup::Setup;
use crate::unique::{self, UniqueValue};

/// One command in the making, in one logical partition.
#[derive(Debug)]
pub(crate) struct Transaction<'a> {
    pub(crate) setup: &'a Setup,
    overlay: &'a Overlay,
    view: Box<dyn View>,
    location: &'a Location,
    keys: Keys,
    staged: BTreeMap<Bytes, Option<Bytes>>,
    head: Head,
    numbers: Numbers,
    pub(crate) lsn: Lsn,
    pub(crate) now: Timestamp,
    /// Position of the current operation in the command.
    pub(crate) step: u16,
    work: Work,
}

/// What a finished transaction leaves behind.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Empty when the command only read.
    pub(crate) batch: Batch,
    pub(crate) head: Head,
    pub(crate) numbers: Numbers,
    pub(crate) work: Work,
}

/// Where and when a transaction takes place.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) overlay: &'a Overlay,
    pub(crate) view: Box<dyn View>,
    pub(crate) location: &'a Location,
    pub(crate) keys: Keys,
    pub(crate) head: Head,
    pub(crate) numbers: Numbers,
    pub(crate) lsn: Lsn,
    pub(crate) now: Timestamp,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(scene: Scene<'a>) -> Transaction<'a> {
        let Scene { setup, overlay, view, location, keys, head, numbers, lsn, now } = scene;
        let (staged, step, work) = (BTreeMap::new(), 0, Work::default());
        Transaction {
            setup,
            overlay,
            view,
            location,
            keys,
            staged,
            head,
            numbers,
            lsn,
            now,
            step,
            work,
        }
    }

    /// The live item of that id. One that has expired is removed on the way:
    /// for every client it is gone already.
    pub(crate) fn find(&mut self, id: &str) -> Result<Option<Item>, Problem> {
        let Some(value) = self.get(&self.keys.item(&self.location.epk, id))? else {
            return Ok(None);
        };
        let item = Item::decode(&value)?;
        self.work.item_bytes_read += item.bytes();
        if self.setup.is_expired(&item, self.now) {
            self.remove(id, &item)?;
            return Ok(None);
        }
        Ok(Some(item))
    }

    /// What has been read so far. That much is done even if nothing gets written.
    pub(crate) fn reading(&self) -> Work {
        Work { item_bytes_read: self.work.item_bytes_read, ..Work::default() }
    }

    /// Writes a document in place of `old`, or as a new item.
    pub(crate) fn put(&mut self, document: &Document, old: Option<&Item>) -> Result<Item, Problem> {
        let ordinal = match old {
            Some(old) => old.ordinal,
            None => self.next_ordinal()?,
        };
        let item = self.compose(document, ordinal);
        let id = document.id().as_str();
        self.write_unique(old, Some(&item))?;
        self.write_entries(old, Some(&item))?;
        self.write_log(old, Some(&item));
        self.write_expiry(old, Some(&item));
        if old.is_none() {
            self.write(self.keys.ordinal(ordinal), Some(key::item_name(&self.location.epk, id)));
        }
        self.count(old, Some(&item))?;
        let value = item.encode();
        self.work.item_bytes_written += item.bytes();
        self.write(self.keys.item(&self.location.epk, id), Some(value));
        Ok(item)
    }

    /// Moves an item to another id; `put` writes it there.
    pub(crate) fn rename(&mut self, id: &str, new_id: &str, item: &Item) {
        self.write(self.keys.item(&self.location.epk, id), None);
        let name = key::item_name(&self.location.epk, new_id);
        self.write(self.keys.ordinal(item.ordinal), Some(name));
    }

    pub(crate) fn remove(&mut self, id: &str, old: &Item) -> Result<(), Problem> {
        self.write_unique(Some(old), None)?;
        self.write_entries(Some(old), None)?;
        self.write_log(Some(old), None);
        self.write_expiry(Some(old), None);
        self.write(self.keys.ordinal(old.ordinal), None);
        self.count(Some(old), None)?;
        self.write(self.keys.item(&self.location.epk, id), None);
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Finished {
        let mut batch = Batch::new();
        if self.staged.is_empty() {
            return Finished { batch, head: self.head, numbers: self.numbers, work: self.work };
        }
        self.head.lsn = self.lsn.get();
        self.head.ts_millis = self.now.millis();
        self.head.next_number = self.numbers.next();
        self.write(self.keys.head(), Some(self.head.encode()));
        for (key, value) in self.staged {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        self.work.keys_written = batch.len() as u64;
        self.work.bytes_written = batch.bytes() as u64;
        Finished { batch, head: self.head, numbers: self.numbers, work: self.work }
    }

    fn compose(&self, document: &Document, ordinal: Ordinal) -> Item {
        let mut item = Item {
            lsn: self.lsn,
            ordinal,
            ts: self.now,
            step: self.step,
            own_ttl: document.own_ttl(),
            policy_version: self.setup.policy_version,
            text: Bytes::new(),
        };
        let rid = ItemRid::new(self.setup.container_rid, ordinal);
        item.text = document.stored(rid, &item.etag(), self.now);
        item
    }

    fn next_ordinal(&mut self) -> Result<Ordinal, Problem> {
        let number = self.numbers.take().ok_or(Problem::OutOfNumbers)?;
        Ordinal::new(self.location.place, number).ok_or(Problem::OutOfNumbers)
    }

    /// Index entries that both versions share are left alone.
    fn write_entries(&mut self, old: Option<&Item>, new: Option<&Item>) -> Result<(), Problem> {
        let (before, after) = (self.entries(old)?, self.entries(new)?);
        for entry in before.difference(&after) {
            self.work.index_entries_deleted += 1;
            self.write(entry.clone(), None);
        }
        for entry in after.difference(&before) {
            self.work.index_entries_written += 1;
            self.write(entry.clone(), Some(Bytes::new()));
        }
        Ok(())
    }

    fn entries(&self, item: Option<&Item>) -> Result<BTreeSet<Bytes>, RecordError> {
        let mut keys = BTreeSet::new();
        if let Some(item) = item {
            self.setup.index_entries(item, |entry| {
                keys.insert(self.keys.index(entry, item.ordinal));
            })?;
        }
        Ok(keys)
    }

    fn write_log(&mut self, old: Option<&Item>, new: Option<&Item>) {
        if let Some(old) = old {
            self.write(self.keys.log(old.lsn, old.ordinal), None);
        }
        if let Some(new) = new {
            self.write(
                self.keys.log(new.lsn, new.ordinal),
                Some(key::terminated(&self.location.epk)),
            );
        }
    }

    fn write_expiry(&mut self, old: Option<&Item>, new: Option<&Item>) {
        if let Some(key) = old.and_then(|item| expiry_key(&self.keys, item)) {
            self.write(key, None);
        }
        if let Some(key) = new.and_then(|item| expiry_key(&self.keys, item)) {
            self.write(key, Some(Bytes::new()));
        }
    }

    fn write_unique(&mut self, old: Option<&Item>, new: Option<&Item>) -> Result<(), Problem> {
        let policy = self.setup.definition.unique_keys();
        let values = |item: Option<&Item>| {
            item.map_or(Vec::new(), |item| unique::values(policy, item.json()))
        };
        let (before, after) = (values(old), values(new));
        for value in before.iter().filter(|value| !after.contains(value)) {
            self.write(self.unique_key(value), None);
        }
        for value in after.iter().filter(|value| !before.contains(value)) {
            let key = self.unique_key(value);
            if let Some(owner) = self.get(&key)? {
                self.evict_expired(&owner)?;
            }
            let ordinal = new.map_or(0, |item| item.ordinal.as_u64());
            self.write(key, Some(Bytes::copy_from_slice(&ordinal.to_be_bytes())));
        }
        Ok(())
    }

    /// A unique value is taken: an error, unless its owner has expired.
    fn evict_expired(&mut self, owner: &[u8]) -> Result<(), Problem> {
        let Some((_, ordinal)) = key::parse_trailing_ordinal(owner) else {
            return Err(Problem::UniqueKey);
        };
        let Some(name) = self.get(&self.keys.ordinal(ordinal))? else {
            return Err(Problem::UniqueKey);
        };
        let id = key::parse_item_name(&name).map(|(_, id)| id.to_owned());
        match id {
            // `find` removes it when it has expired, and the value becomes free.
            Some(id) if self.find(&id)?.is_none() => Ok(()),
            Some(_) | None => Err(Problem::UniqueKey),
        }
    }

    fn unique_key(&self, value: &UniqueValue) -> Bytes {
        self.keys.unique(&self.location.epk, value.constraint, &value.digest)
    }

    /// Keeps the sizes of the bucket and of the logical partition.
    fn count(&mut self, old: Option<&Item>, new: Option<&Item>) -> Result<(), Problem> {
        if old.map(Item::bytes) == new.map(Item::bytes) {
            return Ok(());
        }
        let key = self.keys.statistics(&self.location.epk);
        let mut statistics = match self.get(&key)? {
            Some(value) => KeyStatistics::decode(&value)?,
            None => KeyStatistics::default(),
        };
        for (items, bytes) in [
            (&mut statistics.items, &mut statistics.bytes),
            (&mut self.head.items, &mut self.head.bytes),
        ] {
            *items = adjust(*items, u64::from(new.is_some()), u64::from(old.is_some()))?;
            *bytes = adjust(*bytes, new.map_or(0, Item::bytes), old.map_or(0, Item::bytes))?;
        }
        let value = (statistics.items > 0).then(|| statistics.encode());
        self.write(key, value);
        Ok(())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Problem> {
        if let Some(staged) = self.staged.get(key) {
            return Ok(staged.clone());
        }
        match self.overlay.get(key) {
            Some(pending) => Ok(pending),
            None => Ok(self.view.get(key)?),
        }
    }

    fn write(&mut self, key: Bytes, value: Option<Bytes>) {
        self.staged.insert(key, value);
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

/// The unique entries that an item must have, for `check`.
pub(crate) fn unique_keys(setup: &Setup, keys: &Keys, epk: &Epk, item: &Item) -> Vec<Bytes> {
    let values = unique::values(setup.definition.unique_keys(), item.json());
    values.iter().map(|value| keys.unique(epk, value.constraint, &value.digest)).collect()
}
