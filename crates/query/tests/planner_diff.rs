//! Random queries, put to our planner and to Microsoft's.
//!
//! What differs is covered by an entry of `planner-differences.toml`, or it fails.
//! `cargo xtask planner-diff` asks for more of them, with other seeds.
#![allow(clippy::print_stdout, reason = "the figures are the point")]

#[path = "planner/diff.rs"]
mod diff;

const SEED: u64 = 24;

const QUERIES: usize = 5_000;

/// Of each function.
const CALLS: usize = 50;

#[test]
fn random_queries_are_planned_alike() {
    if let Err(missing) = diff::available() {
        assert!(std::env::var_os("CI").is_none(), "there is no {missing}");
        println!("left out: random queries to {missing}");
        return;
    }
    let outcome = diff::run(SEED, QUERIES, |_| {}).expect("the library answers");
    println!("{outcome}");
    assert_eq!(outcome.open, 0, "{}", outcome.told.join("\n"));
}

#[test]
fn functions_give_what_the_library_gives() {
    if diff::available().is_err() {
        return;
    }
    let different = diff::run_functions(SEED, CALLS).expect("the library answers");
    assert!(different.is_empty(), "{}", different.join("\n"));
}
