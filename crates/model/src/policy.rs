//! Container policies: read from JSON, checked, completed with the service's defaults, and
//! written back as SDKs expect them.
//!
//! A policy can only be constructed by parsing it, so holding one means that it was
//! checked. Nothing is echoed that was not understood: unknown fields are dropped, known
//! ones with a wrong type or value are refused.
//!
//! The text of a computed property is stored without being understood: it is a query, and
//! this crate does not know the query language.

mod change_feed;
mod computed;
mod conflict;
mod container;
mod encryption;
mod error;
mod fields;
mod full_text;
mod indexing;
mod path;
mod spatial;
mod ttl;
mod unique_keys;
mod vector;

pub use change_feed::ChangeFeedPolicy;
pub use computed::{ComputedProperties, ComputedProperty};
pub use conflict::ConflictResolutionPolicy;
pub use container::{ContainerDefinition, without_system_key};
pub use encryption::{ClientEncryptionPolicy, EncryptedPath, EncryptionType};
pub use error::{PolicyError, ReplaceError};
pub use full_text::{FullTextPath, FullTextPolicy};
pub use indexing::{
    CompositePath, IncludedPath, IndexingMode, IndexingPolicy, SortOrder, without_outdated_indexes,
};
pub use path::{IndexPath, PathEnd, PolicyPathStep, PropertyPath};
pub use spatial::{BoundingBox, GeospatialConfig, SpatialIndex, SpatialType};
pub use ttl::{AnalyticalTtl, OwnTtl, TimeToLive, expires_at};
pub use unique_keys::{UniqueKey, UniqueKeyPolicy};
pub use vector::{
    DistanceFunction, Embedding, EmbeddingAuth, EmbeddingSource, Quantizer, VectorDataType,
    VectorEmbeddingPolicy, VectorIndex, VectorIndexKind,
};

#[cfg(test)]
mod tests;
