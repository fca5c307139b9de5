//! The picture of the articles: the nutrition data by food group.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;

use serde_json::{Value, json as j};

use crate::world::World;

/// Requests of a batch, and bytes of one, that are well below their limits.
const BATCH_ITEMS: usize = 50;
const BATCH_BYTES: usize = 1_000_000;

/// The lines of the data, unless it is not there.
#[allow(clippy::print_stdout, reason = "says what is left out")]
fn foods() -> Option<Vec<Value>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/nutrition_sr28.jsonl.gz");
    let Ok(packed) = std::fs::read(&path) else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{} is missing", path.display());
        println!("left out: the nutrition data in ../shared is absent");
        return None;
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).expect("it unpacks");
    Some(text.lines().map(food).collect())
}

/// A food without its long lists, which have no part in where it goes.
fn food(line: &str) -> Value {
    let mut food: Value = serde_json::from_str(line).expect("a line of JSON");
    let members = food.as_object_mut().expect("a food is an object");
    members.retain(|name, _| !matches!(name.as_str(), "nutrients" | "servings"));
    food
}

#[test]
fn l15_m2_the_largest_food_groups_of_one_range_are_those_of_the_articles() {
    let Some(foods) = foods() else { return };
    let world = World::with(&["--throttle", "never"]);
    let key = j!({"paths": ["/foodGroup"], "kind": "Hash", "version": 1});
    world.create(&j!({"id": "c", "partitionKey": key}), 400).expect(201);
    let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for food in foods {
        groups
            .entry(food["foodGroup"].as_str().expect("a group").to_owned())
            .or_default()
            .push(food);
    }
    assert_eq!(groups.len(), 25);
    for (group, foods) in &groups {
        load(&world, group, foods);
    }
    // One range became two, and one of those two more.
    for range in ["0", "1"] {
        let split = j!({"container": "dbs/d/colls/c", "range": range});
        world.operate("POST", "/_orrery/split", &split).expect(200);
    }
    let partitions = world
        .operate("GET", "/_orrery/partitions?container=dbs/d/colls/c", &Value::Null)
        .expect(200)
        .json();
    let tops: Vec<Vec<String>> =
        partitions["partitions"].as_array().expect("a list").iter().map(top_three).collect();
    let articles =
        ["Beef Products", "Vegetables and Vegetable Products", "Soups, Sauces, and Gravies"];
    assert_eq!(tops.len(), 3);
    assert!(tops.iter().any(|top| *top == articles), "{tops:?}");
}

/// The keys with the most items.
fn top_three(partition: &Value) -> Vec<String> {
    let keys = partition["topKeysByItems"].as_array().expect("a list");
    keys.iter().take(3).map(|one| one["key"][0].as_str().expect("a group").to_owned()).collect()
}

fn load(world: &World, group: &str, foods: &[Value]) {
    let key = j!([group]).to_string();
    let headers = [
        ("x-ms-documentdb-partitionkey", key.as_str()),
        ("x-ms-cosmos-is-batch-request", "True"),
        ("x-ms-cosmos-batch-atomic", "True"),
    ];
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for food in foods {
        let operation = j!({"operationType": "Upsert", "resourceBody": food});
        bytes += operation.to_string().len();
        batch.push(operation);
        if batch.len() == BATCH_ITEMS || bytes > BATCH_BYTES {
            world.post("/dbs/d/colls/c/docs", &headers, &batch.drain(..).collect()).expect(200);
            bytes = 0;
        }
    }
    if !batch.is_empty() {
        world.post("/dbs/d/colls/c/docs", &headers, &batch.drain(..).collect()).expect(200);
    }
}
