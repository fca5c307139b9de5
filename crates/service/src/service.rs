//! The door itself, and how a request goes through it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use cluster::{Cluster, ContainerSpec, Pool, RangeRecord};
use model::charge::Work;
use model::json::Value;
use model::limits::{Growth, Limits};
use model::policy::{ContainerDefinition, IndexingPolicy};
use model::position::{Lsn, Timestamp};
use model::rid::{ContainerRid, DatabaseRid};
use partition::{ContainerNumber, Head, Item};
use runtime::{Runtime, on_async_worker};
use storage::Store;

use crate::account::{self, CatalogueTab};
use crate::admit::{self, Admitted};
use crate::catalogue::{COUNTERS, Counters, Directory, Record, Stored, item_prefix};
use crate::error::ServiceError;
use crate::items::ItemList;
use crate::kind::Kind;
use crate::provision::ThroughputRules;
use crate::receipt::Receipt;
use crate::reindex;
use crate::request::{
    CatalogueAction, Conditions, ContainerAction, ItemOperation, ItemTarget, Request,
};
use crate::resolve::{Resolved, ResolvedContainer};
use crate::resources::Asked;
use crate::response::{Failure, RangeInfo, Reply, Response};

/// Records read at once while the catalogue is walked.
const CHUNK_RECORDS: usize = 256;

/// The database behind every protocol.
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
    /// When throughput was last divided anew, and whose.
    pub(crate) redistributions: Mutex<Vec<(ContainerRid, Duration)>>,
    directory: RwLock<Directory>,
    /// Changes of the catalogue happen one at a time.
    pub(crate) changes: tokio::sync::Mutex<Counters>,
}

impl Service {
    /// Reads the catalogue of a store and serves what it describes, without limiting
    /// anyone's throughput, as tools and most tests want it.
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

    /// Does one request. Every protocol and every request goes through these five steps.
    ///
    /// To be driven to its end, in a task of its own where clients may go away: a
    /// change of the catalogue that is dropped half-way may be on the disk without
    /// being known in memory until a restart.
    pub async fn execute(&self, request: Request) -> Result<Response, Failure> {
        let mut receipt = Receipt::of(request.caller);
        let done = on_async_worker(self.run(request, &mut receipt)).await;
        account::account(done, receipt)
    }

    async fn run(&self, request: Request, receipt: &mut Receipt) -> Result<Reply, ServiceError> {
        let authorised = self.authorise(request).await?;
        let resolved = self.resolve(authorised, receipt).await?;
        let admitted = admit::admit(resolved, &self.limits)?;
        self.perform(admitted, receipt).await
    }

    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Ends all queries that run or wait, and refuses further ones: a server that stops
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

    async fn perform(
        &self,
        Admitted { resolved }: Admitted,
        receipt: &mut Receipt,
    ) -> Result<Reply, ServiceError> {
        match resolved {
            Resolved::Catalogue(action) => {
                let tab = CatalogueTab::of(&action);
                let done = self.perform_in_catalogue(action, receipt).await;
                receipt.worked(&tab.work(&done));
                done
            }
            Resolved::Container { container, action } => {
                self.perform_in_container(&container, action, receipt).await
            }
        }
    }

    async fn perform_in_catalogue(
        &self,
        action: CatalogueAction,
        receipt: &mut Receipt,
    ) -> Result<Reply, ServiceError> {
        use CatalogueAction::{Create, Delete, List, MigrateOffer, Query, Read, Replace, Upsert};
        match action {
            Create { parent, kind, body, throughput, offer_type } => {
                let asked = Asked { throughput, offer_type };
                self.create(&parent, kind, &body, asked, receipt).await
            }
            Upsert { parent, kind, body } => self.upsert(&parent, kind, &body, receipt).await,
            Read { link, conditions } => self.read(&link, &conditions, receipt).await,
            Replace { link, body, conditions } => {
                self.replace(&link, &body, &conditions, receipt).await
            }
            MigrateOffer { link, migration, conditions } => {
                self.migrate_offer(&link, migration, &conditions, receipt).await
            }
            Delete { link, conditions } => self.delete(&link, &conditions, receipt).await,
            List { parent, kind, after, items_max } => {
                self.list(&parent, kind, after.as_deref(), items_max, receipt).await
            }
            Query { parent, kind, query } => self.query(&parent, kind, query, receipt).await,
        }
    }

