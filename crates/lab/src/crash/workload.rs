//! What writers do: a random mix over items, families and the hot item.

use anyhow::{Result, bail};
use bytes::Bytes;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use runtime::{Random, SeededRandom};
use service::{Batch, ItemAction, ItemOperation, Service, ServiceError};

use super::{Attempt, CONTAINERS, LogicalPartition, execute};

/// The key of the item that all writers increment.
pub const HOT_KEY: &str = "hot";
pub const HOT_ID: &str = "counter";

/// Items that a writer changes again and again, in each of its logical partitions.
const SLOTS: u64 = 6;
/// Logical partitions of a writer in each container.
const KEYS: u64 = 2;
/// Padding makes documents differ in length, and large enough that tables are written.
const PADDING_BYTES_MAX: u64 = 600;
/// Versions of one run of the process: more than any run reaches.
const VERSIONS_PER_RUN: u64 = 1_000_000_000;
const VERSIONS_PER_WRITER: u64 = 10_000_000;

/// One writer of a run.
#[derive(Debug)]
pub struct Writer {
    number: u64,
    random: SeededRandom,
    next_version: u64,
}

impl Writer {
    /// `run` must be higher than in all earlier runs on the same folder.
    #[must_use]
    pub fn new(run: u64, number: usize, seed: u64) -> Writer {
        let number = number as u64;
        let next_version = run * VERSIONS_PER_RUN + number * VERSIONS_PER_WRITER + 1;
        let random = SeededRandom::new(seed ^ next_version.wrapping_mul(0x9E37_79B9));
        Writer { number, random, next_version }
    }

    /// What to try next.
    pub fn draw(&mut self) -> Attempt {
        let container = usize::try_from(self.below(CONTAINERS.len() as u64)).unwrap_or_default();
        let partition =
            LogicalPartition { container, key: format!("w{}-{}", self.number, self.below(KEYS)) };
        let version = self.next_version;
        self.next_version += 1;
        let id = format!("slot-{}", self.below(SLOTS));
        match self.below(11) {
            0 | 1 => Attempt::Create { partition, id: format!("new-{version}"), version },
            2..=4 => Attempt::Upsert { partition, id, version },
            5 => Attempt::Patch { partition, id, version },
            6 => Attempt::Replace { partition, id, version },
            7 => Attempt::Delete { partition, id },
            8 | 9 => {
                let size = usize::try_from(2 + self.below(4)).unwrap_or(2);
                Attempt::Batch { partition, size, version }
            }
            _ => Attempt::Increment { container },
        }
    }

    fn below(&self, limit: u64) -> u64 {
        self.random.next_u64() % limit
    }
}

impl Attempt {
    /// Tries it; returns whether it was done. Fails when the answer leaves that open.
    pub fn perform(&self, service: &Service) -> Result<bool> {
        let done = match self {
            Attempt::Batch { partition, size, version } => {
                let operation = |id: String| upsert(&partition.key, &id, *version);
                let operations = Attempt::family(*size).map(operation).collect();
                let key = PartitionKey::new([partition.key.as_str()]);
                let batch = Batch { key, operations, session: None };
                execute(service, partition.container, batch).map(|_| ())
            }
            Attempt::Increment { container } => {
                execute(service, *container, hot_increment()).map(|_| ())
            }
            Attempt::Create { partition, .. }
            | Attempt::Upsert { partition, .. }
            | Attempt::Replace { partition, .. }
            | Attempt::Patch { partition, .. }
            | Attempt::Delete { partition, .. } => {
                execute(service, partition.container, self.action(&partition.key)?).map(|_| ())
            }
        };
        match done {
            Ok(()) => Ok(true),
            Err(error) if is_refusal(&error) => Ok(false),
            Err(error) => bail!("{self}: {error:?}"),
        }
    }

    /// The operation on one item under a key.
    fn action(&self, key: &str) -> Result<ItemAction> {
        let named = Some(PartitionKey::new([key]));
        Ok(match self {
            Attempt::Create { id, version, .. } => {
                let body = item_body(key, id, *version).into();
                ItemAction::new(None, ItemOperation::Create { body })
            }
            Attempt::Upsert { id, version, .. } => ItemAction::new(None, upsert(key, id, *version)),
            Attempt::Replace { id, version, .. } => {
                let (id, body) = (ItemId::parse(id)?, item_body(key, id, *version).into());
                ItemAction::new(named, ItemOperation::Replace { id, body, if_match: None })
            }
            Attempt::Patch { id, version, .. } => {
                let (id, body) = (ItemId::parse(id)?, patch_body(*version).into());
                ItemAction::new(named, ItemOperation::Patch { id, body, if_match: None })
            }
            Attempt::Delete { id, .. } => {
                let id = ItemId::parse(id)?;
                ItemAction::new(named, ItemOperation::Delete { id, if_match: None })
            }
            Attempt::Batch { .. } | Attempt::Increment { .. } => hot_increment(),
        })
    }
}

fn upsert(key: &str, id: &str, version: u64) -> ItemOperation {
    ItemOperation::Upsert { body: item_body(key, id, version).into(), if_match: None }
}

/// What adds one to the hot item.
pub const HOT_PATCH: &str = r#"{"operations":[{"op":"incr","path":"/version","value":1}]}"#;

/// Adds one to the hot item.
#[must_use]
pub fn hot_increment() -> ItemAction {
    let id = ItemId::parse(HOT_ID).expect("a short id");
    let body = Bytes::from_static(HOT_PATCH.as_bytes());
    let patch = ItemOperation::Patch { id, body, if_match: None };
    ItemAction::new(Some(PartitionKey::new([HOT_KEY])), patch)
}

/// Errors that guarantee that nothing was done.
fn is_refusal(error: &ServiceError) -> bool {
    matches!(error, ServiceError::NotFound | ServiceError::Conflict { .. } | ServiceError::Busy)
}

/// A document whose every part follows from its version.
#[must_use]
pub fn item_body(key: &str, id: &str, version: u64) -> String {
    let padding = padding(version);
    format!(r#"{{"id":"{id}","pk":"{key}","version":{version},"padding":"{padding}"}}"#)
}

/// The patch that gives an item another version.
#[must_use]
pub fn patch_body(version: u64) -> String {
    let padding = padding(version);
    let set =
        |path: &str, value: &str| format!(r#"{{"op":"set","path":"{path}","value":{value}}}"#);
    let version = set("/version", &version.to_string());
    let padding = set("/padding", &format!("\"{padding}\""));
    format!(r#"{{"operations":[{version},{padding}]}}"#)
}

/// The padding of a version: its digits, repeated to a length of their own.
pub(super) fn padding(version: u64) -> String {
    let digits = version.to_string();
    let len = usize::try_from(version.wrapping_mul(0x9E37_79B9) % PADDING_BYTES_MAX);
    digits.chars().cycle().take(len.unwrap_or_default()).collect()
}
