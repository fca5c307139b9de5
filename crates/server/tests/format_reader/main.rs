//! `docs/formats/` describes every byte: a reader that was written from these pages alone
//! (`reader.rs`) reads the folders that the built server leaves, finds in them what clients
//! were shown, and notices every byte that is not as it was written.
//!
//! Servers are stopped by signals, hence on Unix only.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "../serve/client.rs"]
mod client;
mod damage;
#[allow(dead_code, reason = "the tests of `upgrade` use more of it")]
#[path = "../upgrade/fixture.rs"]
mod fixture;
mod pages;
#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "../serve/program.rs"]
mod program;
mod reader;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use reader::Folder;
use serde_json::Value;
use world::{Shown, World};

/// Reads the folder, which must hold what clients were shown.
fn read(data: &Path, shown: &Shown) -> Folder {
    let folder = reader::read(data).unwrap_or_else(|damage| panic!("{damage}"));
    let found: Shown = folder
        .contents
        .containers
        .iter()
        .map(|((database, name), items)| {
            assert_eq!(database, "d");
            (name.clone(), items.shown.clone())
        })
        .collect();
    for (name, items) in shown {
        assert_eq!(found.get(name), Some(items), "container {name}");
    }
    assert_eq!(found.keys().collect::<Vec<_>>(), shown.keys().collect::<Vec<_>>());
    folder
}

fn levels(folder: &Folder) -> BTreeSet<usize> {
    folder.store.runs.iter().flatten().map(|table| table.level).collect()
}

#[test]
fn what_clients_were_shown_is_in_the_folder() {
    let mut world = World::start();
    world.write_everything(0);
    let shown = world.shown();
    assert!(shown["people"].len() > world::PEOPLE / 3);

    // Killed: all of it is in the journal. Nothing was dropped or moved yet, which the server
    // would flush for when it sweeps.
    world.kill();
    let folder = read(&world.data, &shown);
    assert_eq!((folder.store.in_tables, levels(&folder).len()), (0, 0));
    assert!(folder.store.in_journal > 200 && folder.store.watermark.synced);

    // Killed with what a drop and splits leave, swept or not.
    world.resume();
    world.put("dropped", &serde_json::json!(["1"]), &serde_json::json!({ "id": "1" }));
    world.drop_container("dropped");
    // Three times between buckets; the fourth has to divide one.
    for range in ["0", "1", "3", "5"] {
        world.split("people", range);
    }
    let shown = world.shown();
    assert!(!shown.contains_key("dropped"));
    world.kill();
    let folder = read(&world.data, &shown);
    let people = &folder.contents.containers[&("d".to_owned(), "people".to_owned())];
    assert_eq!((people.buckets, people.ranges), (9, 5));

    // Stopped: all of it is in tables.
    world.resume();
    assert_eq!(world.shown(), shown, "the same after a replay");
    world.stop();
    let folder = read(&world.data, &shown);
    assert_eq!((folder.store.in_journal, levels(&folder)), (0, BTreeSet::from([0])));
    assert_eq!(folder.store.watermark.commit, folder.store.in_tables);
    assert_eq!(reader::backup::read(&world.back_up()).unwrap(), folder.store.rows);

    // Compacted: below, with two levels of index blocks.
    world.compact();
    let folder = read(&world.data, &shown);
    assert_eq!(levels(&folder), BTreeSet::from([6]));
    let table = folder.store.runs.iter().flatten().next().unwrap();
    assert!(table.properties.compressed && table.properties.index_blocks > 1);
    println!(
        "{} rows in {} data blocks and {} index blocks, {} index entries",
        table.rows.len(),
        table.properties.data_blocks,
        table.properties.index_blocks,
        folder.contents.entries
    );

    // Several tables in two levels, and a journal on top of them.
    world.resume();
    world.write_everything(1);
    let (city, gone) = world::person(0, 5);
    world.delete("people", &serde_json::json!([city]), gone["id"].as_str().unwrap());
    world.write_bulk();
    world.write_bulk();
    world.write_everything(2);
    let shown = world.shown();
    world.kill();
    let folder = read(&world.data, &shown);
    assert_eq!(levels(&folder), BTreeSet::from([0, 6]));
    let flushed = folder.store.runs.iter().flatten().filter(|table| table.level == 0);
    assert!(flushed.map(|table| table.properties.tombstones).sum::<u64>() > 0);
    assert!(folder.store.in_journal > 200, "{} commits", folder.store.in_journal);
    assert!(folder.contents.entries > 10_000, "{} index entries", folder.contents.entries);
    println!(
        "{} runs, {} commits in {:?} of the journal, {} index entries",
        folder.store.runs.len(),
        folder.store.in_journal,
        folder.store.segment_ends,
        folder.contents.entries
    );
    let is_reused = |(number, end): (&u64, &usize)| {
        let segment = world.store().join("journal").join(number.to_string());
        std::fs::metadata(segment).unwrap().len() > *end as u64
    };
    assert!(folder.store.segment_ends.iter().any(is_reused), "no segment was written over");
}

/// A folder that another build has written holds what that build showed.
#[test]
fn a_folder_of_the_past_is_read() {
    let folder = fixture::unpack(fixture::Fixture::V2);
    let contents = reader::read(&folder.path().join("data")).unwrap().contents;
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v2.json");
    let recorded: Vec<Value> = serde_json::from_slice(&std::fs::read(recorded).unwrap()).unwrap();
    // Of each range the changes from the beginning, which are its items.
    let mut shown: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for request in recorded {
        let headers = request["headers"].as_object().unwrap();
        if headers.contains_key("A-IM") && !headers.contains_key("if-none-match") {
            let items = request["answer"]["Documents"].as_array().unwrap();
            let link = request["link"].as_str().unwrap().to_owned();
            shown.entry(link).or_default().extend(items.iter().map(without_numbers));
        }
    }
    assert!(shown.len() > 5, "{} containers", shown.len());
    for (link, items) in shown {
        let names: Vec<&str> = link.split('/').collect();
        let [_, database, _, container] = names[..] else { panic!("{link}") };
        let found = &contents.containers[&(database.to_owned(), container.to_owned())];
        let found: BTreeSet<String> = found.shown.values().map(without_numbers).collect();
        assert_eq!(found, items, "{link}");
    }
}

/// An item as it is recorded: without the names that have its ordinal in them, and without
/// what changes show besides; the LSN is in the etag, too.
fn without_numbers(item: &Value) -> String {
    let mut item = item.clone();
    for name in ["_rid", "_self", "_lsn"] {
        item.as_object_mut().unwrap().remove(name);
    }
    item.to_string()
}

/// Whose code the reader may use.
const LIBRARIES: [&str; 9] = [
    "base64",
    "crc32fast",
    "lz4_flex",
    "self",
    "serde_json",
    "sha2",
    "std",
    "super",
    "xxhash_rust",
];

#[test]
fn the_reader_shares_no_code_with_what_it_reads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format_reader");
    let mut sources = vec![folder.join("reader.rs")];
    let below = std::fs::read_dir(folder.join("reader")).unwrap();
    sources.extend(below.map(|entry| entry.unwrap().path()));
    assert!(sources.len() > 5);
    for source in sources {
        let text = std::fs::read_to_string(&source).unwrap();
        for line in text.lines().filter_map(|line| line.trim().strip_prefix("use ")) {
            let library = line.split("::").next().unwrap();
            assert!(LIBRARIES.contains(&library), "{}: use {line}", source.display());
        }
    }
}
