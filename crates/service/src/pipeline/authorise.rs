//! Authorisation.
//!
//! Checking returns a token that the later steps require, so that no code path can forget
//! to check.

use std::sync::Arc;

use crate::error::ServiceError;
use crate::identity::roles::TokenBearer;
use crate::pipeline::grant::PermissionGrant;
use crate::service::Service;
use crate::verb::Verb;

/// Who is asking, as the protocol established it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// No known principal.
    Anonymous,
    /// A holder of a permission's token.
    Holder(Arc<PermissionGrant>),
    /// A bearer of an identity provider's token, who may do what their roles allow.
    Bearer(Arc<TokenBearer>),
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
                // Reading a permission returns its token, which may grant more.
                if facts.writes || facts.shows_permissions() {
                    return Err(ServiceError::Forbidden);
                }
            }
            Principal::Bearer(bearer) => self.check_roles(bearer, &verb.facts())?,
            Principal::Holder(grant) => {
                if !self.covers(grant, &verb.facts()).await? {
                    return Err(ServiceError::NotPermitted);
                }
            }
        }
        Ok(Authorised { verb })
    }
}

/// Only the holder of the account key operates the database.
pub(crate) fn authorise_operator(principal: &Principal) -> Result<(), ServiceError> {
    match principal {
        Principal::Account => Ok(()),
        Principal::Anonymous => Err(ServiceError::Unauthorised),
        Principal::Bearer(_) => Err(ServiceError::ControlPlane),
        Principal::Holder(_) | Principal::Reader => Err(ServiceError::NotPermitted),
    }
}
