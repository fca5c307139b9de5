//! The one door behind every protocol.
//!
//! A protocol turns its bytes into a [`Request`], calls [`Service::execute`] and
//! turns the [`Response`] or [`Failure`] back into bytes. Everything between
//! happens once, here: who may do it, what the names mean, whether there is room
//! for it, doing it, and accounting for it.
//!
//! Must not know: HTTP, BSON, frames.

mod account;
mod admit;
mod authorise;
mod catalogue;
mod changes;
mod error;
mod expire;
mod grant;
mod items;
mod kind;
mod maintenance;
mod offer;
mod operator;
mod partitions;
mod provision;
mod queries;
mod read_items;
mod receipt;
mod redistribute;
mod reindex;
mod request;
mod resolve;
mod resources;
mod response;
mod service;
mod statistics;
mod verb;
mod visit;

pub use authorise::Principal;
pub use cluster::{
    Ahead, Caller, Cursor, CursorError, Division, Halve, KeyCharge, KeySize, KeySummary,
    PartitionId, Priority, QueryReport, Reason, Refusal, SortKey, ThroughputBucket, TransitionStep,
};
pub use error::{Remedy, ServiceError};
pub use grant::{Extent, Grant, Mode};
pub use kind::{Kind, Link};
pub use maintenance::Maintenance;
pub use model::partition_key::PartitionKey;
pub use model::throughput::Throughput;
pub use offer::{Migration, OfferStatus, OfferType, manual_throughput, parse_autoscale};
pub use operator::Operator;
pub use partition::{Approach, EffectKind, EtagMatch, Position};
pub use partitions::{LayoutChange, PartitionInfo};
pub use provision::{Throttle, ThrottleError, ThroughputRules};
pub use queries::advice_on;
pub use query::{
    Advice, AggregateKind, DistinctType, Features, Impact, IndexSpec, IndexUse, QueryInfo,
    RingRange,
};
pub use read_items::ReadItems;
pub use receipt::{Amount, Holding, Owner, Receipt};
pub use redistribute::{Redistribution, ThroughputInfo};
pub use request::{
    Batch, Bulk, BulkOperation, BulkPace, ChangeList, ChangeStart, Conditions, InContainer,
    ItemAction, ItemOperation, ItemQuery, ListItems, ListResources, PlanQuery, QueryResources,
    ReadRanges, ReadStatistics, Request, ResourceAction, ResumeFilter, Scope,
};
pub use resources::Swept;
pub use response::{
    BulkResult, Change, ChangeFeed, Failure, Feed, ItemResult, QueryPlan, QueryRows, RangeInfo,
    Ranges, ResourceReply, ResourceRest, Response,
};
pub use service::Service;
pub use statistics::{ContainerUsage, PartitionStatistics, Usage};
pub use verb::{ContainerVerb, Verb};
