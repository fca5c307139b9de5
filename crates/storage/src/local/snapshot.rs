//! A state of the store that does not change, and reading from it.
//!
//! The engine reads under a lock that it also holds while it finishes a compaction, which
//! writes, syncs and lists a table of up to 64 MiB: every reader and every writer would wait
//! for the disk then. So memtables are ours, and a snapshot has what it needs by itself: the
//! memtables, and the tables of one version of the engine's list. Both stay as long as
//! anyone has them; of the memtables, a snapshot shows the writes with numbers below its
//! own.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use lsm_tree::merge::Merger;
use lsm_tree::mvcc_stream::MvccStream;
use lsm_tree::{AbstractTree, AnyTree, InternalValue, Table, UserKey};

use super::memtable::Memtable;
use super::run_filter::{RunFilter, RunFilters, key_hash};
use super::tree::explain;
use crate::StorageError;

/// Above all numbers of writes.
const NUMBER_MAX: u64 = (1 << 63) - 1;

type Rows<'a> = Box<dyn DoubleEndedIterator<Item = lsm_tree::Result<InternalValue>> + 'a>;

/// The tables of one version of the engine's list.
pub(super) struct Tables {
    /// The version: a later one has a higher number.
    pub(super) id: u64,
    /// From the newest to the oldest.
    runs: Vec<TableRun>,
    /// How many of these are as they were flushed.
    pub(super) small_runs: usize,
    pub(super) bytes: u64,
}

/// Tables whose keys do not overlap, in order.
struct TableRun {
    tables: Vec<Table>,
    filter: Option<Arc<RunFilter>>,
}

impl Tables {
    /// Those of the engine's newest version. Forgets filters that are no longer needed.
    pub(super) fn of(tree: &AnyTree, filters: &mut RunFilters) -> Tables {
        let version = tree.current_version();
        let runs = version.iter_levels().flat_map(|level| level.iter());
        let runs: Vec<TableRun> = runs
            .map(|run| {
                let tables: Vec<Table> = run.iter().cloned().collect();
                let filter = filter_of(&tables, filters);
                TableRun { tables, filter }
            })
            .collect();
        let small_runs = version.l0().run_count();
        let bytes = version.iter_tables().map(|table| table.metadata.file_size).sum();
        let tables = Tables { id: version.id(), runs, small_runs, bytes };
        filters.retain(|id, _| tables.iter().any(|table| table.id() == *id));
        tables
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Table> {
        self.runs.iter().flat_map(|run| &run.tables)
    }

    fn get(&self, key: &[u8]) -> lsm_tree::Result<Option<InternalValue>> {
        let hash = key_hash(key);
        for TableRun { tables, filter } in &self.runs {
            if filter.as_ref().is_some_and(|filter| !filter.may_contain(hash)) {
                continue;
            }
            let at = tables.partition_point(|table| **table.metadata.key_range.max() < *key);
            let table = tables.get(at).filter(|table| **table.metadata.key_range.min() <= *key);
            if let Some(table) = table
                && let Some(found) = table.get(key, NUMBER_MAX, hash)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn ranges(&self, start: &UserKey, end: &UserKey) -> impl Iterator<Item = Rows<'_>> {
        self.runs.iter().filter_map(move |TableRun { tables, .. }| {
            let first = tables.partition_point(|table| table.metadata.key_range.max() < start);
            let last = tables.partition_point(|table| table.metadata.key_range.min() < end);
            let tables = tables.get(first..last).filter(|tables| !tables.is_empty())?;
            let (start, end) = (start.clone(), end.clone());
            let rows = tables.iter().flat_map(move |table| table.range(start.clone()..end.clone()));
            Some(Box::new(rows) as Rows<'_>)
        })
    }
}

/// The filter of a run, if it is as it was flushed: then its tables have one in common.
fn filter_of(tables: &[Table], filters: &RunFilters) -> Option<Arc<RunFilter>> {
    let mut each = tables.iter().map(|table| filters.get(&table.id()));
    let first = each.next().flatten()?;
    each.all(|other| other.is_some_and(|other| Arc::ptr_eq(first, other)))
        .then(|| Arc::clone(first))
}

/// A state of the store.
pub(super) struct Snapshot {
    /// For errors.
    pub(super) store: Arc<Path>,
    /// Writes of memtables below this number are shown.
    pub(super) number: u64,
    /// From the newest to the oldest.
    pub(super) memtables: Arc<[Arc<Memtable>]>,
    pub(super) tables: Arc<Tables>,
}

impl Snapshot {
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        let in_memory = self.memtables.iter().find_map(|table| table.get(key, self.number));
        let found = match in_memory {
            Some(found) => Some(found),
            None => self.tables.get(key).map_err(|error| explain(&self.store, error))?,
        };
        Ok(found.filter(|found| !found.is_tombstone()).map(|found| found.value.into()))
    }

    pub(super) fn range(
        &self,
        start: &[u8],
        end: &[u8],
    ) -> impl DoubleEndedIterator<Item = Result<(Bytes, Bytes), StorageError>> + use<'_> {
        // The least key that there can be: the engine has no empty one.
        let start = if start.is_empty() { &[0] } else { start };
        let (start, end) = (UserKey::from(start), UserKey::from(end));
        let in_memory = self.memtables.iter().map(|memtable| {
            let rows = memtable.range(start.clone().into(), Some(end.clone().into()), self.number);
            Box::new(rows.map(Ok)) as Rows<'_>
        });
        let sources: Vec<Rows<'_>> = in_memory.chain(self.tables.ranges(&start, &end)).collect();
        MvccStream::new(Merger::new(sources)).filter_map(|row| match row {
            Ok(row) if row.is_tombstone() => None,
            Ok(row) => Some(Ok((row.key.user_key.into(), row.value.into()))),
            Err(error) => Some(Err(explain(&self.store, error))),
        })
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("number", &self.number).finish_non_exhaustive()
    }
}
