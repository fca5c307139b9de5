//! What is answered, in no protocol's words.

use bytes::Bytes;
use cluster::{Cursor, QueryReport, RangeId};
use model::charge::Charge;
use model::epk::EpkRange;
use model::etag::Etag;
use model::json::Value;
use model::position::Lsn;
use model::rid::ContainerRid;
use partition::{EffectKind, Position};

use crate::error::ServiceError;
use crate::offer::OfferStatus;
use crate::receipt::Receipt;
use crate::statistics::PartitionStatistics;

/// The answer to a request that was done.
#[derive(Debug)]
pub struct Response {
    pub reply: Reply,
    pub receipt: Receipt,
}

/// The answer to a request that was not done.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failure {
    #[source]
    pub error: ServiceError,
    pub receipt: Box<Receipt>,
}

impl From<Failure> for ServiceError {
    /// For callers whom only the reason interests.
    fn from(failure: Failure) -> ServiceError {
        failure.error
    }
}

/// One physical partition, as clients' routing maps and statistics want it.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeInfo {
    pub id: RangeId,
    pub range: EpkRange,
    /// The whole ancestry.
    pub parents: Vec<RangeId>,
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

/// What came of it.
#[derive(Debug)]
pub enum Reply {
    /// One resource or item, or the news that it is gone or unchanged.
    One { kind: EffectKind, etag: Option<Etag>, body: Option<Bytes> },
    /// An offer, and what is told about it besides its text.
    Offer { kind: EffectKind, etag: Option<Etag>, body: Option<Bytes>, status: OfferStatus },
    /// Some of many, and where to go on. Each body is JSON text.
    Feed { owner_rid: String, bodies: Vec<Bytes>, rest: Option<Rest> },
    /// Some changes, each the JSON text of an item.
    Changes {
        owner_rid: String,
        bodies: Vec<Bytes>,
        /// Behind the last of them.
        through: Lsn,
        /// Whether these were all there are by now.
        complete: bool,
    },
    /// Some of the rows of a query, and where to go on. Each row is JSON text.
    Rows { owner_rid: String, rows: Vec<Bytes>, rest: Option<Cursor>, report: Box<QueryReport> },
    /// How a client runs a query by itself: the text of a plan.
    QueryPlan { plan: Value },
    /// The operations of a batch that was done.
    Batch { results: Vec<ItemResult> },
    /// The operations of a bulk request, each with its own answer.
    Bulk { results: Vec<BulkResult> },
    /// What the physical partitions hold and do.
    Statistics { partitions: Vec<PartitionStatistics> },
    Ranges {
        container: ContainerRid,
        /// The last change of the layout.
        change: u64,
        ranges: Vec<RangeInfo>,
        /// How many of a hundred items have the entries of the indexing policy in force.
        /// A hundred only if all have.
        index_percent: u8,
    },
}

/// Where a feed goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Behind the resource of that name.
    AfterName(String),
    /// Behind so many rows of a query on resources.
    AfterRows(u64),
    /// Behind that item.
    AfterItem(Position),
}

/// One operation on one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemResult {
    pub kind: EffectKind,
    pub etag: Option<Etag>,
    pub body: Option<Bytes>,
    pub charge: Charge,
}

/// One operation of a bulk request, and its share of the charge.
#[derive(Debug)]
pub struct BulkResult {
    pub result: Result<ItemResult, ServiceError>,
    pub charge: Charge,
}
