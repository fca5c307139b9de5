//! The rows of a bucket: `docs/formats/partition.md`.

use std::collections::{BTreeMap, BTreeSet};

use super::bytes::{Cursor, Damage, Result, damage, require};
use super::store::Rows;

/// A bucket, taken apart by groups.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    pub(crate) head: Option<Head>,
    /// Items and bytes by position.
    pub(crate) statistics: BTreeMap<Vec<u8>, (u64, u64)>,
    pub(crate) items: Vec<Item>,
    pub(crate) ordinals: BTreeMap<u64, (Vec<u8>, String)>,
    pub(crate) members: BTreeMap<(Vec<u8>, u64), String>,
    /// What follows the tag, the ordinal included.
    pub(crate) entries: BTreeSet<Vec<u8>>,
    /// Position, constraint and digest; the ordinal.
    pub(crate) unique: BTreeMap<(Vec<u8>, u8, [u8; 32]), u64>,
    /// Own ttl and `_ts` in seconds, ordinal.
    pub(crate) expiry: BTreeSet<(u32, u64, u64)>,
    /// LSN and ordinal; the position.
    pub(crate) log: BTreeMap<(u64, u64), Vec<u8>>,
    /// LSN and number in the commit.
    pub(crate) history: BTreeMap<(u64, u32), Record>,
    /// The same after a position.
    pub(crate) key_history: BTreeSet<(Vec<u8>, u64, u32)>,
    pub(crate) horizon: Option<u64>,
}

/// What an operation did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) kind: u8,
    pub(crate) has_image: bool,
    pub(crate) ts_millis: u64,
    pub(crate) step: u16,
    pub(crate) ordinal: u64,
    /// LSN, step and `_ts`.
    pub(crate) before: (u64, u16, u64),
    pub(crate) position: Vec<u8>,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) lsn: u64,
    pub(crate) ts_millis: u64,
    pub(crate) next_number: u64,
    pub(crate) items: u64,
    pub(crate) bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) position: Vec<u8>,
    pub(crate) id: String,
    pub(crate) lsn: u64,
    pub(crate) ordinal: u64,
    pub(crate) ts_millis: u64,
    pub(crate) step: u16,
    pub(crate) own_ttl: i32,
    pub(crate) policy_version: u32,
    pub(crate) text: String,
}

/// All buckets, by the number of their container and their own.
pub(crate) fn buckets(rows: &Rows) -> Result<BTreeMap<(u32, u32), Bucket>> {
    let mut buckets: BTreeMap<(u32, u32), Bucket> = BTreeMap::new();
    for (key, value) in rows {
        let mut cursor = Cursor::new("a key", key);
        let (container, bucket) = (cursor.u32_be()?, cursor.u32_be()?);
        buckets.entry((container, bucket)).or_default().add(cursor, value)?;
    }
    Ok(buckets)
}

impl Bucket {
    fn add(&mut self, mut key: Cursor<'_>, value: &[u8]) -> Result<()> {
        match key.u8()? {
            0x01 => self.head = Some(head(value)?),
            0x02 => drop(self.statistics.insert(terminated(&mut key)?, statistics(value)?)),
            0x10 => self.items.push(item(&mut key, value)?),
            0x20 => drop(self.ordinals.insert(key.u64_be()?, named(value)?)),
            0x21 => drop(
                self.members.insert((terminated(&mut key)?, key.u64_be()?), text(value.to_vec())?),
            ),
            0x30 => {
                let entry = key.take(key.rest().len())?;
                require(value.is_empty(), || "an index entry with a value".to_owned())?;
                self.entries.insert(entry.to_vec());
            }
            0x40 => {
                let owner = Cursor::new("a unique value", value).u64_be()?;
                let unique = (terminated(&mut key)?, key.u8()?, key.array()?);
                self.unique.insert(unique, owner);
            }
            0x50 => {
                require(value.is_empty(), || "an expiry entry with a value".to_owned())?;
                self.expiry.insert((key.u32_be()?, key.u64_be()?, key.u64_be()?));
            }
            0x60 => {
                let mut position = Cursor::new("a log entry", value);
                let at = (key.u64_be()?, key.u64_be()?);
                self.log.insert(at, terminated(&mut position)?);
                position.end()?;
            }
            0x61 => drop(self.history.insert((key.u64_be()?, key.u32_be()?), record(value)?)),
            0x62 => {
                require(value.is_empty(), || "a key of the history with a value".to_owned())?;
                self.key_history.insert((terminated(&mut key)?, key.u64_be()?, key.u32_be()?));
            }
            0x63 => {
                let mut cursor = opened("a horizon", value)?;
                self.horizon = Some(cursor.u64()?);
                cursor.end()?;
            }
            tag => return damage(foreign(tag)),
        }
        key.end()
    }
}

