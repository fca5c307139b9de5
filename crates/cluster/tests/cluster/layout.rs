//! Requests that go by the layout of one moment, while others change it.

use cluster::{ClusterError, Halve, RangeId};
use partition::EffectKind;
use storage::memory;
use testkit::wait::block_on;

use crate::common::{self, Fixture, create, id};

/// Merges keep buckets apart, so a partition can have any number of them; where it stands is
/// in the heads of all. `block_on` counts what an async worker reads.
#[test]
fn a_partition_of_a_hundred_buckets_is_read_like_any_other() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 50);
    let (container, key) = (fixture.container(1), common::location("key").position);
    let written = block_on(fixture.cluster.apply(&container, create("key", &id("1")))).unwrap();
    let all: Vec<RangeId> = container.map().ranges().iter().map(|record| record.id).collect();
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
    let (container, key) = (fixture.container(1), common::location("key").position);
    let layout = container.layout();
    let old = layout.route(&key).unwrap();
    block_on(fixture.cluster.split(&container, RangeId(0), Halve::Hashes)).unwrap();
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
