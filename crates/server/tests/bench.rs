//! The measuring tool still measures: every operation on the built binary has its figures.
//!
//! What they are is no test's business, only that none is missing, so that a change of the
//! protocol or of thread names shows here and not on the day a figure is needed.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use serde_json::Value;

/// Figures that every operation on every target has.
const EXPECTED: [&str; 14] = [
    "operations",
    "rate_per_s",
    "p50_us",
    "p99_us",
    "p999_us",
    "max_us",
    "cpu_us",
    "upkeep_cpu_us",
    "voluntary_switches",
    "involuntary_switches",
    "written_bytes",
    "rss_mib",
    "peak_rss_mib",
    "disk_mib",
];

fn run(words: &str, json: &Path) -> Vec<Value> {
    let binary = env!("CARGO_BIN_EXE_orrery");
    let words = words.replace("BINARY", binary).replace("JSON", &json.to_string_lossy());
    bench::run(words.split(' ').map(OsString::from)).expect("the tool runs");
    let text = std::fs::read_to_string(json).expect("the tool wrote its figures");
    let all: Value = serde_json::from_str(&text).expect("the figures are JSON");
    all["measured"].as_array().expect("a list of what was measured").clone()
}

#[test]
fn every_operation_has_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let measured = run(
        "bench load --binaries one=BINARY --documents 150 --connections 4 --load-connections 4 \
         --count 8 --fsyncs 5 --quiet-ms 0 --tidy-ms 0 --json JSON",
        &folder.path().join("figures"),
    );
    let mut operations = BTreeSet::new();
    for one in &measured {
        operations.insert(one["operation"].as_str().unwrap());
        for figure in EXPECTED {
            assert!(one["figures"][figure].is_number(), "no {figure} in {one}");
        }
        assert!(one["figures"]["cpu_us of executor"].is_number(), "{one}");
    }
    // Eight on items, six queries, twelve mixes, and the load twice.
    assert_eq!(operations.len(), 28, "{operations:?}");
    let count = measured.iter().find(|one| one["operation"] == "query-range").unwrap();
    assert_eq!(count["figures"]["rows"].as_f64(), Some(1.0), "1 % of 150: {count}");
    let loaded = measured.iter().find(|one| one["operation"] == "load").unwrap();
    assert_eq!(loaded["figures"]["operations"].as_f64(), Some(150.0));
}

#[test]
fn binaries_take_turns() {
    let folder = tempfile::tempdir().unwrap();
    let measured = run(
        "bench load --binaries old=BINARY,new=BINARY --in-memory --documents 60 --connections 2 \
         --load-connections 2 --count 6 --rounds 2 --fsyncs 5 --only read,create --quiet-ms 0 \
         --tidy-ms 50 --json JSON",
        &folder.path().join("figures"),
    );
    let targets: Vec<&str> = measured.iter().map(|one| one["target"].as_str().unwrap()).collect();
    let rows = "load, load until settled, left alone, read, create";
    assert_eq!(targets, ["old", "new"].repeat(5), "{rows}");
    assert!(measured.iter().all(|one| one["figures"]["cpu_us"].is_number()), "{measured:?}");
}

#[test]
fn every_storey_has_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let measured = run(
        "bench raw --documents 60 --writers 3 --reads 20 --rounds 2 --quiet-ms 0 --json JSON",
        &folder.path().join("figures"),
    );
    let storeys: Vec<&str> = measured.iter().map(|one| one["target"].as_str().unwrap()).collect();
    assert_eq!(storeys, ["engine", "storage", "partition", "service"].repeat(2), "create, read");
    let shared = ["rss_mib", "peak_rss_mib"];
    for one in &measured {
        for figure in EXPECTED.iter().filter(|figure| !shared.contains(figure)) {
            let expected = *figure != "disk_mib" || one["operation"] == "create";
            assert_eq!(one["figures"][figure].is_number(), expected, "{figure} in {one}");
        }
    }
}
