//! Version 1 is written here by hand: nothing else writes it any more.

use std::collections::BTreeMap;
use std::sync::Arc;

use index::IndexPlan;
use model::epk::EpkRange;
use model::json;
use model::limits::{Growth, Limits};
use model::policy::ContainerDefinition;
use model::rid::{ContainerRid, DatabaseRid, ItemRid};
use storage::{CommitStatus, Store, memory};

use super::*;
use crate::check::check_bucket;

const ITEMS: u64 = 20;

const ORDINALS: std::ops::Range<u64> = 1..100;

fn config() -> PartitionConfig {
    let definition = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},
        "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/n"]}]},"defaultTtl":-1}"#;
    let definition = json::parse(definition.as_bytes()).unwrap();
    let definition = Arc::new(ContainerDefinition::parse(&definition).unwrap());
    let plan = Arc::new(IndexPlan::compile(definition.indexing(), 7));
    PartitionConfig {
        container: ContainerNumber(1),
        container_rid: ContainerRid::new(DatabaseRid::new(1).unwrap(), 1).unwrap(),
        definition,
        policy_version: 0,
        plans: BTreeMap::from([(0, plan)]),
        buckets: vec![Bucket { number: BucketNumber(0), range: EpkRange::full() }],
        moves: Vec::new(),
        lsn_floor: Lsn::ZERO,
        ordinal_blocks: Vec::from([ORDINALS]),
        growth: Growth::Unlimited,
        limits: Arc::new(Limits::default()),
    }
}

/// An item as version 1 stored it, and its key.
fn old_item(config: &PartitionConfig, number: u64) -> (Bytes, Item) {
    let (id, key) = (format!("item {number}"), format!("key {}", number % 3));
    let own = format!(r#""id":"{id}","pk":"{key}","n":{number},"in":{{"_ts":1}}"#);
    let definition = config.definition.partition_key();
    let object = format!("{{{own}}}");
    let raw = json::parse_raw(object.as_bytes()).unwrap();
    let epk = definition.locate(&definition.extract(raw).unwrap()).unwrap();
    let prefix = number * 7_919 % (1 << 20);
    let mut item = Item {
        lsn: Lsn::from_u64(100 + number),
        ordinal: Ordinal::from_u64(prefix << NUMBER_BITS | number).unwrap(),
        ts: Timestamp::from_millis(1_000_000 + number),
        step: 3,
        own_ttl: None,
        policy_version: 0,
        text: Bytes::new(),
    };
    let rid = ItemRid::new(config.container_rid, item.ordinal);
    let (etag, ts) = (item.etag(), item.ts.secs());
    item.text = format!(
        r#"{{{own},"_rid":"{rid}","_self":"x","_etag":{},"_attachments":"attachments/","_ts":{ts}}}"#,
        json::Value::from(etag.to_string())
    )
    .into();
    (config.keys_of(BucketNumber(0)).item(&epk, &id), item)
}

fn submit(store: &dyn Store, batch: WriteBatch) {
    assert_eq!(store.write_session().submit(batch).wait(), CommitStatus::Durable);
}

fn old_store(config: &PartitionConfig, items_in_head: u64) -> Arc<dyn Store> {
    let (store, mut batch, mut bytes) = (memory::create(), WriteBatch::new(), 0);
    for number in 1..=ITEMS {
        let (key, item) = old_item(config, number);
        bytes += item.text.len() as u64;
        batch.put(key, item.encode());
    }
    let (lsn, ts_millis, next_number) = (500, 2_000_000, 60);
    let head = Head { lsn, ts_millis, next_number, items: items_in_head, bytes };
    batch.put(config.keys_of(BucketNumber(0)).head(), head.encode());
    // Derived data of the old version is not read.
    batch
        .put(config.keys_of(BucketNumber(0)).index(b"whatever", Ordinal::from_u64(1).unwrap()), "");
    submit(store.as_ref(), batch);
    store
}

fn carried(old: &dyn Store, chunk: usize) -> Result<Arc<dyn Store>, PartitionError> {
    carried_from((old, OldItems::Version1), chunk)
}

/// Carries everything over in chunks of `chunk` items, each with a new look at the progress.
fn carried_from(
    (old, items): (&dyn Store, OldItems),
    chunk: usize,
) -> Result<Arc<dyn Store>, PartitionError> {
    let (config, new, old) = (config(), memory::create(), old.view().unwrap());
    let bucket = &config.buckets[0];
    let mut work = BucketUpgrade::new(&config, bucket, (old.as_ref(), items));
    work.chunk = ScanLimit::rows(chunk);
    loop {
        let view = new.view().unwrap();
        let progress = UpgradeProgress::stored(view.as_ref())?.unwrap_or_default();
        let step = work.next(view, &progress)?;
        submit(new.as_ref(), step.batch);
        if step.is_last {
            assert_eq!(step.progress.items_total, ITEMS);
            submit(new.as_ref(), UpgradeProgress::end());
            return Ok(new);
        }
    }
}

fn rows(store: &dyn Store) -> Vec<(Bytes, Bytes)> {
    let limit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
    let view = store.view().unwrap();
    view.scan(&KeyRange::all(), Direction::Forward, limit).unwrap().rows
}

#[test]
fn what_is_carried_over_is_consistent_and_the_same_in_any_chunks() {
    let config = config();
    let old = old_store(&config, ITEMS);
    let new = carried(old.as_ref(), 100).unwrap();
    let view = new.view().unwrap();
    let report = check_bucket(&config, &config.buckets[0], view.as_ref()).unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!(report.items, ITEMS);
    for number in 1..=ITEMS {
        let (key, before) = old_item(&config, number);
        let after = Item::decode(&view.get(&key).unwrap().unwrap()).unwrap();
        assert_eq!((after.ordinal.as_u64(), after.etag()), (number, before.etag()));
        let own = format!(
            r#"{{"id":"item {number}","pk":"key {}","n":{number},"in":{{"_ts":1}}}}"#,
            number % 3
        );
        assert_eq!(after.text, own);
    }
    let head = head(view.as_ref(), &config.keys_of(BucketNumber(0))).unwrap().unwrap();
    assert_eq!((head.lsn, head.ts_millis, head.next_number), (500, 2_000_000, 60));
    for chunk in [1, 3, 7] {
        assert_eq!(rows(carried(old.as_ref(), chunk).unwrap().as_ref()), rows(new.as_ref()));
    }
}

/// From version 2, whose items are those of this one.
#[test]
fn items_that_are_as_now_stay_as_they_are() {
    let old = carried(old_store(&config(), ITEMS).as_ref(), 100).unwrap();
    for chunk in [1, 7, 100] {
        let new = carried_from((old.as_ref(), OldItems::AsNow), chunk).unwrap();
        assert_eq!(rows(new.as_ref()), rows(old.as_ref()));
    }
}

#[test]
fn what_the_old_head_does_not_count_is_an_error() {
    let old = old_store(&config(), ITEMS + 1);
    let refused = carried(old.as_ref(), 5).map(drop);
    assert!(matches!(refused, Err(PartitionError::Miscounted { .. })), "{refused:?}");
}

#[test]
fn a_bucket_without_anything_needs_no_batch() {
    let (config, empty) = (config(), memory::create());
    let view = empty.view().unwrap();
    let work = BucketUpgrade::new(&config, &config.buckets[0], (view.as_ref(), OldItems::AsNow));
    let step = work.next(empty.view().unwrap(), &UpgradeProgress::default()).unwrap();
    assert!(step.is_last && step.batch.is_empty());
}
