//! An indexing policy, compiled for traversing items.
//!
//! The included and excluded paths become one tree in which each node knows what the policy
//! says about it. Descending the tree together with an item finds for every value the most
//! precise path that covers it, without looking at the other paths.

use std::collections::BTreeMap;
use std::ops::Bound;

use model::json::Value;
use model::policy::{
    CompositePath, IndexPath, IndexingMode, IndexingPolicy, PathEnd, PolicyPathStep, SortOrder,
};

use crate::order::EntryOrder;
use crate::path_hash::PathHash;
use crate::range::{EntryRange, Part, after};
use crate::value::{IndexValue, TEXT_BYTES_MAX};

/// Bytes of a composite entry with its hash, however many paths it has.
const COMPOSITE_BYTES_MAX: usize = 512;
const HASH_BYTES: usize = 8;
/// Bytes of a string in a composite entry besides its text: tag and end.
const TEXT_OVERHEAD: usize = 2;

/// A property that the database itself adds to every item and that no query can use well;
/// see `docs/formats/index.md`. A policy that names it gets it.
const LEFT_OUT: &str = "_rid";
/// Properties that some protocols show and no item has: nothing is indexed by them, whatever
/// a policy says.
const NEVER: [&str; 2] = ["_self", "_attachments"];
/// Properties that no policy can exclude.
const ALWAYS: [&str; 2] = ["id", "_ts"];

/// Which entries items have under one indexing policy of one container.
#[derive(Clone, Debug)]
pub struct IndexPlan {
    pub(crate) seed: u64,
    /// `None` under indexing mode `none`.
    pub(crate) root: Option<Node>,
    /// Paths whose value, or absence, is needed after the traversal.
    pub(crate) slots: Vec<Slot>,
    pub(crate) composites: Vec<Composite>,
}

/// What the policy says about one path of an item.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// From `/?`: whether the value here is indexed.
    scalar: Option<bool>,
    /// From `/*`: whether the value here and everything below is.
    subtree: Option<bool>,
    properties: BTreeMap<String, Node>,
    elements: Option<Box<Node>>,
    /// Where to remember the value found here.
    pub(crate) slot: Option<usize>,
}

/// A path whose value is needed after the traversal.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) names: Vec<String>,
    pub(crate) hash: PathHash,
    /// Whether the item has an entry for the absence of a value here.
    pub(crate) undefined: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Composite {
    pub(crate) hash: PathHash,
    /// Slot and direction of each path.
    pub(crate) parts: Vec<(usize, SortOrder)>,
    /// Bytes of text that each part keeps.
    pub(crate) text_max: usize,
}

/// A path whose values have entries, on which ranges can be formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedPath {
    pub(crate) hash: PathHash,
    undefined: bool,
}

impl IndexPlan {
    /// Compiles a plan. `seed` keys the path hashes; it must stay the same for the lifetime
    /// of the container.
    #[must_use]
    pub fn compile(policy: &IndexingPolicy, seed: u64) -> IndexPlan {
        let mut plan = IndexPlan { seed, root: None, slots: Vec::new(), composites: Vec::new() };
        if policy.mode() == IndexingMode::None {
            return plan;
        }
        let mut root = Node::default();
        for name in NEVER.into_iter().chain([LEFT_OUT]) {
            root.property(name).subtree = Some(false);
        }
        for path in policy.excluded() {
            root.decide(path, false);
        }
        let included = policy.included().iter();
        for included in included.filter(|own| !is_never(first_name(own.path.steps()))) {
            let indexed = root.decide(&included.path, true);
            if let Some(names) = named_path(&included.path).filter(|_| indexed) {
                let slot = plan.slot(&mut root, names);
                plan.slots.get_mut(slot).expect("just made").undefined = true;
            }
        }
        for name in ALWAYS {
            root.property(name).scalar = Some(true);
        }
        let is_shown = |path: &CompositePath| is_never(path.path.names().first());
        for paths in policy.composites().iter().filter(|paths| !paths.iter().any(is_shown)) {
            let composite = plan.composite(&mut root, paths);
            plan.composites.push(composite);
        }
        plan.root = Some(root);
        plan
    }

    /// Whether and how the values at a path are indexed; `None` if a query must load the
    /// items.
    #[must_use]
    pub fn path(&self, steps: &[PolicyPathStep]) -> Option<IndexedPath> {
        let mut node = self.root.as_ref();
        let mut inherited = node?.below(false);
        // The item itself has no entry: every item is an object.
        let mut indexed = false;
        for step in steps {
            node = node.and_then(|node| node.child(step));
            indexed = node.map_or(inherited, |node| node.here(inherited));
            inherited = node.map_or(inherited, |node| node.below(inherited));
        }
        let undefined = |slot: usize| self.slots.get(slot).is_some_and(|slot| slot.undefined);
        indexed.then(|| IndexedPath {
            hash: self.hash(steps),
            undefined: node.and_then(|node| node.slot).is_some_and(undefined),
        })
    }

