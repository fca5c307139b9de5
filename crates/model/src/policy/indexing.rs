//! The indexing policy: which values of an item the index holds.
//!
//! Parsing completes a policy as the service does: a missing `/*` is included if nothing
//! was said about it, and `_etag` is excluded. What clients read back is the completed
//! policy.

use super::PolicyError;
use super::fields::{Fields, at_most, named, spelling, unknown_name, wrong_type};
use super::path::{IndexPath, PathEnd, PropertyPath};
use super::spatial::{SpatialIndex, SpatialType};
use super::vector::VectorIndex;
use crate::json::{Object, Value};

/// Included and excluded paths of one policy, each.
const PATHS_MAX: usize = 1500;
/// Composite indexes of one policy.
const COMPOSITES_MAX: usize = 100;
/// Paths of one composite index. One path would be what `/?` does already.
const COMPOSITE_PATHS_MIN: usize = 2;
const COMPOSITE_PATHS_MAX: usize = 8;

/// The root, and the exclusion that the service adds to every policy: etags are
/// compared by headers, never by queries.
const ROOT: &str = "/*";
const ETAG: &str = "/\"_etag\"/?";

/// Which values of an item the index holds, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexingPolicy {
    mode: IndexingMode,
    included: Vec<IncludedPath>,
    excluded: Vec<IndexPath>,
    composites: Vec<Vec<CompositePath>>,
    spatial: Vec<SpatialIndex>,
    vectors: Vec<VectorIndex>,
    full_text: Vec<PropertyPath>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexingMode {
    Consistent,
    /// No index at all.
    None,
}

/// An included path with the index kinds that old clients still write.
#[derive(Clone, Debug)]
pub struct IncludedPath {
    pub path: IndexPath,
    /// `{"kind":"Spatial","dataType":"Point"}`, the old syntax for a spatial index.
    pub spatial: Vec<SpatialType>,
    /// The other old kinds, `Hash` and `Range`. They have no meaning any more, and are only
    /// shown to clients of their time.
    outdated: Vec<OutdatedIndex>,
}

/// What is indexed is the same, whatever the kind was called.
impl PartialEq for IncludedPath {
    fn eq(&self, other: &IncludedPath) -> bool {
        (&self.path, &self.spatial) == (&other.path, &other.spatial)
    }
}

impl Eq for IncludedPath {}

#[derive(Clone, Debug)]
struct OutdatedIndex {
    kind: &'static str,
    data_type: Option<&'static str>,
    precision: Option<i64>,
}

/// One path of a composite index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompositePath {
    pub path: PropertyPath,
    pub order: SortOrder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortOrder {
    Ascending,
    Descending,
}

/// The service has abandoned lazy indexing, and takes the word for the other mode.
const MODES: [(&str, IndexingMode); 3] = [
    ("consistent", IndexingMode::Consistent),
    ("lazy", IndexingMode::Consistent),
    ("none", IndexingMode::None),
];

const ORDERS: [(&str, SortOrder); 2] =
    [("ascending", SortOrder::Ascending), ("descending", SortOrder::Descending)];

/// Kinds and data types of the old `indexes` arrays.
const LEGACY_KINDS: [(&str, LegacyKind); 3] = [
    ("Hash", LegacyKind::Outdated("Hash")),
    ("Range", LegacyKind::Outdated("Range")),
    ("Spatial", LegacyKind::Spatial),
];
const LEGACY_SCALARS: [(&str, &str); 2] = [("String", "String"), ("Number", "Number")];

#[derive(Clone, Copy)]
enum LegacyKind {
    Outdated(&'static str),
    Spatial,
}

/// One element of an old `indexes` array.
enum LegacyIndex {
    Spatial(Option<SpatialType>),
    Outdated(OutdatedIndex),
}

impl Default for IndexingPolicy {
    /// Everything but `_etag`, kept current.
    fn default() -> IndexingPolicy {
        let mut policy = IndexingPolicy::empty(IndexingMode::Consistent);
        policy.complete_paths().expect("the default paths are valid");
        policy
    }
}

impl IndexingPolicy {
    /// Reads, completes and checks the value of `indexingPolicy`.
    pub fn parse(value: &Value) -> Result<IndexingPolicy, PolicyError> {
        IndexingPolicy::read(&Fields::of("indexingPolicy".to_owned(), value)?)
    }

