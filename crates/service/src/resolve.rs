//! What the names of a request mean.

use std::sync::Arc;

use cluster::{ClusterError, Container, Layout, RangeId, Slot};
use model::epk::Epk;
use model::name::ItemId;
use model::partition_key::PartitionKeyDefinition;
use model::rid::{ContainerRid, ItemRid};

use crate::authorise::Authorised;
use crate::catalogue::ContainerEntry;
use crate::error::ServiceError;
use crate::kind::{Kind, Link};
use crate::receipt::{Owner, Receipt};
use crate::request::{Action, CatalogueAction, ChangeList, ContainerAction, ItemTarget};
use crate::service::Service;

/// A container as one request finds it: with the layout that it goes by to its end.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedContainer {
    pub(crate) rid: ContainerRid,
    /// Its names, as the owner of what it contains.
    pub(crate) names: Owner,
    pub(crate) layout: Arc<Layout>,
    /// Who knows of newer layouts.
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
    pub(crate) fn route(&self, position: &Epk) -> Result<Arc<Slot>, ClusterError> {
        self.container.route_by(&self.layout, position)
    }

    /// The layout that has a partition which has answered: a newer one if it was made since.
    pub(crate) fn layout_of(&self, range: RangeId) -> Arc<Layout> {
        match self.layout.partition(range) {
            Ok(_) => Arc::clone(&self.layout),
            Err(_) => self.container.layout(),
        }
    }
}

/// An action with what its names stand for.
#[derive(Debug)]
pub(crate) enum Resolved {
    /// Finds its resources itself, as finding and changing them must be one step.
    Catalogue(CatalogueAction),
    Container {
        container: ResolvedContainer,
        action: ContainerAction,
    },
}

impl Service {
    pub(crate) async fn resolve(
        &self,
        Authorised { action }: Authorised,
        receipt: &mut Receipt,
    ) -> Result<Resolved, ServiceError> {
        Ok(match action {
            Action::Catalogue(action) => Resolved::Catalogue(action),
            Action::Container { container: link, intended_rid, merge_aware, mut action } => {
                let container = ResolvedContainer::from(self.container(&link)?);
                receipt.owner = Some(container.names.clone());
                if intended_rid.is_some_and(|rid| *container.names.rid != rid) {
                    return Err(ServiceError::ContainerRecreated);
                }
                if !merge_aware && container.layout.map().merged() && knows_ranges(&action) {
                    return Err(ServiceError::MergeUnaware);
                }
                if let Some(target) = target_of(&mut action)
                    && is_by_rid(&link, &container.names)
                {
                    self.resolve_item(&container, target).await?;
                }
                Resolved::Container { container, action }
            }
        })
    }

    /// In a link by resource ids the last one is an item's, too.
    async fn resolve_item(
        &self,
        container: &ResolvedContainer,
        target: &mut ItemTarget,
    ) -> Result<(), ServiceError> {
        let Some(rid) = rid_of(container.rid, target) else { return Ok(()) };
        let id = self.id_behind(container, target, rid).await?;
        target.id = ItemId::parse(&id.ok_or(ServiceError::NotFound)?)?;
        Ok(())
    }

    /// The id of the item that a target's resource id means.
    pub(crate) async fn id_behind(
        &self,
        container: &ResolvedContainer,
        target: &ItemTarget,
        rid: ItemRid,
    ) -> Result<Option<String>, ServiceError> {
        let position = self.locate(container, target.key.as_ref(), None)?.position;
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

/// The resource id that a target may be addressed by.
pub(crate) fn rid_of(container: ContainerRid, target: &ItemTarget) -> Option<ItemRid> {
    ItemRid::parse(target.id.as_str()).ok().filter(|rid| rid.container() == container)
}

/// Whether an action makes sense only to somebody who knows the physical partitions.
fn knows_ranges(action: &ContainerAction) -> bool {
    match action {
        ContainerAction::ReadRanges => true,
        ContainerAction::Bulk { range, .. } => range.is_some(),
        ContainerAction::ListItems { scope, .. }
        | ContainerAction::ListChanges(ChangeList { scope, .. }) => scope.range.is_some(),
        ContainerAction::QueryItems(query) => query.scope.range.is_some(),
        ContainerAction::ReadStatistics { .. }
        | ContainerAction::CreateItem { .. }
        | ContainerAction::UpsertItem { .. }
        | ContainerAction::ReadItem { .. }
        | ContainerAction::ReplaceItem { .. }
        | ContainerAction::DeleteItem { .. }
        | ContainerAction::PatchItem { .. }
        | ContainerAction::Batch { .. }
        | ContainerAction::PlanQuery { .. } => false,
    }
}

/// The item that an action is about, if it is about one by name.
fn target_of(action: &mut ContainerAction) -> Option<&mut ItemTarget> {
    match action {
        ContainerAction::ReadItem { target, .. }
        | ContainerAction::ReplaceItem { target, .. }
        | ContainerAction::DeleteItem { target, .. }
        | ContainerAction::PatchItem { target, .. } => Some(target),
        ContainerAction::ReadRanges
        | ContainerAction::ReadStatistics { .. }
        | ContainerAction::CreateItem { .. }
        | ContainerAction::UpsertItem { .. }
        | ContainerAction::Batch { .. }
        | ContainerAction::Bulk { .. }
        | ContainerAction::ListItems { .. }
        | ContainerAction::ListChanges(_)
        | ContainerAction::QueryItems(_)
        | ContainerAction::PlanQuery { .. } => None,
    }
}
