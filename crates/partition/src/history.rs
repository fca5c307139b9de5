//! The history: a record of each operation, for the change feed of all versions and deletes.
//!
//! The log tells what an item is now. A container whose change feed policy has a retention
//! keeps, beside it, what each operation did: the item after a write, or before its removal.
//! Unlike everything in [`crate::derived`] that cannot be derived from the items again, but it
//! is staged by maintainers of the same list and so belongs to the commit of the operation.
//! Containers without the policy write nothing here.
//!
//! [`feed`] reads it, [`trim`] removes what is too old and copies it while a bucket moves.

mod feed;
mod trim;

use bytes::Bytes;
use model::epk::Epk;
use model::etag::Etag;
use model::json::{Object, Raw, Value};
use model::partition_key::PartitionKeyDefinition;
use model::position::{Lsn, Ordinal, Timestamp};
use model::rid::{ContainerRid, ItemRid};
use model::system_properties::ItemStamp;

use crate::derived::Change;
use crate::key::{self, HistoryPosition};
use crate::record::{self, Item, RecordError};

pub use feed::{History, HistoryPage};
pub use trim::{HistoryRow, Outdated};

const WHAT: &str = "history";

/// Bytes of removed items that the records of one commit keep. A page of the feed has all
/// changes of a commit or none, and one commit can remove thousands of items of two
/// megabytes, so that its page would not fit into memory.
const IMAGE_BYTES_MAX: usize = 4 << 20;

/// What an operation did to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryKind {
    Create,
    Replace,
    Delete,
    /// A removal because of the item's age.
    Expiry,
}

impl HistoryKind {
    const ALL: [HistoryKind; 4] =
        [HistoryKind::Create, HistoryKind::Replace, HistoryKind::Delete, HistoryKind::Expiry];

    fn tag(self) -> u8 {
        match self {
            HistoryKind::Create => 1,
            HistoryKind::Replace => 2,
            HistoryKind::Delete => 3,
            HistoryKind::Expiry => 4,
        }
    }

    #[must_use]
    pub fn is_removal(self) -> bool {
        matches!(self, HistoryKind::Delete | HistoryKind::Expiry)
    }
}

/// Which version of an item: what its etag is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionMark {
    pub lsn: Lsn,
    pub step: u16,
    pub ts: Timestamp,
}

impl VersionMark {
    fn none() -> VersionMark {
        VersionMark { lsn: Lsn::ZERO, step: 0, ts: Timestamp::from_millis(0) }
    }

    fn of(item: &Item) -> VersionMark {
        VersionMark { lsn: item.lsn, step: item.step, ts: item.ts }
    }
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRecord {
    pub kind: HistoryKind,
    /// The commit, the step and the time of the operation.
    pub mark: VersionMark,
    pub ordinal: Ordinal,
    /// The version that it replaced or removed.
    pub before: Option<VersionMark>,
    /// Whether `text` is the item, or only what names it.
    has_image: bool,
    /// The item after a write, or before a removal.
    text: Bytes,
    pub(crate) epk: Epk,
}

impl HistoryRecord {
    /// The text of the item after a write or before a removal, if the record has it.
    #[must_use]
    pub fn image(&self) -> Option<&Bytes> {
        self.has_image.then_some(&self.text)
    }

    /// An object that has at least the id and the partition key of the item.
    #[must_use]
    pub fn json(&self) -> Raw<'_> {
        Raw::trusted(std::str::from_utf8(&self.text).expect("`decode` takes UTF-8 only"))
    }

    /// What the database knows of the version that the image is the text of.
    #[must_use]
    pub fn stamp(&self, container: ContainerRid) -> ItemStamp {
        let VersionMark { lsn, step, ts } = match self.before {
            Some(before) if self.kind.is_removal() => before,
            Some(_) | None => self.mark,
        };
        let rid = ItemRid::new(container, self.ordinal);
        ItemStamp { rid, etag: Etag::new(lsn, step, ts), ts }
    }