    /// The path of a property, however the policy treats it: the prefix of the entries of
    /// its values.
    #[must_use]
    pub fn property_path<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> PathHash {
        let item = PathHash::item(self.seed);
        names.into_iter().fold(item, |hash, name| hash.property(self.seed, name))
    }

    pub(crate) fn hash(&self, steps: &[PolicyPathStep]) -> PathHash {
        let item = PathHash::item(self.seed);
        steps.iter().fold(item, |hash, step| hash.step(self.seed, step))
    }

    /// The slot of a path, created on first use.
    fn slot(&mut self, root: &mut Node, names: Vec<String>) -> usize {
        let node = names.iter().fold(root, |node, name| node.property(name));
        let next = self.slots.len();
        let slot = *node.slot.get_or_insert(next);
        if slot == next {
            let hash = self.property_path(names.iter().map(String::as_str));
            self.slots.push(Slot { names, hash, undefined: false });
        }
        slot
    }

    /// An index is read in both directions, so it can always begin with an ascending path:
    /// then items with equal values come in the direction of the first path, as clients
    /// that merge assume.
    fn composite(&mut self, root: &mut Node, paths: &[CompositePath]) -> Composite {
        let mut parts = Vec::with_capacity(paths.len());
        let mut hashed = Vec::with_capacity(paths.len());
        let turned = paths.first().is_some_and(|first| first.order == SortOrder::Descending);
        for CompositePath { path, order } in paths {
            let slot = self.slot(root, path.names().to_vec());
            let order = if turned { opposite(*order) } else { *order };
            parts.push((slot, order));
            hashed.push((self.slots.get(slot).expect("just made").hash, order));
        }
        let share = (COMPOSITE_BYTES_MAX - HASH_BYTES) / paths.len().max(1);
        Composite {
            hash: PathHash::composite(self.seed, &hashed),
            parts,
            text_max: share.saturating_sub(TEXT_OVERHEAD).min(TEXT_BYTES_MAX),
        }
    }
}

/// A composite index, read in one of its two directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompositeIndex {
    hash: PathHash,
    pub backwards: bool,
}

/// What is required of the value after the given ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next<'v> {
    /// That it is defined.
    Defined,
    /// As [`IndexedPath::between`].
    Between(Bound<&'v Value>, Bound<&'v Value>),
}

impl IndexPlan {
    /// The composite index whose entries are in the order of these paths, each with whether
    /// it is descending, read forwards or backwards.
    #[must_use]
    pub fn composite_index(&self, order: &[(Vec<&str>, bool)]) -> Option<CompositeIndex> {
        let (_, backwards) = *order.first()?;
        let wanted = |descending: bool| match descending != backwards {
            true => SortOrder::Descending,
            false => SortOrder::Ascending,
        };
        let serves = |composite: &&Composite| {
            composite.parts.len() == order.len()
                && composite.parts.iter().zip(order).all(|((slot, has), (names, descending))| {
                    let slot = self.slots.get(*slot);
                    slot.is_some_and(|slot| slot.names == *names) && *has == wanted(*descending)
                })
        };
        let composite = self.composites.iter().find(serves)?;
        Some(CompositeIndex { hash: composite.hash, backwards })
    }

    /// The entries of a composite index whose first values are these, if each [has one
    /// entry](crate::has_one_entry).
    #[must_use]
    pub fn composite_range(&self, index: CompositeIndex, values: &[&Value]) -> EntryRange {
        let mut start = index.hash.to_bytes().to_vec();
        let mut exact = true;
        let composite = self.composites.iter().find(|composite| composite.hash == index.hash);
        if let Some(composite) = composite {
            for ((_, order), value) in composite.parts.iter().zip(values) {
                let value = IndexValue::from(*value);
                exact = exact && value.is_proof_in(composite.text_max);
                value.encode_part(*order, composite.text_max, &mut start);
            }
        }
        EntryRange { end: after(&start), start, exact }
    }

