//! The verbs on resources of the catalogue.

mod container;
mod definition;
mod offers;
mod query;
mod resolve;
mod sweep;

use bytes::Bytes;
use cluster::{ClusterError, SystemWrite};
use model::etag::Etag;
use model::json::{Object, Value};
use model::rid::{ContainerRid, DatabaseRid, UserRid};
use model::throughput::Throughput;
use partition::{EffectKind, EtagMatch};

use crate::catalogue::kind::{Kind, Link};
use crate::catalogue::{Counters, Record, Stored, account_prefix, giving_way, item_prefix};
use crate::error::ServiceError;
use crate::pipeline::account;
use crate::pipeline::meta::{Amount, Holding, ResponseMeta};
use crate::request::{Conditions, ListResources, ResourceAction};
use crate::response::{Feed, ResourceReply, ResourceRest};
use crate::service::{Service, id_of};
use crate::throughput::offer::{Offer, OfferType};
use crate::verb::{Facts, Subject, Verb};
use query::PageBuilder;
use resolve::Parent;
pub use sweep::Swept;

/// The throughput that the creator of something asks for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) throughput: Option<Throughput>,
    pub(crate) offer_type: Option<OfferType>,
}

impl Verb for ResourceAction {
    type Reply = ResourceReply;
    /// It finds its resources itself, as finding and changing them must be one step.
    type Target = ();

    fn facts(&self) -> Facts<'_> {
        use ResourceAction::{Create, Delete, MigrateOffer, Read, Replace, Upsert};
        let (writes, subject) = match self {
            Read { link, .. } => (false, Subject::Resource(link)),
            Replace { link, .. } | MigrateOffer { link, .. } | Delete { link, .. } => {
                (true, Subject::Resource(link))
            }
            Create { parent, kind, .. } | Upsert { parent, kind, .. } => {
                (true, Subject::Inside(parent, *kind))
            }
        };
        Facts { writes, subject }
    }

    async fn resolve(&mut self, _: &Service, _: &mut ResponseMeta) -> Result<(), ServiceError> {
        Ok(())
    }

    async fn perform(
        self,
        service: &Service,
        (): (),
        meta: &mut ResponseMeta,
    ) -> Result<ResourceReply, ServiceError> {
        let writes = self.facts().writes;
        let done = service.act_on_resource(self, meta).await;
        meta.worked(&account::resource(writes, &done));
        done
    }
}

impl Verb for ListResources {
    type Reply = Feed<ResourceRest>;
    type Target = ();

    fn facts(&self) -> Facts<'_> {
        Facts { writes: false, subject: Subject::Inside(&self.parent, self.kind) }
    }

    async fn resolve(&mut self, _: &Service, _: &mut ResponseMeta) -> Result<(), ServiceError> {
        Ok(())
    }

    async fn perform(
        self,
        service: &Service,
        (): (),
        meta: &mut ResponseMeta,
    ) -> Result<Feed<ResourceRest>, ServiceError> {
        let done = service.list(self, meta).await;
        meta.worked(&account::resource_list(&done));
        done
    }
}

impl Service {
    async fn act_on_resource(
        &self,
        action: ResourceAction,
        meta: &mut ResponseMeta,
    ) -> Result<ResourceReply, ServiceError> {
        use ResourceAction::{Create, Delete, MigrateOffer, Read, Replace, Upsert};
        match action {
            Create { parent, kind, body, throughput, offer_type } => {
                let asked = Asked { throughput, offer_type };
                self.create(&parent, kind, &body, asked, meta).await
            }
            Upsert { parent, kind, body } => self.upsert(&parent, kind, &body, meta).await,
            Read { link, conditions } => self.read(&link, &conditions, meta).await,
            Replace { link, body, conditions } => {
                self.replace(&link, &body, &conditions, meta).await
            }
            MigrateOffer { link, migration, conditions } => {
                self.migrate_offer(&link, migration, &conditions, meta).await
            }
            Delete { link, conditions } => self.delete(&link, &conditions, meta).await,
        }
    }

