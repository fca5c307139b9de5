//! Many partitions as one: the map of hash ranges, routing, execution, throughput, queries
//! over partitions, splits and merges.
//!
//! A container is a ring of hashes cut into ranges. [`Cluster`] finds the range that owns a
//! key, hands the command to the executor of that range's partition and returns when it is
//! durable. The map and the catalogue are items of one *system partition* in the same store
//! as everything else, so they are as durable and as checked as users' data.
//!
//! Must not know: wire formats.

mod cluster;
mod error;
mod execution;
mod layout;
mod maintenance;
mod query;
mod system;
mod throughput;
mod transition;

pub use cluster::{Cluster, Served};
pub use error::ClusterError;
pub use execution::functions::{FunctionThread, FunctionThreads};
pub use execution::read::Sizes;
pub use execution::scripts::ScriptTurn;
pub use index::SortValue;
pub use layout::Layout;
pub use layout::container::{Container, ContainerSpec};
pub use layout::map::{
    ContainerMap, Division, DivisionError, FinalPosition, LayoutError, MapError, PartitionId,
    PartitionRecord,
};
pub use layout::partition_handle::PartitionHandle;
pub use maintenance::check::ClusterReport;
pub use maintenance::clock::Ahead;
pub use maintenance::retired::{Removed, RetiredPrefix};
pub use maintenance::statistics::{KeyCharge, KeySize, KeySummary};
pub use maintenance::upgrade::Upgrade;
pub use query::{
    Cursor, CursorError, FunctionTimes, OwnerSnapshot, PageBounds, PageQuery, Point, QueryFailure,
    QueryPage, QueryQueue, QueryReport, QueryTimes, Turn,
};
pub use system::{SystemItems, SystemWrite};
pub use throughput::budget::{
    Allowance, Burst, Caller, Priority, Reason, ThrottleRefusal, ThroughputBudget,
};
pub use throughput::meter::{HeavyKey, Meter, Totals};
pub use throughput::{
    PartitionThrottle, Permit, Pool, ProvisionedThroughput, ThroughputBucket, ThroughputController,
};
pub use transition::cold::MergeRule;
pub use transition::switch::{Switched, TransitionStep};
pub use transition::{Halve, Transition};
