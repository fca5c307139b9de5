//! What is answered, in no protocol's words.

use std::sync::Arc;

use bytes::Bytes;
use cluster::RangeId;
use model::charge::Charge;
use model::epk::EpkRange;
use model::etag::Etag;
use model::position::Lsn;
use model::rid::ContainerRid;
use model::session::RangeToken;
use partition::{EffectKind, Position, Work};

use crate::error::ServiceError;

/// The answer to a request that was done.
#[derive(Debug)]
pub struct Response {
    pub reply: Reply,
    /// The physical partition that served it, if one did.
    pub range: Option<RangeId>,
    /// What the client has now seen of that partition.
    pub session: Option<RangeToken>,
    pub work: Work,
    /// Set by the last step, from the work.
    pub charge: Charge,
    /// The container it was about, if it was about one.
    pub container: Option<ContainerName>,
}

/// A container by both of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerName {
    pub rid: ContainerRid,
    /// `dbs/NAME/colls/NAME`.
    pub link: Arc<str>,
}

/// One physical partition, as clients' routing maps want it.
#[derive(Clone, Debug, PartialEq, Eq)]
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
}

impl Response {
    /// An answer from one physical partition.
    pub(crate) fn routed(range: RangeId, lsn: Lsn, reply: Reply, work: Work) -> Response {
        let session = Some(RangeToken::new(range.0, lsn));
        Response { range: Some(range), session, ..Response::unrouted(reply, work) }
    }

    /// An answer from the catalogue, or from several partitions.
    pub(crate) fn unrouted(reply: Reply, work: Work) -> Response {
        let charge = Charge::default();
        Response { reply, range: None, session: None, work, charge, container: None }
    }
}

/// What came of it.
#[derive(Debug)]
pub enum Reply {
    /// One resource or item, or the news that it is gone or unchanged.
    One { kind: EffectKind, etag: Option<Etag>, body: Option<Bytes> },
    /// Some of many, and where to go on. Each body is JSON text.
    Feed { owner_rid: String, bodies: Vec<Bytes>, rest: Option<Rest> },
    /// The operations of a batch that was done.
    Batch { results: Vec<ItemResult> },
    /// The operations of a bulk request, each with its own answer.
    Bulk { results: Vec<Result<ItemResult, ServiceError>> },
    Ranges {
        /// The last change of the layout.
        change: u64,
        ranges: Vec<RangeInfo>,
    },
}

/// Where a feed goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Behind the resource of that name.
    AfterName(String),
    /// Behind that item.
    AfterItem(Position),
}

/// One operation on one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemResult {
    pub kind: EffectKind,
    pub etag: Option<Etag>,
    pub body: Option<Bytes>,
}