    /// No index at all.
    #[must_use]
    pub fn off() -> IndexingPolicy {
        IndexingPolicy::empty(IndexingMode::None)
    }

    fn empty(mode: IndexingMode) -> IndexingPolicy {
        IndexingPolicy {
            mode,
            included: Vec::new(),
            excluded: Vec::new(),
            composites: Vec::new(),
            spatial: Vec::new(),
            vectors: Vec::new(),
            full_text: Vec::new(),
        }
    }

    fn read(fields: &Fields<'_>) -> Result<IndexingPolicy, PolicyError> {
        let mode = match fields.string("indexingMode")? {
            None => IndexingMode::Consistent,
            Some(name) => named(&MODES, name)
                .ok_or_else(|| unknown_name(fields.name_of("indexingMode"), name, &MODES))?,
        };
        if fields.boolean("automatic")? == Some(true) && mode == IndexingMode::None {
            return Err(PolicyError::AutomaticWithoutIndex);
        }
        let mut policy = IndexingPolicy {
            included: included_paths(fields)?,
            excluded: excluded_paths(fields)?,
            composites: composites(fields)?,
            spatial: SpatialIndex::read_all(fields)?,
            vectors: VectorIndex::read_all(fields)?,
            full_text: full_text_paths(fields)?,
            ..IndexingPolicy::empty(mode)
        };
        policy.check_disjoint()?;
        if mode != IndexingMode::None {
            policy.complete_paths()?;
        }
        Ok(policy)
    }

    fn check_disjoint(&self) -> Result<(), PolicyError> {
        let both = self.excluded.iter().find(|path| self.includes(path));
        both.map_or(Ok(()), |path| Err(PolicyError::IncludedAndExcluded { path: path.to_string() }))
    }

    /// Adds what the service adds, and refuses a policy that does not mention `/*`.
    fn complete_paths(&mut self) -> Result<(), PolicyError> {
        let (root, etag) = (IndexPath::parse(ROOT)?, IndexPath::parse(ETAG)?);
        if !self.includes(&root) && !self.excluded.contains(&root) {
            if !self.included.is_empty() {
                return Err(PolicyError::RootPathMissing);
            }
            let (spatial, outdated) = (Vec::new(), Vec::new());
            self.included.push(IncludedPath { path: root, spatial, outdated });
        }
        if !self.includes(&etag) && !self.excluded.contains(&etag) {
            self.excluded.push(etag);
        }
        Ok(())
    }

    fn includes(&self, path: &IndexPath) -> bool {
        self.included.iter().any(|included| included.path == *path)
    }

    /// The policy as clients read it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        object.insert("indexingMode", spelling(&MODES, self.mode));
        // Abandoned by the service, too: what is indexed is always indexed automatically.
        object.insert("automatic", self.mode != IndexingMode::None);
        object.insert(
            "includedPaths",
            self.included.iter().map(IncludedPath::to_value).collect::<Value>(),
        );
        object.insert("excludedPaths", path_objects(self.excluded.iter().map(IndexPath::as_str)));
        insert_unless_empty(&mut object, "compositeIndexes", &self.composites, |paths| {
            paths.iter().map(CompositePath::to_value).collect()
        });
        insert_unless_empty(&mut object, "spatialIndexes", &self.spatial, SpatialIndex::to_value);
        insert_unless_empty(&mut object, "vectorIndexes", &self.vectors, VectorIndex::to_value);
        if !self.full_text.is_empty() {
            object.insert(
                "fullTextIndexes",
                path_objects(self.full_text.iter().map(PropertyPath::as_str)),
            );
        }
        object.into()
    }

    #[must_use]
    pub fn mode(&self) -> IndexingMode {
        self.mode
    }

    #[must_use]
    pub fn included(&self) -> &[IncludedPath] {
        &self.included
    }

    #[must_use]
    pub fn excluded(&self) -> &[IndexPath] {
        &self.excluded
    }

