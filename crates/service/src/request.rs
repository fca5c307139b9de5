//! Requests, independent of any protocol.

use std::sync::Arc;

use bytes::Bytes;
use cluster::{Caller, Cursor, PartitionId, SortValue};
use model::epk::EpkRange;
use model::json::Value;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use model::position::{Lsn, Ordinal, Timestamp};
use model::session::SessionToken;
use model::system_properties::SystemProperties;
use model::throughput::Throughput;
use partition::{Approach, EtagMatch};
use query::Features;
use query::syntax::Select;

use crate::catalogue::kind::{Kind, Link};
use crate::pipeline::authorise::Principal;
use crate::response::ResourceRest;
use crate::throughput::offer::{Migration, OfferType};

/// One request: who asks for what.
#[derive(Clone, Debug)]
pub struct Request<V> {
    pub principal: Principal,
    /// Whose throughput it uses, when there is not enough for all.
    pub caller: Caller,
    pub verb: V,
}

impl<V> Request<V> {
    /// A request of the usual priority.
    #[must_use]
    pub fn new(principal: Principal, verb: V) -> Request<V> {
        Request { principal, caller: Caller::default(), verb }
    }
}

/// A verb on the items or partitions of one container.
#[derive(Clone, Debug)]
pub struct InContainer<V> {
    pub container: Link,
    /// The resource id that the container must have, if the client names one: it may have
    /// been dropped and recreated since the client looked.
    pub intended_rid: Option<String>,
    /// The physical partition that the client has sent the request to, if it chose one.
    pub addressed: Option<PartitionId>,
    /// Whether the client can follow merges of physical partitions. Only required of those
    /// that name them.
    pub merge_aware: bool,
    pub verb: V,
}

impl<V> InContainer<V> {
    /// For callers that know the container and follow its layout.
    #[must_use]
    pub fn new(container: Link, verb: V) -> InContainer<V> {
        InContainer { container, intended_rid: None, addressed: None, merge_aware: true, verb }
    }
}

/// The preconditions of a verb on one resource.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    pub if_match: Option<EtagMatch>,
    pub if_none_match: Option<EtagMatch>,
}

/// Which items a list covers: those that all three allow.
#[derive(Clone, Debug)]
pub struct Scope {
    /// A logical partition, or a prefix of a hierarchical key.
    pub key: Option<PartitionKey>,
    /// A physical partition.
    pub range: Option<PartitionId>,
    /// A part of the ring.
    pub within: EpkRange,
}

impl Default for Scope {
    /// All items.
    fn default() -> Scope {
        Scope { key: None, range: None, within: EpkRange::full() }
    }
}

/// One operation of a bulk request, with the key it belongs to.
#[derive(Clone, Debug)]
pub struct BulkOperation {
    pub key: PartitionKey,
    pub operation: ItemOperation,
}

/// How the operations of a bulk request depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkPace {
    /// In any order, independent of each other.
    All,
    /// One after the other, up to the first that fails.
    UpToFailure,
}

/// An operation as a client sends it: bodies are not checked yet.
#[derive(Clone, Debug)]
pub enum ItemOperation {
    Create {
        body: Bytes,
    },
    Upsert {
        body: Bytes,
        if_match: Option<EtagMatch>,
    },
    Read {
        id: ItemId,
        if_none_match: Option<EtagMatch>,
    },
    Replace {
        id: ItemId,
        body: Bytes,
        if_match: Option<EtagMatch>,
    },
    Delete {
        id: ItemId,
        if_match: Option<EtagMatch>,
    },
    Patch {
        id: ItemId,
        body: Bytes,
        if_match: Option<EtagMatch>,
    },
    /// One that its protocol could not parse. It fails on its own, so that the others need
    /// not.
    Unreadable {
        why: String,
    },
}

/// One operation on one item.
#[derive(Clone, Debug)]
pub struct ItemAction {
    pub key: Option<PartitionKey>,
    pub operation: ItemOperation,
    /// What the client has seen already: what it reads may not be older.
    pub session: Option<SessionToken>,
}

impl ItemAction {
    /// For a client that has seen nothing yet.
    #[must_use]
    pub fn new(key: Option<PartitionKey>, operation: ItemOperation) -> ItemAction {
        ItemAction { key, operation, session: None }
    }
}

/// Operations in one logical partition, atomic.
#[derive(Clone, Debug)]
pub struct Batch {
    pub key: PartitionKey,
    pub operations: Vec<ItemOperation>,
    /// What the client has seen already: refused where less is known.
    pub session: Option<SessionToken>,
}

/// Independent operations.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// The partition that the client believes all of them to be in.
    pub range: Option<PartitionId>,
    pub operations: Vec<BulkOperation>,
    pub pace: BulkPace,
}

/// Items in the order of creation, partition after partition.
#[derive(Clone, Debug)]
pub struct ListItems {
    pub scope: Scope,
    /// What the client has seen already: an answer may not be older.
    pub session: Option<SessionToken>,
    pub after: Option<Cursor>,
    pub items_max: usize,
    /// The system properties that items are shown with.
    pub system: Option<Arc<SystemProperties>>,
}