    /// Bytes of text that a page of the feed has of it.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.text.len() as u64
    }

    fn encode(&self) -> Bytes {
        let before = self.before.unwrap_or_else(VersionMark::none);
        let mut payload = vec![self.kind.tag(), u8::from(self.has_image)];
        payload.extend_from_slice(&self.mark.ts.millis().to_le_bytes());
        payload.extend_from_slice(&self.mark.step.to_le_bytes());
        payload.extend_from_slice(&self.ordinal.as_u64().to_le_bytes());
        payload.extend_from_slice(&before.lsn.get().to_le_bytes());
        payload.extend_from_slice(&before.step.to_le_bytes());
        payload.extend_from_slice(&before.ts.millis().to_le_bytes());
        payload.extend_from_slice(&key::terminated(&self.epk));
        payload.extend_from_slice(&self.text);
        record::seal(payload.into_iter())
    }

    /// The record of a commit.
    pub(crate) fn decode(lsn: Lsn, value: &Bytes) -> Result<HistoryRecord, RecordError> {
        let malformed = RecordError::Malformed { what: WHAT };
        let mut payload = record::open(WHAT, value)?;
        let [kind, image] = record::take(&mut payload, WHAT)?;
        let kind = HistoryKind::ALL.into_iter().find(|known| known.tag() == kind);
        let kind = kind.ok_or(malformed)?;
        let ts = take_time(&mut payload)?;
        let step = u16::from_le_bytes(record::take(&mut payload, WHAT)?);
        let [ordinal, before] = record::take_u64s(&mut payload, WHAT)?;
        let before = VersionMark {
            lsn: Lsn::from_u64(before),
            step: u16::from_le_bytes(record::take(&mut payload, WHAT)?),
            ts: take_time(&mut payload)?,
        };
        let (epk, text) = key::take_epk(payload).ok_or(malformed)?;
        let text = value.slice_ref(text);
        let has_image = image == 1;
        let may_lack_image = image == 0 && kind.is_removal();
        if !(has_image || may_lack_image) || std::str::from_utf8(&text).is_err() {
            return Err(malformed);
        }
        Ok(HistoryRecord {
            kind,
            mark: VersionMark { lsn, step, ts },
            ordinal: Ordinal::from_u64(ordinal).ok_or(malformed)?,
            before: (kind != HistoryKind::Create).then_some(before),
            has_image,
            text,
            epk,
        })
    }
}

fn take_time(payload: &mut &[u8]) -> Result<Timestamp, RecordError> {
    let millis = u64::from_le_bytes(record::take(payload, WHAT)?);
    Ok(Timestamp::from_millis(millis))
}

/// An item with nothing but its id and partition key.
fn only_names(definition: &PartitionKeyDefinition, item: Raw<'_>) -> Bytes {
    let mut names = Object::new();
    if let Some(id) = item.get("id") {
        names.insert("id", id.to_value());
    }
    for path in definition.paths() {
        if let Some(value) = item.path(path.names()) {
            insert_at(&mut names, path.names(), value.to_value());
        }
    }
    Value::from(names).to_string().into()
}

fn insert_at(object: &mut Object, path: &[String], value: Value) {
    match path {
        [] => {}
        [name] => {
            object.insert(name.clone(), value);
        }
        [name, rest @ ..] => {
            let mut inner = match object.remove(name) {
                Some(Value::Object(inner)) => inner,
                Some(_) | None => Object::new(),
            };
            insert_at(&mut inner, rest, value);
            object.insert(name.clone(), inner);
        }
    }
}

/// The history of a bucket is complete after this position.
pub(crate) fn encode_horizon(horizon: Lsn) -> Bytes {
    record::seal(horizon.get().to_le_bytes().into_iter())
}

pub(crate) fn decode_horizon(value: &[u8]) -> Result<Lsn, RecordError> {
    const WHAT: &str = "history horizon";
    let mut payload = record::open(WHAT, value)?;
    let [horizon] = record::take_u64s(&mut payload, WHAT)?;
    Ok(Lsn::from_u64(horizon))
}

/// A record with its position, as buckets store it.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) at: HistoryPosition,
    pub(crate) value: Bytes,
}

/// Records the operations of one commit.
#[derive(Debug)]
pub(crate) struct Recorder {
    mark: VersionMark,
    number: u32,
    /// What the records may still keep of removed items.
    image_bytes: usize,
}

impl Recorder {
    pub(crate) fn new(lsn: Lsn, ts: Timestamp) -> Recorder {
        let mark = VersionMark { lsn, step: 0, ts };
        Recorder { mark, number: 0, image_bytes: IMAGE_BYTES_MAX }
    }

    /// The record of a change, if it changes anything; `removal` says what a removal is.
    pub(crate) fn record(
        &mut self,
        definition: &PartitionKeyDefinition,
        epk: &Epk,
        change: Change<'_>,
        removal: HistoryKind,
    ) -> Option<Event> {
        let before = change.old.map(|old| VersionMark::of(old.item));
        let (kind, item) = match (change.old, change.new) {
            (None, Some(new)) => (HistoryKind::Create, new.item),
            (Some(_), Some(new)) => (HistoryKind::Replace, new.item),
            (Some(old), None) => (removal, old.item),
            (None, None) => return None,
        };
        let has_image = !kind.is_removal() || self.take_room(item.text.len());
        let text = if has_image { item.text.clone() } else { only_names(definition, item.json()) };
        let mark = VersionMark { step: if kind.is_removal() { 0 } else { item.step }, ..self.mark };
        let record = HistoryRecord {
            kind,
            mark,
            ordinal: item.ordinal,
            before,
            has_image,
            text,
            epk: epk.clone(),
        };
        let at = HistoryPosition { lsn: self.mark.lsn, number: self.number };
        self.number += 1;
        Some(Event { at, value: record.encode() })
    }

    fn take_room(&mut self, bytes: usize) -> bool {
        let left = self.image_bytes.checked_sub(bytes);
        self.image_bytes = left.unwrap_or(self.image_bytes);
        left.is_some()
    }
}

#[cfg(test)]
mod tests;
