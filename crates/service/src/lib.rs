//! The one door below every protocol.
//!
//! A protocol turns its bytes into a [`Request`], calls [`Service::execute`] and turns the
//! [`Response`] or [`Failure`] back into bytes. Everything between happens once, here:
//! authorisation, name resolution, limits, execution, and accounting.
//!
//! Must not know: HTTP, BSON, frames.

mod catalogue;
mod error;
pub mod identity;
mod items;
mod maintenance;
mod operator;
mod pipeline;
mod request;
mod response;
mod scripts;
mod service;
mod throughput;
pub mod upgrade;
mod verb;

// Execution, principals, and what accompanies every answer.
pub use error::{Remedy, ServiceError};
pub use pipeline::authorise::Principal;
pub use pipeline::meta::{Amount, Holding, Owner, ResponseMeta};
pub use request::{InContainer, Request};
pub use response::{Failure, Response};
pub use service::Service;
pub use verb::{ContainerVerb, Verb};

// Verbs on items, one type each, with their arguments and replies.
pub use items::read_items::ReadItems;
pub use partition::HistoryKind;
pub use request::{
    Batch, Bulk, BulkOperation, BulkPace, ChangeList, ChangeStart, ItemAction, ItemOperation,
    ItemQuery, ListItems, PlanQuery, QuerySource, ReadRanges, ReadStatistics, ResumeFilter, Scope,
    VersionList,
};
pub use response::{
    BulkResult, Change, ChangeFeed, Feed, ItemResult, ItemVersion, QueryPlan, QueryRows, RangeInfo,
    Ranges, RemovedItem, VersionFeed,
};

// Scripts.
pub use operator::scripts::{ProcedureCall, ScriptDefinition, ScriptInfo, TriggerDefinition};
pub use script::{Fault, ScriptLimits};
pub use scripts::totals::{CountedScript, ScriptTotals};
pub use scripts::triggers::{TriggeredAction, TriggeredResult};
pub use scripts::{ExecuteProcedure, ProcedureResult};

// Verbs on resources of the catalogue, and their names.
pub use catalogue::kind::{Kind, Link};
pub use request::{Conditions, ListResources, QueryResources, ResourceAction};
pub use response::{ResourceReply, ResourceRest};
pub use throughput::offer::{
    Migration, OfferStatus, OfferType, manual_throughput, parse_autoscale,
};

// Verbs of operators, and maintenance.
pub use catalogue::resources::Swept;
pub use maintenance::Maintenance;
pub use operator::Operator;
pub use operator::partitions::{LayoutChange, PartitionInfo};
pub use operator::statistics::{ContainerUsage, PartitionStatistics, Usage};
pub use operator::time::ServerTime;
pub use throughput::provision::{Throttle, ThrottleError, ThroughputRules};
pub use throughput::redistribute::{Redistribution, ThroughputInfo};

// Types of the crates below that occur in requests and replies: wire crates must not use
// those crates themselves.
pub use cluster::{
    Ahead, Caller, Cursor, CursorError, Division, Halve, KeyCharge, KeySize, KeySummary,
    PartitionId, Priority, QueryReport, Reason, SortValue, ThrottleRefusal, ThroughputBucket,
    TransitionStep,
};
pub use items::queries::advice_on;
pub use model::partition_key::PartitionKey;
pub use model::throughput::Throughput;
pub use partition::{Approach, EffectKind, EtagMatch};
pub use query::{Advice, Features, Impact, IndexSpec, IndexUse, QueryInfo, RingRange, syntax};
