//! Splits, merges and re-bucketing while others read and write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cluster::{
    Caller, Cluster, ClusterError, Container, Halve, Layout, LayoutError, MergeRule, PartitionId,
    RetiredPrefix, TransitionStep,
};
use model::charge::Charge;
use model::epk::EpkRange;
use model::limits::Limits;
use model::partition_key::{PartitionKey, PartitionKeyDefinition};
use partition::{Command, Document, Operation, Position};
use runtime::SimulatedClock;
use storage::memory;
use testkit::faulty::{Fault, FaultyStore};
use testkit::wait::block_on;

use crate::common::{self, Fixture, create, id};

fn ids(container: &Container) -> Vec<u32> {
    container.map().ranges().iter().map(|record| record.id.0).collect()
}

fn fill(fixture: &Fixture, container: &Container, keys: usize, per_key: usize) {
    for key in 0..keys {
        for item in 0..per_key {
            let command = create(&format!("key-{key}"), &id(&format!("{item}")));
            block_on(fixture.cluster.apply(container, command)).unwrap();
        }
    }
}

/// All items, by list, with a change of the layout between pages.
fn listed(cluster: &Cluster, container: &Arc<Container>, mut between: impl FnMut()) -> Vec<String> {
    let mut names = Vec::new();
    let mut after: Option<Position> = None;
    while let Some(page) =
        block_on(cluster.list(container, (&EpkRange::full(), None), after.as_ref(), (7, u64::MAX)))
            .unwrap()
    {
        names.extend(page.value.items.iter().map(|item| item.json().text().to_owned()));
        after = page.value.rest;
        if after.is_none() {
            break;
        }
        between();
    }
    names
}

#[test]
fn a_split_moves_nothing_and_loses_nothing() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    fill(&fixture, &container, 40, 2);
    let before = listed(&fixture.cluster, &container, || {});
    let last = block_on(fixture.cluster.apply(&container, create("last", &id("1")))).unwrap();
    let split = block_on(fixture.cluster.split(&container, PartitionId(0), Halve::Hashes)).unwrap();
    assert_eq!(
        (split.from, split.into),
        (vec![PartitionId(0)], vec![PartitionId(1), PartitionId(2)])
    );
    for reopened in [false, true] {
        let container = fixture.container(1);
        let mut after = listed(&fixture.cluster, &container, || {});
        after.retain(|text| !text.contains("last"));
        assert_eq!(after, before);
        assert!(matches!(
            fixture.cluster.range(&container, PartitionId(0)),
            Err(ClusterError::NoRange(PartitionId(0)))
        ));
        for key in 0..40 {
            let command = create(&format!("key-{key}"), &id(&format!("{reopened}")));
            let answer = block_on(fixture.cluster.apply(&container, command)).unwrap();
            assert!(answer.lsn > last.lsn && answer.range != PartitionId(0));
        }
        let (map, sizes) = block_on(fixture.cluster.sizes(container.layout())).unwrap();
        assert_eq!((map.ranges().len(), sizes.len()), (2, 2));
        assert!(sizes.iter().all(|size| size.items > 0));
        fixture.reopen();
        let container = fixture.container(1);
        for key in 0..40 {
            let delete = Operation::Delete { id: id(&format!("{reopened}")), if_match: None };
            let position = common::position(&format!("key-{key}"));
            let command = Command { position, operations: vec![delete] };
            block_on(fixture.cluster.apply(&container, command)).unwrap();
        }
    }
    assert!(fixture.check().is_clean());
}

#[test]
fn ordinals_stay_unique_through_splits_and_merges() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    let mut name = 0..;
    let mut write = |fixture: &Fixture, container: &Container| {
        for key in 0..40 {
            let name = id(&format!("{}", name.next().unwrap()));
            block_on(fixture.cluster.apply(container, create(&format!("key-{key}"), &name)))
                .unwrap();
        }
    };
    write(&fixture, &container);
    for round in 0..6 {
        let ranges = ids(&container);
        if round % 3 == 2 {
            let all: Vec<_> = ranges.into_iter().map(PartitionId).collect();
            block_on(fixture.cluster.merge(&container, &all)).unwrap();
        } else {
            let first = PartitionId(ranges[0]);
            block_on(fixture.cluster.split(&container, first, Halve::Hashes)).unwrap();
        }
        write(&fixture, &container);
    }
    let mut ordinals = BTreeSet::new();
    let mut after = None;
    loop {
        let full = EpkRange::full();
        let page = block_on(fixture.cluster.list(
            &container,
            (&full, None),
            after.as_ref(),
            (50, u64::MAX),
        ))
        .unwrap()
        .unwrap();
        for item in &page.value.items {
            assert!(ordinals.insert(super::ordinal(item)));
        }
        after = page.value.rest;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(ordinals.len(), 40 * 7);
    assert!(fixture.check().is_clean());
}

