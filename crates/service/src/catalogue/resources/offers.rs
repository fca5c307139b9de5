//! Offers: created with a database or container, changed on their own, deleted with it.
//!
//! A change that the physical partitions can serve as they are takes effect at once. Any
//! other is stored as pending and carried out by [`Maintenance::scale`], which splits as
//! far as needed, also after a restart.

use std::sync::Arc;

use cluster::{Container, SystemWrite};
use model::json::{Object, Value};
use model::throughput::{Footprint, Throughput};
use partition::EtagMatch;

use crate::catalogue::kind::{Kind, Link};
use crate::catalogue::{Counters, Record, Stored, item_id};
use crate::error::ServiceError;
use crate::maintenance::Maintenance;
use crate::pipeline::meta::ResponseMeta;
use crate::request::Conditions;
use crate::response::ResourceReply;
use crate::service::Service;
use crate::throughput::offer::{self, Migration, Offer, OfferStatus, OfferType, offer_owner};
use crate::throughput::provision::can_grow;

/// What an offer is for, as it is now.
enum Owner {
    Container(Arc<Container>),
    /// A database with the containers that share its throughput.
    Database {
        rid: String,
        sharing: Vec<Arc<Container>>,
    },
}

impl Owner {
    fn containers(&self) -> &[Arc<Container>] {
        match self {
            Owner::Container(container) => std::slice::from_ref(container),
            Owner::Database { sharing, .. } => sharing,
        }
    }

    fn is_database(&self) -> bool {
        matches!(self, Owner::Database { .. })
    }
}

impl Maintenance<'_> {
    /// Carries out the changes of throughput that wait for splits, and raises autoscale
    /// maxima that the stored data has outgrown. Returns the number of splits.
    ///
    /// To be called after a start and whenever [`Maintenance::scaling_wanted`] says so.
    pub async fn scale(self) -> Result<usize, ServiceError> {
        self.service.raise_outgrown().await?;
        let waiting =
            |Stored { record, .. }: Stored| Ok(Offer::read(&record)?.pending.then_some(record));
        let mut splits = 0;
        for record in self.service.select_records(Kind::Offer, "", waiting).await? {
            splits += self.service.scale_one(record).await?;
        }
        Ok(splits)
    }
}

impl Service {
    /// The write that creates an offer for `owner`, which gets its resource id.
    pub(super) fn new_offer(
        &self,
        counters: &mut Counters,
        owner: &mut Record,
        (offer, offer_type): (&Offer, Option<OfferType>),
    ) -> Result<SystemWrite, ServiceError> {
        let rid = counters.offer()?.to_string();
        let mut definition = Object::new();
        definition.insert("resource", owner.self_link.as_str());
        definition.insert("offerType", offer_type.unwrap_or(OfferType::NONE).as_str());
        definition.insert("offerResourceId", owner.rid.as_str());
        definition.insert("offerVersion", "V2");
        definition.insert("content", Value::Null);
        definition.insert("id", rid.as_str());
        owner.private.insert("offer", rid.as_str());
        let self_link = format!("offers/{rid}/");
        let (kind, parent_rid, private) = (Kind::Offer, String::new(), Object::new());
        let mut record = Record { kind, parent_rid, rid, self_link, definition, private };
        offer.write(&mut record);
        Ok(SystemWrite::Create { id: record.item_id(), body: record.body() })
    }

    pub(super) async fn replace_offer(
        &self,
        old: Record,
        body: &Value,
        if_match: Option<EtagMatch>,
    ) -> Result<Record, ServiceError> {
        if body.get("_rid").and_then(Value::as_str) != Some(&old.rid) {
            return Err(ServiceError::invalid(
                "The '_rid' of the offer in the body is not that of the offer in the path.",
            ));
        }
        for fixed in ["resource", "offerResourceId"] {
            if body.get(fixed).is_some_and(|value| old.definition.get(fixed) != Some(value)) {
                return Err(ServiceError::invalid(format!(
                    "The property '{fixed}' of an offer cannot change."
                )));
            }
        }
        let content = body
            .get("content")
            .ok_or_else(|| ServiceError::invalid("The offer has no content."))?;
        let wanted = offer::parse_content(content, self.limits.autoscale_throughput_min)?;
        let mut old = old;
        let offer_type = body.get("offerType").and_then(Value::as_str);
        if let Some(offer_type) = offer_type.and_then(OfferType::parse) {
            old.definition.insert("offerType", offer_type.as_str());
        }
        self.change_offer(old, if_match, |_, _| wanted).await
    }

