//! The trial of a transaction on a snapshot, away from the sequencer.
//!
//! A script decides what to write while it reads, and may take seconds. So its operations
//! are executed on a snapshot first, by the code that executes those of commands: with the
//! same refusals, effects and charges, but what they write is kept here and never submitted.
//! Each operation sees those before it. When the script has ended well, the writes become
//! one [`Command`] whose operations name the versions that the trial found. If one of those
//! has changed meanwhile, the sequencer refuses the command and nothing has happened: the
//! script is run again on a new snapshot.
//!
//! The trial has to show resource ids and etags of what it wrote. They are those that the
//! command will give if nothing else is written to the partition before it; the caller
//! compares them with the real ones ([`Tried::stamps`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use model::epk::Epk;
use model::limits::Growth;
use model::position::{Lsn, Ordinal, Timestamp};
use model::system_properties::ItemStamp;
use storage::{Chunk, Direction, KeyRange, ScanLimit, StorageError, View};

use crate::command::{Command, Effect, EtagMatch, Operation, PartitionError};
use crate::config::PartitionConfig;
use crate::dual_write::DualWriter;
use crate::items;
use crate::ordinal_blocks::OrdinalBlocks;
use crate::overlay::Overlay;
use crate::query::Snapshot;
use crate::record::Head;
use crate::transaction::Transaction;
use crate::write_set::WriteSet;

/// Ordinals for a trial in a partition that has none left. The command gets others.
const SPARE_ORDINALS: u64 = 1 << 20;

/// A transaction on trial, in one logical partition.
pub struct Trial {
    snapshot: Arc<Snapshot>,
    position: Epk,
    /// Always empty: a trial sees only what is durable.
    overlay: Overlay,
    staged: BTreeMap<Bytes, Option<Bytes>>,
    head: Head,
    /// Bytes of the partition's other buckets, if it cannot grow.
    elsewhere: u64,
    ordinals: OrdinalBlocks,
    lsn: Lsn,
    now: Timestamp,
    /// Ids that were written here, so that their versions are the trial's own.
    written: BTreeSet<String>,
    tried: Tried,
}

/// The writes of a trial.
#[derive(Debug, Default)]
pub struct Tried {
    /// To be applied in this order, all or none.
    pub operations: Vec<Operation>,
    /// What the trial has shown of each, in the same order; none for deletes.
    pub stamps: Vec<Option<ItemStamp>>,
}

impl Trial {
    /// A trial that has written nothing yet.
    pub fn new(
        snapshot: Arc<Snapshot>,
        position: Epk,
        now: Timestamp,
    ) -> Result<Trial, PartitionError> {
        let (reader, view) = (snapshot.reader(), snapshot.view());
        let config = reader.config();
        let bucket = config.bucket_of(&position).ok_or(PartitionError::Gone)?;
        let (head, size) = (reader.head(view, bucket)?, reader.size(view)?);
        let elsewhere = match config.growth {
            Growth::Fixed => size.bytes.saturating_sub(head.bytes),
            Growth::Unlimited => 0,
        };
        let ordinals = ordinals(config, &snapshot)?;
        let lsn = reader.lsn(view)?.next();
        let now = now.max(Timestamp::from_millis(size.ts_millis));
        Ok(Trial {
            position,
            overlay: Overlay::default(),
            staged: BTreeMap::new(),
            head,
            elsewhere,
            ordinals,
            lsn,
            now,
            written: BTreeSet::new(),
            tried: Tried::default(),
            snapshot,
        })
    }

    #[must_use]
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    #[must_use]
    pub fn position(&self) -> &Epk {
        &self.position
    }

