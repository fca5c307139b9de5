//! Which entries answer a predicate.
//!
//! A range holds every item for which the predicate is true. Where the entries alone cannot
//! decide (truncated strings, hashed arrays and objects), it holds a few more and says so.

use std::ops::Bound;

use model::json::{JsonKind, Value};
use model::policy::SortOrder;

use crate::plan::IndexedPath;
use crate::value::{
    ANY, CUT, DEFINED, IndexValue, STRING, TEXT_BYTES_MAX, UNDEFINED, encode_text_open, tags_of,
};

/// The entries from `start` up to, but not including, `end`, whatever follows the value in
/// their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRange {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    /// Whether each entry of the range satisfies the predicate. If not, the items must be
    /// loaded and filtered.
    pub exact: bool,
}

impl EntryRange {
    /// The entries that are in both. May be none.
    #[must_use]
    pub fn intersect(&self, other: &EntryRange) -> EntryRange {
        EntryRange {
            start: self.start.clone().max(other.start.clone()),
            end: self.end.clone().min(other.end.clone()),
            exact: self.exact && other.exact,
        }
    }
}

impl IndexedPath {
    /// Items whose value here is `value`, if that [has one entry](crate::has_one_entry).
    #[must_use]
    pub fn equal(self, value: &Value) -> EntryRange {
        let value = IndexValue::from(value);
        let key = self.key(&value);
        EntryRange { end: after(&key), start: key, exact: value.is_proof_in(TEXT_BYTES_MAX) }
    }

    /// Items whose value here is one of `values`, if each has one entry: ranges in key
    /// order, none of them twice.
    #[must_use]
    pub fn any_of<'a>(self, values: impl IntoIterator<Item = &'a Value>) -> Vec<EntryRange> {
        let mut ranges: Vec<_> = values.into_iter().map(|value| self.equal(value)).collect();
        ranges.sort_unstable_by(|a, b| a.start.cmp(&b.start));
        ranges.dedup_by(|a, b| a.start == b.start);
        ranges
    }

    /// Items whose value here lies between two bounds of one type. An open bound
    /// reaches to the end of the other bound's type.
    ///
    /// `None` where no value can satisfy the predicate: without any bound there
    /// is no type, and values of different types, arrays and objects do not
    /// compare.
    #[must_use]
    pub fn between(self, lower: Bound<&Value>, upper: Bound<&Value>) -> Option<EntryRange> {
        let hash = self.hash.to_bytes();
        Part { before: &hash, order: SortOrder::Ascending, text_max: TEXT_BYTES_MAX }
            .between(lower, upper)
    }

    /// Items whose value here is a string that begins with `prefix`.
    #[must_use]
    pub fn starts_with(self, prefix: &str) -> EntryRange {
        let mut start = self.tagged(STRING);
        let kept = prefix.as_bytes().get(..TEXT_BYTES_MAX).unwrap_or(prefix.as_bytes());
        encode_text_open(kept, &mut start);
        let exact = kept.len() == prefix.len();
        if !exact {
            start.push(CUT);
        }
        EntryRange { end: after(&start), start, exact }
    }

    /// Items whose value here has a type.
    #[must_use]
    pub fn of_type(self, kind: JsonKind) -> EntryRange {
        self.tags(tags_of(kind))
    }

    /// Items that have a value here.
    #[must_use]
    pub fn is_defined(self) -> EntryRange {
        self.tags(DEFINED)
    }

    /// All entries of the path, in the order of the values: the items that have a value,
    /// and if [`IndexedPath::has_undefined`], before them the others.
    #[must_use]
    pub fn all(self) -> EntryRange {
        self.tags(ANY)
    }

    /// Items whose values here have types from one to another.
    pub(crate) fn between_tags(self, low: u8, high: u8) -> EntryRange {
        self.tags((low, high))
    }

    /// What entries for the absence of a value begin with.
    pub(crate) fn undefined_key(self) -> Vec<u8> {
        self.tagged(UNDEFINED)
    }

    fn tags(self, (low, high): (u8, u8)) -> EntryRange {
        EntryRange { start: self.tagged(low), end: after(&self.tagged(high)), exact: true }
    }

    fn tagged(self, tag: u8) -> Vec<u8> {
        let mut key = self.hash.to_bytes().to_vec();
        key.push(tag);
        key
    }

    fn key(self, value: &IndexValue<'_>) -> Vec<u8> {
        let mut key = self.hash.to_bytes().to_vec();
        value.encode(TEXT_BYTES_MAX, &mut key);
        key
    }
}

