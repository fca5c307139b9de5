//! What a container says about its partition key, and what follows from it.

use super::cut::concatenated;
use super::{KeyComponent, KeyError, KeyPath, KeyPathError, PartitionKey};
use crate::epk::{Epk, EpkRange, digest, v1, v2};
use crate::json::{Object, Raw, Value};
use crate::limits::KEY_LEVELS_MAX;

/// How the components of a key become a position on the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// One path, hashed.
    Hash,
    /// A hierarchical key: each level hashed on its own.
    MultiHash,
    /// From the first days of the service; hashed like `Hash`.
    Range,
}

impl KeyKind {
    fn parse(text: &str) -> Option<KeyKind> {
        [KeyKind::Hash, KeyKind::MultiHash, KeyKind::Range]
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            KeyKind::Hash => "Hash",
            KeyKind::MultiHash => "MultiHash",
            KeyKind::Range => "Range",
        }
    }

    fn paths_max(self) -> usize {
        match self {
            KeyKind::Hash | KeyKind::Range => 1,
            KeyKind::MultiHash => KEY_LEVELS_MAX,
        }
    }
}

/// The generation of the hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashVersion {
    V1,
    V2,
}

/// The path at which items of containers without a key would have one.
const SYSTEM_PATH: &str = "/_partitionKey";

/// The `partitionKey` of a container. Cannot change once the container exists.
#[derive(Clone, Debug)]
pub struct PartitionKeyDefinition {
    paths: Vec<KeyPath>,
    kind: KeyKind,
    version: HashVersion,
    system_key: bool,
    /// Whether version 1 was given explicitly, which is optional.
    says_version_1: bool,
}

/// Definitions are equal if they mean the same, however they are spelled.
impl PartialEq for PartitionKeyDefinition {
    fn eq(&self, other: &PartitionKeyDefinition) -> bool {
        (&self.paths, self.kind, self.version, self.system_key)
            == (&other.paths, other.kind, other.version, other.system_key)
    }
}

impl Eq for PartitionKeyDefinition {}

/// Why a definition is not acceptable. The caller has to send another one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    #[error("The partition key's '{field}' must be {expected}.")]
    Type { field: &'static str, expected: &'static str },
    #[error("The partition key must specify at least one path.")]
    NoPaths,
    #[error("Too many partition key paths ({given}) specified. A maximum of {max} is allowed.")]
    TooManyPaths { given: usize, max: usize },
    #[error(transparent)]
    Path(#[from] KeyPathError),
    #[error("A partition key of kind MultiHash must have version 2.")]
    MultiHashVersion,
}

impl PartitionKeyDefinition {
    pub fn new(
        paths: Vec<KeyPath>,
        kind: KeyKind,
        version: HashVersion,
    ) -> Result<PartitionKeyDefinition, DefinitionError> {
        if paths.is_empty() {
            return Err(DefinitionError::NoPaths);
        }
        if paths.len() > kind.paths_max() {
            let (given, max) = (paths.len(), kind.paths_max());
            return Err(DefinitionError::TooManyPaths { given, max });
        }
        if kind == KeyKind::MultiHash && version == HashVersion::V1 {
            return Err(DefinitionError::MultiHashVersion);
        }
        let says_version_1 = false;
        Ok(PartitionKeyDefinition { paths, kind, version, system_key: false, says_version_1 })
    }

    /// The definition that new containers usually have: version 2, and
    /// hierarchical when there are several paths.
    pub fn hash<S: AsRef<str>>(
        paths: impl IntoIterator<Item = S>,
    ) -> Result<PartitionKeyDefinition, DefinitionError> {
        let paths: Result<Vec<_>, _> =
            paths.into_iter().map(|path| KeyPath::parse(path.as_ref())).collect();
        let paths = paths?;
        let kind = if paths.len() > 1 { KeyKind::MultiHash } else { KeyKind::Hash };
        PartitionKeyDefinition::new(paths, kind, HashVersion::V2)
    }

    /// The definition of a container without a partition key: every item has the
    /// empty key, and there is only one position.
    #[must_use]
    pub fn none() -> PartitionKeyDefinition {
        PartitionKeyDefinition {
            paths: Vec::new(),
            kind: KeyKind::Hash,
            version: HashVersion::V2,
            system_key: false,
            says_version_1: false,
        }
    }

    /// Reads the `partitionKey` of a container. Unknown properties are ignored, as clients
    /// may be newer than we are; wrong types are refused.
    pub fn parse(value: &Value) -> Result<PartitionKeyDefinition, DefinitionError> {
        let object = value
            .as_object()
            .ok_or(DefinitionError::Type { field: "partitionKey", expected: "an object" })?;
        let kind = parse_kind(object)?;
        let version = parse_version(object, kind)?;
        let mut definition =
            PartitionKeyDefinition::new(parse_paths(object, kind)?, kind, version)?;
        definition.system_key = parse_system_key(object)?;
        definition.says_version_1 =
            version == HashVersion::V1 && given(object, "version").is_some();
        // This is what we show for a container without a key. With a version it has one, to
        // which its old items do not belong.
        let is_keyless = version == HashVersion::V1
            && matches!(definition.paths(), [path] if path.as_str() == SYSTEM_PATH);
        if definition.system_key && is_keyless {
            return Ok(PartitionKeyDefinition::none());
        }
        Ok(definition)
    }

