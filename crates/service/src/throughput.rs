//! Throughput: how offers spell it, what they come to for containers, and how it is divided
//! between physical partitions.

pub(crate) mod offer;
pub(crate) mod provision;
pub(crate) mod redistribute;
