//! What operators of the database ask of it, rather than users of its data.
//!
//! Operators take the same steps as every request: their verbs are authorised, and errors
//! are accounted for. Only the holder of the account key is an operator.

pub(crate) mod partitions;
mod roles;
pub(crate) mod scripts;
pub(crate) mod statistics;
pub(crate) mod time;

use std::future::Future;
use std::sync::Arc;

use cluster::{Ahead, ClusterReport};
use runtime::on_async_worker;
use storage::Store;

use crate::error::ServiceError;
use crate::pipeline::account;
use crate::pipeline::authorise::{Principal, authorise_operator};
use crate::service::Service;

/// The verbs of an operator, for a principal.
#[derive(Debug)]
pub struct Operator<'a> {
    pub(crate) service: &'a Service,
    principal: Principal,
}

impl Service {
    /// The verbs of an operator. Each is authorised.
    #[must_use]
    pub fn operator(&self, principal: Principal) -> Operator<'_> {
        Operator { service: self, principal }
    }
}

impl Operator<'_> {
    /// Reads everything that is stored and reports inconsistencies. Blocks the calling
    /// thread until that is done.
    pub fn check(&self, progress: impl FnMut(&str)) -> Result<ClusterReport, ServiceError> {
        self.run_blocking(|service| {
            Ok(service.cluster.check(&service.containers_to_sweep()?, progress)?)
        })
    }

    /// The physical partitions whose time is ahead of the clock.
    pub fn ahead(&self) -> Result<Vec<Ahead>, ServiceError> {
        self.run_blocking(|service| Ok(service.cluster.ahead()?))
    }

    /// The store that a backup is taken of.
    pub fn backup_source(&self) -> Result<Arc<dyn Store>, ServiceError> {
        self.run_blocking(|service| Ok(Arc::clone(service.store())))
    }

    /// Takes an operator's verb through the steps of every request. They are rare, so they
    /// are boxed, and the caller's future stays small.
    pub(crate) fn run<T>(
        &self,
        verb: impl Future<Output = Result<T, ServiceError>>,
    ) -> impl Future<Output = Result<T, ServiceError>> {
        let (authorised, verb) = (authorise_operator(&self.principal), Box::pin(verb));
        async {
            let steps = async {
                authorised?;
                verb.await
            };
            on_async_worker(steps).await.inspect_err(account::report)
        }
    }

    /// The same for verbs that block their thread.
    pub(crate) fn run_blocking<T>(
        &self,
        verb: impl FnOnce(&Service) -> Result<T, ServiceError>,
    ) -> Result<T, ServiceError> {
        let authorised = authorise_operator(&self.principal);
        authorised.and_then(|()| verb(self.service)).inspect_err(account::report)
    }
}
