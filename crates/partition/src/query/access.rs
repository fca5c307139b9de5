//! Access paths: how a query finds its items.

use std::fmt;
use std::sync::Arc;

use index::{Absence, EntryRange};

/// An access path: it contains all items that can match; how many others it contains
/// depends on the planner's choice (`planner.rs`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessPath {
    /// No item can match.
    Nothing,
    /// Every item, in the order of keys, which is no order of rows.
    Items,
    /// Every item, in the order of creation.
    Created,
    /// The items with an entry in one of these ranges, in the order of the entries.
    /// Each item has at most one entry in all of them.
    Entries {
        /// The indexed paths, as text.
        of: Arc<str>,
        /// In order, without overlap.
        ranges: Vec<EntryRange>,
        /// How to find the items that have no entry because they have no value. They come
        /// before all others, as if they had one.
        absent: Option<Box<Absence>>,
        backwards: bool,
    },
    /// The items of a set, in the order of ordinals.
    Set(OrdinalSet),
}

/// A set of items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrdinalSet {
    /// Those with one value: their entries are in the order of ordinals.
    Equal(IndexRange),
    /// Those with an entry in the range, which is not in the order of ordinals:
    /// they are collected first.
    Within(IndexRange),
    /// Those in all of them; at least one.
    All(Vec<OrdinalSet>),
    /// Those in any of them.
    Any(Vec<OrdinalSet>),
}

/// Entries of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexRange {
    /// The path as policies spell it.
    pub of: Arc<str>,
    pub range: EntryRange,
}

impl AccessPath {
    /// Whether candidates come in the order of creation.
    #[must_use]
    pub fn is_by_creation(&self) -> bool {
        match self {
            AccessPath::Nothing | AccessPath::Created | AccessPath::Set(_) => true,
            AccessPath::Items | AccessPath::Entries { .. } => false,
        }
    }

    #[must_use]
    pub fn is_backwards(&self) -> bool {
        matches!(self, AccessPath::Entries { backwards: true, .. })
    }

    /// Whether every item on the path surely matches, as far as entries show.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        match self {
            AccessPath::Nothing => true,
            AccessPath::Items | AccessPath::Created => false,
            AccessPath::Entries { ranges, .. } => ranges.iter().all(|range| range.exact),
            AccessPath::Set(set) => set.is_exact(),
        }
    }
}

impl OrdinalSet {
    /// Number of ranges of entries that it is made of.
    pub(super) fn leaves(&self) -> u64 {
        match self {
            OrdinalSet::Equal(_) | OrdinalSet::Within(_) => 1,
            OrdinalSet::All(sets) | OrdinalSet::Any(sets) => {
                sets.iter().map(OrdinalSet::leaves).sum()
            }
        }
    }

    /// Whether there are entries to collect before its items can be in order.
    pub(super) fn has_ranges(&self) -> bool {
        match self {
            OrdinalSet::Equal(_) => false,
            OrdinalSet::Within(_) => true,
            OrdinalSet::All(sets) | OrdinalSet::Any(sets) => {
                sets.iter().any(OrdinalSet::has_ranges)
            }
        }
    }

    fn is_exact(&self) -> bool {
        match self {
            OrdinalSet::Equal(leaf) | OrdinalSet::Within(leaf) => leaf.range.exact,
            OrdinalSet::All(sets) | OrdinalSet::Any(sets) => sets.iter().all(OrdinalSet::is_exact),
        }
    }
}

/// The access path as text, without its values.
impl fmt::Display for AccessPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessPath::Nothing => f.write_str("nothing"),
            AccessPath::Items | AccessPath::Created => f.write_str("scan"),
            AccessPath::Entries { of, backwards: false, .. } => write!(f, "index {of}"),
            AccessPath::Entries { of, backwards: true, .. } => write!(f, "index {of} backwards"),
            AccessPath::Set(set) => write!(f, "{set}"),
        }
    }
}

impl fmt::Display for OrdinalSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrdinalSet::Equal(leaf) => write!(f, "seek {}", leaf.of),
            OrdinalSet::Within(leaf) => write!(f, "range {}", leaf.of),
            OrdinalSet::All(sets) => joined(f, sets, " and "),
            OrdinalSet::Any(sets) => match one_path(sets) {
                Some(of) => write!(f, "{} seeks {of}", sets.len()),
                None => joined(f, sets, " or "),
            },
        }
    }
}

/// The path of all sets, if they share one and each has one value.
fn one_path(sets: &[OrdinalSet]) -> Option<&str> {
    let path = |set: &'_ OrdinalSet| match set {
        OrdinalSet::Equal(leaf) => Some(Arc::clone(&leaf.of)),
        OrdinalSet::Within(_) | OrdinalSet::All(_) | OrdinalSet::Any(_) => None,
    };
    let (first, rest) = sets.split_first()?;
    let OrdinalSet::Equal(leaf) = first else { return None };
    rest.iter().all(|set| path(set).as_ref() == Some(&leaf.of)).then_some(&*leaf.of)
}

fn joined(f: &mut fmt::Formatter<'_>, sets: &[OrdinalSet], word: &str) -> fmt::Result {
    let sets: Vec<String> = sets.iter().map(OrdinalSet::to_string).collect();
    write!(f, "({})", sets.join(word))
}
