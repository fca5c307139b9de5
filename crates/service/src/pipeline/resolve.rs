//! Name resolution.

use std::sync::Arc;

use cluster::{ClusterError, Container, Layout, PartitionHandle, PartitionId};
use model::epk::Epk;
use model::name::ItemId;
use model::partition_key::{PartitionKey, PartitionKeyDefinition};
use model::rid::{ContainerRid, ItemRid};

use crate::catalogue::ContainerEntry;
use crate::catalogue::kind::{Kind, Link};
use crate::error::ServiceError;
use crate::items::named;
use crate::pipeline::authorise::Authorised;
use crate::pipeline::meta::{Owner, ResponseMeta};
use crate::request::InContainer;
use crate::service::Service;
use crate::verb::{ContainerVerb, Reach, Verb};

/// A container as one request finds it: with the layout that it uses to its end.
#[derive(Clone, Debug)]
pub struct ResolvedContainer {
    pub(crate) rid: ContainerRid,
    /// Its names, as the owner of what it contains.
    pub(crate) names: Owner,
    pub(crate) layout: Arc<Layout>,
    /// Provides newer layouts.
    pub(crate) container: Arc<Container>,
}

impl From<ContainerEntry> for ResolvedContainer {
    fn from(entry: ContainerEntry) -> ResolvedContainer {
        let ContainerEntry { rid, names, container, .. } = entry;
        ResolvedContainer { rid, names, layout: container.layout(), container }
    }
}

impl ResolvedContainer {
    pub(crate) fn key_definition(&self) -> &PartitionKeyDefinition {
        self.layout.spec().definition.partition_key()
    }

    /// The partition that owns a position.
    pub(crate) fn route(&self, position: &Epk) -> Result<Arc<PartitionHandle>, ClusterError> {
        self.container.route_by(&self.layout, position)
    }

    /// The layout with a partition that has answered: a newer one if it was created since.
    pub(crate) fn layout_of(&self, range: PartitionId) -> Arc<Layout> {
        match self.layout.partition(range) {
            Ok(_) => Arc::clone(&self.layout),
            Err(_) => self.container.layout(),
        }
    }
}

/// A verb with its resolved target.
pub(crate) struct Resolved<V: Verb> {
    pub(crate) verb: V,
    pub(crate) target: V::Target,
}

impl Service {
    pub(crate) async fn resolve<V: Verb>(
        &self,
        Authorised { mut verb }: Authorised<V>,
        meta: &mut ResponseMeta,
    ) -> Result<Resolved<V>, ServiceError> {
        let target = verb.resolve(self, meta).await?;
        Ok(Resolved { verb, target })
    }

    /// Resolves the container of a verb, and the item if it is named by its resource id.
    pub(crate) async fn resolve_container<V: ContainerVerb>(
        &self,
        request: &mut InContainer<V>,
        meta: &mut ResponseMeta,
    ) -> Result<ResolvedContainer, ServiceError> {
        let InContainer { container: link, intended_rid, addressed, merge_aware, verb } = request;
        let container = ResolvedContainer::from(self.container(link)?);
        meta.owner = Some(container.names.clone());
        if intended_rid.as_ref().is_some_and(|rid| *container.names.rid != **rid) {
            return Err(ServiceError::ContainerRecreated);
        }
        let merged = !*merge_aware && container.layout.map().merged();
        if merged && verb.facts().names_partitions {
            return Err(ServiceError::MergeUnaware);
        }
        if let Some(addressed) = *addressed {
            self.check_addressed(&container, addressed, &verb.facts().reach)?;
        }
        if let Some((key, id)) = verb.item_mut()
            && is_by_rid(link, &container.names)
        {
            Box::pin(self.resolve_item(&container, key, id)).await?;
        }
        Ok(container)
    }

    /// Whether a partition that a client has addressed still has what the request can reach. The
    /// key decides where there is one: answered by another partition than the one that the client
    /// believes in, a query could return the same rows twice.
    fn check_addressed(
        &self,
        container: &ResolvedContainer,
        addressed: PartitionId,
        reach: &Reach<'_>,
    ) -> Result<(), ServiceError> {
        let exists = || container.layout.partition(addressed).map(|_| ());
        let checked = match reach {
            Reach::Key(key) if !container.key_definition().is_prefix(key) => {
                match self.locate(container, Some(key), None) {
                    Ok(position) if container.route(&position)?.id() != addressed => {
                        Err(ClusterError::Switching(addressed))
                    }
                    // A key that the container cannot have is refused by the verb.
                    Ok(_) | Err(_) => Ok(()),
                }
            }
            Reach::Key(_) | Reach::Keys(_) | Reach::Everything => exists(),
            Reach::Layout | Reach::Nothing => Ok(()),
        };
        checked.map_err(|error| named(container, error))
    }

    /// In a link by resource ids the last one is an item's, too.
    async fn resolve_item(
        &self,
        container: &ResolvedContainer,
        key: Option<&PartitionKey>,
        id: &mut ItemId,
    ) -> Result<(), ServiceError> {
        let Some(rid) = rid_of(container.rid, id) else { return Ok(()) };
        let found = self.id_of_rid(container, key, rid).await?;
        *id = ItemId::parse(&found.ok_or(ServiceError::NotFound)?)?;
        Ok(())
    }

    /// The id of the item with a resource id.
    pub(crate) async fn id_of_rid(
        &self,
        container: &ResolvedContainer,
        key: Option<&PartitionKey>,
        rid: ItemRid,
    ) -> Result<Option<String>, ServiceError> {
        let position = self.locate(container, key, None)?;
        let (owner, ordinal) = (container.route(&position)?, rid.ordinal());
        Ok(self.cluster.id_of(&container.container, &owner, &position, ordinal).await?)
    }

    /// The container that a link names.
    pub(crate) fn container(&self, link: &Link) -> Result<ContainerEntry, ServiceError> {
        let [(Kind::Database, database), (Kind::Container, container)] = link.segments() else {
            return Err(ServiceError::invalid(format!("'{link}' is not the link of a container")));
        };
        let directory = self.directory();
        let found = directory.database(database).and_then(|(_, entry)| entry.container(container));
        found.map(|(_, entry)| entry.clone()).ok_or(ServiceError::OwnerNotFound)
    }
}

/// Whether the link of a container is spelled in resource ids.
pub(crate) fn is_by_rid(link: &Link, names: &Owner) -> bool {
    link.to_string() != *names.link
}

/// The resource id that an item of a container may be addressed by.
pub(crate) fn rid_of(container: ContainerRid, id: &ItemId) -> Option<ItemRid> {
    ItemRid::parse(id.as_str()).ok().filter(|rid| rid.container() == container)
}
