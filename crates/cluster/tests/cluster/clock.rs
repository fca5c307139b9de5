//! A clock that was wrong: years ahead for one write, then right again.

use std::sync::Arc;
use std::time::Duration;

use cluster::{ClusterError, Container, Halve, PartitionId};
use model::epk::EpkRange;
use model::limits::Limits;
use model::position::{Lsn, Timestamp};
use partition::{Changes, Command, Operation, PartitionError};
use runtime::SimulatedClock;
use storage::memory;
use testkit::wait::block_on;

use crate::common::{self, Fixture, create, id};

const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);
const MINUTE: Duration = Duration::from_secs(60);
const TTL_SECS: u64 = 600;

struct Lab {
    fixture: Fixture,
    clock: Arc<SimulatedClock>,
}

impl Lab {
    fn new() -> Lab {
        let clock = Arc::new(SimulatedClock::new());
        let mut fixture = Fixture::timed(memory::create(), Limits::default(), Arc::clone(&clock));
        fixture.create_expiring(1, u32::try_from(TTL_SECS).unwrap());
        Lab { fixture, clock }
    }

    fn container(&self) -> Arc<Container> {
        self.fixture.container(1)
    }

    fn at(&self, since: Duration) {
        self.clock.set(SimulatedClock::EPOCH.plus(since));
    }

    fn create(&self, name: &str) -> Result<(), ClusterError> {
        let command = create("key", &id(name));
        block_on(self.fixture.cluster.apply(&self.container(), command)).map(drop)
    }

    /// `_ts` in seconds after the beginning, if the item is there.
    fn ts(&self, name: &str) -> Option<u64> {
        let epk = common::position("key");
        let read = block_on(self.fixture.cluster.read(&self.container(), (&epk, &id(name)), None));
        let stamp = read.unwrap().value.ok()?.stamp?;
        Some(stamp.ts.secs() - SimulatedClock::EPOCH.as_unix_seconds())
    }

    fn changed_since(&self, secs: u64) -> Vec<String> {
        let since = Timestamp::from_millis(SimulatedClock::EPOCH.as_unix_ms() + secs * 1_000);
        let (within, items_max, bytes_max) = (EpkRange::full(), usize::MAX, u64::MAX);
        let after = Some(Lsn::ZERO);
        let changes =
            Changes { within, prefix: None, after, since: Some(since), items_max, bytes_max };
        let page = block_on(self.fixture.cluster.list_changes(&self.container(), changes, MINUTE));
        let items = page.unwrap().value.items;
        let name = |item: &partition::Item| item.json().get("id").unwrap().as_str().unwrap().into();
        items.iter().map(name).collect()
    }
}

fn is_refused(result: Result<(), ClusterError>) -> bool {
    match result {
        Err(ClusterError::Command { error, .. }) => {
            matches!(error.problem, PartitionError::ClockBehind { .. })
        }
        Ok(()) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_step_back_within_the_bound_keeps_the_time_of_the_last_write() {
    let lab = Lab::new();
    lab.at(Duration::from_secs(300));
    lab.create("1").unwrap();
    lab.at(Duration::ZERO);
    lab.create("2").unwrap();
    assert_eq!((lab.ts("1"), lab.ts("2")), (Some(300), Some(300)));
    lab.at(Duration::from_millis(300_001));
    lab.create("3").unwrap();
    lab.at(Duration::ZERO);
    assert!(is_refused(lab.create("4")), "a millisecond too far");
}

#[test]
fn beyond_the_bound_nothing_is_written_until_the_clock_agrees() {
    let lab = Lab::new();
    lab.create("before").unwrap();
    lab.at(TEN_YEARS);
    lab.create("wrong").unwrap();
    lab.at(MINUTE);
    assert!(is_refused(lab.create("after")));
    assert_eq!(lab.ts("after"), None, "nothing was written");
    assert_eq!(lab.ts("wrong"), Some(TEN_YEARS.as_secs()), "reads go on");
    let remove = Operation::Delete { id: id("wrong"), if_match: None };
    let position = common::position("key");
    let command = Command { position, operations: vec![remove] };
    block_on(lab.fixture.cluster.apply(&lab.container(), command)).expect("removing goes on");
    assert!(is_refused(lab.create("after")), "the time stays where it is");
    lab.at(TEN_YEARS - MINUTE);
    lab.create("after").unwrap();
    assert_eq!(lab.ts("after"), Some(TEN_YEARS.as_secs()));
}

/// The system partition is ahead as well: dropping a container must still be possible.
#[test]
fn a_container_is_dropped_whatever_the_clock_says() {
    let mut lab = Lab::new();
    lab.at(TEN_YEARS);
    lab.fixture.create_container(2, 1);
    lab.at(MINUTE);
    let refused = block_on(lab.fixture.cluster.create_container(common::spec(3), 1, Vec::new()));
    assert!(is_refused(refused.map(drop)));
    block_on(lab.fixture.drop_container(2));
    assert!(lab.fixture.check().is_clean());
}

#[test]
fn setting_the_time_back_lets_writes_and_ttl_go_on() {
    let mut lab = Lab::new();
    lab.create("before").unwrap();
    lab.at(TEN_YEARS);
    for name in ["wrong 1", "wrong 2"] {
        lab.create(name).unwrap();
    }
    lab.fixture.create_container(2, 1);
    lab.at(MINUTE);
    let ahead = lab.fixture.cluster.ahead().unwrap();
    assert_eq!(ahead.len(), 2, "the container and the system: {ahead:?}");
    assert!(ahead.iter().all(|one| one.by == TEN_YEARS - MINUTE), "{ahead:?}");
    // The two items, and the map of the second container.
    assert_eq!(block_on(lab.fixture.cluster.reset_time()).unwrap(), 3);
    assert_eq!(lab.fixture.cluster.ahead().unwrap(), []);
    let report = lab.fixture.check();
    assert!(report.is_clean(), "{report:?}");
    lab.at(2 * MINUTE);
    lab.create("after").unwrap();
    let times = ["before", "wrong 1", "wrong 2", "after"].map(|name| lab.ts(name));
    assert_eq!(times, [Some(0), Some(60), Some(60), Some(120)]);
    assert_eq!(lab.changed_since(30), ["wrong 1", "wrong 2", "after"]);
    assert_eq!(lab.changed_since(90), ["after"]);
    // Those that were wrong expire by their new time, and so do those after them.
    lab.at(Duration::from_secs(TTL_SECS + 121));
    assert_eq!(block_on(lab.fixture.cluster.expire(&lab.container())).unwrap(), 4);
    assert!(lab.fixture.check().is_clean());
    assert_eq!(block_on(lab.fixture.cluster.reset_time()).unwrap(), 0, "once is enough");
}

#[test]
fn children_of_a_partition_that_is_ahead_are_set_back_as_well() {
    let lab = Lab::new();
    lab.at(TEN_YEARS);
    for number in 0..20 {
        let command = create(&format!("key-{number}"), &id("1"));
        block_on(lab.fixture.cluster.apply(&lab.container(), command)).unwrap();
    }
    let container = lab.container();
    block_on(lab.fixture.cluster.split(&container, PartitionId(0), Halve::Bytes)).unwrap();
    lab.at(MINUTE);
    assert_eq!(block_on(lab.fixture.cluster.reset_time()).unwrap(), 21, "items and the map");
    assert_eq!(lab.fixture.cluster.ahead().unwrap(), []);
    for number in 0..20 {
        let command = create(&format!("key-{number}"), &id("2"));
        block_on(lab.fixture.cluster.apply(&container, command)).unwrap();
    }
    assert!(lab.fixture.check().is_clean());
}
