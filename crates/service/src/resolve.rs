//! What the names of a request mean.

use crate::authorise::Authorised;
use crate::catalogue::ContainerEntry;
use crate::error::ServiceError;
use crate::kind::{Kind, Link};
use crate::request::{Action, CatalogueAction, ContainerAction};
use crate::service::Service;

/// An action with what its names stand for.
#[derive(Debug)]
pub(crate) enum Resolved {
    /// Finds its resources itself, as finding and changing them must be one step.
    Catalogue(CatalogueAction),
    Container {
        container: ContainerEntry,
        action: ContainerAction,
    },
}

impl Service {
    pub(crate) fn resolve(
        &self,
        Authorised { action }: Authorised,
    ) -> Result<Resolved, ServiceError> {
        Ok(match action {
            Action::Catalogue(action) => Resolved::Catalogue(action),
            Action::Container { container, intended_rid, action } => {
                let container = self.container(&container)?;
                if intended_rid.is_some_and(|rid| container.name.rid.to_string() != rid) {
                    return Err(ServiceError::ContainerRecreated);
                }
                Resolved::Container { container, action }
            }
        })
    }

    /// The container that a link names.
    fn container(&self, link: &Link) -> Result<ContainerEntry, ServiceError> {
        let [(Kind::Database, database), (Kind::Container, container)] = link.segments() else {
            return Err(ServiceError::invalid(format!("'{link}' is not the link of a container")));
        };
        let directory = self.directory();
        let found = directory.database(database).and_then(|(_, entry)| entry.container(container));
        found.map(|(_, entry)| entry.clone()).ok_or(ServiceError::OwnerNotFound)
    }
}
