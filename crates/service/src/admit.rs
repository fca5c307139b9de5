//! Is there room for it? Limits that hold before anything is read or written.

use model::limits::Limits;

use crate::error::ServiceError;
use crate::request::{ContainerAction, ItemOperation};
use crate::resolve::Resolved;

/// An action that may be performed now.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) resolved: Resolved,
}

/// Page sizes beyond this are cut: a page has to fit into memory.
pub(crate) const PAGE_ITEMS_MAX: usize = 1_000;

pub(crate) fn admit(resolved: Resolved, limits: &Limits) -> Result<Admitted, ServiceError> {
    if let Resolved::Container { action, .. } = &resolved {
        check_operations(action, limits)?;
    }
    Ok(Admitted { resolved })
}

fn check_operations(action: &ContainerAction, limits: &Limits) -> Result<(), ServiceError> {
    let (count, bytes): (usize, usize) = match action {
        ContainerAction::Batch { operations, .. } => {
            (operations.len(), operations.iter().map(body_bytes).sum())
        }
        ContainerAction::Bulk { operations, .. } => {
            (operations.len(), operations.iter().map(|bulk| body_bytes(&bulk.operation)).sum())
        }
        // One document each, whose size is checked when it is parsed.
        ContainerAction::ReadRanges
        | ContainerAction::ReadStatistics { .. }
        | ContainerAction::CreateItem { .. }
        | ContainerAction::UpsertItem { .. }
        | ContainerAction::ReadItem { .. }
        | ContainerAction::ReplaceItem { .. }
        | ContainerAction::DeleteItem { .. }
        | ContainerAction::PatchItem { .. }
        | ContainerAction::ListItems { .. }
        | ContainerAction::ListChanges(_)
        | ContainerAction::QueryItems(_)
        | ContainerAction::PlanQuery { .. } => return Ok(()),
    };
    check_count(count, limits)?;
    if bytes as u64 > limits.request_bytes_max {
        return Err(ServiceError::TooLarge { message: "Request size is too large".to_owned() });
    }
    Ok(())
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

fn body_bytes(operation: &ItemOperation) -> usize {
    match operation {
        ItemOperation::Create { body }
        | ItemOperation::Upsert { body, .. }
        | ItemOperation::Replace { body, .. }
        | ItemOperation::Patch { body, .. } => body.len(),
        ItemOperation::Read { .. }
        | ItemOperation::Delete { .. }
        | ItemOperation::Unreadable { .. } => 0,
    }
}
