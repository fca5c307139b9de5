//! How does the cost of a point request, and of following changes, grow with keys and with
//! partitions?
//!
//! A logical partition is nothing but items with the same key, and a physical one nothing
//! but a row of the map: neither may make finding an item dearer. Measured at rising
//! numbers of distinct keys, and of physical partitions with as many keys in all of them.
//!
//! `ORRERY_BENCH_KEYS` sets the numbers of keys (`10000,100000`). `cargo xtask bench scale`.
#![allow(clippy::unwrap_used, reason = "a bench stops at the first error")]
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

#[path = "lab/container.rs"]
mod lab;

use std::time::Duration;

use lab::{Lab, median};
use model::limits::Limits;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use model::position::{Lsn, Timestamp};
use runtime::{Random, SeededRandom};
use service::{ChangeList, ChangeStart, ItemAction, ItemOperation, ReadRanges, Scope};

const KEYS: &str = "10000,100000";
const PARTITIONS: [u32; 3] = [1, 50, 500];
const PARTITIONED_KEYS: u64 = 50_000;
/// Throughput that each of them is planned with, so that 500 stay below the maximum.
const PARTITION_THROUGHPUT: u32 = 1_000;
const POLICY: &str = r#"{"indexingMode":"consistent"}"#;
/// Documents that are read, each with another key; the median counts.
const READ: u64 = 2_001;
/// Changes in a page.
const CHANGES: usize = 100;
/// Times that a page of changes is read.
const FOLLOWED: u64 = 201;
/// Times that the map is listed.
const LISTED: u64 = 51;

fn main() {
    let keys = std::env::var("ORRERY_BENCH_KEYS").unwrap_or_else(|_| KEYS.to_owned());
    let keys: Vec<u64> = keys.split(',').map(|count| count.trim().parse().unwrap()).collect();
    with_more_keys(&keys);
    with_more_partitions();
}

fn with_more_keys(keys: &[u64]) {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::create(folder.path(), Limits::default(), 400, POLICY);
    let mut stored = 0;
    for count in keys {
        let rate = lab.fill(stored..*count, document);
        stored = *count;
        lab.settle();
        let read = micros(read_often(&lab, *count));
        let [changes, news, since] = follow_often(&lab).map(micros);
        println!(
            "{count:8} keys: {rate:6.0} creates/s, point read {read:7.1} µs, the last {CHANGES} changes {changes:7.1} µs, no news {news:7.1} µs, no news since a time {since:7.1} µs"
        );
    }
    lab.close();
}

fn with_more_partitions() {
    let keys = PARTITIONED_KEYS;
    for partitions in PARTITIONS {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits {
            partition_throughput_max: PARTITION_THROUGHPUT,
            partition_throughput_at_creation: PARTITION_THROUGHPUT,
            ..Limits::default()
        };
        let throughput = partitions * PARTITION_THROUGHPUT;
        let lab = Lab::create(folder.path(), limits, throughput, POLICY);
        let (ranges, listing) = list_often(&lab);
        assert_eq!(ranges, partitions as usize);
        let rate = lab.fill(0..keys, document);
        lab.settle();
        let (read, listing) = (micros(read_often(&lab, keys)), micros(listing));
        println!(
            "{partitions:4} partitions, {keys} keys: {rate:6.0} creates/s, point read {read:7.1} µs, the map {listing:7.1} µs"
        );
        lab.close();
    }
}

fn read_often(lab: &Lab, keys: u64) -> Duration {
    let random = SeededRandom::new(keys);
    let read = |_| {
        let number = random.next_u64() % keys;
        let key = Some(PartitionKey::new([key(number).as_str()]));
        let id = ItemId::parse("item").unwrap();
        let action = ItemAction::new(key, ItemOperation::Read { id, if_none_match: None });
        let (item, time) = lab.timed(|| lab.ask(action));
        assert!(item.text.is_some(), "{number} is there");
        time
    };
    median((0..READ).map(read).collect())
}

/// A page of changes at the end of the feed; then the cost of learning that there are none
/// after it, and none since a time.
fn follow_often(lab: &Lab) -> [Duration; 3] {
    let follow = |start: ChangeStart, since: Option<Timestamp>| {
        let (scope, session) = (Scope::default(), None);
        let list = ChangeList { scope, session, start, since, items_max: CHANGES };
        let (feed, time) = lab.timed(|| lab.ask(list));
        (feed.changes.len(), feed.through, time)
    };
    let (_, end, _) = follow(ChangeStart::Now, None);
    let last = ChangeStart::After(Lsn::from_u64(end.get() - CHANGES as u64));
    let never = Some(Timestamp::from_millis(u64::MAX));
    let pages = [
        (last, None, CHANGES),
        (ChangeStart::After(end), None, 0),
        (ChangeStart::After(Lsn::ZERO), never, 0),
    ];
    pages.map(|(start, since, expected)| {
        let page = |_| {
            let (found, _, time) = follow(start, since);
            assert_eq!(found, expected, "changes");
            time
        };
        median((0..FOLLOWED).map(page).collect())
    })
}

fn list_often(lab: &Lab) -> (usize, Duration) {
    let mut ranges = 0;
    let list = |_| {
        let (listed, time) = lab.timed(|| lab.ask(ReadRanges));
        ranges = listed.ranges.len();
        time
    };
    let times = (0..LISTED).map(list).collect();
    (ranges, median(times))
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn key(number: u64) -> String {
    format!("key{number}")
}

fn document(number: u64) -> String {
    format!(r#"{{"id":"item","pk":"{}","number":{number},"text":"a short one"}}"#, key(number))
}
