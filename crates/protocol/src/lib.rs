//! What the protocols of Azure Cosmos DB for NoSQL have in common, whatever carries a request.
//!
//! A request is signed by the same rule, fails with the same status, sub-status and text, and
//! has the same bodies, whether it comes over HTTP or in the frames of direct mode. That is here,
//! so that it exists once; how a request names what it wants is left to each wire.
//!
//! Must not know: headers, frames, partitions, storage.

pub mod address;
pub mod auth;
pub mod batch;
pub mod binary_json;
pub mod changes;
pub mod continuation;
pub mod error;
pub mod metrics;
pub mod page;
pub mod plan;
pub mod resource;
pub mod resume;
pub mod statement;
pub mod system_properties;
pub mod token;
