//! Many partitions as one: routing, order, drops, faults.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]
#![allow(clippy::print_stdout, reason = "random tests say how to repeat them")]

mod changes;
mod clock;
mod common;
mod expire;
#[allow(dead_code, reason = "shared with the scripts, each uses a part")]
mod gate;
mod history;
mod layout;
mod life;
mod transitions;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use cluster::{Cluster, ClusterError, PartitionId, RetiredPrefix, SystemWrite};
use common::{Fixture, create, id, read_op};
use gate::Gate;
use model::charge::Work;
use model::epk::{Epk, EpkRange};
use model::json::{self, Value};
use model::policy::IndexingPolicy;
use partition::{BucketNumber, Command, EffectKind, Operation, PartitionError, Position};
use runtime::{Runtime, TaskHandle, Tasks, ThreadTasks};
use storage::local::{self, LocalConfig};
use storage::{CommitStatus, WriteBatch, memory};
use testkit::faulty::{Fault, FaultyStore};
use testkit::wait::block_on;

#[test]
fn a_command_goes_to_the_range_that_owns_its_key() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 5);
    for reopened in [false, true] {
        let container = fixture.container(1);
        let mut served = BTreeSet::new();
        for number in 0..200 {
            let key = format!("key-{number}");
            let owner = container.map().range_of(&common::position(&key)).unwrap().id;
            let name = id(&format!("{reopened}"));
            let answer = block_on(fixture.cluster.apply(&container, create(&key, &name))).unwrap();
            assert_eq!(answer.range, owner);
            let epk = common::position(&key);
            let read = block_on(fixture.cluster.read(&container, (&epk, &name), None)).unwrap();
            assert_eq!((read.range, read.value.unwrap().kind), (owner, EffectKind::Read));
            assert!(read.lsn >= answer.lsn, "a read reflects what was answered before");
            served.insert(owner);
        }
        assert_eq!(served.len(), 5);
        fixture.reopen();
    }
    assert!(fixture.check().is_clean());
}

#[test]
fn lists_give_every_item_once_whatever_the_page() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 3);
    let container = fixture.container(1);
    for number in 0..100 {
        let command = create(&format!("key-{}", number % 40), &id(&format!("{number}")));
        block_on(fixture.cluster.apply(&container, command)).unwrap();
    }
    for items_max in [1, 7, 40, 1_000] {
        let mut names = Vec::new();
        let mut after = None;
        loop {
            let (full, position) = (EpkRange::full(), after.as_ref());
            let page = block_on(fixture.cluster.list(
                &container,
                (&full, None),
                position,
                (items_max, u64::MAX),
            ));
            let page = page.unwrap().unwrap().value;
            assert!(page.items.len() <= items_max);
            names.extend(page.items.iter().map(|item| item.text.clone()));
            match page.rest {
                Some(rest) => after = Some(rest),
                None => break,
            }
        }
        let distinct: BTreeSet<_> = names.iter().collect();
        assert_eq!((names.len(), distinct.len()), (100, 100), "pages of {items_max}");
    }
    let behind = Position { epk: Epk::max(), id: String::new() };
    let nothing = block_on(fixture.cluster.list(
        &container,
        (&EpkRange::full(), None),
        Some(&behind),
        (1, u64::MAX),
    ));
    assert!(nothing.unwrap().is_none());
    let gone = fixture.cluster.range(&container, PartitionId(3));
    assert!(matches!(gone, Err(ClusterError::NoRange(PartitionId(3)))));
}

