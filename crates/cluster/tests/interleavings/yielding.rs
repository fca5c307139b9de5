//! A store that lets other tasks run at each call.

use std::sync::Arc;

use bytes::Bytes;
use runtime::reschedule;
use storage::{
    Chunk, Counters, Direction, KeyRange, ScanLimit, StorageError, Store, Ticket, VerifyReport,
    View, WriteBatch, WriteSession,
};

#[derive(Debug)]
pub(crate) struct Yielding(pub(crate) Arc<dyn Store>);

impl Store for Yielding {
    fn write_session(&self) -> Box<dyn WriteSession> {
        Box::new(YieldingSession(self.0.write_session()))
    }

    fn view(&self) -> Result<Box<dyn View>, StorageError> {
        reschedule();
        Ok(Box::new(YieldingView(self.0.view()?)))
    }

    fn counters(&self) -> Counters {
        self.0.counters()
    }

    fn health(&self) -> Result<(), StorageError> {
        self.0.health()
    }

    fn verify(&self) -> Result<VerifyReport, StorageError> {
        self.0.verify()
    }

    fn table_bytes(&self) -> Result<u64, StorageError> {
        self.0.table_bytes()
    }

    fn discard(&self, range: &KeyRange) -> Result<(), StorageError> {
        reschedule();
        self.0.discard(range)
    }

    fn compact(&self) -> Result<(), StorageError> {
        self.0.compact()
    }

    fn close(&self) -> Result<(), StorageError> {
        self.0.close()
    }
}

#[derive(Debug)]
struct YieldingSession(Box<dyn WriteSession>);

impl WriteSession for YieldingSession {
    fn submit(&mut self, batch: WriteBatch) -> Ticket {
        reschedule();
        self.0.submit(batch)
    }
}

#[derive(Debug)]
struct YieldingView(Box<dyn View>);

impl View for YieldingView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        reschedule();
        self.0.get(key)
    }

    fn multi_get(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>, StorageError> {
        reschedule();
        self.0.multi_get(keys)
    }

    fn scan(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Result<Chunk, StorageError> {
        reschedule();
        self.0.scan(range, direction, limit)
    }
}