/// Put in force as it is, it would bring back the range that was split.
#[test]
fn a_division_of_an_old_layout_is_refused() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    let old = container.layout();
    block_on(fixture.cluster.split(&container, PartitionId(0), Halve::Hashes)).unwrap();
    let divide = |from: &Layout| {
        let divided = (from, from.map().divided_evenly());
        block_on(fixture.cluster.divide(&container, divided, Vec::new()))
    };
    assert!(matches!(divide(&old), Err(ClusterError::Busy)));
    divide(&container.layout()).unwrap();
    fill(&fixture, &container, 10, 1);
    fixture.reopen();
    assert_eq!(ids(&fixture.container(1)), [1, 2]);
}

/// The documented growth: ids 0, 1 → 0→1,2 → 1→3,4, the widest first.
#[test]
fn growing_splits_the_widest_first() {
    for (start, target, expected) in [
        (1, 3, vec![3, 4, 2]),
        (3, 5, vec![3, 4, 5, 6, 2]),
        (2, 3, vec![2, 3, 1]),
        (2, 4, vec![2, 3, 4, 5]),
        (5, 5, vec![0, 1, 2, 3, 4]),
    ] {
        let mut fixture = Fixture::new(memory::create());
        fixture.create_container(1, start);
        let container = fixture.container(1);
        let done = block_on(fixture.cluster.grow_to(&container, target)).unwrap();
        assert_eq!(ids(&container), expected, "{start} to {target}");
        assert_eq!(done.len(), usize::try_from(target - start).unwrap());
        fixture.reopen();
        assert_eq!(ids(&fixture.container(1)), expected);
    }
}

#[test]
fn ten_ranges_merge_into_one_step() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 10);
    let container = fixture.container(1);
    fill(&fixture, &container, 50, 1);
    let lsns: Vec<u64> = block_on(fixture.cluster.sizes(container.layout()))
        .unwrap()
        .1
        .iter()
        .map(|head| head.lsn)
        .collect();
    let mut all: Vec<_> = (0..10).map(PartitionId).collect();
    all.reverse();
    let merged = block_on(fixture.cluster.merge(&container, &all)).unwrap();
    assert_eq!(merged.into, [PartitionId(10)]);
    let answer = block_on(fixture.cluster.apply(&container, create("key-1", &id("new")))).unwrap();
    assert_eq!(answer.lsn.get(), lsns.iter().max().unwrap() + 2, "floor, then the next");
    let error = block_on(fixture.cluster.merge(&container, &[PartitionId(10)])).unwrap_err();
    assert!(matches!(error, ClusterError::Layout(LayoutError::TooFew)));
    assert_eq!(listed(&fixture.cluster, &container, || {}).len(), 51);
    assert!(fixture.check().is_clean());
}

/// Eight buckets give three rounds of bounds; from then on buckets move.
#[test]
fn a_range_without_a_bound_is_rebucketed_first() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    fill(&fixture, &container, 200, 2);
    let before = listed(&fixture.cluster, &container, || {});
    block_on(fixture.cluster.grow_to(&container, 20)).unwrap();
    assert_eq!(container.map().ranges().len(), 20);
    assert!(container.map().moves().is_empty());
    assert_eq!(listed(&fixture.cluster, &container, || {}), before);
    let retired = block_on(fixture.cluster.retired()).unwrap();
    assert_eq!(retired.len(), 8 + 4, "all eighths and some sixteenths: {retired:?}");
    assert!(fixture.check().is_clean());
    for prefix in retired {
        assert!(matches!(prefix, RetiredPrefix::Bucket(..)));
        assert!(block_on(fixture.cluster.sweep(prefix)).unwrap().keys > 0);
    }
    fixture.reopen();
    assert_eq!(listed(&fixture.cluster, &fixture.container(1), || {}), before);
    let report = fixture.check();
    assert!(report.is_clean() && report.total.items == 400 + 1, "{report:?}");
}

