//! Expired items leave the store, and nothing else does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cluster::{Cluster, ClusterError, Container, ContainerSpec, Halve, PartitionId};
use model::epk::EpkRange;
use model::json;
use model::limits::Limits;
use model::policy::ContainerDefinition;
use partition::{Command, Document, Operation};
use proptest::prelude::*;
use runtime::SimulatedClock;
use storage::memory;
use testkit::wait::block_on;

use crate::common::{self, Fixture};

struct Lab {
    fixture: Fixture,
    clock: Arc<SimulatedClock>,
    container: Arc<Container>,
}

impl Lab {
    /// A container with this `defaultTtl`, if any.
    fn new(default_ttl: Option<i32>) -> Lab {
        let clock = Arc::new(SimulatedClock::new());
        let fixture = Fixture::timed(memory::create(), Limits::default(), Arc::clone(&clock));
        let ttl = default_ttl.map(|ttl| format!(r#","defaultTtl":{ttl}"#)).unwrap_or_default();
        let body = format!(r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"version":2}}{ttl}}}"#);
        let definition =
            ContainerDefinition::parse(&json::parse(body.as_bytes()).unwrap()).unwrap();
        let spec = ContainerSpec { definition: Arc::new(definition), ..common::spec(1) };
        let container = block_on(fixture.cluster.create_container(spec, 1, Vec::new())).unwrap();
        Lab { fixture, clock, container }
    }

    fn cluster(&self) -> &Cluster {
        &self.fixture.cluster
    }

    fn upsert(&self, key: &str, ids: &[(String, Option<i32>)]) {
        self.try_upsert(key, ids).unwrap();
    }

    fn try_upsert(&self, key: &str, ids: &[(String, Option<i32>)]) -> Result<(), ClusterError> {
        let operations = ids.iter().map(|(id, ttl)| {
            let ttl = ttl.map(|ttl| format!(r#","ttl":{ttl}"#)).unwrap_or_default();
            let body = format!(r#"{{"id":"{id}","pk":"{key}"{ttl}}}"#);
            let document = Document::parse(body.into(), &Limits::default()).unwrap();
            Operation::Upsert { document, if_match: None }
        });
        let position = common::position(key);
        let command = Command { position, operations: operations.collect() };
        block_on(self.cluster().apply(&self.container, command)).map(|_| ())
    }

    fn expire(&self) -> u64 {
        block_on(self.cluster().expire(&self.container)).unwrap()
    }

    /// Items that clients see, and items that are stored.
    fn counts(&self) -> (usize, u64) {
        let (mut seen, mut after) = (0, None);
        while let Some(page) = block_on(self.cluster().list(
            &self.container,
            (&EpkRange::full(), None),
            after.as_ref(),
            (100, u64::MAX),
        ))
        .unwrap()
        {
            seen += page.value.items.len();
            after = page.value.rest;
            if after.is_none() {
                break;
            }
        }
        let (_, sizes) = block_on(self.cluster().sizes(self.container.layout())).unwrap();
        (seen, sizes.iter().map(|size| size.items).sum())
    }

    fn is_clean(&self) -> bool {
        self.cluster().check(&[], |_| {}).unwrap().is_clean()
    }
}

fn one(id: &str, ttl: Option<i32>) -> Vec<(String, Option<i32>)> {
    vec![(id.to_owned(), ttl)]
}

#[test]
fn what_is_due_goes_and_the_rest_stays() {
    let lab = Lab::new(Some(60));
    for number in 0..200 {
        lab.upsert(&format!("key-{number}"), &one("default", None));
        lab.upsert(&format!("key-{number}"), &one("short", Some(10)));
        lab.upsert(&format!("key-{number}"), &one("long", Some(1_000 + number)));
        lab.upsert(&format!("key-{number}"), &one("never", Some(-1)));
    }
    assert_eq!((lab.expire(), lab.counts()), (0, (800, 800)));
    for (secs, gone, left) in [(11, 200, 600), (50, 200, 400), (1_300, 200, 200)] {
        lab.clock.advance(Duration::from_secs(secs));
        assert_eq!(lab.counts().0, left, "clients see them no more");
        assert_eq!(lab.expire(), gone);
        assert_eq!(lab.counts().1, left as u64);
        assert_eq!(lab.expire(), 0, "they are gone once");
    }
    assert!(lab.is_clean());
}

/// Without a default, a ttl of an item's own means nothing; with `-1` it does.
#[test]
fn the_policy_decides_whether_anything_expires() {
    for (default, gone) in [(None, 0), (Some(-1), 1)] {
        let lab = Lab::new(default);
        lab.upsert("key", &one("own", Some(5)));
        lab.upsert("key", &one("none", None));
        lab.clock.advance(Duration::from_secs(1_000_000));
        assert_eq!((lab.expire(), lab.counts().1), (gone, 2 - gone), "{default:?}");
    }
}

/// A partition may be replaced between being found and being called. The others are
/// searched nevertheless.
#[test]
fn layouts_may_change_meanwhile() {
    let lab = Lab::new(Some(60));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    lab.expire();
                }
            });
        }
        scope.spawn(|| {
            for number in (0_u64..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                let key = format!("key-{}", number % 50);
                let written = lab.try_upsert(&key, &one(&number.to_string(), None));
                // Layouts change faster here than anywhere else.
                assert!(matches!(written, Ok(()) | Err(ClusterError::Busy)), "{written:?}");
                lab.clock.advance(Duration::from_secs(10));
            }
        });
        for _ in 0..60 {
            let ids = || lab.container.map().ranges().iter().map(|it| it.id).collect::<Vec<_>>();
            block_on(lab.cluster().split(&lab.container, ids()[0], Halve::Hashes)).unwrap();
            block_on(lab.cluster().merge(&lab.container, &ids())).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    lab.clock.advance(Duration::from_secs(61));
    lab.expire();
    assert_eq!(lab.counts(), (0, 0));
    assert!(lab.is_clean());
}

