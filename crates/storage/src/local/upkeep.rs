//! Flushes and compactions, and what must not run beside them.
//!
//! Both run on threads of ours, so that we decide when: a compaction only while there is
//! space for it, and broken off before there is none, or when the store is closed; a flush
//! as soon as a memtable is sealed. When nothing has been written for a while, the runs that
//! are left of the last load are merged, although no compaction is due: readers look into
//! each of them. An error of either concerns nothing else. A full disk is
//! no failure: what could not be finished is removed, and tried again when there is space.
//!
//! Keys of a discarded range are dropped by every compaction, so that a large range needs
//! no tombstones.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};

use super::disk_space::{BRAKE_BYTES, DiskSpace};
use super::journal::{Segment, Segments};
use super::published::Published;
use super::tree::{Tree, merge_needs, small_runs_due};
use super::write_back::WriteBack;
use crate::{KeyRange, StorageError};

/// Bytes that a compaction writes between two looks at the disk. Less than what the brake
/// leaves, as two looks may miss that much.
const LOOK_EVERY_BYTES: usize = 1 << 20;

/// How long to wait before looking again whether retired tables are still read.
const REAP_WAIT: Duration = Duration::from_millis(20);

/// How long to wait for progress before looking again: other programs free space, too.
const PROGRESS_WAIT: Duration = Duration::from_millis(10);

/// Bytes written in a while up to which it was a quiet one. At this rate a memtable lasts
/// many minutes, so what is merged meanwhile is not merged again soon.
const QUIET_BYTES_MAX: u64 = 1 << 20;

/// Runs of small tables that are merged in a quiet while. Readers look into each.
const QUIET_RUNS: u8 = 2;

/// State shared by everything that maintains the files.
#[derive(Debug)]
pub(super) struct Upkeep {
    pub(super) disk: DiskSpace,
    pub(super) segments: Segments,
    /// Held while tables are compacted or discarded: one at a time, and closing waits for
    /// it.
    alone: Mutex<()>,
    /// Someone other than the merging thread holds `alone`.
    taken: AtomicBool,
    merging: AtomicBool,
    /// Held while memtables are flushed.
    flushing: Mutex<()>,
    given_up: RwLock<Vec<(Bytes, Bytes)>>,
    /// How long hardly anything is written before the merging thread tidies up.
    quiet: Duration,
    work: Mutex<Work>,
    wake: Condvar,
    progress: Condvar,
}

#[derive(Debug, Default)]
struct Work {
    merge: Duty,
    flush: Duty,
    /// Segments of the memtables that are sealed.
    sealed: Vec<Segment>,
    /// Something was retired since a thread looked.
    reaping: bool,
    /// Why nothing can be done any more.
    failure: Option<String>,
    ended: bool,
}

/// Why a thread stops waiting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wake {
    Due,
    /// Hardly anything was written for a while.
    Quiet,
    /// The store is being closed.
    Ended,
}

/// What a thread has to do.
#[derive(Debug, Default)]
struct Duty {
    due: bool,
    /// The thread has not finished what was due.
    under_way: bool,
    /// The disk was full the last time.
    full: bool,
}

/// Exclusive access to the tables.
pub(super) struct Alone<'a> {
    upkeep: &'a Upkeep,
    _guard: MutexGuard<'a, ()>,
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.upkeep.taken.store(false, Ordering::Release);
    }
}

impl Upkeep {
    pub(super) fn new(disk: DiskSpace, segments: Segments, quiet: Duration) -> Upkeep {
        Upkeep {
            disk,
            segments,
            quiet,
            alone: Mutex::default(),
            taken: AtomicBool::new(false),
            merging: AtomicBool::new(false),
            flushing: Mutex::default(),
            given_up: RwLock::default(),
            work: Mutex::default(),
            wake: Condvar::new(),
            progress: Condvar::new(),
        }
    }

