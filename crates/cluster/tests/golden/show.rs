//! Maps and stores as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cluster::{ContainerMap, PartitionRecord};
use model::epk::EpkRange;
use partition::{Bucket, ContainerNumber, Head, container_prefix, describe_key};
use storage::{Direction, KeyRange, ScanLimit, Store};

/// Digits of a bound that distinguish it from others.
const DIGITS: usize = 4;

/// A map as it is stored.
pub(crate) fn map(map: &ContainerMap) -> String {
    let mut output =
        format!("change {}{}\n", map.change(), if map.merged() { ", merged" } else { "" });
    for record in map.ranges() {
        let buckets = map.buckets_of(record);
        let buckets: Vec<_> = buckets.iter().map(|bucket| bucket.number.0.to_string()).collect();
        let buckets = buckets.join(" ");
        writeln!(output, "partition {}, buckets {buckets}", partition(record)).unwrap();
    }
    for one in map.moves() {
        let into: Vec<String> = one.into.iter().map(bucket).collect();
        writeln!(output, "bucket {} moves into {}", one.from.0, into.join(" and ")).unwrap();
    }
    output
}

fn partition(record: &PartitionRecord) -> String {
    let mut text = format!("{} {}", record.id, range(&record.range));
    if !record.parents.is_empty() {
        let parents: Vec<_> = record.parents.iter().map(ToString::to_string).collect();
        write!(text, " of {}", parents.join(" ")).unwrap();
    }
    let numbers: Vec<_> = record
        .ordinal_blocks
        .iter()
        .map(|block| format!("{}..{}", block.start, block.end))
        .collect();
    write!(text, ", floor {}, numbers {}", record.lsn_floor.get(), numbers.join(" ")).unwrap();
    text
}

fn bucket(bucket: &Bucket) -> String {
    format!("{} {}", bucket.number.0, range(&bucket.range))
}

fn range(range: &EpkRange) -> String {
    let bound = |epk: String| epk.chars().take(DIGITS).collect::<String>();
    format!("[{}, {})", bound(range.min.to_string()), bound(range.max.to_string()))
}

/// The partitions in force, with what they hold.
pub(crate) fn layout(map: &ContainerMap, heads: &[Head]) -> String {
    let mut output = String::new();
    for (record, head) in map.ranges().iter().zip(heads) {
        let Head { lsn, items, bytes, .. } = head;
        let id = record.id;
        writeln!(output, "partition {id}: lsn {lsn}, {items} items, {bytes} bytes").unwrap();
    }
    output
}

/// What is stored of a container, by bucket.
pub(crate) fn disk(store: &dyn Store, container: ContainerNumber) -> String {
    let mut buckets: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    let mut rest = Some(KeyRange::prefix(&container_prefix(container)));
    let view = store.view().unwrap();
    while let Some(range) = rest.take() {
        let chunk = view.scan(&range, Direction::Forward, ScanLimit::default()).unwrap();
        for (key, _) in &chunk.rows {
            let words = describe_key(key);
            let (place, what) = words.split_once(' ').unwrap();
            let (_, bucket) = place.split_once('/').unwrap();
            let (keys, items) = buckets.entry(bucket.parse().unwrap()).or_default();
            *keys += 1;
            *items += usize::from(what.starts_with("item "));
        }
        rest = chunk.rest;
    }
    let mut output = String::new();
    for (bucket, (keys, items)) in buckets {
        writeln!(output, "bucket {bucket}: {items} items, {keys} keys").unwrap();
    }
    output
}
