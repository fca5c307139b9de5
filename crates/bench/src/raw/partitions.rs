//! One partition that owns the whole container.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use index::IndexPlan;
use model::json;
use model::limits::{Growth, Limits};
use model::policy::ContainerDefinition;
use model::position::{Lsn, Timestamp};
use model::rid::{ContainerRid, DatabaseRid};
use partition::{
    Application, Bucket, BucketNumber, Command, ContainerNumber, Document, Operation, Partition,
    PartitionConfig, Reader,
};
use storage::{CommitStatus, Store};

use super::Storey;
use super::recorder::Recorded;
use crate::document::Documents;

/// When everything happens: 2020-01-01T00:00:00Z.
const NOW_MILLIS: u64 = 1_577_836_800_000;
/// As many buckets as the partition of a new container has.
pub(crate) const BUCKETS: u32 = 8;
/// Keys the hashes of paths.
const PATH_SEED: u64 = 7;
/// More than any run uses.
const ORDINALS: std::ops::Range<u64> = 1..1 << 40;
const CONTAINER: &str = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;

pub(crate) struct PartitionStorey {
    config: Arc<PartitionConfig>,
    store: Arc<dyn Store>,
    partition: Mutex<Partition>,
}

impl PartitionStorey {
    pub(super) fn open(store: Arc<dyn Store>) -> Result<PartitionStorey> {
        let config = Arc::new(config()?);
        let partition = Partition::open(Arc::clone(&config), Arc::clone(&store))?;
        Ok(PartitionStorey { config, store, partition: Mutex::new(partition) })
    }

    /// Creates a document and waits until it is durable.
    pub(crate) fn create(&self, text: String) -> Result<()> {
        self.apply(text, |document| Operation::Create { document })
    }

    /// Creates a document, or replaces the one of its id.
    pub(crate) fn upsert(&self, text: String) -> Result<()> {
        self.apply(text, |document| Operation::Upsert { document, if_match: None })
    }

    /// Deletes the document with the id and the key of another.
    pub(crate) fn delete(&self, text: String) -> Result<()> {
        let delete =
            |document: Document| Operation::Delete { id: document.id().clone(), if_match: None };
        self.apply(text, delete)
    }

    fn apply(&self, text: String, operation: impl FnOnce(Document) -> Operation) -> Result<()> {
        let document = Document::parse(Bytes::from(text), &Limits::default())?;
        let definition = self.config.definition.partition_key();
        let key = definition.extract(document.json())?;
        let position = definition.locate(&key)?;
        let command = Command { position, operations: vec![operation(document)] };
        let mut partition = self.partition.lock().unwrap_or_else(PoisonError::into_inner);
        let Application { result, ticket, .. } =
            partition.apply(Timestamp::from_millis(NOW_MILLIS), &command);
        drop(partition);
        ensure!(result.is_ok(), "a command was refused: {result:?}");
        ensure!(ticket.wait() == CommitStatus::Durable, "a command is not durable");
        Ok(())
    }
}

impl Storey for PartitionStorey {
    fn create(&self, documents: Documents, number: u64, _: &Recorded) -> Result<()> {
        PartitionStorey::create(self, documents.text(number, 0))
    }

    fn read(&self, documents: Documents, number: u64, _: &Recorded) -> Result<usize> {
        let key = model::partition_key::PartitionKey::new([documents.key(number).as_str()]);
        let position = self.config.definition.partition_key().locate(&key)?;
        let view = self.store.view()?;
        let (reader, now) =
            (Reader::new(Arc::clone(&self.config)), Timestamp::from_millis(NOW_MILLIS));
        let item = reader.find(view.as_ref(), now, &position, &format!("i{number}"))?;
        Ok(item.context("the document is there")?.text.len())
    }
}

/// The index of the container.
pub(crate) fn index_plan() -> Result<IndexPlan> {
    let definition = ContainerDefinition::parse(&json::parse(CONTAINER.as_bytes())?)?;
    Ok(IndexPlan::compile(definition.indexing(), PATH_SEED))
}

fn config() -> Result<PartitionConfig> {
    let definition = ContainerDefinition::parse(&json::parse(CONTAINER.as_bytes())?)?;
    let ranges = definition.partition_key().boundaries(BUCKETS);
    let buckets =
        (0..).zip(ranges).map(|(number, range)| Bucket { number: BucketNumber(number), range });
    let database = DatabaseRid::new(1).context("a number of a database")?;
    let plan = IndexPlan::compile(definition.indexing(), PATH_SEED);
    Ok(PartitionConfig {
        container: ContainerNumber(1),
        container_rid: ContainerRid::new(database, 1).context("a number of a container")?,
        policy_version: 1,
        plans: BTreeMap::from([(1, Arc::new(plan))]),
        buckets: buckets.collect(),
        definition: Arc::new(definition),
        moves: Vec::new(),
        lsn_floor: Lsn::ZERO,
        ordinal_blocks: Vec::from([ORDINALS]),
        growth: Growth::Unlimited,
        limits: Arc::new(Limits::default()),
    })
}
