//! 18,000 RU/s on three physical partitions, in simulated time: the articles' statements
//! about even use and hot partitions, deterministically.

use std::time::Duration;

use model::name::ItemId;
use model::partition_key::PartitionKey;
use service::{Batch, Caller, ItemOperation, Priority, ServiceError, Throughput, ThroughputRules};

use crate::fixture::Fixture;

const KEYS: u32 = 60;
/// Items of each key: reading them at once costs as many RU.
const ITEMS: u32 = 24;
const SHARE: f64 = 6_000.0;

struct Load {
    fixture: Fixture,
    /// The keys of each physical partition.
    places: Vec<Vec<String>>,
}

impl Load {
    fn new() -> Load {
        let fixture = Fixture::throttled(ThroughputRules::default());
        fixture.create_container("c", 2, Throughput::Manual(18_000));
        let mut places = vec![Vec::new(); 3];
        for key in (0..KEYS).map(|key| format!("key {key}")) {
            let item = |id| ItemOperation::Create {
                body: format!(r#"{{"id":"{id}","pk":"{key}"}}"#).into(),
            };
            let operations = (0..ITEMS).map(item).collect();
            let key_of = PartitionKey::new([key.as_str()]);
            let action = Batch { key: key_of, operations, session: None };
            let created = fixture.within("c", action).unwrap();
            let (range, _) = created.meta.served_by().unwrap();
            places[usize::try_from(range.0).unwrap()].push(key);
            fixture.advance(Duration::from_secs(1));
        }
        Load { fixture, places }
    }

    /// Reads all items of a key; returns the charge, unless it was throttled.
    fn read(&self, key: &str, caller: Caller) -> Option<f64> {
        let read = |id: u32| ItemOperation::Read {
            id: ItemId::parse(&id.to_string()).unwrap(),
            if_none_match: None,
        };
        let operations = (0..ITEMS).map(read).collect();
        let action = Batch { key: PartitionKey::new([key]), operations, session: None };
        match self.fixture.within_as("c", action, caller) {
            Ok(response) => Some(response.meta.charge.request_units()),
            Err(ServiceError::Throttled { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Asks each list of keys in turn for a rate of RU/s, for some seconds; returns what
    /// each was served in RU/s, and how often it was throttled.
    fn run(&self, wanted: &[(&[String], f64)], caller: Caller) -> Vec<(f64, u32)> {
        const WARM_UP: u32 = 3;
        const SECS: u32 = 4;
        const TICKS: u32 = 2_000;
        let mut outcome = vec![(0.0, 0); wanted.len()];
        let mut due = vec![0.0; wanted.len()];
        for tick in 0..(WARM_UP + SECS) * TICKS {
            for (((keys, rate), due), outcome) in wanted.iter().zip(&mut due).zip(&mut outcome) {
                *due += rate / f64::from(TICKS);
                while *due >= f64::from(ITEMS) {
                    *due -= f64::from(ITEMS);
                    let key = &keys[usize::try_from(tick).unwrap() * 7 % keys.len()];
                    let served = self.read(key, caller);
                    // Savings have to be used up first.
                    if tick >= WARM_UP * TICKS {
                        outcome.0 += served.unwrap_or_default() / f64::from(SECS);
                        outcome.1 += u32::from(served.is_none());
                    }
                }
            }
            self.fixture.advance(Duration::from_secs(1) / TICKS);
        }
        outcome
    }
}

#[test]
fn even_use_reaches_all_and_a_hot_key_only_its_partition() {
    let load = Load::new();
    let all: Vec<String> = load.places.concat();
    let [(uniform, _)] = *load.run(&[(&all, 2.0 * 3.0 * SHARE)], Caller::default()) else {
        panic!("one load")
    };
    assert!((0.95..=1.01).contains(&(uniform / (3.0 * SHARE))), "{uniform}");

    let hot = &load.places[0][..1];
    let others = [&load.places[1][..], &load.places[2][..]].concat();
    let outcome = load.run(&[(hot, 2.0 * SHARE), (&others, 1.5 * SHARE)], Caller::default());
    let [(hot, hot_refused), (others, others_refused)] = *outcome else { panic!("two loads") };
    assert!((0.95..=1.01).contains(&(hot / SHARE)), "{hot}");
    assert!(hot_refused > 0);
    assert!((0.99..=1.01).contains(&(others / (1.5 * SHARE))), "{others}");
    assert_eq!(others_refused, 0, "the others do not notice");
}

#[test]
fn the_keys_of_a_partition_share_what_it_has() {
    let load = Load::new();
    let (one, two) = (&load.places[1][..1], &load.places[1][1..2]);
    let outcome = load.run(&[(one, SHARE), (two, SHARE)], Caller::default());
    let together: f64 = outcome.iter().map(|(served, _)| served).sum();
    assert!((0.95..=1.01).contains(&(together / SHARE)), "{outcome:?}");
}

#[test]
fn low_priority_alone_gets_everything() {
    let load = Load::new();
    let low = Caller { priority: Priority::Low, bucket: None };
    let outcome = load.run(&[(&load.places[2], 2.0 * SHARE)], low);
    assert!((0.95..=1.01).contains(&(outcome[0].0 / SHARE)), "{outcome:?}");
}
