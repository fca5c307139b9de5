//! The keys of a bucket, all in one module. The byte layout is specified in
//! `docs/formats/partition.md`.

use std::borrow::Cow;

use bytes::Bytes;
use model::epk::Epk;
use model::hex::Upper;
use model::position::{Lsn, Ordinal};
use storage::KeyRange;

/// Number of a container in keys. Never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContainerNumber(pub u32);

/// Number of a bucket inside its container. Never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BucketNumber(pub u32);

/// The groups of keys in a bucket, by their tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Group {
    Head = 0x01,
    Statistics = 0x02,
    Item = 0x10,
    Ordinal = 0x20,
    Member = 0x21,
    Index = 0x30,
    Unique = 0x40,
    Expiry = 0x50,
    Log = 0x60,
    History = 0x61,
    KeyHistory = 0x62,
    Horizon = 0x63,
}

impl Group {
    pub(crate) const ALL: [Group; 12] = [
        Group::Head,
        Group::Statistics,
        Group::Item,
        Group::Ordinal,
        Group::Member,
        Group::Index,
        Group::Unique,
        Group::Expiry,
        Group::Log,
        Group::History,
        Group::KeyHistory,
        Group::Horizon,
    ];

    fn from_tag(tag: u8) -> Option<Group> {
        Group::ALL.into_iter().find(|group| *group as u8 == tag)
    }

    /// The name of its keys in messages.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Group::Head => "head",
            Group::Statistics => "statistics",
            Group::Item => "item",
            Group::Ordinal => "ordinal",
            Group::Member => "member",
            Group::Index => "index entry",
            Group::Unique => "unique value",
            Group::Expiry => "expiry entry",
            Group::Log => "log entry",
            Group::History => "history record",
            Group::KeyHistory => "entry of a key's history",
            Group::Horizon => "history horizon",
        }
    }

    /// Whether `apply` reads keys of this group. Only those need to be looked
    /// up among writes that are not durable yet.
    fn is_read_by_apply(self) -> bool {
        match self {
            Group::Item | Group::Ordinal | Group::Unique | Group::Statistics => true,
            Group::Head
            | Group::Member
            | Group::Index
            | Group::Expiry
            | Group::Log
            | Group::History
            | Group::KeyHistory
            | Group::Horizon => false,
        }
    }

    /// Whether a bucket has one key of this group, which ends with the tag.
    fn is_single(self) -> bool {
        matches!(self, Group::Head | Group::Horizon)
    }
}

/// Groups that later versions will write, by their tag. This one neither writes nor reads
/// them; it knows their names, so that `check` can say what is in a store that has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum ReservedGroup {
    Deletion = 0x03,
    Vector = 0x31,
    FullText = 0x32,
}

impl ReservedGroup {
    pub(crate) const ALL: [ReservedGroup; 3] =
        [ReservedGroup::Deletion, ReservedGroup::Vector, ReservedGroup::FullText];

    /// The reserved group that a key belongs to.
    pub(crate) fn of(key: &[u8]) -> Option<ReservedGroup> {
        let tag = key.get(GROUP_AT)?;
        ReservedGroup::ALL.into_iter().find(|group| *group as u8 == *tag)
    }

    /// Its name in messages.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            ReservedGroup::Deletion => "pending deletion by partition key",
            ReservedGroup::Vector => "vector index",
            ReservedGroup::FullText => "full-text index",
        }
    }
}

/// The position of a record in the history: its commit, and its number in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HistoryPosition {
    pub(crate) lsn: Lsn,
    pub(crate) number: u32,
}

impl HistoryPosition {
    fn write(self, key: &mut Vec<u8>) {
        key.extend_from_slice(&self.lsn.get().to_be_bytes());
        key.extend_from_slice(&self.number.to_be_bytes());
    }

    /// Splits it off the end of a key.
    pub(crate) fn take(rest: &[u8]) -> Option<(&[u8], HistoryPosition)> {
        let (rest, number) = rest.split_last_chunk::<4>()?;
        let (rest, lsn) = rest.split_last_chunk::<8>()?;
        let lsn = Lsn::from_u64(u64::from_be_bytes(*lsn));
        Some((rest, HistoryPosition { lsn, number: u32::from_be_bytes(*number) }))
    }
}

/// Bytes before the group tag.
const PREFIX_BYTES: usize = 8;

/// Offset of the group tag.
pub(crate) const GROUP_AT: usize = PREFIX_BYTES;

/// Makes the keys of one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    prefix: [u8; PREFIX_BYTES],
}

