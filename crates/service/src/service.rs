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
use script::{ScriptCache, ScriptLimits};
use storage::Store;

use crate::catalogue::kind::Kind;
use crate::catalogue::{COUNTERS, Counters, Directory, Record};
use crate::error::ServiceError;
use crate::identity::roles::Roles;
use crate::pipeline::account;
use crate::pipeline::limits::{Checked, check_limits};
use crate::pipeline::meta::ResponseMeta;
use crate::pipeline::resolve::Resolved;
use crate::request::Request;
use crate::response::{Failure, Response};
use crate::scripts::totals::AllTotals;
use crate::throughput::provision::ThroughputRules;
use crate::verb::Verb;

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
    /// The clock was set ahead.
    pub(crate) clock_moved: tokio::sync::Notify,
    /// The latest redistributions of throughput, and whose.
    pub(crate) redistributions: Mutex<Vec<(ContainerRid, Duration)>>,
    directory: RwLock<Directory>,
    roles: RwLock<Roles>,
    /// Parsed scripts of all containers.
    pub(crate) scripts: Arc<ScriptCache>,
    pub(crate) script_totals: Arc<AllTotals>,
    /// What a script may use.
    script_limits: Mutex<ScriptLimits>,
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
            clock_moved: tokio::sync::Notify::new(),
            redistributions: Mutex::default(),
            directory: RwLock::default(),
            roles: RwLock::default(),
            scripts: Arc::default(),
            script_totals: Arc::default(),
            script_limits: Mutex::default(),
            changes: tokio::sync::Mutex::new(counters),
        };
        service.continue_time()?;
        service.load_roles()?;
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

    /// Does what a protocol makes of a page, where queries run: it takes turns with them.
    /// `work` gets a function to call after each row. What that returns ends the work, whose
    /// client has gone then or whose server stops.
    pub async fn shape_page<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Fn() -> Result<(), ServiceError>) -> Result<T, ServiceError>
        + Send
        + 'static,
    ) -> Result<T, ServiceError> {
        let shaping = self.cluster.take_turns_always(move |turn| work(&|| Ok(turn.give_way()?)));
        shaping.await?
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

    /// What scripts may use that begin from now on.
    pub fn limit_scripts(&self, limits: ScriptLimits) {
        *self.script_limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    pub(crate) fn script_limits(&self) -> ScriptLimits {
        *self.script_limits.lock().unwrap_or_else(PoisonError::into_inner)
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

    pub(crate) fn roles(&self) -> RwLockReadGuard<'_, Roles> {
        self.roles.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn roles_mut(&self) -> RwLockWriteGuard<'_, Roles> {
        self.roles.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn load_directory(&self) -> Result<(), ServiceError> {
        for database in self.records(Kind::Database, "")? {
            let database = database?.record;
            let rid = DatabaseRid::parse(&database.rid).map_err(ServiceError::internal)?;
            let pool = self.pool(self.offer_of(&database)?.as_ref());
            self.directory_mut().insert_database(database.name(), rid, pool.clone());
            for stored in self.records(Kind::Container, &database.rid)? {
                self.load_container(&stored?.record, pool.as_ref())?;
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

/// The number in keys that a container's record says it has.
pub(crate) fn container_number(record: &Record) -> Result<ContainerNumber, ServiceError> {
    let number = record.private.get("number").and_then(Value::as_number);
    let number = number.and_then(|number| u32::try_from(number.as_i64()?).ok());
    number.map(ContainerNumber).ok_or_else(|| damaged(record))
}

fn damaged(record: &Record) -> ServiceError {
    ServiceError::internal(format!("the record of container '{}' is malformed", record.name()))
}

/// What a container's record says, as partitions need it.
pub(crate) fn container_spec(record: &Record) -> Result<ContainerSpec, ServiceError> {
    let damaged = || damaged(record);
    let private = |name| record.private.get(name).ok_or_else(damaged);
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
        number: container_number(record)?,
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