/// Blocks are large, so the map is rewritten with a tiny one.
#[test]
fn used_up_ordinals_are_replaced_and_never_used_twice() {
    const ITEMS: usize = 60;
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 1);
    fixture.rewrite_map(1, "\"numbers\":[[1,16777217]]", "\"numbers\":[[1,8]]");
    fixture.reopen();
    let container = fixture.container(1);
    std::thread::scope(|scope| {
        for writer in 0..ITEMS {
            let (cluster, container) = (&fixture.cluster, &container);
            scope.spawn(move || {
                let name = id(&format!("{writer}"));
                block_on(cluster.apply(container, create("key", &name))).unwrap();
            });
        }
    });
    let blocks = container.map().range(PartitionId(0)).unwrap().ordinal_blocks.clone();
    assert_eq!(blocks, [1..8, 16_777_217..33_554_433], "one allocation is enough for all");
    fixture.reopen();
    let container = fixture.container(1);
    assert_eq!(
        container.map().range(PartitionId(0)).unwrap().ordinal_blocks,
        blocks,
        "an allocation is durable"
    );
    let page = block_on(fixture.cluster.list(
        &container,
        (&EpkRange::full(), None),
        None,
        (1_000, u64::MAX),
    ));
    let ordinals: BTreeSet<u64> = page.unwrap().unwrap().value.items.iter().map(ordinal).collect();
    assert_eq!(ordinals.len(), ITEMS);
    assert!(fixture.check().is_clean());
}

fn ordinal(item: &partition::Item) -> u64 {
    item.ordinal.as_u64()
}

#[test]
fn a_dropped_container_takes_no_more_writes_and_leaves_nothing() {
    for round in 1..=20 {
        let mut fixture = Fixture::new(memory::create());
        fixture.create_container(1, 2);
        let container = fixture.container(1);
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let (cluster, container) = (&fixture.cluster, &container);
                scope.spawn(move || write_until_dropped(cluster, container, writer));
            }
            // The more rounds, the later the drop.
            for number in 0..round {
                let command = create("key", &id(&format!("main-{number}")));
                block_on(fixture.cluster.apply(&container, command)).unwrap();
            }
            let numbers = [common::number(1)];
            block_on(fixture.cluster.drop_containers(&numbers, Vec::new())).unwrap();
        });
        assert!(fixture.check().is_clean(), "keys of a retired container are no strays");
        block_on(fixture.cluster.sweep(RetiredPrefix::Container(common::number(1)))).unwrap();
        let report = fixture.check();
        assert!(
            report.is_clean() && block_on(fixture.cluster.retired()).unwrap().is_empty(),
            "{report:?}"
        );
        assert_eq!(report.containers, 1, "only the system container is left");
        let key = common::position("key");
        let read = block_on(fixture.cluster.read(&container, (&key, &id("1")), None));
        assert!(matches!(read, Err(ClusterError::NoContainer(1))));
    }
}

