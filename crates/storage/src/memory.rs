//! A store that lives as long as the process.
//!
//! Kept as simple as its promises allow, because it is also the oracle that the
//! disk backend is compared with. Every key has its versions, each stamped with
//! the number of the commit that wrote it; a view is a commit number, so taking
//! one copies nothing. A persistent tree would do as well, but brings a
//! dependency and reads slower than a plain `BTreeMap`.
//!
//! Versions that no view can ask for any more are dropped by the next commit.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use bytes::Bytes;
use runtime::{Runtime, TaskHandle};

use crate::committer::{Committer, CommitterSession, Engine, Leader, MergedBatch};
use crate::{
    Chunk, Counters, Direction, KeyRange, ScanLimit, StorageError, Store, VerifyReport, View,
    WriteSession,
};

/// Makes an empty store. "Durable" means nothing more here than "published".
#[must_use]
pub fn create() -> Arc<dyn Store> {
    create_within(u64::MAX)
}

/// Makes an empty store that is full at `bytes_max` bytes of keys and values.
#[must_use]
pub fn create_within(bytes_max: u64) -> Arc<dyn Store> {
    let shared = Arc::new(Shared::default());
    let engine = MemoryEngine { shared: Arc::clone(&shared), bytes_max };
    let committer = Committer::new(engine, Leader::Submitter);
    Arc::new(MemoryStore { shared, committer, committing: Mutex::default() })
}

/// Makes an empty store whose committer is a thread, as that of a store on a disk is: what is
/// submitted is not there before the committer had its turn.
pub fn create_with_committer(runtime: &Runtime) -> Result<Arc<dyn Store>, StorageError> {
    let shared = Arc::new(Shared::default());
    let engine = MemoryEngine { shared: Arc::clone(&shared), bytes_max: u64::MAX };
    let committer = Committer::new(engine, Leader::Thread);
    let leader = Arc::clone(&committer);
    let started = runtime.tasks.spawn("committer", Box::new(move || leader.run()));
    let started = started.map_err(|source| StorageError::io("start the committer thread", source));
    let committing = Mutex::new(Some(started?));
    Ok(Arc::new(MemoryStore { shared, committer, committing }))
}

#[derive(Debug)]
struct MemoryStore {
    shared: Arc<Shared>,
    committer: Arc<Committer<MemoryEngine>>,
    /// The thread of the committer, where it has one.
    committing: Mutex<Option<TaskHandle>>,
}

impl MemoryStore {
    fn stop(&self) -> Result<(), StorageError> {
        let closed = self.committer.close();
        let committing = self.committing.lock().unwrap_or_else(PoisonError::into_inner).take();
        match committing.map_or(Ok(()), TaskHandle::join) {
            Ok(()) => closed,
            Err(panicked) => Err(StorageError::Failed { detail: panicked.to_string() }),
        }
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        let has_thread = self.committing.get_mut().is_ok_and(|committing| committing.is_some());
        // A failing test must not hang: its other threads may have stopped already.
        if has_thread && !std::thread::panicking() {
            let _ = self.stop();
        }
    }
}

impl Store for MemoryStore {
    fn write_session(&self) -> Box<dyn WriteSession> {
        Box::new(CommitterSession::new(&self.committer))
    }

    fn view(&self) -> Result<Box<dyn View>, StorageError> {
        match self.committer.health() {
            Err(StorageError::Closed) => Err(StorageError::Closed),
            // What a failed or full store had published is still true.
            _ => Ok(Box::new(MemoryView::open(&self.shared))),
        }
    }

    fn counters(&self) -> Counters {
        self.committer.counters()
    }

    fn health(&self) -> Result<(), StorageError> {
        self.committer.health()
    }

    fn verify(&self) -> Result<VerifyReport, StorageError> {
        runtime::may_wait();
        crate::scan::verify_rows(self.view()?.as_ref())
    }

    fn table_bytes(&self) -> Result<u64, StorageError> {
        self.committer.alive().map(|()| 0)
    }

    /// Discards nothing, which is allowed: what is deleted goes with the next commit.
    fn discard(&self, _range: &KeyRange) -> Result<(), StorageError> {
        runtime::may_wait();
        self.committer.alive()
    }

    fn compact(&self) -> Result<(), StorageError> {
        runtime::may_wait();
        self.committer.alive()
    }

    fn close(&self) -> Result<(), StorageError> {
        runtime::may_wait();
        self.stop()
    }
}

/// Lock order: `versions` before `live`.
#[derive(Debug, Default)]
struct Shared {
    versions: RwLock<Versions>,
    /// How many views are open at each commit number.
    live: Mutex<BTreeMap<u64, usize>>,
}

impl Shared {
    fn versions(&self) -> RwLockReadGuard<'_, Versions> {
        self.versions.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct Versions {
    /// Per key, oldest version first, never empty.
    keys: BTreeMap<Bytes, Vec<Version>>,
    commit: u64,
    /// Bytes of all keys and values, those of old versions included.
    bytes: u64,
    /// Keys that got a newer version, with the commit that brought it.
    superseded: VecDeque<(u64, Bytes)>,
}

#[derive(Debug)]
struct Version {
    commit: u64,
    value: Option<Bytes>,
}

impl Version {
    fn bytes(&self, key: &Bytes) -> u64 {
        (key.len() + self.value.as_ref().map_or(0, Bytes::len)) as u64
    }
}

impl Versions {
    fn publish(&mut self, writes: &MergedBatch) {
        self.commit += 1;
        for (key, value) in writes {
            let version = Version { commit: self.commit, value: value.clone() };
            self.bytes += version.bytes(key);
            self.keys.entry(key.clone()).or_default().push(version);
            self.superseded.push_back((self.commit, key.clone()));
        }
    }