#[test]
fn a_split_for_storage_halves_the_bytes() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    // One key has as much as all others together.
    fill(&fixture, &container, 60, 1);
    for item in 0..60 {
        block_on(fixture.cluster.apply(&container, create("heavy", &id(&format!("{item}")))))
            .unwrap();
    }
    block_on(fixture.cluster.split(&container, PartitionId(0), Halve::Bytes)).unwrap();
    let (_, sizes) = block_on(fixture.cluster.sizes(container.layout())).unwrap();
    let [left, right] = sizes.as_slice() else { panic!() };
    let smaller = left.bytes.min(right.bytes);
    assert!(smaller * 5 >= left.bytes + right.bytes, "{left:?} {right:?}");
    assert!(fixture.check().is_clean());
    // The heavy key stays together, and is reported when nothing else is left to cut.
    let heavy = common::position("heavy");
    let error = loop {
        let range = container.map().range_of(&heavy).unwrap().id;
        match block_on(fixture.cluster.split(&container, range, Halve::Bytes)) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    let ClusterError::Indivisible { key, .. } = error else { panic!("{error}") };
    assert_eq!(key, Some(PartitionKey::new(["heavy"])));
    let empty = container.map().ranges().len();
    assert!(empty < 12, "each split took something off the heavy key");
    assert_eq!(listed(&fixture.cluster, &container, || {}).len(), 120);
    assert!(fixture.check().is_clean());
}

#[test]
fn positions_of_a_list_hold_through_any_change() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 2);
    let container = fixture.container(1);
    fill(&fixture, &container, 80, 2);
    let before = listed(&fixture.cluster, &container, || {});
    let mut turn = 0;
    let during = listed(&fixture.cluster, &container, || {
        turn += 1;
        let ranges = ids(&container);
        if turn % 3 == 0 {
            let pair = [PartitionId(ranges[0]), PartitionId(ranges[1])];
            block_on(fixture.cluster.merge(&container, &pair)).unwrap();
        } else {
            let range = PartitionId(ranges[turn % ranges.len()]);
            block_on(fixture.cluster.split(&container, range, Halve::Hashes)).unwrap();
        }
    });
    assert_eq!(during, before);
    assert!(turn > 20);
}

/// Requests by key wait and are served; requests that name the range are refused.
#[test]
fn during_the_switch_commands_wait_and_reads_go_on() {
    let (reached, at_stage) = sync_channel(1);
    let (go_on, gone_on) = sync_channel::<()>(0);
    let gate = Mutex::new(gone_on);
    let mut fixture = Fixture::observed(memory::create(), move |step| {
        if step == TransitionStep::Drained {
            reached.send(()).unwrap();
            gate.lock().unwrap().recv().unwrap();
        }
    });
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    let (key, name) = (common::position("key"), id("1"));
    block_on(fixture.cluster.apply(&container, create("key", &name))).unwrap();
    std::thread::scope(|scope| {
        let splitting = scope
            .spawn(|| block_on(fixture.cluster.split(&container, PartitionId(0), Halve::Hashes)));
        at_stage.recv().unwrap();
        let mut by_name = Box::pin(fixture.cluster.accepts(&container, PartitionId(0)));
        assert!(super::pending(by_name.as_mut()), "the layout to ask for is not there yet");
        let read = block_on(fixture.cluster.read(&container, (&key, &name), None)).unwrap();
        assert!(read.value.is_ok() && read.range == PartitionId(0));
        assert!(fixture.cluster.range(&container, PartitionId(0)).is_ok(), "it can still be read");
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let (cluster, container) = (&fixture.cluster, &container);
                let command = create("key", &id(&format!("w{writer}")));
                scope.spawn(move || block_on(cluster.apply(container, command)))
            })
            .collect();
        assert!(writers.iter().all(|writer| !writer.is_finished()));
        go_on.send(()).unwrap();
        splitting.join().unwrap().unwrap();
        assert!(matches!(block_on(by_name), Err(ClusterError::Switching(PartitionId(0)))));
        for writer in writers {
            let answer = writer.join().unwrap().unwrap();
            assert!([PartitionId(1), PartitionId(2)].contains(&answer.range), "{:?}", answer.range);
        }
    });
    assert!(fixture.check().is_clean());
}

