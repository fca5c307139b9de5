//! The door itself, and how a request goes through it.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use cluster::{Cluster, ClusterReport, ContainerSpec, RangeRecord};
use model::json::Value;
use model::limits::Limits;
use model::policy::{ContainerDefinition, IndexingPolicy};
use model::position::{Lsn, Timestamp};
use model::rid::{ContainerRid, DatabaseRid};
use partition::{ContainerNumber, Item, Work};
use runtime::Runtime;
use storage::Store;

use crate::account;
use crate::admit::{self, Admitted};
use crate::authorise::authorise;
use crate::catalogue::{
    COUNTERS, ContainerEntry, Counters, Directory, Record, Stored, item_prefix,
};
use crate::error::ServiceError;
use crate::kind::Kind;
use crate::request::{CatalogueAction, ContainerAction, Request};
use crate::resolve::Resolved;
use crate::response::{RangeInfo, Reply, Response};

/// Records read at once while the catalogue is walked.
const CHUNK_RECORDS: usize = 256;

/// The database behind every protocol.
#[derive(Debug)]
pub struct Service {
    pub(crate) cluster: Cluster,
    pub(crate) runtime: Runtime,
    pub(crate) limits: Arc<Limits>,
    directory: RwLock<Directory>,
    /// Changes of the catalogue happen one at a time.
    pub(crate) changes: tokio::sync::Mutex<Counters>,
}

