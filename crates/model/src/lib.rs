//! The vocabulary of Orrery: JSON values and their order, partition keys and
//! how they hash onto the ring, resource ids, positions, policies, limits and
//! throughput.
//!
//! Everything here is a plain value or a pure function over values, so every
//! other crate can depend on it and every rule in it can be tested alone.
//!
//! Must not know: IO, async, HTTP.

pub mod charge;
pub mod epk;
pub mod etag;
pub mod hex;
pub mod json;
pub mod limits;
mod murmur;
pub mod name;
pub mod partition_key;
pub mod policy;
pub mod position;
pub mod rid;
pub mod session;
pub mod system_properties;
pub mod throughput;
pub mod typed;
pub mod varint;
