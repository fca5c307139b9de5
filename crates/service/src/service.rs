//! The door itself, and the path of a request through it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use cluster::{Cluster, ContainerSpec, Pool};
use model::json::Value;
use model::limits::{Growth, Limits};
use model::policy::{ContainerDefinition, IndexingPolicy};
use model::position::Timestamp;
use model::rid::{ContainerRid, DatabaseRid};
use partition::{ContainerNumber, Item};
use runtime::{Runtime, on_async_worker};
use storage::Store;

use crate::catalogue::kind::Kind;
use crate::catalogue::{COUNTERS, Counters, Directory, Record, Stored, item_prefix};
use crate::error::ServiceError;
use crate::pipeline::account;
use crate::pipeline::limits::{Checked, check_limits};
use crate::pipeline::meta::ResponseMeta;
use crate::pipeline::resolve::Resolved;
use crate::request::Request;
use crate::response::{Failure, Response};
use crate::throughput::provision::ThroughputRules;
use crate::verb::Verb;

/// Records read at once while the catalogue is scanned.
const CHUNK_RECORDS: usize = 256;

/// Records that an async worker parses before it serves others: some tens of microseconds.
const TURN_RECORDS: usize = 16;

/// The database below every protocol.
#[derive(Debug)]
pub struct Service {
    pub(crate) cluster: Cluster,
    pub(crate) runtime: Runtime,
    pub(crate) limits: Arc<Limits>,
    pub(crate) rules: ThroughputRules,
    /// An offer waits for splits.
    pub(crate) scaling: tokio::sync::Notify,
    /// An indexing policy was changed.
    pub(crate) reindexing: tokio::sync::Notify,
    /// Something was dropped that leaves data.
    pub(crate) dropped: tokio::sync::Notify,
    /// The latest redistributions of throughput, and whose.
    pub(crate) redistributions: Mutex<Vec<(ContainerRid, Duration)>>,
    directory: RwLock<Directory>,
    /// Serialises changes of the catalogue.
    pub(crate) changes: tokio::sync::Mutex<Counters>,
}

impl Service {
    /// Reads the catalogue of a store and serves what it describes, without limiting
    /// throughput, as tools and most tests want it.
    pub fn open(
        store: Arc<dyn Store>,
        runtime: Runtime,
        limits: Limits,
    ) -> Result<Service, ServiceError> {
        Service::open_with(store, runtime, limits, ThroughputRules::UNLIMITED)
    }

    /// Reads the catalogue of a store and serves what it describes.
    pub fn open_with(
        store: Arc<dyn Store>,
        runtime: Runtime,
        limits: Limits,
        rules: ThroughputRules,
    ) -> Result<Service, ServiceError> {
        let limits = Arc::new(limits);
        let cluster = Cluster::open(store, runtime.clone(), Arc::clone(&limits))?
            .dividing_storage_splits(rules.storage_splits);
        let counters = match cluster.read_system(COUNTERS)? {
            Some(item) => Counters::parse(item.json())?,
            None => Counters::default(),
        };
        let service = Service {
            cluster,
            runtime,
            limits,
            rules,
            scaling: tokio::sync::Notify::new(),
            reindexing: tokio::sync::Notify::new(),
            dropped: tokio::sync::Notify::new(),
            redistributions: Mutex::default(),
            directory: RwLock::default(),
            changes: tokio::sync::Mutex::new(counters),
        };
        service.load_directory()?;
        Ok(service)
    }

    /// Executes one request. Every protocol and every verb goes through these five steps.
    ///
    /// Must be polled to completion, in a task of its own if clients may go away: a change
    /// of the catalogue that is dropped half-way may be on the disk without being known in
    /// memory until a restart.
    pub async fn execute<V: Verb>(
        &self,
        Request { principal, caller, verb }: Request<V>,
    ) -> Result<Response<V::Reply>, Failure> {
        let mut meta = ResponseMeta::of(caller);
        let steps = async {
            let authorised = self.authorise(&principal, verb).await?;
            let resolved = self.resolve(authorised, &mut meta).await?;
            let checked = check_limits(resolved, &self.limits)?;
            self.perform(checked, &mut meta).await
        };
        let done = on_async_worker(steps).await;
        account::account(done, meta)
    }

