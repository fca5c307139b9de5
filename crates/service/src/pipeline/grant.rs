//! What a permission grants to the holder of its token.
//!
//! As in the service, a token is valid by itself until it expires: replacing or deleting
//! the permission does not revoke it. It names its container by resource id, so that it
//! grants nothing that is later created under the same name.

use bytes::Bytes;
use model::json::{self, Raw, Value};
use model::partition_key::PartitionKey;
use model::rid::{ContainerRid, ItemRid};

use crate::catalogue::ContainerEntry;
use crate::catalogue::kind::{Kind, Link};
use crate::error::ServiceError;
use crate::pipeline::meta::ResponseMeta;
use crate::pipeline::resolve::{ResolvedContainer, is_by_rid, rid_of};
use crate::service::Service;
use crate::verb::{Facts, ItemFacts, NamedItem, Reach, Subject};

/// The resource, what may be done to it, and the logical partition it is limited to, or a
/// prefix of hierarchical keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionGrant {
    pub container: ContainerRid,
    pub scope: GrantScope,
    pub mode: Mode,
    pub key: Option<PartitionKey>,
}

/// How much of the container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantScope {
    /// The container, its items and its scripts.
    Container,
    /// Items of that id. It is unique within one logical partition only, so a grant
    /// that also names a key is about one item.
    Item(String),
    /// The item of that resource id, as long as requests address it by that.
    ItemRid(String),
    /// The script of that resource id. A procedure may be run, with whatever its text
    /// allows.
    Script(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Read,
    All,
}

impl Service {
    /// What a permission, as clients read it, grants at this moment. `None` when it names
    /// nothing that can be granted, or nothing that exists.
    pub async fn grant(&self, permission: &Value) -> Option<PermissionGrant> {
        let text = |name| permission.get(name).and_then(Value::as_str);
        let mode = match text("permissionMode")? {
            mode if mode.eq_ignore_ascii_case("read") => Mode::Read,
            mode if mode.eq_ignore_ascii_case("all") => Mode::All,
            _ => return None,
        };
        let key = match permission.get("resourcePartitionKey").filter(|key| !key.is_null()) {
            Some(key) => Some(PartitionKey::parse_json(&key.to_string()).ok()?),
            None => None,
        };
        let (link, item) = Link::parse_with_item(text("resource")?)?;
        let entry = self.container_around(&link)?;
        let scope = match (item, script_of(&link)) {
            (Some(id), None) if is_by_rid(&link, &entry.names) && ItemRid::parse(id).is_ok() => {
                GrantScope::ItemRid(id.to_owned())
            }
            (Some(id), None) => GrantScope::Item(id.to_owned()),
            (None, None) => GrantScope::Container,
            (None, Some(_)) => GrantScope::Script(self.script_rid(&link).await?),
            (Some(_), Some(_)) => return None,
        };
        Some(PermissionGrant { container: entry.rid, scope, mode, key })
    }

    /// Whether a grant allows a verb. What does not exist is not granted.
    pub(crate) async fn covers(
        &self,
        grant: &PermissionGrant,
        facts: &Facts<'_>,
    ) -> Result<bool, ServiceError> {
        if grant.mode == Mode::Read && facts.writes {
            return Ok(false);
        }
        let (link, inside) = match &facts.subject {
            Subject::Resource(link) => (link, false),
            Subject::Inside(link, _) => (link, true),
            Subject::Items(link, _) => (link, true),
        };
        let Some(entry) = self.container_around(link).filter(|it| it.rid == grant.container) else {
            return Ok(false);
        };
        match &facts.subject {
            Subject::Items(_, facts) => {
                let by_rid = is_by_rid(link, &entry.names);
                Box::pin(self.covers_items(grant, &entry.into(), by_rid, facts)).await
            }
            // Clients cannot find an item without reading its container first.
            Subject::Resource(link) if !facts.writes && link.kind() == Some(Kind::Container) => {
                Ok(true)
            }
            Subject::Resource(_) | Subject::Inside(..) => {
                Ok(self.covers_resource(grant, link, facts.writes, inside).await)
            }
        }
    }

