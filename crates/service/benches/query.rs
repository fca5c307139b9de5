//! How does the cost of a query grow with what is stored?
//!
//! The same container is queried at several sizes, on one and on five physical partitions:
//! what an index answers must not grow with items that it does not touch, and a scan must
//! cost the same for each item. Besides: what indexing costs on writes, and on the disk.
//!
//! Each query runs right after the load, while the engine still compacts, and again when it
//! has settled. Scans only then.
//!
//! `ORRERY_BENCH_ITEMS` sets the sizes (`10000,100000`). `cargo xtask bench query`.
#![allow(clippy::unwrap_used, reason = "a bench stops at the first error")]
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

#[path = "lab/container.rs"]
mod lab;

use std::collections::BTreeMap;
use std::time::Duration;

use lab::{Lab, median};
use model::json::{self, Value};
use model::limits::Limits;
use service::{Approach, ItemQuery, QueryRows, Scope};
use testkit::files::bytes_in;

const SIZES: &str = "10000,100000";
const LAYOUTS: [(&str, u32); 2] = [("one", 400), ("five", 30_000)];
const INDEXED: &str = r#"{"indexingMode":"consistent"}"#;
const UNINDEXED: &str = r#"{"indexingMode":"none","automatic":false}"#;
const DOCUMENT_BYTES: usize = 1_024;
/// Each query runs this often with other values; the median counts.
const ASKED: u64 = 201;
/// This many items share a value of `team`, at every size.
const GROUP_ITEMS: u64 = 10;
/// The number of keys, so the items of one key grow with the size.
const KEYS: u64 = 1_000;

/// The queries; `@n` is a number below the number of items.
const QUERIES: [(&str, &str); 5] = [
    ("equality", "SELECT * FROM c WHERE c.team = @team"),
    ("range TOP 10", "SELECT TOP 10 * FROM c WHERE c.number >= @n"),
    ("ORDER BY TOP 10", "SELECT TOP 10 * FROM c ORDER BY c.number DESC"),
    ("COUNT with filter", "SELECT VALUE COUNT(1) FROM c WHERE c.team = @team"),
    ("newest of a key", "SELECT TOP 10 * FROM c WHERE c.pk = @pk ORDER BY c.number DESC"),
];

/// What no index helps with: every item is looked at.
const SCANS: [(&str, &str); 3] = [
    ("scan to count", "SELECT VALUE COUNT(1) FROM c WHERE LENGTH(c.text) > 10"),
    ("scan for few rows", "SELECT * FROM c WHERE c.number % 5000 = 0"),
    ("scan to sort", "SELECT TOP 10 * FROM c ORDER BY c.tags[1]"),
];
/// How often each of them is asked.
const SCANNED: u64 = 5;

