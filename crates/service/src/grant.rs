//! What a permission gives to whoever holds a token of it.
//!
//! As in the service, a token stands for itself until it expires: replacing or
//! deleting the permission does not revoke it. It names its container by resource
//! id, so that it opens nothing that is later created under the same name.

use bytes::Bytes;
use model::json::{self, Raw, Value};
use model::partition_key::PartitionKey;
use model::rid::{ContainerRid, ItemRid};

use crate::authorise::writes;
use crate::catalogue::ContainerEntry;
use crate::error::ServiceError;
use crate::kind::{Kind, Link};
use crate::receipt::Receipt;
use crate::request::{Action, CatalogueAction, ChangeList, ContainerAction};
use crate::resolve::{ResolvedContainer, is_by_rid, rid_of};
use crate::service::Service;

/// The resource, what may be done to it, and the logical partition it is limited to, or
/// the beginning of hierarchical keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub container: ContainerRid,
    pub extent: Extent,
    pub mode: Mode,
    pub key: Option<PartitionKey>,
}

/// How much of the container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The container, its items and its scripts.
    Container,
    /// Items of that id. It is unique within one logical partition only, so a grant
    /// that also names a key is about one item.
    Item(String),
    /// The item of that resource id, as long as requests address it by that.
    ItemRid(String),
    /// The script of that resource id.
    Script(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Read,
    All,
}

impl Service {
    /// What a permission, as clients read it, gives at this moment. `None` when it
    /// names nothing that can be given, or nothing that exists.
    pub async fn grant(&self, permission: &Value) -> Option<Grant> {
        let text = |name| permission.get(name).and_then(Value::as_str);
        let mode = match text("permissionMode")? {
            mode if mode.eq_ignore_ascii_case("read") => Mode::Read,
            mode if mode.eq_ignore_ascii_case("all") => Mode::All,
            _ => return None,
        };
        let key = match permission.get("resourcePartitionKey").filter(|key| !key.is_null()) {
            Some(key) => Some(PartitionKey::parse_header(&key.to_string()).ok()?),
            None => None,
        };
        let (link, item) = Link::parse_with_item(text("resource")?)?;
        let entry = self.container_around(&link)?;
        let extent = match (item, script_of(&link)) {
            (Some(id), None) if is_by_rid(&link, &entry.names) && ItemRid::parse(id).is_ok() => {
                Extent::ItemRid(id.to_owned())
            }
            (Some(id), None) => Extent::Item(id.to_owned()),
            (None, None) => Extent::Container,
            (None, Some(_)) => Extent::Script(self.script_rid(&link).await?),
            (Some(_), Some(_)) => return None,
        };
        Some(Grant { container: entry.rid, extent, mode, key })
    }

    /// Whether a grant allows an action. What does not exist is not granted.
    pub(crate) async fn covers(
        &self,
        grant: &Grant,
        action: &Action,
    ) -> Result<bool, ServiceError> {
        if grant.mode == Mode::Read && writes(action) {
            return Ok(false);
        }
        match action {
            Action::Catalogue(action) => Ok(self.covers_resource(grant, action).await),
            Action::Container { container, action, .. } => match self.container_around(container) {
                Some(entry) if entry.rid == grant.container => {
                    let by_rid = is_by_rid(container, &entry.names);
                    self.covers_items(grant, &entry.into(), by_rid, action).await
                }
                Some(_) | None => Ok(false),
            },
        }
    }

    async fn covers_resource(&self, grant: &Grant, action: &CatalogueAction) -> bool {
        let (link, inside) = match action {
            CatalogueAction::Read { link, .. }
            | CatalogueAction::Replace { link, .. }
            | CatalogueAction::MigrateOffer { link, .. }
            | CatalogueAction::Delete { link, .. } => (link, false),
            CatalogueAction::Create { parent, .. }
            | CatalogueAction::Upsert { parent, .. }
            | CatalogueAction::List { parent, .. }
            | CatalogueAction::Query { parent, .. } => (parent, true),
        };
        if self.container_around(link).is_none_or(|entry| entry.rid != grant.container) {
            return false;
        }
        // Clients cannot find an item without reading its container first.
        let is_container = link.kind() == Some(Kind::Container);
        if is_container && matches!(action, CatalogueAction::Read { .. }) {
            return true;
        }
        match &grant.extent {
            Extent::Container => grant.key.is_none(),
            Extent::Item(_) | Extent::ItemRid(_) => false,
            Extent::Script(_) if inside => false,
            Extent::Script(rid) => self.script_rid(link).await.as_ref() == Some(rid),
        }
    }