impl Service {
    /// Reads the catalogue of a store and serves what it describes.
    pub fn open(
        store: Arc<dyn Store>,
        runtime: Runtime,
        limits: Limits,
    ) -> Result<Service, ServiceError> {
        let limits = Arc::new(limits);
        let cluster = Cluster::open(store, runtime.clone(), Arc::clone(&limits))?;
        let counters = match cluster.read_system(COUNTERS)? {
            Some(item) => Counters::parse(item.json())?,
            None => Counters::default(),
        };
        let service = Service {
            cluster,
            runtime,
            limits,
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
    pub async fn execute(&self, request: Request) -> Result<Response, ServiceError> {
        let authorised = authorise(request)?;
        let resolved = self.resolve(authorised)?;
        let admitted = admit::admit(resolved, &self.limits)?;
        let performed = self.perform(admitted).await;
        self.account(performed)
    }

    /// Reads everything that is stored and says what does not agree.
    pub fn check(&self, progress: impl FnMut(&str)) -> Result<ClusterReport, ServiceError> {
        Ok(self.cluster.check(progress)?)
    }

    /// The store below, for its counters and for closing it.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        self.cluster.store()
    }

    async fn perform(&self, Admitted { resolved }: Admitted) -> Result<Response, ServiceError> {
        match resolved {
            Resolved::Catalogue(action) => self.perform_in_catalogue(action).await.map(unrouted),
            Resolved::Container { container, action } => {
                let mut response = self.perform_in_container(&container, action).await?;
                response.container = Some(container.name);
                Ok(response)
            }
        }
    }

    async fn perform_in_catalogue(&self, action: CatalogueAction) -> Result<Reply, ServiceError> {
        use CatalogueAction::{Create, Delete, List, Query, Read, Replace, Upsert};
        match action {
            Create { parent, kind, body, throughput } => {
                self.create(&parent, kind, &body, throughput).await
            }
            Upsert { parent, kind, body } => self.upsert(&parent, kind, &body).await,
            Read { link, conditions } => self.read(&link, &conditions),
            Replace { link, body, conditions } => self.replace(&link, &body, &conditions).await,
            Delete { link, conditions } => self.delete(&link, &conditions).await,
            List { parent, kind, after, items_max } => {
                self.list(&parent, kind, after.as_deref(), items_max)
            }
            Query { parent, kind, text, parameters } => {
                self.query(&parent, kind, &text, &parameters)
            }
        }
    }

    async fn perform_in_container(
        &self,
        container: &ContainerEntry,
        action: ContainerAction,
    ) -> Result<Response, ServiceError> {
        use ContainerAction::{
            Batch, Bulk, CreateItem, DeleteItem, ListItems, PatchItem, ReadItem, ReadRanges,
            ReplaceItem, UpsertItem,
        };
        match action {
            ReadRanges => self.read_ranges(container).map(unrouted),
            CreateItem { key, body } => self.create_item(container, key, body).await,
            UpsertItem { key, body, conditions } => {
                self.upsert_item(container, key, body, conditions).await
            }
            ReadItem { target, conditions } => self.read_item(container, &target, &conditions),
            ReplaceItem { target, body, conditions } => {
                self.replace_item(container, target, body, conditions).await
            }
            DeleteItem { target, conditions } => {
                self.delete_item(container, target, conditions).await
            }
            PatchItem { target, body, conditions } => {
                self.patch_item(container, target, &body, conditions).await
            }
            Batch { key, operations } => self.batch(container, &key, operations).await,
            Bulk { range, operations } => self.bulk(container, range, operations).await,
            ListItems { scope, after, items_max } => {
                self.list_items(container, &scope, after, items_max)
            }
        }
    }

    /// The last step: what it cost. Faults of ours are logged here, once.
    fn account(&self, performed: Result<Response, ServiceError>) -> Result<Response, ServiceError> {
        match performed {
            Ok(response) => {
                let charge = account::charge(&response.work);
                Ok(Response { charge, ..response })
            }
            Err(error) => {
                if let ServiceError::Internal { source } = &error {
                    tracing::error!(%error, source = %source, "request failed");
                }
                Err(error)
            }
        }
    }

    pub(crate) fn directory(&self) -> RwLockReadGuard<'_, Directory> {
        self.directory.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn directory_mut(&self) -> RwLockWriteGuard<'_, Directory> {
        self.directory.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `visit` with each record of one kind and parent, in the order of names.
    pub(crate) fn each_record(
        &self,
        kind: Kind,
        parent_rid: &str,
        mut visit: impl FnMut(Stored) -> Result<(), ServiceError>,
    ) -> Result<(), ServiceError> {
        let prefix = item_prefix(kind, parent_rid);
        let mut after: Option<String> = None;
        loop {
            let items = self.cluster.list_system(&prefix, after.as_deref(), CHUNK_RECORDS)?;
            let Some(last) = items.last() else { return Ok(()) };
            after = Some(id_of(last));
            for item in &items {
                visit(Stored::read(kind, parent_rid, item)?)?;
            }
        }
    }

    fn read_ranges(&self, entry: &ContainerEntry) -> Result<Reply, ServiceError> {
        let map = entry.container.map();
        let info = |record: &RangeRecord| {
            let head = self.cluster.size(&entry.container, record.id)?;
            Ok(RangeInfo {
                id: record.id,
                range: record.range.clone(),
                parents: record.parents.clone(),
                change: record.change,
                lsn: Lsn::from_u64(head.lsn).max(record.lsn_floor),
                ts_secs: Timestamp::from_millis(head.ts_millis).secs(),
            })
        };
        let ranges = map.ranges().iter().map(info).collect::<Result<_, ServiceError>>()?;
        Ok(Reply::Ranges { change: map.change(), ranges })
    }

    fn load_directory(&self) -> Result<(), ServiceError> {
        let mut databases = Vec::new();
        self.each_record(Kind::Database, "", |stored| {
            databases.push(stored.record);
            Ok(())
        })?;
        for database in databases {
            let rid = DatabaseRid::parse(&database.rid).map_err(ServiceError::internal)?;
            self.directory_mut().insert_database(database.name(), rid);
            self.each_record(Kind::Container, &database.rid, |stored| {
                let spec = container_spec(&stored.record)?;
                let (rid, container) = (spec.rid, self.cluster.attach(spec)?);
                self.directory_mut().insert_container(stored.record.name(), rid, container);
                Ok(())
            })?;
        }
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
    })
}

/// The id of a system item.
pub(crate) fn id_of(item: &Item) -> String {
    item.json().get("id").and_then(|id| id.as_str()).unwrap_or_default().into_owned()
}

/// An answer from the catalogue: no partition of a container took part.
fn unrouted(reply: Reply) -> Response {
    let bytes = match &reply {
        Reply::One { body, .. } => body.as_ref().map_or(0, Bytes::len),
        Reply::Feed { bodies, .. } => bodies.iter().map(Bytes::len).sum(),
        Reply::Batch { .. } | Reply::Bulk { .. } | Reply::Ranges { .. } => 0,
    };
    let work = Work { item_bytes_read: bytes as u64, ..Work::default() };
    Response::unrouted(reply, work)
}
