//! Containers, stores and partitions for tests, on any backend.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use index::IndexPlan;
use model::json::{self, Object, Value};
use model::limits::{Growth, Limits};
use model::policy::ContainerDefinition;
use model::position::Lsn;
use model::rid::{ContainerRid, DatabaseRid};
use partition::{Bucket, BucketNumber, ContainerNumber, PartitionConfig, Report, check_bucket};
use runtime::Runtime;
use storage::local::{self, LocalConfig};
use storage::{Direction, Durability, KeyRange, ScanLimit, Store, memory};
use tempfile::TempDir;

/// Where simulated time begins: 2020-01-01T00:00:00Z.
pub(crate) const EPOCH_MILLIS: u64 = 1_577_836_800_000;

/// Keys the path hashes of every test container.
const PATH_SEED: u64 = 7;

/// Ordinals allocated: more than any test uses.
const ORDINALS: std::ops::Range<u64> = 1..1 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Memory,
    Local,
}

impl Backend {
    pub(crate) const ALL: [Backend; 2] = [Backend::Memory, Backend::Local];
}

/// A store and the folder it may live in.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) store: Arc<dyn Store>,
    folder: Option<TempDir>,
    config: LocalConfig,
}

impl Home {
    /// A store that does not wait for the disk: these tests do not cut the power.
    pub(crate) fn new(backend: Backend) -> Home {
        let config = LocalConfig { durability: Durability::Os, ..LocalConfig::default() };
        Home::with_config(backend, config)
    }

    pub(crate) fn with_config(backend: Backend, config: LocalConfig) -> Home {
        match backend {
            Backend::Memory => Home { store: memory::create(), folder: None, config },
            Backend::Local => {
                let folder = tempfile::tempdir().unwrap();
                let store = local::create(folder.path(), config.clone(), &Runtime::real()).unwrap();
                Home { store, folder: Some(folder), config }
            }
        }
    }

    /// Closes the store and opens it again. Memory has nowhere to come back from.
    pub(crate) fn reopen(&mut self) {
        if let Some(folder) = &self.folder {
            self.store.close().unwrap();
            self.store = local::open(folder.path(), self.config.clone(), &Runtime::real()).unwrap();
        }
    }
}

/// The parts of a container definition that tests vary.
#[derive(Clone, Debug, Default)]
pub(crate) struct Container {
    /// None for a container without a partition key.
    pub(crate) key_paths: Vec<String>,
    pub(crate) hash_version: Option<u32>,
    /// One constraint for each list of paths.
    pub(crate) unique: Vec<Vec<String>>,
    pub(crate) default_ttl: Option<i64>,
    pub(crate) indexing: Option<Value>,
    /// Minutes for which all versions and deletes are kept.
    pub(crate) retention: Option<u32>,
}

impl Container {
    pub(crate) fn keyed(path: &str) -> Container {
        Container { key_paths: vec![path.to_owned()], ..Container::default() }
    }

    pub(crate) fn definition(&self) -> ContainerDefinition {
        let mut body = Object::new();
        body.insert("id", "c");
        if !self.key_paths.is_empty() {
            let mut key = Object::new();
            key.insert("paths", self.key_paths.clone());
            key.insert("kind", if self.key_paths.len() > 1 { "MultiHash" } else { "Hash" });
            key.insert("version", self.hash_version.unwrap_or(2));
            body.insert("partitionKey", key);
        }
        if !self.unique.is_empty() {
            let constraint = |paths: &Vec<String>| {
                Value::from(Object::from_iter([("paths", Value::from(paths.clone()))]))
            };
            let constraints: Value = self.unique.iter().map(constraint).collect();
            body.insert("uniqueKeyPolicy", Object::from_iter([("uniqueKeys", constraints)]));
        }
        if let Some(ttl) = self.default_ttl {
            body.insert("defaultTtl", ttl);
        }
        if let Some(minutes) = self.retention {
            body.insert("changeFeedPolicy", Object::from_iter([("retentionDuration", minutes)]));
        }
        if let Some(indexing) = &self.indexing {
            body.insert("indexingPolicy", indexing.clone());
        }
        ContainerDefinition::parse(&body.into()).unwrap()
    }

    /// A partition that owns the whole container.
    pub(crate) fn config(&self, buckets: u32) -> PartitionConfig {
        let definition = self.definition();
        let ranges = definition.partition_key().boundaries(buckets);
        let buckets =
            (0..).zip(ranges).map(|(number, range)| Bucket { number: BucketNumber(number), range });
        let database = DatabaseRid::new(1).unwrap();
        let plan = IndexPlan::compile(definition.indexing(), PATH_SEED);
        PartitionConfig {
            container: ContainerNumber(1),
            container_rid: ContainerRid::new(database, 1).unwrap(),
            policy_version: 1,
            plans: BTreeMap::from([(1, Arc::new(plan))]),
            buckets: buckets.collect(),
            definition: Arc::new(definition),
            moves: Vec::new(),
            lsn_floor: Lsn::ZERO,
            ordinal_blocks: Vec::from([ORDINALS]),
            growth: Growth::Unlimited,
            limits: Arc::new(Limits::default()),
        }
    }

    /// The configuration after the container was replaced by this one.
    pub(crate) fn reconfigured(&self, old: &PartitionConfig) -> PartitionConfig {
        let definition = self.definition();
        let policy_version = old.policy_version + 1;
        let plan = IndexPlan::compile(definition.indexing(), PATH_SEED);
        let mut config =
            PartitionConfig { policy_version, definition: Arc::new(definition), ..old.clone() };
        config.plans.insert(policy_version, Arc::new(plan));
        config
    }
}

pub(crate) fn json(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Everything in a store.
pub(crate) fn dump(store: &dyn Store) -> Vec<(Bytes, Bytes)> {
    let view = store.view().unwrap();
    let mut rows = Vec::new();
    let mut remaining = Some(KeyRange::all());
    while let Some(range) = remaining {
        let chunk = view.scan(&range, Direction::Forward, ScanLimit::default()).unwrap();
        rows.extend(chunk.rows);
        remaining = chunk.rest;
    }
    rows
}

/// Checks all buckets.
pub(crate) fn check(config: &PartitionConfig, store: &dyn Store) -> Report {
    let view = store.view().unwrap();
    let mut report = Report::default();
    for bucket in config.written_buckets() {
        report.merge(check_bucket(config, bucket, view.as_ref()).unwrap());
    }
    report
}

pub(crate) fn assert_clean(config: &PartitionConfig, store: &dyn Store) -> Report {
    let report = check(config, store);
    assert!(report.is_clean(), "{:#?}", report.findings);
    report
}