fn write_until_dropped(cluster: &Cluster, container: &cluster::Container, writer: usize) {
    for number in 0.. {
        let command = create(&format!("key-{number}"), &id(&format!("{writer}")));
        match block_on(cluster.apply(container, command)) {
            Ok(_) => {}
            Err(ClusterError::NoContainer(1)) => return,
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn all_retired_containers_are_known_however_many_there_are() {
    const CONTAINERS: u32 = 300;
    let mut fixture = Fixture::new(memory::create());
    for number in 1..=CONTAINERS {
        fixture.create_container(number, 1);
        let command = create("key", &id("1"));
        block_on(fixture.cluster.apply(&fixture.container(number), command)).unwrap();
        block_on(fixture.drop_container(number));
    }
    fixture.reopen();
    let retired = BTreeSet::from_iter(block_on(fixture.cluster.retired()).unwrap());
    let dropped = (1..=CONTAINERS).map(common::number).map(RetiredPrefix::Container);
    assert_eq!(retired, dropped.collect());
    assert!(fixture.check().is_clean());
}

#[test]
fn keys_that_belong_to_nobody_are_told() {
    let fixture = Fixture::new(memory::create());
    let mut batch = WriteBatch::new();
    batch.put(vec![0, 0, 0, 77, 1, 2, 3], b"lost".to_vec());
    batch.put(vec![0, 0, 1, 0, 1], b"lost".to_vec());
    assert_eq!(fixture.store.write_session().submit(batch).wait(), CommitStatus::Durable);
    let bucket = |container, bucket| {
        let mut batch = WriteBatch::new();
        batch.put(
            partition::bucket_prefix(common::number(container), bucket).to_vec(),
            b"lost".to_vec(),
        );
        batch
    };
    let of_system = bucket(0, BucketNumber(9));
    assert_eq!(fixture.store.write_session().submit(of_system).wait(), CommitStatus::Durable);
    let strays = [
        RetiredPrefix::Container(common::number(77)),
        RetiredPrefix::Container(common::number(256)),
        RetiredPrefix::Bucket(common::number(0), BucketNumber(9)),
    ];
    let report = fixture.check();
    assert_eq!((report.strays.as_slice(), report.is_clean()), (strays.as_slice(), false));
}

#[test]
fn a_map_that_cannot_be_read_is_refused() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 2);
    fixture.rewrite_map(1, "\"bucket\":0,\"min\":\"\"", "\"bucket\":0,\"min\":\"01\"");
    let cluster = Cluster::open(fixture.store.clone(), Runtime::real(), Arc::default()).unwrap();
    let error = cluster.attach(common::spec(1)).unwrap_err();
    let text = "the map of container 1 cannot be read: the buckets do not cover the ring";
    assert_eq!(error.to_string(), text);
    let missing = cluster.attach(common::spec(2)).unwrap_err();
    assert!(matches!(missing, ClusterError::NoContainer(2)));
}

#[test]
fn an_answer_waits_for_the_disk_and_readers_see_only_what_is_durable() {
    let gate = Gate::new(memory::create());
    let mut fixture = Fixture::new(gate.clone());
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    let (key, name) = (common::position("key"), id("1"));
    gate.hold_tickets();
    let mut writing = Box::pin(fixture.cluster.apply(&container, create("key", &name)));
    assert!(pending(writing.as_mut()));
    gate.await_held(1);
    assert!(pending(writing.as_mut()), "the batch is submitted but not durable");
    let read = block_on(fixture.cluster.read(&container, (&key, &name), None)).unwrap();
    assert!(matches!(read.value, Err(PartitionError::NotFound)));
    // A refusal that rests on it must wait as well.
    let mut again = Box::pin(fixture.cluster.apply(&container, create("key", &name)));
    assert!(pending(again.as_mut()));
    gate.await_held(2);
    assert!(pending(again.as_mut()));
    gate.release();
    assert_eq!(block_on(writing).unwrap().value.effects[0].kind, EffectKind::Created);
    let refused = block_on(again).unwrap_err();
    let ClusterError::Command { error, .. } = refused else { panic!("{refused}") };
    assert!(matches!(error.problem, PartitionError::Exists));
    assert_eq!((error.lsn.get(), error.work), (2, Work::RefusedWrite));
    let read = block_on(fixture.cluster.read(&container, (&key, &name), None)).unwrap();
    assert_eq!(read.value.unwrap().kind, EffectKind::Read);
}

/// What was taken under the old policy and is not durable yet must not be skipped: once the
/// old policy is forgotten, such an item could not be changed any more.
#[test]
fn reindexing_waits_for_what_was_written_under_the_old_policy() {
    let gate = Gate::new(memory::create());
    let mut fixture = Fixture::new(gate.clone());
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    gate.hold_tickets_of(partition::container_prefix(common::number(1)).to_vec());
    let mut writing = Box::pin(fixture.cluster.apply(&container, create("key", &id("1"))));
    assert!(pending(writing.as_mut()));
    gate.await_held(1);
    let mut spec = common::spec(1);
    let change = |spec| {
        let note = SystemWrite::Put { id: "note".to_owned(), body: Default::default() };
        block_on(fixture.cluster.replace_container(spec, vec![note])).unwrap();
    };
    spec.policies.insert(1, IndexingPolicy::parse(&json::parse(NONE).unwrap()).unwrap());
    change(spec.clone());
    let version = std::thread::scope(|scope| {
        let reindexing = scope.spawn(|| block_on(fixture.cluster.reindex(&container)).unwrap());
        while !reindexing.is_finished() && gate.held() < 2 {
            std::thread::yield_now();
        }
        gate.release();
        reindexing.join().unwrap()
    });
    block_on(writing).unwrap();
    spec.policies = spec.policies.split_off(&version);
    change(spec);
    let delete = Operation::Delete { id: id("1"), if_match: None };
    let command = Command { position: common::position("key"), operations: vec![delete] };
    block_on(fixture.cluster.apply(&container, command)).unwrap();
}

const NONE: &[u8] = br#"{"indexingMode":"none","automatic":false}"#;

#[test]
fn readers_do_not_wait_for_a_command_that_waits_for_room() {
    let gate = Gate::new(memory::create());
    let mut fixture = Fixture::new(gate.clone());
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    let (key, name) = (common::position("key"), id("1"));
    block_on(fixture.cluster.apply(&container, create("key", &name))).unwrap();
    gate.block_submissions();
    let mut writing = Box::pin(fixture.cluster.apply(&container, create("key", &id("2"))));
    assert!(pending(writing.as_mut()));
    gate.await_blocked();
    let read = block_on(fixture.cluster.read(&container, (&key, &name), None)).unwrap();
    assert_eq!(read.value.unwrap().kind, EffectKind::Read);
    gate.release();
    block_on(writing).unwrap();
}

/// Threads, counted.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl Tasks for Counting {
    fn spawn_with_stack(
        &self,
        name: &str,
        bytes: usize,
        body: Box<dyn FnOnce() + Send>,
    ) -> std::io::Result<TaskHandle> {
        self.0.fetch_add(1, Ordering::Relaxed);
        ThreadTasks.spawn_with_stack(name, bytes, body)
    }
}

