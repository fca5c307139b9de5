//! Merging tables, and what has to stay out of its way.
//!
//! The engine would merge by itself, on threads of its own, but a merge for which there is
//! no room makes it refuse everything until it is opened again, and the first thing that
//! it does then is to try the same merge. So its own strategy is set to find nothing (see
//! `engine.rs`), and merges are made here: only while there is room, broken off before
//! there is none, and with an error that concerns nobody else.
//!
//! Keys of a range that was given up are left out of every merge, so that a large range
//! needs no deletes of its own to go.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use bytes::Bytes;
use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};

use super::disk_space::{BRAKE_BYTES, DiskSpace};
use super::engine::Published;
use crate::{KeyRange, StorageError};

/// Bytes that a merge writes between two looks at the disk. Less than what the brake
/// leaves, as two looks may miss that much.
const LOOK_EVERY_BYTES: usize = 1 << 20;

/// What those share who keep the files in order.
#[derive(Debug)]
pub(super) struct Upkeep {
    pub(super) disk: DiskSpace,
    /// Held while tables are merged, rewritten or discarded, and while the engine is
    /// opened anew: one at a time, and closing waits for it.
    alone: Mutex<()>,
    /// Somebody else than the merging thread holds `alone`.
    taken: AtomicBool,
    merging: AtomicBool,
    /// A merge was broken off and has left files that only opening removes.
    leftovers: AtomicBool,
    /// Why merging has ended for good.
    failure: Mutex<Option<String>>,
    given_up: RwLock<Vec<(Bytes, Bytes)>>,
    work: Mutex<Work>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Work {
    due: bool,
    /// The merging thread has not come to the end of what was due.
    under_way: bool,
    ended: bool,
}

/// Held by those who have the files to themselves.
pub(super) struct Alone<'a> {
    upkeep: &'a Upkeep,
    _guard: MutexGuard<'a, ()>,
}

impl<'a> Alone<'a> {
    fn new(upkeep: &'a Upkeep, guard: MutexGuard<'a, ()>) -> Alone<'a> {
        upkeep.taken.store(true, Ordering::Release);
        Alone { upkeep, _guard: guard }
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.upkeep.taken.store(false, Ordering::Release);
    }
}

impl Upkeep {
    pub(super) fn new(disk: DiskSpace) -> Upkeep {
        Upkeep {
            disk,
            alone: Mutex::default(),
            taken: AtomicBool::new(false),
            merging: AtomicBool::new(false),
            leftovers: AtomicBool::new(false),
            failure: Mutex::default(),
            given_up: RwLock::default(),
            work: Mutex::default(),
            wake: Condvar::new(),
        }
    }

    /// Keeps the merging thread and everybody else away from the files.
    pub(super) fn alone(&self) -> Alone<'_> {
        Alone::new(self, self.alone.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// For those who must not wait: what holds the lock may wait for them.
    pub(super) fn try_alone(&self) -> Option<Alone<'_>> {
        match self.alone.try_lock() {
            Ok(guard) => Some(Alone::new(self, guard)),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => {
                Some(Alone::new(self, poisoned.into_inner()))
            }
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// Whether a merge takes room at this moment that it will give back.
    pub(super) fn is_merging(&self) -> bool {
        self.merging.load(Ordering::Acquire)
    }

    /// Whether room may be given back without anybody doing anything for it: a merge is under
    /// way, or is due and nobody is in its way. Those who hold `alone` otherwise may be
    /// waiting for the one who asks.
    pub(super) fn may_give_back(&self) -> bool {
        let work = self.work();
        let pending = (work.due || work.under_way) && !work.ended;
        drop(work);
        self.is_merging() || (pending && !self.taken.load(Ordering::Acquire))
    }

    pub(super) fn has_leftovers(&self) -> bool {
        self.leftovers.load(Ordering::Acquire)
    }

    /// Opening has removed what merges left.
    pub(super) fn forget_leftovers(&self) {
        self.leftovers.store(false, Ordering::Release);
    }

    /// Why merging has ended for good, if it has.
    pub(super) fn check(&self) -> Result<(), StorageError> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        match failure.as_ref() {
            Some(detail) => Err(StorageError::Failed { detail: detail.clone() }),
            None => Ok(()),
        }
    }

    /// Says that there may be something to merge.
    pub(super) fn want_merge(&self) {
        self.work().due = true;
        self.wake.notify_one();
    }

    /// Ends the merging thread after the merge that it is at.
    pub(super) fn end(&self) {
        self.work().ended = true;
        self.wake.notify_one();
    }

    /// The body of the merging thread.
    pub(super) fn run(&self, published: &Published) {
        while self.await_work() {
            while self.step(published) {}
        }
    }

    fn await_work(&self) -> bool {
        let mut work = self.work();
        work.under_way = false;
        while !work.due && !work.ended {
            work = self.wake.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
        work.due = false;
        work.under_way = !work.ended;
        work.under_way
    }

    /// Makes one merge. Whether there may be another.
    fn step(&self, published: &Published) -> bool {
        let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(engine) = published.handles() else { return false };
        if self.work().ended || self.has_leftovers() || self.disk.free() < engine.merge_needs() {
            return false;
        }
        match self.while_merging(|| engine.merge()) {
            Ok(changed) => changed,
            Err(StorageError::Full { detail }) => {
                tracing::warn!(detail, "a merge was broken off: no space left on device");
                false
            }
            Err(error) => {
                tracing::error!(%error, "tables could not be merged, restart needed");
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(error.to_string());
                false
            }
        }
    }

    /// Runs a merge and notes that it takes room, and whether it left any behind.
    pub(super) fn while_merging<T>(
        &self,
        merge: impl FnOnce() -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        self.merging.store(true, Ordering::Release);
        let merged = merge();
        self.merging.store(false, Ordering::Release);
        if merged.is_err() {
            self.leftovers.store(true, Ordering::Release);
        }
        merged
    }

    /// Runs a merge that leaves out the keys of a range.
    pub(super) fn without<T>(&self, range: &KeyRange, merge: impl FnOnce() -> T) -> T {
        let given_up = || self.given_up.write().unwrap_or_else(PoisonError::into_inner);
        given_up().extend(
            range
                .visible()
                .map(|(start, end)| (Bytes::copy_from_slice(start), Bytes::copy_from_slice(end))),
        );
        let merged = merge();
        given_up().clear();
        merged
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the engine show every row that it is about to write in a merge.
#[derive(Debug)]
pub(super) struct Watch(pub(super) Arc<Upkeep>);

impl Factory for Watch {
    fn name(&self) -> &'static str {
        "upkeep"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        let given_up = self.0.given_up.read().unwrap_or_else(PoisonError::into_inner).clone();
        Box::new(Rows { upkeep: Arc::clone(&self.0), given_up, written: 0 })
    }
}

struct Rows {
    upkeep: Arc<Upkeep>,
    given_up: Vec<(Bytes, Bytes)>,
    /// Bytes since the last look at the disk.
    written: usize,
}

impl CompactionFilter for Rows {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        let key: &[u8] = item.key();
        if self.given_up.iter().any(|(start, end)| **start <= *key && *key < **end) {
            return Ok(Verdict::Destroy);
        }
        self.written += key.len() + item.value()?.len();
        if self.written >= LOOK_EVERY_BYTES {
            self.written = 0;
            if self.upkeep.disk.free() < BRAKE_BYTES {
                return Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into());
            }
        }
        Ok(Verdict::Keep)
    }
}
