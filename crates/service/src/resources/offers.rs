//! Offers: made with a database or container, changed by themselves, gone with it.

use cluster::SystemWrite;
use model::json::{Object, Value};
use model::throughput::Throughput;
use partition::EtagMatch;

use super::resolve::Parent;
use crate::catalogue::{Counters, Record, Stored, item_id};
use crate::error::ServiceError;
use crate::kind::Kind;
use crate::offer;
use crate::service::Service;

impl Service {
    /// The write that makes an offer for `owner`, which learns its resource id.
    pub(super) fn new_offer(
        &self,
        counters: &mut Counters,
        owner: &mut Record,
        throughput: Throughput,
    ) -> Result<SystemWrite, ServiceError> {
        let keyless = is_keyless(owner);
        let throughput = throughput.check_new(&self.limits, keyless)?;
        let rid = counters.offer()?.to_string();
        let mut definition = Object::new();
        definition.insert("resource", owner.self_link.as_str());
        definition.insert("offerType", "Invalid");
        definition.insert("offerResourceId", owner.rid.as_str());
        definition.insert("offerVersion", "V2");
        definition.insert("content", offer::content(throughput, throughput.rate()));
        definition.insert("id", rid.as_str());
        owner.private.insert("offer", rid.as_str());
        let self_link = format!("offers/{rid}/");
        let private = Object::from_iter([("keyless", keyless)]);
        let (kind, parent_rid) = (Kind::Offer, String::new());
        let offer = Record { kind, parent_rid, rid, self_link, definition, private };
        Ok(SystemWrite::Create { id: offer.item_id(), body: offer.body() })
    }

    pub(super) async fn replace_offer(
        &self,
        old: Record,
        body: &Value,
        if_match: Option<EtagMatch>,
    ) -> Result<Record, ServiceError> {
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
        let keyless = old.private.get("keyless").and_then(Value::as_bool).unwrap_or(false);
        let throughput = offer::parse_content(content)?.check_new(&self.limits, keyless)?;
        let highest = highest_ever(&old).max(throughput.rate());
        let mut record = old;
        record.definition.insert("content", offer::content(throughput, highest));
        let write = SystemWrite::Replace { id: record.item_id(), body: record.body(), if_match };
        self.cluster.write_system(vec![write]).await?;
        Ok(record)
    }

    /// The throughput that a database has to share among its containers, if any.
    pub(super) fn shared_throughput(&self, parent: &Parent) -> Result<Option<u32>, ServiceError> {
        let mut offer = None;
        self.each_record(Kind::Database, "", |stored| {
            if stored.record.rid == parent.rid() {
                offer =
                    stored.record.private.get("offer").and_then(Value::as_str).map(str::to_owned);
            }
            Ok(())
        })?;
        let Some(rid) = offer else { return Ok(None) };
        let item = self.cluster.read_system(&item_id(Kind::Offer, "", &rid))?;
        let Some(item) = item else { return Ok(None) };
        let definition = Stored::read(Kind::Offer, "", &item)?.record.definition;
        let content = definition.get("content").unwrap_or(&Value::Null);
        Ok(Some(offer::parse_content(content)?.rate()))
    }
}

/// Adds the write that removes the offer of a record, if it has one.
pub(super) fn push_delete(writes: &mut Vec<SystemWrite>, record: &Record) {
    if let Some(rid) = record.private.get("offer").and_then(Value::as_str) {
        writes.push(SystemWrite::Delete { id: item_id(Kind::Offer, "", rid), if_match: None });
    }
}

/// Whether it is a container that all of lies in one logical partition.
fn is_keyless(owner: &Record) -> bool {
    owner.kind == Kind::Container && owner.definition.get("partitionKey").is_none()
}

fn highest_ever(offer: &Record) -> u32 {
    let history = offer
        .definition
        .get("content")
        .and_then(|content| content.get("offerMinimumThroughputParameters"));
    let highest = history.and_then(|history| history.get("maxThroughputEverProvisioned"));
    highest.and_then(Value::as_number).and_then(|n| u32::try_from(n.as_i64()?).ok()).unwrap_or(0)
}