    /// The JSON that clients see, with the defaults filled in. A container without a key
    /// shows the one that the service gave to such containers.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        let mut paths: Vec<&str> = self.paths.iter().map(KeyPath::as_str).collect();
        let is_keyless = paths.is_empty();
        if is_keyless {
            paths.push(SYSTEM_PATH);
        }
        object.insert("paths", paths);
        object.insert("kind", self.kind.as_str());
        // Version 1 had no number, and is shown only if it was given, as for Python
        // clients. Containers without a key have none.
        match self.version {
            HashVersion::V2 if !is_keyless => object.insert("version", 2u32),
            HashVersion::V1 if self.says_version_1 => object.insert("version", 1u32),
            HashVersion::V1 | HashVersion::V2 => {}
        }
        if self.system_key || is_keyless {
            object.insert("systemKey", true);
        }
        object.into()
    }

    #[must_use]
    pub fn paths(&self) -> &[KeyPath] {
        &self.paths
    }

    #[must_use]
    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    #[must_use]
    pub fn version(&self) -> HashVersion {
        self.version
    }

    /// Whether the container once had no key; items may then have no value.
    #[must_use]
    pub fn system_key(&self) -> bool {
        self.system_key
    }

    /// Reads the key of a document.
    pub fn extract(&self, document: Raw<'_>) -> Result<PartitionKey, KeyError> {
        let key: PartitionKey =
            self.paths.iter().map(|path| extract_one(path, document)).collect::<Result<_, _>>()?;
        Ok(if self.means_none(&key) { PartitionKey::NONE } else { key })
    }

    /// The key that a request means by its values: where items may have no key, undefined
    /// means that as well. Older clients look for the path that we show in the document, do
    /// not find it, and send undefined.
    #[must_use]
    pub fn meant<'k>(&self, key: &'k PartitionKey) -> &'k PartitionKey {
        static NONE: PartitionKey = PartitionKey::NONE;
        if self.means_none(key) { &NONE } else { key }
    }

    fn means_none(&self, key: &PartitionKey) -> bool {
        self.allows_none() && key.components() == [KeyComponent::Undefined]
    }

    /// The position of a complete key, where its items are stored: the EPK followed by what
    /// distinguishes the key from others with the same EPK. No other key is there, except
    /// version 1 keys that count as one.
    pub fn locate(&self, key: &PartitionKey) -> Result<Epk, KeyError> {
        let components = key.components();
        if components.is_empty() && self.allows_none() {
            return Ok(Epk::MIN);
        }
        if components.len() != self.paths.len() {
            return Err(self.mismatch(key));
        }
        Ok(match self.version {
            HashVersion::V1 => Epk::new(&v1::encode(components)),
            HashVersion::V2 => {
                let hashes = self.hashes(components);
                let mut bytes = concatenated(&hashes).as_bytes().to_vec();
                bytes.extend(digest::of(components));
                Epk::new(&bytes)
            }
        })
    }

    /// The EPK of a complete key, as clients compute it.
    pub fn epk(&self, key: &PartitionKey) -> Result<Epk, KeyError> {
        Ok(self.epk_at(&self.locate(key)?))
    }

    /// The EPK of the keys at a position.
    #[must_use]
    pub fn epk_at(&self, position: &Epk) -> Epk {
        match self.version {
            HashVersion::V1 => position.clone(),
            HashVersion::V2 => {
                let hashes = position.as_bytes().get(..self.levels() * v2::HASH_BYTES);
                hashes.map_or(Epk::MIN, Epk::new)
            }
        }
    }

    /// Whether a key consists of some, but not all, leading components of a hierarchical
    /// one.
    ///
    /// The range of such a prefix can contain positions of keys with other components that
    /// have the same hashes: readers of that range compare keys, see [`Self::begins_with`].
    #[must_use]
    pub fn is_prefix(&self, key: &PartitionKey) -> bool {
        let given = key.components().len();
        self.kind == KeyKind::MultiHash && 0 < given && given < self.paths.len()
    }

    /// Whether the key of a document begins with these components.
    #[must_use]
    pub fn begins_with(&self, document: Raw<'_>, prefix: &PartitionKey) -> bool {
        let has = |(path, component): (&KeyPath, &KeyComponent)| {
            extract_one(path, document).is_ok_and(|own| own == *component)
        };
        self.paths.iter().zip(prefix.components()).all(has)
    }

    /// Whether permission for a key extends to another one: the same, or one below it. The
    /// empty key is that of items without one, and not the prefix of all.
    #[must_use]
    pub fn covers(&self, key: &PartitionKey, other: &PartitionKey) -> bool {
        if key.is_none() && !self.allows_none() {
            return false;
        }
        key == other || (self.is_prefix(key) && other.components().starts_with(key.components()))
    }

    /// The range of the ring where all items of a key live. The key may be a
    /// [prefix](Self::is_prefix), and then others may live there, too. The empty key stands
    /// for all, unless it is a key of its own among others.
    pub fn prefix_range(&self, key: &PartitionKey) -> Result<EpkRange, KeyError> {
        if key.is_none() {
            let own = self.system_key.then(|| EpkRange::of(Epk::MIN));
            return Ok(own.unwrap_or_else(EpkRange::full));
        }
        if self.is_prefix(key) {
            let min = concatenated(&self.hashes(key.components()));
            let max = min.prefix_end();
            return Ok(EpkRange { min, max });
        }
        Ok(EpkRange::of(self.locate(key)?))
    }

    /// Cuts the ring into `ranges` fresh ranges as the service does (at least one).
    #[must_use]
    pub fn boundaries(&self, ranges: u32) -> Vec<EpkRange> {
        let ranges = ranges.max(1);
        let mut min = Epk::MIN;
        let mut cut = Vec::new();
        for i in 1..ranges {
            let max = self.boundary(i, ranges);
            cut.push(EpkRange { min, max: max.clone() });
            min = max;
        }
        cut.push(EpkRange { min, max: Epk::max() });
        cut
    }

    fn boundary(&self, i: u32, ranges: u32) -> Epk {
        match self.version {
            HashVersion::V1 => {
                let hash = u64::from(u32::MAX) * u64::from(i) / u64::from(ranges);
                let hash = u32::try_from(hash).expect("a share of 32 bits fits 32 bits");
                Epk::new(&v1::boundary(hash))
            }
            HashVersion::V2 => {
                let (i, ranges) = (u128::from(i), u128::from(ranges));
                // Divides before it multiplies: 126 bits leave little headroom.
                let (whole, rest) = (v2::HASH_MAX / ranges, v2::HASH_MAX % ranges);
                concatenated(&[whole * i + rest * i / ranges])
            }
        }
    }

    fn allows_none(&self) -> bool {
        self.paths.is_empty() || self.system_key
    }

    pub(super) fn levels(&self) -> usize {
        match self.kind {
            KeyKind::Hash | KeyKind::Range => 1,
            KeyKind::MultiHash => self.paths.len(),
        }
    }

    /// The version 2 hashes, one per level.
    fn hashes(&self, components: &[KeyComponent]) -> Vec<u128> {
        match self.kind {
            KeyKind::Hash | KeyKind::Range => vec![v2::hash(components)],
            KeyKind::MultiHash => {
                components.iter().map(|one| v2::hash(std::slice::from_ref(one))).collect()
            }
        }
    }

    fn mismatch(&self, key: &PartitionKey) -> KeyError {
        KeyError::Mismatch { expected: self.paths.len(), given: key.components().len() }
    }
}

