//! Compaction, and what must not run beside it.
//!
//! The engine would compact by itself, on threads of its own, but a compaction for which
//! there is no space makes it refuse everything until it is reopened, and the first thing
//! that it does then is to try the same compaction. So its own strategy is set to find
//! nothing due (see `engine.rs`), and compactions run here: only while there is space,
//! aborted before there is none, and with an error that concerns nothing else.
//!
//! Keys of a discarded range are dropped by every compaction, so that a large range needs
//! no tombstones.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use bytes::Bytes;
use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};

use super::disk_space::{BRAKE_BYTES, DiskSpace};
use super::engine::Published;
use crate::{KeyRange, StorageError};

/// Bytes that a compaction writes between two looks at the disk. Less than what the brake
/// leaves, as two looks may miss that much.
const LOOK_EVERY_BYTES: usize = 1 << 20;

/// State shared by everything that maintains the files.
#[derive(Debug)]
pub(super) struct Upkeep {
    pub(super) disk: DiskSpace,
    /// Held while tables are compacted or discarded, and while the engine is reopened: one
    /// at a time, and closing waits for it.
    alone: Mutex<()>,
    /// Someone other than the merging thread holds `alone`.
    taken: AtomicBool,
    merging: AtomicBool,
    /// A compaction was aborted and has left files that only opening removes.
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
    /// The merging thread has not finished what was due.
    under_way: bool,
    ended: bool,
}

/// Exclusive access to the files.
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

    /// Keeps the merging thread and all others away from the files.
    pub(super) fn alone(&self) -> Alone<'_> {
        Alone::new(self, self.alone.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// For callers that must not wait: the holder of the lock may wait for them.
    pub(super) fn try_alone(&self) -> Option<Alone<'_>> {
        match self.alone.try_lock() {
            Ok(guard) => Some(Alone::new(self, guard)),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => {
                Some(Alone::new(self, poisoned.into_inner()))
            }
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// Whether a compaction occupies space at this moment that it will give back.
    pub(super) fn is_merging(&self) -> bool {
        self.merging.load(Ordering::Acquire)
    }

    /// Whether space may be given back without further action: a compaction is running, or
    /// is due and nothing blocks it. Other holders of `alone` may be waiting for the
    /// caller.
    pub(super) fn may_give_back(&self) -> bool {
        let work = self.work();
        let pending = (work.due || work.under_way) && !work.ended;
        drop(work);
        self.is_merging() || (pending && !self.taken.load(Ordering::Acquire))
    }

    pub(super) fn has_leftovers(&self) -> bool {
        self.leftovers.load(Ordering::Acquire)
    }

    /// Opening has removed the leftovers of compactions.
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

    /// Signals that a compaction may be due.
    pub(super) fn want_merge(&self) {
        self.work().due = true;
        self.wake.notify_one();
    }

    /// Ends the merging thread after its current compaction.
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

    /// Runs one compaction. Returns whether there may be another.
    fn step(&self, published: &Published) -> bool {
        let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(engine) = published.handles() else { return false };
        let free = self.disk.free();
        if self.work().ended || self.has_leftovers() || free < engine.merge_needs() {
            return false;
        }
        match self.while_merging(|| engine.merge(free)) {
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

    /// Runs a compaction and notes that it occupies space, and whether it left files.
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

    /// Runs a compaction that drops the keys of a range.
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

/// A filter through which the engine shows every row that a compaction is about to write.
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