    pub(crate) async fn create(
        &self,
        parent: &Link,
        kind: Kind,
        body: &Value,
        asked: Asked,
        meta: &mut ResponseMeta,
    ) -> Result<ResourceReply, ServiceError> {
        let mut counters = self.changes.lock().await;
        let parent = self.parent(parent, kind, meta).await?;
        let created = match kind {
            Kind::Database => self.create_database(&mut counters, body, asked).await,
            Kind::Container => {
                let created = self.create_container(&mut counters, &parent, body, asked).await;
                meta.shares_throughput =
                    created.as_ref().is_ok_and(|record| self.shares_throughput(&record.rid));
                created
            }
            Kind::Offer => {
                Err(ServiceError::invalid("Offers come into being with what they are for."))
            }
            Kind::User
            | Kind::Permission
            | Kind::ClientEncryptionKey
            | Kind::StoredProcedure
            | Kind::Trigger
            | Kind::UserDefinedFunction => {
                self.create_child(&mut counters, &parent, kind, body).await
            }
        };
        let record = created?;
        self.note_scripts(&record, meta).await;
        self.reply(&record, EffectKind::Created).await
    }

    pub(crate) async fn upsert(
        &self,
        parent: &Link,
        kind: Kind,
        body: &Value,
        meta: &mut ResponseMeta,
    ) -> Result<ResourceReply, ServiceError> {
        let name = definition::name(body)?;
        let link = parent.clone().child(kind, name.as_str());
        let link =
            link.ok_or_else(|| ServiceError::invalid("A resource of this kind cannot be here."))?;
        match self.replace(&link, body, &Conditions::default(), meta).await {
            Err(ServiceError::NotFound) => {
                self.create(parent, kind, body, Asked::default(), meta).await
            }
            other => other,
        }
    }

    pub(crate) async fn read(
        &self,
        link: &Link,
        conditions: &Conditions,
        meta: &mut ResponseMeta,
    ) -> Result<ResourceReply, ServiceError> {
        let stored = self.stored(link, meta).await?;
        let etag = Some(stored.etag.clone());
        let unchanged = conditions
            .if_none_match
            .as_ref()
            .is_some_and(|condition| condition.matches(&stored.etag));
        if unchanged {
            let kind = EffectKind::NotModified;
            return Ok(ResourceReply { kind, etag, body: None, offer: None });
        }
        self.note_scripts(&stored.record, meta).await;
        let (kind, body) = (EffectKind::Read, Some(stored.render()));
        self.shown(&stored.record, kind, etag, body).await
    }

    pub(crate) async fn replace(
        &self,
        link: &Link,
        body: &Value,
        conditions: &Conditions,
        meta: &mut ResponseMeta,
    ) -> Result<ResourceReply, ServiceError> {
        let _one_at_a_time = self.changes.lock().await;
        let old = self.stored(link, meta).await?.record;
        let if_match = conditions.if_match.clone();
        let record = match old.kind {
            Kind::Database => return Err(ServiceError::invalid("Databases cannot be replaced.")),
            Kind::Container => self.replace_container(old, body, if_match).await?,
            Kind::Offer => self.replace_offer(old, body, if_match).await?,
            Kind::User
            | Kind::Permission
            | Kind::ClientEncryptionKey
            | Kind::StoredProcedure
            | Kind::Trigger
            | Kind::UserDefinedFunction => self.replace_child(old, body, if_match).await?,
        };
        self.note_scripts(&record, meta).await;
        self.reply(&record, EffectKind::Replaced).await
    }

