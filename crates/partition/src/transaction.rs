//! One command in the making.
//!
//! Only when all its operations succeeded does a transaction become one batch;
//! otherwise it is dropped and nothing happened.

use bytes::Bytes;
use model::charge::Written;
use model::epk::Place;
use model::position::{Lsn, Ordinal, Timestamp};
use model::rid::ItemRid;
use storage::Batch;

use crate::bucket_writer::{BucketWriter, Mark};
use crate::command::Problem;
use crate::document::Document;
use crate::key::{self, BucketNumber};
use crate::numbers::Numbers;
use crate::record::{Head, Item};
use crate::setup::Setup;
use crate::write_set::WriteSet;

/// One command in the making, in one logical partition.
#[derive(Debug)]
pub(crate) struct Transaction<'a> {
    pub(crate) setup: &'a Setup,
    writes: WriteSet<'a>,
    place: Place,
    owner: BucketWriter<'a>,
    /// Bytes of the partition's other buckets.
    elsewhere: u64,
    /// Where the logical partition is moving to.
    target: Option<BucketWriter<'a>>,
    numbers: Numbers,
    pub(crate) lsn: Lsn,
    pub(crate) now: Timestamp,
    /// Position of the current operation in the command.
    pub(crate) step: u16,
}

/// What a finished transaction leaves behind.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Empty when the command only read.
    pub(crate) batch: Batch,
    pub(crate) heads: Vec<(BucketNumber, Head)>,
    pub(crate) numbers: Numbers,
}

/// Where and when a transaction takes place.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) writes: WriteSet<'a>,
    /// The place of new ordinals.
    pub(crate) place: Place,
    pub(crate) owner: BucketWriter<'a>,
    /// Bytes of the partition's other buckets, if it cannot grow.
    pub(crate) elsewhere: u64,
    pub(crate) target: Option<BucketWriter<'a>>,
    pub(crate) numbers: Numbers,
    pub(crate) lsn: Lsn,
    pub(crate) now: Timestamp,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(scene: Scene<'a>) -> Transaction<'a> {
        let Scene { setup, writes, place, owner, elsewhere, target, numbers, lsn, now } = scene;
        Transaction { setup, writes, place, owner, elsewhere, target, numbers, lsn, now, step: 0 }
    }

    /// The live item of that id. One that has expired is removed on the way:
    /// for every client it is gone already, and nobody pays for its removal.
    pub(crate) fn find(&mut self, id: &str) -> Result<Option<Item>, Problem> {
        let Some(item) = self.owner.find(&self.writes, id)? else {
            return Ok(None);
        };
        if self.setup.is_expired(&item, self.now) {
            self.remove(id, &item)?;
            return Ok(None);
        }
        Ok(Some(item))
    }

    /// Writes a document in place of `old`, or as a new item. Only what happens in
    /// the owning bucket is the client's doing.
    pub(crate) fn put(
        &mut self,
        document: &Document,
        old: Option<&Item>,
    ) -> Result<(Item, Written), Problem> {
        let ordinal = match old {
            Some(old) => old.ordinal,
            None => self.next_ordinal()?,
        };
        let item = self.compose(document, ordinal);
        self.check_room(old, &item)?;
        let id = document.id().as_str();
        while let Some(owner) = self.owner.rival(&self.writes, old, &item)? {
            self.evict_expired(&owner)?;
        }
        let written = self.owner.put(&mut self.writes, id, old, &item)?;
        if let Some(target) = &mut self.target {
            let held = held(target, &self.writes, old)?;
            target.put(&mut self.writes, id, held, &item)?;
        }
        Ok((item, written))
    }

    /// Whether logical partition and container may grow by what a new version has more.
    fn check_room(&self, old: Option<&Item>, new: &Item) -> Result<(), Problem> {
        let (limits, before) = (&self.setup.limits, old.map_or(0, Item::bytes));
        let Some(growth) = new.bytes().checked_sub(before).filter(|growth| *growth > 0) else {
            return Ok(());
        };
        let max = limits.logical_partition_bytes_max;
        if self.owner.size(&self.writes)?.bytes.saturating_add(growth) > max {
            return Err(Problem::KeyFull { gib: limits.gib_told(max) });
        }
        let max = limits.partition_bytes_max(self.setup.growth);
        let stored = self.elsewhere.saturating_add(self.owner.bytes());
        if stored.saturating_add(growth) > max {
            return Err(Problem::ContainerFull { gib: limits.gib_told(max) });
        }
        Ok(())
    }

    /// Moves an item to another id; `put` writes it there.
    pub(crate) fn rename(&mut self, id: &str, new_id: &str, item: &Item) -> Result<(), Problem> {
        self.owner.rename(&mut self.writes, id, new_id, item);
        if let Some(target) = &self.target
            && target.holds(&self.writes, item)?
        {
            target.rename(&mut self.writes, id, new_id, item);
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, id: &str, old: &Item) -> Result<Written, Problem> {
        let written = self.owner.remove(&mut self.writes, id, old)?;
        if let Some(target) = &mut self.target
            && target.holds(&self.writes, old)?
        {
            target.remove(&mut self.writes, id, old)?;
        }
        Ok(written)
    }

    /// The batch of a command, and the heads after it.
    pub(crate) fn finish(mut self) -> Finished {
        let mut heads = Vec::new();
        if !self.writes.is_empty() {
            let mark = Mark { lsn: self.lsn, now: self.now, next_number: self.numbers.next() };
            heads.push(self.owner.write_head(&mut self.writes, &mark));
            heads.extend(self.target.map(|mut owner| owner.write_head(&mut self.writes, &mark)));
        }
        Finished { batch: self.writes.into_batch(), heads, numbers: self.numbers }
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
        Ordinal::new(self.place, number).ok_or(Problem::OutOfNumbers)
    }

    /// A unique value is taken: an error, unless its owner has expired.
    fn evict_expired(&mut self, owner: &[u8]) -> Result<(), Problem> {
        let Some((_, ordinal)) = key::parse_trailing_ordinal(owner) else {
            return Err(Problem::UniqueKey);
        };
        let Some(name) = self.writes.get(&self.owner.keys.ordinal(ordinal))? else {
            return Err(Problem::UniqueKey);
        };
        let id = key::parse_item_name(&name).map(|(_, id)| id.to_owned());
        match id {
            // `find` removes it when it has expired, and the value becomes free.
            Some(id) if self.find(&id)?.is_none() => Ok(()),
            Some(_) | None => Err(Problem::UniqueKey),
        }
    }
}

/// The old version, as far as a bucket has it.
fn held<'i>(
    owner: &BucketWriter<'_>,
    writes: &WriteSet<'_>,
    old: Option<&'i Item>,
) -> Result<Option<&'i Item>, Problem> {
    match old {
        Some(item) if owner.holds(writes, item)? => Ok(Some(item)),
        Some(_) | None => Ok(None),
    }
}
