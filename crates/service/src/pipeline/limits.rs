//! Limits that are checked before anything is read or written.

use model::limits::Limits;

use crate::error::ServiceError;
use crate::pipeline::resolve::Resolved;
use crate::verb::Verb;

/// A verb within its limits.
pub(crate) struct Checked<V: Verb> {
    pub(crate) resolved: Resolved<V>,
}

/// Page sizes beyond this are cut: a page has to fit into memory.
pub(crate) const PAGE_ITEMS_MAX: usize = 1_000;

/// The size of one document is checked when it is parsed; this is about several.
pub(crate) fn check_limits<V: Verb>(
    resolved: Resolved<V>,
    limits: &Limits,
) -> Result<Checked<V>, ServiceError> {
    if let Some(operations) = resolved.verb.facts().operations() {
        check_count(operations.count, limits)?;
        if operations.bytes as u64 > limits.request_bytes_max {
            return Err(ServiceError::TooLarge { message: "Request size is too large".to_owned() });
        }
    }
    Ok(Checked { resolved })
}

fn check_count(count: usize, limits: &Limits) -> Result<(), ServiceError> {
    if count == 0 {
        return Err(ServiceError::invalid("Batch request has no operations."));
    }
    if count > limits.batch_operations_max {
        return Err(ServiceError::invalid(
            "Batch request has more operations than what is supported.",
        ));
    }
    Ok(())
}
