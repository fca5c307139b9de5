//! Numbers that others have published about the service: partitions, boundaries, keys.
//!
//! The facts lie outside the repository; without them a line says what was skipped, and
//! with `CI=true` their absence fails.

use crate::fixture::Fixture;
use model::epk::Epk;
use model::json::{self, Value};
use service::{Feed, Throughput};

fn facts(name: &str) -> Option<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/partitioning/");
    let text = std::fs::read_to_string(format!("{folder}{name}")).ok();
    if text.is_none() {
        println!("left out: {name} is not there");
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{name} is needed here");
    }
    text
}

#[test]
fn fresh_containers_have_the_published_boundaries() {
    let Some(text) = facts("boundaries.json") else { return };
    let published = json::parse(text.as_bytes()).unwrap();
    let fixture = Fixture::new();
    for (name, version) in [("v1", 1), ("v2", 2)] {
        for (count, bounds) in published.get(name).unwrap().as_object().unwrap().iter() {
            // Six thousand for each partition, as the service plans them.
            let rate = 6_000 * count.parse::<u32>().unwrap();
            let container = format!("{name}-{count}");
            fixture.create_container(&container, version, Throughput::Manual(rate));
            let ranges = fixture.ranges(&container);
            let expected = bounds.as_array().unwrap().iter().map(|bound| bound.as_str().unwrap());
            let found: Vec<String> = ranges[1..].iter().map(|r| r.range.min.to_string()).collect();
            assert_eq!(found, expected.collect::<Vec<_>>(), "{container}");
        }
    }
}

#[test]
fn published_keys_are_served_by_the_range_that_holds_their_hash() {
    let Some(text) = facts("boundaries.json") else { return };
    let published = json::parse(text.as_bytes()).unwrap();
    let fixture = Fixture::new();
    fixture.create_container("v1", 1, Throughput::Manual(30_000));
    fixture.create_container("v2", 2, Throughput::Manual(30_000));
    let mut checked = 0;
    for (key, hashes) in published.get("article_keys").unwrap().as_object().unwrap().iter() {
        for (container, hash) in hashes.as_object().unwrap().iter() {
            let epk = Epk::from_hex(hash.as_str().unwrap()).unwrap();
            let body = format!(r#"{{"id":"1","pk":"{key}"}}"#);
            let served = fixture.create_item(container, body).unwrap().meta.served_by().unwrap().0;
            let ranges = fixture.ranges(container);
            let owner = ranges.iter().find(|range| range.range.contains(&epk)).unwrap();
            assert_eq!(served, owner.id, "{key} in {container}");
            checked += 1;
        }
    }
    assert!(checked >= 10, "only {checked} keys");
}

#[test]
fn throughput_at_creation_gives_the_published_number_of_partitions() {
    let Some(text) = facts("scaling_cases.csv") else { return };
    let fixture = Fixture::new();
    let mut checked = 0;
    for line in text.lines().filter(|line| line.ends_with(",2026")) {
        let [case, "create", _, action, partitions, ..] = *line.split(',').collect::<Vec<_>>()
        else {
            continue;
        };
        let (words, rate) = action.rsplit_once(' ').unwrap();
        let rate = rate.parse().unwrap();
        let throughput = match words {
            "create manual" => Throughput::Manual(rate),
            "create autoscale max" => Throughput::Autoscale { max: rate, increment_percent: None },
            other => panic!("{case}: {other} is not known"),
        };
        fixture.create_container(case, 2, throughput);
        assert_eq!(fixture.ranges(case).len().to_string(), partitions, "{case}");
        checked += 1;
    }
    assert!(checked >= 3, "only {checked} cases");
}

/// L2: as many logical partitions as there are values of the key.
#[test]
fn a_thousand_users_are_a_thousand_logical_partitions() {
    let fixture = Fixture::new();
    for (container, rate) in [("one", 400), ("five", 30_000)] {
        fixture.create_container(container, 2, Throughput::Manual(rate));
        let before = fixture.logical_partitions();
        for user in 0..1_000 {
            let body = format!(r#"{{"id":"profile","pk":"user-{user}"}}"#);
            fixture.create_item(container, body).unwrap();
        }
        assert_eq!(fixture.logical_partitions() - before, 1_000);
        let mut counts = std::collections::BTreeMap::new();
        for user in 0..1_000 {
            let body = format!(r#"{{"id":"order","pk":"user-{user}"}}"#);
            let range = fixture.create_item(container, body).unwrap().meta.served_by().unwrap().0;
            *counts.entry(range).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), fixture.ranges(container).len(), "every range has some");
        assert_eq!(fixture.logical_partitions() - before, 1_000);
    }
}

/// L1: no item is in two logical partitions, and every item is in a list.
#[test]
fn a_list_gives_every_item_once_over_all_partitions() {
    let fixture = Fixture::new();
    fixture.create_container("five", 2, Throughput::Manual(30_000));
    for number in 0..300 {
        let body = format!(r#"{{"id":"{number}","pk":"key-{}"}}"#, number % 70);
        fixture.create_item("five", body).unwrap();
    }
    for items_max in [1, 13, 300, 5_000] {
        let mut ids = Vec::new();
        let mut after = None;
        loop {
            let Feed { bodies, rest, .. } = fixture.page("five", after, items_max);
            assert!(bodies.len() <= items_max.min(1_000));
            let id = |body: &[u8]| {
                json::parse(body).unwrap().get("id").and_then(Value::as_str).map(str::to_owned)
            };
            ids.extend(bodies.iter().map(|body| id(body).unwrap()));
            match rest {
                Some(position) => after = Some(position),
                None => break,
            }
        }
        ids.sort();
        let length = ids.len();
        ids.dedup();
        assert_eq!((length, ids.len()), (300, 300), "pages of {items_max}");
    }
}