    /// Those of the entries of [`IndexPlan::composite_range`] whose next value is as
    /// required; `None` if no value can be, or if the index has no further path.
    #[must_use]
    pub fn composite_next(
        &self,
        index: CompositeIndex,
        values: &[&Value],
        next: Next<'_>,
    ) -> Option<EntryRange> {
        let composite = self.composites.iter().find(|own| own.hash == index.hash)?;
        let (_, order) = *composite.parts.get(values.len())?;
        let given = self.composite_range(index, values);
        let part = Part { before: &given.start, order, text_max: composite.text_max };
        let range = match next {
            Next::Defined => part.is_defined(),
            Next::Between(lower, upper) => part.between(lower, upper)?,
        };
        Some(EntryRange { exact: range.exact && given.exact, ..range })
    }

    /// How the entries of [`IndexPlan::composite_range`] are ordered after the values that
    /// they share.
    #[must_use]
    pub fn composite_order(&self, index: CompositeIndex, values: &[&Value]) -> EntryOrder {
        let before = self.composite_range(index, values).start;
        let composite = self.composites.iter().find(|own| own.hash == index.hash);
        let parts = composite.map(|own| &*own.parts).unwrap_or_default();
        EntryOrder {
            before,
            parts: parts.iter().skip(values.len()).map(|(_, order)| *order).collect(),
            text_max: composite.map_or(TEXT_BYTES_MAX, |own| own.text_max),
        }
    }
}

impl IndexedPath {
    /// What holds for the path if some items are indexed by one policy and others by
    /// another. Both are the same path.
    #[must_use]
    pub fn and(self, other: IndexedPath) -> IndexedPath {
        IndexedPath { undefined: self.undefined && other.undefined, ..self }
    }

    /// How the entries of the path are ordered.
    #[must_use]
    pub fn order(self) -> EntryOrder {
        let (before, parts) = (self.hash.to_bytes().to_vec(), vec![SortOrder::Ascending]);
        EntryOrder { before, parts, text_max: TEXT_BYTES_MAX }
    }

    /// Whether items without a value here have an entry all the same, so that the index
    /// alone can return them.
    #[must_use]
    pub fn has_undefined(self) -> bool {
        self.undefined
    }
}

impl Node {
    fn property(&mut self, name: &str) -> &mut Node {
        self.properties.entry(name.to_owned()).or_default()
    }

    /// Records what a path says. Returns whether the value at its end is indexed: an
    /// excluded `/a/?` is more precise than an included `/a/*`.
    fn decide(&mut self, path: &IndexPath, indexed: bool) -> bool {
        let node = path.steps().iter().fold(self, |node, step| match step {
            PolicyPathStep::Property(name) => node.property(name),
            PolicyPathStep::Elements => node.elements.get_or_insert_default(),
        });
        match path.end() {
            PathEnd::Scalar => node.scalar = Some(indexed),
            PathEnd::Subtree => node.subtree = Some(indexed),
            // Tuples have no entries yet; their properties are as elsewhere.
            PathEnd::Tuple(_) => {}
        }
        node.here(false)
    }

    pub(crate) fn child(&self, step: &PolicyPathStep) -> Option<&Node> {
        match step {
            PolicyPathStep::Property(name) => self.properties.get(name),
            PolicyPathStep::Elements => self.elements.as_deref(),
        }
    }

    pub(crate) fn property_child(&self, name: &str) -> Option<&Node> {
        self.properties.get(name)
    }

    pub(crate) fn elements_child(&self) -> Option<&Node> {
        self.elements.as_deref()
    }

    /// Whether the value at this node is indexed, given what holds above it.
    pub(crate) fn here(&self, inherited: bool) -> bool {
        self.scalar.or(self.subtree).unwrap_or(inherited)
    }

    /// What holds below this node, unless a longer path says otherwise.
    pub(crate) fn below(&self, inherited: bool) -> bool {
        self.subtree.unwrap_or(inherited)
    }
}

fn is_never(name: Option<&String>) -> bool {
    name.is_some_and(|name| NEVER.contains(&name.as_str()))
}

fn first_name(steps: &[PolicyPathStep]) -> Option<&String> {
    match steps.first()? {
        PolicyPathStep::Property(name) => Some(name),
        PolicyPathStep::Elements => None,
    }
}

fn opposite(order: SortOrder) -> SortOrder {
    match order {
        SortOrder::Ascending => SortOrder::Descending,
        SortOrder::Descending => SortOrder::Ascending,
    }
}

/// The property names of a path that matches one value of an item.
fn named_path(path: &IndexPath) -> Option<Vec<String>> {
    if path.steps().is_empty() || matches!(path.end(), PathEnd::Tuple(_)) {
        return None;
    }
    let name = |step: &PolicyPathStep| match step {
        PolicyPathStep::Property(name) => Some(name.clone()),
        PolicyPathStep::Elements => None,
    };
    path.steps().iter().map(name).collect()
}
