//! Following all versions and deletes while layouts change: every operation once, and those of
//! a key in their order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use cluster::{ClusterError, Container, Halve, PartitionId};
use model::epk::EpkRange;
use model::limits::Limits;
use model::position::Lsn;
use partition::{Changes, Command, Document, History, HistoryKind, HistoryRecord, Operation};
use proptest::prelude::*;
use storage::memory;
use testkit::wait::block_on;

use crate::common::{self, Fixture, id};

const MINUTE: Duration = Duration::from_secs(60);

/// What was done to the items of each key: `+id n`, `=id n`, `-id n`, with the value that the
/// item got or had.
type Story = BTreeMap<String, Vec<String>>;

/// Keeps a position for each part of the ring, as SDKs do.
struct Follower {
    parts: VecDeque<(EpkRange, Lsn)>,
    story: Story,
    items_max: usize,
}

impl Follower {
    fn step(&mut self, fixture: &Fixture, container: &Arc<Container>) -> bool {
        let (within, after) = self.parts.pop_front().unwrap();
        let history = History(Changes {
            within: within.clone(),
            prefix: None,
            after: Some(after),
            since: None,
            items_max: self.items_max,
            bytes_max: u64::MAX,
        });
        match block_on(fixture.cluster.list_history(container, history, MINUTE)) {
            Ok(served) => {
                let page = served.value;
                let last = page.records.last().map_or(after, |record| record.mark.lsn);
                let through = page.cut.unwrap_or(last.max(served.lsn).max(after));
                self.parts.push_back((within, through));
                for record in &page.records {
                    self.story.entry(text(record, "pk")).or_default().push(told(record));
                }
                !page.records.is_empty()
            }
            Err(ClusterError::NoRange(_)) => {
                for record in container.map().ranges() {
                    if let Some(part) = record.range.intersect(&within) {
                        self.parts.push_front((part, after));
                    }
                }
                true
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn drain(&mut self, fixture: &Fixture, container: &Arc<Container>) {
        let mut idle = 0;
        while idle <= self.parts.len() {
            idle = if self.step(fixture, container) { 0 } else { idle + 1 };
        }
    }
}

fn text(record: &HistoryRecord, property: &str) -> String {
    record.json().get(property).unwrap().as_str().unwrap().into_owned()
}

fn told(record: &HistoryRecord) -> String {
    let sign = match record.kind {
        HistoryKind::Create => '+',
        HistoryKind::Replace => '=',
        HistoryKind::Delete | HistoryKind::Expiry => '-',
    };
    let number = record.json().get("n").unwrap();
    format!("{sign}{} {}", text(record, "id"), number.text())
}

/// The oracle: what there is, and all that was done.
#[derive(Default)]
struct Model {
    items: BTreeMap<(String, String), u64>,
    story: Story,
}

impl Model {
    fn upsert(&mut self, key: &str, name: &str, number: u64) {
        let before = self.items.insert((key.to_owned(), name.to_owned()), number);
        let sign = if before.is_some() { '=' } else { '+' };
        self.story.entry(key.to_owned()).or_default().push(format!("{sign}{name} {number}"));
    }

    fn delete(&mut self, key: &str, name: &str) {
        if let Some(number) = self.items.remove(&(key.to_owned(), name.to_owned())) {
            self.story.entry(key.to_owned()).or_default().push(format!("-{name} {number}"));
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Upsert { key: u8, names: Vec<u8> },
    Delete { key: u8, name: u8 },
    Split { at: u8, halve: Halve },
    Merge(u8),
    Follow,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let halve = prop_oneof![Just(Halve::Hashes), Just(Halve::Bytes)];
    prop_oneof![
        6 => (0..12_u8, prop::collection::vec(0..4_u8, 1..4))
            .prop_map(|(key, names)| Step::Upsert { key, names }),
        3 => (0..12_u8, 0..4_u8).prop_map(|(key, name)| Step::Delete { key, name }),
        1 => (any::<u8>(), halve).prop_map(|(at, halve)| Step::Split { at, halve }),
        1 => any::<u8>().prop_map(Step::Merge),
        4 => Just(Step::Follow),
        1 => Just(Step::Reopen),
    ]
}

fn apply(fixture: &Fixture, key: &str, operations: Vec<Operation>) -> bool {
    let command = Command { position: common::position(key), operations };
    block_on(fixture.cluster.apply(&fixture.container(HISTORY), command)).is_ok()
}

const HISTORY: u32 = common::WITH_HISTORY;

fn perform(
    fixture: &mut Fixture,
    follower: &mut Follower,
    model: &mut Model,
    (number, step): (u64, Step),
) {
    let container = fixture.container(HISTORY);
    let ranges: Vec<PartitionId> =
        container.map().ranges().iter().map(|record| record.id).collect();
    match step {
        Step::Upsert { key, names } => {
            let key = format!("key-{key}");
            let names: Vec<String> = names.iter().map(u8::to_string).collect();
            let upsert = |name: &String| {
                let body = format!(r#"{{"id":"{name}","pk":"{key}","n":{number}}}"#);
                let document = Document::parse(body.into(), &Limits::default()).unwrap();
                Operation::Upsert { document, if_match: None }
            };
            assert!(apply(fixture, &key, names.iter().map(upsert).collect()));
            names.iter().for_each(|name| model.upsert(&key, name, number));
        }
        Step::Delete { key, name } => {
            let (key, name) = (format!("key-{key}"), name.to_string());
            // It may not be there, which is fine.
            apply(fixture, &key, vec![Operation::Delete { id: id(&name), if_match: None }]);
            model.delete(&key, &name);
        }
        Step::Split { at, halve } if ranges.len() < 12 => {
            let range = ranges[usize::from(at) % ranges.len()];
            // Where all bytes are in one key there is nothing to halve.
            let _ = block_on(fixture.cluster.split(&container, range, halve));
        }
        Step::Merge(at) if ranges.len() > 1 => {
            let at = usize::from(at) % (ranges.len() - 1);
            block_on(fixture.cluster.merge(&container, &ranges[at..at + 2])).unwrap();
        }
        Step::Split { .. } | Step::Merge(_) => {}
        Step::Follow => {
            follower.step(fixture, &container);
        }
        Step::Reopen => fixture.reopen(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_follower_is_told_every_operation_once(
        steps in prop::collection::vec(step(), 1..80), items_max in 1..6_usize, start in 1..4_u32
    ) {
        let mut fixture = Fixture::new(memory::create());
        fixture.create_container(HISTORY, start);
        let parts = VecDeque::from([(EpkRange::full(), Lsn::ZERO)]);
        let mut follower = Follower { parts, story: Story::new(), items_max };
        let mut model = Model::default();
        for step in (0..).zip(steps) {
            perform(&mut fixture, &mut follower, &mut model, step);
        }
        let container = fixture.container(HISTORY);
        follower.drain(&fixture, &container);
        prop_assert_eq!(&follower.story, &model.story);
        prop_assert!(fixture.check().is_clean());
        // The same for one that begins now, from the beginning.
        let parts = VecDeque::from([(EpkRange::full(), Lsn::ZERO)]);
        let mut late = Follower { parts, story: Story::new(), items_max };
        late.drain(&fixture, &container);
        prop_assert_eq!(&late.story, &model.story);
    }
}