/// Whatever the disk does to the switch, the layout in memory is the stored one.
#[test]
fn a_switch_that_fails_is_undone_or_completed() {
    for (fault, completed) in [
        (Fault::Refuse, false),
        (Fault::Fence, false),
        (Fault::Unknown { written: false }, false),
        (Fault::Unknown { written: true }, true),
    ] {
        let faulty = FaultyStore::new(memory::create());
        let script = Arc::clone(&faulty);
        let mut fixture = Fixture::observed(faulty, move |step| {
            if step == TransitionStep::Drained {
                script.script([fault]);
            }
        });
        fixture.create_container(1, 1);
        let container = fixture.container(1);
        fill(&fixture, &container, 10, 1);
        let split = block_on(fixture.cluster.split(&container, PartitionId(0), Halve::Hashes));
        assert_eq!(split.is_ok(), completed, "{fault:?}: {split:?}");
        let expected = if completed { vec![1, 2] } else { vec![0] };
        assert_eq!(ids(&container), expected, "{fault:?}");
        block_on(fixture.cluster.apply(&container, create("key", &id("after")))).unwrap();
        fixture.reopen();
        assert_eq!(ids(&fixture.container(1)), expected, "{fault:?}");
        assert!(fixture.check().is_clean());
    }
}

#[test]
fn a_switch_that_nobody_waits_for_leaves_the_partition_serving() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 1);
    for polls in 0..4 {
        let container = fixture.container(1);
        let mut splitting =
            Box::pin(fixture.cluster.split(&container, PartitionId(0), Halve::Hashes));
        for _ in 0..polls {
            if !super::pending(splitting.as_mut()) {
                break;
            }
        }
        drop(splitting);
        let name = id(&format!("{polls}"));
        let written = block_on(fixture.cluster.apply(&container, create("key", &name)));
        // Dropped while the map was on its way, it is not known which one counts.
        assert!(matches!(written, Ok(_) | Err(ClusterError::Busy)), "{written:?}");
        fixture.reopen();
        let container = fixture.container(1);
        let name = id(&format!("{polls}-again"));
        block_on(fixture.cluster.apply(&container, create("key", &name))).unwrap();
        if ids(&container) != [0] {
            break;
        }
    }
    assert!(fixture.check().is_clean());
}

/// The writes that were acknowledged, by key and id: the number written last.
type Told = BTreeMap<(String, String), u64>;

fn write_on(cluster: &Cluster, container: &Container, writer: usize, stop: &AtomicBool) -> Told {
    let mut told = Told::new();
    let mut last_lsn = BTreeMap::new();
    for turn in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let key = format!("w{writer}-{}", turn % 13);
        let name = format!("{}", turn % 7);
        let body = format!(r#"{{"id":"{name}","pk":"{key}","n":{turn}}}"#);
        let document = Document::parse(body.into(), &Limits::default()).unwrap();
        let operation = Operation::Upsert { document, if_match: None };
        let command = Command { position: common::position(&key), operations: vec![operation] };
        let answer = block_on(cluster.apply(container, command)).unwrap();
        let before = last_lsn.insert(key.clone(), answer.lsn);
        assert!(before.is_none_or(|before| answer.lsn > before), "{key} went back");
        let epk = common::position(&key);
        let read = block_on(cluster.read(container, (&epk, &id(&name)), None)).unwrap();
        let text = read.value.unwrap().text.unwrap();
        assert!(String::from_utf8_lossy(&text).contains(&format!("\"n\":{turn}")));
        assert!(read.lsn >= answer.lsn);
        told.insert((key, name), turn);
    }
    told
}