    pub(crate) async fn delete(
        &self,
        link: &Link,
        conditions: &Conditions,
        meta: &mut ResponseMeta,
    ) -> Result<ResourceReply, ServiceError> {
        let _one_at_a_time = self.changes.lock().await;
        let record = self.stored(link, meta).await?.record;
        let if_match = conditions.if_match.clone();
        match record.kind {
            Kind::Database => self.delete_database(&record, if_match).await?,
            Kind::Container => self.delete_container(&record, if_match).await?,
            Kind::Offer => {
                return Err(ServiceError::invalid("Offers go away with what they are for."));
            }
            Kind::ClientEncryptionKey => {
                return Err(ServiceError::invalid(
                    "Client encryption keys go away with their database: items may need them.",
                ));
            }
            Kind::User
            | Kind::Permission
            | Kind::StoredProcedure
            | Kind::Trigger
            | Kind::UserDefinedFunction => {
                let mut writes = vec![SystemWrite::Delete { id: record.item_id(), if_match }];
                if record.kind == Kind::User {
                    writes.push(sweep::mark(&record.rid));
                }
                self.cluster.write_system(writes).await?;
            }
        }
        self.dropped.notify_one();
        Ok(ResourceReply { kind: EffectKind::Deleted, etag: None, body: None, offer: None })
    }

    async fn list(
        &self,
        ListResources { parent, kind, after, items_max }: ListResources,
        meta: &mut ResponseMeta,
    ) -> Result<Feed<ResourceRest>, ServiceError> {
        let parent = self.parent(&parent, kind, meta).await?;
        let records = self.records(kind, parent.rid())?.after(after.as_deref());
        let mut page = PageBuilder::new(items_max, &self.limits);
        let listed = self.read_records(move |turn| {
            let mut last = None;
            for stored in giving_way(records, turn) {
                let stored = stored?;
                if !page.takes(stored.render()) {
                    return Ok((page.rows, last.map(ResourceRest::AfterName)));
                }
                last = Some(stored.record.name().to_owned());
            }
            Ok((page.rows, None))
        });
        let (bodies, rest) = listed.await?;
        Ok(Feed { owner_rid: parent.rid().to_owned(), bodies, rest })
    }

    async fn create_database(
        &self,
        counters: &mut Counters,
        body: &Value,
        asked: Asked,
    ) -> Result<Record, ServiceError> {
        let name = definition::name(body)?;
        self.check_account_quota()?;
        let rid = counters.database()?;
        let mut record = Record {
            kind: Kind::Database,
            parent_rid: String::new(),
            rid: rid.to_string(),
            self_link: format!("dbs/{rid}/"),
            definition: Object::from_iter([("id", name.as_str())]),
            private: Object::new(),
        };
        let mut writes = Vec::new();
        let offer = match asked.throughput {
            Some(throughput) => {
                let own = offers::check_new(self, throughput, false)?;
                Some(Offer::new(own, true))
            }
            None => None,
        };
        if let Some(offer) = &offer {
            writes.push(self.new_offer(counters, &mut record, (offer, asked.offer_type))?);
        }
        writes.push(SystemWrite::Create { id: record.item_id(), body: record.body() });
        writes.push(counters.write());
        self.cluster.write_system(writes).await.map_err(taken)?;
        self.directory_mut().insert_database(name.as_str(), rid, self.pool(offer.as_ref()));
        Ok(record)
    }

    /// One transaction drops the database with as many containers as fit. The others are
    /// unreachable from then on, as resource ids are never reused, and follow in
    /// transactions of their own. If one fails, or the process crashes in between, the
    /// sweep finds them by the tombstone record.
    async fn delete_database(
        &self,
        record: &Record,
        if_match: Option<EtagMatch>,
    ) -> Result<(), ServiceError> {
        let mut writes =
            vec![SystemWrite::Delete { id: record.item_id(), if_match }, sweep::mark(&record.rid)];
        offers::push_delete(&mut writes, record);
        self.delete_some_containers(&record.rid, writes).await?;
        self.directory_mut().remove_database(record.name());
        if let Err(error) = self.delete_containers_of(&record.rid).await {
            tracing::warn!(%error, database = record.name(), "left containers to the sweep");
        }
        Ok(())
    }

