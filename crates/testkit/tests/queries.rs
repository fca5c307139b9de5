//! Random queries on random containers give the same through indexes and by scanning,
//! on one partition and on many, in one page and in many, merged by the service and by
//! a client: what the language says, applied to all documents.
//!
//! Also while items are written and while the indexing policy changes.
//!
//! `ORRERY_DATASETS` and `ORRERY_QUERIES` say how many, `ORRERY_SEED` which ones.
#![allow(clippy::print_stdout, reason = "figures and seeds are to be seen")]

use testkit::queries::trial::{self, Tally};

const DATA_SETS: u64 = 25;
const QUERIES: u64 = 71;
const SEED: u64 = 5;

/// Data sets between two lines that say how far it is.
const PROGRESS: u64 = 50;

fn number(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a number")),
        Err(_) => otherwise,
    }
}

#[test]
fn all_ways_agree() {
    let data_sets = number("ORRERY_DATASETS", DATA_SETS);
    let queries = usize::try_from(number("ORRERY_QUERIES", QUERIES)).unwrap();
    let first = number("ORRERY_SEED", SEED).wrapping_mul(1_000_000);
    let mut sum = Tally::default();
    for seed in first..first + data_sets {
        match trial::run(seed, queries) {
            Ok(tally) => sum += tally,
            Err(difference) => panic!("{difference}"),
        }
        if (seed - first) % PROGRESS == PROGRESS - 1 {
            println!("until seed {seed}: {sum:?}");
        }
    }
    println!("{data_sets} data sets from seed {first}: {sum:?}");
    assert!(sum.indexed > sum.queries / 4, "indexes are hardly used: {sum:?}");
    assert!(sum.rows > sum.queries, "queries hardly find anything: {sum:?}");
}
