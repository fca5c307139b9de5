//! Queries: which partitions they ask, and in which order their rows come.

use serde_json::{Value, json as j};

use crate::world::{Answer, World, key};

const ACROSS: (&str, &str) = ("x-ms-documentdb-query-enablecrosspartition", "True");
/// Has the server merge what clients would have to.
const MERGE: (&str, &str) = ("x-orrery-query-merge", "true");
/// The header in which the server lists the partitions it asked.
const EXPLAIN: &str = "x-orrery-query-explain";

const TEMPERATURES: &str = "SELECT VALUE c.id FROM c WHERE c.metricType = 'Temperature'";

/// Readings of twenty devices in five partitions, every second one a temperature.
fn readings() -> World {
    readings_under(&j!({}))
}

/// The same under an indexing policy.
fn readings_under(policy: &Value) -> World {
    let world = World::new();
    let container = j!({"id": "c", "partitionKey": key("/deviceId"), "indexingPolicy": policy});
    world.create(&container, 30_000).expect(201);
    for device in 0..20 {
        for n in 0..4 {
            let kind = if n % 2 == 0 { "Temperature" } else { "Humidity" };
            let (id, device) = (format!("{device}-{n}"), format!("XMS-{device:04}"));
            let value = n * 7 % 5;
            let reading =
                j!({"id": id, "deviceId": device, "metricType": kind, "metricValue": value});
            world.create_item(&reading).expect(201);
        }
    }
    world
}

fn ask(world: &World, text: &str, headers: &[(&str, &str)]) -> Answer {
    let query = [("x-ms-documentdb-isquery", "True"), (EXPLAIN, "true")];
    let headers: Vec<(&str, &str)> = query.iter().chain(headers).copied().collect();
    world.post("/dbs/d/colls/c/docs", &headers, &j!({ "query": text }))
}

fn rows(answer: &Answer) -> Vec<Value> {
    answer.json()["Documents"].as_array().expect("rows are a list").clone()
}

/// All pages, of that size.
fn all_pages(world: &World, text: &str, page: &str) -> Vec<Answer> {
    let (mut all, mut token) = (Vec::new(), String::new());
    loop {
        let headers = [MERGE, ("x-ms-max-item-count", page), ("x-ms-continuation", &token)];
        let answer = ask(world, text, &headers).expect(200);
        token = answer.header("x-ms-continuation").to_owned();
        all.push(answer);
        if token.is_empty() {
            return all;
        }
    }
}

fn all_rows(world: &World, text: &str, page: &str) -> Vec<Value> {
    all_pages(world, text, page).iter().flat_map(rows).collect()
}

/// The rows that each physical partition has, in the order of their hashes.
fn rows_of_ranges(world: &World, text: &str) -> Vec<Vec<Value>> {
    let of_range = |id: &str| {
        let answer = ask(world, text, &[("x-ms-documentdb-partitionkeyrangeid", id)]).expect(200);
        assert_eq!(asked(&answer), [id]);
        rows(&answer)
    };
    world.ranges().iter().map(|range| of_range(&range.id)).collect()
}

/// The server's report about its work.
fn explained(answer: &Answer) -> Value {
    serde_json::from_str(answer.header(EXPLAIN)).expect("an explanation")
}

/// The partitions that were asked.
fn asked(answer: &Answer) -> Vec<String> {
    let ids = explained(answer)["partitions"].clone();
    let ids = ids.as_array().expect("a list of partitions").iter();
    let mut ids: Vec<String> = ids.filter_map(|id| id.as_str().map(str::to_owned)).collect();
    ids.sort();
    ids
}

#[test]
fn a3_a_query_across_partitions_has_to_be_wanted() {
    let world = readings();
    let refusal = "Cross partition query is required but disabled";
    ask(&world, TEMPERATURES, &[]).refused(400, refusal);
    ask(&world, TEMPERATURES, &[(ACROSS.0, "False")]).refused(400, refusal);
    assert_eq!(all_rows(&world, TEMPERATURES, "-1").len(), 40);
}