impl Keys {
    pub(crate) fn new(container: ContainerNumber, bucket: BucketNumber) -> Keys {
        let mut prefix = [0; PREFIX_BYTES];
        let (first, second) = prefix.split_at_mut(4);
        first.copy_from_slice(&container.0.to_be_bytes());
        second.copy_from_slice(&bucket.0.to_be_bytes());
        Keys { prefix }
    }

    pub(crate) fn group(&self, group: Group) -> Vec<u8> {
        self.start(group, 0)
    }

    /// The key ranges of the bucket where no key may be.
    pub(crate) fn outside_groups(&self) -> Vec<KeyRange> {
        let bucket = KeyRange::prefix(&self.prefix);
        let mut gaps = Vec::with_capacity(Group::ALL.len() + 1);
        let mut start = bucket.start;
        for group in Group::ALL {
            let mut inside = KeyRange::prefix(&self.group(group));
            if group.is_single() {
                inside.end = Some(after(&inside.start));
            }
            gaps.push(KeyRange { start, end: Some(inside.start) });
            start = inside.end.unwrap_or_default();
        }
        gaps.push(KeyRange { start, end: bucket.end });
        gaps
    }

    pub(crate) fn head(&self) -> Bytes {
        self.group(Group::Head).into()
    }

    pub(crate) fn statistics(&self, epk: &Epk) -> Bytes {
        let mut key = self.start(Group::Statistics, epk.as_bytes().len() + 2);
        write_terminated(&mut key, epk.as_bytes());
        key.into()
    }

    pub(crate) fn item(&self, epk: &Epk, id: &str) -> Bytes {
        let mut key = self.start(Group::Item, epk.as_bytes().len() + id.len() + 2);
        write_terminated(&mut key, epk.as_bytes());
        key.extend_from_slice(id.as_bytes());
        key.into()
    }

    /// The key of the item that an ordinal key names: see [`item_name`].
    pub(crate) fn named_item(&self, name: &[u8]) -> Bytes {
        let mut key = self.start(Group::Item, name.len());
        key.extend_from_slice(name);
        key.into()
    }

    /// The smallest key after that of an item.
    pub(crate) fn after_item(&self, epk: &Epk, id: &str) -> Bytes {
        after(&self.item(epk, id))
    }

    pub(crate) fn ordinal(&self, ordinal: Ordinal) -> Bytes {
        let mut key = self.start(Group::Ordinal, 8);
        write_ordinal(&mut key, ordinal);
        key.into()
    }

    /// The prefix of the keys of a logical partition's members.
    pub(crate) fn members(&self, epk: &Epk) -> Bytes {
        let mut key = self.start(Group::Member, epk.as_bytes().len() + 2);
        write_terminated(&mut key, epk.as_bytes());
        key.into()
    }

    pub(crate) fn member(&self, epk: &Epk, ordinal: Ordinal) -> Bytes {
        let mut key = self.start(Group::Member, epk.as_bytes().len() + 10);
        write_terminated(&mut key, epk.as_bytes());
        write_ordinal(&mut key, ordinal);
        key.into()
    }

    /// The prefix of an entry's keys, whichever item has it.
    pub(crate) fn index_entry(&self, entry: &[u8]) -> Bytes {
        let mut key = self.start(Group::Index, entry.len());
        key.extend_from_slice(entry);
        key.into()
    }

    pub(crate) fn index(&self, entry: &[u8], ordinal: Ordinal) -> Bytes {
        let mut key = self.start(Group::Index, entry.len() + 8);
        key.extend_from_slice(entry);
        write_ordinal(&mut key, ordinal);
        key.into()
    }

    pub(crate) fn unique(&self, epk: &Epk, constraint: u8, digest: &[u8; 32]) -> Bytes {
        let mut key = self.start(Group::Unique, epk.as_bytes().len() + 2 + 1 + digest.len());
        write_terminated(&mut key, epk.as_bytes());
        key.push(constraint);
        key.extend_from_slice(digest);
        key.into()
    }

    pub(crate) fn expiry(&self, ttl_secs: u32, ts_secs: u64, ordinal: Ordinal) -> Bytes {
        let mut key = self.start(Group::Expiry, 20);
        key.extend_from_slice(&ttl_secs.to_be_bytes());
        key.extend_from_slice(&ts_secs.to_be_bytes());
        write_ordinal(&mut key, ordinal);
        key.into()
    }

    /// The prefix of the expiry keys of an own ttl.
    pub(crate) fn expiry_of(&self, ttl_secs: u32) -> Bytes {
        let mut key = self.start(Group::Expiry, 4);
        key.extend_from_slice(&ttl_secs.to_be_bytes());
        key.into()
    }

