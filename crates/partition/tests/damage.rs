//! For everything that `check` promises to notice: one inconsistency in an otherwise sound
//! bucket, and the finding that reports it.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[allow(dead_code, reason = "shared between tests, each uses a part")]
mod common {
    pub(crate) mod fixture;
}

use std::sync::Arc;

use bytes::Bytes;
use common::fixture::{self, Container, EPOCH_MILLIS};
use model::limits::Limits;
use model::partition_key::PartitionKey;
use model::position::Timestamp;
use partition::{Command, Document, Operation, Partition, PartitionConfig, describe_key};
use storage::{CommitStatus, Store, WriteBatch, memory};

/// Group tags, and bytes before them in a key (docs/formats/partition.md).
const PREFIX_BYTES: usize = 8;
const HEAD: u8 = 0x01;
const STATISTICS: u8 = 0x02;
const ITEM: u8 = 0x10;
const ORDINAL: u8 = 0x20;
const INDEX: u8 = 0x30;
const UNIQUE: u8 = 0x40;
const EXPIRY: u8 = 0x50;
const LOG: u8 = 0x60;

/// A container with two items of one key and one of another, in different buckets.
struct Bench {
    config: Arc<PartitionConfig>,
    store: Arc<dyn Store>,
}

impl Bench {
    fn new() -> Bench {
        let mut container = Container::keyed("/pk");
        container.unique = vec![vec!["/u".to_owned()]];
        container.default_ttl = Some(-1);
        let config = Arc::new(container.config(3));
        let store = memory::create();
        let mut partition = Partition::open(Arc::clone(&config), Arc::clone(&store)).unwrap();
        for text in [
            r#"{"id":"one","pk":"a","u":1,"ttl":60}"#,
            r#"{"id":"two","pk":"a","u":2}"#,
            r#"{"id":"three","pk":"b","u":1}"#,
        ] {
            let document = Document::parse(Bytes::from(text), &Limits::default()).unwrap();
            let key = config.definition.partition_key().extract(document.json()).unwrap();
            let position = config.definition.partition_key().locate(&key).unwrap();
            let command = Command { position, operations: vec![Operation::Create { document }] };
            let application = partition.apply(Timestamp::from_millis(EPOCH_MILLIS), &command);
            application.result.unwrap();
            assert_eq!(application.ticket.wait(), CommitStatus::Durable);
        }
        fixture::assert_clean(&config, store.as_ref());
        Bench { config, store }
    }

    /// The keys of a group that a text describes, in order.
    fn keys(&self, group: u8, words: &str) -> Vec<(Bytes, Bytes)> {
        let rows = fixture::dump(self.store.as_ref()).into_iter();
        let fits = |key: &Bytes| key[PREFIX_BYTES] == group && describe_key(key).contains(words);
        rows.filter(|(key, _)| fits(key)).collect()
    }

    fn first(&self, group: u8, words: &str) -> (Bytes, Bytes) {
        self.keys(group, words).into_iter().next().unwrap()
    }

    fn write(&self, key: &[u8], value: Option<&[u8]>) {
        let mut batch = WriteBatch::new();
        match value {
            Some(value) => batch.put(key.to_vec(), value.to_vec()),
            None => batch.delete(key.to_vec()),
        }
        assert_eq!(self.store.write_session().submit(batch).wait(), CommitStatus::Durable);
    }

    fn findings(&self) -> Vec<String> {
        let report = fixture::check(&self.config, self.store.as_ref());
        assert_eq!(report.is_clean(), report.findings.is_empty());
        report.findings.iter().map(ToString::to_string).collect()
    }

    /// Exactly one finding, and it contains `words`.
    #[track_caller]
    fn assert_found(&self, words: &str) {
        let findings = self.findings();
        assert!(findings.len() == 1 && findings[0].contains(words), "{words}? {findings:#?}");
    }

    /// Several findings, and one contains `words`.
    #[track_caller]
    fn assert_among(&self, words: &str) {
        let findings = self.findings();
        assert!(findings.iter().any(|finding| finding.contains(words)), "{words}? {findings:#?}");
    }
}

fn flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1;
    bytes
}

