//! From links to resources.

use model::rid::DatabaseRid;

use crate::catalogue::kind::{Kind, Link};
use crate::catalogue::{ContainerEntry, Record, Stored, item_id};
use crate::error::ServiceError;
use crate::pipeline::meta::{Owner, ResponseMeta};
use crate::service::Service;

/// What a new or listed resource belongs to.
#[derive(Clone, Debug)]
pub(crate) enum Parent {
    Account,
    Resource {
        rid: String,
        self_link: String,
        /// The link by names.
        link: String,
    },
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

    fn link(&self) -> &str {
        match self {
            Parent::Account => "",
            Parent::Resource { link, .. } => link,
        }
    }

    fn owner(&self) -> Option<Owner> {
        match self {
            Parent::Account => None,
            Parent::Resource { rid, link, .. } => {
                Some(Owner { rid: rid.as_str().into(), link: link.as_str().into() })
            }
        }
    }

    fn database(name: &str, rid: DatabaseRid) -> Parent {
        let (self_link, link) = (format!("dbs/{rid}/"), format!("dbs/{name}"));
        Parent::Resource { rid: rid.to_string(), self_link, link }
    }

    fn container(entry: &ContainerEntry) -> Parent {
        let (rid, link) = (entry.names.rid.to_string(), entry.names.link.to_string());
        let self_link = format!("dbs/{}/colls/{rid}/", entry.rid.database());
        Parent::Resource { rid, self_link, link }
    }
}

impl Service {
    /// The parent that a link names, if resources of `kind` can be inside it.
    pub(super) async fn parent(
        &self,
        link: &Link,
        kind: Kind,
        meta: &mut ResponseMeta,
    ) -> Result<Parent, ServiceError> {
        if link.kind() != kind.parent() {
            return Err(ServiceError::invalid(format!(
                "'{link}' does not contain {}",
                kind.segment()
            )));
        }
        let parent = self.walk(link.segments()).await?;
        meta.owner = parent.owner();
        Ok(parent)
    }

    /// The resource that a link names.
    pub(crate) async fn stored(
        &self,
        link: &Link,
        meta: &mut ResponseMeta,
    ) -> Result<Stored, ServiceError> {
        let Some(((kind, name), owners)) = link.segments().split_last() else {
            return Err(ServiceError::invalid("the link names the account"));
        };
        let parent = self.walk(owners).await?;
        meta.owner = parent.owner();
        self.find(*kind, parent.rid(), name).await?.ok_or(ServiceError::NotFound)
    }

    /// Follows a link from the account; every parent must exist.
    async fn walk(&self, segments: &[(Kind, String)]) -> Result<Parent, ServiceError> {
        match segments {
            [] => Ok(Parent::Account),
            [(Kind::Database, name)] => {
                let directory = self.directory();
                let (name, entry) = directory.database(name).ok_or(ServiceError::OwnerNotFound)?;
                Ok(Parent::database(name, entry.rid))
            }
            [(Kind::Database, database), (Kind::Container, name)] => {
                let directory = self.directory();
                let container =
                    directory.database(database).and_then(|(_, entry)| entry.container(name));
                Ok(Parent::container(container.ok_or(ServiceError::OwnerNotFound)?.1))
            }
            [owners @ .., (kind, name)] => {
                let owner = Box::pin(self.walk(owners)).await?;
                let stored = self
                    .find(*kind, owner.rid(), name)
                    .await?
                    .ok_or(ServiceError::OwnerNotFound)?;
                let link = format!("{}/{}/{}", owner.link(), kind.segment(), stored.record.name());
                let Record { rid, self_link, .. } = stored.record;
                Ok(Parent::Resource { rid, self_link, link })
            }
        }
    }

    /// A resource by its name, or else by its resource id.
    pub(crate) async fn find(
        &self,
        kind: Kind,
        parent_rid: &str,
        name: &str,
    ) -> Result<Option<Stored>, ServiceError> {
        let by_name = self.cluster.read_system(&item_id(kind, parent_rid, name))?;
        if let Some(item) = by_name {
            return Stored::read(kind, parent_rid, &item).map(Some);
        }
        // Only texts that could be a resource id are searched among the siblings.
        if !looks_like_rid(name) {
            return Ok(None);
        }
        self.find_by_rid(kind, parent_rid, name).await
    }

    /// A resource by its resource id.
    pub(super) async fn find_by_rid(
        &self,
        kind: Kind,
        parent_rid: &str,
        rid: &str,
    ) -> Result<Option<Stored>, ServiceError> {
        let rid = rid.to_owned();
        let of_rid = move |stored: Stored| Ok(Some(stored).filter(|it| it.record.rid == rid));
        Ok(self.select_records(kind, parent_rid, of_rid).await?.pop())
    }
}

/// Resource ids are base64 of 4, 8 or 16 bytes; those of offers (3 bytes) are names anyway.
fn looks_like_rid(name: &str) -> bool {
    let alphabet = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'=');
    matches!(name.len(), 8 | 12 | 24) && name.ends_with('=') && name.bytes().all(alphabet)
}