    async fn covers_resource(
        &self,
        grant: &PermissionGrant,
        link: &Link,
        writes: bool,
        inside: bool,
    ) -> bool {
        match &grant.scope {
            GrantScope::Container => grant.key.is_none(),
            GrantScope::Item(_) | GrantScope::ItemRid(_) => false,
            GrantScope::Script(_) if inside => false,
            // A holder who runs a procedure and chooses its text could do anything.
            GrantScope::Script(_) if writes && script_of(link) == Some(Kind::StoredProcedure) => {
                false
            }
            GrantScope::Script(rid) => self.script_rid(link).await.as_ref() == Some(rid),
        }
    }

    async fn covers_items(
        &self,
        grant: &PermissionGrant,
        entry: &ResolvedContainer,
        by_rid: bool,
        facts: &ItemFacts<'_>,
    ) -> Result<bool, ServiceError> {
        if matches!(facts.reach, Reach::Layout) {
            return Ok(true);
        }
        let definition = entry.key_definition();
        let inside =
            |key: &PartitionKey| facts.reach.is_within(|given| definition.covers(key, given));
        if !grant.key.as_ref().is_none_or(inside) {
            return Ok(false);
        }
        match (&grant.scope, &facts.item) {
            (GrantScope::Container, _) => Ok(true),
            (GrantScope::Item(_) | GrantScope::ItemRid(_), Some(item)) => {
                self.covers_item(&grant.scope, entry, by_rid, item).await
            }
            (GrantScope::Script(rid), _) => self.covers_procedure(rid, entry, facts).await,
            (GrantScope::Item(_) | GrantScope::ItemRid(_), None) => Ok(false),
        }
    }

    /// Whether a verb runs the procedure of a grant. What that reads and writes is up to its
    /// text, within the key of the request.
    async fn covers_procedure(
        &self,
        rid: &str,
        entry: &ResolvedContainer,
        facts: &ItemFacts<'_>,
    ) -> Result<bool, ServiceError> {
        let Some(name) = facts.procedure else { return Ok(false) };
        let found = self.find(Kind::StoredProcedure, &entry.names.rid, name).await?;
        Ok(found.is_some_and(|found| found.record.rid == rid))
    }

    /// Whether an item is the one of a grant, and remains so.
    async fn covers_item(
        &self,
        scope: &GrantScope,
        entry: &ResolvedContainer,
        by_rid: bool,
        item: &NamedItem<'_>,
    ) -> Result<bool, ServiceError> {
        let addressed = item.id.as_str();
        let actual = match rid_of(entry.rid, item.id).filter(|_| by_rid) {
            Some(rid) => self.id_of_rid(entry, item.key, rid).await?,
            None => Some(addressed.to_owned()),
        };
        let granted = match scope {
            GrantScope::Item(id) => actual.as_ref() == Some(id),
            GrantScope::ItemRid(rid) => by_rid && addressed == rid,
            GrantScope::Container | GrantScope::Script(_) => false,
        };
        // A replacement may give its item another id, which is not granted.
        let stays = |body: &Bytes| actual.as_ref().is_some_and(|id| names(body, id));
        Ok(granted && item.replacement.is_none_or(stays))
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
        let mut meta = ResponseMeta::default();
        let stored = self.stored(link, &mut meta).await;
        // Listing permissions asks for one after the other.
        runtime::yield_now().await;
        stored.ok().map(|stored| stored.record.rid)
    }
}

/// The kind of script that a link names, if it names one.
fn script_of(link: &Link) -> Option<Kind> {
    link.kind().filter(|kind| kind.parent() == Some(Kind::Container))
}

fn names(body: &[u8], id: &str) -> bool {
    let text = json::canonical(body).ok();
    let named = text.as_deref().and_then(|text| Raw::trusted(text).get("id")?.as_str());
    named.is_some_and(|named| named == id)
}
