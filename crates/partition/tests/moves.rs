//! Whatever writes items while their bucket moves must write them to the move target too
//! (dual write).
//!
//! Each writer of the partition runs once while nothing, some or all of the bucket has
//! been copied. The old bucket and the new ones must agree afterwards, key by key.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[allow(dead_code, reason = "shared between tests, each uses a part")]
mod common {
    pub(crate) mod fixture;
}

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use common::fixture::{self, Container, EPOCH_MILLIS, json};
use model::epk::Epk;
use model::epk::EpkRange;
use model::limits::Limits;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use model::position::Timestamp;
use partition::{
    Bucket, BucketNumber, Command, Copied, Document, Move, Operation, Partition, PartitionConfig,
    Patch, Position, Reader,
};
use storage::{CommitStatus, Store, memory};

/// Bytes before the group tag of a key, and two tags (docs/formats/partition.md).
const PREFIX_BYTES: usize = 8;
const HEAD: u8 = 0x01;
const STATISTICS: u8 = 0x02;

const SOURCE: BucketNumber = BucketNumber(0);

/// When the items are written, and when those with a ttl have expired.
const WRITTEN: u64 = EPOCH_MILLIS + 60_000;
const LATER: u64 = WRITTEN + 60_000;

/// A function that writes items, and its name.
type Writer = (&'static str, fn(&mut World));

const WRITERS: [Writer; 12] = [
    ("create", |world| world.apply("x", [create(r#"{"id":"new","pk":"x","u":9,"ttl":70}"#)])),
    ("upsert", |world| world.apply("x", [upsert(r#"{"id":"a","pk":"x","u":9}"#)])),
    ("replace", |world| world.apply("y", [replace("c", r#"{"id":"c","pk":"y","u":5,"m":[1]}"#)])),
    ("another id", |world| world.apply("x", [replace("b", r#"{"id":"z","pk":"x","u":2,"n":2}"#)])),
    ("patch", |world| world.apply("x", [patch("a", r#"[{"op":"incr","path":"/n","value":3}]"#)])),
    ("delete", |world| world.apply("y", [delete("c")])),
    ("batch", |world| {
        let again = replace("d", r#"{"id":"d","pk":"x","u":4,"n":5}"#);
        world.apply("x", [delete("a"), create(r#"{"id":"d","pk":"x","u":1}"#), again]);
    }),
    ("finding an expired item", |world| {
        world.apply("x", [create(r#"{"id":"old","pk":"x","u":7}"#)]);
    }),
    ("taking an expired item's unique value", |world| {
        world.apply("x", [create(r#"{"id":"new","pk":"x","u":3}"#)]);
    }),
    ("expire", |world| {
        let names = world.names();
        let expired = world.partition.expire(Timestamp::from_millis(LATER), &names);
        world.wait(expired.unwrap());
    }),
    ("reindex", |world| {
        let mut container = container();
        container.indexing =
            Some(json(r#"{"includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}"#));
        world.reconfigure(container.reconfigured(&world.config));
        let names = world.names();
        let reindexed = world.partition.reindex(&names);
        world.wait(reindexed.unwrap());
    }),
    ("restamp", |world| {
        let names = world.names();
        let restamped = world.partition.restamp(Timestamp::from_millis(EPOCH_MILLIS), &names);
        world.wait(restamped.unwrap());
    }),
];

#[test]
fn every_writer_writes_to_the_move_target() {
    for (name, write) in WRITERS {
        for copied in [0, 2, usize::MAX] {
            println!("{name}, when {copied} items have been copied");
            let mut world = World::new();
            world.begin_move();
            world.copy(copied);
            let before = fixture::dump(world.store.as_ref());
            write(&mut world);
            assert_ne!(before, fixture::dump(world.store.as_ref()), "{name} wrote nothing");
            world.assert_target_repeats_source();
            if copied == usize::MAX {
                assert_eq!(world.rows(true), world.rows(false), "{name} missed a bucket");
            }
            world.copy(usize::MAX);
            assert_eq!(world.rows(true), world.rows(false), "{name} left what copying misses");
            world.end_move();
        }
    }
}

/// Copying what is there already writes nothing, and never anything to the old bucket.
#[test]
fn copies_are_made_once() {
    let mut world = World::new();
    world.begin_move();
    let source = world.bucket_rows(|bucket| bucket == SOURCE);
    let (items, _) = world.copy(usize::MAX);
    assert_eq!(items, 4);
    assert_eq!(world.bucket_rows(|bucket| bucket == SOURCE), source);
    assert_eq!(world.copy(usize::MAX), (0, 0));
}

/// A partition of one bucket with the keys `x` and `y`.
struct World {
    config: Arc<PartitionConfig>,
    store: Arc<dyn Store>,
    partition: Partition,
}

fn container() -> Container {
    let mut container = Container::keyed("/pk");
    container.unique = vec![vec!["/u".to_owned()]];
    container.default_ttl = Some(-1);
    container
}

impl World {
    fn new() -> World {
        let (config, store) = (Arc::new(container().config(1)), memory::create());
        let partition = Partition::open(Arc::clone(&config), Arc::clone(&store)).unwrap();
        let mut world = World { config, store, partition };
        for (key, text) in [
            ("x", r#"{"id":"a","pk":"x","u":1,"n":1}"#),
            ("x", r#"{"id":"b","pk":"x","u":2,"n":2}"#),
            ("x", r#"{"id":"old","pk":"x","u":3,"ttl":10}"#),
            ("y", r#"{"id":"c","pk":"y","u":1}"#),
        ] {
            world.apply_at(WRITTEN, key, vec![create(text)]);
        }
        world
    }

    fn locate(&self, key: &str) -> Epk {
        self.config.definition.partition_key().locate(&PartitionKey::new([key])).unwrap()
    }

    fn apply(&mut self, key: &str, operations: impl Into<Vec<Operation>>) {
        self.apply_at(LATER, key, operations.into());
    }

    fn apply_at(&mut self, millis: u64, key: &str, operations: Vec<Operation>) {
        let command = Command { position: self.locate(key), operations };
        let application = self.partition.apply(Timestamp::from_millis(millis), &command);
        application.result.unwrap();
        assert_eq!(application.ticket.wait(), CommitStatus::Durable);
    }

    fn reconfigure(&mut self, config: PartitionConfig) {
        self.config = Arc::new(config);
        self.partition.reconfigure(Arc::clone(&self.config));
    }

    /// Cuts the bucket between the two keys.
    fn begin_move(&mut self) {
        let cut = self.locate("x").max(self.locate("y"));
        let EpkRange { min, max } = self.config.buckets[0].range.clone();
        let low = EpkRange { min, max: cut.clone() };
        let into = vec![
            Bucket { number: BucketNumber(1), range: low },
            Bucket { number: BucketNumber(2), range: EpkRange { min: cut, max } },
        ];
        let moves = vec![Move { from: SOURCE, into }];
        self.reconfigure(PartitionConfig { moves, ..self.config.as_ref().clone() });
    }

    fn names(&self) -> Vec<Position> {
        let (view, reader) = (self.store.view().unwrap(), Reader::new(Arc::clone(&self.config)));
        reader.names(view.as_ref(), SOURCE, None, usize::MAX).unwrap()
    }

    /// Copies the first items; returns how many were written, and their bytes.
    fn copy(&mut self, max: usize) -> (u64, u64) {
        let names: Vec<Position> = self.names().into_iter().take(max).collect();
        let copied = self.partition.copy(&names).unwrap();
        let written = (copied.items, copied.bytes);
        self.wait(copied);
        written
    }

    fn wait(&self, copied: Copied) {
        assert_eq!(copied.ticket.wait(), CommitStatus::Durable);
        fixture::assert_clean(&self.config, self.store.as_ref());
    }

    fn bucket_rows(&self, of: impl Fn(BucketNumber) -> bool) -> Vec<(Bytes, Bytes)> {
        let is_of = |key: &Bytes| {
            of(BucketNumber(u32::from_be_bytes(key[4..PREFIX_BYTES].try_into().unwrap())))
        };
        let rows = fixture::dump(self.store.as_ref()).into_iter();
        rows.filter(|(key, _)| is_of(key)).collect()
    }

    /// What the moving bucket or its targets hold, without the buckets' numbers and heads.
    fn rows(&self, of_source: bool) -> BTreeSet<(Bytes, Bytes)> {
        let rows = self.bucket_rows(|bucket| (bucket == SOURCE) == of_source);
        let rows = rows.into_iter().map(|(key, value)| (key.slice(PREFIX_BYTES..), value));
        rows.filter(|(key, _)| key[0] != HEAD).collect()
    }

    /// Nothing is in a target that is not in the moving bucket as well, in the same version.
    fn assert_target_repeats_source(&self) {
        fixture::assert_clean(&self.config, self.store.as_ref());
        let source = self.rows(true);
        for (key, value) in self.rows(false) {
            // Sizes differ until everything has been copied; the check above has counted
            // them.
            let is_size = key[0] == STATISTICS;
            assert!(is_size || source.contains(&(key.clone(), value)), "stale: {key:?}");
        }
    }

    fn end_move(&mut self) {
        let complete = self.partition.complete_move(SOURCE).unwrap();
        assert_eq!(complete.expect("all was copied").wait(), CommitStatus::Durable);
        fixture::assert_clean(&self.config, self.store.as_ref());
    }
}

fn document(text: &'static str) -> Document {
    Document::parse(Bytes::from(text), &Limits::default()).unwrap()
}

fn create(text: &'static str) -> Operation {
    Operation::Create { document: document(text) }
}

fn upsert(text: &'static str) -> Operation {
    Operation::Upsert { document: document(text), if_match: None }
}

fn replace(id: &str, text: &'static str) -> Operation {
    let id = ItemId::parse(id).unwrap();
    Operation::Replace { id, document: document(text), if_match: None }
}

fn delete(id: &str) -> Operation {
    Operation::Delete { id: ItemId::parse(id).unwrap(), if_match: None }
}

fn patch(id: &str, operations: &str) -> Operation {
    let patch = Patch::parse(&json(operations), &Limits::default()).unwrap();
    Operation::Patch { id: ItemId::parse(id).unwrap(), patch, if_match: None }
}