    pub(crate) fn log(&self, lsn: Lsn, ordinal: Ordinal) -> Bytes {
        let mut key = self.start(Group::Log, 16);
        key.extend_from_slice(&lsn.get().to_be_bytes());
        write_ordinal(&mut key, ordinal);
        key.into()
    }

    /// The prefix of the log keys of a commit.
    pub(crate) fn log_position(&self, lsn: Lsn) -> Bytes {
        let mut key = self.start(Group::Log, 8);
        key.extend_from_slice(&lsn.get().to_be_bytes());
        key.into()
    }

    /// The history from a position on.
    pub(crate) fn history_from(&self, lsn: Lsn) -> Bytes {
        let mut key = self.start(Group::History, 8);
        key.extend_from_slice(&lsn.get().to_be_bytes());
        key.into()
    }

    pub(crate) fn history(&self, at: HistoryPosition) -> Bytes {
        let mut key = self.start(Group::History, 12);
        at.write(&mut key);
        key.into()
    }

    /// The history of a logical partition from a position on.
    pub(crate) fn key_history_from(&self, epk: &Epk, lsn: Lsn) -> Bytes {
        let mut key = self.start(Group::KeyHistory, epk.as_bytes().len() + 10);
        write_terminated(&mut key, epk.as_bytes());
        key.extend_from_slice(&lsn.get().to_be_bytes());
        key.into()
    }

    /// The prefix of the history of a logical partition.
    pub(crate) fn key_histories(&self, epk: &Epk) -> Bytes {
        let mut key = self.start(Group::KeyHistory, epk.as_bytes().len() + 2);
        write_terminated(&mut key, epk.as_bytes());
        key.into()
    }

    pub(crate) fn key_history(&self, epk: &Epk, at: HistoryPosition) -> Bytes {
        let mut key = self.start(Group::KeyHistory, epk.as_bytes().len() + 14);
        write_terminated(&mut key, epk.as_bytes());
        at.write(&mut key);
        key.into()
    }

    pub(crate) fn horizon(&self) -> Bytes {
        self.group(Group::Horizon).into()
    }

    fn start(&self, group: Group, rest: usize) -> Vec<u8> {
        let mut key = Vec::with_capacity(PREFIX_BYTES + 1 + rest);
        key.extend_from_slice(&self.prefix);
        key.push(group as u8);
        key
    }
}

/// The smallest key after `key`.
fn after(key: &[u8]) -> Bytes {
    [key, &[0]].concat().into()
}

/// The prefix shared by all keys of a container.
#[must_use]
pub fn container_prefix(container: ContainerNumber) -> [u8; 4] {
    container.0.to_be_bytes()
}

/// The prefix shared by all keys of a bucket.
#[must_use]
pub fn bucket_prefix(container: ContainerNumber, bucket: BucketNumber) -> [u8; 8] {
    Keys::new(container, bucket).prefix
}

/// Splits a key into container, bucket, group and rest.
pub(crate) fn split(key: &[u8]) -> Option<(ContainerNumber, BucketNumber, Group, &[u8])> {
    let (container, rest) = key.split_first_chunk::<4>()?;
    let (bucket, rest) = rest.split_first_chunk::<4>()?;
    let (tag, rest) = rest.split_first()?;
    let (container, bucket) = (u32::from_be_bytes(*container), u32::from_be_bytes(*bucket));
    Some((ContainerNumber(container), BucketNumber(bucket), Group::from_tag(*tag)?, rest))
}

/// Whether `apply` may read this key later.
pub(crate) fn is_read_by_apply(key: &[u8]) -> bool {
    split(key).is_some_and(|(_, _, group, _)| group.is_read_by_apply())
}

/// The value of an ordinal key: the position and id of the item.
pub(crate) fn item_name(epk: &Epk, id: &str) -> Bytes {
    let mut name = Vec::with_capacity(epk.as_bytes().len() + id.len() + 2);
    write_terminated(&mut name, epk.as_bytes());
    name.extend_from_slice(id.as_bytes());
    name.into()
}

/// The value of a log key.
pub(crate) fn terminated(epk: &Epk) -> Bytes {
    let mut out = Vec::with_capacity(epk.as_bytes().len() + 2);
    write_terminated(&mut out, epk.as_bytes());
    out.into()
}

/// Parses what [`item_name`] made, which is also the rest of an item key.
pub(crate) fn parse_item_name(name: &[u8]) -> Option<(Epk, &str)> {
    let (epk, id) = take_epk(name)?;
    Some((epk, std::str::from_utf8(id).ok()?))
}

