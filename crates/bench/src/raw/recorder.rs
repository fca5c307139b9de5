//! What a partition writes for each document, recorded for the storeys below it.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use storage::{
    Counters, KeyRange, StorageError, Store, Ticket, VerifyReport, View, Write, WriteBatch,
    WriteSession, memory,
};

use super::partitions::PartitionStorey;
use crate::document::Documents;

/// The batches of the current slice, and the key of each document so far.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    first: u64,
    batches: Vec<WriteBatch>,
    keys: Vec<Bytes>,
}

impl Recorded {
    pub(super) fn batch(&self, number: u64) -> Result<&WriteBatch> {
        let at = usize::try_from(number - self.first)?;
        self.batches.get(at).context("the batch was recorded")
    }

    /// Where the document itself is.
    pub(super) fn key(&self, number: u64) -> Result<&Bytes> {
        self.keys.get(usize::try_from(number)?).context("the document was recorded")
    }
}

/// Offset of a key's group, and the groups that no command reads (docs/formats/partition.md).
/// They are most of what is written, and are not kept: a million documents fit into memory.
const GROUP_AT: usize = 8;
const NEVER_READ: [u8; 3] = [0x21, 0x30, 0x60];

/// A partition in memory that tells what it writes.
pub(crate) struct Recorder {
    tap: Arc<Tap>,
    partition: PartitionStorey,
    recorded: Recorded,
    keys: u64,
    bytes: u64,
}

impl Recorder {
    pub(crate) fn new() -> Result<Recorder> {
        let tap = Arc::new(Tap { inner: memory::create(), seen: Arc::default() });
        let store: Arc<dyn Store> = Arc::<Tap>::clone(&tap);
        let partition = PartitionStorey::open(store)?;
        Ok(Recorder { tap, partition, recorded: Recorded::default(), keys: 0, bytes: 0 })
    }

    /// What a partition writes while `work` uses it.
    pub(crate) fn watch(
        &mut self,
        work: impl FnOnce(&PartitionStorey) -> Result<()>,
    ) -> Result<Vec<WriteBatch>> {
        work(&self.partition)?;
        let mut seen = self.tap.seen.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut seen))
    }

    pub(super) fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// Writes the documents to memory. Forgets the batches of earlier ones.
    pub(super) fn record(&mut self, documents: Documents, numbers: Range<u64>) -> Result<()> {
        self.recorded.first = numbers.start;
        let mut numbers = numbers;
        self.recorded.batches = self.watch(|partition| {
            numbers.try_for_each(|number| partition.create(documents.text(number, 0)))
        })?;
        for batch in &self.recorded.batches {
            // The document is by far the longest value.
            let item = batch.iter().max_by_key(|write| write.value().map_or(0, Bytes::len));
            self.recorded.keys.push(item.context("a create writes")?.key().clone());
            self.keys += batch.len() as u64;
            self.bytes += batch.bytes() as u64;
        }
        Ok(())
    }

    /// Keys and bytes.
    pub(super) fn per_document(&self) -> (f64, f64) {
        let documents = self.recorded.keys.len().max(1) as f64;
        (self.keys as f64 / documents, self.bytes as f64 / documents)
    }
}

/// Keeps a copy of what is written, and passes on what can be read again.
#[derive(Debug)]
struct Tap {
    inner: Arc<dyn Store>,
    seen: Arc<Mutex<Vec<WriteBatch>>>,
}

impl Store for Tap {
    fn write_session(&self) -> Box<dyn WriteSession> {
        let (inner, seen) = (self.inner.write_session(), Arc::clone(&self.seen));
        Box::new(TapSession { inner, seen })
    }

    fn view(&self) -> Result<Box<dyn View>, StorageError> {
        self.inner.view()
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }

    fn health(&self) -> Result<(), StorageError> {
        self.inner.health()
    }

    fn verify(&self) -> Result<VerifyReport, StorageError> {
        self.inner.verify()
    }

    fn table_bytes(&self) -> Result<u64, StorageError> {
        self.inner.table_bytes()
    }

    fn discard(&self, range: &KeyRange) -> Result<(), StorageError> {
        self.inner.discard(range)
    }

    fn compact(&self) -> Result<(), StorageError> {
        self.inner.compact()
    }

    fn close(&self) -> Result<(), StorageError> {
        self.inner.close()
    }
}

#[derive(Debug)]
struct TapSession {
    inner: Box<dyn WriteSession>,
    seen: Arc<Mutex<Vec<WriteBatch>>>,
}

impl WriteSession for TapSession {
    fn submit(&mut self, batch: WriteBatch) -> Ticket {
        let mut kept = WriteBatch::new();
        let is_read = |write: &&Write| {
            !write.key().get(GROUP_AT).is_some_and(|group| NEVER_READ.contains(group))
        };
        for write in batch.iter().filter(is_read) {
            match write.value() {
                Some(value) => kept.put(write.key().clone(), value.clone()),
                None => kept.delete(write.key().clone()),
            }
        }
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(batch);
        self.inner.submit(kept)
    }
}
