//! Where to look for items.

use std::fmt;

use index::KeyRange;

/// A way to the items that a query may be about. All of them are on it; whether the
/// others on it are few is a matter of luck and of [`super::choose`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// There are none.
    Nothing,
    /// Every item, in the order of keys.
    Items,
    /// The items with an entry in one of these ranges, in the order of the entries.
    /// Each item has at most one entry in all of them.
    Entries {
        /// In order, without overlap.
        ranges: Vec<KeyRange>,
        backwards: bool,
    },
    /// The items of a set, in the order of ordinals.
    Set(Set),
}

/// A set of items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Set {
    /// Those with one value: their entries are in the order of ordinals.
    Equal(KeyRange),
    /// Those with an entry in the range, which is not in the order of ordinals:
    /// they are collected first.
    Within(KeyRange),
    /// Those in all of them; at least one.
    All(Vec<Set>),
    /// Those in any of them.
    Any(Vec<Set>),
}

impl Access {
    /// Whether candidates come in the order of ordinals or entries, so that those
    /// of several buckets must be merged to be in one order.
    #[must_use]
    pub fn is_items(&self) -> bool {
        matches!(self, Access::Items)
    }

    #[must_use]
    pub fn is_backwards(&self) -> bool {
        matches!(self, Access::Entries { backwards: true, .. })
    }

    /// Whether each item on the way surely is one that is looked for, as far as
    /// entries tell.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        match self {
            Access::Nothing => true,
            Access::Items => false,
            Access::Entries { ranges, .. } => ranges.iter().all(|range| range.exact),
            Access::Set(set) => set.is_exact(),
        }
    }
}

impl Set {
    fn is_exact(&self) -> bool {
        match self {
            Set::Equal(range) | Set::Within(range) => range.exact,
            Set::All(sets) | Set::Any(sets) => sets.iter().all(Set::is_exact),
        }
    }
}

/// The kind of way, without its values.
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Access::Nothing => f.write_str("nothing"),
            Access::Items => f.write_str("scan"),
            Access::Entries { backwards, .. } => {
                f.write_str(if *backwards { "index backwards" } else { "index" })
            }
            Access::Set(set) => write!(f, "{set}"),
        }
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, sets: &[Set], word: &str| {
            let sets: Vec<String> = sets.iter().map(Set::to_string).collect();
            write!(f, "({})", sets.join(word))
        };
        match self {
            Set::Equal(_) => f.write_str("seek"),
            Set::Within(_) => f.write_str("range"),
            Set::All(sets) => joined(f, sets, " and "),
            Set::Any(sets) if sets.len() > 4 => write!(f, "any of {}", sets.len()),
            Set::Any(sets) => joined(f, sets, " or "),
        }
    }
}