    /// Keeps the merging thread and all others away from the tables.
    pub(super) fn alone(&self) -> Alone<'_> {
        let guard = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        self.taken.store(true, Ordering::Release);
        Alone { upkeep: self, _guard: guard }
    }

    /// Whether a compaction occupies space at this moment that it will give back.
    pub(super) fn is_merging(&self) -> bool {
        self.merging.load(Ordering::Acquire)
    }

    /// Whether space may be given back without further action: a flush or a compaction is
    /// running, or is due and nothing blocks it. Other holders of `alone` may be waiting for
    /// the caller.
    pub(super) fn may_give_back(&self) -> bool {
        let work = self.work();
        let merging = work.merge.is_pending() && !self.taken.load(Ordering::Acquire);
        let pending = !work.ended && (merging || work.flush.is_pending());
        drop(work);
        self.is_merging() || pending
    }

    /// Whether flushing had to stop because the disk was full.
    pub(super) fn is_flush_blocked(&self) -> bool {
        self.work().flush.full
    }

    /// Why nothing can be done any more, if that is so.
    pub(super) fn check(&self) -> Result<(), StorageError> {
        match &self.work().failure {
            Some(detail) => Err(StorageError::Failed { detail: detail.clone() }),
            None => Ok(()),
        }
    }

    /// Signals that a compaction may be due.
    pub(super) fn want_merge(&self) {
        let mut work = self.work();
        if !work.merge.due {
            work.merge.due = true;
            drop(work);
            self.wake.notify_all();
        }
    }

    /// Has the memtable flushed that was sealed, and its segments given up then.
    pub(super) fn want_flush(&self, segments: Vec<Segment>) {
        let mut work = self.work();
        work.sealed.extend(segments);
        work.flush.due = true;
        drop(work);
        self.wake.notify_all();
    }

    /// Waits for the end of a flush or compaction, not for long.
    pub(super) fn await_progress(&self) {
        drop(self.progress.wait_timeout(self.work(), PROGRESS_WAIT));
    }

    /// Ends both threads after what they are doing.
    pub(super) fn end(&self) {
        self.work().ended = true;
        self.wake.notify_all();
    }

    /// The body of the merging thread.
    pub(super) fn run_merger(&self, tree: &Tree, published: &Published) {
        let quiet = || {
            let tables = published.tables().ok()?;
            (tables.small_runs >= usize::from(QUIET_RUNS)).then_some(self.quiet)
        };
        loop {
            match self.await_work(published, quiet, |work| &mut work.merge) {
                Wake::Due => while self.step(tree, published, None) {},
                Wake::Quiet => drop(self.step(tree, published, Some(QUIET_RUNS))),
                Wake::Ended => return,
            }
        }
    }

    /// The body of the flushing thread.
    pub(super) fn run_flusher(&self, tree: &Tree, published: &Published) {
        while self.await_work(published, || None, |work| &mut work.flush) != Wake::Ended {
            if let Err(error) = self.flush(tree, published) {
                self.note_failure("memtables could not be flushed", &error);
            }
        }
    }

    /// Waits until there is something to do, or until a while was quiet if one is asked for,
    /// and meanwhile frees what is no longer read.
    fn await_work(
        &self,
        published: &Published,
        quiet: impl Fn() -> Option<Duration>,
        duty: impl Fn(&mut Work) -> &mut Duty,
    ) -> Wake {
        duty(&mut self.work()).under_way = false;
        self.progress.notify_all();
        loop {
            let is_left = published.reap();
            let mut work = self.work();
            if duty(&mut work).due || work.ended {
                let ended = work.ended;
                *duty(&mut work) = Duty { due: false, under_way: !ended, full: false };
                return if ended { Wake::Ended } else { Wake::Due };
            }
            if std::mem::take(&mut work.reaping) {
                continue;
            }
            if is_left {
                drop(self.wake.wait_timeout(work, REAP_WAIT));
            } else if let Some(quiet) = quiet() {
                let before = published.memtable_bytes();
                let woken = self.wake.wait_timeout(work, quiet);
                let is_over = woken.is_ok_and(|(_, waited)| waited.timed_out());
                let written = published.memtable_bytes().abs_diff(before);
                if is_over && written <= QUIET_BYTES_MAX {
                    return Wake::Quiet;
                }
            } else {
                drop(self.wake.wait(work));
            }
        }
    }

    /// Takes over the tree's tables, and frees what they replace: now, or as soon as no one
    /// reads it.
    pub(super) fn renew(&self, tree: &Tree, published: &Published) {
        published.renew(tree, &[]);
        if published.reap() {
            self.work().reaping = true;
            self.wake.notify_all();
        }
    }

    /// Makes tables of all sealed memtables, and gives up their segments.
    pub(super) fn flush(&self, tree: &Tree, published: &Published) -> Result<(), StorageError> {
        let _flushing = self.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        // In this order: a memtable that is sealed in between is flushed, and its segments
        // are given up the next time.
        let segments = self.work().sealed.clone();
        let memtables = published.sealed();
        if memtables.is_empty() {
            return Ok(());
        }
        let flushed = tree.flush(&memtables);
        self.work().flush.full = matches!(flushed, Err(StorageError::Full { .. }));
        flushed?;
        published.renew(tree, &memtables);
        self.work().sealed.retain(|segment| !segments.contains(segment));
        self.progress.notify_all();
        // The merging thread looks whether there is something to tidy up.
        self.wake.notify_all();
        if published.tables()?.small_runs >= usize::from(small_runs_due(self.disk.free())) {
            self.want_merge();
        }
        self.segments.release(segments)
    }

    /// Runs one compaction: the one that is most due, or one of this many small runs. Returns
    /// whether there may be another.
    fn step(&self, tree: &Tree, published: &Published, small_runs: Option<u8>) -> bool {
        let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(before) = published.tables() else { return false };
        let free = self.disk.free();
        if self.is_ended() || free < merge_needs(before.bytes) {
            return false;
        }
        let small_runs = small_runs.unwrap_or_else(|| small_runs_due(free));
        let merged = self.while_merging(|| tree.merge(small_runs));
        published.renew(tree, &[]);
        self.progress.notify_all();
        match merged {
            Ok(()) => published.tables().is_ok_and(|tables| tables.id != before.id),
            Err(error) => {
                self.note_failure("tables could not be merged", &error);
                false
            }
        }
    }

    /// Whether the store is being closed.
    fn is_ended(&self) -> bool {
        self.work().ended
    }

    fn note_failure(&self, what: &str, error: &StorageError) {
        if matches!(error, StorageError::Full { .. }) {
            tracing::warn!(%error, "{what} for now");
        } else if self.is_ended() {
            tracing::debug!(%error, "{what} before closing");
        } else {
            tracing::error!(%error, "{what}, restart needed");
            self.work().failure.get_or_insert_with(|| error.to_string());
        }
    }

    /// Runs a compaction and notes that it occupies space.
    pub(super) fn while_merging<T>(&self, merge: impl FnOnce() -> T) -> T {
        self.merging.store(true, Ordering::Release);
        let merged = merge();
        self.merging.store(false, Ordering::Release);
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

impl Duty {
    fn is_pending(&self) -> bool {
        self.due || self.under_way
    }
}

/// A filter through which the engine shows every row that a compaction is about to write.
#[derive(Debug)]
pub(super) struct Watch {
    upkeep: Arc<Upkeep>,
    folder: PathBuf,
}

impl Watch {
    /// Over the compactions of the tree in `folder`.
    pub(super) fn over(upkeep: &Arc<Upkeep>, folder: &Path) -> Arc<dyn Factory> {
        Arc::new(Watch { upkeep: Arc::clone(upkeep), folder: folder.to_owned() })
    }
}

impl Factory for Watch {
    fn name(&self) -> &'static str {
        "upkeep"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        let given_up = self.upkeep.given_up.read().unwrap_or_else(PoisonError::into_inner).clone();
        let (upkeep, back) = (Arc::clone(&self.upkeep), WriteBack::new(&self.folder));
        Box::new(Rows { upkeep, given_up, written: 0, back })
    }
}

struct Rows {
    upkeep: Arc<Upkeep>,
    given_up: Vec<(Bytes, Bytes)>,
    /// Bytes since the last look at the disk.
    written: usize,
    back: WriteBack,
}

impl CompactionFilter for Rows {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        let key: &[u8] = item.key();
        if self.given_up.iter().any(|(start, end)| **start <= *key && *key < **end) {
            return Ok(Verdict::Destroy);
        }
        let bytes = key.len() + item.value()?.len();
        self.back.add(bytes);
        self.written += bytes;
        if self.written >= LOOK_EVERY_BYTES {
            self.written = 0;
            if self.upkeep.is_ended() {
                return Err(std::io::Error::other("the store is being closed").into());
            }
            if self.upkeep.disk.free() < BRAKE_BYTES {
                return Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into());
            }
        }
        Ok(Verdict::Keep)
    }
}
