//! Which entries answer a predicate.
//!
//! A range holds every item for which the predicate is true. Where the entries
//! alone cannot tell (cut strings, arrays, objects), it holds a few more and
//! says so.

use std::ops::Bound;

use model::json::{Kind, Value};

use crate::plan::IndexedPath;
use crate::value::{
    ANY, CUT, DEFINED, IndexValue, STRING, TEXT_BYTES_MAX, encode_text_open, tags_of,
};

/// The entries from `start` up to, but not including, `end`, whatever follows
/// the value in their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    /// Whether each entry of the range answers the predicate. If not, the items
    /// must be fetched and asked.
    pub exact: bool,
}

impl KeyRange {
    /// The entries that are in both. May be none.
    #[must_use]
    pub fn intersect(&self, other: &KeyRange) -> KeyRange {
        KeyRange {
            start: self.start.clone().max(other.start.clone()),
            end: self.end.clone().min(other.end.clone()),
            exact: self.exact && other.exact,
        }
    }
}

impl IndexedPath {
    /// Items whose value here is `value`.
    #[must_use]
    pub fn equal(self, value: &Value) -> KeyRange {
        let value = IndexValue::from(value);
        let key = self.key(&value);
        KeyRange { end: after(&key), start: key, exact: value.is_whole() }
    }

    /// Items whose value here is one of `values`: ranges in key order, none of
    /// them twice.
    #[must_use]
    pub fn any_of<'a>(self, values: impl IntoIterator<Item = &'a Value>) -> Vec<KeyRange> {
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
    pub fn between(self, lower: Bound<&Value>, upper: Bound<&Value>) -> Option<KeyRange> {
        let (low, high) = type_between(lower, upper)?;
        let start = match lower {
            Bound::Unbounded => self.tagged(low),
            Bound::Included(value) => self.key(&value.into()),
            Bound::Excluded(value) => self.key_above(&value.into()),
        };
        let end = match upper {
            Bound::Unbounded => after(&self.tagged(high)),
            Bound::Included(value) => after(&self.key(&value.into())),
            Bound::Excluded(value) => self.key_not_below(&value.into()),
        };
        (start < end).then(|| KeyRange { start, end, exact: whole(lower) && whole(upper) })
    }

    /// Items whose value here is a string that begins with `prefix`.
    #[must_use]
    pub fn starts_with(self, prefix: &str) -> KeyRange {
        let mut start = self.tagged(STRING);
        let kept = prefix.as_bytes().get(..TEXT_BYTES_MAX).unwrap_or(prefix.as_bytes());
        encode_text_open(kept, &mut start);
        let exact = kept.len() == prefix.len();
        if !exact {
            start.push(CUT);
        }
        KeyRange { end: after(&start), start, exact }
    }

    /// Items whose value here has a type.
    #[must_use]
    pub fn of_type(self, kind: Kind) -> KeyRange {
        self.tags(tags_of(kind))
    }

    /// Items that have a value here.
    #[must_use]
    pub fn is_defined(self) -> KeyRange {
        self.tags(DEFINED)
    }

    /// All entries of the path, in the order of the values: the items that have
    /// a value, and where [`IndexedPath::has_undefined`], before them the others.
    #[must_use]
    pub fn all(self) -> KeyRange {
        self.tags(ANY)
    }

    fn tags(self, (low, high): (u8, u8)) -> KeyRange {
        KeyRange { start: self.tagged(low), end: after(&self.tagged(high)), exact: true }
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

    /// Where values above `value` begin. A cut value shares its key with larger ones.
    fn key_above(self, value: &IndexValue<'_>) -> Vec<u8> {
        let key = self.key(value);
        if value.is_whole() { after(&key) } else { key }
    }

    /// Where values below `value` end. A cut value shares its key with smaller ones.
    fn key_not_below(self, value: &IndexValue<'_>) -> Vec<u8> {
        let key = self.key(value);
        if value.is_whole() { key } else { after(&key) }
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
    .filter(|tags| *tags < tags_of(Kind::Array))
}

fn tags_at(bound: Bound<&Value>) -> Option<(u8, u8)> {
    let kind = match at(bound)? {
        Value::Null => Kind::Null,
        Value::Bool(_) => Kind::Bool,
        Value::Number(_) => Kind::Number,
        Value::String(_) => Kind::String,
        Value::Array(_) => Kind::Array,
        Value::Object(_) => Kind::Object,
    };
    Some(tags_of(kind))
}

fn whole(bound: Bound<&Value>) -> bool {
    at(bound).is_none_or(|value| IndexValue::from(value).is_whole())
}

fn at(bound: Bound<&Value>) -> Option<&Value> {
    match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(value),
        Bound::Unbounded => None,
    }
}