#[test]
fn a6_a_filter_on_the_key_asks_one_partition() {
    let world = readings();
    let everywhere: f64 = all_pages(&world, TEMPERATURES, "-1").iter().map(Answer::charge).sum();
    for device in ["XMS-0001", "XMS-0002", "XMS-0003"] {
        let key = j!([device]).to_string();
        let item = format!("{}-0", device.trim_start_matches("XMS-").trim_start_matches('0'));
        let home = world.read_item(&j!(device), &item).expect(200).served_by().to_owned();
        let by_header =
            ask(&world, TEMPERATURES, &[("x-ms-documentdb-partitionkey", &key)]).expect(200);
        assert_eq!((rows(&by_header).len(), asked(&by_header)), (2, vec![home.clone()]));
        let filter = format!("{TEMPERATURES} AND c.deviceId = '{device}'");
        // It is not cross-partition, so it need not be enabled.
        for text in [filter.clone(), format!("{filter} AND c.metricValue >= 0")] {
            for headers in [&[][..], &[ACROSS]] {
                let answer = ask(&world, &text, headers).expect(200);
                assert_eq!(rows(&answer), rows(&by_header), "{text}");
                assert_eq!(asked(&answer), [home.as_str()], "{text}");
                assert!(answer.charge() < everywhere, "{} of {everywhere}", answer.charge());
            }
        }
    }
}

#[test]
fn a7_a_query_without_the_key_asks_all_partitions_and_their_indexes() {
    let world = readings();
    let ranges: Vec<String> = world.ranges().into_iter().map(|range| range.id).collect();
    assert_eq!(ranges.len(), 5);
    let pages = all_pages(&world, TEMPERATURES, "-1");
    let everybody: Vec<String> = pages.iter().flat_map(asked).collect();
    assert_eq!(everybody, ranges, "one after the other");
    for page in &pages {
        assert_eq!(asked(page), [page.served_by()]);
    }
    let explained: Vec<Value> = pages.iter().map(explained).collect();
    let items: u64 = explained.iter().filter_map(|page| page["items"].as_u64()).sum();
    assert_eq!(items, 40, "{explained:?}");
    assert!(explained.iter().all(|page| page["access"] != "scan"), "{explained:?}");
}

#[test]
fn k14_the_key_finds_its_items_whatever_the_policy_excludes() {
    let world = readings_under(&j!({"includedPaths": [], "excludedPaths": [{"path": "/*"}]}));
    let text = "SELECT VALUE c.id FROM c WHERE c.deviceId = 'XMS-0007'";
    let answer = ask(&world, text, &[]).expect(200);
    assert_eq!(rows(&answer), ["7-0", "7-1", "7-2", "7-3"]);
    assert_eq!(explained(&answer)["items"], 4);
}

#[test]
fn a10_rows_come_in_the_same_order_however_they_are_asked_for() {
    let world = readings();
    for text in [TEMPERATURES.to_owned(), format!("{TEMPERATURES} ORDER BY c.metricValue")] {
        let serial = all_rows(&world, &text, "-1");
        assert_eq!(serial.len(), 40);
        for page in ["1", "7", "40"] {
            assert_eq!(all_rows(&world, &text, page), serial, "{text} in pages of {page}");
        }
    }
    // A client that asks all partitions at once concatenates their answers.
    assert_eq!(rows_of_ranges(&world, TEMPERATURES).concat(), all_rows(&world, TEMPERATURES, "-1"));
}

#[test]
fn a11_each_partition_sorts_and_the_client_merges() {
    let world = readings();
    let text = "SELECT c.metricValue, c.id FROM c ORDER BY c.metricValue";
    let value = |row: &Value| row["metricValue"].as_i64();
    let parts = rows_of_ranges(&world, text);
    assert!(parts.iter().all(|part| part.is_sorted_by_key(value)), "{parts:?}");
    // Equal ones stay in the order of the partitions.
    let mut merged = parts.concat();
    merged.sort_by_key(value);
    assert_eq!(all_rows(&world, text, "9"), merged);
    let top = ask(&world, &text.replace("SELECT", "SELECT TOP 5"), &[MERGE]).expect(200);
    assert_eq!(rows(&top), merged[..5]);
}
