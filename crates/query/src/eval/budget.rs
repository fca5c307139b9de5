//! What one run of a query may use. Without it, nested joins and doubled values
//! would let a short text ask for any amount of time and memory.

use std::cell::Cell;

use crate::error::QueryError;

/// Steps that one run may take unless it is told otherwise: more than a page
/// needs, and about a second of work. Evaluating one node of an expression is a
/// step, and so is looking through 16 bytes.
pub const STEPS_MAX: usize = 20_000_000;

/// Bytes that are looked through in the time of one step.
pub(crate) const BYTES_PER_STEP: usize = 16;

/// Bytes of rows, sort keys and groups that one run may keep.
pub const KEPT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Bytes that one computed value may have: no response can hold a larger one.
pub const VALUE_BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Budget {
    steps: Cell<usize>,
    bytes: Cell<usize>,
}

impl Budget {
    pub(crate) fn new(steps: usize) -> Budget {
        Budget { steps: Cell::new(steps), bytes: Cell::new(KEPT_BYTES_MAX) }
    }

    pub(crate) fn spend_steps(&self, steps: usize) -> Result<(), QueryError> {
        spend(&self.steps, steps, "steps of evaluation", STEPS_MAX)
    }

    /// Pays for looking through so many bytes.
    pub(crate) fn spend_reading(&self, bytes: usize) -> Result<(), QueryError> {
        self.spend_steps(bytes / BYTES_PER_STEP)
    }

    pub(crate) fn spend_bytes(&self, bytes: usize) -> Result<(), QueryError> {
        spend(&self.bytes, bytes, "bytes kept", KEPT_BYTES_MAX)
    }

    pub(crate) fn steps_left(&self) -> usize {
        self.steps.get()
    }

    /// Allows so many steps from here on.
    pub(crate) fn allow_steps(&self, steps: usize) {
        self.steps.set(steps);
    }
}

fn spend(
    left: &Cell<usize>,
    amount: usize,
    what: &'static str,
    limit: usize,
) -> Result<(), QueryError> {
    let rest = left.get().checked_sub(amount).ok_or(QueryError::Limit { what, limit })?;
    left.set(rest);
    Ok(())
}