#[test]
fn what_is_missing_is_named() {
    for (group, words, finding) in [
        (ORDINAL, "", "ordinal of item"),
        (INDEX, "", "index entry of item"),
        (UNIQUE, "", "unique value of item"),
        (EXPIRY, "", "expiry entry of item \"one\" is missing"),
        (LOG, "log 2 ", "log entry of item \"two\" is missing"),
        (STATISTICS, "", "statistics of key"),
    ] {
        let bench = Bench::new();
        bench.write(&bench.first(group, words).0, None);
        bench.assert_found(finding);
        bench.assert_found("missing");
    }
}

#[test]
fn every_single_key_is_missed() {
    let count = fixture::dump(Bench::new().store.as_ref()).len();
    for at in 0..count {
        let bench = Bench::new();
        let (key, _) = fixture::dump(bench.store.as_ref()).swap_remove(at);
        bench.write(&key, None);
        assert!(!bench.findings().is_empty(), "{} is not missed", describe_key(&key));
    }
}

#[test]
fn every_damaged_byte_of_a_value_is_noticed() {
    for (key, value) in fixture::dump(Bench::new().store.as_ref()) {
        for at in 0..value.len() {
            let bench = Bench::new();
            bench.write(&key, Some(&flipped(&value, at)));
            assert!(!bench.findings().is_empty(), "{} at {at}", describe_key(&key));
        }
    }
}

#[test]
fn a_wrong_value_is_named() {
    let bench = Bench::new();
    let (key, value) = bench.first(ITEM, "\"two\"");
    bench.write(&key, Some(&flipped(&value, value.len() - 3)));
    bench.assert_among("item \"two\": checksum of a item record does not match");

    let bench = Bench::new();
    let (key, value) = bench.first(ORDINAL, "");
    bench.write(&key, Some(&flipped(&value, value.len() - 1)));
    bench.assert_among("says something else");

    let bench = Bench::new();
    let (key, value) = bench.first(HEAD, "");
    bench.write(&key, Some(&flipped(&value, 12)));
    bench.assert_found("head: checksum");
}

/// Records that are sound in themselves, but of another time or place.
#[test]
fn old_statistics_and_heads_are_noticed() {
    let bench = Bench::new();
    let (of_one, of_two) =
        (bench.keys(STATISTICS, "")[0].clone(), bench.keys(STATISTICS, "")[1].clone());
    bench.write(&of_one.0, Some(&of_two.1));
    bench.assert_found("statistics of key");
    bench.assert_found("counted");

    let bench = Bench::new();
    let heads = bench.keys(HEAD, "");
    bench.write(&heads[0].0, Some(&heads[1].1));
    bench.assert_among("head says");

    let bench = Bench::new();
    bench.write(&bench.first(HEAD, "").0, None);
    bench.assert_among("head says 0 items");
    bench.assert_among("head says LSN 0");
}

#[test]
fn what_belongs_to_no_item_is_named() {
    // The ordinal of an item that never was, where an ordinal ends the key.
    for (group, words) in [(INDEX, "index"), (LOG, "log"), (EXPIRY, "expiry"), (ORDINAL, "ordinal")]
    {
        let bench = Bench::new();
        let (key, value) = bench.first(group, "");
        let stray = flipped(&key, key.len() - 3);
        bench.write(&stray, Some(&value));
        bench.assert_found(words);
        bench.assert_found("belongs to no item");
    }
    // An entry of a real item that its text does not require.
    let bench = Bench::new();
    let (key, value) = bench.first(INDEX, "");
    bench.write(&flipped(&key, PREFIX_BYTES + 3), Some(&value));
    bench.assert_found("belongs to no item");

    let bench = Bench::new();
    let (key, value) = bench.first(UNIQUE, "");
    bench.write(&flipped(&key, key.len() - 1), Some(&value));
    bench.assert_found("unique");

    let bench = Bench::new();
    let (key, value) = bench.first(STATISTICS, "");
    bench.write(&flipped(&key, PREFIX_BYTES + 5), Some(&value));
    bench.assert_found("belongs to no item");
}