/// Reads a terminated EPK; returns it and what follows.
pub(crate) fn take_epk(input: &[u8]) -> Option<(Epk, &[u8])> {
    let (epk, rest) = take_terminated(input)?;
    Some((Epk::from_bytes(&epk).ok()?, rest))
}

/// Splits the eight bytes of an ordinal off the end.
pub(crate) fn parse_trailing_ordinal(rest: &[u8]) -> Option<(&[u8], Ordinal)> {
    let (front, last) = rest.split_last_chunk::<8>()?;
    Some((front, Ordinal::from_u64(u64::from_be_bytes(*last))?))
}

/// A key as readable text, for messages and for operators who inspect a store:
/// `1/0 item 3A5B "id"` is an item in bucket 0 of container 1.
#[must_use]
pub fn describe_key(key: &[u8]) -> String {
    let words = split(key).and_then(|(container, bucket, group, rest)| {
        let rest = describe_rest(group, rest)?;
        Some(format!("{}/{} {rest}", container.0, bucket.0))
    });
    words.unwrap_or_else(|| match ReservedGroup::of(key) {
        Some(group) => format!("key {} ({})", Upper(key), group.noun()),
        None => format!("unknown key {}", Upper(key)),
    })
}

fn describe_rest(group: Group, rest: &[u8]) -> Option<String> {
    Some(match group {
        Group::Head if rest.is_empty() => "head".to_owned(),
        Group::Head => return None,
        Group::Statistics => {
            let (epk, rest) = take_terminated(rest)?;
            rest.is_empty().then(|| format!("statistics {}", describe_epk(&epk)))?
        }
        Group::Item => {
            let (epk, id) = parse_item_name(rest)?;
            format!("item {} {id:?}", describe_epk(epk.as_bytes()))
        }
        Group::Ordinal => format!("ordinal{}", describe_ordinal(rest, b"")?),
        Group::Member => {
            let (epk, rest) = take_terminated(rest)?;
            format!("member {}{}", describe_epk(&epk), describe_ordinal(rest, b"")?)
        }
        Group::Index => {
            let (entry, _) = parse_trailing_ordinal(rest)?;
            format!("index {}{}", describe_entry(entry)?, describe_ordinal(rest, entry)?)
        }
        Group::Unique => {
            let (epk, rest) = take_terminated(rest)?;
            let (constraint, digest) = rest.split_first()?;
            format!("unique {} constraint {constraint} {}", describe_epk(&epk), Upper(digest))
        }
        Group::Expiry => {
            let (ttl, times) = rest.split_first_chunk::<4>()?;
            let (ts, _) = times.split_first_chunk::<8>()?;
            let ordinal = describe_ordinal(times, ts)?;
            format!(
                "expiry ttl {} ts {}{ordinal}",
                u32::from_be_bytes(*ttl),
                u64::from_be_bytes(*ts)
            )
        }
        Group::Log => {
            let (lsn, _) = rest.split_first_chunk::<8>()?;
            format!("log {}{}", u64::from_be_bytes(*lsn), describe_ordinal(rest, lsn)?)
        }
        Group::History => {
            let ([], at) = HistoryPosition::take(rest)? else { return None };
            format!("history {}.{}", at.lsn, at.number)
        }
        Group::KeyHistory => {
            let (epk, rest) = take_terminated(rest)?;
            let ([], at) = HistoryPosition::take(rest)? else { return None };
            format!("key history {} {}.{}", describe_epk(&epk), at.lsn, at.number)
        }
        Group::Horizon if rest.is_empty() => "horizon".to_owned(),
        Group::Horizon => return None,
    })
}

/// The ordinal that follows `front` and ends the key.
fn describe_ordinal(rest: &[u8], front: &[u8]) -> Option<String> {
    let (found, ordinal) = parse_trailing_ordinal(rest)?;
    (found == front).then(|| format!(" @{}", ordinal.as_u64()))
}

/// The bytes of a composite entry do not show where its parts end, so they are shown as
/// they are.
fn describe_entry(entry: &[u8]) -> Option<String> {
    let (path, value) = entry.split_first_chunk::<8>()?;
    let mut rest = value;
    let value = match index::Decoded::read(&mut rest) {
        Ok(decoded) if rest.is_empty() => decoded.to_string(),
        Ok(_) | Err(_) => Upper(value).to_string(),
    };
    Some(format!("path {} = {value}", Upper(path)))
}

/// The one position of containers without a key has no bytes.
fn describe_epk(epk: &[u8]) -> String {
    if epk.is_empty() { "-".to_owned() } else { Upper(epk).to_string() }
}

fn write_ordinal(key: &mut Vec<u8>, ordinal: Ordinal) {
    key.extend_from_slice(&ordinal.as_u64().to_be_bytes());
}

