//! A container's definition: its policies together, and the rules between them.

use super::fields::Fields;
use super::{
    AnalyticalTtl, ChangeFeedPolicy, ClientEncryptionPolicy, ComputedProperties,
    ConflictResolutionPolicy, FullTextPolicy, GeospatialConfig, IndexingMode, IndexingPolicy,
    PolicyError, PolicyPathStep, PropertyPath, ReplaceError, TimeToLive, UniqueKeyPolicy,
    VectorEmbeddingPolicy,
};
use crate::json::{Object, Value};
use crate::name::ResourceName;
use crate::partition_key::PartitionKeyDefinition;

/// Kinds of container that behave quite unlike an ordinary one: better refused than created
/// as something else.
const UNSUPPORTED: [&str; 2] = ["materializedViewDefinition", "globalSecondaryIndexDefinition"];

/// Everything about a container that its creator decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerDefinition {
    id: ResourceName,
    partition_key: PartitionKeyDefinition,
    indexing: IndexingPolicy,
    unique_keys: UniqueKeyPolicy,
    conflict_resolution: ConflictResolutionPolicy,
    ttl: TimeToLive,
    /// Kept for the client: items expire by their last change, as in the service today.
    ttl_path: Option<PropertyPath>,
    analytical_ttl: Option<AnalyticalTtl>,
    computed_properties: ComputedProperties,
    geospatial: GeospatialConfig,
    vector_embeddings: VectorEmbeddingPolicy,
    full_text: Option<FullTextPolicy>,
    change_feed: Option<ChangeFeedPolicy>,
    client_encryption: Option<ClientEncryptionPolicy>,
}

impl ContainerDefinition {
    /// Reads the body of a request to create or replace a container. System
    /// properties (`_rid`, `_ts` …) that a client sends back are left out.
    pub fn parse(body: &Value) -> Result<ContainerDefinition, PolicyError> {
        let fields = Fields::root(body)?;
        refuse_unsupported(&fields)?;
        let definition = ContainerDefinition {
            id: id(&fields)?,
            partition_key: partition_key(&fields)?,
            indexing: read(&fields, "indexingPolicy", IndexingPolicy::parse)?.unwrap_or_default(),
            unique_keys: read(&fields, "uniqueKeyPolicy", UniqueKeyPolicy::parse)?
                .unwrap_or_default(),
            conflict_resolution: read(
                &fields,
                "conflictResolutionPolicy",
                ConflictResolutionPolicy::parse,
            )?
            .unwrap_or_default(),
            ttl: TimeToLive::read(&fields)?,
            ttl_path: ttl_path(&fields)?,
            analytical_ttl: AnalyticalTtl::read(&fields)?,
            computed_properties: ComputedProperties::read(&fields)?,
            geospatial: GeospatialConfig::read(&fields)?,
            vector_embeddings: read(
                &fields,
                "vectorEmbeddingPolicy",
                VectorEmbeddingPolicy::parse,
            )?
            .unwrap_or_default(),
            full_text: read(&fields, "fullTextPolicy", FullTextPolicy::parse)?,
            change_feed: read(&fields, "changeFeedPolicy", ChangeFeedPolicy::parse)?,
            client_encryption: read(
                &fields,
                "clientEncryptionPolicy",
                ClientEncryptionPolicy::parse,
            )?,
        };
        definition.check_together()?;
        Ok(definition)
    }

    /// The database's own records: no partition key, no index, nothing else.
    #[must_use]
    pub fn system(id: &str) -> ContainerDefinition {
        ContainerDefinition {
            id: ResourceName::parse(id).expect("our own names are valid"),
            partition_key: PartitionKeyDefinition::none(),
            indexing: IndexingPolicy::off(),
            unique_keys: UniqueKeyPolicy::default(),
            conflict_resolution: ConflictResolutionPolicy::default(),
            ttl: TimeToLive::Off,
            ttl_path: None,
            analytical_ttl: None,
            computed_properties: ComputedProperties::default(),
            geospatial: GeospatialConfig::default(),
            vector_embeddings: VectorEmbeddingPolicy::default(),
            full_text: None,
            change_feed: None,
            client_encryption: None,
        }
    }