    /// Changes an offer to the other kind of throughput. The initial value follows from the
    /// old one; the client cannot choose it.
    pub(crate) async fn migrate_offer(
        &self,
        link: &Link,
        migration: Migration,
        conditions: &Conditions,
        meta: &mut ResponseMeta,
    ) -> Result<ResourceReply, ServiceError> {
        let _one_at_a_time = self.changes.lock().await;
        let old = self.stored(link, meta).await?.record;
        if old.kind != Kind::Offer {
            return Err(ServiceError::invalid("Only offers can be migrated."));
        }
        let wanted = |offer: &Offer, footprint: &_| match (migration, offer.throughput) {
            (Migration::ToAutoscale, Throughput::Manual(_)) => {
                offer.throughput.migrated_to_autoscale(&self.limits, footprint)
            }
            (Migration::ToManual, Throughput::Autoscale { .. }) => {
                offer.throughput.migrated_to_manual()
            }
            (Migration::ToAutoscale, Throughput::Autoscale { .. })
            | (Migration::ToManual, Throughput::Manual(_)) => offer.throughput,
        };
        let record = self.change_offer(old, conditions.if_match.clone(), wanted).await?;
        self.reply(&record, partition::EffectKind::Replaced).await
    }

    async fn change_offer(
        &self,
        mut record: Record,
        if_match: Option<EtagMatch>,
        wanted: impl FnOnce(&Offer, &Footprint) -> Throughput,
    ) -> Result<Record, ServiceError> {
        let mut offer = Offer::read(&record)?;
        if offer.pending {
            return Err(ServiceError::Scaling);
        }
        let owner = self.owner(&record)?;
        let footprint = self.footprint(&offer, owner.containers(), owner.is_database()).await?;
        let wanted = wanted(&offer, &footprint).check(&self.limits, &footprint)?;
        offer.change(wanted);
        offer.pending = !self.is_carried(&offer, owner.containers());
        offer.write(&mut record);
        let write = SystemWrite::Replace { id: record.item_id(), body: record.body(), if_match };
        self.cluster.write_system(vec![write]).await?;
        self.put_in_force(&owner, &offer);
        if offer.pending {
            self.scaling.notify_one();
        }
        Ok(record)
    }

    /// What clients see of an offer besides its text.
    pub(crate) async fn offer_status(&self, record: &Record) -> Result<OfferStatus, ServiceError> {
        let (offer, owner) = (Offer::read(record)?, self.owner(record)?);
        let footprint = self.footprint(&offer, owner.containers(), owner.is_database()).await?;
        let minimum = offer.throughput.minimum(&self.limits, &footprint);
        Ok(OfferStatus { minimum, pending: offer.pending })
    }

    /// An autoscale maximum also limits how much may be stored: it grows with the data.
    async fn raise_outgrown(&self) -> Result<(), ServiceError> {
        let _one_at_a_time = self.changes.lock().await;
        let scaling = |Stored { record, .. }: Stored| {
            let Offer { throughput, pending, .. } = Offer::read(&record)?;
            let scales = matches!(throughput, Throughput::Autoscale { .. }) && !pending;
            Ok(scales.then(|| (record, throughput.rate())))
        };
        for (record, rate) in self.select_records(Kind::Offer, "", scaling).await? {
            let higher = rate + 1..=self.limits.throughput_max;
            if !higher.contains(&self.offer_status(&record).await?.minimum) {
                continue;
            }
            let raised = |offer: &Offer, footprint: &Footprint| {
                let minimum = offer.throughput.minimum(&self.limits, footprint);
                offer.throughput.at(minimum)
            };
            self.change_offer(record, None, raised).await?;
        }
        Ok(())
    }

