//! A snapshot of the engine, as the door shows it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use fjall::{AbstractTree, Guard, Keyspace, Readable, Snapshot};

use super::engine::explain;
use super::tables;
use crate::{Chunk, Direction, KeyRange, RESERVED_PREFIX, ScanLimit, StorageError, View};

pub(super) struct LocalView {
    path: PathBuf,
    data: Keyspace,
    /// `None` for a store that was never written to.
    snapshot: Option<Snapshot>,
    /// Shows a pending reopening that there is a reader.
    _user: Arc<()>,
}

impl LocalView {
    pub(super) fn new(
        path: PathBuf,
        data: Keyspace,
        snapshot: Option<Snapshot>,
        user: Arc<()>,
    ) -> LocalView {
        LocalView { path, data, snapshot, _user: user }
    }

    /// Reads every byte of every table, including the parts that no row of this view leads
    /// to. Returns the number of tables.
    pub(super) fn check_tables(&self) -> Result<u64, StorageError> {
        let version = self.data.tree.current_version();
        let mut count = 0;
        for table in version.iter_tables() {
            tables::check_content(&self.path, table)?;
            count += 1;
        }
        Ok(count)
    }

    fn row(&self, guard: Guard) -> Result<(Bytes, Bytes), StorageError> {
        let (key, value) = guard.into_inner().map_err(|error| explain(&self.path, error))?;
        Ok((key.into(), value.into()))
    }
}

impl View for LocalView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        runtime::short_read(1);
        let snapshot = self.snapshot.as_ref();
        let Some(snapshot) = snapshot.filter(|_| key.first() != Some(&RESERVED_PREFIX)) else {
            return Ok(None);
        };
        let value = snapshot.get(&self.data, key);
        Ok(value.map_err(|error| explain(&self.path, error))?.map(Bytes::from))
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
        let (Some(snapshot), Some((start, end))) = (&self.snapshot, range.visible()) else {
            return Ok(Chunk::default());
        };
        let rows = snapshot.range(&self.data, start..end);
        match direction {
            Direction::Forward => {
                Chunk::collect(rows.map(|row| self.row(row)), range, direction, limit)
            }
            Direction::Backward => {
                Chunk::collect(rows.rev().map(|row| self.row(row)), range, direction, limit)
            }
        }
    }
}

impl fmt::Debug for LocalView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalView").field("path", &self.path).finish_non_exhaustive()
    }
}