/// What all tests rely on: whatever they drive with `block_on` must not wait.
#[cfg(debug_assertions)]
#[test]
fn waiting_on_an_async_worker_is_caught() {
    let folder = tempfile::tempdir().unwrap();
    let on_disk = local::create(folder.path(), LocalConfig::default(), &Runtime::real());
    for store in [memory::create(), on_disk.unwrap()] {
        let fixture = Fixture::new(Arc::clone(&store));
        let list = || drop(fixture.cluster.system_items().unwrap().list("a:", None, 1));
        let submit = || drop(store.write_session().submit(WriteBatch::new()));
        let wait =
            || assert_eq!(storage::Ticket::resolved(CommitStatus::Full).wait(), CommitStatus::Full);
        let waits: [&dyn Fn(); 3] = [&list, &submit, &wait];
        for wait in waits {
            wait();
            let caught = std::panic::AssertUnwindSafe(|| block_on(async { wait() }));
            assert!(std::panic::catch_unwind(caught).is_err());
        }
    }
}

/// Work in chunks is done by the threads that there are, however many chunks it has.
#[test]
fn no_chunk_has_a_thread_of_its_own() {
    let threads = Arc::new(Counting::default());
    let runtime = Runtime { tasks: threads.clone(), ..Runtime::simulated(1) };
    let cluster = Cluster::open(memory::create(), runtime, Arc::default()).unwrap();
    let created = cluster.create_container(common::spec(1), 1, Vec::new());
    let container = block_on(created).unwrap();
    for number in 0..400 {
        let command = create(&format!("key-{number}"), &id("1"));
        block_on(cluster.apply(&container, command)).unwrap();
    }
    let before = threads.0.load(Ordering::Relaxed);
    // Sixteen ranges of what has eight buckets: each of those is copied.
    block_on(cluster.grow_to(&container, 16)).unwrap();
    block_on(cluster.reindex(&container)).unwrap();
    block_on(cluster.expire(&container)).unwrap();
    for prefix in block_on(cluster.retired()).unwrap() {
        block_on(cluster.sweep(prefix)).unwrap();
    }
    assert!(threads.0.load(Ordering::Relaxed) <= before + 2);
}

