//! Vectors: what they look like (the embedding policy) and how they are
//! indexed. An index makes sense only on a path that the embedding policy
//! describes, so the two are checked against each other.

use super::PolicyError;
use super::fields::{Fields, named, spelling, unknown_name};
use super::path::PropertyPath;
use crate::json::{Object, Value};

/// The largest vector that any index takes.
const DIMENSIONS_MAX: u32 = 4096;
/// The largest vector that an index of type `flat` takes.
const FLAT_DIMENSIONS_MAX: u32 = 505;
/// Bytes that a quantized vector may take; never more than it has dimensions.
const QUANTIZATION_BYTES_MAX: u32 = 512;
const SEARCH_LIST_MIN: i64 = 25;
const SEARCH_LIST_MAX: i64 = 500;
const SHARD_PATHS_MAX: usize = 1;

/// The vectors that items of a container carry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VectorEmbeddingPolicy {
    embeddings: Vec<Embedding>,
}

/// The vector at one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Embedding {
    pub path: PropertyPath,
    pub data_type: VectorDataType,
    pub dimensions: u32,
    pub distance: DistanceFunction,
    /// Asks the service to compute the vector; kept for the client.
    pub source: Option<EmbeddingSource>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorDataType {
    Float32,
    Float16,
    Int8,
    Uint8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistanceFunction {
    Cosine,
    DotProduct,
    Euclidean,
}

/// From which properties, and by which model, a vector is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddingSource {
    pub source_paths: Vec<PropertyPath>,
    pub deployment: String,
    pub model: Option<String>,
    pub endpoint: String,
    pub auth: EmbeddingAuth,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbeddingAuth {
    ApiKey,
    Entra,
}

/// A vector index on one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorIndex {
    pub path: PropertyPath,
    pub kind: VectorIndexKind,
    pub quantizer: Option<Quantizer>,
    pub quantization_bytes: Option<i64>,
    pub search_list: Option<i64>,
    pub shard_key: Option<Vec<PropertyPath>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorIndexKind {
    Flat,
    QuantizedFlat,
    DiskAnn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantizer {
    Product,
    Spherical,
}

const DATA_TYPES: [(&str, VectorDataType); 4] = [
    ("float32", VectorDataType::Float32),
    ("float16", VectorDataType::Float16),
    ("int8", VectorDataType::Int8),
    ("uint8", VectorDataType::Uint8),
];

const DISTANCES: [(&str, DistanceFunction); 3] = [
    ("cosine", DistanceFunction::Cosine),
    ("dotproduct", DistanceFunction::DotProduct),
    ("euclidean", DistanceFunction::Euclidean),
];

const AUTHS: [(&str, EmbeddingAuth); 2] =
    [("ApiKey", EmbeddingAuth::ApiKey), ("Entra", EmbeddingAuth::Entra)];

const KINDS: [(&str, VectorIndexKind); 3] = [
    ("flat", VectorIndexKind::Flat),
    ("quantizedFlat", VectorIndexKind::QuantizedFlat),
    ("diskANN", VectorIndexKind::DiskAnn),
];

const QUANTIZERS: [(&str, Quantizer); 2] =
    [("product", Quantizer::Product), ("spherical", Quantizer::Spherical)];

impl VectorEmbeddingPolicy {
    /// Reads the value of `vectorEmbeddingPolicy`.
    pub fn parse(value: &Value) -> Result<VectorEmbeddingPolicy, PolicyError> {
        let fields = Fields::of("vectorEmbeddingPolicy".to_owned(), value)?;
        let mut embeddings: Vec<Embedding> = Vec::new();
        for embedding in fields.objects("vectorEmbeddings")? {
            let next = Embedding::read(&embedding)?;
            if embeddings.iter().any(|earlier| earlier.path == next.path) {
                let field = fields.name_of("vectorEmbeddings");
                return Err(PolicyError::Repeated { field, path: next.path.to_string() });
            }
            embeddings.push(next);
        }
        Ok(VectorEmbeddingPolicy { embeddings })
    }

    #[must_use]
    pub fn embeddings(&self) -> &[Embedding] {
        &self.embeddings
    }

    #[must_use]
    pub fn to_value(&self) -> Value {
        let embeddings: Value = self.embeddings.iter().map(Embedding::to_value).collect();
        Object::from_iter([("vectorEmbeddings", embeddings)]).into()
    }

    /// Refuses an index that these vectors cannot have.
    pub(super) fn check(&self, index: &VectorIndex) -> Result<(), PolicyError> {
        let path = || index.path.to_string();
        let embedding = self.embeddings.iter().find(|embedding| embedding.path == index.path);
        let Some(Embedding { dimensions, .. }) = embedding else {
            return Err(PolicyError::VectorIndexWithoutEmbedding { path: path() });
        };
        if index.kind == VectorIndexKind::Flat && *dimensions > FLAT_DIMENSIONS_MAX {
            let (dimensions, max) = (*dimensions, FLAT_DIMENSIONS_MAX);
            return Err(PolicyError::VectorFlatDimensions { path: path(), dimensions, max });
        }
        let bytes_max = i64::from(QUANTIZATION_BYTES_MAX.min(*dimensions));
        in_range("QuantizationByteSize", index.quantization_bytes, 1, bytes_max)
    }
}

impl Embedding {
    fn read(fields: &Fields<'_>) -> Result<Embedding, PolicyError> {
        let path = fields.required("path", fields.string("path")?)?;
        let data_type = fields.required("dataType", fields.string("dataType")?)?;
        let distance = fields.required("distanceFunction", fields.string("distanceFunction")?)?;
        let source = fields.object("embeddingSource")?;
        Ok(Embedding {
            path: PropertyPath::read(path)
                .ok_or_else(|| PolicyError::EmbeddingPath { path: path.to_owned() })?,
            data_type: named(&DATA_TYPES, data_type)
                .ok_or_else(|| PolicyError::EmbeddingDataType { name: data_type.to_owned() })?,
            dimensions: dimensions(fields)?,
            distance: named(&DISTANCES, distance)
                .ok_or_else(|| PolicyError::EmbeddingDistance { name: distance.to_owned() })?,
            source: source.map(|fields| EmbeddingSource::read(&fields)).transpose()?,
        })
    }

    fn to_value(&self) -> Value {
        let mut object = Object::from_iter([("path", self.path.as_str())]);
        object.insert("dataType", spelling(&DATA_TYPES, self.data_type));
        object.insert("dimensions", self.dimensions);
        object.insert("distanceFunction", spelling(&DISTANCES, self.distance));
        if let Some(source) = &self.source {
            object.insert("embeddingSource", source.to_value());
        }
        object.into()
    }
}

impl EmbeddingSource {
    fn read(fields: &Fields<'_>) -> Result<EmbeddingSource, PolicyError> {
        let paths = fields.strings("sourcePaths")?;
        let text = |name: &str| fields.string(name).map(|text| text.map(str::to_owned));
        let auth = fields.required("authType", fields.string("authType")?)?;
        let path = |path: &&str| PropertyPath::parse(&fields.name_of("sourcePaths"), path);
        Ok(EmbeddingSource {
            source_paths: fields
                .required("sourcePaths", (!paths.is_empty()).then_some(&paths))?
                .iter()
                .map(path)
                .collect::<Result<_, _>>()?,
            deployment: fields.required("deploymentName", text("deploymentName")?)?,
            model: text("modelName")?,
            endpoint: fields.required("endpoint", text("endpoint")?)?,
            auth: named(&AUTHS, auth)
                .ok_or_else(|| PolicyError::EmbeddingAuthType { name: auth.to_owned() })?,
        })
    }

    fn to_value(&self) -> Value {
        let mut object = Object::new();
        object.insert("sourcePaths", paths_value(&self.source_paths));
        object.insert("deploymentName", self.deployment.as_str());
        if let Some(model) = &self.model {
            object.insert("modelName", model.as_str());
        }
        object.insert("endpoint", self.endpoint.as_str());
        object.insert("authType", spelling(&AUTHS, self.auth));
        object.into()
    }
}

impl VectorIndex {
    pub(super) fn read_all(indexing: &Fields<'_>) -> Result<Vec<VectorIndex>, PolicyError> {
        let mut indexes: Vec<VectorIndex> = Vec::new();
        for fields in indexing.objects("vectorIndexes")? {
            let next = VectorIndex::read(&fields)?;
            if indexes.iter().any(|earlier| earlier.path == next.path) {
                let field = indexing.name_of("vectorIndexes");
                return Err(PolicyError::Repeated { field, path: next.path.to_string() });
            }
            indexes.push(next);
        }
        Ok(indexes)
    }

    fn read(fields: &Fields<'_>) -> Result<VectorIndex, PolicyError> {
        let path = fields.required("path", fields.string("path")?)?;
        let kind = fields.required("type", fields.string("type")?)?;
        let quantizer =
            match fields.string("quantizerType")? {
                None => None,
                Some(name) => Some(named(&QUANTIZERS, name).ok_or_else(|| {
                    unknown_name(fields.name_of("quantizerType"), name, &QUANTIZERS)
                })?),
            };
        let search_list = fields.integer("indexingSearchListSize")?;
        in_range("IndexingSearchListSize", search_list, SEARCH_LIST_MIN, SEARCH_LIST_MAX)?;
        Ok(VectorIndex {
            path: PropertyPath::parse(&fields.name_of("path"), path)?,
            kind: named(&KINDS, kind)
                .ok_or_else(|| PolicyError::VectorIndexType { kind: kind.to_owned() })?,
            quantizer,
            quantization_bytes: fields.integer("quantizationByteSize")?,
            search_list,
            shard_key: shard_key(fields)?,
        })
    }

    pub(super) fn to_value(&self) -> Value {
        let mut object = Object::from_iter([("path", self.path.as_str())]);
        object.insert("type", spelling(&KINDS, self.kind));
        if let Some(quantizer) = self.quantizer {
            object.insert("quantizerType", spelling(&QUANTIZERS, quantizer));
        }
        if let Some(bytes) = self.quantization_bytes {
            object.insert("quantizationByteSize", bytes);
        }
        if let Some(size) = self.search_list {
            object.insert("indexingSearchListSize", size);
        }
        if let Some(paths) = &self.shard_key {
            object.insert("vectorIndexShardKey", paths_value(paths));
        }
        object.into()
    }
}

fn dimensions(fields: &Fields<'_>) -> Result<u32, PolicyError> {
    let dimensions = fields.required("dimensions", fields.integer("dimensions")?)?;
    if dimensions > i64::from(DIMENSIONS_MAX) {
        return Err(PolicyError::EmbeddingDimensionsAbove { dimensions, max: DIMENSIONS_MAX });
    }
    match u32::try_from(dimensions) {
        Ok(count @ 1..) => Ok(count),
        Ok(0) | Err(_) => Err(PolicyError::EmbeddingDimensionsBelow { dimensions }),
    }
}

fn shard_key(fields: &Fields<'_>) -> Result<Option<Vec<PropertyPath>>, PolicyError> {
    if fields.array("vectorIndexShardKey")?.is_none() {
        return Ok(None);
    }
    let paths = fields.strings("vectorIndexShardKey")?;
    if paths.len() > SHARD_PATHS_MAX {
        return Err(PolicyError::VectorShardPaths { count: paths.len(), max: SHARD_PATHS_MAX });
    }
    let read = |path: &&str| {
        let refused = || PolicyError::VectorShardPath { path: (*path).to_owned() };
        PropertyPath::read(path).ok_or_else(refused)
    };
    paths.iter().map(read).collect::<Result<_, _>>().map(Some)
}

fn in_range(
    parameter: &'static str,
    value: Option<i64>,
    min: i64,
    max: i64,
) -> Result<(), PolicyError> {
    match value {
        Some(value) if !(min..=max).contains(&value) => {
            Err(PolicyError::VectorIndexParameter { parameter, value, min, max })
        }
        Some(_) | None => Ok(()),
    }
}

fn paths_value(paths: &[PropertyPath]) -> Value {
    paths.iter().map(PropertyPath::as_str).collect()
}
