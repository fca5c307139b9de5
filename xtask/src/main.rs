//! `cargo xtask`: every habit of this repository as a command.

mod corpus;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::commands::{
    bench, check, compatibility, conformance, fuzz, golden, partitioning, planner_diff, ru, soak,
    suite, test, tidy, transitions,
};
use xtask::conformance::Sdk;
use xtask::repo;

/// Every habit of this repository as a command
///
/// `cargo xtask check` is the one to run while working; `cargo xtask test` before a change is
/// offered: it adds all other tests and ends with a line `N passed, N failed`.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    habit: Habit,
}

#[derive(Debug, Subcommand)]
enum Habit {
    /// Everything that must hold: rules, lints, all tests, programs with the SDKs
    Test,
    /// The quick part of it: rules, lints, tests inside the crates, golden scripts
    Check,
    /// Rules of the house: layers, sizes, banned words, documentation
    Tidy,
    /// Re-records golden scripts and shows which of them changed
    Golden {
        /// Crates to record; all that have golden scripts when left out
        crates: Vec<String>,
    },
    /// Runs programs written with the official SDKs against a fresh server
    Conformance {
        /// The SDK; all of them when left out
        sdk: Option<Sdk>,
    },
    /// Writes COMPATIBILITY.md from the results of `conformance` and `suite`
    Compatibility,
    /// Judges a folder of query corpora: counts per file
    Corpus(corpus::Options),
    /// Feeds mutated inputs to decoders and parsers, from a seed
    Fuzz(fuzz::Options),
    /// Kills, damages and random commands in numbers too long for every day
    Soak(soak::Options),
    /// Proves the articles' statements on partitioning and writes their table
    Partitioning,
    /// Puts random queries to our planner and to Microsoft's
    PlannerDiff(planner_diff::Options),
    /// Splits and merges partitions under the load of official SDKs
    Transitions(transitions::Options),
    /// Runs a vendor's own tests of an SDK against a fresh server
    Suite(suite::Options),
    /// Shows the charges of requests beside the published ones
    Ru,
    /// Runs the benchmarks, each of which answers a question
    Bench(bench::Options),
}

#[allow(clippy::print_stderr, reason = "errors of a command-line tool go to standard error")]
fn main() -> ExitCode {
    let root = repo::root();
    let outcome = match Cli::parse().habit {
        Habit::Test => return test::run(&root),
        Habit::Check => check::run(&root),
        Habit::Tidy => tidy::run(&root),
        Habit::Golden { crates } => golden::run(&root, &crates),
        Habit::Conformance { sdk } => conformance::run(&root, sdk),
        Habit::Compatibility => compatibility::run(&root),
        Habit::Corpus(options) => corpus::run(&root, &options),
        Habit::Fuzz(options) => fuzz::run(&root, &options),
        Habit::Soak(options) => soak::run(&root, &options),
        Habit::Partitioning => partitioning::run(&root),
        Habit::PlannerDiff(options) => planner_diff::run(&root, &options),
        Habit::Transitions(options) => transitions::run(&root, &options),
        Habit::Suite(options) => suite::run(&root, &options),
        Habit::Ru => ru::run(&root),
        Habit::Bench(options) => bench::run(&root, &options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
