//! Containers: the resources that are stored in partitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use cluster::{ContainerSpec, SystemWrite};
use model::json::{Object, Value};
use model::limits::{Growth, Provisioned};
use model::policy::{ContainerDefinition, IndexingPolicy};
use model::rid::{ContainerRid, DatabaseRid};
use model::throughput::Throughput;
use partition::{ContainerNumber, EtagMatch};
use query::syntax::Selection;
use query::{Parameters, Query, QueryError};

use super::resolve::Parent;
use super::{Asked, definition, offers, sweep, taken};
use crate::catalogue::kind::Kind;
use crate::catalogue::{Counters, Record};
use crate::error::ServiceError;
use crate::service::{Service, container_number, container_spec};
use crate::throughput::offer::Offer;

/// Containers that are dropped in one transaction: a handful of writes for each.
const DROP_STEP: usize = 256;

impl Service {
    pub(super) async fn create_container(
        &self,
        counters: &mut Counters,
        parent: &Parent,
        body: &Value,
        asked: Asked,
    ) -> Result<Record, ServiceError> {
        let name = definition::name(body)?;
        let definition = parse_definition(body)?;
        definition.conflict_resolution().check_new()?;
        self.check_account_quota()?;
        let database = DatabaseRid::parse(parent.rid()).map_err(ServiceError::internal)?;
        let keyless = definition.partition_key().paths().is_empty();
        let (provisioned, offer) = self.provision_new(parent, keyless, asked.throughput).await?;
        let growth = self.limits.growth_at_creation(keyless, provisioned);
        let spec = ContainerSpec {
            number: counters.number()?,
            rid: counters.container(database)?,
            policies: BTreeMap::from([(0, definition.indexing().clone())]),
            definition: Arc::new(definition),
            index_seed: self.runtime.random.next_u64(),
            growth,
        };
        let mut record = new_record(parent, &spec);
        let mut writes = Vec::new();
        if let Some(offer) = &offer {
            writes.push(self.new_offer(counters, &mut record, (offer, asked.offer_type))?);
        }
        let ranges = match growth {
            Growth::Fixed => 1,
            Growth::Unlimited => self.limits.ranges_at_creation(provisioned),
        };
        writes.push(SystemWrite::Create { id: record.item_id(), body: record.body() });
        writes.push(counters.write());
        let rid = spec.rid;
        let container = self.cluster.create_container(spec, ranges, writes).await.map_err(taken)?;
        let pool = self.directory().database_of_rid(parent.rid()).and_then(|it| it.pool.clone());
        container.throughput().provide(self.plan(offer.as_ref(), pool.as_ref()));
        let shares = offer.is_none() && pool.is_some();
        self.directory_mut().insert_container(name.as_str(), rid, container, shares);
        Ok(record)
    }

    pub(super) async fn replace_container(
        &self,
        old: Record,
        body: &Value,
        if_match: Option<EtagMatch>,
    ) -> Result<Record, ServiceError> {
        let mut definition = parse_definition(body)?;
        let mut spec = container_spec(&old)?;
        // It cannot be changed, so who does not mention it does not change it.
        if body.get("conflictResolutionPolicy").is_none() {
            definition = definition.resolving_conflicts_as(&spec.definition);
        }
        if definition.conflict_resolution() != spec.definition.conflict_resolution() {
            definition.conflict_resolution().check_new()?;
        }
        spec.definition.check_replace(&definition)?;
        if let Some((version, current)) = spec.policies.last_key_value()
            && current != definition.indexing()
        {
            // Items written before keep their entries under the version they name, until
            // they are re-indexed.
            spec.policies.insert(version + 1, definition.indexing().clone());
        }
        let outdated = spec.policies.len() > 1;
        spec.definition = Arc::new(definition);
        let record = Record {
            definition: visible_definition(&spec.definition),
            private: private(&spec, old.private.get("offer")),
            ..old
        };
        let write = SystemWrite::Replace { id: record.item_id(), body: record.body(), if_match };
        self.cluster.replace_container(spec, vec![write]).await?;
        if outdated {
            self.reindexing.notify_one();
        }
        Ok(record)
    }

    /// Records that no item is left under a policy before this version.
    pub(crate) async fn forget_policies(&self, rid: &str, before: u32) -> Result<(), ServiceError> {
        let _one_at_a_time = self.changes.lock().await;
        let Some(old) = self.container_record(rid).await? else { return Ok(()) };
        let mut spec = container_spec(&old)?;
        spec.policies = spec.policies.split_off(&before);
        let record = Record { private: private(&spec, old.private.get("offer")), ..old };
        let write =
            SystemWrite::Replace { id: record.item_id(), body: record.body(), if_match: None };
        self.cluster.replace_container(spec, vec![write]).await?;
        Ok(())
    }

    /// The record of a container, if it was not dropped.
    async fn container_record(&self, rid: &str) -> Result<Option<Record>, ServiceError> {
        let parsed = ContainerRid::parse(rid).map_err(ServiceError::internal)?;
        let database = parsed.database().to_string();
        let found = self.find_by_rid(Kind::Container, &database, rid).await?;
        Ok(found.map(|stored| stored.record))
    }

    pub(super) async fn delete_container(
        &self,
        record: &Record,
        if_match: Option<EtagMatch>,
    ) -> Result<(), ServiceError> {
        let mut writes = Vec::new();
        let number = push_delete(&mut writes, record, if_match)?;
        self.cluster.drop_containers(&[number], writes).await?;
        let rid = ContainerRid::parse(&record.rid).map_err(ServiceError::internal)?;
        self.directory_mut().remove_container(rid);
        Ok(())
    }

