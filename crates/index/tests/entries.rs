//! Which entries items have under policies, in readable form.

use expect_test::{Expect, expect};
use index::IndexPlan;
use model::json;
use model::policy::IndexingPolicy;

const SEED: u64 = 0x5EED;

fn plan(policy: &str) -> IndexPlan {
    let policy = json::parse(policy.as_bytes()).expect("test policy is JSON");
    IndexPlan::compile(&IndexingPolicy::parse(&policy).expect("test policy is valid"), SEED)
}

/// The readable entries, sorted by path.
fn explain(plan: &IndexPlan, item: &str) -> String {
    let item = json::parse_raw(item.as_bytes()).expect("test item is JSON");
    let mut lines = Vec::new();
    plan.entries(&[item], &mut |entry| {
        lines.push(plan.explain(item, entry).expect("entries can be read back") + "\n");
    });
    lines.sort();
    lines.concat()
}

fn check(policy: &str, item: &str, expect: &Expect) {
    expect.assert_eq(&explain(&plan(policy), item));
}

#[test]
fn the_default_policy_indexes_everything_a_client_wrote() {
    check(
        "{}",
        r#"{
            "id": "1", "name": "Ada \"A\" L.", "age": 36.0, "gone": null, "member": true,
            "address": {"city": "London", "zip code": "W1"},
            "tags": ["x", "y", "x", ["x"], {"deep": 1}, {}], "none": [],
            "_rid": "AbCdAAE=", "_self": "dbs/x/colls/y/docs/z/", "_etag": "\"0\"",
            "_attachments": "attachments/", "_ts": 1700000000
        }"#,
        &expect![[r#"
            /_ts = 1700000000
            /address = {…}
            /address/"zip code" = "W1"
            /address/city = "London"
            /age = 36
            /gone = null
            /id = "1"
            /member = true
            /name = "Ada \"A\" L."
            /none = […]
            /tags = […]
            /tags/[] = "x"
            /tags/[] = "y"
            /tags/[] = […]
            /tags/[] = {…}
            /tags/[] = {…}
            /tags/[]/[] = "x"
            /tags/[]/deep = 1
            names in /
            names in /address
        "#]],
    );
}

#[test]
fn system_properties_are_ordinary_below_the_top() {
    check(
        "{}",
        r#"{"a":{"_rid":"1","_etag":"2"}}"#,
        &expect![[r#"
            /a = {…}
            /a/_etag = "2"
            /a/_rid = "1"
            names in /
            names in /a
        "#]],
    );
}

#[test]
fn a_policy_that_names_a_system_property_gets_it() {
    check(
        r#"{"includedPaths":[{"path":"/*"},{"path":"/_rid/?"},{"path":"/_self/*"},{"path":"/_etag/?"}]}"#,
        r#"{"id":"1","_rid":"r","_etag":"e","_ts":1}"#,
        &expect![[r#"
            /_etag = "e"
            /_rid = "r"
            /_ts = 1
            /id = "1"
            names in /
        "#]],
    );
}

#[test]
fn id_and_ts_cannot_be_excluded() {
    check(
        r#"{"excludedPaths":[{"path":"/*"},{"path":"/id/?"},{"path":"/_ts/*"}]}"#,
        r#"{"id":"1","a":2,"_ts":3}"#,
        &expect![[r#"
            /_ts = 3
            /id = "1"
        "#]],
    );
}

#[test]
fn the_more_precise_path_wins() {
    let policy = r#"{
        "includedPaths": [{"path":"/*"}, {"path":"/a/b/*"}, {"path":"/a/c/?"}, {"path":"/a/b/d/e/?"}],
        "excludedPaths": [{"path":"/a/*"}, {"path":"/a/b/?"}, {"path":"/a/b/d/*"}]
    }"#;
    check(
        policy,
        r#"{"a":{"b":{"x":1,"d":{"e":2,"f":3}},"c":{"y":4},"z":5},"q":6}"#,
        &expect![[r#"
            /a/b/d/e = 2
            /a/b/x = 1
            /a/c = {…}
            /q = 6
            names in /
            names in /a/b
        "#]],
    );
    check(
        policy,
        r#"{"a":{"b":1,"c":2}}"#,
        &expect![[r#"
            /a/b/d/e = undefined
            /a/c = 2
            names in /
        "#]],
    );
}

#[test]
fn a_scalar_path_does_not_reach_below() {
    check(
        r#"{"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]}"#,
        r#"{"a":{"b":1},"b":2}"#,
        &expect![[r#"
            /a = {…}
        "#]],
    );
    check(
        r#"{"excludedPaths":[{"path":"/a/?"}]}"#,
        r#"{"a":{"b":1}}"#,
        &expect![[r#"
            /a/b = 1
            names in /
            names in /a
        "#]],
    );
}

#[test]
fn array_paths() {
    check(
        r#"{"includedPaths":[{"path":"/tags/[]/name/?"},{"path":"/codes/[]/?"}],"excludedPaths":[{"path":"/*"}]}"#,
        r#"{"tags":[{"name":"n1","x":1},{"name":"n2"},{"name":"n1"},3],"codes":[1,2,2,[3]]}"#,
        &expect![[r#"
            /codes/[] = 1
            /codes/[] = 2
            /codes/[] = […]
            /tags/[]/name = "n1"
            /tags/[]/name = "n2"
        "#]],
    );
    check(
        r#"{"excludedPaths":[{"path":"/vector/*"},{"path":"/list/[]/secret/?"}]}"#,
        r#"{"vector":[0.1,0.2],"list":[{"secret":1,"open":2}]}"#,
        &expect![[r#"
            /list = […]
            /list/[] = {…}
            /list/[]/open = 2
            names in /
        "#]],
    );
}

/// Queries that sort by a path which the policy names return such items too.
#[test]
fn named_paths_have_an_entry_when_the_value_is_absent() {
    let policy =
        r#"{"includedPaths":[{"path":"/*"},{"path":"/a/?"},{"path":"/b/c/*"},{"path":"/l/[]/?"}]}"#;
    check(
        policy,
        r#"{"id":"1"}"#,
        &expect![[r#"
            /a = undefined
            /b/c = undefined
            /id = "1"
            names in /
        "#]],
    );
    check(
        policy,
        r#"{"a":null,"b":7}"#,
        &expect![[r#"
            /a = null
            /b = 7
            /b/c = undefined
            names in /
        "#]],
    );
    check(
        policy,
        r#"{"a":[],"b":{"c":1}}"#,
        &expect![[r#"
            /a = […]
            /b = {…}
            /b/c = 1
            names in /
            names in /b
        "#]],
    );
}

#[test]
fn composite_indexes() {
    let policy = r#"{
        "excludedPaths": [{"path":"/*"}],
        "compositeIndexes": [
            [{"path":"/a","order":"ascending"}, {"path":"/b/c","order":"descending"}],
            [{"path":"/b/c","order":"descending"}, {"path":"/a","order":"descending"}]
        ]
    }"#;
    check(
        policy,
        r#"{"a":"x","b":{"c":-1.5}}"#,
        &expect![[r#"
            (/a↑ "x", /b/c↓ -1.5)
            (/b/c↑ -1.5, /a↑ "x")
        "#]],
    );
    check(
        policy,
        r#"{"a":[1]}"#,
        &expect![[r#"
            (/a↑ […], /b/c↓ undefined)
            (/b/c↑ undefined, /a↑ […])
        "#]],
    );
    check(
        policy,
        "{}",
        &expect![[r#"
            (/a↑ undefined, /b/c↓ undefined)
            (/b/c↑ undefined, /a↑ undefined)
        "#]],
    );
}

#[test]
fn long_strings_are_cut() {
    let whole = "é".repeat(64);
    let item = format!(r#"{{"whole":"{whole}","cut":"{whole}!","inside":"x{whole}"}}"#);
    check(
        "{}",
        &item,
        &expect![[r#"
            /cut = "éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé"…
            /inside = "xééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé�"…
            /whole = "éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé"
            names in /
        "#]],
    );
}

#[test]
fn composite_entries_stay_within_their_bound() {
    let text = "y".repeat(200);
    let mut sizes = Vec::new();
    for count in 2..=8 {
        let paths: Vec<_> = (0..count).map(|n| format!(r#"{{"path":"/p{n}"}}"#)).collect();
        let paths = paths.join(",");
        let policy =
            format!(r#"{{"excludedPaths":[{{"path":"/*"}}],"compositeIndexes":[[{paths}]]}}"#);
        let members: Vec<_> = (0..count).map(|n| format!(r#""p{n}":"{text}""#)).collect();
        let item = format!("{{{}}}", members.join(","));
        let item = json::parse_raw(item.as_bytes()).expect("test item is JSON");
        plan(&policy).entries(&[item], &mut |entry| sizes.push(entry.len()));
    }
    expect![[r#"
        [
            268,
            398,
            512,
            508,
            512,
            512,
            512,
        ]
    "#]]
    .assert_debug_eq(&sizes);
}

#[test]
fn mode_none_and_unsupported_kinds_have_no_entries() {
    check(r#"{"indexingMode":"none"}"#, r#"{"id":"1","a":2,"_ts":3}"#, &expect![[r#""#]]);
    check(
        r#"{
            "excludedPaths": [{"path":"/*"}],
            "includedPaths": [{"path":"/events/[]/{name, place}/?"}],
            "spatialIndexes": [{"path":"/loc/*","types":["Point"]}],
            "fullTextIndexes": [{"path":"/text"}],
            "vectorIndexes": [{"path":"/v","type":"flat"}]
        }"#,
        r#"{"events":[{"name":1}],"loc":{"type":"Point","coordinates":[1,2]},"text":"t","v":[1]}"#,
        &expect![[r#""#]],
    );
}

/// The bytes themselves, against a change of format by accident.
#[test]
fn bytes_are_those_of_the_format() {
    let long = "z".repeat(129);
    let item = format!(r#"{{"id":"a\u0000z","n":-2,"zero":-0.0,"t":[true],"long":"{long}"}}"#);
    let item = json::parse_raw(item.as_bytes()).expect("test item is JSON");
    let plan = plan("{}");
    let mut lines = String::new();
    plan.entries(&[item], &mut |entry| {
        let hex: String = entry.iter().map(|byte| format!("{byte:02x}")).collect();
        let (hash, value) = hex.split_at(16);
        let meaning = plan.explain(item, entry).expect("entries can be read back");
        let line = format!("{hash} {value}  {meaning}\n");
        lines += &line.replace(&"7b".repeat(127), "…").replace(&"z".repeat(127), "…");
    });
    expect![[r#"
        04cc1405f39bd649 5062017b00  /id = "a\u0000z"
        06201bcc213f457b 60dabcd9a18904ac53dd67d496a52a8b2c  /t = […]
        33b107898d31a708 403fffffffffffffff  /n = -2
        440ee55f704f643b 31  /t/[] = true
        51a17c38169ef93d 50…7bff  /long = "…z"…
        8d0b98bf1f4c2a0c 80a0ad0b9676ecd62e  names in /
        c0517fee3fe71b29 408000000000000000  /zero = 0
    "#]]
    .assert_eq(&lines);
}

/// The deepest possible item is traversed to its end.
#[test]
fn deep_items() {
    let item = format!("{}1{}", r#"{"a":"#.repeat(127), "}".repeat(127));
    let item = json::parse_raw(item.as_bytes()).expect("test item is JSON");
    let mut count = 0;
    plan("{}").entries(&[item], &mut |_| count += 1);
    assert_eq!(count, 2 * 127, "a value and the names of an object for each");
}
