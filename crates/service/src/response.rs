//! Responses, independent of any protocol.

use bytes::Bytes;
use cluster::{Cursor, PartitionId, QueryReport};
use model::charge::Charge;
use model::epk::EpkRange;
use model::etag::Etag;
use model::position::{Lsn, Timestamp};
use model::rid::ContainerRid;
use model::system_properties::ItemStamp;
use partition::{EffectKind, HistoryKind};
use query::{QueryInfo, RingRange};

use crate::error::ServiceError;
use crate::pipeline::meta::ResponseMeta;
use crate::throughput::offer::OfferStatus;

/// The answer to a successful request.
#[derive(Debug)]
pub struct Response<R> {
    pub reply: R,
    pub meta: ResponseMeta,
}

/// The answer to a failed request.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failure {
    #[source]
    pub error: ServiceError,
    pub meta: Box<ResponseMeta>,
}

impl From<Failure> for ServiceError {
    /// For callers that only need the reason.
    fn from(failure: Failure) -> ServiceError {
        failure.error
    }
}

/// One physical partition, as clients' routing maps and statistics need it.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeInfo {
    pub id: PartitionId,
    pub range: EpkRange,
    /// The whole ancestry.
    pub parents: Vec<PartitionId>,
    /// The change of the layout that made it.
    pub change: u64,
    pub lsn: Lsn,
    /// When it was last written to.
    pub ts_secs: u64,
    pub items: u64,
    /// What its items take as JSON text. Index entries are not counted.
    pub item_bytes: u64,
    /// Its part of the container's throughput.
    pub fraction: f64,
}

/// A resource of the catalogue, or that it is gone or unchanged.
#[derive(Debug)]
pub struct ResourceReply {
    pub kind: EffectKind,
    pub etag: Option<Etag>,
    pub body: Option<Bytes>,
    /// The status of an offer besides its text.
    pub offer: Option<OfferStatus>,
}

/// A page of results, each as JSON text, and where to continue.
#[derive(Debug)]
pub struct Feed<R> {
    pub owner_rid: String,
    pub bodies: Vec<Bytes>,
    pub rest: Option<R>,
}

/// Where a feed of resources continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceRest {
    /// After the resource of that name.
    AfterName(String),
    /// After that many rows of a query.
    AfterRows(u64),
}

/// A page of changes, in their order.
#[derive(Debug)]
pub struct ChangeFeed {
    pub owner_rid: String,
    pub changes: Vec<Change>,
    /// The position after the last of them.
    pub through: Lsn,
    /// Whether these were all so far.
    pub complete: bool,
}

/// The latest version of an item, and its position in the order of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Without system properties.
    pub text: Bytes,
    pub stamp: ItemStamp,
    pub lsn: Lsn,
}

/// A page of operations on items, in their order.
#[derive(Debug)]
pub struct VersionFeed {
    pub owner_rid: String,
    pub versions: Vec<ItemVersion>,
    /// The position after the last of them.
    pub through: Lsn,
    /// Whether these were all so far.
    pub complete: bool,
}

/// What one operation did to an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemVersion {
    pub kind: HistoryKind,
    pub lsn: Lsn,
    pub ts: Timestamp,
    /// The position of the version that it replaced or removed.
    pub previous: Option<Lsn>,
    /// The item after a write or before a removal, without system properties; not of the
    /// later removals of a commit that removed very much.
    pub image: Option<Bytes>,
    /// Belongs to the image.
    pub stamp: ItemStamp,
    /// What names a removed item.
    pub removed: Option<RemovedItem>,
}

/// A removed item, by its id and the values that it had at the paths of its partition key.
/// All values are JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedItem {
    pub id: String,
    pub key: Vec<(String, String)>,
}

/// A page of the rows of a query, each as JSON text, and where to continue.
#[derive(Debug)]
pub struct QueryRows {
    pub owner_rid: String,
    pub rows: Vec<Bytes>,
    pub rest: Option<Cursor>,
    pub report: Box<QueryReport>,
}

/// The plan by which a client runs a query on each partition itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryPlan {
    /// What the client does with the rows of the partitions.
    pub info: QueryInfo,
    /// The parts of the ring to ask.
    pub ranges: Vec<RingRange>,
}

/// How a container is divided into physical partitions.
#[derive(Debug)]
pub struct Ranges {
    pub container: ContainerRid,
    /// The last change of the layout.
    pub change: u64,
    pub ranges: Vec<RangeInfo>,
    /// The percentage of items with the entries of the indexing policy in force. A hundred
    /// only if all have them.
    pub index_percent: u8,
}

/// The result of one operation on one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemResult {
    pub kind: EffectKind,
    /// What the database knows of the item's present version; none after a delete.
    pub stamp: Option<ItemStamp>,
    /// The item without system properties; none after a delete or when it was not modified.
    pub text: Option<Bytes>,
    pub charge: Charge,
}

impl ItemResult {
    /// The etag of the item's present version.
    #[must_use]
    pub fn etag(&self) -> Option<&Etag> {
        self.stamp.as_ref().map(|stamp| &stamp.etag)
    }
}

/// One operation of a bulk request, and its share of the charge.
#[derive(Debug)]
pub struct BulkResult {
    pub result: Result<ItemResult, ServiceError>,
    pub charge: Charge,
}