    #[must_use]
    pub fn composites(&self) -> &[Vec<CompositePath>] {
        &self.composites
    }

    #[must_use]
    pub fn spatial(&self) -> &[SpatialIndex] {
        &self.spatial
    }

    #[must_use]
    pub fn vectors(&self) -> &[VectorIndex] {
        &self.vectors
    }

    #[must_use]
    pub fn full_text(&self) -> &[PropertyPath] {
        &self.full_text
    }
}

impl IncludedPath {
    fn read(fields: &Fields<'_>) -> Result<IncludedPath, PolicyError> {
        let (mut spatial, mut outdated) = (Vec::new(), Vec::new());
        for index in fields.objects("indexes")? {
            match legacy_index(&index)? {
                LegacyIndex::Spatial(kind) => spatial.extend(kind),
                LegacyIndex::Outdated(index) => outdated.push(index),
            }
        }
        Ok(IncludedPath { path: index_path(fields)?, spatial, outdated })
    }

    fn to_value(&self) -> Value {
        let mut object = Object::from_iter([("path", self.path.as_str())]);
        let spatial = self.spatial.iter().map(|kind| {
            Value::from(Object::from_iter([("kind", "Spatial"), ("dataType", kind.name())]))
        });
        let outdated = self.outdated.iter().map(OutdatedIndex::to_value);
        let all: Vec<Value> = spatial.chain(outdated).collect();
        if !all.is_empty() {
            object.insert("indexes", all);
        }
        object.into()
    }
}

impl OutdatedIndex {
    fn to_value(&self) -> Value {
        let mut object = Object::from_iter([("kind", self.kind)]);
        if let Some(data_type) = self.data_type {
            object.insert("dataType", data_type);
        }
        if let Some(precision) = self.precision {
            object.insert("precision", precision);
        }
        object.into()
    }
}

/// Removes from a container, as clients read it, what only those of old versions know.
/// Returns `None` if there is nothing of the kind.
#[must_use]
pub fn without_outdated_indexes(container: &Value) -> Option<Value> {
    let is_outdated = |index: &Value| {
        let kind = index.get("kind").and_then(Value::as_str);
        kind.is_some_and(|kind| kind == "Hash" || kind == "Range")
    };
    let path = |path: &Value| -> Option<Value> {
        let indexes = path.get("indexes").and_then(Value::as_array)?;
        let left: Vec<Value> = indexes.iter().filter(|it| !is_outdated(it)).cloned().collect();
        let mut path = path.as_object()?.clone();
        path.remove("indexes");
        if !left.is_empty() {
            path.insert("indexes", left);
        }
        Some(path.into())
    };
    let policy = container.get("indexingPolicy")?;
    let paths = policy.get("includedPaths").and_then(Value::as_array)?;
    if !paths.iter().any(|path| path.get("indexes").is_some()) {
        return None;
    }
    let paths = paths.iter().map(|old| path(old).unwrap_or_else(|| old.clone()));
    let mut policy = policy.as_object()?.clone();
    policy.insert("includedPaths", paths.collect::<Value>());
    let mut container = container.as_object()?.clone();
    container.insert("indexingPolicy", policy);
    Some(container.into())
}

impl CompositePath {
    fn read(fields: &Fields<'_>) -> Result<CompositePath, PolicyError> {
        let order = match fields.string("order")? {
            None => SortOrder::Ascending,
            Some(name) => named(&ORDERS, name)
                .ok_or_else(|| unknown_name(fields.name_of("order"), name, &ORDERS))?,
        };
        Ok(CompositePath { path: property_path(fields)?, order })
    }

    fn to_value(&self) -> Value {
        let order = spelling(&ORDERS, self.order);
        Object::from_iter([("path", self.path.as_str()), ("order", order)]).into()
    }
}

fn included_paths(fields: &Fields<'_>) -> Result<Vec<IncludedPath>, PolicyError> {
    let objects = fields.objects("includedPaths")?;
    at_most("included paths", objects.len(), PATHS_MAX)?;
    objects.iter().map(IncludedPath::read).collect()
}

