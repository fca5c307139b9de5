//! Logical partitions: the items of one key.

use serde_json::json as j;

use crate::world::World;

#[test]
fn l1_items_of_one_key_are_one_logical_partition() {
    let world = World::new();
    world.container("/city", 400).expect(201);
    for (city, id) in [("Seattle", "1"), ("Seattle", "2"), ("Redmond", "1")] {
        world.create_item(&j!({"id": id, "city": city})).expect(201);
    }
    let feed = |city| {
        let key = j!([city]).to_string();
        let headers = [("x-ms-documentdb-partitionkey", key.as_str())];
        world.get("/dbs/d/colls/c/docs", &headers).expect(200).json()["_count"].clone()
    };
    assert_eq!((feed("Seattle"), feed("Redmond"), feed("Kent")), (j!(2), j!(1), j!(0)));
}

#[test]
fn l3_an_id_is_unique_inside_its_logical_partition_only() {
    let world = World::new();
    world.container("/city", 400).expect(201);
    world.create_item(&j!({"id": "1", "city": "Seattle"})).expect(201);
    world.create_item(&j!({"id": "1", "city": "Redmond"})).expect(201);
    world
        .create_item(&j!({"id": "1", "city": "Seattle"}))
        .refused(409, "Resource with specified id or name already exists.");
}

#[test]
fn l4_key_and_id_together_identify_an_item() {
    let world = World::new();
    world.container("/city", 400).expect(201);
    world.create_item(&j!({"id": "1", "city": "Seattle"})).expect(201);
    assert_eq!(world.read_item(&j!("Seattle"), "1").expect(200).json()["city"], "Seattle");
    world.read_item(&j!("Redmond"), "1").expect(404);
    world.get("/dbs/d/colls/c/docs/1", &[]).expect(400);
}

#[test]
fn l5_the_three_documents_of_the_article_coexist() {
    let world = World::new();
    world.container("/department", 400).expect(201);
    for (department, id) in [("Marketing", "0001"), ("Marketing", "0002"), ("Sales", "0001")] {
        world.create_item(&j!({"id": id, "department": department})).expect(201);
    }
    for (department, id) in [("Marketing", "0001"), ("Marketing", "0002"), ("Sales", "0001")] {
        let item = world.read_item(&j!(department), id).expect(200).json();
        assert_eq!((&item["department"], &item["id"]), (&j!(department), &j!(id)));
    }
}

#[test]
fn l6_an_id_is_required() {
    let world = World::new();
    world.container("/city", 400).expect(201);
    world.create_item(&j!({"city": "Seattle"})).expect(400);
}

#[test]
fn l10_p17_a_full_key_refuses_growth_and_nothing_else() {
    fill_one_key(&[], "Partition key reached maximum size of 20 GB");
}

#[test]
fn l11_a_key_was_full_at_ten_gigabytes_once() {
    fill_one_key(&["--profile", "2018"], "Partition key reached maximum size of 10 GB");
}

/// Writes to one key of a scale model until it is full.
fn fill_one_key(arguments: &[&str], text: &str) {
    let scale = ["--scale", "1000000", "--throttle", "never"];
    let world = World::with(&[arguments, &scale].concat());
    world.container("/city", 1000).expect(201);
    let item = |at: u32| j!({"id": at.to_string(), "city": "Seattle", "fill": "x".repeat(2000)});
    let full = (0..100).find(|at| world.create_item(&item(*at)).status() != 201);
    let at = full.expect("the key becomes full");
    assert!(at > 1, "full after {at} items");
    let refused = world.create_item(&item(at)).refused(403, text);
    assert_eq!(refused.header("x-ms-substatus"), "1014");
    assert_eq!(refused.header("x-ms-request-charge"), "1.2380952380952381", "26/21 RU");
    assert_eq!(world.ranges().len(), 1, "one key is never split");
    world.read_item(&j!("Seattle"), "0").expect(200);
    world.create_item(&j!({"id": "1", "city": "Redmond"})).expect(201);
    world.delete_item(&j!("Seattle"), "0").expect(204);
    world.create_item(&item(0)).expect(201);
}

#[test]
fn l12_p14_a_logical_partition_stays_together_over_splits() {
    let world = World::new();
    world.container("/city", 6000).expect(201);
    let cities: Vec<String> = (0..40).map(|at| format!("city {at}")).collect();
    for city in &cities {
        for id in ["1", "2", "3"] {
            world.create_item(&j!({"id": id, "city": city})).expect(201);
        }
    }
    for _ in 0..3 {
        let widest = world.ranges().first().expect("a range").id.clone();
        let split = j!({"container": "dbs/d/colls/c", "range": widest});
        world.operate("POST", "/_orrery/split", &split).expect(200);
        for city in &cities {
            let served = ["1", "2", "3"].map(|id| {
                let answer = world.read_item(&j!(city), id).expect(200);
                answer.served_by().to_owned()
            });
            assert!(served.iter().all(|one| *one == served[0]), "{city}: {served:?}");
        }
    }
    assert_eq!(world.ranges().len(), 4);
}

#[test]
fn l14_few_values_load_few_partitions() {
    let world = World::new();
    world.container("/color", 30_000).expect(201);
    let served = |value: &str| {
        let item = j!({"id": "1", "color": value});
        world.create_item(&item).expect(201).served_by().to_owned()
    };
    let few: std::collections::BTreeSet<String> = ["red", "blue"].map(served).into();
    let many: std::collections::BTreeSet<String> =
        (0..200).map(|at| served(&format!("color {at}"))).collect();
    assert!(few.len() <= 2);
    assert_eq!(many.len(), world.ranges().len(), "many values reach every partition");
}