/// One value in keys with a common prefix.
pub(crate) struct Part<'b> {
    pub(crate) before: &'b [u8],
    pub(crate) order: SortOrder,
    /// Bytes of a string that are kept.
    pub(crate) text_max: usize,
}

/// One end of a range of values.
struct End {
    key: Vec<u8>,
    /// Whether keys with this prefix belong to the range.
    closed: bool,
}

impl Part<'_> {
    /// See [`IndexedPath::between`].
    pub(crate) fn between(&self, lower: Bound<&Value>, upper: Bound<&Value>) -> Option<EntryRange> {
        let (low, high) = type_between(lower, upper)?;
        let whole = self.is_whole(lower) && self.is_whole(upper);
        let range = self.spanning(self.end(lower, low), self.end(upper, high));
        (range.start < range.end).then_some(EntryRange { exact: whole, ..range })
    }

    /// The keys that have a value here.
    pub(crate) fn is_defined(&self) -> EntryRange {
        let (low, high) = DEFINED;
        self.spanning(self.end(Bound::Unbounded, low), self.end(Bound::Unbounded, high))
    }

    fn spanning(&self, low: End, high: End) -> EntryRange {
        let (first, last) = match self.order {
            SortOrder::Ascending => (low, high),
            SortOrder::Descending => (high, low),
        };
        EntryRange {
            start: if first.closed { first.key } else { after(&first.key) },
            end: if last.closed { after(&last.key) } else { last.key },
            exact: true,
        }
    }

    /// A truncated value shares its key with larger and smaller ones.
    fn end(&self, bound: Bound<&Value>, tag: u8) -> End {
        let mut key = self.before.to_vec();
        match at(bound) {
            Some(value) => IndexValue::from(value).encode_part(self.order, self.text_max, &mut key),
            None => key.push(if self.order == SortOrder::Ascending { tag } else { !tag }),
        }
        let closed = !matches!(bound, Bound::Excluded(_)) || !self.is_whole(bound);
        End { key, closed }
    }

    fn is_whole(&self, bound: Bound<&Value>) -> bool {
        at(bound).is_none_or(|value| IndexValue::from(value).is_proof_in(self.text_max))
    }
}

/// The first key that does not begin with `prefix` and is above it.
pub(crate) fn after(prefix: &[u8]) -> Vec<u8> {
    let mut key = prefix.to_vec();
    while let Some(last) = key.pop() {
        if let Some(next) = last.checked_add(1) {
            key.push(next);
            return key;
        }
    }
    unreachable!("a key has a type tag or a hash in which not all is FF")
}

/// The tags of the one type that both bounds have.
fn type_between(lower: Bound<&Value>, upper: Bound<&Value>) -> Option<(u8, u8)> {
    match (tags_at(lower), tags_at(upper)) {
        (Some(low), Some(high)) if low != high => None,
        (Some(tags), _) | (None, Some(tags)) => Some(tags),
        (None, None) => None,
    }
    .filter(|tags| *tags < tags_of(JsonKind::Array))
}

fn tags_at(bound: Bound<&Value>) -> Option<(u8, u8)> {
    let kind = match at(bound)? {
        Value::Null => JsonKind::Null,
        Value::Bool(_) => JsonKind::Bool,
        Value::Number(_) => JsonKind::Number,
        Value::String(_) => JsonKind::String,
        Value::Array(_) => JsonKind::Array,
        Value::Object(_) => JsonKind::Object,
    };
    Some(tags_of(kind))
}

fn at(bound: Bound<&Value>) -> Option<&Value> {
    match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(value),
        Bound::Unbounded => None,
    }
}
