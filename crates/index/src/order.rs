//! Sort keys of rows, and how entries of an index lead to them.
//!
//! A *sort key* is the ORDER BY values of a row as bytes that compare as the rows do, then
//! the item's ordinal, in the direction of the first value, and the number of the row. It
//! is written in full, unlike index entries, which truncate strings. So it means the same
//! whichever index is scanned, or none: that is what a query resumes from (keyset
//! pagination). An [`EntryOrder`] finds the entries to resume at.

use model::json::{DistinctHash, JsonKind, Number, Value};
use model::policy::SortOrder;
use model::varint::{bytes, list, number, put_bytes, put_list, put_number, take};

use crate::value::{CUT, Decoded, IndexValue, STRING, WHOLE, encode_text_open};

/// Bytes of an ordinal.
const ORDINAL_BYTES: usize = 8;

/// One value that a row is sorted by, as far as the client that names it knows it.
#[derive(Clone, Debug, PartialEq)]
pub enum SortValue {
    Undefined,
    Value(Value),
    /// An array or object, by its hash.
    Hashed(JsonKind, DistinctHash),
}

/// Appends a value's part of a sort key: bytes that compare as the language orders values,
/// arrays among themselves and objects by their hashes. `None` is undefined.
pub fn encode_order(value: Option<&Value>, descending: bool, out: &mut Vec<u8>) {
    let value = value.map_or(IndexValue::Undefined, IndexValue::from);
    value.encode_part(direction(descending), usize::MAX, out);
}

/// As [`encode_order`], for a value that may be known by its hash only.
pub fn encode_key(key: &SortValue, descending: bool, out: &mut Vec<u8>) {
    match key {
        SortValue::Undefined => encode_order(None, descending, out),
        SortValue::Value(value) => encode_order(Some(value), descending, out),
        SortValue::Hashed(kind, hash) => {
            let is_array = *kind == JsonKind::Array;
            let own = if is_array { IndexValue::Array } else { IndexValue::Object };
            own(*hash).encode_part(direction(descending), usize::MAX, out);
        }
    }
}

/// Bytes of a sort key of values after which it continues with a hash: more than any index
/// entry has.
const VALUES_BYTES_MAX: usize = 512;

/// The sort key of a row that is distinguished from all others by values, each with whether it
/// descends. Integers of which several have one double are told apart after all of the
/// values, because numbers are ordered as doubles. A long one ends with a hash: after all of
/// that, if rows are to be in their order, or instead of the rest, so that the sort key is
/// short.
#[must_use]
pub fn encode_sort_values<'v>(
    values: impl Iterator<Item = (Option<&'v Value>, bool)>,
    in_order: bool,
) -> Vec<u8> {
    let (mut sort_key, mut beyond_doubles) = (Vec::new(), Vec::new());
    for (value, descends) in values {
        encode_order(value, descends, &mut sort_key);
        beyond_doubles.extend(value.and_then(Value::as_number).and_then(Number::beyond_double));
    }
    sort_key.extend(beyond_doubles.iter().flat_map(|part| ascending(*part)));
    if sort_key.len() > VALUES_BYTES_MAX {
        let hash = DistinctHash::of_bytes(&sort_key);
        sort_key.truncate(if in_order { sort_key.len() } else { VALUES_BYTES_MAX });
        sort_key.extend(hash.to_bytes());
    }
    sort_key
}

/// Bytes that compare as the numbers do.
fn ascending(number: i16) -> [u8; 2] {
    (number ^ i16::MIN).to_be_bytes()
}

/// The part of such a sort key that entries can have, and whether that is all of it.
#[must_use]
pub fn entry_part_of_values(sort_key: &[u8]) -> (&[u8], bool) {
    match sort_key.get(..VALUES_BYTES_MAX) {
        Some(part) if part.len() < sort_key.len() => (part, false),
        Some(_) | None => (sort_key, true),
    }
}

