//! Physical partitions: who serves which hashes.

use std::collections::BTreeMap;

use serde_json::json as j;

use crate::world::{World, epk, eventually};

#[test]
fn p1_p9_p21_keys_share_ranges_and_nobody_has_to_know() {
    let world = World::new();
    world.container("/k", 18_000).expect(201);
    let mut served: BTreeMap<String, usize> = BTreeMap::new();
    for at in 0..60 {
        let item = j!({"id": "1", "k": at.to_string()});
        *served.entry(world.create_item(&item).expect(201).served_by().to_owned()).or_default() +=
            1;
    }
    assert_eq!(served.len(), 3);
    assert!(served.values().all(|keys| *keys > 1), "{served:?}");
}

#[test]
fn p2_the_hash_of_the_key_decides() {
    let world = World::new();
    world.container("/k", 30_000).expect(201);
    let ranges = world.ranges();
    for at in 0..100 {
        let value = j!(format!("key {at}"));
        let answer = world.create_item(&j!({"id": "1", "k": value})).expect(201);
        let position = epk(2, &value);
        let owner = ranges.iter().find(|range| range.bounds.contains(&position)).expect("an owner");
        assert_eq!(answer.served_by(), owner.id);
    }
}

#[test]
fn p3_a_fresh_ring_is_cut_evenly() {
    let world = World::new();
    world.container("/k", 24_000).expect(201);
    let bounds: Vec<String> =
        world.ranges().iter().map(|range| range.bounds.min.to_string()).collect();
    let quarter = |digits: &str| format!("{digits}{}", "F".repeat(30));
    assert_eq!(bounds, ["".to_owned(), quarter("0F"), quarter("1F"), quarter("2F")]);
}

#[test]
fn p4_p19_throughput_decides_how_many_ranges_there_are() {
    let old = World::with(&["--profile", "2018"]);
    old.container("/k", 20_000).expect(201);
    assert_eq!(old.ranges().len(), 2, "N = T / t");
    let new = World::new();
    new.container("/k", 20_000).expect(201);
    assert_eq!(new.ranges().len(), 4);
}

#[test]
fn p5_each_range_has_its_share_of_the_keys() {
    let world = World::new();
    world.container("/k", 18_000).expect(201);
    let ranges = world.ranges();
    let mut keys = vec![0_u32; ranges.len()];
    for at in 0..100_000 {
        let position = epk(2, &j!(format!("user-{at}")));
        let owner = ranges.iter().position(|range| range.bounds.contains(&position));
        keys[owner.expect("an owner")] += 1;
    }
    for count in keys {
        assert!((32_667..=34_000).contains(&count), "{count} of 100,000 keys");
    }
}

#[test]
fn p6_p12_p18_p20_raising_throughput_splits() {
    let world = World::new();
    world.container("/k", 1_000).expect(201);
    for at in 0..50 {
        world.create_item(&j!({"id": "1", "k": at})).expect(201);
    }
    world.set_throughput(30_000).expect(200);
    wait_until(&world, 3);
    let ids: Vec<String> = world.ranges().into_iter().map(|range| range.id).collect();
    assert_eq!(ids, ["3", "4", "2"]);
    let parents: Vec<Vec<String>> = world.ranges().into_iter().map(|range| range.parents).collect();
    assert_eq!(parents, [vec!["0", "1"], vec!["0", "1"], vec!["0"]]);
    for at in 0..50 {
        world.read_item(&j!(at), "1").expect(200);
    }
}

/// Splits go on in the background: asks until the change of the offer is through.
fn wait_until(world: &World, ranges: usize) {
    eventually("the end of a pending offer", || {
        let offer = world.offer();
        let path = format!("/offers/{}", offer["_rid"].as_str().expect("a resource id"));
        let read = world.get(&path, &[]).expect(200);
        (read.header("x-ms-offer-replace-pending") != "true").then_some(())
    });
    assert_eq!(world.ranges().len(), ranges);
}

#[test]
fn p7_p15_a_partition_that_outgrows_its_storage_splits_in_halves() {
    let world = World::with(&["--scale", "500000", "--throttle", "never"]);
    world.container("/k", 1_000).expect(201);
    // 100 KB is the limit of this model; keys are many and small.
    for at in 0..160 {
        world
            .create_item(&j!({"id": "1", "k": format!("key {at}"), "fill": "x".repeat(500)}))
            .expect(201);
    }
    let parents = wait_for_split(&world);
    assert_eq!(parents, ["0"]);
    let statistics = partitions(&world);
    let sizes: Vec<f64> =
        statistics.iter().map(|one| one["documentCount"].as_f64().unwrap_or(0.0)).collect();
    let total: f64 = sizes.iter().sum();
    assert!((total - 160.0).abs() < 0.5, "{sizes:?}");
    for size in &sizes[..2] {
        assert!((0.3..=0.7).contains(&(size / total)), "{sizes:?}");
    }
}

fn wait_for_split(world: &World) -> Vec<String> {
    eventually("a split", || match world.ranges().as_slice() {
        [first, _, ..] => Some(first.parents.clone()),
        _ => None,
    })
}

pub(crate) fn partitions(world: &World) -> Vec<serde_json::Value> {
    let headers = [("x-ms-documentdb-populatepartitionstatistics", "true")];
    let container = world.get("/dbs/d/colls/c", &headers).expect(200).json();
    container["statistics"].as_array().expect("statistics are a list").clone()
}

#[test]
fn p11_there_can_be_hundreds_of_ranges() {
    let world = World::new();
    world.container("/k", 900_000).expect(201);
    assert_eq!(world.ranges().len(), 150);
    for at in 0..50 {
        world.create_item(&j!({"id": "1", "k": at})).expect(201);
        world.read_item(&j!(at), "1").expect(200);
    }
}

#[test]
fn p22_small_containers_have_one_range() {
    let world = World::new();
    world.container("/k", 400).expect(201);
    assert_eq!(world.ranges().len(), 1);
}

#[test]
fn p13_p14_p16_work_goes_on_while_ranges_split() {
    let world = World::with(&["--throttle", "never"]);
    world.container("/k", 6_000).expect(201);
    let mut written = 0;
    std::thread::scope(|scope| {
        let splitting = scope.spawn(|| {
            for _ in 0..4 {
                for range in world.ranges() {
                    let split = j!({"container": "dbs/d/colls/c", "range": range.id});
                    world.operate("POST", "/_orrery/split", &split).expect(200);
                }
            }
        });
        // One client without a line of error handling.
        while !splitting.is_finished() {
            let (id, k) = (written.to_string(), written % 37);
            world.create_item(&j!({"id": id, "k": k})).expect(201);
            world.read_item(&j!(k), &id).expect(200);
            written += 1;
        }
    });
    assert_eq!(world.ranges().len(), 16);
    for at in 0..written {
        world.read_item(&j!(at % 37), &at.to_string()).expect(200);
    }
}