fn extract_one(path: &KeyPath, document: Raw<'_>) -> Result<KeyComponent, KeyError> {
    document.path(path.names()).map_or(Ok(KeyComponent::Undefined), KeyComponent::from_raw)
}

/// A missing kind means one hashed path: the JavaScript client sends none.
fn parse_kind(object: &Object) -> Result<KeyKind, DefinitionError> {
    let Some(value) = given(object, "kind") else { return Ok(KeyKind::Hash) };
    value
        .as_str()
        .and_then(KeyKind::parse)
        .ok_or(DefinitionError::Type { field: "kind", expected: "Hash, MultiHash or Range" })
}

/// A missing version means 1, for every client; hierarchical keys came later and
/// never had one. The Java SDK spells versions as the names of its constants.
fn parse_version(object: &Object, kind: KeyKind) -> Result<HashVersion, DefinitionError> {
    let Some(value) = given(object, "version") else {
        return Ok(match kind {
            KeyKind::Hash | KeyKind::Range => HashVersion::V1,
            KeyKind::MultiHash => HashVersion::V2,
        });
    };
    match (value.as_number().map(|number| number.as_f64()), value.as_str()) {
        (Some(1.0), _) | (_, Some("V1")) => Ok(HashVersion::V1),
        (Some(2.0), _) | (_, Some("V2")) => Ok(HashVersion::V2),
        _ => Err(DefinitionError::Type { field: "version", expected: "1 or 2" }),
    }
}

fn parse_paths(object: &Object, kind: KeyKind) -> Result<Vec<KeyPath>, DefinitionError> {
    let wrong = DefinitionError::Type { field: "paths", expected: "an array of strings" };
    let values = object.get("paths").and_then(Value::as_array).ok_or(wrong.clone())?;
    if values.len() > kind.paths_max() {
        let (given, max) = (values.len(), kind.paths_max());
        return Err(DefinitionError::TooManyPaths { given, max });
    }
    values.iter().map(|value| Ok(KeyPath::parse(value.as_str().ok_or(wrong.clone())?)?)).collect()
}

fn parse_system_key(object: &Object) -> Result<bool, DefinitionError> {
    let wrong = DefinitionError::Type { field: "systemKey", expected: "a boolean" };
    given(object, "systemKey").map_or(Ok(false), |value| value.as_bool().ok_or(wrong))
}

/// An optional property; null means the same as leaving it out.
fn given<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}
