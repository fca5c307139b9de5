//! The budget of one run of a query. Without it, nested joins and doubled values would let
//! a short text use any amount of time and memory.
//!
//! All work is charged here, in steps, in proportion to its cost and before or while it is
//! done: nothing else can stop it. Now and then the watch is asked whether the query may
//! continue.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use crate::context::Watch;
use crate::error::QueryError;
use crate::ledger::Ledger;

/// Steps that one run may take by default: more than a page needs, and about a second of
/// work. Evaluating one node of an expression is a step, and so is reading 16 bytes.
pub const STEPS_MAX: usize = 20_000_000;

/// Bytes that are read in the time of one step.
pub(crate) const BYTES_PER_STEP: usize = 16;

/// Bytes that one computed value may have: no response can hold a larger one.
pub const VALUE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Steps between two calls of the [`Watch`]: somewhat less than a millisecond.
pub const WATCH_STEPS: usize = 1 << 14;

#[derive(Debug)]
pub(crate) struct Budget {
    steps: Cell<usize>,
    ledger: Rc<Ledger>,
    /// The part of the kept bytes that is only kept until the next document comes.
    passing: Cell<usize>,
    watch: Option<Arc<dyn Watch>>,
    stopped: Cell<bool>,
}

impl Budget {
    pub(crate) fn new(steps: usize, ledger: Rc<Ledger>, watch: Option<Arc<dyn Watch>>) -> Budget {
        let (steps, passing) = (Cell::new(steps), Cell::new(0));
        Budget { steps, ledger, passing, watch, stopped: Cell::new(false) }
    }

    pub(crate) fn spend_steps(&self, steps: usize) -> Result<(), QueryError> {
        let before = self.steps.get();
        if self.stopped.get() {
            return Err(QueryError::Stopped);
        }
        let limit = QueryError::Limit { what: "steps of evaluation", limit: STEPS_MAX };
        self.steps.set(before.checked_sub(steps).ok_or(limit)?);
        if before / WATCH_STEPS == self.steps.get() / WATCH_STEPS {
            return Ok(());
        }
        self.look_up()
    }

    /// Asks whether to continue. A no is remembered: some callers do without what they
    /// could not compute, and must not continue with the next part.
    fn look_up(&self) -> Result<(), QueryError> {
        if self.watch.as_ref().is_some_and(|watch| !watch.may_go_on()) {
            self.stopped.set(true);
            return Err(QueryError::Stopped);
        }
        Ok(())
    }

    /// Whether the query was stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Charges for reading `bytes`.
    pub(crate) fn spend_reading(&self, bytes: usize) -> Result<(), QueryError> {
        self.spend_steps(bytes / BYTES_PER_STEP)
    }

    /// Counts bytes that are kept until the next document comes, or to the end.
    pub(crate) fn spend_bytes(&self, bytes: usize) -> Result<(), QueryError> {
        self.ledger.keep(bytes)?;
        self.passing.set(self.passing.get() + bytes);
        Ok(())
    }

    /// Marks `bytes` of them as kept to the end.
    pub(crate) fn keep(&self, bytes: usize) {
        self.passing.set(self.passing.get().saturating_sub(bytes));
    }

    /// Releases `bytes` of those that were to be kept to the end.
    pub(crate) fn release(&self, bytes: usize) {
        self.ledger.release(bytes);
    }

    /// Everything else is dropped with the document.
    pub(crate) fn end_document(&self) {
        let passed = self.passing.take();
        if passed > 0 {
            self.ledger.release(passed);
        }
    }

    pub(crate) fn steps_left(&self) -> usize {
        self.steps.get()
    }

    /// Continues with the remaining steps of another budget.
    pub(crate) fn go_on_from(&self, other: &Budget) {
        self.steps.set(other.steps.get());
        self.stopped.set(other.stopped.get());
    }

    /// Sets the remaining steps.
    pub(crate) fn allow_steps(&self, steps: usize) {
        self.steps.set(steps);
    }
}

impl Drop for Budget {
    /// The ledger keeps what others keep for the query.
    fn drop(&mut self) {
        self.end_document();
    }
}