/// More different ttls than one search covers, and old items that never expire before those
/// that do.
#[test]
fn a_search_goes_on_where_the_last_one_ended() {
    let lab = Lab::new(Some(60));
    for number in 0..2_500 {
        lab.upsert("key", &one(&format!("far-{number}"), Some(1_000_000 + number)));
    }
    lab.upsert("key", &one("default", None));
    lab.upsert("key", &one("own", Some(2_000_000)));
    lab.clock.advance(Duration::from_secs(61));
    let searches = (1..10).find(|_| lab.expire() > 0);
    assert!(searches.is_some_and(|searches| searches > 1), "{searches:?}");
    lab.clock.advance(Duration::from_secs(2_000_000));
    while lab.expire() > 0 {}
    assert_eq!(lab.counts(), (0, 0));
    assert!(lab.is_clean());
}

#[derive(Clone, Debug)]
enum Step {
    Upsert { key: u8, ids: Vec<(u8, Option<i32>)> },
    Wait(u8),
    Expire,
    Split(u8),
    Merge,
}

fn step() -> impl Strategy<Value = Step> {
    let ttl = prop_oneof![Just(None), Just(Some(-1)), (1..20_i32).prop_map(Some)];
    prop_oneof![
        6 => (0..8_u8, prop::collection::vec((0..5_u8, ttl), 1..4))
            .prop_map(|(key, ids)| Step::Upsert { key, ids }),
        3 => (0..15_u8).prop_map(Step::Wait),
        3 => Just(Step::Expire),
        1 => any::<u8>().prop_map(Step::Split),
        1 => Just(Step::Merge),
    ]
}

fn perform(lab: &Lab, step: Step) {
    let ranges: Vec<PartitionId> =
        lab.container.map().ranges().iter().map(|record| record.id).collect();
    match step {
        Step::Upsert { key, ids } => {
            let ids: Vec<_> = ids.into_iter().map(|(id, ttl)| (id.to_string(), ttl)).collect();
            lab.upsert(&format!("key-{key}"), &ids);
        }
        Step::Wait(secs) => lab.clock.advance(Duration::from_secs(secs.into())),
        Step::Expire => {
            let before = lab.counts().0;
            lab.expire();
            assert_eq!(lab.counts(), (before, before as u64), "what is left is what is seen");
        }
        Step::Split(at) if ranges.len() < 12 => {
            let range = ranges[usize::from(at) % ranges.len()];
            block_on(lab.cluster().split(&lab.container, range, Halve::Hashes)).unwrap();
        }
        Step::Merge if ranges.len() > 1 => {
            block_on(lab.cluster().merge(&lab.container, &ranges[..2])).unwrap();
        }
        Step::Split(_) | Step::Merge => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_is_stored_is_what_is_seen(
        steps in prop::collection::vec(step(), 1..60),
        default in prop_oneof![Just(Some(-1)), (1..20_i32).prop_map(Some)],
    ) {
        let lab = Lab::new(default);
        for step in steps {
            perform(&lab, step);
        }
        prop_assert!(lab.is_clean());
    }
}