/// Groups that later versions will have, by their tags.
const RESERVED: [(u8, &str); 3] =
    [(0x03, "pending deletion"), (0x31, "vector index"), (0x32, "full-text index")];

/// What a key is whose group this version does not have.
fn foreign(tag: u8) -> String {
    match RESERVED.iter().find(|(reserved, _)| *reserved == tag) {
        Some((_, name)) => format!("a key of group {tag:02x}, reserved for later: {name}"),
        None => format!("a key of group {tag:02x}, which there is not"),
    }
}

/// `00 FF` stands for `00`, and `00 01` ends the string.
fn terminated(cursor: &mut Cursor<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        match cursor.u8()? {
            0 => match cursor.u8()? {
                0xFF => bytes.push(0),
                0x01 => return Ok(bytes),
                other => return damage(format!("00 {other:02x} in a terminated string")),
            },
            byte => bytes.push(byte),
        }
    }
}

fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Damage("text that is not UTF-8".to_owned()))
}

fn named(bytes: &[u8]) -> Result<(Vec<u8>, String)> {
    let mut cursor = Cursor::new("a name", bytes);
    Ok((terminated(&mut cursor)?, text(cursor.rest().to_vec())?))
}

/// The payload of a record of version 1.
fn opened<'a>(what: &'a str, value: &'a [u8]) -> Result<Cursor<'a>> {
    let mut cursor = Cursor::new(what, value);
    let (version, crc) = (cursor.u8()?, cursor.u32()?);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[version]);
    hasher.update(cursor.rest());
    require(hasher.finalize() == crc, || format!("{what} fails its checksum"))?;
    require(version == 1, || format!("{what} has version {version}"))?;
    Ok(cursor)
}

fn head(value: &[u8]) -> Result<Head> {
    let mut cursor = opened("a head", value)?;
    let head = Head {
        lsn: cursor.u64()?,
        ts_millis: cursor.u64()?,
        next_number: cursor.u64()?,
        items: cursor.u64()?,
        bytes: cursor.u64()?,
    };
    cursor.end()?;
    Ok(head)
}

fn statistics(value: &[u8]) -> Result<(u64, u64)> {
    let mut cursor = opened("statistics", value)?;
    let statistics = (cursor.u64()?, cursor.u64()?);
    cursor.end()?;
    Ok(statistics)
}

fn item(key: &mut Cursor<'_>, value: &[u8]) -> Result<Item> {
    let (position, id) = (terminated(key)?, key.take(key.rest().len())?);
    let mut cursor = opened("an item", value)?;
    Ok(Item {
        position,
        id: text(id.to_vec())?,
        lsn: cursor.u64()?,
        ordinal: cursor.u64()?,
        ts_millis: cursor.u64()?,
        step: cursor.u16()?,
        own_ttl: i32::from_le_bytes(cursor.array()?),
        policy_version: cursor.u32()?,
        text: text(cursor.rest().to_vec())?,
    })
}

fn record(value: &[u8]) -> Result<Record> {
    let mut cursor = opened("a history record", value)?;
    let (kind, image) = (cursor.u8()?, cursor.u8()?);
    require(matches!(kind, 1..=4), || format!("a history record of kind {kind}"))?;
    require(image == 1 || (image == 0 && kind > 2), || format!("image {image} of kind {kind}"))?;
    let (ts_millis, step, ordinal) = (cursor.u64()?, cursor.u16()?, cursor.u64()?);
    let before = (cursor.u64()?, cursor.u16()?, cursor.u64()?);
    let position = terminated(&mut cursor)?;
    let text = text(cursor.rest().to_vec())?;
    let has_image = image == 1;
    Ok(Record { kind, has_image, ts_millis, step, ordinal, before, position, text })
}