    /// The rules between policies.
    fn check_together(&self) -> Result<(), PolicyError> {
        if self.indexing.mode() == IndexingMode::None && self.ttl != TimeToLive::Off {
            return Err(PolicyError::TtlWithoutIndex);
        }
        if self.ttl_path.is_some() && self.ttl == TimeToLive::Off {
            return Err(PolicyError::TtlPathWithoutTtl);
        }
        self.indexing.vectors().iter().try_for_each(|index| self.vector_embeddings.check(index))?;
        self.indexing.spatial().iter().try_for_each(|index| self.geospatial.check(index))?;
        self.check_full_text()?;
        self.check_computed()?;
        self.check_encryption()
    }

    fn check_full_text(&self) -> Result<(), PolicyError> {
        let described = self.full_text.as_ref().map_or(&[][..], FullTextPolicy::paths);
        let missing = |path: &&PropertyPath| !described.iter().any(|text| text.path == **path);
        match self.indexing.full_text().iter().find(missing) {
            None => Ok(()),
            Some(path) => Err(PolicyError::FullTextIndexWithoutPolicy { path: path.to_string() }),
        }
    }

    /// Coordinates that are computed cannot be indexed.
    fn check_computed(&self) -> Result<(), PolicyError> {
        let is_spatial = |name: &str| {
            self.indexing.spatial().iter().any(|index| {
                let first = index.path.steps().first();
                matches!(first, Some(PolicyPathStep::Property(first)) if first == name)
            })
        };
        let mut properties = self.computed_properties.properties().iter().enumerate();
        match properties.find(|(_, property)| is_spatial(&property.name)) {
            None => Ok(()),
            Some((at, property)) => {
                Err(PolicyError::ComputedSpatial { name: property.name.clone(), at })
            }
        }
    }

    fn check_encryption(&self) -> Result<(), PolicyError> {
        let Some(policy) = &self.client_encryption else { return Ok(()) };
        let mut keys = self.partition_key.paths().iter().filter_map(|path| path.names().first());
        keys.try_for_each(|property| policy.check_key(property))
    }

    /// The definition as clients read it, without system properties.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        object.insert("id", self.id.as_str());
        object.insert("indexingPolicy", self.indexing.to_value());
        let unique_keys = (!self.unique_keys.is_empty()).then(|| self.unique_keys.to_value());
        let computed =
            (!self.computed_properties.is_empty()).then(|| self.computed_properties.to_value());
        let vectors = &self.vector_embeddings;
        let vectors = (!vectors.embeddings().is_empty()).then(|| vectors.to_value());
        let rest = [
            ("partitionKey", Some(self.partition_key.to_value())),
            ("uniqueKeyPolicy", unique_keys),
            ("conflictResolutionPolicy", Some(self.conflict_resolution.to_value())),
            ("geospatialConfig", Some(self.geospatial.to_value())),
            ("defaultTtl", self.ttl.to_value()),
            ("ttlPropertyPath", self.ttl_path.as_ref().map(|path| path.as_str().into())),
            ("analyticalStorageTtl", self.analytical_ttl.map(AnalyticalTtl::to_value)),
            ("computedProperties", computed),
            ("vectorEmbeddingPolicy", vectors),
            ("fullTextPolicy", self.full_text.as_ref().map(FullTextPolicy::to_value)),
            ("changeFeedPolicy", self.change_feed.map(ChangeFeedPolicy::to_value)),
            (
                "clientEncryptionPolicy",
                self.client_encryption.as_ref().map(ClientEncryptionPolicy::to_value),
            ),
        ];
        for (name, value) in rest {
            if let Some(value) = value {
                object.insert(name, value);
            }
        }
        object.into()
    }

    /// Refuses a replacement that would change what is fixed for the container's lifetime.
    /// A policy that is absent from `new` counts as its default, as in the service: a
    /// client must send unique keys back to keep them.
    pub fn check_replace(&self, new: &ContainerDefinition) -> Result<(), ReplaceError> {
        if self.id != new.id {
            let (from, to) = (self.id.to_string(), new.id.to_string());
            return Err(ReplaceError::Id { from, to });
        }
        if self.partition_key != new.partition_key {
            return Err(ReplaceError::PartitionKey);
        }
        if self.unique_keys != new.unique_keys {
            return Err(ReplaceError::UniqueKeys);
        }
        // More vectors may be described and indexed later; existing ones stay.
        if !contains_all(new.vector_embeddings.embeddings(), self.vector_embeddings.embeddings()) {
            return Err(ReplaceError::VectorEmbeddings);
        }
        if !contains_all(new.indexing.vectors(), self.indexing.vectors()) {
            return Err(ReplaceError::VectorIndexes);
        }
        if self.client_encryption != new.client_encryption {
            return Err(ReplaceError::ClientEncryption);
        }
        if self.conflict_resolution != new.conflict_resolution {
            return Err(ReplaceError::ConflictResolution);
        }
        Ok(())
    }

    /// The same with the conflict resolution of another one.
    #[must_use]
    pub fn resolving_conflicts_as(self, other: &ContainerDefinition) -> ContainerDefinition {
        ContainerDefinition { conflict_resolution: other.conflict_resolution.clone(), ..self }
    }

    #[must_use]
    pub fn id(&self) -> &ResourceName {
        &self.id
    }

    #[must_use]
    pub fn partition_key(&self) -> &PartitionKeyDefinition {
        &self.partition_key
    }

    #[must_use]
    pub fn indexing(&self) -> &IndexingPolicy {
        &self.indexing
    }

    #[must_use]
    pub fn unique_keys(&self) -> &UniqueKeyPolicy {
        &self.unique_keys
    }

    #[must_use]
    pub fn conflict_resolution(&self) -> &ConflictResolutionPolicy {
        &self.conflict_resolution
    }

    #[must_use]
    pub fn ttl(&self) -> TimeToLive {
        self.ttl
    }

    #[must_use]
    pub fn analytical_ttl(&self) -> Option<AnalyticalTtl> {
        self.analytical_ttl
    }

    #[must_use]
    pub fn computed_properties(&self) -> &ComputedProperties {
        &self.computed_properties
    }

    #[must_use]
    pub fn geospatial(&self) -> GeospatialConfig {
        self.geospatial
    }

    #[must_use]
    pub fn vector_embeddings(&self) -> &VectorEmbeddingPolicy {
        &self.vector_embeddings
    }

    #[must_use]
    pub fn full_text(&self) -> Option<&FullTextPolicy> {
        self.full_text.as_ref()
    }

    #[must_use]
    pub fn change_feed(&self) -> Option<ChangeFeedPolicy> {
        self.change_feed
    }

    #[must_use]
    pub fn client_encryption(&self) -> Option<&ClientEncryptionPolicy> {
        self.client_encryption.as_ref()
    }
}

