//! Who may do what.
//!
//! Checking gives a token that the later steps ask for, so that no path through
//! the code can forget to check.

use crate::error::ServiceError;
use crate::request::{Action, CatalogueAction, ContainerAction, Request};

/// Who is asking, as the protocol established it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Principal {
    /// Nobody we know.
    Anonymous,
    /// A holder of a read-only account key.
    Reader,
    /// A holder of an account key.
    Account,
}

/// An action that its principal may do.
#[derive(Debug)]
pub(crate) struct Authorised {
    pub(crate) action: Action,
}

pub(crate) fn authorise(request: Request) -> Result<Authorised, ServiceError> {
    match request.principal {
        Principal::Anonymous => Err(ServiceError::Unauthorised),
        Principal::Reader if writes(&request.action) => Err(ServiceError::Forbidden),
        Principal::Reader | Principal::Account => Ok(Authorised { action: request.action }),
    }
}

fn writes(action: &Action) -> bool {
    match action {
        Action::Catalogue(action) => match action {
            CatalogueAction::Read { .. }
            | CatalogueAction::List { .. }
            | CatalogueAction::Query { .. } => false,
            CatalogueAction::Create { .. }
            | CatalogueAction::Upsert { .. }
            | CatalogueAction::Replace { .. }
            | CatalogueAction::Delete { .. } => true,
        },
        Action::Container { action, .. } => match action {
            ContainerAction::ReadRanges
            | ContainerAction::ReadItem { .. }
            | ContainerAction::ListItems { .. } => false,
            ContainerAction::CreateItem { .. }
            | ContainerAction::UpsertItem { .. }
            | ContainerAction::ReplaceItem { .. }
            | ContainerAction::DeleteItem { .. }
            | ContainerAction::PatchItem { .. }
            | ContainerAction::Batch { .. }
            | ContainerAction::Bulk { .. } => true,
        },
    }
}
