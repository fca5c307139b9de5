//! Why a policy is refused.

use crate::name::NameError;
use crate::partition_key::DefinitionError;

/// A container definition that cannot be accepted. The text is what the client
/// reads; where the service's own text is known, the text follows it, because
/// the SDKs' tests look for parts of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    #[error(
        "One of the specified inputs is invalid: '{field}' must be {expected}, but is {found}."
    )]
    WrongType { field: String, expected: &'static str, found: &'static str },

    #[error(
        "The input content is invalid because the required properties - '{field}; ' - are missing."
    )]
    Missing { field: String },

    #[error(
        "One of the specified inputs is invalid: '{value}' is not a value of '{field}'; the values are {allowed}."
    )]
    UnknownName { field: String, value: String, allowed: String },

    #[error(
        "One of the specified inputs is invalid: '{field}' is {value}, but must be {expected}."
    )]
    OutOfRange { field: String, value: String, expected: &'static str },

    #[error("The number of {what}: {count} exceeds the maximum: {max}.")]
    TooMany { what: &'static str, count: usize, max: usize },

    #[error(transparent)]
    Id(#[from] NameError),

    #[error(transparent)]
    PartitionKey(#[from] DefinitionError),

    #[error(
        "The indexing path '{path}' could not be accepted, failed near position '{position}'. \
         Please ensure that the path is a valid path. Common errors include invalid characters \
         or absence of quotes around labels."
    )]
    IndexPath { path: String, position: usize },

    #[error("'{path}' in '{field}' is not a path to a property, such as /address/city.")]
    PropertyPath { field: String, path: String },

    #[error("'{path}' is named more than once in '{field}'.")]
    Repeated { field: String, path: String },

    #[error("The path '{path}' cannot be both included in and excluded from the index.")]
    IncludedAndExcluded { path: String },

    #[error(
        "The path '{path}' names several properties together, which only an included path may do."
    )]
    TupleOutsideIncluded { path: String },

    #[error(
        "The special mandatory indexing path \"/*\" is not provided in any of the path type sets. \
         Please provide this path in one of the sets."
    )]
    RootPathMissing,

    #[error("Indexing mode value cannot be 'none' when automatic indexing is specified as 'true'.")]
    AutomaticWithoutIndex,

    #[error(
        "Indexing mode value cannot be 'none' when 'defaultTtl' is specified in the collection."
    )]
    TtlWithoutIndex,

    #[error("A composite index needs between {min} and {max} paths, but one has {count}.")]
    CompositeLength { count: usize, min: usize, max: usize },

    #[error("A unique key needs at least one path.")]
    EmptyUniqueKey,

    #[error(
        "The input ttl '{ttl}' is invalid. Ensure to provide a nonzero positive integer or -1."
    )]
    Ttl { ttl: String },

    #[error(
        "The spatial data types array cannot be empty. Assign at least one spatial type for the 'types' array for \
         the path '{path}'."
    )]
    SpatialTypesMissing { path: String },

    #[error("'ttlPropertyPath' needs a 'defaultTtl' in the collection.")]
    TtlPathWithoutTtl,

    #[error(
        "A spatial index on '{path}' needs a boundingBox, because the container's geospatial type is Geometry."
    )]
    BoundingBoxMissing { path: String },

    #[error(
        "A spatial index on '{path}' cannot have a boundingBox, because the container's geospatial type is Geography."
    )]
    BoundingBoxUnused { path: String },

    #[error(
        "The boundingBox of the spatial index on '{path}' is empty: its maxima must be above its minima."
    )]
    BoundingBoxEmpty { path: String },

    #[error("The Vector Indexing Policy's Index Type::{kind} is invalid.")]
    VectorIndexType { kind: String },

    #[error("The Vector Indexing Policy's path::{path} not matching in Embedding's path.")]
    VectorIndexWithoutEmbedding { path: String },

    #[error(
        "The Vector Indexing Policy parameter {parameter} value :: {value} is out of range. \
         The allowed range is between {min} and {max}."
    )]
    VectorIndexParameter { parameter: &'static str, value: i64, min: i64, max: i64 },

    #[error("The Vector Indexing Policy has an invalid Shard Path: {path}.")]
    VectorShardPath { path: String },

    #[error(
        "The number of shard paths defined in the Vector Indexing Policy: {count} exceeds the maximum: {max}."
    )]
    VectorShardPaths { count: usize, max: usize },

    #[error(
        "The Vector Indexing Policy has Index Type::flat on path::{path}, which supports at most {max} dimensions, not {dimensions}."
    )]
    VectorFlatDimensions { path: String, dimensions: u32, max: u32 },

    #[error("The Vector Embedding Policy has an invalid Path:{path}.")]
    EmbeddingPath { path: String },

    #[error("The Vector Embedding Policy has an invalid DataType:{name}.")]
    EmbeddingDataType { name: String },

    #[error("The Vector Embedding Policy has an invalid DistanceFunction:{name}.")]
    EmbeddingDistance { name: String },

    #[error(
        "The Vector Embedding Policy has Dimensions:{dimensions} which is more than the maximum supported value of {max}."
    )]
    EmbeddingDimensionsAbove { dimensions: i64, max: u32 },

    #[error(
        "The Vector Embedding Policy has Dimensions:{dimensions} which is less than the minimum supported value of 1."
    )]
    EmbeddingDimensionsBelow { dimensions: i64 },

    #[error("The auth type provided in the embedding source of vector policy is invalid.")]
    EmbeddingAuthType { name: String },

    #[error("The Full Text Policy contains an invalid Path: {path}.")]
    FullTextPath { path: String },

    #[error(
        "The Full Text Policy contains an unsupported language {language}. Supported languages are: {supported}."
    )]
    FullTextLanguage { language: String, supported: String },

    #[error(
        "The Full Text Indexing Policy's path::{path} is not among the paths of the Full Text Policy."
    )]
    FullTextIndexWithoutPolicy { path: String },

    #[error("{mode} conflict resolution mode should not have conflict resolution {field} set.")]
    ConflictField { mode: &'static str, field: &'static str },

    #[error("Invalid path '{path}' for last writer wins conflict resolution")]
    ConflictPath { path: String },

    #[error("The system property name '{name}' cannot be used as a computed property name.")]
    ComputedName { name: String },

    #[error("Computed property name '{name}' cannot be used in multiple definitions.")]
    ComputedTwice { name: String },

    #[error("Computed property '{field}' is either empty or unspecified.")]
    ComputedEmpty { field: &'static str },

    #[error("One of the specified inputs is invalid")]
    ComputedIncomplete,

    #[error(
        "Computed property '{name}' at index ({at}) has a spatial index. Remove the spatial index on this path."
    )]
    ComputedSpatial { name: String, at: usize },

    #[error(
        "The client encryption policy's path '{path}' must be one property at the top of the item, such as /ssn."
    )]
    EncryptedPath { path: String },

    #[error("The client encryption policy cannot encrypt '{path}': {problem}.")]
    EncryptedKey { path: String, problem: &'static str },

    #[error("'{feature}' is not supported.")]
    Unsupported { feature: &'static str },
}

/// A replacement of a container that would change what is fixed for its lifetime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplaceError {
    #[error("The id of a container cannot be changed from '{from}' to '{to}'.")]
    Id { from: String, to: String },

    #[error("The partition key definition of a container cannot be changed.")]
    PartitionKey,

    /// The service answers this one with 403, the others with 400.
    #[error(
        "The unique index cannot be modified. To change the unique index, remove the collection \
         and re-create a new one."
    )]
    UniqueKeys,

    #[error("Paths in existing embedding policy cannot be modified in Collection Replace.")]
    VectorEmbeddings,

    #[error("Paths in existing vector indexing policy cannot be modified in Collection Replace.")]
    VectorIndexes,

    #[error("'clientEncryptionPolicy' cannot be changed as part of collection replace operation.")]
    ClientEncryption,

    #[error("Updating conflict resolution policy is currently not supported")]
    ConflictResolution,
}