    /// Creates a user, permission or script: a checked definition and nothing else.
    async fn create_child(
        &self,
        counters: &mut Counters,
        parent: &Parent,
        kind: Kind,
        body: &Value,
    ) -> Result<Record, ServiceError> {
        let definition = definition::parse(kind, body)?;
        self.check_child_quota(kind, parent).await?;
        self.check_holder_quota(counters, kind).await?;
        let rid = child_rid(counters, kind, parent)?;
        let record = Record {
            kind,
            parent_rid: parent.rid().to_owned(),
            self_link: format!("{}{}/{rid}/", parent.self_link(), kind.segment()),
            rid,
            definition,
            private: Object::new(),
        };
        let write = SystemWrite::Create { id: record.item_id(), body: record.body() };
        self.cluster.write_system(vec![write, counters.write()]).await.map_err(taken)?;
        Ok(record)
    }

    /// Replaces it, under another name if the body has one.
    async fn replace_child(
        &self,
        old: Record,
        body: &Value,
        if_match: Option<EtagMatch>,
    ) -> Result<Record, ServiceError> {
        let record = Record { definition: definition::parse(old.kind, body)?, ..old.clone() };
        let (id, body) = (record.item_id(), record.body());
        let writes = if record.name() == old.name() {
            vec![SystemWrite::Replace { id, body, if_match }]
        } else {
            vec![
                SystemWrite::Delete { id: old.item_id(), if_match },
                SystemWrite::Create { id, body },
            ]
        };
        self.cluster.write_system(writes).await.map_err(taken)?;
        Ok(record)
    }

    fn check_account_quota(&self) -> Result<(), ServiceError> {
        let max = self.limits.databases_and_containers_max;
        if self.directory().len() < max {
            return Ok(());
        }
        Err(ServiceError::Quota {
            message: format!(
                "The account has {max} databases and containers, which is the maximum."
            ),
        })
    }

    async fn check_child_quota(&self, kind: Kind, parent: &Parent) -> Result<(), ServiceError> {
        let Some(max) = self.scripts_max(kind) else { return Ok(()) };
        if self.count_up_to(max, kind, parent.rid()).await? < max {
            return Ok(());
        }
        Err(ServiceError::Quota {
            message: format!("The container has {max} {}, which is the maximum.", kind.segment()),
        })
    }

    /// Users and permissions are limited for the account. They are only counted once as many
    /// were created: counting hundreds of thousands takes seconds.
    async fn check_holder_quota(
        &self,
        counters: &Counters,
        kind: Kind,
    ) -> Result<(), ServiceError> {
        let Some(max) = self.holders_max(kind) else { return Ok(()) };
        let created = usize::try_from(counters.created(kind)).unwrap_or(usize::MAX);
        if created < max || self.count_items(max, &account_prefix(kind)).await? < max {
            return Ok(());
        }
        Err(ServiceError::Quota {
            message: format!("The account has {max} {}, which is the maximum.", kind.segment()),
        })
    }

    /// How many users or permissions an account may have.
    fn holders_max(&self, kind: Kind) -> Option<usize> {
        match kind {
            Kind::User => Some(self.limits.users_max),
            Kind::Permission => Some(self.limits.permissions_max),
            Kind::Database
            | Kind::Container
            | Kind::ClientEncryptionKey
            | Kind::StoredProcedure
            | Kind::Trigger
            | Kind::UserDefinedFunction
            | Kind::Offer => None,
        }
    }

    /// How many scripts of a kind a container may have.
    fn scripts_max(&self, kind: Kind) -> Option<usize> {
        match kind {
            Kind::StoredProcedure => Some(self.limits.stored_procedures_max),
            Kind::Trigger => Some(self.limits.triggers_max),
            Kind::UserDefinedFunction => Some(self.limits.user_defined_functions_max),
            Kind::Database
            | Kind::Container
            | Kind::User
            | Kind::Permission
            | Kind::ClientEncryptionKey
            | Kind::Offer => None,
        }
    }