fn excluded_paths(fields: &Fields<'_>) -> Result<Vec<IndexPath>, PolicyError> {
    let objects = fields.objects("excludedPaths")?;
    at_most("excluded paths", objects.len(), PATHS_MAX)?;
    objects.iter().map(excluded_path).collect()
}

fn excluded_path(fields: &Fields<'_>) -> Result<IndexPath, PolicyError> {
    let path = index_path(fields)?;
    match path.end() {
        PathEnd::Tuple(_) => Err(PolicyError::TupleOutsideIncluded { path: path.to_string() }),
        PathEnd::Scalar | PathEnd::Subtree => Ok(path),
    }
}

fn full_text_paths(fields: &Fields<'_>) -> Result<Vec<PropertyPath>, PolicyError> {
    fields.objects("fullTextIndexes")?.iter().map(property_path).collect()
}

fn composites(fields: &Fields<'_>) -> Result<Vec<Vec<CompositePath>>, PolicyError> {
    let lists: Vec<_> = fields.named_elements("compositeIndexes")?.collect();
    at_most("composite indexes", lists.len(), COMPOSITES_MAX)?;
    lists.into_iter().map(|(name, list)| composite(name, list)).collect()
}

fn composite(name: String, list: &Value) -> Result<Vec<CompositePath>, PolicyError> {
    let Some(elements) = list.as_array() else {
        return Err(wrong_type(name, "an array", list));
    };
    let count = elements.len();
    if !(COMPOSITE_PATHS_MIN..=COMPOSITE_PATHS_MAX).contains(&count) {
        let (min, max) = (COMPOSITE_PATHS_MIN, COMPOSITE_PATHS_MAX);
        return Err(PolicyError::CompositeLength { count, min, max });
    }
    let mut paths: Vec<CompositePath> = Vec::with_capacity(count);
    for (at, element) in elements.iter().enumerate() {
        let next = CompositePath::read(&Fields::of(format!("{name}[{at}]"), element)?)?;
        if paths.iter().any(|earlier| earlier.path == next.path) {
            return Err(PolicyError::Repeated { field: name, path: next.path.to_string() });
        }
        paths.push(next);
    }
    Ok(paths)
}

/// One element of an old `indexes` array; only spatial ones still have a meaning.
fn legacy_index(fields: &Fields<'_>) -> Result<LegacyIndex, PolicyError> {
    let kind = fields.required("kind", fields.string("kind")?)?;
    let kind = named(&LEGACY_KINDS, kind)
        .ok_or_else(|| unknown_name(fields.name_of("kind"), kind, &LEGACY_KINDS))?;
    // The precision of an old kind has no effect, yet must be a number.
    let precision = fields.integer("precision")?;
    let data_type = fields.string("dataType")?;
    match kind {
        LegacyKind::Spatial => {
            let kind = data_type.map(|name| SpatialType::read(fields, "dataType", name));
            Ok(LegacyIndex::Spatial(kind.transpose()?))
        }
        LegacyKind::Outdated(kind) => {
            let scalar = |name: &str| {
                named(&LEGACY_SCALARS, name)
                    .ok_or_else(|| unknown_name(fields.name_of("dataType"), name, &LEGACY_SCALARS))
            };
            let data_type = data_type.map(scalar).transpose()?;
            Ok(LegacyIndex::Outdated(OutdatedIndex { kind, data_type, precision }))
        }
    }
}

pub(super) fn index_path(fields: &Fields<'_>) -> Result<IndexPath, PolicyError> {
    IndexPath::parse(fields.required("path", fields.string("path")?)?)
}

fn property_path(fields: &Fields<'_>) -> Result<PropertyPath, PolicyError> {
    let text = fields.required("path", fields.string("path")?)?;
    PropertyPath::parse(&fields.name_of("path"), text)
}

fn insert_unless_empty<T>(
    object: &mut Object,
    name: &str,
    items: &[T],
    to_value: impl Fn(&T) -> Value,
) {
    if !items.is_empty() {
        object.insert(name, items.iter().map(to_value).collect::<Value>());
    }
}

/// `[{"path": …}, …]`
fn path_objects<'a>(paths: impl Iterator<Item = &'a str>) -> Value {
    paths.map(|path| Object::from_iter([("path", path)])).collect()
}
