//! One item that everybody changes at the same time.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[allow(dead_code, reason = "shared between tests, each uses a part")]
mod common {
    pub(crate) mod fixture;
}

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use common::fixture::{self, Backend, Container, EPOCH_MILLIS, Home, json};
use model::limits::Limits;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use model::position::Timestamp;
use partition::{Command, Document, Operation, Partition, Patch, Reader};
use runtime::{Runtime, TaskHandle};
use storage::Outcome;
use storage::local::LocalConfig;

const THREADS: u64 = 64;
const INCREMENTS_EACH: u64 = 25;

/// Commands are applied one after the other, but nobody waits for the disk while
/// holding the partition: many increments of one item share a sync, none is lost.
#[test]
fn a_hot_item_changes_many_times_per_sync() {
    let home = Home::with_config(Backend::Local, LocalConfig::default());
    let setup = Arc::new(Container::keyed("/pk").setup(1));
    let location = setup.definition.partition_key().locate(&PartitionKey::new(["x"])).unwrap();
    let partition = Partition::open(Arc::clone(&setup), Arc::clone(&home.store)).unwrap();
    let partition = Arc::new(Mutex::new(partition));
    let limits = Limits::default();
    let body = Bytes::from(r#"{"id":"counter","pk":"x","n":0}"#);
    let document = Document::parse(body, &limits).unwrap();
    let create =
        Command { location: location.clone(), operations: vec![Operation::Create { document }] };
    assert_eq!(apply(&partition, &create), Outcome::Durable);
    let before = home.store.counters();

    let patch = Patch::parse(&json(r#"[{"op":"incr","path":"/n","value":1}]"#), &limits).unwrap();
    let id = ItemId::parse("counter").unwrap();
    let increment = Operation::Patch { id: id.clone(), patch, if_match: None };
    let increment = Arc::new(Command { location: location.clone(), operations: vec![increment] });
    let threads: Vec<TaskHandle> = (0..THREADS)
        .map(|_| {
            let (partition, increment) = (Arc::clone(&partition), Arc::clone(&increment));
            let body = move || {
                for _ in 0..INCREMENTS_EACH {
                    assert_eq!(apply(&partition, &increment), Outcome::Durable);
                }
            };
            Runtime::real().tasks.spawn("incrementer", Box::new(body)).unwrap()
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());

    let view = home.store.view().unwrap();
    let now = Timestamp::from_millis(EPOCH_MILLIS);
    let item = Reader::new(Arc::clone(&setup)).find(view.as_ref(), now, &location.epk, "counter");
    let total = THREADS * INCREMENTS_EACH;
    let item = item.unwrap().unwrap();
    assert_eq!(item.json().get("n").map(|n| n.text().to_owned()), Some(total.to_string()));
    assert_eq!(item.lsn.get(), total + 1);
    fixture::assert_clean(&setup, home.store.as_ref());
    let syncs = home.store.counters().syncs - before.syncs;
    println!("{total} increments of one item with {syncs} syncs");
    assert!(syncs * 4 < total, "{syncs} syncs for {total} increments");
}

fn apply(partition: &Mutex<Partition>, command: &Command) -> Outcome {
    let application =
        partition.lock().unwrap().apply(Timestamp::from_millis(EPOCH_MILLIS), command);
    assert!(application.result.is_ok(), "{:?}", application.result);
    application.ticket.wait()
}
