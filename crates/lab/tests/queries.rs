//! Random queries on random containers return the same through indexes and by scanning, on
//! one partition and on many, in one page and in many, merged by the service and by a
//! client: what the language says, applied to all documents.
//!
//! Also while items are written and while the indexing policy changes.
//!
//! `ORRERY_DATASETS`, `ORRERY_QUERIES` and `ORRERY_RESUMES` set how many, `ORRERY_SEED`
//! which ones.
#![allow(clippy::print_stdout, reason = "figures and seeds are to be seen")]

use std::ops::Range;

use lab::queries::trial::{self, Tally};

const DATA_SETS: u64 = 25;
const QUERIES: u64 = 71;
const RESUMES: u64 = 150;
const SEED: u64 = 5;

/// Items of a data set, usually and occasionally.
const ITEMS_MAX: usize = 40;
const MANY_ITEMS_MAX: usize = 3_000;
const MANY_ODDS: u64 = 25;

/// Data sets between two progress lines.
const PROGRESS: u64 = 50;

fn number(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a number")),
        Err(_) => otherwise,
    }
}

#[test]
fn all_ways_agree() {
    let (data_sets, queries) = (number("ORRERY_DATASETS", DATA_SETS), queries());
    let first = number("ORRERY_SEED", SEED).wrapping_mul(1_000_000);
    let sum = run(first..first + data_sets, ITEMS_MAX, queries);
    assert!(sum.indexed > sum.queries / 4, "indexes are hardly used: {sum:?}");
    assert!(sum.walked > sum.queries / 10, "groups are hardly found along indexes: {sum:?}");
    assert!(sum.rows > sum.queries, "queries hardly find anything: {sum:?}");
}

/// Which access path is chosen depends on how many items and entries there are.
#[test]
fn all_ways_agree_on_many_items() {
    let data_sets = number("ORRERY_DATASETS", DATA_SETS).div_ceil(MANY_ODDS);
    let first = number("ORRERY_SEED", SEED).wrapping_mul(1_000_000) + 500_000;
    run(first..first + data_sets, MANY_ITEMS_MAX, queries() / 5);
}

/// Clients that know nothing but the last row of the page before lose and repeat none.
#[test]
fn resumed_queries_go_on_where_they_were() {
    let (resumes, mut sum) = (number("ORRERY_RESUMES", RESUMES), Tally::default());
    let first = number("ORRERY_SEED", SEED).wrapping_mul(1_000_000) + 800_000;
    for seed in first.. {
        let items_max = if seed % MANY_ODDS == 0 { MANY_ITEMS_MAX / 10 } else { ITEMS_MAX };
        match trial::resume(seed, items_max) {
            Ok(tally) => sum += tally,
            Err(difference) => panic!("{difference}"),
        }
        if sum.resumed >= resumes {
            println!("seeds {first} to {seed}: {sum:?}");
            break;
        }
    }
    assert!(sum.splits > sum.resumed / 4, "hardly anything is split: {sum:?}");
}

fn queries() -> usize {
    usize::try_from(number("ORRERY_QUERIES", QUERIES)).expect("a number of queries")
}

fn run(seeds: Range<u64>, items_max: usize, queries: usize) -> Tally {
    let mut sum = Tally::default();
    for seed in seeds.clone() {
        match trial::run(seed, items_max, queries) {
            Ok(tally) => sum += tally,
            Err(difference) => panic!("{difference}"),
        }
        if (seed - seeds.start) % PROGRESS == PROGRESS - 1 {
            println!("until seed {seed}: {sum:?}");
        }
    }
    println!("seeds {seeds:?}, up to {items_max} items: {sum:?}");
    sum
}
