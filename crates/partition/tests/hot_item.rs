//! One item that many clients change at the same time.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[allow(dead_code, reason = "shared between tests, each uses a part")]
mod common {
    pub(crate) mod fixture;
    pub(crate) mod gate;
}

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use common::fixture::{self, Backend, Container, EPOCH_MILLIS, Home, json};
use common::gate::Gate;
use model::epk::Epk;
use model::limits::Limits;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use model::position::Timestamp;
use partition::{
    Application, Command, Document, Operation, Partition, PartitionConfig, Patch, Reader,
};
use runtime::{Runtime, TaskHandle};
use storage::local::LocalConfig;
use storage::{CommitStatus, Store, Ticket};

const THREADS: u64 = 64;
const INCREMENTS_EACH: u64 = 25;
const INCREMENTS: u64 = THREADS * INCREMENTS_EACH;

/// A counter in a container of its own.
struct Counter {
    config: Arc<PartitionConfig>,
    partition: Partition,
    increment: Command,
}

impl Counter {
    fn create(store: Arc<dyn Store>) -> Counter {
        let config = Arc::new(Container::keyed("/pk").config(1));
        let limits = Limits::default();
        let body = Bytes::from(r#"{"id":"counter","pk":"x","n":0}"#);
        let document = Document::parse(body, &limits).unwrap();
        let request = json(r#"[{"op":"incr","path":"/n","value":1}]"#);
        let patch = Patch::parse(&request, &limits).unwrap();
        let id = ItemId::parse("counter").unwrap();
        let command =
            |operation| Command { position: position(&config), operations: vec![operation] };
        let create = command(Operation::Create { document });
        let increment = command(Operation::Patch { id, patch, if_match: None });
        let mut partition = Partition::open(Arc::clone(&config), store).unwrap();
        assert_eq!(apply(&mut partition, &create).ticket.wait(), CommitStatus::Durable);
        Counter { config, partition, increment }
    }
}

fn position(config: &PartitionConfig) -> Epk {
    config.definition.partition_key().locate(&PartitionKey::new(["x"])).unwrap()
}

fn apply(partition: &mut Partition, command: &Command) -> Application {
    let application = partition.apply(Timestamp::from_millis(EPOCH_MILLIS), command);
    assert!(application.result.is_ok(), "{:?}", application.result);
    application
}

/// What clients read, after a check of the store.
fn value(config: &Arc<PartitionConfig>, store: &dyn Store) -> String {
    fixture::assert_clean(config, store);
    let (view, now) = (store.view().unwrap(), Timestamp::from_millis(EPOCH_MILLIS));
    let reader = Reader::new(Arc::clone(config));
    let item = reader.find(view.as_ref(), now, &position(config), "counter").unwrap().unwrap();
    item.json().get("n").unwrap().text().to_owned()
}

/// Each change builds on the one before, although none of them is durable yet;
/// clients see none of them until then.
#[test]
fn a_hot_item_does_not_wait_for_the_disk() {
    let home = Home::with_config(Backend::Local, LocalConfig::default());
    let gate = Gate::new(Arc::clone(&home.store));
    let store: Arc<dyn Store> = Arc::<Gate>::clone(&gate);
    let mut counter = Counter::create(store);
    gate.hold();
    let tickets: Vec<Ticket> =
        (0..INCREMENTS).map(|_| apply(&mut counter.partition, &counter.increment).ticket).collect();
    assert_eq!(value(&counter.config, gate.as_ref()), "0");
    assert!(tickets.iter().all(|ticket| ticket.outcome().is_none()));
    assert_eq!(gate.release(usize::MAX), tickets.len());
    assert!(tickets.into_iter().all(|ticket| ticket.wait() == CommitStatus::Durable));
    assert_eq!(value(&counter.config, gate.as_ref()), INCREMENTS.to_string());
}

/// Commands are applied one after the other, but the partition is not locked while a client
/// waits for the disk. How many share a sync depends on the disk, so that is only printed.
#[test]
fn no_increment_of_many_threads_is_lost() {
    let home = Home::with_config(Backend::Local, LocalConfig::default());
    let Counter { config, partition, increment } = Counter::create(Arc::clone(&home.store));
    let (partition, increment) = (Arc::new(Mutex::new(partition)), Arc::new(increment));
    let before = home.store.counters();
    let threads: Vec<TaskHandle> = (0..THREADS)
        .map(|_| {
            let (partition, increment) = (Arc::clone(&partition), Arc::clone(&increment));
            let body = move || {
                for _ in 0..INCREMENTS_EACH {
                    let application = apply(&mut partition.lock().unwrap(), &increment);
                    assert_eq!(application.ticket.wait(), CommitStatus::Durable);
                }
            };
            Runtime::real().tasks.spawn("incrementer", Box::new(body)).unwrap()
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(value(&config, home.store.as_ref()), INCREMENTS.to_string());
    assert_eq!(partition.lock().unwrap().lsn().get(), INCREMENTS + 1);
    let syncs = home.store.counters().syncs - before.syncs;
    println!("{INCREMENTS} increments of one item with {syncs} syncs");
}
