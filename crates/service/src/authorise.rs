//! Who may do what.
//!
//! Checking gives a token that the later steps ask for, so that no path through
//! the code can forget to check.

use std::sync::Arc;

use crate::error::ServiceError;
use crate::grant::Grant;
use crate::kind::Kind;
use crate::request::{Action, CatalogueAction, ContainerAction, Request};
use crate::service::Service;

/// Who is asking, as the protocol established it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// Nobody we know.
    Anonymous,
    /// A holder of a token that a permission gave.
    Holder(Arc<Grant>),
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

impl Service {
    pub(crate) async fn authorise(&self, request: Request) -> Result<Authorised, ServiceError> {
        let Request { principal, action, .. } = request;
        match principal {
            Principal::Anonymous => Err(ServiceError::Unauthorised),
            // Whoever reads a permission gets a token of it, which may open more.
            Principal::Reader if writes(&action) || shows_permissions(&action) => {
                Err(ServiceError::Forbidden)
            }
            Principal::Holder(grant) => match self.covers(&grant, &action).await? {
                true => Ok(Authorised { action }),
                false => Err(ServiceError::NotPermitted),
            },
            Principal::Reader | Principal::Account => Ok(Authorised { action }),
        }
    }
}

/// Only whoever holds the account key runs the database.
pub(crate) fn authorise_operator(principal: &Principal) -> Result<(), ServiceError> {
    match principal {
        Principal::Account => Ok(()),
        Principal::Anonymous => Err(ServiceError::Unauthorised),
        Principal::Holder(_) | Principal::Reader => Err(ServiceError::NotPermitted),
    }
}

fn shows_permissions(action: &Action) -> bool {
    let Action::Catalogue(action) = action else { return false };
    match action {
        CatalogueAction::Read { link, .. }
        | CatalogueAction::Replace { link, .. }
        | CatalogueAction::MigrateOffer { link, .. }
        | CatalogueAction::Delete { link, .. } => link.kind() == Some(Kind::Permission),
        CatalogueAction::Create { kind, .. }
        | CatalogueAction::Upsert { kind, .. }
        | CatalogueAction::List { kind, .. }
        | CatalogueAction::Query { kind, .. } => *kind == Kind::Permission,
    }
}

pub(crate) fn writes(action: &Action) -> bool {
    match action {
        Action::Catalogue(action) => match action {
            CatalogueAction::Read { .. }
            | CatalogueAction::List { .. }
            | CatalogueAction::Query { .. } => false,
            CatalogueAction::Create { .. }
            | CatalogueAction::Upsert { .. }
            | CatalogueAction::Replace { .. }
            | CatalogueAction::MigrateOffer { .. }
            | CatalogueAction::Delete { .. } => true,
        },
        Action::Container { action, .. } => match action {
            ContainerAction::ReadRanges
            | ContainerAction::ReadStatistics { .. }
            | ContainerAction::ReadItem { .. }
            | ContainerAction::ListItems { .. }
            | ContainerAction::ListChanges(_)
            | ContainerAction::QueryItems(_)
            | ContainerAction::PlanQuery { .. } => false,
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
