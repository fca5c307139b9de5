//! From links to resources.

use model::rid::{ContainerRid, DatabaseRid};

use crate::catalogue::{Stored, item_id};
use crate::error::ServiceError;
use crate::kind::{Kind, Link};
use crate::service::Service;

/// What a new or listed resource belongs to.
#[derive(Clone, Debug)]
pub(crate) enum Parent {
    Account,
    Resource { rid: String, self_link: String },
}

impl Parent {
    pub(crate) fn rid(&self) -> &str {
        match self {
            Parent::Account => "",
            Parent::Resource { rid, .. } => rid,
        }
    }

    pub(crate) fn self_link(&self) -> &str {
        match self {
            Parent::Account => "",
            Parent::Resource { self_link, .. } => self_link,
        }
    }

    fn database(rid: DatabaseRid) -> Parent {
        Parent::Resource { rid: rid.to_string(), self_link: format!("dbs/{rid}/") }
    }

    fn container(rid: ContainerRid) -> Parent {
        let database = rid.database();
        Parent::Resource { rid: rid.to_string(), self_link: format!("dbs/{database}/colls/{rid}/") }
    }
}

impl Service {
    /// The parent that a link names, if resources of `kind` can be inside it.
    pub(super) fn parent(&self, link: &Link, kind: Kind) -> Result<Parent, ServiceError> {
        if link.kind() != kind.parent() {
            return Err(ServiceError::invalid(format!(
                "'{link}' does not contain {}",
                kind.segment()
            )));
        }
        self.walk(link.segments())
    }

    /// The resource that a link names.
    pub(super) fn stored(&self, link: &Link) -> Result<Stored, ServiceError> {
        let Some(((kind, name), owners)) = link.segments().split_last() else {
            return Err(ServiceError::invalid("the link names the account"));
        };
        let parent = self.walk(owners)?;
        self.find(*kind, parent.rid(), name)?.ok_or(ServiceError::NotFound)
    }

    /// Follows a link from the account; everything on the way must exist.
    fn walk(&self, segments: &[(Kind, String)]) -> Result<Parent, ServiceError> {
        match segments {
            [] => Ok(Parent::Account),
            [(Kind::Database, name)] => {
                let directory = self.directory();
                let database = directory.database(name).ok_or(ServiceError::OwnerNotFound)?;
                Ok(Parent::database(database.1.rid))
            }
            [(Kind::Database, database), (Kind::Container, name)] => {
                let directory = self.directory();
                let container =
                    directory.database(database).and_then(|(_, entry)| entry.container(name));
                Ok(Parent::container(container.ok_or(ServiceError::OwnerNotFound)?.1.name.rid))
            }
            [owners @ .., (kind, name)] => {
                let owner = self.walk(owners)?;
                let stored =
                    self.find(*kind, owner.rid(), name)?.ok_or(ServiceError::OwnerNotFound)?;
                Ok(Parent::Resource { rid: stored.record.rid, self_link: stored.record.self_link })
            }
        }
    }

    /// A resource by its name, or else by its resource id.
    fn find(
        &self,
        kind: Kind,
        parent_rid: &str,
        name: &str,
    ) -> Result<Option<Stored>, ServiceError> {
        let by_name = self.cluster.read_system(&item_id(kind, parent_rid, name))?;
        if let Some(item) = by_name {
            return Stored::read(kind, parent_rid, &item).map(Some);
        }
        let mut found = None;
        // Only texts that could be a resource id are worth looking through the siblings.
        if looks_like_rid(name) {
            self.each_record(kind, parent_rid, |stored| {
                if stored.record.rid == name {
                    found = Some(stored);
                }
                Ok(())
            })?;
        }
        Ok(found)
    }
}

/// Resource ids are base64 of 4, 8 or 16 bytes; offers' (3 bytes) are names anyway.
fn looks_like_rid(name: &str) -> bool {
    let alphabet = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'=');
    matches!(name.len(), 8 | 12 | 24) && name.ends_with('=') && name.bytes().all(alphabet)
}
