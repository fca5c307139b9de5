//! Many partitions as one: the map of hash ranges, routing, sequencing.
//!
//! A container is a ring of hashes cut into ranges. [`Cluster`] finds the range
//! that owns a key, hands the command to the executor of that range's partition
//! and answers when the disk has it. The map and the catalogue are items of one
//! *system partition* behind the same door as everything else, so they are as
//! durable and as checked as users' data.
//!
//! Must not know: wire formats.

mod budget;
mod changes;
mod check;
mod choose;
mod clock;
mod cluster;
mod cold;
mod container;
mod due;
mod error;
mod executor;
mod expire;
mod layout;
mod maintenance;
mod map;
mod meter;
mod partition_handle;
mod query;
mod read;
mod rebucket;
mod reindex;
mod retired;
mod statistics;
mod stored_map;
mod switch;
mod system;
mod throughput;
mod transition;

pub use budget::{Allowance, Burst, Caller, Priority, Reason, ThrottleRefusal, ThroughputBudget};
pub use check::ClusterReport;
pub use clock::Ahead;
pub use cluster::{Cluster, Served};
pub use cold::MergeRule;
pub use container::{Container, ContainerSpec};
pub use error::ClusterError;
pub use index::SortValue;
pub use layout::Layout;
pub use map::{
    ContainerMap, Division, DivisionError, FinalPosition, LayoutError, MapError, PartitionId,
    PartitionRecord,
};
pub use meter::{HeavyKey, Meter, Totals};
pub use partition_handle::PartitionHandle;
pub use query::{
    Cursor, CursorError, FunctionTimes, PageBounds, PageQuery, Point, QueryFailure, QueryPage,
    QueryReport, QueryTimes, Turn,
};
pub use read::Sizes;
pub use retired::{Removed, RetiredPrefix};
pub use statistics::{KeyCharge, KeySize, KeySummary};
pub use switch::{Switched, TransitionStep};
pub use system::SystemWrite;
pub use throughput::{
    PartitionThrottle, Permit, Pool, ProvisionedThroughput, ThroughputBucket, ThroughputController,
};
pub use transition::{Halve, Transition};