/// Asks for the plan of a query, for a client that asks each partition itself.
#[derive(Clone, Debug)]
pub struct PlanQuery {
    pub text: String,
    /// The client's list of names and values.
    pub parameters: Value,
    /// What the client can do with the rows of several partitions.
    pub features: Features,
}

/// Asks for the physical partitions.
#[derive(Clone, Copy, Debug)]
pub struct ReadRanges;

/// Asks what the physical partitions hold and do, with the largest keys of each.
#[derive(Clone, Copy, Debug)]
pub struct ReadStatistics {
    pub keys_max: usize,
}

/// One verb on one resource of the catalogue: anything but an item.
#[derive(Clone, Debug)]
pub enum ResourceAction {
    /// Creates a resource inside `parent`.
    Create {
        parent: Link,
        kind: Kind,
        body: Value,
        throughput: Option<Throughput>,
        /// The old size name of its offer.
        offer_type: Option<OfferType>,
    },
    /// Creates it or replaces the one of that name.
    Upsert {
        parent: Link,
        kind: Kind,
        body: Value,
    },
    Read {
        link: Link,
        conditions: Conditions,
    },
    Replace {
        link: Link,
        body: Value,
        conditions: Conditions,
    },
    Delete {
        link: Link,
        conditions: Conditions,
    },
    /// Changes the kind of throughput that an offer is for.
    MigrateOffer {
        link: Link,
        migration: Migration,
        conditions: Conditions,
    },
}

/// Lists what `parent` contains of one kind, in the order of names.
#[derive(Clone, Debug)]
pub struct ListResources {
    pub parent: Link,
    pub kind: Kind,
    pub after: Option<String>,
    pub items_max: usize,
}

/// A query on what `parent` contains of one kind.
#[derive(Clone, Debug)]
pub struct QueryResources {
    pub parent: Link,
    pub kind: Kind,
    pub text: String,
    /// The client's list of names and values.
    pub parameters: Value,
    /// Where the page before ended.
    pub after: Option<ResourceRest>,
    pub items_max: usize,
    /// A resource as the client would read it, which is what the query sees.
    pub shown: fn(Bytes) -> Bytes,
}

/// The latest versions of items in the order of their changes, after a position. They are
/// those of one physical partition, as positions are.
#[derive(Clone, Debug)]
pub struct ChangeList {
    pub scope: Scope,
    /// What the client has seen already: an answer may not be older.
    pub session: Option<SessionToken>,
    pub start: ChangeStart,
    /// Changes of this second and of earlier ones are left out.
    pub since: Option<Timestamp>,
    pub items_max: usize,
}

/// All operations on items in their order, after a position: versions that were replaced
/// since, and removals. For containers whose change feed policy has a retention.
#[derive(Clone, Debug)]
pub struct VersionList {
    pub scope: Scope,
    /// What the client has seen already: an answer may not be older.
    pub session: Option<SessionToken>,
    pub start: ChangeStart,
    pub items_max: usize,
}

/// Where a client starts to follow changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeStart {
    /// After a position; [`Lsn::ZERO`] is before everything.
    After(Lsn),
    /// After everything there is.
    Now,
}

/// A query as its sender provides it.
#[derive(Clone, Debug)]
pub enum QuerySource {
    Text(String),
    /// Made by a program: a protocol with a language of its own, or one that has none. It
    /// has the same limits as a text.
    Tree(Box<Select>),
}

impl From<&str> for QuerySource {
    fn from(text: &str) -> QuerySource {
        QuerySource::Text(text.to_owned())
    }
}

/// A query on the items of a container.
#[derive(Clone, Debug)]
pub struct ItemQuery {
    pub source: QuerySource,
    /// The client's list of names and values.
    pub parameters: Value,
    pub scope: Scope,
    /// Whether the client enables cross-partition queries.
    pub across_partitions: bool,
    /// Whether the results of partitions are merged here, for ORDER BY, TOP, DISTINCT,
    /// aggregates and the like. Otherwise these are refused with a plan by which the client
    /// merges, unless it routes.
    pub merges: bool,
    /// What the client has seen already: an answer may not be older.
    pub session: Option<SessionToken>,
    /// Where the page before ended.
    pub after: Option<Cursor>,
    /// Where in its order the client wants to resume.
    pub resume: Option<ResumeFilter>,
    pub items_max: usize,
    pub approach: Approach,
    /// The system properties that items are shown with.
    pub system: Option<Arc<SystemProperties>>,
    /// Whether the client wants timings.
    pub is_timed: bool,
    /// Whether the client wants to know which indexes the query uses.
    pub names_indexes: bool,
}

/// Where a client resumes an ordered query of which it has rows already, perhaps of other
/// partitions. Rows before it are left out, as if by a filter.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumeFilter {
    /// The sort values of the last row.
    pub keys: Vec<SortValue>,
    /// The item of that row. Of rows with the same sort values, items before it are left
    /// out, whether it still exists or not; it is not left out itself.
    pub item: Option<Ordinal>,
    /// Whether all rows with the same sort values are left out.
    pub exclude: bool,
}