fn main() {
    let sizes = std::env::var("ORRERY_BENCH_ITEMS").unwrap_or_else(|_| SIZES.to_owned());
    let sizes: Vec<u64> = sizes.split(',').map(|size| size.trim().parse().unwrap()).collect();
    for (name, throughput) in LAYOUTS {
        let folder = tempfile::tempdir().unwrap();
        let lab = Lab::create(folder.path(), Limits::default(), throughput, INDEXED);
        let mut stored = 0;
        let mut growth: BTreeMap<&str, Vec<(Duration, Duration)>> = BTreeMap::new();
        for size in &sizes {
            let rate = lab.fill(stored..*size, document);
            stored = *size;
            println!("{name} partition(s), {size} items: {rate:.0} creates/s");
            let loaded = QUERIES.map(|(_, text)| ask_often(&lab, text, *size));
            lab.settle();
            for ((what, text), (loaded, _)) in QUERIES.into_iter().zip(loaded) {
                let (settled, access) = ask_often(&lab, text, *size);
                let (loaded_ms, settled_ms) = (millis(loaded), millis(settled));
                println!("  {what:18} {loaded_ms:9.3} ms, {settled_ms:9.3} ms   {access}");
                growth.entry(what).or_default().push((loaded, settled));
            }
            for (what, text) in SCANS {
                let each = scan(&lab, text) / u32::try_from(*size).unwrap();
                println!("  {what:18} {:9.3} µs an item, {size} items", millis(each) * 1e3);
                growth.entry(what).or_default().push((each, each));
            }
        }
        lab.close();
        println!("{name} partition(s), the largest beside the smallest:");
        for (what, times) in growth {
            let [first, .., last] = times.as_slice() else { continue };
            let grown =
                |of: fn(&(Duration, Duration)) -> Duration| millis(of(last)) / millis(of(first));
            println!("  {what:18} {:9.2} times, {:9.2} times", grown(|t| t.0), grown(|t| t.1));
        }
    }
    cost_of_indexing(sizes.iter().copied().min().unwrap_or_default());
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Loads the same documents with and without an index.
fn cost_of_indexing(size: u64) {
    let [(rate, bytes), (rate_without, bytes_without)] = [INDEXED, UNINDEXED].map(|policy| {
        let folder = tempfile::tempdir().unwrap();
        let lab = Lab::create(folder.path(), Limits::default(), 400, policy);
        let rate = lab.fill(0..size, document);
        lab.close();
        (rate, bytes_in(folder.path()))
    });
    let ratio = rate / rate_without;
    println!("indexing: {rate:.0} creates/s, without {rate_without:.0}: {ratio:.2} of it");
    let documents = size * DOCUMENT_BYTES as u64;
    let index = bytes.saturating_sub(bytes_without) as f64 / documents as f64;
    println!("on disk: {bytes} bytes, without {bytes_without}; {index:.2} index bytes a byte");
}

fn ask_often(lab: &Lab, text: &str, size: u64) -> (Duration, String) {
    let mut access = String::new();
    let once = |asked| {
        let number = size / (ASKED + 1) * asked;
        let parameters = format!(
            r#"[{{"name":"@n","value":{number}}},{{"name":"@team","value":"g{}"}},{{"name":"@pk","value":"{}"}}]"#,
            number / GROUP_ITEMS,
            key(number),
        );
        let ((rows, report), time) = lab.timed(|| rows(lab, text, &parameters));
        assert!(!rows.is_empty(), "{text} at {number}");
        access = report;
        time
    };
    let times = (0..ASKED).map(once).collect();
    (median(times), access)
}

/// The median time of a query that no index helps.
fn scan(lab: &Lab, text: &str) -> Duration {
    let once = |_| {
        let ((rows, _), time) = lab.timed(|| rows(lab, text, "[]"));
        assert!(!rows.is_empty(), "{text}");
        time
    };
    median((0..SCANNED).map(once).collect())
}

/// The rows of a query, of all its pages, and its access path.
fn rows(lab: &Lab, text: &str, parameters: &str) -> (Vec<String>, String) {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let query = ItemQuery {
            source: text.into(),
            parameters: json::parse(parameters.as_bytes()).unwrap_or(Value::Null),
            scope: Scope::default(),
            across_partitions: true,
            merges: true,
            session: None,
            after,
            resume: None,
            items_max: 1_000,
            approach: Approach::Index,
            system: None,
            is_timed: false,
            names_indexes: false,
        };
        let QueryRows { rows: page, rest, report, .. } = lab.ask(query);
        rows.extend(page.iter().map(|row| String::from_utf8_lossy(row).into_owned()));
        if rest.is_none() {
            return (rows, report.access);
        }
        after = rest;
    }
}

fn key(number: u64) -> String {
    format!("key{}", number % KEYS)
}

/// A document with some properties and a text that fills it up.
fn document(number: u64) -> String {
    let (pk, group) = (key(number), number / GROUP_ITEMS);
    let start = format!(
        r#"{{"id":"{number}","pk":"{pk}","team":"g{group}","number":{number},"flags":{{"a":{},"b":{}}},"tags":["t{}","t{}"],"text":""#,
        number.is_multiple_of(2),
        number.is_multiple_of(3),
        number % 10,
        number % 100,
    );
    let text = "x".repeat(DOCUMENT_BYTES.saturating_sub(start.len() + 2));
    start + &text + r#""}"#
}