    /// Executes one operation after those before it. One that is refused leaves nothing.
    pub fn perform(&mut self, operation: Operation) -> Result<Effect, PartitionError> {
        if let Operation::Read { .. } = operation {
            return self.transact(|tx| items::perform(tx, &operation));
        }
        let id = operation.id().as_str().to_owned();
        let (found, effect) = self.transact(|tx| {
            let found = tx.find(&id)?.map(|item| EtagMatch(item.etag().to_string()));
            Ok((found, items::perform(tx, &operation)?))
        })?;
        let based_on = found.clone().filter(|_| !self.written.contains(&id));
        let pinned = pinned(operation, found.is_some(), based_on);
        if let Some(renamed) = pinned.document().map(|document| document.id().as_str()) {
            self.written.insert(renamed.to_owned());
        }
        self.written.insert(id);
        self.tried.operations.push(pinned);
        self.tried.stamps.push(effect.stamp.clone());
        Ok(effect)
    }

    /// The id of the item with that ordinal, if it is in this logical partition.
    pub fn id_of(&mut self, ordinal: Ordinal) -> Result<Option<String>, PartitionError> {
        self.transact(|tx| tx.writer.id_of(ordinal))
    }

    /// How many operations have written something.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.tried.operations.len()
    }

    /// What is to be written.
    #[must_use]
    pub fn finish(self) -> Tried {
        self.tried
    }

    fn transact<T>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, PartitionError>,
    ) -> Result<T, PartitionError> {
        let view = Box::new(SharedView(Arc::clone(&self.snapshot)));
        let staged = std::mem::take(&mut self.staged);
        let writes = WriteSet::resume(&self.overlay, view, staged);
        let config = self.snapshot.reader().config();
        let mut tx = Transaction {
            config,
            writer: DualWriter::on_trial(config, &self.position, writes, self.head)?,
            elsewhere: self.elsewhere,
            ordinals: self.ordinals.clone(),
            lsn: self.lsn,
            now: self.now,
            // As many as a command may have; the sequencer counts them.
            step: u16::try_from(self.tried.operations.len()).unwrap_or(u16::MAX),
        };
        let done = work(&mut tx);
        (self.staged, self.head, self.ordinals) = tx.into_trial();
        done
    }
}

impl fmt::Debug for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trial { position, tried, .. } = self;
        f.debug_struct("Trial").field("position", position).field("tried", tried).finish()
    }
}

impl Tried {
    /// The writes as a command, if there are any.
    #[must_use]
    pub fn command(&self, position: Epk) -> Option<Command> {
        let operations = self.operations.clone();
        (!operations.is_empty()).then_some(Command { position, operations })
    }
}

/// The ordinals that the partition will assign next, as far as the snapshot shows, and some
/// that it never assigns.
fn ordinals(
    config: &PartitionConfig,
    snapshot: &Snapshot,
) -> Result<OrdinalBlocks, PartitionError> {
    let mut recorded = Vec::new();
    for bucket in config.written_buckets() {
        recorded.push(snapshot.reader().head(snapshot.view(), bucket)?.next_number);
    }
    let mut blocks = config.ordinal_blocks.clone();
    blocks.push(Ordinal::MAX - SPARE_ORDINALS..Ordinal::MAX);
    Ok(OrdinalBlocks::resume(blocks, recorded.into_iter()))
}

/// An operation that succeeds only on the version that the trial found: one that was to
/// create or replace does what it did there.
fn pinned(operation: Operation, exists: bool, based_on: Option<EtagMatch>) -> Operation {
    match operation {
        Operation::Upsert { document, .. } if exists => {
            Operation::Replace { id: document.id().clone(), document, if_match: based_on }
        }
        Operation::Create { document } | Operation::Upsert { document, .. } => {
            Operation::Create { document }
        }
        Operation::Replace { id, document, .. } => {
            Operation::Replace { id, document, if_match: based_on }
        }
        Operation::Delete { id, .. } => Operation::Delete { id, if_match: based_on },
        Operation::Patch { id, patch, .. } => Operation::Patch { id, patch, if_match: based_on },
        Operation::Read { .. } => operation,
    }
}

/// The view of a snapshot that queries use at the same time.
#[derive(Debug)]
struct SharedView(Arc<Snapshot>);

impl View for SharedView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        self.0.view().get(key)
    }

    fn multi_get(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>, StorageError> {
        self.0.view().multi_get(keys)
    }

    fn scan(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Result<Chunk, StorageError> {
        self.0.view().scan(range, direction, limit)
    }
}