    /// Drops all containers of a database that is dropped itself. Only to be called while
    /// holding the lock on changes.
    pub(super) async fn delete_containers_of(&self, database: &str) -> Result<(), ServiceError> {
        while self.delete_some_containers(database, Vec::new()).await? > 0 {}
        Ok(())
    }

    /// Drops the first containers of a database in one transaction with other writes.
    /// Returns how many there were.
    pub(super) async fn delete_some_containers(
        &self,
        database: &str,
        mut writes: Vec<SystemWrite>,
    ) -> Result<usize, ServiceError> {
        let mut numbers = Vec::new();
        for stored in self.first_records(Kind::Container, database, DROP_STEP).await? {
            numbers.push(push_delete(&mut writes, &stored.record, None)?);
        }
        if !writes.is_empty() {
            self.cluster.drop_containers(&numbers, writes).await?;
        }
        Ok(numbers.len())
    }

    /// The throughput of a new container: its own, unless it shares its database's or the
    /// account is serverless.
    async fn provision_new(
        &self,
        parent: &Parent,
        keyless: bool,
        asked: Option<Throughput>,
    ) -> Result<(Provisioned, Option<Offer>), ServiceError> {
        let own = match asked {
            Some(asked) => offers::check_new(self, asked, keyless)?,
            None if self.rules.serverless => return Ok((Provisioned::Serverless, None)),
            None => match self.offer_of_database(parent).await? {
                Some(shared) => return Ok((Provisioned::Shared(shared.throughput.rate()), None)),
                None => Throughput::default_of(&self.limits),
            },
        };
        Ok((own.provisioned(), Some(Offer::new(own, asked.is_some()))))
    }

    /// Whether a container only has its database's throughput.
    pub(super) fn shares_throughput(&self, rid: &str) -> bool {
        self.directory().container_of_rid(rid).is_some_and(|entry| entry.shares_throughput)
    }

    async fn offer_of_database(&self, parent: &Parent) -> Result<Option<Offer>, ServiceError> {
        let database = self.find_by_rid(Kind::Database, "", parent.rid()).await?;
        database.map_or(Ok(None), |stored| self.offer_of(&stored.record))
    }
}

/// Adds the writes that remove a container from the catalogue.
pub(super) fn push_delete(
    writes: &mut Vec<SystemWrite>,
    record: &Record,
    if_match: Option<EtagMatch>,
) -> Result<ContainerNumber, ServiceError> {
    writes.push(SystemWrite::Delete { id: record.item_id(), if_match });
    writes.push(sweep::mark(&record.rid));
    offers::push_delete(writes, record);
    container_number(record)
}

/// Checks policies, and the queries of computed properties, which lower layers cannot
/// parse.
fn parse_definition(body: &Value) -> Result<ContainerDefinition, ServiceError> {
    let definition = ContainerDefinition::parse(body)?;
    for (at, property) in definition.computed_properties().properties().iter().enumerate() {
        check_computed(at, &property.query)?;
    }
    Ok(definition)
}

/// Unknown names are reported before disallowed forms, as by the service.
fn check_computed(at: usize, text: &str) -> Result<(), ServiceError> {
    let malformed = |error: QueryError| match numbered(&error.to_value(text)) {
        Some(details) => ServiceError::invalid(format!(
            "Computed property at index ({at}) has a malformed query: '{text}' Error details: '{details}'"
        )),
        None => ServiceError::query(&error, text),
    };
    let query = Query::parse(text).map_err(malformed)?;
    query.bind(&Parameters::none()).map_err(malformed)?;
    if !matches!(query.syntax().selection, Selection::Value(_)) {
        return Err(ServiceError::invalid(format!(
            "Required VALUE expression missing from computed property query '{text}' at index ({at})."
        )));
    }
    query::check_computed_property(text).map_err(malformed)
}

/// A report as it is embedded in another message: codes are numbers there, and locations
/// are left out. `None` if it has no codes.
fn numbered(report: &Value) -> Option<Value> {
    let error = |error: &Value| {
        let code = error.get("code").and_then(Value::as_str).unwrap_or_default();
        let number = code.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<i64>();
        let code = number.map_or_else(|_| Value::from(code), Value::from);
        let member = |name: &str| error.get(name).cloned().unwrap_or(Value::Null);
        Value::from(Object::from_iter([
            ("severity", member("severity")),
            ("code", code),
            ("message", member("message")),
        ]))
    };
    let errors = report.get("errors").and_then(Value::as_array)?;
    Some(Object::from_iter([("errors", errors.iter().map(error).collect::<Value>())]).into())
}

fn new_record(parent: &Parent, spec: &ContainerSpec) -> Record {
    Record {
        kind: Kind::Container,
        parent_rid: parent.rid().to_owned(),
        rid: spec.rid.to_string(),
        self_link: format!("{}colls/{}/", parent.self_link(), spec.rid),
        definition: visible_definition(&spec.definition),
        private: private(spec, None),
    }
}

fn visible_definition(definition: &ContainerDefinition) -> Object {
    definition.to_value().as_object().cloned().unwrap_or_default()
}

fn private(spec: &ContainerSpec, offer: Option<&Value>) -> Object {
    let policy = |(version, policy): (&u32, &IndexingPolicy)| {
        Object::from_iter([("version", Value::from(*version)), ("policy", policy.to_value())])
    };
    let mut private = Object::new();
    private.insert("number", spec.number.0);
    private.insert("indexSeed", format!("{:016x}", spec.index_seed));
    private.insert("fixed", spec.growth == Growth::Fixed);
    private.insert("policies", spec.policies.iter().map(policy).collect::<Value>());
    if let Some(offer) = offer {
        private.insert("offer", offer.clone());
    }
    private
}
