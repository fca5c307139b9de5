//! Roles, as operators define and assign them.
//!
//! A change is durable before it is in force, and in force with the next request.

use cluster::SystemWrite;
use model::json;

use crate::error::ServiceError;
use crate::identity::roles::{RoleAssignment, RoleDefinition, RoleId, RoleRefused, Roles};
use crate::operator::Operator;
use crate::service::Service;

/// The id of the system item that has them.
const ROLES: &str = "roles";

impl Operator<'_> {
    /// All roles, with those that are built in, and who has them.
    pub fn roles(&self) -> Result<(Vec<RoleDefinition>, Vec<RoleAssignment>), ServiceError> {
        self.run_blocking(|service| {
            let roles = service.roles();
            Ok((roles.definitions().cloned().collect(), roles.assignments().cloned().collect()))
        })
    }

    /// Adds a role, or changes it for all who have it.
    pub async fn define_role(&self, role: RoleDefinition) -> Result<(), ServiceError> {
        self.change_roles(|roles| roles.define(role)).await
    }

    /// Removes a role that is not assigned.
    pub async fn remove_role(&self, id: &RoleId) -> Result<(), ServiceError> {
        self.change_roles(|roles| roles.undefine(id)).await
    }

    pub async fn assign_role(&self, assignment: RoleAssignment) -> Result<(), ServiceError> {
        self.change_roles(|roles| roles.assign(assignment)).await
    }

    pub async fn unassign_role(&self, id: &RoleId) -> Result<(), ServiceError> {
        self.change_roles(|roles| roles.unassign(id)).await
    }

    async fn change_roles(
        &self,
        change: impl FnOnce(&mut Roles) -> Result<(), RoleRefused>,
    ) -> Result<(), ServiceError> {
        self.run(self.service.change_roles(change)).await
    }
}

impl Service {
    /// An id for a new role or assignment.
    #[must_use]
    pub fn new_role_id(&self) -> RoleId {
        RoleId::generate(&*self.runtime.random)
    }

    /// Reads them when the service is opened.
    pub(crate) fn load_roles(&self) -> Result<(), ServiceError> {
        let Some(item) = self.cluster.read_system(ROLES)? else { return Ok(()) };
        let record = json::parse(item.json().text().as_bytes()).map_err(ServiceError::internal)?;
        *self.roles_mut() = Roles::from_record(&record)?;
        Ok(())
    }

    async fn change_roles(
        &self,
        change: impl FnOnce(&mut Roles) -> Result<(), RoleRefused>,
    ) -> Result<(), ServiceError> {
        let _one_at_a_time = self.changes.lock().await;
        let mut roles = self.roles().clone();
        change(&mut roles)?;
        let write = SystemWrite::Put { id: ROLES.to_owned(), body: roles.to_record() };
        self.cluster.write_system(vec![write]).await?;
        *self.roles_mut() = roles;
        Ok(())
    }
}

impl From<RoleRefused> for ServiceError {
    fn from(refused: RoleRefused) -> ServiceError {
        if let RoleRefused::NoAssignment(_) = refused {
            return ServiceError::NotFound;
        }
        ServiceError::invalid(refused.to_string())
    }
}