    async fn scale_one(&self, record: Record) -> Result<usize, ServiceError> {
        let owner = match self.owner(&record) {
            Ok(owner) => owner,
            // It was dropped since, and its offer with it.
            Err(ServiceError::OwnerNotFound) => return Ok(0),
            Err(error) => return Err(error),
        };
        let rate = Offer::read(&record)?.throughput.rate();
        let mut splits = 0;
        for container in owner.containers().iter().filter(|container| can_grow(container)) {
            splits += self.grow(container, rate).await?;
        }
        let _one_at_a_time = self.changes.lock().await;
        let Some(item) = self.cluster.read_system(&record.item_id())? else { return Ok(splits) };
        let mut record = Stored::read(Kind::Offer, "", &item)?.record;
        let mut offer = Offer::read(&record)?;
        offer.pending = false;
        offer.write(&mut record);
        let (id, body) = (record.item_id(), record.body());
        let write = SystemWrite::Replace { id, body, if_match: None };
        self.cluster.write_system(vec![write]).await?;
        Ok(splits)
    }

    async fn grow(&self, container: &Arc<Container>, rate: u32) -> Result<usize, ServiceError> {
        if container.map().is_weighted() {
            return self.split_overfull(container, rate).await;
        }
        let ranges = self.limits.ranges_for_scaling(rate);
        Ok(self.cluster.grow_to(container, ranges).await?.len())
    }

    fn put_in_force(&self, owner: &Owner, offer: &Offer) {
        match owner {
            Owner::Container(container) => {
                container.throughput().provide(self.plan(Some(offer), None));
            }
            Owner::Database { rid, sharing } => {
                let pool =
                    self.directory().database_of_rid(rid).and_then(|entry| entry.pool.clone());
                if let Some(pool) = pool {
                    pool.provide(self.pooled_rate(offer));
                    for container in sharing {
                        container.throughput().provide(self.plan(None, Some(&pool)));
                    }
                }
            }
        }
    }

    fn owner(&self, offer: &Record) -> Result<Owner, ServiceError> {
        let rid = offer_owner(offer);
        let rid = rid.ok_or_else(|| ServiceError::internal("an offer has no owner"))?;
        let directory = self.directory();
        if let Some(container) = directory.container_of_rid(rid) {
            return Ok(Owner::Container(Arc::clone(&container.container)));
        }
        let database = directory.database_of_rid(rid).ok_or(ServiceError::OwnerNotFound)?;
        let shared = database.containers.values().filter(|entry| entry.shares_throughput);
        let sharing = shared.map(|entry| Arc::clone(&entry.container)).collect();
        Ok(Owner::Database { rid: rid.to_owned(), sharing })
    }

    /// The offer of the resource with that id, if it has one of its own.
    pub(crate) async fn offer_for(
        &self,
        rid: &str,
    ) -> Result<Option<(Record, Offer)>, ServiceError> {
        let rid = rid.to_owned();
        let of_it = move |Stored { record, .. }: Stored| match offer_owner(&record) {
            Some(owner) if owner == rid => Ok(Some((Offer::read(&record)?, record))),
            Some(_) | None => Ok(None),
        };
        let found = self.select_records(Kind::Offer, "", of_it).await?.pop();
        Ok(found.map(|(offer, record)| (record, offer)))
    }

    /// The offer that a record names, if it names one.
    pub(crate) fn offer_of(&self, owner: &Record) -> Result<Option<Offer>, ServiceError> {
        let Some(rid) = owner.private.get("offer").and_then(Value::as_str) else {
            return Ok(None);
        };
        let item = self.cluster.read_system(&item_id(Kind::Offer, "", rid))?;
        let Some(item) = item else { return Ok(None) };
        Ok(Some(Offer::read(&Stored::read(Kind::Offer, "", &item)?.record)?))
    }
}

/// Checks the throughput of something new.
pub(super) fn check_new(
    service: &Service,
    throughput: Throughput,
    keyless: bool,
) -> Result<Throughput, ServiceError> {
    if service.rules.serverless {
        return Err(ServiceError::invalid(
            "Setting offer throughput or autopilot on container is not supported for serverless accounts.",
        ));
    }
    Ok(throughput.check_new(&service.limits, keyless)?)
}

/// Adds the write that removes the offer of a record, if it has one.
pub(super) fn push_delete(writes: &mut Vec<SystemWrite>, record: &Record) {
    if let Some(rid) = record.private.get("offer").and_then(Value::as_str) {
        writes.push(SystemWrite::Delete { id: item_id(Kind::Offer, "", rid), if_match: None });
    }
}
