//! Requests that use the layout of one moment, while others change it.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use cluster::{Cluster, ClusterError, Container, Halve, PartitionId, TransitionStep};
use partition::EffectKind;
use storage::memory;
use testkit::wait::block_on;

use crate::common::{self, Fixture, create, id};
use crate::gate::Gate;

/// Merges keep buckets apart, so a partition can have any number of them; its LSN is in the
/// heads of all. `block_on` counts what an async worker reads.
#[test]
fn a_partition_of_a_hundred_buckets_is_read_like_any_other() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 50);
    let (container, key) = (fixture.container(1), common::position("key"));
    let written = block_on(fixture.cluster.apply(&container, create("key", &id("1")))).unwrap();
    let all: Vec<PartitionId> = container.map().ranges().iter().map(|record| record.id).collect();
    block_on(fixture.cluster.merge(&container, &all)).unwrap();
    fixture.reopen();
    let container = fixture.container(1);
    let map = container.map();
    let [only] = map.ranges() else { panic!("all were merged") };
    assert_eq!(map.buckets_of(only).len(), 100);
    let read = block_on(fixture.cluster.read(&container, (&key, &id("1")), None)).unwrap();
    assert!(read.lsn > written.lsn, "a merged partition stands above all it came from");
    assert_eq!(read.value.unwrap().kind, EffectKind::Read);
    let size = container.layout().partition(only.id).unwrap().size();
    assert_eq!(size.items, 1, "what it holds was looked up as well");
}

/// The handle of a partition outlives the partition.
#[test]
fn who_was_routed_to_a_partition_is_sent_on_when_others_take_its_place() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 1);
    let (container, key) = (fixture.container(1), common::position("key"));
    let layout = container.layout();
    let old = layout.route(&key).unwrap();
    block_on(fixture.cluster.split(&container, PartitionId(0), Halve::Hashes)).unwrap();
    let owner = container.map().range_of(&key).unwrap().id;
    let applying = fixture.cluster.apply_at(&container, old.clone(), create("key", &id("1")));
    assert_eq!(block_on(applying).unwrap().range, owner);
    let read = block_on(fixture.cluster.read_at(&container, old, (&key, &id("1")), None)).unwrap();
    assert_eq!((read.range, read.value.unwrap().kind), (owner, EffectKind::Read));
    let asked = container.route_by(&layout, &key).unwrap();
    assert_eq!(asked.id(), owner, "who is let in only now is let in by the new one");
    block_on(fixture.drop_container(1));
    let refused = container.route_by(&layout, &key).map(|partition| partition.id());
    assert!(matches!(refused, Err(ClusterError::NoContainer(1))));
    let read = block_on(fixture.cluster.read_at(&container, old, (&key, &id("1")), None));
    assert!(matches!(read, Err(ClusterError::NoContainer(1))));
}

const LONG: Duration = Duration::from_secs(30);

/// Stops a transition at a step until it is allowed to continue.
struct Stop {
    reached: Receiver<()>,
    go_on: SyncSender<()>,
}

/// A cluster whose first transition stops at a step.
fn stopping_at(step: TransitionStep) -> (Fixture, Stop) {
    let (reach, reached) = sync_channel(1);
    let (go_on, told) = sync_channel::<()>(1);
    let told = Mutex::new(Some(told));
    let fixture = Fixture::observed(memory::create(), move |at| {
        if at == step
            && let Some(told) = told.lock().unwrap().take()
        {
            reach.send(()).unwrap();
            told.recv_timeout(LONG).unwrap();
        }
    });
    (fixture, Stop { reached, go_on })
}

/// Leaves the first range of a container few ordinals.
fn leave_few_ordinals(fixture: &Fixture, container: u32) {
    fixture.rewrite_map(container, "\"numbers\":[[1,16777217]]", "\"numbers\":[[1,4]]");
}

/// Creates items of one key until ordinals must have been allocated.
fn use_up_ordinals(cluster: &Cluster, container: &Container, key: &str) {
    for number in 0..8 {
        let name = id(&format!("{key}-{number}"));
        block_on(cluster.apply(container, create(key, &name))).unwrap();
    }
}

fn blocks(container: &Container, range: u32) -> usize {
    container.map().range(PartitionId(range)).unwrap().ordinal_blocks.len()
}