    async fn covers_items(
        &self,
        grant: &Grant,
        entry: &ResolvedContainer,
        by_rid: bool,
        action: &ContainerAction,
    ) -> Result<bool, ServiceError> {
        if matches!(action, ContainerAction::ReadRanges) {
            return Ok(true);
        }
        let definition = entry.key_definition();
        let inside = |key: &PartitionKey| keys_are(action, |given| definition.covers(key, given));
        if !grant.key.as_ref().is_none_or(inside) {
            return Ok(false);
        }
        match &grant.extent {
            Extent::Container => Ok(true),
            Extent::Item(_) | Extent::ItemRid(_) => {
                self.covers_item(&grant.extent, entry, by_rid, action).await
            }
            Extent::Script(_) => Ok(false),
        }
    }

    /// Whether an action concerns the item of a grant and no other.
    async fn covers_item(
        &self,
        extent: &Extent,
        entry: &ResolvedContainer,
        by_rid: bool,
        action: &ContainerAction,
    ) -> Result<bool, ServiceError> {
        let (target, body) = match action {
            ContainerAction::ReadItem { target, .. }
            | ContainerAction::DeleteItem { target, .. }
            | ContainerAction::PatchItem { target, .. } => (target, None),
            ContainerAction::ReplaceItem { target, body, .. } => (target, Some(body)),
            ContainerAction::ReadRanges
            | ContainerAction::ReadStatistics { .. }
            | ContainerAction::CreateItem { .. }
            | ContainerAction::UpsertItem { .. }
            | ContainerAction::Batch { .. }
            | ContainerAction::Bulk { .. }
            | ContainerAction::ListItems { .. }
            | ContainerAction::ListChanges(_)
            | ContainerAction::QueryItems(_)
            | ContainerAction::PlanQuery { .. } => return Ok(false),
        };
        let addressed = target.id.as_str();
        let actual = match rid_of(entry.rid, target).filter(|_| by_rid) {
            Some(rid) => self.id_behind(entry, target, rid).await?,
            None => Some(addressed.to_owned()),
        };
        let granted = match extent {
            Extent::Item(id) => actual.as_ref() == Some(id),
            Extent::ItemRid(rid) => by_rid && addressed == rid,
            Extent::Container | Extent::Script(_) => false,
        };
        // A replacement may give its item another id, which is not granted.
        let stays = |body: &Bytes| actual.as_ref().is_some_and(|id| names(body, id));
        Ok(granted && body.is_none_or(stays))
    }

    /// The container that a link names or leads through.
    fn container_around(&self, link: &Link) -> Option<ContainerEntry> {
        let [(Kind::Database, database), (Kind::Container, container), ..] = link.segments() else {
            return None;
        };
        let directory = self.directory();
        let (_, entry) = directory.database(database)?.1.container(container)?;
        Some(entry.clone())
    }

    async fn script_rid(&self, link: &Link) -> Option<String> {
        script_of(link)?;
        let mut receipt = Receipt::default();
        let stored = self.stored(link, &mut receipt).await;
        // Whoever lists permissions asks for one after the other.
        runtime::yield_now().await;
        stored.ok().map(|stored| stored.record.rid)
    }
}

/// The kind of script that a link names, if it names one.
fn script_of(link: &Link) -> Option<Kind> {
    link.kind().filter(|kind| kind.parent() == Some(Kind::Container))
}

/// Whether an action names keys for all that it touches, and these do. What it does not
/// name, it does not reach: items are found by the key itself, not by its hash, and no
/// document may say another key than its request.
fn keys_are(action: &ContainerAction, these: impl Fn(&PartitionKey) -> bool) -> bool {
    let is = |given: Option<&PartitionKey>| given.is_some_and(&these);
    match action {
        ContainerAction::ReadRanges => true,
        // They name the other keys as well.
        ContainerAction::ReadStatistics { .. } => false,
        ContainerAction::CreateItem { key, .. } | ContainerAction::UpsertItem { key, .. } => {
            is(key.as_ref())
        }
        ContainerAction::ReadItem { target, .. }
        | ContainerAction::ReplaceItem { target, .. }
        | ContainerAction::DeleteItem { target, .. }
        | ContainerAction::PatchItem { target, .. } => is(target.key.as_ref()),
        ContainerAction::Batch { key, .. } => is(Some(key)),
        ContainerAction::Bulk { operations, .. } => {
            operations.iter().all(|bulk| is(Some(&bulk.key)))
        }
        ContainerAction::ListItems { scope, .. }
        | ContainerAction::ListChanges(ChangeList { scope, .. }) => is(scope.key.as_ref()),
        ContainerAction::QueryItems(query) => is(query.scope.key.as_ref()),
        // Says nothing about items.
        ContainerAction::PlanQuery { .. } => true,
    }
}

fn names(body: &[u8], id: &str) -> bool {
    let text = json::canonical(body).ok();
    let named = text.as_deref().and_then(|text| Raw::trusted(text).get("id")?.as_str());
    named.is_some_and(|named| named == id)
}
