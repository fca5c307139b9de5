//! Choosing and using a partition key.

use serde_json::{Value, json as j};

use crate::world::{World, key};

/// Items that are spread over partitions.
const ITEMS: u32 = 1_500;
const STATISTICS: &str = "/_orrery/partitions?container=dbs/d/colls/c";

#[test]
fn k10_k21_the_key_is_part_of_the_container() {
    let world = World::new();
    world.container("/userId", 400).expect(201);
    let definition = world.get("/dbs/d/colls/c", &[]).expect(200).json();
    assert_eq!(definition["partitionKey"], key("/userId"));
    world.create_item(&j!({"id": "1", "userId": "Andrew"})).expect(201);
    world.read_item(&j!("Andrew"), "1").expect(200);
}

#[test]
fn k11_paths_are_words_and_may_be_nested() {
    for path in ["/userId", "/a/b", "/a_b1"] {
        World::new().container(path, 400).expect(201);
    }
}

#[test]
fn k12_a_path_finds_its_property() {
    let cases = [
        ("/department", j!({"id": "1", "department": "x"})),
        ("/properties/name", j!({"id": "1", "properties": {"name": "x"}})),
        ("/\"department name\"", j!({"id": "1", "department name": "x"})),
    ];
    for (path, item) in cases {
        let world = World::new();
        world.container(path, 400).expect(201);
        world.create_item(&item).expect(201);
        assert_eq!(world.read_item(&j!("x"), "1").expect(200).json()["id"], "1", "{path}");
    }
}

#[test]
fn k12_k19_the_id_may_be_the_key() {
    let world = World::new();
    world.container("/id", 400).expect(201);
    world.create_item(&j!({"id": "1", "other": "x"})).expect(201);
    world.read_item(&j!("1"), "1").expect(200);
    world.create_item(&j!({"id": "1", "other": "y"})).expect(409);
}

#[test]
fn k13_a_path_has_no_wildcard() {
    for path in ["/department/?", "/department/*", "department", "/a/[]/b"] {
        World::new().container(path, 400).expect(400);
    }
}

#[test]
fn k15_values_are_strings_and_numbers_and_the_other_scalars() {
    let world = World::new();
    world.container("/k", 400).expect(201);
    for value in [j!("a"), j!(1), j!(1.5), j!(true), j!(false), j!(null)] {
        world.create_item(&j!({"id": "1", "k": value})).expect(201);
        world.read_item(&value, "1").expect(200);
    }
    world.create_item(&j!({"id": "1"})).expect(201);
    let none = [("x-ms-documentdb-partitionkey", "[{}]")];
    world.get("/dbs/d/colls/c/docs/1", &none).expect(200);
    world.create_item(&j!({"id": "2", "k": [1]})).expect(400);
}

#[test]
fn k16_a_key_cannot_be_changed_in_place() {
    let world = World::new();
    world.container("/k", 400).expect(201);
    let other = j!({"id": "c", "partitionKey": key("/other")});
    world.send("PUT", "/dbs/d/colls/c", &[], &other.to_string()).expect(400);
    let definition = world.get("/dbs/d/colls/c", &[]).expect(200).json();
    assert_eq!(definition["partitionKey"]["paths"], j!(["/k"]));
}

#[test]
fn k17_an_item_keeps_its_key() {
    let world = World::new();
    world.container("/k", 400).expect(201);
    world.create_item(&j!({"id": "1", "k": "a"})).expect(201);
    world.replace_item(&j!("a"), &j!({"id": "1", "k": "b"})).expect(400);
    world.read_item(&j!("a"), "1").expect(200);
    world.read_item(&j!("b"), "1").expect(404);
    world.delete_item(&j!("a"), "1").expect(204);
    world.create_item(&j!({"id": "1", "k": "b"})).expect(201);
}

#[test]
fn k20_a5_the_server_finds_the_key_in_the_document() {
    let world = World::new();
    world.container("/k", 400).expect(201);
    world.create_item(&j!({"id": "1", "k": "a"})).expect(201);
    let replaced = j!({"id": "1", "k": "a", "n": 2}).to_string();
    world.send("PUT", "/dbs/d/colls/c/docs/1", &[], &replaced).expect(200);
    let other = [("x-ms-documentdb-partitionkey", "[\"b\"]")];
    let refused = world.post("/dbs/d/colls/c/docs", &other, &j!({"id": "2", "k": "a"})).expect(400);
    assert_eq!(refused.header("x-ms-substatus"), "1001");
    world.send("DELETE", "/dbs/d/colls/c/docs/1", &[], "").expect(400);
    world.get("/dbs/d/colls/c/docs/1", &[]).expect(400);
}

/// The same items by a key with a value for each, and by one with three values: what each
/// of five partitions has of bytes and of request units, in per cent of all.
#[test]
fn k18_a_key_with_many_values_spreads_storage_and_request_units() {
    let shares = |path: &str| {
        let world = World::with(&["--throttle", "never"]);
        world.container(path, 30_000).expect(201);
        for number in 0..ITEMS {
            let item =
                j!({"id": format!("{number}"), "user": format!("u{number}"), "kind": number % 3});
            world.create_item(&item).expect(201);
        }
        let shown = world.operate("GET", STATISTICS, &Value::Null).expect(200).json();
        let partitions = shown["partitions"].as_array().expect("a list").clone();
        assert_eq!(partitions.len(), 5);
        ["bytes", "requestUnits"].map(|what| {
            let of = |one: &Value| one[what].as_f64().unwrap_or_else(|| panic!("{what} of {one}"));
            let sum: f64 = partitions.iter().map(of).sum();
            partitions.iter().map(|one| 100.0 * of(one) / sum).collect::<Vec<f64>>()
        })
    };
    for shares in shares("/user") {
        assert!(shares.iter().all(|share| (15.0..25.0).contains(share)), "{shares:?}");
    }
    for shares in shares("/kind") {
        assert!(shares.iter().any(|share| *share > 30.0), "{shares:?}");
        assert!(shares.iter().filter(|share| **share < 5.0).count() >= 2, "{shares:?}");
    }
}