    /// Drops what no view at `oldest` or later can see.
    fn collect_garbage(&mut self, oldest: u64) {
        while let Some((_, key)) = self.superseded.pop_front_if(|(commit, _)| *commit <= oldest) {
            if let Some(versions) = self.keys.get_mut(&key) {
                let seen = versions.partition_point(|version| version.commit <= oldest);
                let gone = versions.drain(..seen.saturating_sub(1));
                self.bytes -= gone.map(|version| version.bytes(&key)).sum::<u64>();
                if versions.last().is_some_and(|last| last.commit <= oldest && last.value.is_none())
                {
                    let gone = self.keys.remove(&key).unwrap_or_default();
                    self.bytes -= gone.iter().map(|version| version.bytes(&key)).sum::<u64>();
                }
            }
        }
    }

    fn get(&self, key: &[u8], commit: u64) -> Option<Bytes> {
        self.keys.get(key).and_then(|versions| newest(versions, commit))
    }
}

fn newest(versions: &[Version], commit: u64) -> Option<Bytes> {
    let version = versions.iter().rev().find(|version| version.commit <= commit)?;
    version.value.clone()
}

#[derive(Debug)]
struct MemoryEngine {
    shared: Arc<Shared>,
    bytes_max: u64,
}

/// The part of a bounded store that is reserved for relief writes.
const RELIEF_PART: u64 = 16;

impl Engine for MemoryEngine {
    fn admit(&mut self, bytes: usize, relief: bool) -> Result<(), StorageError> {
        let kept = if relief { 0 } else { self.bytes_max / RELIEF_PART };
        let used = self.shared.versions().bytes;
        if used.saturating_add(bytes as u64) > self.bytes_max - kept {
            let detail = format!("{used} of {} bytes are used", self.bytes_max);
            return Err(StorageError::Full { detail });
        }
        Ok(())
    }

    fn commit(&mut self, writes: &MergedBatch) -> Result<(), StorageError> {
        let mut versions = self.shared.versions.write().unwrap_or_else(PoisonError::into_inner);
        versions.publish(writes);
        let oldest = self.shared.live().keys().next().copied().unwrap_or(versions.commit);
        versions.collect_garbage(oldest);
        Ok(())
    }

    fn syncs_per_commit(&self) -> u64 {
        0
    }

    fn close(&mut self) -> Result<(), StorageError> {
        Ok(())
    }
}

struct MemoryView {
    shared: Arc<Shared>,
    commit: u64,
}

impl MemoryView {
    fn open(shared: &Arc<Shared>) -> MemoryView {
        let versions = shared.versions();
        let commit = versions.commit;
        *shared.live().entry(commit).or_default() += 1;
        MemoryView { shared: Arc::clone(shared), commit }
    }
}

impl Drop for MemoryView {
    fn drop(&mut self) {
        let mut live = self.shared.live();
        if let Some(count) = live.get_mut(&self.commit) {
            *count -= 1;
            if *count == 0 {
                live.remove(&self.commit);
            }
        }
    }
}

impl View for MemoryView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        runtime::short_read(1);
        Ok(self.shared.versions().get(key, self.commit))
    }

    fn multi_get(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>, StorageError> {
        runtime::short_read(keys.len());
        let versions = self.shared.versions();
        Ok(keys.iter().map(|key| versions.get(key, self.commit)).collect())
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
        let versions = self.shared.versions();
        let bounds = (Bound::Included(start), Bound::Excluded(end));
        let rows = versions.keys.range::<[u8], _>(bounds);
        let row = |(key, versions): (&Bytes, &Vec<Version>)| {
            newest(versions, self.commit).map(|value| Ok((key.clone(), value)))
        };
        match direction {
            Direction::Forward => Chunk::collect(rows.filter_map(row), range, direction, limit),
            Direction::Backward => {
                Chunk::collect(rows.rev().filter_map(row), range, direction, limit)
            }
        }
    }
}

impl fmt::Debug for MemoryView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryView").field("commit", &self.commit).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(writes: &[(&'static str, Option<&'static str>)]) -> MergedBatch {
        writes.iter().map(|(key, value)| (Bytes::from(*key), value.map(Bytes::from))).collect()
    }

    #[test]
    fn versions_go_when_no_view_needs_them() {
        let shared = Arc::new(Shared::default());
        let mut engine = MemoryEngine { shared: Arc::clone(&shared), bytes_max: u64::MAX };
        engine.commit(&merged(&[("a", Some("1")), ("b", Some("1"))])).unwrap();
        let view = MemoryView::open(&shared);
        engine.commit(&merged(&[("a", Some("2")), ("b", None)])).unwrap();
        assert_eq!(view.get(b"a").unwrap().as_deref(), Some(b"1".as_slice()));
        assert_eq!(view.get(b"b").unwrap().as_deref(), Some(b"1".as_slice()));
        assert_eq!(shared.versions().keys.values().map(Vec::len).sum::<usize>(), 4);
        drop(view);
        engine.commit(&merged(&[("c", Some("3"))])).unwrap();
        assert_eq!(shared.versions().keys.values().map(Vec::len).sum::<usize>(), 2);
        assert!(shared.versions().superseded.is_empty());
    }
}
