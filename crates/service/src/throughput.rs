//! Throughput: the format of offers, what they mean for containers, and how it is divided
//! between physical partitions.

pub(crate) mod offer;
pub(crate) mod provision;
pub(crate) mod redistribute;
