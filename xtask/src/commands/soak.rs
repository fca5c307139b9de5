//! `cargo xtask soak`: the long versions of the tests that take numbers.
//!
//! Some tests do as much as an environment variable asks for: a little in every
//! test run, a lot here. They are found by the variable they read, so a new one
//! joins the soak without being listed.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::repo::{self, RepoFile};
use crate::report::Tally;
use crate::run::{Cargo, Stopwatch, step};

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Processes killed while they write
    #[arg(long, default_value_t = 200)]
    kills: u64,
    /// Damaged copies of data files
    #[arg(long, default_value_t = 2_500)]
    damages: u64,
    /// Power cuts in each durability, simulated
    #[arg(long, default_value_t = 600)]
    power_cuts: u64,
    /// Random commands compared with the reference model
    #[arg(long, default_value_t = 100_000)]
    commands: u64,
    /// Random containers, each asked random queries by all approaches
    #[arg(long, default_value_t = 100)]
    datasets: u64,
    /// Queries on each of them
    #[arg(long, default_value_t = 100)]
    queries: u64,
    /// Ordered queries that clients resume at every page, while items are written
    #[arg(long, default_value_t = 10_000)]
    resumes: u64,
    /// Seconds of hostile queries while health and reads are measured
    #[arg(long, default_value_t = 60)]
    attack_seconds: u64,
    /// Orders in which writers, splits, merges and a crash are tried
    #[arg(long, default_value_t = 3_000)]
    interleavings: u64,
    /// Rounds of attacks on the memory of a server
    #[arg(long, default_value_t = 5)]
    attacks: u64,
    /// Idle connections whose memory is measured
    #[arg(long, default_value_t = 800)]
    connections: u64,
    /// Backups of a server under writers and splits, each restored
    #[arg(long, default_value_t = 20)]
    backups: u64,
    /// Random rows in HybridRow, written and read back
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Mutated inputs for each fuzz body
    #[arg(long, default_value_t = 200_000)]
    mutations: u64,
    /// Transactions of clients that meet, with kills, whose isolation is judged
    #[arg(long, default_value_t = 120_000)]
    transactions: u64,
    /// Only tests whose crate and name contain this: `lab::queries`
    #[arg(long)]
    only: Option<String>,
    /// Continues with further rounds for this long; one round when left out
    #[arg(long, default_value_t = 0)]
    minutes: u64,
    /// Seed of the first round; each further round takes the next number
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Where a test finds its seed; a test that reads none is the same every round.
const SEED: &str = "ORRERY_SEED";

impl Options {
    fn variables(&self) -> [(&'static str, u64); 15] {
        [
            ("ORRERY_KILLS", self.kills),
            ("ORRERY_DAMAGES", self.damages),
            ("ORRERY_POWER_CUTS", self.power_cuts),
            ("ORRERY_COMMANDS", self.commands),
            ("ORRERY_DATASETS", self.datasets),
            ("ORRERY_QUERIES", self.queries),
            ("ORRERY_RESUMES", self.resumes),
            ("ORRERY_ATTACK_SECONDS", self.attack_seconds),
            ("ORRERY_ATTACKS", self.attacks),
            ("ORRERY_CONNECTIONS", self.connections),
            ("ORRERY_BACKUPS", self.backups),
            ("ORRERY_INTERLEAVINGS", self.interleavings),
            ("ORRERY_ROWS", self.rows),
            ("ORRERY_MUTATIONS", self.mutations),
            ("ORRERY_TRANSACTIONS", self.transactions),
        ]
    }
}

/// One test program of one crate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Program {
    package: String,
    test: String,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.package, self.test)
    }
}

pub fn run(root: &Path, options: &Options) -> Result<()> {
    let files = repo::read(root)?;
    let mut programs = BTreeSet::new();
    for (variable, _) in options.variables() {
        let readers = readers(&files, variable);
        ensure!(!readers.is_empty(), "no test reads {variable}");
        programs.extend(readers);
    }
    if let Some(only) = &options.only {
        programs.retain(|program| program.to_string().contains(only));
        ensure!(!programs.is_empty(), "no test is named like {only}");
    }
    let watch = Stopwatch::start();
    let limit = Duration::from_secs(options.minutes * 60);
    let mut tally = Tally::default();
    for seed in options.seed.. {
        let round = run_round(root, options, &programs, seed)?;
        tally += round;
        if round.failed > 0 || watch.elapsed() >= limit {
            break;
        }
    }
    for (variable, value) in options.variables() {
        println!("{variable}={value}");
    }
    println!("soaked for {:.0} s", watch.elapsed().as_secs_f64());
    println!("{tally}");
    ensure!(tally.failed == 0, "the soak found something");
    Ok(())
}

fn run_round(
    root: &Path,
    options: &Options,
    programs: &BTreeSet<Program>,
    seed: u64,
) -> Result<Tally> {
    let mut tally = Tally::default();
    for program in programs {
        let Program { package, test } = program;
        let done = step(&format!("{program}, seed {seed}"), || {
            // Figures that a test prints are the point of a soak.
            let args = ["test", "--release", "-p", package, "--test", test, "--", "--nocapture"];
            let mut cargo = Cargo::new(root, &args).env(SEED, &seed.to_string());
            for (variable, value) in options.variables() {
                cargo = cargo.env(variable, &value.to_string());
            }
            cargo.run_tests(Duration::MAX)
        })?;
        tally += done;
    }
    Ok(tally)
}

/// Integration tests under `crates/*/tests/*.rs` that read the variable.
fn readers(files: &[RepoFile], variable: &str) -> BTreeSet<Program> {
    let named = format!("\"{variable}\"");
    let reads = |file: &&RepoFile| file.text.as_ref().is_some_and(|text| text.contains(&named));
    files.iter().filter(reads).filter_map(|file| program(&file.path)).collect()
}

fn program(path: &str) -> Option<Program> {
    let (package, test) = path.strip_prefix("crates/")?.split_once("/tests/")?;
    let test = test.strip_suffix(".rs")?;
    let is_root = !test.contains('/');
    is_root.then(|| Program { package: package.to_owned(), test: test.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_by_the_variable_they_read() {
        let reads = "let kills = env(\"ORRERY_KILLS\", 20);";
        let files = [
            RepoFile::made_up("crates/storage/tests/crash.rs", reads),
            RepoFile::made_up("crates/storage/tests/crash/child.rs", reads),
            RepoFile::made_up("crates/storage/src/lib.rs", reads),
            RepoFile::made_up("crates/storage/tests/golden.rs", "// ORRERY_KILLS"),
        ];
        let found = readers(&files, "ORRERY_KILLS");
        let expected = Program { package: "storage".to_owned(), test: "crash".to_owned() };
        assert_eq!(found, BTreeSet::from([expected]));
        assert_eq!(readers(&files, "ORRERY_DAMAGES"), BTreeSet::new());
    }
}
