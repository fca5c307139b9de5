//! The system container: catalogue and map as ordinary items.
//!
//! It has one partition, one bucket and no partition key, so that all of it is one logical
//! partition and any set of its items can change in one transaction. Its items are not
//! indexed: they are found by id, and ids are formed so that related items are neighbours.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use model::epk::Epk;
use model::json::{Object, Value};
use model::limits::{Growth, Limits};
use model::name::ItemId;
use model::partition_key::{PartitionKey, PartitionKeyDefinition};
use model::policy::{ContainerDefinition, IndexingPolicy};
use model::rid::{ContainerRid, DatabaseRid};
use partition::{Command, ContainerNumber, Document, EtagMatch, Item, Operation};
use storage::View;

use crate::error::ClusterError;
use crate::layout::container::ContainerSpec;
use crate::layout::map::ContainerMap;
use crate::layout::partition_handle::PartitionHandle;
use crate::layout::stored_map::{MapVersion, StoredMap};

/// The number of the system container in keys.
pub(crate) const SYSTEM: ContainerNumber = ContainerNumber(0);

const SYSTEM_RID_NUMBER: u32 = 1;

/// Writes in one system transaction. Dropping some hundred containers of a database is
/// the largest, with a handful of writes for each.
const SYSTEM_OPERATIONS_MAX: usize = 4_096;

/// One change to a system item.
#[derive(Clone, Debug)]
pub enum SystemWrite {
    /// Fails if the item exists.
    Create { id: String, body: Object },
    /// Fails if the item does not exist, or has changed since `if_match`.
    Replace { id: String, body: Object, if_match: Option<EtagMatch> },
    /// Writes the item whether or not it exists.
    Put { id: String, body: Object },
    /// Fails if the item does not exist, or has changed since `if_match`.
    Delete { id: String, if_match: Option<EtagMatch> },
}

/// The system items as they were at a moment.
#[derive(Debug)]
pub struct SystemItems {
    pub(crate) handle: Arc<PartitionHandle>,
    pub(crate) view: Box<dyn View>,
    pub(crate) bytes_max: u64,
}

impl SystemItems {
    /// Those whose ids begin with `prefix`, after `after`, in order, and whether there are
    /// more. Only on a thread that may wait.
    pub fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        items_max: usize,
    ) -> Result<(Vec<Item>, bool), ClusterError> {
        let room = (items_max, self.bytes_max);
        let reader = self.handle.reader();
        Ok(reader.list_prefix(self.view.as_ref(), (&epk(), prefix), after, room)?)
    }
}

/// The limits under which system items are written.
pub(crate) fn limits() -> Limits {
    Limits { batch_operations_max: SYSTEM_OPERATIONS_MAX, ..Limits::default() }
}

pub(crate) fn spec() -> ContainerSpec {
    let definition = ContainerDefinition::system("system");
    ContainerSpec {
        number: SYSTEM,
        rid: rid(),
        definition: Arc::new(definition),
        policies: BTreeMap::from([(0, IndexingPolicy::off())]),
        index_seed: 0,
        growth: Growth::Fixed,
    }
}

/// System items have resource ids like all others, in a database that no client can name.
fn rid() -> ContainerRid {
    let database = DatabaseRid::new(u32::MAX).expect("not zero");
    ContainerRid::new(database, SYSTEM_RID_NUMBER).expect("a number without the top bit")
}

/// One range for the whole ring; its layout is a constant, as a map of the
/// system container could not be read without it.
pub(crate) fn map() -> StoredMap {
    StoredMap { map: ContainerMap::single_bucket(), version: MapVersion::constant() }
}

pub(crate) fn epk() -> Epk {
    PartitionKeyDefinition::none()
        .locate(&PartitionKey::NONE)
        .expect("the empty key always has its place")
}

/// The command that executes all writes or none.
pub(crate) fn command(writes: Vec<SystemWrite>, limits: &Limits) -> Result<Command, ClusterError> {
    let operations =
        writes.into_iter().map(|write| operation(write, limits)).collect::<Result<_, _>>()?;
    Ok(Command { position: epk(), operations })
}

fn operation(write: SystemWrite, limits: &Limits) -> Result<Operation, ClusterError> {
    Ok(match write {
        SystemWrite::Create { id, body } => {
            Operation::Create { document: document(id, body, limits)? }
        }
        SystemWrite::Put { id, body } => {
            Operation::Upsert { document: document(id, body, limits)?, if_match: None }
        }
        SystemWrite::Replace { id, body, if_match } => {
            let document = document(id, body, limits)?;
            Operation::Replace { id: document.id().clone(), document, if_match }
        }
        SystemWrite::Delete { id, if_match } => Operation::Delete { id: item_id(&id)?, if_match },
    })
}

fn document(id: String, body: Object, limits: &Limits) -> Result<Document, ClusterError> {
    let mut object = Object::new();
    object.insert("id", id);
    for (name, value) in body {
        object.insert(name, value);
    }
    let text = Bytes::from(Value::Object(object).to_string());
    Document::parse(text, limits).map_err(ClusterError::System)
}

pub(crate) fn item_id(id: &str) -> Result<ItemId, ClusterError> {
    ItemId::parse(id).map_err(|error| ClusterError::System(error.into()))
}
