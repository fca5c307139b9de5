//! The ledger: counts the memory that one query keeps, and reserves it from a shared
//! budget.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use crate::error::QueryError;

/// Bytes that one query may keep by default: rows, sort keys, groups.
pub const KEPT_BYTES_MAX: usize = 64 << 20;

/// Memory is reserved in chunks: most queries need one, and rows are not reserved one by
/// one.
const PORTION_BYTES: usize = 64 << 10;

/// Free bytes beyond this are given back while the query runs.
const SURPLUS_BYTES_MAX: usize = 16 * PORTION_BYTES;

/// The memory that queries share, as one of them sees it.
pub trait Memory: fmt::Debug {
    /// Reserves bytes; false if there are too few left.
    fn take(&self, bytes: usize) -> bool;
    /// Whether `bytes` more would exceed one query's limit: several ledgers may count the
    /// memory of one query.
    fn is_beyond_limit(&self, _bytes: usize) -> bool {
        false
    }
    fn give_back(&self, bytes: usize);
}

/// Counts the memory that one query keeps. All parts that keep something for it share one
/// ledger.
#[derive(Debug)]
pub struct Ledger {
    memory: Option<Rc<dyn Memory>>,
    limit: usize,
    kept: Cell<usize>,
    taken: Cell<usize>,
}

impl Default for Ledger {
    /// A ledger without a shared budget.
    fn default() -> Ledger {
        Ledger { memory: None, limit: KEPT_BYTES_MAX, kept: Cell::new(0), taken: Cell::new(0) }
    }
}

impl Ledger {
    /// At most `limit` bytes of that memory.
    #[must_use]
    pub fn new(memory: Rc<dyn Memory>, limit: usize) -> Ledger {
        Ledger { memory: Some(memory), limit, kept: Cell::new(0), taken: Cell::new(0) }
    }

    /// Counts `bytes` more.
    ///
    /// # Errors
    /// [`QueryError::Limit`] if one query may not keep that much,
    /// [`QueryError::OutOfMemory`] if others keep too much at the moment.
    pub fn keep(&self, bytes: usize) -> Result<(), QueryError> {
        let kept = self.kept.get().saturating_add(bytes);
        let missing = kept.saturating_sub(self.taken.get()).next_multiple_of(PORTION_BYTES);
        let beyond = |memory: &Rc<dyn Memory>| missing > 0 && memory.is_beyond_limit(missing);
        if kept > self.limit || self.memory.as_ref().is_some_and(beyond) {
            let what = "bytes kept for rows, groups and sort keys";
            return Err(QueryError::Limit { what, limit: self.limit });
        }
        if missing > 0 {
            if self.memory.as_ref().is_some_and(|memory| !memory.take(missing)) {
                return Err(QueryError::OutOfMemory);
            }
            self.taken.set(self.taken.get() + missing);
        }
        self.kept.set(kept);
        Ok(())
    }

    /// Counts `bytes` less.
    pub fn release(&self, bytes: usize) {
        let kept = self.kept.get().saturating_sub(bytes);
        self.kept.set(kept);
        let surplus = self.taken.get().saturating_sub(kept);
        if surplus > SURPLUS_BYTES_MAX {
            self.give_back(surplus - PORTION_BYTES);
        }
    }

    #[must_use]
    pub fn kept(&self) -> usize {
        self.kept.get()
    }

    fn give_back(&self, bytes: usize) {
        self.taken.set(self.taken.get() - bytes);
        if let Some(memory) = &self.memory {
            memory.give_back(bytes);
        }
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.give_back(self.taken.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Pool {
        left: Cell<usize>,
    }

    impl Memory for Pool {
        fn take(&self, bytes: usize) -> bool {
            let left = self.left.get().checked_sub(bytes);
            self.left.set(left.unwrap_or(self.left.get()));
            left.is_some()
        }

        fn give_back(&self, bytes: usize) {
            self.left.set(self.left.get() + bytes);
        }
    }

    #[test]
    fn what_is_taken_comes_back() {
        let all = 100 * PORTION_BYTES;
        let pool = Rc::new(Pool { left: Cell::new(all) });
        let ledger = Ledger::new(Rc::clone(&pool) as Rc<dyn Memory>, 200 * PORTION_BYTES);
        ledger.keep(1).unwrap();
        assert_eq!(pool.left.get(), all - PORTION_BYTES);
        ledger.keep(50 * PORTION_BYTES).unwrap();
        assert!(matches!(ledger.keep(50 * PORTION_BYTES), Err(QueryError::OutOfMemory)));
        assert!(matches!(ledger.keep(150 * PORTION_BYTES), Err(QueryError::Limit { .. })));
        assert_eq!(ledger.kept(), 1 + 50 * PORTION_BYTES);
        ledger.release(50 * PORTION_BYTES);
        assert!(pool.left.get() >= all - 2 * PORTION_BYTES, "others can have it at once");
        drop(ledger);
        assert_eq!(pool.left.get(), all);
    }
}
