//! Writers, splits, merges and a crash in interleavings that a seed decides, compared with
//! a reference model.
//!
//! `ORRERY_INTERLEAVINGS` sets the number of seeds, `ORRERY_SEED` the first one.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]
#![allow(clippy::print_stdout, reason = "random tests say how to repeat them")]

#[path = "cluster/common.rs"]
#[allow(dead_code, reason = "shared with the other tests, each uses a part")]
mod common;
#[path = "interleavings/life.rs"]
mod life;
#[path = "interleavings/reference.rs"]
mod reference;
#[path = "interleavings/yielding.rs"]
mod yielding;

use std::collections::BTreeSet;

use life::live;
use runtime::{Random, SeededRandom};

/// Seeds in every test run.
const SEEDS: u64 = 24;

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

#[test]
fn nothing_acknowledged_is_lost_in_any_order() {
    let count = variable("ORRERY_INTERLEAVINGS", SEEDS);
    let seeds = SeededRandom::new(variable("ORRERY_SEED", 1));
    let mut steps = 0;
    for _ in 0..count {
        let seed = seeds.next_u64();
        println!("seed {seed}");
        steps += live(seed).steps();
    }
    println!("{count} interleavings, {steps} steps");
}

#[test]
fn a_seed_gives_the_same_steps_again() {
    let mut traces = BTreeSet::new();
    for seed in 1..=4 {
        let (first, second) = (live(seed), live(seed));
        assert_eq!(first, second, "seed {seed} gave two stories");
        traces.insert(first.hash());
    }
    assert_eq!(traces.len(), 4, "each seed has a story of its own");
}