/// Reads an optional policy.
fn read<T>(
    container: &Fields<'_>,
    field: &str,
    parse: impl FnOnce(&Value) -> Result<T, PolicyError>,
) -> Result<Option<T>, PolicyError> {
    container.value(field).map(parse).transpose()
}

fn id(container: &Fields<'_>) -> Result<ResourceName, PolicyError> {
    let id = container.required("id", container.string("id")?)?;
    Ok(ResourceName::parse(id)?)
}

fn ttl_path(container: &Fields<'_>) -> Result<Option<PropertyPath>, PolicyError> {
    const FIELD: &str = "ttlPropertyPath";
    let text = container.string(FIELD)?;
    text.map(|text| PropertyPath::parse(FIELD, text)).transpose()
}

/// The partition key; without one the container is of the old kind that has a
/// single logical partition.
fn partition_key(container: &Fields<'_>) -> Result<PartitionKeyDefinition, PolicyError> {
    match container.value("partitionKey") {
        None => Ok(PartitionKeyDefinition::none()),
        Some(value) => Ok(PartitionKeyDefinition::parse(value)?),
    }
}

fn refuse_unsupported(container: &Fields<'_>) -> Result<(), PolicyError> {
    let found = UNSUPPORTED.into_iter().find(|field| container.value(field).is_some());
    found.map_or(Ok(()), |feature| Err(PolicyError::Unsupported { feature }))
}

fn contains_all<T: PartialEq>(new: &[T], old: &[T]) -> bool {
    old.iter().all(|kept| new.contains(kept))
}

/// Removes from a container, as clients read it, the key that stands for none. Returns
/// `None` if it has another.
#[must_use]
pub fn without_system_key(container: &Value) -> Option<Value> {
    let key = PartitionKeyDefinition::parse(container.get("partitionKey")?).ok()?;
    if !key.paths().is_empty() {
        return None;
    }
    let mut container = container.as_object()?.clone();
    container.remove("partitionKey");
    Some(container.into())
}