#[test]
fn nothing_is_lost_while_layouts_change_under_load() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    let (stop, changes) = (AtomicBool::new(false), AtomicUsize::new(0));
    let told: Vec<Told> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (cluster, container, stop) = (&fixture.cluster, &container, &stop);
                scope.spawn(move || write_on(cluster, container, writer, stop))
            })
            .collect();
        for turn in 0..60 {
            let ranges = ids(&container);
            if turn % 3 == 2 && ranges.len() > 1 {
                let pair = [PartitionId(ranges[0]), PartitionId(ranges[1])];
                block_on(fixture.cluster.merge(&container, &pair)).unwrap();
            } else {
                let range = PartitionId(ranges[turn % ranges.len()]);
                block_on(fixture.cluster.split(&container, range, Halve::Hashes)).unwrap();
            }
            changes.fetch_add(1, Ordering::Relaxed);
        }
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    fixture.reopen();
    let container = fixture.container(1);
    let expected: usize = told.iter().map(BTreeMap::len).sum();
    assert_eq!(listed(&fixture.cluster, &container, || {}).len(), expected);
    for ((key, name), turn) in told.into_iter().flatten() {
        let epk = common::position(&key);
        let read = block_on(fixture.cluster.read(&container, (&epk, &id(&name)), None)).unwrap();
        let text = read.value.unwrap().text.unwrap();
        assert!(String::from_utf8_lossy(&text).contains(&format!("\"n\":{turn}")));
    }
    assert!(fixture.check().is_clean());
}

#[test]
fn a_partition_that_outgrows_its_limit_is_split() {
    let limits = Limits {
        physical_partition_bytes_max: 20_000,
        logical_partition_bytes_max: 10_000,
        ..Limits::default()
    };
    let mut fixture = Fixture::limited(memory::create(), limits);
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    let relieve = |fixture: &Fixture| block_on(fixture.cluster.relieve(|_| true)).unwrap().len();
    assert_eq!(relieve(&fixture), 0);
    fill(&fixture, &container, 60, 5);
    block_on(fixture.cluster.relief_wanted());
    while relieve(&fixture) > 0 {
        // The next write notices what is still too large.
        fill_more(&fixture, &container, 60);
    }
    let (map, sizes) = block_on(fixture.cluster.sizes(container.layout())).unwrap();
    assert!(map.ranges().len() > 2);
    assert!(sizes.iter().all(|size| size.bytes < 24_000), "{sizes:?}");
    assert!(fixture.check().is_clean());
}

/// A failure in one container must not keep the others from being relieved.
#[test]
fn moves_are_resumed_in_every_container_that_can() {
    let faulty = FaultyStore::new(memory::create());
    let script = Arc::clone(&faulty);
    let mut fixture = Fixture::observed(faulty.clone(), move |step| {
        if step == TransitionStep::DoubleWriting {
            script.script([Fault::Refuse]);
        }
    });
    for number in [1, 2] {
        fixture.create_container(number, 5);
        let container = fixture.container(number);
        fill(&fixture, &container, 50, 1);
        block_on(fixture.cluster.split(&container, PartitionId(0), Halve::Hashes)).unwrap();
        // It has one bucket, which has to be moved, and the disk refuses the copy.
        block_on(fixture.cluster.split(&container, PartitionId(5), Halve::Hashes)).unwrap_err();
    }
    let moves = |number| fixture.container(number).map().moves().len();
    assert_eq!((moves(1), moves(2)), (1, 1));
    faulty.fail_reads(1);
    block_on(fixture.cluster.relieve(|_| true)).unwrap_err();
    assert_eq!((moves(1), moves(2)), (1, 0), "only the first met a disk that failed");
    block_on(fixture.cluster.relieve(|_| true)).unwrap();
    assert_eq!((moves(1), moves(2)), (0, 0));
    assert!(fixture.check().is_clean());
}

fn fill_more(fixture: &Fixture, container: &Container, keys: usize) {
    let name = id(&format!("more-{}", container.map().ranges().len()));
    for key in 0..keys {
        block_on(fixture.cluster.apply(container, create(&format!("key-{key}"), &name))).unwrap();
    }
}

#[test]
fn a_full_key_takes_only_what_makes_it_smaller() {
    let limits = Limits {
        physical_partition_bytes_max: 1_000,
        logical_partition_bytes_max: 2_000,
        ..Limits::default()
    };
    let mut fixture = Fixture::limited(memory::create(), limits);
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    let write =
        |name: String| block_on(fixture.cluster.apply(&container, create("heavy", &id(&name))));
    let error = (0..).find_map(|number| write(format!("{number}")).err()).unwrap();
    let ClusterError::Command { error, .. } = error else { panic!("{error}") };
    assert!(matches!(error.problem, partition::PartitionError::KeyFull { .. }), "{error}");
    assert_eq!(block_on(fixture.cluster.relieve(|_| true)).unwrap(), [], "one key stays together");
    let delete = Operation::Delete { id: id("0"), if_match: None };
    let command = Command { position: common::position("heavy"), operations: vec![delete] };
    block_on(fixture.cluster.apply(&container, command)).unwrap();
    block_on(fixture.cluster.apply(&container, create("light", &id("1")))).unwrap();
    write("again".to_owned()).unwrap();
    assert!(fixture.check().is_clean());
}