    /// Counts the resources of a kind, up to a limit.
    async fn count_up_to(
        &self,
        max: usize,
        kind: Kind,
        parent: &str,
    ) -> Result<usize, ServiceError> {
        self.count_items(max, &item_prefix(kind, parent)).await
    }

    /// Counts the items of the catalogue whose ids begin so, up to a limit.
    async fn count_items(&self, max: usize, prefix: &str) -> Result<usize, ServiceError> {
        let (mut count, mut after) = (0, None);
        while count < max {
            let listing = self.cluster.list_system(prefix, after.as_deref(), max - count);
            let (items, more) = listing.await?;
            count += items.len();
            after = items.last().map(id_of);
            if !more {
                break;
            }
        }
        Ok(count)
    }

    /// Records how many scripts there are beside this one, if it is one. The change is
    /// done, whether or not that can be found out.
    async fn note_scripts(&self, record: &Record, meta: &mut ResponseMeta) {
        if self.scripts_max(record.kind).is_some() {
            meta.holding = self.count_scripts(&record.parent_rid).await.ok();
        }
    }

    async fn count_scripts(&self, container: &str) -> Result<Holding, ServiceError> {
        let amount = async |kind: Kind| -> Result<Amount, ServiceError> {
            let max = self.scripts_max(kind).unwrap_or_default();
            Ok(Amount { count: self.count_up_to(max, kind, container).await?, max })
        };
        Ok(Holding::Scripts {
            procedures: amount(Kind::StoredProcedure).await?,
            triggers: amount(Kind::Trigger).await?,
            functions: amount(Kind::UserDefinedFunction).await?,
        })
    }

    /// The answer after a write: what is stored now.
    async fn reply(
        &self,
        record: &Record,
        kind: EffectKind,
    ) -> Result<ResourceReply, ServiceError> {
        let item = self.cluster.read_system(&record.item_id())?.ok_or(ServiceError::NotFound)?;
        let stored = Stored::read(record.kind, &record.parent_rid, &item)?;
        self.shown(record, kind, Some(stored.etag.clone()), Some(stored.render())).await
    }

    /// A resource as it is returned. Offers have more than their text.
    async fn shown(
        &self,
        record: &Record,
        kind: EffectKind,
        etag: Option<Etag>,
        body: Option<Bytes>,
    ) -> Result<ResourceReply, ServiceError> {
        let offer =
            if record.kind == Kind::Offer { Some(self.offer_status(record).await?) } else { None };
        Ok(ResourceReply { kind, etag, body, offer })
    }
}

fn child_rid(counters: &mut Counters, kind: Kind, parent: &Parent) -> Result<String, ServiceError> {
    use model::rid::ChildKind;
    let rid = parent.rid();
    let script = |counters: &mut Counters, child| {
        let container = ContainerRid::parse(rid).map_err(ServiceError::internal)?;
        counters.script(container, child).map(|rid| rid.to_string())
    };
    match kind {
        Kind::User | Kind::ClientEncryptionKey => {
            Ok(counters.user(DatabaseRid::parse(rid).map_err(ServiceError::internal)?)?.to_string())
        }
        Kind::Permission => Ok(counters
            .permission(UserRid::parse(rid).map_err(ServiceError::internal)?)
            .to_string()),
        Kind::StoredProcedure => script(counters, ChildKind::StoredProcedure),
        Kind::Trigger => script(counters, ChildKind::Trigger),
        Kind::UserDefinedFunction => script(counters, ChildKind::UserDefinedFunction),
        Kind::Database | Kind::Container | Kind::Offer => {
            Err(ServiceError::internal("not a child"))
        }
    }
}

/// An existing catalogue entry means that the name is taken; an id too long for the
/// catalogue means that the name is too long.
fn taken(error: ClusterError) -> ServiceError {
    if let ClusterError::System(error) = error { error.into() } else { error.into() }
}
