//! Who may do what.
//!
//! Checking gives a token that the later steps ask for, so that no path through
//! the code can forget to check.

use std::sync::Arc;

use crate::error::ServiceError;
use crate::grant::Grant;
use crate::service::Service;
use crate::verb::Verb;

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

/// A verb that its principal may use.
#[derive(Debug)]
pub(crate) struct Authorised<V> {
    pub(crate) verb: V,
}

impl Service {
    pub(crate) async fn authorise<V: Verb>(
        &self,
        principal: &Principal,
        verb: V,
    ) -> Result<Authorised<V>, ServiceError> {
        match principal {
            Principal::Account => {}
            Principal::Anonymous => return Err(ServiceError::Unauthorised),
            Principal::Reader => {
                let facts = verb.facts();
                // Whoever reads a permission gets a token of it, which may open more.
                if facts.writes || facts.shows_permissions() {
                    return Err(ServiceError::Forbidden);
                }
            }
            Principal::Holder(grant) => {
                if !self.covers(grant, &verb.facts()).await? {
                    return Err(ServiceError::NotPermitted);
                }
            }
        }
        Ok(Authorised { verb })
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