/// One missing and one too many do not make up for each other.
#[test]
fn counts_that_happen_to_agree_hide_nothing() {
    let bench = Bench::new();
    let (key, value) = bench.first(LOG, "");
    bench.write(&key, None);
    bench.write(&flipped(&key, PREFIX_BYTES + 3), Some(&value));
    bench.assert_among("is missing");
    bench.assert_among("belongs to no item");
    assert_eq!(bench.findings().len(), 2);
}

#[test]
fn an_item_in_the_wrong_place_is_named() {
    // All keys of one bucket moved to another.
    let bench = Bench::new();
    let (item, _) = bench.first(ITEM, "\"three\"");
    let other = bench.config.buckets.iter().map(|bucket| bucket.number.0.to_be_bytes());
    let other = other.into_iter().find(|number| *number != item[4..8]).unwrap();
    let taken = bench.keys(HEAD, "").iter().any(|(key, _)| key[4..8] == other);
    assert!(!taken || bench.config.buckets.len() > 2, "needs an empty bucket");
    for (key, value) in fixture::dump(bench.store.as_ref()) {
        if key[4..8] == item[4..8] {
            let mut moved = key.to_vec();
            moved[4..8].copy_from_slice(&other);
            bench.write(&key, None);
            bench.write(&moved, Some(&value));
        }
    }
    bench.assert_among("is outside its bucket");

    // The record of one item under the id of another.
    let bench = Bench::new();
    let (one, two) = (bench.first(ITEM, "\"one\""), bench.first(ITEM, "\"two\""));
    bench.write(&one.0, Some(&two.1));
    bench.assert_among("item \"one\" has another id in its text");

    // The record of an item under another key.
    let bench = Bench::new();
    let (_, value) = bench.first(ITEM, "\"three\"");
    let key = bench.config.definition.partition_key().locate(&PartitionKey::new(["a"])).unwrap();
    let (beside, _) = bench.first(ITEM, "\"two\"");
    let mut place = beside[..beside.len() - "two".len()].to_vec();
    place.extend_from_slice(b"three");
    bench.write(&place, Some(&value));
    bench.assert_among("item \"three\" is not where its partition key belongs");
    assert!(describe_key(&place).contains(&key.to_string()));
}

#[test]
fn keys_of_no_group_are_named() {
    let bench = Bench::new();
    let (head, _) = bench.first(HEAD, "");
    for rest in [&[0x00][..], &[HEAD, 7], &[0x04, 1, 2], &[0x11], &[0x63, 0xFF], &[0x64], &[0xFF]] {
        let stray = [&head[..PREFIX_BYTES], rest].concat();
        bench.write(&stray, Some(b"?"));
        bench.assert_found("belongs to no group");
        bench.write(&stray, None);
    }
    let malformed = [&head[..PREFIX_BYTES], &[ITEM, 1, 0, 7]].concat();
    bench.write(&malformed, Some(b"?"));
    bench.assert_found("is not the key of an item");
}

/// Data of a later version is no damage, and is not taken for nothing either.
#[test]
fn reserved_groups_are_named() {
    let bench = Bench::new();
    let (head, _) = bench.first(HEAD, "");
    for (tag, name) in [
        (0x03, "pending deletion by partition key"),
        (0x31, "vector index"),
        (0x32, "full-text index"),
    ] {
        for rest in [&[tag][..], &[tag, 0], &[tag, 0xFF, 1]] {
            let later = [&head[..PREFIX_BYTES], rest].concat();
            bench.write(&later, Some(b"later"));
            bench.assert_found(name);
            bench.assert_found("is of a group for later versions: use a newer Orrery");
            bench.write(&later, None);
        }
    }
}

/// A report keeps a bounded number of findings, and counts all.
#[test]
fn a_wreck_does_not_fill_the_memory() {
    let bench = Bench::new();
    let (head, _) = bench.first(HEAD, "");
    for number in 0..300_u16 {
        let stray = [&head[..PREFIX_BYTES], &[0x70], &number.to_be_bytes()].concat();
        bench.write(&stray, Some(b""));
    }
    let report = fixture::check(&bench.config, bench.store.as_ref());
    assert_eq!((report.findings.len(), report.findings_count), (100, 300));
}