/// Appends an item's part of a sort key, which orders items with the same values.
pub fn encode_ordinal(ordinal: u64, backwards: bool, out: &mut Vec<u8>) {
    let ordinal = if backwards { !ordinal } else { ordinal };
    out.extend(ordinal.to_be_bytes());
}

fn turn(out: &mut [u8], start: usize, descending: bool) {
    if descending {
        out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
}

/// How the entries of an index are laid out that is in the order of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryOrder {
    /// The prefix of all of them.
    pub(crate) before: Vec<u8>,
    /// The direction in which each value is written after it.
    pub(crate) parts: Vec<SortOrder>,
    /// Bytes of a string that are kept.
    pub(crate) text_max: usize,
}

/// The entries to seek to for a sort key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seek {
    /// Their prefix.
    pub key: Vec<u8>,
    /// Whether the sort keys of all their items begin with the given one. Otherwise it is
    /// more precise than entries are.
    pub whole: bool,
}

/// Where the items at an entry end in an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryEnd {
    pub sort_key: Vec<u8>,
    /// Whether that is after the sort keys with this prefix. Otherwise it is before them.
    pub past: bool,
}

impl EntryOrder {
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, &self.before);
        put_list(out, &self.parts, |out, part| {
            out.push(u8::from(*part == SortOrder::Descending));
        });
        put_number(out, self.text_max as u64);
    }

    pub fn decode(input: &mut &[u8]) -> Option<EntryOrder> {
        let before = bytes(input)?.to_vec();
        let parts = list(input, |input| Some(direction(take(input)? == 1)))?;
        Some(EntryOrder { before, parts, text_max: usize::try_from(number(input)?).ok()? })
    }

    /// The entries of items whose sort keys begin with `sort_key`, in an order whose values
    /// descend or not. Bytes that are no sort key lead to where similar sort keys would be.
    #[must_use]
    pub fn seek(&self, sort_key: &[u8], descends: &[bool]) -> Seek {
        let mut rest = sort_key;
        let Seek { mut key, whole } = self.seek_keys(&mut rest, descends);
        let Some((ordinal, behind)) = rest.split_first_chunk::<ORDINAL_BYTES>() else {
            return Seek { key, whole };
        };
        let ordinal = u64::from_be_bytes(*ordinal);
        encode_ordinal(ordinal, descends.first() == Some(&true), &mut key);
        Seek { key, whole: behind.is_empty() }
    }

    /// As [`EntryOrder::seek`], for sort keys of values alone, of which there may be more
    /// than entries have.
    #[must_use]
    pub fn seek_values(&self, mut sort_key: &[u8], descends: &[bool]) -> Seek {
        self.seek_keys(&mut sort_key, descends)
    }

    /// The part that entries have of the values at the front of a sort key. Values that
    /// they do not have end it.
    fn seek_keys(&self, rest: &mut &[u8], descends: &[bool]) -> Seek {
        let mut key = self.before.clone();
        for (part, descends) in self.parts.iter().zip(descends) {
            if rest.is_empty() {
                return Seek { key, whole: true };
            }
            if let Some(whole) = self.seek_part(*part, rest, *descends, &mut key) {
                *rest = &[];
                return Seek { key, whole };
            }
        }
        Seek { key, whole: rest.is_empty() }
    }

    /// Takes a value off a sort key and appends the part that entries have of it. Unless
    /// that is everything and entries continue after it, returns whether it is everything.
    fn seek_part(
        &self,
        part: SortOrder,
        rest: &mut &[u8],
        descends: bool,
        key: &mut Vec<u8>,
    ) -> Option<bool> {
        let start = key.len();
        let Some((text, is_ended)) = take_text(rest, descends) else {
            let value = match Decoded::read_part(rest, direction(descends)) {
                Ok(Decoded::Whole(value)) => value,
                Ok(Decoded::Cut(_)) | Err(_) => return Some(false),
            };
            value.encode_part(part, self.text_max, key);
            return None;
        };
        key.push(STRING);
        encode_text_open(text.get(..self.text_max).unwrap_or(&text), key);
        let is_cut = text.len() > self.text_max;
        key.extend(if is_cut { Some(CUT) } else { is_ended.then_some(WHOLE) });
        turn(key, start, part == SortOrder::Descending);
        if is_ended && !is_cut { None } else { Some(!is_cut) }
    }

    /// Where the items at an entry end, or at all entries with the prefix of one that does
    /// not distinguish its items.
    #[must_use]
    pub fn end(&self, entry: &[u8], descends: &[bool]) -> EntryEnd {
        let (mut sort_key, past) = (Vec::new(), true);
        let Some(mut rest) = entry.strip_prefix(self.before.as_slice()) else {
            return EntryEnd { sort_key, past: false };
        };
        for (part, descends) in self.parts.iter().zip(descends) {
            let start = sort_key.len();
            match Decoded::read_part(&mut rest, *part) {
                Ok(Decoded::Whole(value)) => {
                    value.encode_part(direction(*descends), usize::MAX, &mut sort_key);
                }
                Ok(Decoded::Cut(text)) => {
                    sort_key.push(STRING);
                    encode_text_open(&text, &mut sort_key);
                    // A text that is exactly this long comes before all longer ones, or, in
                    // a descending order, after them: it has an entry of its own.
                    sort_key.extend(descends.then_some(WHOLE));
                    turn(&mut sort_key, start, *descends);
                    return EntryEnd { sort_key, past: !*descends };
                }
                Err(_) => return EntryEnd { sort_key, past: false },
            }
        }
        if let Some(ordinal) = rest.first_chunk::<ORDINAL_BYTES>() {
            let ordinal = u64::from_be_bytes(*ordinal);
            encode_ordinal(ordinal, descends.first() == Some(&true), &mut sort_key);
        }
        EntryEnd { sort_key, past }
    }

    /// What an entry has in common with those of all items with the same values, as far as
    /// entries have them, and whether they have all of them.
    #[must_use]
    pub fn values<'e>(&self, entry: &'e [u8]) -> (&'e [u8], bool) {
        let cut = self.cut_of(entry);
        let end = cut.unwrap_or(entry.len().saturating_sub(ORDINAL_BYTES));
        let is_told = cut.is_none() && !self.rounds_integers(entry);
        (entry.get(..end).unwrap_or(entry), is_told)
    }

    /// Whether a number of an entry can stand for several integers.
    fn rounds_integers(&self, entry: &[u8]) -> bool {
        let mut rest = entry.strip_prefix(self.before.as_slice()).unwrap_or_default();
        self.parts.iter().any(|part| match Decoded::read_part(&mut rest, *part) {
            Ok(Decoded::Whole(IndexValue::Number(double))) => {
                Number::from_f64(double).and_then(Number::beyond_double).is_some()
            }
            Ok(_) | Err(_) => false,
        })
    }

    /// How many values an entry has.
    #[must_use]
    pub fn width(&self) -> usize {
        self.parts.len()
    }

    /// The number of leading bytes after which entries that share them may differ in what
    /// was truncated.
    #[must_use]
    pub fn cut_of(&self, entry: &[u8]) -> Option<usize> {
        let mut rest = entry.strip_prefix(self.before.as_slice())?;
        self.parts.iter().find_map(|part| match Decoded::read_part(&mut rest, *part).ok()? {
            Decoded::Whole(_) => None,
            Decoded::Cut(_) => Some(entry.len() - rest.len()),
        })
    }
}

