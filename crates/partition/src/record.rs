//! The values that a bucket stores, specified in `docs/formats/partition.md`.
//!
//! Each record is *sealed*: a version and a checksum precede the payload, so that a damaged
//! or future record is noticed when it is read.

use bytes::Bytes;
use model::etag::Etag;
use model::json::Raw;
use model::policy::OwnTtl;
use model::position::{Lsn, Ordinal, Timestamp};
use model::rid::{ContainerRid, ItemRid};
use model::system_properties::ItemStamp;

const VERSION: u8 = 1;
/// Version and checksum.
const SEAL_BYTES: usize = 5;
const HEADER_BYTES: usize = 8 + 8 + 8 + 2 + 4 + 4;

/// What the system properties of an item take in the service.
const SYSTEM_BYTES: u64 = 205;

/// A stored value that cannot be read. Nothing a client did causes this: the
/// storage is damaged or was written by a newer version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("checksum of a {what} record does not match")]
    Checksum { what: &'static str },
    #[error("{what} record has format version {found}; this version reads {VERSION}")]
    Version { what: &'static str, found: u8 },
    #[error(
        "an item was indexed under policy version {version}, which the catalogue does not know"
    )]
    Policy { version: u32 },
    #[error("{what} record is malformed")]
    Malformed { what: &'static str },
}

/// What a bucket knows about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub lsn: u64,
    pub ts_millis: u64,
    pub next_number: u64,
    pub items: u64,
    pub bytes: u64,
}

impl Head {
    pub(crate) fn encode(&self) -> Bytes {
        seal(
            [self.lsn, self.ts_millis, self.next_number, self.items, self.bytes]
                .iter()
                .flat_map(|n| n.to_le_bytes()),
        )
    }

    pub(crate) fn decode(value: &[u8]) -> Result<Head, RecordError> {
        let mut payload = open("head", value)?;
        let [lsn, ts_millis, next_number, items, bytes] = take_u64s(&mut payload, "head")?;
        Ok(Head { lsn, ts_millis, next_number, items, bytes })
    }
}

/// Size of one logical partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyStatistics {
    pub items: u64,
    pub bytes: u64,
}

impl KeyStatistics {
    pub(crate) fn encode(&self) -> Bytes {
        seal([self.items, self.bytes].iter().flat_map(|n| n.to_le_bytes()))
    }

    pub(crate) fn decode(value: &[u8]) -> Result<KeyStatistics, RecordError> {
        let mut payload = open("key statistics", value)?;
        let [items, bytes] = take_u64s(&mut payload, "key statistics")?;
        Ok(KeyStatistics { items, bytes })
    }
}

/// An item as stored: what the partition needs to know about it, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub lsn: Lsn,
    pub ordinal: Ordinal,
    pub ts: Timestamp,
    pub step: u16,
    pub own_ttl: Option<OwnTtl>,
    pub policy_version: u32,
    /// The JSON text as the client wrote it, without system properties.
    pub text: Bytes,
}

impl Item {
    #[must_use]
    pub fn etag(&self) -> Etag {
        Etag::new(self.lsn, self.step, self.ts)
    }

    /// The text as JSON. It was checked when it was written and its checksum when it was read.
    #[must_use]
    pub fn json(&self) -> Raw<'_> {
        Raw::trusted(std::str::from_utf8(&self.text).expect("`decode` takes UTF-8 only"))
    }

    /// What system properties of this version are made of.
    #[must_use]
    pub fn stamp(&self, container: ContainerRid) -> ItemStamp {
        ItemStamp { rid: ItemRid::new(container, self.ordinal), etag: self.etag(), ts: self.ts }
    }

    /// Bytes of the client's own text, which is what clients pay for.
    #[must_use]
    pub fn own_bytes(&self) -> u64 {
        self.text.len() as u64
    }

    /// Size of the item as logical partitions count it: with its system properties, as in
    /// the service.
    pub(crate) fn bytes(&self) -> u64 {
        self.own_bytes() + SYSTEM_BYTES
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut value = Vec::with_capacity(SEAL_BYTES + HEADER_BYTES + self.text.len());
        value.extend_from_slice(&[0; SEAL_BYTES]);
        value.extend_from_slice(&self.lsn.get().to_le_bytes());
        value.extend_from_slice(&self.ordinal.as_u64().to_le_bytes());
        value.extend_from_slice(&self.ts.millis().to_le_bytes());
        value.extend_from_slice(&self.step.to_le_bytes());
        value.extend_from_slice(&self.own_ttl.map_or(0, OwnTtl::as_seconds).to_le_bytes());
        value.extend_from_slice(&self.policy_version.to_le_bytes());
        value.extend_from_slice(&self.text);
        sealed(value)
    }

    pub(crate) fn decode(value: &Bytes) -> Result<Item, RecordError> {
        const WHAT: &str = "item";
        let malformed = RecordError::Malformed { what: WHAT };
        let mut payload = open(WHAT, value)?;
        let [lsn, ordinal, ts] = take_u64s(&mut payload, WHAT)?;
        let step = u16::from_le_bytes(take(&mut payload, WHAT)?);
        let own_ttl = i32::from_le_bytes(take(&mut payload, WHAT)?);
        let policy_version = u32::from_le_bytes(take(&mut payload, WHAT)?);
        let text = value.slice_ref(payload);
        if std::str::from_utf8(&text).is_err() {
            return Err(malformed);
        }
        Ok(Item {
            lsn: Lsn::from_u64(lsn),
            ordinal: Ordinal::from_u64(ordinal).ok_or(malformed)?,
            ts: Timestamp::from_millis(ts),
            step,
            own_ttl: if own_ttl == 0 {
                None
            } else {
                Some(OwnTtl::from_seconds(own_ttl).ok_or(malformed)?)
            },
            policy_version,
            text,
        })
    }
}