    /// Performs it. It is admitted at its partition, once that is known, and pays there
    /// what it has cost.
    async fn perform<V: Verb>(
        &self,
        Checked { resolved: Resolved { verb, target } }: Checked<V>,
        meta: &mut ResponseMeta,
    ) -> Result<V::Reply, ServiceError> {
        verb.perform(self, target, meta).await
    }

    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Cancels all queries that run or wait, and refuses further ones: a server that stops
    /// does not wait for them.
    pub fn stop_queries(&self) {
        self.cluster.stop_queries();
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.runtime.clock.now().as_unix_ms())
    }

    /// The store below, for its counters and for closing it.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        self.cluster.store()
    }

    pub(crate) fn directory(&self) -> RwLockReadGuard<'_, Directory> {
        self.directory.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn directory_mut(&self) -> RwLockWriteGuard<'_, Directory> {
        self.directory.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first records of one kind and parent, in the order of names.
    pub(crate) async fn first_records(
        &self,
        kind: Kind,
        parent_rid: &str,
        count: usize,
    ) -> Result<Vec<Stored>, ServiceError> {
        let prefix = item_prefix(kind, parent_rid);
        let (items, _) = self.cluster.list_system(&prefix, None, count).await?;
        items.iter().map(|item| Stored::read(kind, parent_rid, item)).collect()
    }

    /// Calls `visit` with each record of one kind and parent, in the order of names.
    pub(crate) async fn each_record(
        &self,
        kind: Kind,
        parent_rid: &str,
        mut visit: impl FnMut(Stored) -> Result<(), ServiceError>,
    ) -> Result<(), ServiceError> {
        let (prefix, mut after) = (item_prefix(kind, parent_rid), None::<String>);
        loop {
            let listing = self.cluster.list_system(&prefix, after.as_deref(), CHUNK_RECORDS);
            let (items, _) = listing.await?;
            let Some(last) = items.last() else { return Ok(()) };
            after = Some(id_of(last));
            for (item, done) in items.iter().zip(1..) {
                visit(Stored::read(kind, parent_rid, item)?)?;
                if usize::is_multiple_of(done, TURN_RECORDS) {
                    runtime::yield_now().await;
                }
            }
        }
    }

    /// The records of one kind and parent, in the order of names. For a thread that may
    /// wait: before serving starts, or after it has ended.
    pub(crate) fn records_blocking(
        &self,
        kind: Kind,
        parent_rid: &str,
    ) -> Result<Vec<Stored>, ServiceError> {
        let (prefix, mut records) = (item_prefix(kind, parent_rid), Vec::new());
        let mut after: Option<String> = None;
        loop {
            let after_last = after.as_deref();
            let listed = self.cluster.list_system_blocking(&prefix, after_last, CHUNK_RECORDS);
            let (items, _) = listed?;
            let Some(last) = items.last() else { return Ok(records) };
            after = Some(id_of(last));
            for item in &items {
                records.push(Stored::read(kind, parent_rid, item)?);
            }
        }
    }

    fn load_directory(&self) -> Result<(), ServiceError> {
        for Stored { record: database, .. } in self.records_blocking(Kind::Database, "")? {
            let rid = DatabaseRid::parse(&database.rid).map_err(ServiceError::internal)?;
            let pool = self.pool(self.offer_of(&database)?.as_ref());
            self.directory_mut().insert_database(database.name(), rid, pool.clone());
            for Stored { record, .. } in self.records_blocking(Kind::Container, &database.rid)? {
                self.load_container(&record, pool.as_ref())?;
            }
        }
        Ok(())
    }

    fn load_container(
        &self,
        record: &Record,
        pool: Option<&Arc<Pool>>,
    ) -> Result<(), ServiceError> {
        let spec = container_spec(record)?;
        let (rid, container) = (spec.rid, self.cluster.attach(spec)?);
        let offer = self.offer_of(record)?;
        container.throughput().provide(self.plan(offer.as_ref(), pool));
        let shares = offer.is_none() && pool.is_some();
        self.directory_mut().insert_container(record.name(), rid, container, shares);
        Ok(())
    }
}

/// What a container's record says, as partitions need it.
pub(crate) fn container_spec(record: &Record) -> Result<ContainerSpec, ServiceError> {
    let damaged = || {
        ServiceError::internal(format!("the record of container '{}' is malformed", record.name()))
    };
    let private = |name| record.private.get(name).ok_or_else(damaged);
    let number = private("number")?
        .as_number()
        .and_then(|n| u32::try_from(n.as_i64()?).ok())
        .ok_or_else(damaged)?;
    let seed = private("indexSeed")?
        .as_str()
        .and_then(|hex| u64::from_str_radix(hex, 16).ok())
        .ok_or_else(damaged)?;
    let fixed = private("fixed")?.as_bool().ok_or_else(damaged)?;
    let mut policies = BTreeMap::new();
    for entry in private("policies")?.as_array().ok_or_else(damaged)? {
        let version = entry
            .get("version")
            .and_then(Value::as_number)
            .and_then(|n| u32::try_from(n.as_i64()?).ok());
        let policy = IndexingPolicy::parse(entry.get("policy").ok_or_else(damaged)?)?;
        policies.insert(version.ok_or_else(damaged)?, policy);
    }
    Ok(ContainerSpec {
        number: ContainerNumber(number),
        rid: ContainerRid::parse(&record.rid).map_err(ServiceError::internal)?,
        definition: Arc::new(ContainerDefinition::parse(&Value::Object(
            record.definition.clone(),
        ))?),
        policies,
        index_seed: seed,
        growth: if fixed { Growth::Fixed } else { Growth::Unlimited },
    })
}

/// The id of a system item.
pub(crate) fn id_of(item: &Item) -> String {
    item.json().get("id").and_then(|id| id.as_str()).unwrap_or_default().into_owned()
}