fn direction(descends: bool) -> SortOrder {
    if descends { SortOrder::Descending } else { SortOrder::Ascending }
}

/// Takes a text off a sort key, if that is next, and returns whether it is complete.
/// Entries truncate texts between any two bytes, so it need not be valid UTF-8.
fn take_text(sort_key: &mut &[u8], descends: bool) -> Option<(Vec<u8>, bool)> {
    let turned = |byte: &u8| if descends { !*byte } else { *byte };
    let (_, bytes) = sort_key.split_first().filter(|(tag, _)| turned(tag) == STRING)?;
    let end = bytes.iter().position(|byte| turned(byte) == WHOLE);
    let (text, rest) = bytes.split_at_checked(end.unwrap_or(bytes.len()))?;
    *sort_key = rest.get(usize::from(end.is_some())..).unwrap_or_default();
    let text = text.iter().map(|byte| turned(byte).wrapping_sub(1)).collect();
    Some((text, end.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(parts: &[SortOrder]) -> EntryOrder {
        EntryOrder { before: b"12345678".to_vec(), parts: parts.to_vec(), text_max: 4 }
    }

    fn sort_key(keys: &[(&str, bool)], ordinal: u64) -> Vec<u8> {
        let (mut sort_key, backwards) = (Vec::new(), keys.first().is_some_and(|(_, way)| *way));
        for (key, descends) in keys {
            let value = model::json::parse(key.as_bytes()).ok();
            encode_order(value.as_ref(), *descends, &mut sort_key);
        }
        encode_ordinal(ordinal, backwards, &mut sort_key);
        sort_key
    }

    /// The entry part of a sort key leads to the entry, and the entry back to the sort key.
    #[test]
    fn sort_keys_and_entries_lead_to_each_other() {
        use SortOrder::{Ascending, Descending};
        for (parts, keys, whole) in [
            (&[Ascending][..], &[("5", false)][..], true),
            (&[Ascending], &[("5", true)], true),
            (&[Ascending], &[("", true)], true),
            (&[Ascending], &[("\"abcd\"", false)], true),
            (&[Ascending], &[("\"abcde\"", true)], false),
            (&[Ascending], &[("\"abcé\"", true)], false),
            (&[Ascending], &[("\"abcé\"", false)], false),
            (&[Ascending], &[("[1]", false)], true),
            (&[Ascending, Descending], &[("true", true), ("\"a\"", false)], true),
            (&[Ascending, Descending], &[("null", false), ("\"abcdef\"", true)], false),
            (&[Ascending, Ascending], &[("{}", false), ("1", false)], true),
            (&[Ascending, Descending], &[("{\"a\":1}", true), ("[\"abcdef\"]", false)], true),
            (&[Ascending, Ascending], &[("{}", false), ("\"abcde\"", false)], false),
        ] {
            let (order, sort_key) = (order(parts), sort_key(keys, 7));
            let descends: Vec<bool> = keys.iter().map(|(_, way)| *way).collect();
            let Seek { key, whole: is_whole } = order.seek(&sort_key, &descends);
            assert_eq!(is_whole, whole, "{keys:?}");
            let end = order.end(&key, &descends);
            let is_before = if end.past {
                sort_key.starts_with(&end.sort_key)
            } else {
                sort_key < end.sort_key
            };
            assert!(is_before && (end.sort_key == sort_key) == whole, "{keys:?}: {end:?}");
            // After its end, no entry like it is found again.
            let Seek { key: after, whole: is_whole } = order.seek(&end.sort_key, &descends);
            assert!(is_whole && key.starts_with(&after) == end.past, "{keys:?}");
            let cut = (!whole).then_some(key.len());
            assert_eq!(order.cut_of(&key), cut, "{keys:?}");
        }
    }

    /// Values lead to their entries, and a scan continues after these, even where entries
    /// have only the first of them or a part of one.
    #[test]
    fn values_lead_to_entries() {
        use SortOrder::{Ascending, Descending};
        for (parts, keys, whole) in [
            (&[Ascending][..], &[("5", false)][..], true),
            (&[Ascending], &[("", true)], true),
            (&[Ascending], &[("5", false), ("6", false)], false),
            (&[Ascending], &[("9007199254740993", true)], false),
            (&[Ascending, Descending], &[("1e300", true), ("-9007199254740993", true)], false),
            (&[Ascending], &[("\"abcdefgh\"", false)], false),
            (&[Ascending, Descending], &[("true", true), ("\"a\"", false)], true),
            (&[Ascending, Descending], &[("[1]", true), ("1", false)], true),
            (&[Ascending], &[("[9007199254740993]", false)], true),
        ] {
            let order = order(parts);
            let values: Vec<Option<Value>> =
                keys.iter().map(|(key, _)| model::json::parse(key.as_bytes()).ok()).collect();
            let descends: Vec<bool> = keys.iter().map(|(_, way)| *way).collect();
            let sort_key = encode_sort_values(
                values.iter().map(Option::as_ref).zip(descends.iter().copied()),
                true,
            );
            assert_eq!(entry_part_of_values(&sort_key), (&*sort_key, true));
            let Seek { key, whole: is_whole } = order.seek_values(&sort_key, &descends);
            assert_eq!(is_whole, whole, "{keys:?}");
            let entry = [&*key, &7_u64.to_be_bytes()].concat();
            let (shared, is_told) = order.values(&entry);
            assert_eq!(shared, key, "{keys:?}");
            let end = order.end(shared, &descends);
            assert!(if end.past {
                sort_key.starts_with(&end.sort_key)
            } else {
                sort_key < end.sort_key
            });
            assert_eq!(is_told && order.width() == keys.len(), whole, "{keys:?}");
        }
    }

    /// Integers with one double are told apart, after everything that is ordered.
    #[test]
    fn sort_keys_of_values_tell_integers_apart() {
        let sort_key = |number: &str, text: &str| {
            let values = [number, text].map(|own| model::json::parse(own.as_bytes()).unwrap());
            encode_sort_values(values.iter().map(|value| (Some(value), false)), true)
        };
        for ascending in [
            [("9007199254740993", "1"), ("9007199254740992", "2"), ("9007199254740993", "2")],
            [("-9007199254740993", "1"), ("-9007199254740992", "1"), ("5", "1")],
            [("9223372036854775807", "1"), ("9223372036854775808", "1"), ("1e19", "1")],
        ] {
            assert!(
                ascending.map(|(number, text)| sort_key(number, text)).is_sorted_by(|a, b| a < b)
            );
        }
        assert_eq!(sort_key("9007199254740994.0", "1"), sort_key("9007199254740994", "1"));
    }

    /// However long values are, their sort keys are bounded, and distinguish them.
    #[test]
    fn sort_keys_of_values_are_short() {
        let sort_key = |text: String, in_order: bool| {
            encode_sort_values([(Some(&Value::from(text)), false)].into_iter(), in_order)
        };
        let long = |end: &str| "x".repeat(10_000) + end;
        assert!(sort_key(long("a"), true) < sort_key(long("aa"), true));
        assert!(sort_key(long("aa"), true) < sort_key(long("b"), true));
        let sort_key = |text: String| sort_key(text, false);
        let [one, other] = ["a", "b"].map(|end| sort_key(long(end)));
        assert_eq!(one.len(), VALUES_BYTES_MAX + size_of::<DistinctHash>());
        assert_ne!(one, other);
        assert_eq!(entry_part_of_values(&one), (&one[..VALUES_BYTES_MAX], false));
        assert!(sort_key("x".repeat(300)) < one && one < sort_key("y".to_owned()));
    }

    /// However much of a sort key is present, its entries begin with what is found.
    #[test]
    fn prefixes_of_sort_keys_lead_before_their_entries() {
        let order = order(&[SortOrder::Ascending, SortOrder::Descending]);
        for keys in [[("\"abcdef\"", true), ("1", false)], [("[2]", true), ("\"x\"", false)]] {
            let (sort_key, descends) = (sort_key(&keys, 7), [true, false]);
            let all = order.seek(&sort_key, &descends).key;
            for end in 0..sort_key.len() {
                let Seek { key, .. } = order.seek(&sort_key[..end], &descends);
                assert!(all.starts_with(&key), "{keys:?} up to {end}: {key:?} {all:?}");
            }
        }
    }
}