/// A thousand requests for statistics at once must not start a thousand threads.
#[test]
fn statistics_start_no_more_threads_than_can_run() {
    let threads = Arc::new(Counting::default());
    let runtime = Runtime { tasks: threads.clone(), ..Runtime::simulated(1) };
    let cluster = Cluster::open(memory::create(), runtime, Arc::default()).unwrap();
    let created = cluster.create_container(common::spec(1), 2, Vec::new());
    let container = block_on(created).unwrap();
    for number in 0..20 {
        let command = create(&format!("key-{}", number % 7), &id(&number.to_string()));
        block_on(cluster.apply(&container, command)).unwrap();
    }
    let before = threads.0.load(Ordering::Relaxed);
    let mut all: Vec<_> =
        (0..200).map(|_| Box::pin(cluster.summarise_keys(&container, 5))).collect();
    for one in &mut all {
        let _asked = pending(one.as_mut());
    }
    drop(all);
    let keys = block_on(cluster.summarise_keys(&container, 5)).unwrap();
    assert_eq!(keys.values().map(|range| range.keys).sum::<u64>(), 7);
    assert!(keys.values().flat_map(|range| &range.by_items).all(|key| key.key.is_some()));
    // As many as may run at a moment: queries that run here do not yield.
    assert!(threads.0.load(Ordering::Relaxed) <= before + 2);
}

#[test]
fn a_full_queue_refuses_instead_of_growing() {
    let gate = Gate::new(memory::create());
    let mut fixture = Fixture::new(gate.clone());
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    gate.block_submissions();
    let mut waiting = Vec::new();
    let refused = (0..2_000).find_map(|number| {
        let command = create("key", &id(&format!("{number}")));
        let mut writing = Box::pin(fixture.cluster.apply(&container, command));
        match writing.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Some(answer.unwrap_err()),
            Poll::Pending => {
                waiting.push(writing);
                None
            }
        }
    });
    assert!(matches!(refused, Some(ClusterError::Busy)));
    gate.release();
    let written = waiting.len();
    for writing in waiting {
        block_on(writing).unwrap();
    }
    assert_eq!(fixture.check().total.items, written as u64 + 1, "all that waited, and the map");
}

#[test]
fn a_fault_is_told_as_what_it_is_and_the_partition_goes_on_with_the_truth() {
    let faulty = FaultyStore::new(memory::create());
    let mut fixture = Fixture::new(faulty.clone());
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    let attempt = |fault, name: &str| {
        faulty.script([fault]);
        let first = block_on(fixture.cluster.apply(&container, create("key", &id(name))));
        let second = block_on(fixture.cluster.apply(&container, create("key", &id(name))));
        (first.unwrap_err(), second)
    };
    for fault in [Fault::Refuse, Fault::Fence] {
        let (first, second) = attempt(fault, &format!("{fault:?}"));
        assert!(matches!(first, ClusterError::Busy), "{first:?}");
        second.expect("nothing was written before");
    }
    let (first, second) = attempt(Fault::Full, "full");
    assert!(matches!(first, ClusterError::Full), "{first:?}");
    second.expect("writes go on as soon as there is room");
    let (first, second) = attempt(Fault::Unknown { written: false }, "not written");
    assert!(matches!(first, ClusterError::Unknown));
    second.expect("nothing was written before");
    let (first, second) = attempt(Fault::Unknown { written: true }, "written");
    assert!(matches!(first, ClusterError::Unknown));
    let Err(ClusterError::Command { error, .. }) = second else { panic!("{second:?}") };
    assert!(matches!(error.problem, PartitionError::Exists));
    let items = fixture.check();
    assert!(items.is_clean() && items.total.items == 6, "{items:?}");
}

#[test]
fn a_full_store_lets_containers_be_dropped_and_nothing_else() {
    let mut fixture = Fixture::new(memory::create_within(256 << 10));
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    let write = |at: usize| {
        let created = fixture.cluster.apply(&container, create("key", &id(&at.to_string())));
        block_on(created)
    };
    let full = (0..10_000).find_map(|at| write(at).err()).expect("it is full at some time");
    assert!(matches!(full, ClusterError::Full), "{full:?}");
    let creating = fixture.cluster.create_container(common::spec(2), 1, Vec::new());
    assert!(matches!(block_on(creating), Err(ClusterError::Full)));
    let numbers = [common::number(1)];
    block_on(fixture.cluster.drop_containers(&numbers, Vec::new())).expect("room is kept for it");
    for retired in block_on(fixture.cluster.retired()).unwrap() {
        block_on(fixture.cluster.sweep(retired)).expect("and for the sweep");
    }
    fixture.create_container(3, 1);
    let container = fixture.container(3);
    block_on(fixture.cluster.apply(&container, create("key", &id("1")))).expect("writes go on");
}

