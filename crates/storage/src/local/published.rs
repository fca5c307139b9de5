//! The newest durable and complete state, which readers see, and what changes it.
//!
//! A commit adds to the memtable, a flush replaces memtables by a table, and a compaction
//! replaces tables by others. Each takes the lock of the state for as long as that takes in
//! memory, and shows a new snapshot before it lets go: so no snapshot has half a commit.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bytes::Bytes;

use super::memtable::Memtable;
use super::snapshot::{Snapshot, Tables};
use super::tree::{Tree, damaged};
use super::view::LocalView;
use super::{record, tables};
use crate::committer::MergedBatch;
use crate::{StorageError, VerifyReport};

/// What readers see.
pub(super) struct Published {
    pub(super) path: Arc<Path>,
    state: Mutex<State>,
    /// `None` after closing.
    newest: RwLock<Option<Arc<Snapshot>>>,
    retired: Mutex<Vec<Retired>>,
}

/// What no new snapshot shows. Dropping the last reference frees a memtable or removes the
/// files of tables, which takes milliseconds to tenths of a second: nothing for a reader or
/// the committer to do.
enum Retired {
    Memtable(Arc<Memtable>),
    Tables(Arc<Tables>),
}

impl Retired {
    fn is_unused(&self) -> bool {
        match self {
            Retired::Memtable(memtable) => Arc::strong_count(memtable) == 1,
            Retired::Tables(tables) => Arc::strong_count(tables) == 1,
        }
    }
}

/// What the next snapshot is made of.
struct State {
    /// The number of the next commit's writes.
    number: u64,
    /// From the newest, which is being filled, to the oldest.
    memtables: Arc<[Arc<Memtable>]>,
    tables: Arc<Tables>,
}

impl Published {
    /// Shows what is in the tables.
    pub(super) fn new(store: &Path, tree: &Tree) -> Published {
        let tables = Arc::new(tree.tables());
        // Later writes of a key need higher numbers.
        let highest = tables.iter().map(lsm_tree::Table::get_highest_seqno).max();
        let (number, memtables) =
            (highest.unwrap_or(0) + 1, Arc::from([Arc::new(Memtable::new())]));
        let state = State { number, memtables, tables };
        let (path, newest) = (Arc::from(store), RwLock::default());
        let retired = Mutex::default();
        let published = Published { path, state: Mutex::new(state), newest, retired };
        published.show(&published.state());
        published
    }

    /// Adds a durable commit. Returns the size of the memtable.
    pub(super) fn commit(&self, commit: u64, writes: &MergedBatch) -> u64 {
        let mut state = self.state();
        state.insert(commit, writes);
        state.number += 1;
        self.show(&state);
        state.memtable_bytes()
    }

    /// Begins another memtable, unless there is nothing in this one. Returns whether it did.
    pub(super) fn rotate(&self) -> bool {
        let mut state = self.state();
        if state.memtables.first().is_none_or(|memtable| memtable.is_empty()) {
            return false;
        }
        let next = Arc::new(Memtable::new());
        state.memtables = std::iter::once(next).chain(state.memtables.iter().cloned()).collect();
        self.show(&state);
        true
    }

    /// The memtables that are no longer written to, from the newest to the oldest.
    pub(super) fn sealed(&self) -> Vec<Arc<Memtable>> {
        self.state().memtables.iter().skip(1).cloned().collect()
    }

    pub(super) fn sealed_count(&self) -> usize {
        self.state().memtables.len() - 1
    }

    /// Bytes in the memtable that is being filled.
    pub(super) fn memtable_bytes(&self) -> u64 {
        self.state().memtable_bytes()
    }

    /// Takes over the tables that the tree has now, instead of memtables that became some of
    /// them.
    pub(super) fn renew(&self, tree: &Tree, flushed: &[Arc<Memtable>]) {
        let tables = tree.tables();
        let mut state = self.state();
        let mut retired = self.retired();
        // Another thread may have come with a later version.
        if tables.id > state.tables.id {
            let before = std::mem::replace(&mut state.tables, Arc::new(tables));
            retired.push(Retired::Tables(before));
        }
        let is_flushed =
            |memtable: &Arc<Memtable>| flushed.iter().any(|one| Arc::ptr_eq(one, memtable));
        let (gone, kept): (Vec<_>, Vec<_>) = state.memtables.iter().cloned().partition(is_flushed);
        retired.extend(gone.into_iter().map(Retired::Memtable));
        state.memtables = kept.into();
        self.show(&state);
    }

    /// Drops what was retired and is no longer read. Returns whether something is left.
    pub(super) fn reap(&self) -> bool {
        let mut retired = self.retired();
        let (unused, read) =
            std::mem::take(&mut *retired).into_iter().partition(Retired::is_unused);
        *retired = read;
        let is_left = !retired.is_empty();
        drop(retired);
        drop::<Vec<Retired>>(unused);
        is_left
    }

    fn retired(&self) -> MutexGuard<'_, Vec<Retired>> {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn view(&self) -> Result<LocalView, StorageError> {
        Ok(LocalView::new(self.newest()?))
    }

    pub(super) fn newest(&self) -> Result<Arc<Snapshot>, StorageError> {
        let newest = self.newest.read().unwrap_or_else(PoisonError::into_inner);
        newest.clone().ok_or(StorageError::Closed)
    }

    pub(super) fn tables(&self) -> Result<Arc<Tables>, StorageError> {
        Ok(Arc::clone(&self.newest()?.tables))
    }

    /// The newest commit, read as views read it, which must be the one that was found before.
    pub(super) fn check_commit(&self, commit: u64) -> Result<(), StorageError> {
        let found = match self.newest()?.get(record::KEY)? {
            None => Some(0),
            Some(value) => record::decode(&value),
        };
        match found {
            Some(found) if found == commit => Ok(()),
            Some(found) => {
                let detail = format!("commit {commit} was found before opening, {found} after");
                Err(damaged(&self.path, detail))
            }
            None => Err(damaged(&self.path, "the commit record cannot be read".to_owned())),
        }
    }

    /// Reads every byte of every table and every row.
    pub(super) fn verify(&self) -> Result<VerifyReport, StorageError> {
        let mut files = 0;
        for table in self.tables()?.iter() {
            tables::check_content(&self.path, table)?;
            files += 1;
        }
        Ok(VerifyReport { files, ..crate::scan::verify_rows(&self.view()?)? })
    }

    /// Shows nothing from now on.
    pub(super) fn close(&self) {
        self.replace(None);
    }

    fn show(&self, state: &State) {
        self.replace(Some(Arc::new(Snapshot {
            store: Arc::clone(&self.path),
            number: state.number,
            memtables: Arc::clone(&state.memtables),
            tables: Arc::clone(&state.tables),
        })));
    }

    fn replace(&self, snapshot: Option<Arc<Snapshot>>) {
        let mut newest = self.newest.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *newest, snapshot);
        drop(newest);
        // Outside the lock: it may be the last user of tables whose files go with it.
        drop(before);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn insert(&self, commit: u64, writes: &MergedBatch) {
        let Some(memtable) = self.memtables.first() else { return };
        let (key, value) = (Bytes::from_static(record::KEY), Some(record::encode(commit)));
        memtable.insert(self.number, writes.iter().chain(std::iter::once((&key, &value))));
    }

    fn memtable_bytes(&self) -> u64 {
        self.memtables.first().map_or(0, |memtable| memtable.bytes())
    }
}

impl fmt::Debug for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Published").field("path", &self.path).finish_non_exhaustive()
    }
}
