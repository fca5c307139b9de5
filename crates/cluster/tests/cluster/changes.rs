//! Following the change feed while layouts change, as clients do it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cluster::{ClusterError, Container, Halve, PartitionId};
use model::epk::EpkRange;
use model::limits::Limits;
use model::position::{Lsn, Timestamp};
use partition::{ChangePage, Changes, Command, Document, Item, Operation, PartitionError};
use proptest::prelude::*;
use runtime::SimulatedClock;
use storage::memory;
use testkit::wait::block_on;

use crate::common::{self, Fixture, create, id};

const MINUTE: Duration = Duration::from_secs(60);

/// A client that keeps a position for each part of the ring, and cuts a part in two when
/// its partition was split: the official SDKs do the same.
struct Follower {
    parts: VecDeque<(EpkRange, Lsn)>,
    /// By key and id: position and text.
    seen: BTreeMap<(String, String), (Lsn, String)>,
    items_max: usize,
}

impl Follower {
    fn new(items_max: usize) -> Follower {
        let parts = VecDeque::from([(EpkRange::full(), Lsn::ZERO)]);
        Follower { parts, seen: BTreeMap::new(), items_max }
    }

    /// Reads one page of one part. Returns whether there was anything.
    fn step(&mut self, fixture: &Fixture, container: &Arc<Container>) -> bool {
        loop {
            let (within, after) = self.parts.pop_front().unwrap();
            let request = Changes { items_max: self.items_max, ..changes(&within, after) };
            match block_on(fixture.cluster.list_changes(container, request, MINUTE)) {
                Ok(served) => {
                    let through = through(&served.value, after.max(served.lsn));
                    assert!(through >= after);
                    self.parts.push_back((within, through));
                    return self.take(served.value);
                }
                Err(ClusterError::NoRange(_)) => {
                    for record in container.map().ranges() {
                        if let Some(part) = record.range.intersect(&within) {
                            self.parts.push_front((part, after));
                        }
                    }
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn take(&mut self, page: ChangePage) -> bool {
        for item in &page.items {
            let before = self.seen.insert(name(item), (item.lsn, item.json().text().to_owned()));
            assert!(before.is_none_or(|(lsn, _)| lsn < item.lsn), "seen twice, or out of order");
        }
        !page.items.is_empty()
    }

    fn drain(&mut self, fixture: &Fixture, container: &Arc<Container>) {
        let mut idle = 0;
        while idle <= self.parts.len() {
            idle = if self.step(fixture, container) { 0 } else { idle + 1 };
        }
    }
}

fn changes(within: &EpkRange, after: Lsn) -> Changes {
    let (within, items_max, bytes_max) = (within.clone(), usize::MAX, u64::MAX);
    Changes { within, prefix: None, after: Some(after), since: None, items_max, bytes_max }
}

fn through(page: &ChangePage, complete: Lsn) -> Lsn {
    page.cut.unwrap_or(page.items.last().map_or(complete, |item| item.lsn.max(complete)))
}

fn name(item: &Item) -> (String, String) {
    let text = |property| item.json().get(property).unwrap().as_str().unwrap().into_owned();
    (text("pk"), text("id"))
}

fn upsert(name: &str, number: u64, key: &str) -> Operation {
    let body = format!(r#"{{"id":"{name}","pk":"{key}","n":{number}}}"#);
    Operation::Upsert {
        document: Document::parse(body.into(), &Limits::default()).unwrap(),
        if_match: None,
    }
}

/// What the container holds, by key and id.
fn held(fixture: &Fixture, container: &Arc<Container>) -> BTreeMap<(String, String), String> {
    let (mut held, mut after) = (BTreeMap::new(), None);
    while let Some(page) = block_on(fixture.cluster.list(
        container,
        (&EpkRange::full(), None),
        after.as_ref(),
        (100, u64::MAX),
    ))
    .unwrap()
    {
        held.extend(page.value.items.iter().map(|item| (name(item), item.json().text().into())));
        after = page.value.rest;
        if after.is_none() {
            break;
        }
    }
    held
}

/// A follower ends up with all that is there, in the versions that are there.
fn assert_has_all(follower: &Follower, held: &BTreeMap<(String, String), String>) {
    for (name, text) in held {
        assert_eq!(follower.seen.get(name).map(|(_, text)| text), Some(text), "{name:?}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Upsert { key: u8, names: Vec<u8> },
    Delete { key: u8, name: u8 },
    Split(u8),
    Merge(u8),
    Follow,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..12_u8, prop::collection::vec(0..4_u8, 1..4))
            .prop_map(|(key, names)| Step::Upsert { key, names }),
        2 => (0..12_u8, 0..4_u8).prop_map(|(key, name)| Step::Delete { key, name }),
        1 => any::<u8>().prop_map(Step::Split),
        1 => any::<u8>().prop_map(Step::Merge),
        4 => Just(Step::Follow),
        1 => Just(Step::Reopen),
    ]
}

fn perform(fixture: &mut Fixture, follower: &mut Follower, number: u64, step: Step) {
    let container = fixture.container(1);
    let ranges: Vec<PartitionId> =
        container.map().ranges().iter().map(|record| record.id).collect();
    match step {
        Step::Upsert { key, names } => {
            let key = format!("key-{key}");
            let operations =
                names.iter().map(|name| upsert(&name.to_string(), number, &key)).collect();
            let command = Command { position: common::position(&key), operations };
            block_on(fixture.cluster.apply(&container, command)).unwrap();
        }
        Step::Delete { key, name } => {
            let delete = Operation::Delete { id: id(&name.to_string()), if_match: None };
            let position = common::position(&format!("key-{key}"));
            // It may not be there, which is fine.
            let _ = block_on(
                fixture.cluster.apply(&container, Command { position, operations: vec![delete] }),
            );
        }
        Step::Split(at) if ranges.len() < 12 => {
            let range = ranges[usize::from(at) % ranges.len()];
            block_on(fixture.cluster.split(&container, range, Halve::Hashes)).unwrap();
        }
        Step::Merge(at) if ranges.len() > 1 => {
            let at = usize::from(at) % (ranges.len() - 1);
            block_on(fixture.cluster.merge(&container, &ranges[at..at + 2])).unwrap();
        }
        Step::Split(_) | Step::Merge(_) => {}
        Step::Follow => {
            follower.step(fixture, &container);
        }
        Step::Reopen => fixture.reopen(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_follower_misses_nothing_and_sees_nothing_twice(
        steps in prop::collection::vec(step(), 1..80), items_max in 1..6_usize, start in 1..4_u32
    ) {
        let mut fixture = Fixture::new(memory::create());
        fixture.create_container(1, start);
        let mut follower = Follower::new(items_max);
        for (number, step) in (0..).zip(steps) {
            perform(&mut fixture, &mut follower, number, step);
        }
        let container = fixture.container(1);
        follower.drain(&fixture, &container);
        assert_has_all(&follower, &held(&fixture, &container));
    }
}

#[test]
fn a_follower_keeps_up_while_others_write_and_layouts_change() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    let (stop, mut follower) = (AtomicBool::new(false), Follower::new(7));
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (cluster, container, stop) = (&fixture.cluster, &container, &stop);
            scope.spawn(move || {
                for turn in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                    let key = format!("w{writer}-{}", turn % 13);
                    let operations = vec![upsert(&format!("{}", turn % 7), turn, &key)];
                    let command = Command { position: common::position(&key), operations };
                    block_on(cluster.apply(container, command)).unwrap();
                }
            });
        }
        for turn in 0..30 {
            let ranges: Vec<PartitionId> =
                container.map().ranges().iter().map(|record| record.id).collect();
            if turn % 3 == 2 && ranges.len() > 1 {
                block_on(fixture.cluster.merge(&container, &ranges[..2])).unwrap();
            } else {
                let range = ranges[turn % ranges.len()];
                block_on(fixture.cluster.split(&container, range, Halve::Hashes)).unwrap();
            }
            for _ in 0..5 {
                follower.step(&fixture, &container);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    follower.drain(&fixture, &container);
    let held = held(&fixture, &container);
    assert!(!held.is_empty());
    assert_has_all(&follower, &held);
}

fn read(fixture: &Fixture, request: Changes) -> ChangePage {
    let served = block_on(fixture.cluster.list_changes(&fixture.container(1), request, MINUTE));
    served.unwrap().value
}

fn numbers(page: &ChangePage) -> Vec<String> {
    page.items.iter().map(|item| name(item).1).collect()
}

/// Its items come together, in the order of its operations, however small a page is.
#[test]
fn a_commit_is_not_cut() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    for names in [vec!["a"], vec!["z", "c", "b"], vec!["d"]] {
        let operations = names.iter().map(|name| upsert(name, 1, "key")).collect();
        let command = Command { position: common::position("key"), operations };
        block_on(fixture.cluster.apply(&container, command)).unwrap();
    }
    let all = changes(&EpkRange::full(), Lsn::ZERO);
    let page = read(&fixture, Changes { items_max: 2, ..all.clone() });
    assert_eq!(numbers(&page), ["a"]);
    let after = page.cut.unwrap();
    let page = read(&fixture, Changes { items_max: 2, after: Some(after), ..all.clone() });
    assert_eq!(numbers(&page), ["z", "c", "b"]);
    let after = page.cut.unwrap();
    let page = read(&fixture, Changes { items_max: 2, after: Some(after), ..all.clone() });
    assert_eq!((numbers(&page), page.cut), (vec!["d".to_owned()], None));
    let page = read(&fixture, Changes { bytes_max: 1, ..all });
    assert_eq!(numbers(&page), ["a"], "one commit fits always");
}

/// A restored copy is asked for positions that it never reached. Those of a parent are
/// different: its children begin where it ended, whatever they have written themselves.
#[test]
fn a_position_beyond_the_end_is_told_from_that_of_a_parent() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    for number in 0..5 {
        block_on(fixture.cluster.apply(&container, create("key", &id(&number.to_string()))))
            .unwrap();
    }
    // The first was the second commit.
    let end = 6;
    block_on(fixture.cluster.split(&container, PartitionId(0), Halve::Hashes)).unwrap();
    fixture.reopen();
    let container = fixture.container(1);
    let list = |within: &EpkRange, after: Option<u64>| {
        let request = Changes { after: after.map(Lsn::from_u64), ..changes(within, Lsn::ZERO) };
        block_on(fixture.cluster.list_changes(&container, request, MINUTE))
    };
    for child in container.map().ranges() {
        assert!(list(&child.range, Some(end)).unwrap().value.items.is_empty(), "the parent's end");
        assert!(list(&child.range, None).unwrap().value.items.is_empty(), "from now on");
        let end = child.lsn_floor;
        for beyond in [end.next(), Lsn::from_u64(u64::MAX)] {
            let refused = list(&child.range, Some(beyond.get())).map(drop);
            let Err(ClusterError::Read(PartitionError::NoSuchPosition { after, end: known })) =
                refused
            else {
                panic!("{refused:?}");
            };
            assert_eq!((after, known), (beyond, end));
        }
    }
}

#[test]
fn a_time_to_begin_with_is_found_in_every_bucket() {
    let clock = Arc::new(SimulatedClock::new());
    let mut fixture = Fixture::timed(memory::create(), Limits::default(), Arc::clone(&clock));
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    let mut times = Vec::new();
    for number in 0..60 {
        let key = format!("key-{number}");
        block_on(fixture.cluster.apply(&container, create(&key, &id(&number.to_string()))))
            .unwrap();
        let epk = common::position(&key);
        let stored =
            block_on(fixture.cluster.read(&container, (&epk, &id(&number.to_string())), None));
        times.push(stored.unwrap().value.unwrap().stamp.unwrap().ts.secs());
        clock.advance(Duration::from_millis(700));
    }
    let all = changes(&EpkRange::full(), Lsn::ZERO);
    let (first, last) = (times[0], times[59]);
    for since in first - 1..=last + 1 {
        let request = Changes { since: Some(Timestamp::from_millis(since * 1000)), ..all.clone() };
        for seen in [0, 50] {
            // The first was the second commit.
            let after = Some(Lsn::from_u64(seen + 1));
            let request = Changes { after, ..request.clone() };
            let expected = (seen..60).filter(|at| times[usize::try_from(*at).unwrap()] > since);
            let expected: Vec<String> = expected.map(|at| at.to_string()).collect();
            assert_eq!(numbers(&read(&fixture, request)), expected, "since {since}");
        }
    }
}

/// Expired items are gone for all clients, and finding that out was work.
#[test]
fn what_has_expired_is_passed_over() {
    let clock = Arc::new(SimulatedClock::new());
    let mut fixture = Fixture::timed(memory::create(), Limits::default(), Arc::clone(&clock));
    fixture.create_expiring(1, 60);
    let container = fixture.container(1);
    for number in 0..6 {
        let command = create(&format!("key-{number}"), &id(&number.to_string()));
        block_on(fixture.cluster.apply(&container, command)).unwrap();
        clock.advance(Duration::from_secs(20));
    }
    let page = read(&fixture, changes(&EpkRange::full(), Lsn::ZERO));
    assert_eq!((numbers(&page), page.passed), (vec!["4".to_owned(), "5".to_owned()], 4));
}

/// Changes of other keys are skipped, and counted: they cost something.
#[test]
fn a_part_of_the_ring_has_its_own_changes() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    for number in 0..40 {
        let command = create(&format!("key-{}", number % 4), &id(&number.to_string()));
        block_on(fixture.cluster.apply(&container, command)).unwrap();
    }
    let within = EpkRange::of(common::position("key-1"));
    let page = read(&fixture, Changes { items_max: 5, ..changes(&within, Lsn::ZERO) });
    assert_eq!(numbers(&page), ["1", "5", "9", "13", "17"]);
    let rest = read(&fixture, changes(&within, page.cut.unwrap()));
    assert_eq!((numbers(&rest).len(), rest.cut), (5, None));
    assert!(page.passed + rest.passed <= 30);
    let nobody = EpkRange::of(common::position("nobody"));
    assert!(read(&fixture, changes(&nobody, Lsn::ZERO)).items.is_empty());
}

/// A request for more than one range has is refused.
#[test]
fn changes_of_several_ranges_are_refused() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 2);
    let request = changes(&EpkRange::full(), Lsn::ZERO);
    let refused =
        block_on(fixture.cluster.list_changes(&fixture.container(1), request, MINUTE)).unwrap_err();
    assert!(matches!(refused, ClusterError::NoRange(PartitionId(0))), "{refused}");
}

#[test]
fn a_page_that_runs_out_of_time_says_how_far_it_came() {
    let mut fixture = Fixture::new(memory::create());
    fixture.create_container(1, 1);
    let container = fixture.container(1);
    // Enough of them in whichever bucket it is.
    for number in 0..1600 {
        let command = create(&format!("other-{number}"), &id("1"));
        block_on(fixture.cluster.apply(&container, command)).unwrap();
    }
    block_on(fixture.cluster.apply(&container, create("mine", &id("mine")))).unwrap();
    let within = EpkRange::of(common::position("mine"));
    let (mut after, mut pages) = (Lsn::ZERO, 0);
    loop {
        let request = changes(&within, after);
        let served = block_on(fixture.cluster.list_changes(&container, request, Duration::ZERO));
        let page = served.unwrap().value;
        pages += 1;
        match page.cut {
            Some(cut) => assert!(cut > after && page.items.is_empty()),
            None => break assert_eq!(numbers(&page), ["mine"]),
        }
        after = page.cut.unwrap();
    }
    assert!(pages > 2, "{pages}");
}
