//! Measures queries without a usable index, over five partitions on disk: a filter that
//! finds few rows, and an order. Two builds, or one build on one core and on two (`taskset
//! -c 0`), show what parallel partitions gain.
//!
//! `slow_queries [ITEMS] [ROUNDS]`
#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use lab::queries::{Ask, Lab, definition};
use runtime::{Clock as _, RealClock};
use service::Approach;

const QUERIES: [(&str, &str); 3] = [
    ("filter, few rows", "SELECT * FROM c WHERE CONTAINS(c.text, \"7777\")"),
    ("ORDER BY TOP 10", "SELECT TOP 10 c.id, c.number FROM c ORDER BY c.number"),
    ("GROUP BY", "SELECT c.team, COUNT(1) AS n, SUM(c.number) AS s FROM c GROUP BY c.team"),
];

fn main() {
    let number = |at: usize, otherwise: u64| {
        std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let (items, rounds) = (number(1, 20_000), number(2, 9));
    let folder = tempfile::tempdir().expect("a folder");
    let lab = Lab::local(folder.path());
    let policy = r#"{"includedPaths":[{"path":"/number/?"}],"excludedPaths":[{"path":"/*"}]}"#;
    let key = r#"{"paths":["/pk"],"version":2}"#;
    let container = format!(r#"{{"partitionKey":{key},"indexingPolicy":{policy}}}"#);
    lab.create_container(&definition(&container)).expect("a container that can be made");
    lab.divide(5);
    let text = "x".repeat(400);
    for at in 0..items {
        let (spread, team) = (at.wrapping_mul(7_919) % items, at % 50);
        let item = format!(
            r#"{{"id":"{at}","pk":"p{at}","number":{spread},"team":{team},"text":"{text}{at}"}}"#
        );
        lab.put(&item).expect("an item that can be stored");
    }
    let clock = RealClock::new();
    for (what, query) in QUERIES {
        let ask = Ask::new(query);
        let mut times = Vec::new();
        let mut rows = 0;
        for _ in 0..rounds {
            let begun = clock.monotonic();
            rows = lab.all(&ask, Approach::Scan, 100, |_| {}).expect("rows").rows.len();
            times.push(clock.monotonic() - begun);
        }
        times.sort_unstable();
        let (best, median) = (times[0], times[times.len() / 2]);
        println!("{what:18} {rows:5} rows, best {best:?}, median {median:?}");
    }
}
