//! The sweep: removing the keys of dropped containers and of moved buckets, asynchronously
//! and in small steps.
//!
//! A drop is complete when the catalogue says so, a move when the map does; the keys are
//! garbage from then on and their prefix is never used again. A tombstone record, an item
//! of the system container, names the prefix until the last key is gone, across restarts.
//!
//! Most of a large prefix lies in files of its own, which the store discards whole. What is
//! left is deleted key by key; the store then has to be compacted before the disk has the
//! space back, which is worth it when that was much of the store.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use model::json::Object;
use partition::{BucketNumber, ContainerNumber, bucket_prefix, container_prefix};
use storage::{
    Chunk, CommitStatus, Direction, KeyRange, ScanLimit, StorageError, Store, Ticket, WriteBatch,
    WriteSession,
};

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::system::{SystemItems, SystemWrite};
use crate::transition::rebucket::owner;
use crate::transition::switch::TransitionStep;

const PREFIX: &str = "retired:";

/// Tombstone records read at once.
const CHUNK_MARKS: usize = 256;

/// Deleted bytes from which on compacting the store is considered. Less is not worth it,
/// and dropping small containers all day would compact it each time.
const GARBAGE_BYTES_MIN: u64 = 1 << 20;

/// The store is compacted when at least one byte in this many of its files was deleted: a
/// compaction then moves at most three bytes for each that it frees.
const GARBAGE_PART: u64 = 4;

/// A part of the store that belongs to one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RetiredPrefix {
    Container(ContainerNumber),
    Bucket(ContainerNumber, BucketNumber),
}

impl RetiredPrefix {
    fn keys(self) -> KeyRange {
        match self {
            RetiredPrefix::Container(container) => KeyRange::prefix(&container_prefix(container)),
            RetiredPrefix::Bucket(container, bucket) => {
                KeyRange::prefix(&bucket_prefix(container, bucket))
            }
        }
    }

    /// The id of its tombstone record.
    fn mark_id(self) -> String {
        match self {
            RetiredPrefix::Container(container) => format!("{PREFIX}{}", container.0),
            RetiredPrefix::Bucket(container, bucket) => {
                format!("{PREFIX}{}.{}", container.0, bucket.0)
            }
        }
    }

    fn parse_mark(id: &str) -> Option<RetiredPrefix> {
        let id = id.strip_prefix(PREFIX)?;
        match id.split_once('.') {
            None => Some(RetiredPrefix::Container(ContainerNumber(id.parse().ok()?))),
            Some((container, bucket)) => Some(RetiredPrefix::Bucket(
                ContainerNumber(container.parse().ok()?),
                BucketNumber(bucket.parse().ok()?),
            )),
        }
    }

    /// The write that retires its keys.
    pub(crate) fn mark(self) -> SystemWrite {
        SystemWrite::Create { id: self.mark_id(), body: Object::new() }
    }
}

/// What was deleted key by key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    pub keys: u64,
    /// Bytes of those keys and their values.
    pub bytes: u64,
}

impl fmt::Display for RetiredPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RetiredPrefix::Container(container) => write!(f, "container {}", container.0),
            RetiredPrefix::Bucket(container, bucket) => {
                write!(f, "bucket {} of container {}", bucket.0, container.0)
            }
        }
    }
}

impl Cluster {
    /// What is still to be removed.
    pub async fn retired(&self) -> Result<Vec<RetiredPrefix>, ClusterError> {
        let items = self.system_items()?;
        self.aside(move || list_retired(&items)).await?
    }

    /// The same on the calling thread, which may block.
    pub(crate) fn retired_blocking(&self) -> Result<Vec<RetiredPrefix>, ClusterError> {
        list_retired(&self.system_items()?)
    }

    /// Removes the keys of a retired prefix.
    pub async fn sweep(&self, retired: RetiredPrefix) -> Result<Removed, ClusterError> {
        self.await_layout_without(retired).await;
        let (store, keys) = (Arc::clone(self.store()), retired.keys());
        self.aside(move || store.discard(&keys)).await??;
        let mut removed = Removed::default();
        // Discarded files may have hidden older values: repeat until a view shows nothing.
        while self.delete_keys(&retired.keys(), &mut removed).await? {}
        let done = SystemWrite::Delete { id: retired.mark_id(), if_match: None };
        self.write_system_for_relief(vec![done]).await?;
        self.observe(TransitionStep::Swept);
        Ok(removed)
    }