pub(crate) fn seal(payload: impl Iterator<Item = u8>) -> Bytes {
    let mut value = vec![0; SEAL_BYTES];
    value.extend(payload);
    sealed(value)
}

/// Fills in the seal of a value whose first bytes were left free for it.
fn sealed(mut value: Vec<u8>) -> Bytes {
    let (seal, payload) = value.split_at_mut(SEAL_BYTES);
    let [version, checksum @ ..] = seal else { unreachable!("the seal was just reserved") };
    *version = VERSION;
    checksum.copy_from_slice(&crc(VERSION, payload).to_le_bytes());
    value.into()
}

pub(crate) fn open<'a>(what: &'static str, value: &'a [u8]) -> Result<&'a [u8], RecordError> {
    let Some(([version, checksum @ ..], payload)) = value.split_first_chunk::<SEAL_BYTES>() else {
        return Err(RecordError::Malformed { what });
    };
    if crc(*version, payload) != u32::from_le_bytes(*checksum) {
        return Err(RecordError::Checksum { what });
    }
    if *version == VERSION {
        Ok(payload)
    } else {
        Err(RecordError::Version { what, found: *version })
    }
}

fn crc(version: u8, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[version]);
    hasher.update(payload);
    hasher.finalize()
}

pub(crate) fn take<const N: usize>(
    input: &mut &[u8],
    what: &'static str,
) -> Result<[u8; N], RecordError> {
    let (head, rest) = input.split_first_chunk::<N>().ok_or(RecordError::Malformed { what })?;
    *input = rest;
    Ok(*head)
}

pub(crate) fn take_u64s<const N: usize>(
    input: &mut &[u8],
    what: &'static str,
) -> Result<[u64; N], RecordError> {
    let mut out = [0; N];
    for slot in &mut out {
        *slot = u64::from_le_bytes(take(input, what)?);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn item() -> impl Strategy<Value = Item> {
        let numbers = (any::<u64>(), 1..=Ordinal::MAX, any::<u64>(), any::<u16>());
        let rest = (prop_oneof![Just(0), Just(-1), 1..=i32::MAX], any::<u32>(), ".*");
        (numbers, rest).prop_map(|((lsn, number, millis, step), (ttl, policy_version, text))| {
            Item {
                lsn: Lsn::from_u64(lsn),
                ordinal: Ordinal::from_u64(number).unwrap(),
                ts: Timestamp::from_millis(millis),
                step,
                own_ttl: OwnTtl::from_seconds(ttl),
                policy_version,
                text: text.into(),
            }
        })
    }

    proptest! {
        #[test]
        fn records_come_back(item in item(), counts: [u64; 5]) {
            prop_assert_eq!(Item::decode(&item.encode()), Ok(item));
            let [lsn, ts_millis, next_number, items, bytes] = counts;
            let head = Head { lsn, ts_millis, next_number, items, bytes };
            prop_assert_eq!(Head::decode(&head.encode()), Ok(head));
            let statistics = KeyStatistics { items, bytes };
            prop_assert_eq!(KeyStatistics::decode(&statistics.encode()), Ok(statistics));
        }

        #[test]
        fn every_flipped_bit_is_noticed(item in item()) {
            let sound = item.encode();
            for at in 0..sound.len() * 8 {
                let mut flipped = sound.to_vec();
                flipped[at / 8] ^= 1 << (at % 8);
                prop_assert!(Item::decode(&flipped.into()).is_err(), "bit {}", at);
            }
        }

        #[test]
        fn a_record_of_another_length_is_noticed(item in item(), tail in 1..64_usize) {
            let sound = item.encode();
            for cut in 0..sound.len() {
                prop_assert!(Item::decode(&sound.slice(..cut)).is_err());
            }
            let longer: Bytes = [sound.as_ref(), &vec![0; tail]].concat().into();
            prop_assert!(Item::decode(&longer).is_err());
        }

        #[test]
        fn foreign_bytes_never_panic(bytes: Vec<u8>) {
            let _ = Item::decode(&bytes.clone().into());
            let _ = Head::decode(&bytes);
            let _ = KeyStatistics::decode(&bytes);
            // The same with a valid seal, so that the payload is parsed.
            let sealed = seal(bytes.into_iter());
            let _ = Item::decode(&sealed);
            let _ = Head::decode(&sealed);
            let _ = KeyStatistics::decode(&sealed);
        }
    }

    #[test]
    fn a_future_version_is_named() {
        let mut value = vec![2, 0, 0, 0, 0, 7];
        let checksum = crc(2, &[7]).to_le_bytes();
        value[1..5].copy_from_slice(&checksum);
        assert_eq!(Head::decode(&value), Err(RecordError::Version { what: "head", found: 2 }));
    }

    #[test]
    fn the_bytes_are_those_of_the_specification() {
        let head = Head { lsn: 1, ts_millis: 2, next_number: 3, items: 4, bytes: 5 };
        let payload: Vec<u8> = (1..=5_u64).flat_map(u64::to_le_bytes).collect();
        let mut hashed = vec![1];
        hashed.extend(&payload);
        let checksum = crc32fast::hash(&hashed).to_le_bytes();
        assert_eq!(head.encode(), [&[1], checksum.as_slice(), &payload].concat());
        assert_eq!(head.encode().len(), 45);
    }
}