#[test]
fn cold_neighbours_merge_only_after_a_quiet_time() {
    let clock = Arc::new(SimulatedClock::new());
    let limits = Limits { physical_partition_bytes_max: 8_000, ..Limits::default() };
    let mut fixture = Fixture::timed(memory::create(), limits, Arc::clone(&clock));
    fixture.create_container(1, 4);
    let container = fixture.container(1);
    let rule = MergeRule { quiet: Duration::from_secs(60), ranges_min: 2 };
    let merge = |fixture: &Fixture| {
        block_on(fixture.cluster.merge_cold(&container, &rule)).unwrap().map(|merged| merged.from)
    };
    assert_eq!(merge(&fixture), None, "it was opened only now");
    clock.advance(Duration::from_secs(60));
    // The first two are in use, so the next ones are the coldest.
    let first = container.layout().partition(PartitionId(0)).unwrap().admit(Caller::default());
    first.unwrap().pay(None, Charge::from_units(21 * 1_000));
    assert_eq!(merge(&fixture), Some(vec![PartitionId(1), PartitionId(2)]));
    assert_eq!(merge(&fixture), None, "the layout has just changed");
    clock.advance(Duration::from_secs(120));
    fill(&fixture, &container, 60, 2);
    assert_eq!(merge(&fixture), None, "together they hold too much");
    for key in 0..60 {
        for item in 0..2 {
            let delete = Operation::Delete { id: id(&format!("{item}")), if_match: None };
            let position = common::position(&format!("key-{key}"));
            let command = Command { position, operations: vec![delete] };
            block_on(fixture.cluster.apply(&container, command)).unwrap();
        }
    }
    assert!(merge(&fixture).is_some());
    clock.advance(Duration::from_secs(600));
    assert_eq!(merge(&fixture), None, "two ranges are needed");
}

/// Documents of one tenant stay together until they are too many, and then the cut
/// lies inside the tenant.
#[test]
fn a_hierarchical_prefix_is_cut_when_it_is_all_there_is() {
    let mut fixture = Fixture::new(memory::create());
    let container = fixture.create_hierarchical(1);
    let definition = PartitionKeyDefinition::hash(["/tenant", "/user"]).unwrap();
    let write = |user: u32, name: &str| {
        let body = format!(r#"{{"id":"{name}","tenant":"t","user":"u{user}"}}"#);
        let document = Document::parse(body.into(), &Limits::default()).unwrap();
        let key = PartitionKey::new(["t", format!("u{user}").as_str()]);
        let position = definition.locate(&key).unwrap();
        let command = Command { position, operations: vec![Operation::Create { document }] };
        block_on(fixture.cluster.apply(&container, command)).unwrap()
    };
    for user in 0..64 {
        write(user, "1");
    }
    let tenant = definition.prefix_range(&PartitionKey::new(["t"])).unwrap();
    block_on(fixture.cluster.split(&container, PartitionId(0), Halve::Bytes)).unwrap();
    let inside = |container: &Container| {
        let map = container.map();
        map.ranges().iter().filter(|record| tenant.contains(&record.range.min)).count()
    };
    assert_eq!(inside(&container), 1, "one bound lies inside the tenant");
    let (_, sizes) = block_on(fixture.cluster.sizes(container.layout())).unwrap();
    assert!(sizes.iter().all(|size| size.items >= 24), "{sizes:?}");
    let middle = container.map().ranges()[1].id;
    block_on(fixture.cluster.split(&container, middle, Halve::Bytes)).unwrap();
    assert_eq!(inside(&container), 2);
    for user in 0..64 {
        write(user, "2");
    }
    assert_eq!(listed(&fixture.cluster, &container, || {}).len(), 128);
    assert!(fixture.check().is_clean());
}