#[test]
fn a_switch_of_one_container_does_not_hold_up_the_ordinals_of_another() {
    let (mut fixture, stop) = stopping_at(TransitionStep::Drained);
    fixture.create_container(1, 1);
    fixture.create_container(2, 1);
    leave_few_ordinals(&fixture, 2);
    fixture.attach(2);
    let (cluster, first, second) = (&fixture.cluster, fixture.container(1), fixture.container(2));
    std::thread::scope(|scope| {
        let splitting =
            scope.spawn(|| block_on(cluster.split(&first, PartitionId(0), Halve::Hashes)));
        stop.reached.recv_timeout(LONG).unwrap();
        let (done, is_done) = sync_channel(1);
        let second = &second;
        scope.spawn(move || {
            use_up_ordinals(cluster, second, "key");
            done.send(()).unwrap();
        });
        let allocated = is_done.recv_timeout(LONG / 3);
        stop.go_on.send(()).unwrap();
        allocated.expect("the second container is none of the first one's business");
        splitting.join().unwrap().unwrap();
    });
    assert_eq!(blocks(&second, 0), 2);
}

/// A split is on its way to the disk while an allocation is computed from the map before
/// it.
#[test]
fn two_changes_of_one_map_do_not_undo_each_other() {
    let gate = Gate::new(memory::create());
    let mut fixture = Fixture::new(gate.clone());
    fixture.create_container(1, 2);
    leave_few_ordinals(&fixture, 1);
    fixture.attach(1);
    let (cluster, container) = (&fixture.cluster, fixture.container(1));
    let in_first = |key: &String| {
        container.map().range_of(&common::position(key)).unwrap().id == PartitionId(0)
    };
    let key = (0..).map(|number| format!("key-{number}")).find(in_first).unwrap();
    gate.hold_tickets_of(partition::container_prefix(common::number(0)).to_vec());
    std::thread::scope(|scope| {
        let splitting =
            scope.spawn(|| block_on(cluster.split(&container, PartitionId(1), Halve::Hashes)));
        gate.await_held(1);
        let writing = scope.spawn(|| use_up_ordinals(cluster, &container, &key));
        gate.await_held(2);
        gate.release();
        splitting.join().unwrap().unwrap();
        writing.join().unwrap();
    });
    let ids = |container: &Container| -> Vec<u32> {
        container.map().ranges().iter().map(|record| record.id.0).collect()
    };
    assert_eq!((ids(&container), blocks(&container, 0)), (vec![0, 2, 3], 2));
    let in_force = container.map();
    fixture.reopen();
    assert_eq!(fixture.container(1).map(), in_force, "and the stored map says the same");
    assert!(fixture.check().is_clean());
}

#[test]
fn many_changes_of_one_map_at_once_all_count() {
    const DIVISIONS: usize = 40;
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 4);
    let container = fixture.container(1);
    let cluster = &fixture.cluster;
    std::thread::scope(|scope| {
        for range in 0..4 {
            let container = &container;
            scope.spawn(move || {
                let split =
                    || block_on(cluster.split(container, PartitionId(range), Halve::Hashes));
                // Losing the race for the map as often as it tries leaves everything as it
                // was, and the caller asks again.
                while let Err(error) = split().map(drop) {
                    assert!(matches!(error, ClusterError::Busy), "{error}");
                }
            });
        }
        scope.spawn(|| {
            let mut made = 0;
            while made < DIVISIONS {
                let layout = container.layout();
                let divided = (&*layout, layout.map().divided_evenly());
                match block_on(cluster.divide(&container, divided, Vec::new())) {
                    Ok(()) => made += 1,
                    Err(ClusterError::Busy) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
    });
    let map = container.map();
    let mut blocks: Vec<_> =
        map.ranges().iter().flat_map(|one| one.ordinal_blocks.clone()).collect();
    blocks.sort_by_key(|block| block.start);
    assert_eq!(map.ranges().len(), 8, "no split was undone");
    assert!(blocks.windows(2).all(|two| two[0].end <= two[1].start), "{blocks:?}");
    assert_eq!(blocks.len(), 8, "and no block was lost: {blocks:?}");
    fixture.reopen();
    assert_eq!(fixture.container(1).map(), map);
}
