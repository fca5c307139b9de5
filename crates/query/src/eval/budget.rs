//! What one run of a query may use. Without it, nested joins and doubled values
//! would let a short text ask for any amount of time and memory.

use std::cell::Cell;

use crate::error::QueryError;

/// Rows and array elements that one run may visit. Far above what a page can
/// read, far below what a cross join can ask for.
pub const ROWS_VISITED_MAX: usize = 5_000_000;

/// Bytes of rows, sort keys and groups that one run may keep.
pub const KEPT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Bytes that one computed value may have: no response can hold a larger one.
pub const VALUE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Comparisons of characters that matching LIKE patterns may take in one run.
pub const LIKE_STEPS_MAX: usize = 50_000_000;

#[derive(Debug)]
pub(crate) struct Budget {
    rows: Cell<usize>,
    bytes: Cell<usize>,
    like_steps: Cell<usize>,
}

impl Budget {
    pub(crate) fn new() -> Budget {
        Budget {
            rows: Cell::new(ROWS_VISITED_MAX),
            bytes: Cell::new(KEPT_BYTES_MAX),
            like_steps: Cell::new(LIKE_STEPS_MAX),
        }
    }

    pub(crate) fn visit_row(&self) -> Result<(), QueryError> {
        spend(&self.rows, 1, "rows visited", ROWS_VISITED_MAX)
    }

    pub(crate) fn spend_bytes(&self, bytes: usize) -> Result<(), QueryError> {
        spend(&self.bytes, bytes, "bytes kept", KEPT_BYTES_MAX)
    }

    pub(crate) fn spend_like_step(&self) -> Result<(), QueryError> {
        spend(&self.like_steps, 1, "steps of pattern matching", LIKE_STEPS_MAX)
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