    async fn perform_in_container(
        &self,
        container: &ResolvedContainer,
        action: ContainerAction,
        receipt: &mut Receipt,
    ) -> Result<Reply, ServiceError> {
        use ContainerAction::{
            Batch, Bulk, CreateItem, DeleteItem, ListChanges, ListItems, PatchItem, PlanQuery,
            QueryItems, ReadItem, ReadRanges, ReadStatistics, ReplaceItem, UpsertItem,
        };
        let (key, operation) = match action {
            ReadRanges => return self.read_ranges(container, receipt).await,
            ReadStatistics { keys_max } => {
                receipt.worked(&Work::Probe);
                let partitions = self.statistics_of(container, keys_max).await?;
                return Ok(Reply::Statistics { partitions });
            }
            ReadItem { target, conditions } => {
                return self.read_item(container, &target, &conditions, receipt).await;
            }
            ListItems { scope, session, after, items_max } => {
                let (scope, session) = (&scope, session.as_ref());
                let list = ItemList { scope, session, after, items_max };
                return self.list_items(container, list, receipt).await;
            }
            ListChanges(list) => return self.list_changes(container, list, receipt).await,
            QueryItems(query) => return self.query_items(container, *query, receipt).await,
            PlanQuery { text, parameters, features } => {
                let query = (text, parameters);
                return self.plan_query(container, query, features, receipt).await;
            }
            Batch { key, operations, session } => {
                let session = session.as_ref();
                return self.batch(container, (&key, session), operations, receipt).await;
            }
            Bulk { range, operations, pace } => {
                return self.bulk(container, range, (operations, pace), receipt).await;
            }
            CreateItem { key, body } => (key, ItemOperation::Create { body }),
            UpsertItem { key, body, conditions: Conditions { if_match, .. } } => {
                (key, ItemOperation::Upsert { body, if_match })
            }
            ReplaceItem { target: ItemTarget { key, id }, body, conditions } => {
                (key, ItemOperation::Replace { id, body, if_match: conditions.if_match })
            }
            DeleteItem { target: ItemTarget { key, id }, conditions } => {
                (key, ItemOperation::Delete { id, if_match: conditions.if_match })
            }
            PatchItem { target: ItemTarget { key, id }, body, conditions } => {
                (key, ItemOperation::Patch { id, body, if_match: conditions.if_match })
            }
        };
        self.write_item(container, key.as_ref(), operation, receipt).await
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
            for item in &items {
                visit(Stored::read(kind, parent_rid, item)?)?;
            }
        }
    }

    /// The records of one kind and parent, in the order of names. For a thread that may
    /// wait: nobody is served yet, or any more.
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

    async fn read_ranges(
        &self,
        entry: &ResolvedContainer,
        receipt: &mut Receipt,
    ) -> Result<Reply, ServiceError> {
        receipt.worked(&Work::Probe);
        let (map, sizes) = self.cluster.sizes(Arc::clone(&entry.layout)).await?;
        let info = |(record, head): (&RangeRecord, Head)| RangeInfo {
            id: record.id,
            range: record.range.clone(),
            parents: record.parents.clone(),
            change: record.change,
            lsn: Lsn::from_u64(head.lsn).max(record.lsn_floor),
            ts_secs: Timestamp::from_millis(head.ts_millis).secs(),
            items: head.items,
            item_bytes: head.bytes,
            fraction: map.fraction(record),
        };
        let ranges: Vec<RangeInfo> = map.ranges().iter().zip(sizes).map(info).collect();
        let items = ranges.iter().map(|range| range.items).sum();
        let index_percent = reindex::percent(&entry.container, items);
        Ok(Reply::Ranges { container: entry.rid, change: map.change(), ranges, index_percent })
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
        container.governor().provide(self.plan(offer.as_ref(), pool));
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