    /// A layout without the bucket may be stored and not in force yet: waits until the
    /// partition that owns it is replaced.
    async fn await_layout_without(&self, retired: RetiredPrefix) {
        let RetiredPrefix::Bucket(number, bucket) = retired else { return };
        let Ok(container) = self.container(number) else { return };
        if let Ok(partition) = owner(&container, bucket) {
            partition.settled().await;
        }
    }

    /// Deletes the keys of a range. Returns whether there were any.
    async fn delete_keys(
        &self,
        range: &KeyRange,
        removed: &mut Removed,
    ) -> Result<bool, ClusterError> {
        let before = removed.keys;
        let (mut session, mut limit) = (self.store().write_session(), ScanLimit::default());
        let mut rest = Some(range.clone());
        while let Some(range) = rest.take() {
            let (store, chunk) = (Arc::clone(self.store()), (range.clone(), limit));
            let deleting = self.aside(move || delete_chunk(store.as_ref(), session, chunk));
            let chunk = deleting.await??;
            session = chunk.session;
            match chunk.ticket.await {
                CommitStatus::Durable => {
                    removed.keys += chunk.removed.keys;
                    removed.bytes += chunk.removed.bytes;
                    rest = chunk.rest;
                }
                // A tombstone takes less than what it removes, but comes first: in smaller
                // chunks the space that one frees is there for the next.
                CommitStatus::Full if chunk.rows > 1 => {
                    (session, limit.rows) = (self.store().write_session(), chunk.rows / 2);
                    rest = Some(range);
                }
                CommitStatus::Full => return Err(ClusterError::Full),
                CommitStatus::Refused | CommitStatus::Fenced | CommitStatus::Unknown => {
                    return Err(ClusterError::Unknown);
                }
            }
        }
        Ok(removed.keys > before)
    }

    /// Compacts the store when this many deleted bytes are a large part of it. Returns
    /// whether it did.
    pub async fn reclaim(&self, garbage: u64) -> Result<bool, ClusterError> {
        if garbage < GARBAGE_BYTES_MIN {
            return Ok(false);
        }
        let store = Arc::clone(self.store());
        let rewriting = self.aside(move || {
            let worth_it = garbage >= store.table_bytes()? / GARBAGE_PART;
            if worth_it { store.compact().map(|()| true) } else { Ok(false) }
        });
        Ok(rewriting.await??)
    }
}

fn list_retired(items: &SystemItems) -> Result<Vec<RetiredPrefix>, ClusterError> {
    let mut retired = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let (marks, _) = items.list(PREFIX, after.as_deref(), CHUNK_MARKS)?;
        let ids = marks.iter().filter_map(|item| item.json().get("id")?.as_str());
        let ids: Vec<String> = ids.map(Cow::into_owned).collect();
        retired.extend(ids.iter().filter_map(|id| RetiredPrefix::parse_mark(id)));
        match ids.into_iter().next_back() {
            Some(last) => after = Some(last),
            None => return Ok(retired),
        }
    }
}

/// Some keys that are about to be deleted.
struct DeletedChunk {
    session: Box<dyn WriteSession>,
    ticket: Ticket,
    rows: usize,
    removed: Removed,
    rest: Option<KeyRange>,
}

/// Submits the deletion of the first keys of a range.
fn delete_chunk(
    store: &dyn Store,
    mut session: Box<dyn WriteSession>,
    (range, limit): (KeyRange, ScanLimit),
) -> Result<DeletedChunk, StorageError> {
    let Chunk { rows, rest } = store.view()?.scan(&range, Direction::Forward, limit)?;
    let bytes = rows.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum();
    let (count, removed) = (rows.len(), Removed { keys: rows.len() as u64, bytes });
    let mut batch = WriteBatch::new().for_relief(true);
    for (key, _) in rows {
        batch.delete(key);
    }
    let ticket = session.submit(batch);
    Ok(DeletedChunk { session, ticket, rows: count, removed, rest })
}
