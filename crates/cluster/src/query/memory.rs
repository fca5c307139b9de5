//! The memory of one page, out of what all queries share.
//!
//! Parts of a page that run in parallel each count their own memory; together they may keep
//! no more than one query may have.

use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use query::{KEPT_BYTES_MAX, Ledger, Memory};
use runtime::{MemoryBudget, Reservation};

/// One query may have this fraction (1/n) of the memory for queries: others run beside it.
const PARTS: usize = 2;

/// Ledgers reserve memory in chunks, of which each part may have one to spare.
const SPARE_BYTES: usize = 256 << 10;

/// A page's reservation of the memory for all queries.
#[derive(Debug)]
pub(super) struct PageMemory {
    /// `None` if the budget refuses even an empty reservation.
    reservation: Option<Mutex<Reservation>>,
    limit: usize,
}

impl PageMemory {
    pub(super) fn new(memory: &Arc<MemoryBudget>) -> Arc<PageMemory> {
        let limit = KEPT_BYTES_MAX.min(memory.usage().limit / PARTS);
        let reservation = memory.reserve(0).ok().map(Mutex::new);
        Arc::new(PageMemory { reservation, limit })
    }

    /// A ledger for a part of the page.
    pub(super) fn ledger(self: &Arc<Self>) -> Rc<Ledger> {
        if self.reservation.is_none() {
            return Rc::default();
        }
        Rc::new(Ledger::new(Rc::new(Share(Arc::clone(self))), self.limit))
    }

    fn reservation(&self) -> Option<MutexGuard<'_, Reservation>> {
        Some(self.reservation.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The memory of a page as one of its parts sees it.
#[derive(Debug)]
struct Share(Arc<PageMemory>);

impl Memory for Share {
    fn take(&self, bytes: usize) -> bool {
        self.0.reservation().is_some_and(|mut reservation| reservation.grow(bytes).is_ok())
    }

    fn give_back(&self, bytes: usize) {
        let Some(mut reservation) = self.0.reservation() else { return };
        let rest = reservation.bytes().saturating_sub(bytes);
        reservation.shrink_to(rest);
    }

    fn is_beyond_limit(&self, bytes: usize) -> bool {
        let taken = self.0.reservation().map_or(0, |reservation| reservation.bytes());
        taken.saturating_add(bytes) > self.0.limit.saturating_add(SPARE_BYTES)
    }
}
