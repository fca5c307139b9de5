//! A snapshot, as the door shows it.

use std::sync::Arc;

use bytes::Bytes;

use super::snapshot::Snapshot;
use crate::{Chunk, Direction, KeyRange, RESERVED_PREFIX, ScanLimit, StorageError, View};

#[derive(Debug)]
pub(super) struct LocalView {
    snapshot: Arc<Snapshot>,
}

impl LocalView {
    pub(super) fn new(snapshot: Arc<Snapshot>) -> LocalView {
        LocalView { snapshot }
    }
}

impl View for LocalView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        runtime::short_read(1);
        if key.first() == Some(&RESERVED_PREFIX) {
            return Ok(None);
        }
        self.snapshot.get(key)
    }

    fn multi_get(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>, StorageError> {
        keys.iter().map(|key| self.get(key)).collect()
    }

    fn scan(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Result<Chunk, StorageError> {
        runtime::may_wait();
        let Some((start, end)) = range.visible() else {
            return Ok(Chunk::default());
        };
        let rows = self.snapshot.range(start, end);
        match direction {
            Direction::Forward => Chunk::collect(rows, range, direction, limit),
            Direction::Backward => Chunk::collect(rows.rev(), range, direction, limit),
        }
    }
}
