//! The traits that every backend implements and every caller uses.

use std::fmt;

use bytes::Bytes;

use crate::{Chunk, Direction, KeyRange, ScanLimit, StorageError, Ticket, WriteBatch};

/// One open store. Shared as `Arc<dyn Store>`.
pub trait Store: Send + Sync + fmt::Debug {
    /// Opens a write session, an ordered series of submissions. One sequencer owns one session;
    /// there is no order between sessions.
    fn write_session(&self) -> Box<dyn WriteSession>;

    /// A snapshot of what is durable at this moment. Short-lived by design: the engine
    /// keeps every version that any view could still ask for. A backup is the one reader
    /// that takes as long as it needs, and must end before the store is closed.
    ///
    /// # Errors
    /// When the store is closed.
    fn view(&self) -> Result<Box<dyn View>, StorageError>;

    fn counters(&self) -> Counters;

    /// Whether the store still takes writes. An idle store learns here that a
    /// background flush failed.
    ///
    /// # Errors
    /// [`StorageError::Failed`] or [`StorageError::Closed`].
    fn health(&self) -> Result<(), StorageError>;

    /// Reads everything, so that damage shows now and not at the next unlucky read. Takes
    /// as long as reading the whole store takes.
    ///
    /// # Errors
    /// The first damage found.
    fn verify(&self) -> Result<VerifyReport, StorageError>;

    /// Bytes of the files that hold rows, including rows that are deleted or replaced but
    /// not reclaimed yet; zero where there are no files.
    ///
    /// # Errors
    /// When the store is closed.
    fn table_bytes(&self) -> Result<u64, StorageError>;

    /// Drops what can be dropped of `range` at once, whole files where possible, instead of
    /// key by key. For keys that are no longer read or written.
    ///
    /// Any part of the range may be left, with values that had been replaced or deleted
    /// before: **the caller deletes what a view taken afterwards still shows.** Outside the
    /// range nothing changes, and neither does what earlier views show. Waits for a running
    /// compaction, so never to be called on an async worker.
    ///
    /// # Errors
    /// When the store is closed or its files cannot be changed.
    fn discard(&self, range: &KeyRange) -> Result<(), StorageError>;

    /// Compacts all files, dropping what was deleted or replaced, so that the disk has the
    /// space back when this returns, except for what views still hold. Changes nothing that
    /// can be read.
    ///
    /// Takes as long as reading and writing everything takes, and meanwhile space for a
    /// second copy of what is kept. Reads and writes go on, writes until the files that
    /// they add are too many. One at a time; closing waits for it. Never to be called on an
    /// async worker.
    ///
    /// # Errors
    /// When the store is closed or its files cannot be read or written. What could be read
    /// before still can.
    fn compact(&self) -> Result<(), StorageError>;

    /// What had been lost when this store was opened, as far as is known: after a power cut
    /// with durability `os`, or because an operator accepted it.
    fn loss(&self) -> Option<Loss> {
        None
    }

    /// Waits for what was submitted and cleans up so that the next opening is quick. Later
    /// submissions are refused. Closing twice is fine.
    ///
    /// # Errors
    /// When the store had failed, or cleaning up did.
    fn close(&self) -> Result<(), StorageError>;
}

/// The submissions of one sequencer, in order.
///
/// A submission that does not become durable breaks the session: every later one is refused
/// and surely not written, since it was computed on top of the lost one. The owner then
/// reads the durable state from a view and opens a new session.
pub trait WriteSession: Send + fmt::Debug {
    /// Hands over a batch. Returns before the batch is durable: the ticket says when it is.
    /// Blocks while the queue is full (backpressure), so never to be called on an async
    /// worker.
    ///
    /// An empty batch becomes durable when everything submitted before it has.
    fn submit(&mut self, batch: WriteBatch) -> Ticket;
}

/// A snapshot. Later commits never show.
///
/// A few point lookups may be made on an async worker; everything else may wait for the
/// disk, so never to be called there ([`runtime::may_wait`]).
pub trait View: Send + Sync + fmt::Debug {
    /// # Errors
    /// When the data cannot be read or is damaged.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError>;

    /// The values of `keys`, in their order.
    ///
    /// # Errors
    /// When the data cannot be read or is damaged.
    fn multi_get(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>, StorageError>;

    /// One chunk of `range`, in key order or reversed. The scan continues with the chunk's
    /// `rest`.
    ///
    /// # Errors
    /// When the data cannot be read or is damaged.
    fn scan(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Result<Chunk, StorageError>;
}

/// What the rows of a store mean, as a number that the caller chooses and raises when it
/// changes them. The store records it, and opens for the version that it records only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContentsVersion(pub u32);

impl fmt::Display for ContentsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// When a write counts as durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Synced to the disk before the answer: survives a power cut.
    #[default]
    Full,
    /// Handed to the operating system before the answer: survives the end of
    /// this process, not that of the machine.
    Os,
}

/// Writes that were acknowledged and are missing, counted in commits of the store: one
/// commit may hold the writes of several clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The newest commit that was found. Nothing before it is missing.
    pub found: u64,
    /// The newest commit that is known to have been acknowledged; there may have been
    /// later ones that left no trace.
    pub acknowledged: u64,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss { found, acknowledged } = self;
        match acknowledged.saturating_sub(*found) {
            0 => write!(
                f,
                "the store was not closed and did not wait for the disk: if the machine stopped, \
                 what was acknowledged after commit {found} is lost"
            ),
            lost => write!(
                f,
                "commit {acknowledged} was acknowledged, {found} found: the last {lost} commits \
                 are lost"
            ),
        }
    }
}

/// What a store has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Batches that entered the queue.
    pub batches_submitted: u64,
    /// Batches whose ticket resolved as durable.
    pub batches_durable: u64,
    /// Engine batches committed; many submissions share one.
    pub commits: u64,
    /// Times the committer waited for the disk.
    pub syncs: u64,
    /// Keys written or deleted, after merging, without the store's own.
    pub keys: u64,
    /// Bytes of those keys and their values.
    pub bytes: u64,
}

/// What a full read found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    pub rows: u64,
    /// Bytes of all keys and values.
    pub bytes: u64,
    /// Files whose every byte was checked, where the backend has files.
    pub files: u64,
}
