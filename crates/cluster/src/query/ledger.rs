//! The memory of one page, out of what all queries share.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use query::{KEPT_BYTES_MAX, Ledger, Memory};
use runtime::{MemoryBudget, Reservation};

/// Parts of the memory for queries that one of them may have: others go on beside it.
const PARTS: usize = 2;

/// What a query has of the memory for all of them.
#[derive(Debug)]
struct Part {
    reservation: RefCell<Reservation>,
}

impl Memory for Part {
    fn take(&self, bytes: usize) -> bool {
        self.reservation.borrow_mut().grow(bytes).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        let mut reservation = self.reservation.borrow_mut();
        let rest = reservation.bytes().saturating_sub(bytes);
        reservation.shrink_to(rest);
    }
}

/// A ledger for one page.
pub(super) fn open(memory: &Arc<MemoryBudget>) -> Rc<Ledger> {
    let limit = KEPT_BYTES_MAX.min(memory.usage().limit / PARTS);
    // Nothing can be had of any budget.
    let Ok(reservation) = memory.reserve(0) else { return Rc::default() };
    Rc::new(Ledger::new(Rc::new(Part { reservation: RefCell::new(reservation) }), limit))
}