fn write_terminated(key: &mut Vec<u8>, bytes: &[u8]) {
    let mut parts = bytes.split(|byte| *byte == 0);
    key.extend_from_slice(parts.next().unwrap_or_default());
    for part in parts {
        key.extend_from_slice(&[0, 0xFF]);
        key.extend_from_slice(part);
    }
    key.extend_from_slice(&[0, 1]);
}

/// Reads a terminated string; returns it and what follows. One without a zero byte, as most
/// are, need not be copied.
fn take_terminated(input: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let (mut out, mut rest) = (Cow::Borrowed(&[][..]), input);
    loop {
        let (part, [_, mark, after @ ..]) = rest.split_at_checked(zero_at(rest)?)? else {
            return None;
        };
        rest = after;
        if out.is_empty() {
            out = Cow::Borrowed(part);
        } else {
            out.to_mut().extend_from_slice(part);
        }
        match mark {
            0xFF => out.to_mut().push(0),
            0x01 => return Some((out, rest)),
            _ => return None,
        }
    }
}

fn zero_at(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_can_be_read_by_people() {
        let keys = Keys::new(ContainerNumber(1), BucketNumber(2));
        let epk = Epk::from_hex("0A00FF").unwrap();
        let ordinal = Ordinal::from_u64(7).unwrap();
        let described = |key: Bytes| describe_key(&key);
        assert_eq!(described(keys.head()), "1/2 head");
        assert_eq!(described(keys.statistics(&epk)), "1/2 statistics 0A00FF");
        assert_eq!(described(keys.item(&epk, "a\"b")), "1/2 item 0A00FF \"a\\\"b\"");
        assert_eq!(described(keys.ordinal(ordinal)), "1/2 ordinal @7");
        assert_eq!(described(keys.member(&epk, ordinal)), "1/2 member 0A00FF @7");
        assert_eq!(described(keys.log(Lsn::from_u64(9), ordinal)), "1/2 log 9 @7");
        assert_eq!(described(keys.expiry(60, 5, ordinal)), "1/2 expiry ttl 60 ts 5 @7");
        let at = HistoryPosition { lsn: Lsn::from_u64(9), number: 3 };
        assert_eq!(described(keys.history(at)), "1/2 history 9.3");
        assert_eq!(described(keys.key_history(&epk, at)), "1/2 key history 0A00FF 9.3");
        assert_eq!(described(keys.horizon()), "1/2 horizon");
        let mut longer = keys.head().to_vec();
        longer.push(0);
        assert_eq!(describe_key(&longer), "unknown key 00000001000000020100");
        let vector = [&longer[..GROUP_AT], &[0x31, 7]].concat();
        assert_eq!(describe_key(&vector), "key 00000001000000023107 (vector index)");
    }

    #[test]
    fn no_two_groups_have_one_tag() {
        let mut tags: Vec<u8> = Group::ALL.map(|group| group as u8).to_vec();
        tags.extend(ReservedGroup::ALL.map(|group| group as u8));
        let count = tags.len();
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), count);
    }

    fn terminated_bytes(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write_terminated(&mut out, bytes);
        out
    }

    proptest! {
        #[test]
        fn terminated_strings_keep_their_order(
            a in prop::collection::vec(0_u8..4, 0..6), b in prop::collection::vec(0_u8..4, 0..6), tail: [u8; 3],
        ) {
            let with_tail = |bytes: &[u8]| { let mut out = terminated_bytes(bytes); out.extend(tail); out };
            prop_assert_eq!(a.cmp(&b), with_tail(&a).cmp(&with_tail(&b)));
        }

        #[test]
        fn terminated_strings_come_back(bytes: Vec<u8>, tail: Vec<u8>) {
            let mut key = terminated_bytes(&bytes);
            key.extend(&tail);
            prop_assert_eq!(take_terminated(&key), Some((Cow::Owned(bytes), tail.as_slice())));
        }

        #[test]
        fn foreign_keys_never_panic(bytes: Vec<u8>) {
            let _ = split(&bytes);
            let _ = parse_item_name(&bytes);
            let _ = parse_trailing_ordinal(&bytes);
            let _ = describe_key(&bytes);
        }

        #[test]
        fn foreign_rests_never_panic(group in 0..Group::ALL.len(), rest: Vec<u8>) {
            let mut key = Keys::new(ContainerNumber(1), BucketNumber(2)).group(Group::ALL[group]);
            key.extend(&rest);
            let _ = describe_key(&key);
            prop_assert_eq!(split(&key).map(|(.., found)| found), Some(rest.as_slice()));
        }
    }
}