#[test]
fn a_catalogue_write_that_fails_leaves_no_container() {
    let faulty = FaultyStore::new(memory::create());
    let mut fixture = Fixture::new(faulty.clone());
    faulty.script([Fault::Refuse]);
    let creating = fixture.cluster.create_container(common::spec(1), 1, Vec::new());
    assert!(matches!(block_on(creating), Err(ClusterError::Busy)));
    assert!(matches!(
        fixture.cluster.container(common::number(1)),
        Err(ClusterError::NoContainer(1))
    ));
    fixture.create_container(1, 1);
    faulty.script([Fault::Refuse]);
    let numbers = [common::number(1)];
    let dropping = block_on(fixture.cluster.drop_containers(&numbers, Vec::new()));
    assert!(matches!(dropping, Err(ClusterError::Busy)));
    let container = fixture.container(1);
    block_on(fixture.cluster.apply(&container, create("key", &id("1")))).expect("it still lives");
}

#[test]
fn everything_may_go_while_an_answer_is_pending() {
    for round in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let store = local::create(folder.path(), LocalConfig::default(), &Runtime::real());
        let mut fixture = Fixture::new(store.unwrap());
        fixture.create_container(1, 2);
        let container = fixture.container(1);
        for number in 0..round * 3 {
            let command = create(&format!("key-{number}"), &id("1"));
            let mut writing = Box::pin(fixture.cluster.apply(&container, command));
            let _ = writing.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        drop(container);
        drop(fixture);
        let store = local::open(folder.path(), LocalConfig::default(), &Runtime::real());
        let mut fixture = Fixture::attached(store.expect("the folder is free again"), &[1]);
        assert!(fixture.check().is_clean());
        fixture.reopen();
    }
}

#[test]
fn system_writes_are_all_done_or_none() {
    let fixture = Fixture::new(memory::create());
    let body = |n: i64| json::Object::from_iter([("n", Value::from(n))]);
    let create = |id: &str| SystemWrite::Create { id: id.to_owned(), body: body(1) };
    block_on(fixture.cluster.write_system(vec![create("a:1"), create("a:2")])).unwrap();
    let half = vec![create("a:3"), create("a:1")];
    let error = block_on(fixture.cluster.write_system(half)).unwrap_err();
    assert!(matches!(error, ClusterError::Command { error, .. } if error.at == 1));
    let put = SystemWrite::Put { id: "a:1".to_owned(), body: body(2) };
    let delete = SystemWrite::Delete { id: "a:2".to_owned(), if_match: None };
    block_on(fixture.cluster.write_system(vec![put, delete, create("b:1")])).unwrap();
    let list = |after| block_on(fixture.cluster.list_system("a:", after, 10)).unwrap().0.len();
    assert_eq!((list(None), list(Some("a:1"))), (1, 0));
    let changed = fixture.cluster.read_system("a:1").unwrap().unwrap();
    assert_eq!(changed.json().get("n").unwrap().text(), "2");
    assert!(fixture.cluster.read_system("a:3").unwrap().is_none());
}

#[test]
fn a_command_of_reads_is_answered_in_order_with_writes() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    let written = block_on(fixture.cluster.apply(&container, create("key", &id("1")))).unwrap();
    let read = Command { position: common::position("key"), operations: vec![read_op("1")] };
    let answer = block_on(fixture.cluster.apply(&container, read)).unwrap();
    assert_eq!((answer.lsn, answer.value.effects[0].kind), (written.lsn, EffectKind::Read));
}

fn pending<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_pending()
}
