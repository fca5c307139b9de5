//! Programs written with the official SDKs, run against a server of our own build.
//!
//! The SDKs are the judges: what an unmodified client can do counts, whatever our own tests
//! say. Each program lives in `tests/conformance/`, takes the same arguments and prints the
//! same lines, so that one runner serves all languages. [`prepare`] fetches what a program
//! needs into the target folder, [`server`] starts and stops the server,
//! [`run_combination`] combines them: write, stop, start again on the same data, verify.

mod dotnet;
mod prepare;
pub mod server;
mod trust;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

pub use prepare::{Program, Readiness, prepare, virtual_environment};
pub(crate) use prepare::{once, quiet};
use server::{Scheme, Server};
pub use trust::Trust;

use crate::report::Tally;
use crate::run::{self, Stopwatch};

/// One run of one program takes seconds; one that takes this long hangs.
const PROGRAM_SECS_MAX: u64 = 180;

/// The official SDKs that a program here is written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(clap::ValueEnum)]
pub enum Sdk {
    Python,
    Node,
    Go,
    Java,
    Rust,
    Dotnet,
}

impl Sdk {
    pub const ALL: [Sdk; 6] = [Sdk::Python, Sdk::Node, Sdk::Go, Sdk::Java, Sdk::Rust, Sdk::Dotnet];

    /// The folder of its program, and its word on the command line.
    pub fn folder(self) -> &'static str {
        match self {
            Sdk::Python => "python",
            Sdk::Node => "node",
            Sdk::Go => "go",
            Sdk::Java => "java",
            Sdk::Rust => "rust",
            Sdk::Dotnet => "dotnet",
        }
    }

    /// The numbers of physical partitions that its program runs on.
    fn partitions(self) -> [u32; 2] {
        match self {
            Sdk::Python | Sdk::Node | Sdk::Go | Sdk::Java | Sdk::Rust => [1, 5],
            // What it revealed about merging clients showed on ten.
            Sdk::Dotnet => [1, 10],
        }
    }

    /// What a reader must know to judge its results.
    pub fn caveat(self) -> Option<&'static str> {
        match self {
            Sdk::Python => Some(
                "the SDK checks no certificate on local addresses; the program looks at it by itself",
            ),
            Sdk::Node => None,
            Sdk::Go => Some(
                "keys with characters beyond U+FFFF are left out, for which the SDK sends an escape that is no JSON",
            ),
            Sdk::Java => {
                Some("gateway mode; plain http is allowed by a system property of the SDK")
            }
            Sdk::Rust => Some("no certificate is checked"),
            Sdk::Dotnet => Some(
                "gateway mode; the articles' programs with DocumentClient and, over https, CloudTableClient are among the cases",
            ),
        }
    }

    /// The language as people call it.
    pub fn language(self) -> &'static str {
        match self {
            Sdk::Python => "Python",
            Sdk::Node => "JavaScript",
            Sdk::Go => "Go",
            Sdk::Java => "Java",
            Sdk::Rust => "Rust",
            Sdk::Dotnet => ".NET",
        }
    }
}

/// What a program runs against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Combination {
    pub sdk: Sdk,
    pub scheme: Scheme,
    /// Physical partitions of the program's containers.
    pub partitions: u32,
}

impl Combination {
    /// Every combination of one SDK.
    pub fn all(sdk: Sdk) -> Vec<Combination> {
        let schemes = [Scheme::Http, Scheme::Https];
        let with =
            |scheme| sdk.partitions().map(|partitions| Combination { sdk, scheme, partitions });
        schemes.into_iter().flat_map(with).collect()
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Combination { sdk, scheme, partitions } = self;
        let plural = if *partitions == 1 { "" } else { "s" };
        write!(f, "{}, {scheme}, {partitions} partition{plural}", sdk.language())
    }
}

/// The results of one combination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub combination: Combination,
    /// The package and its version, as its registry names it.
    pub package: String,
    /// Names of the cases that passed; after a restart they end in `(restarted)`.
    pub passed: Vec<String>,
    /// `NAME: why`.
    pub failed: Vec<String>,
}

impl Outcome {
    pub fn tally(&self) -> Tally {
        Tally { passed: self.passed.len() as u64, failed: self.failed.len() as u64 }
    }

    /// Adds what one run of the program printed.
    ///
    /// The closing line must be there and agree with the lines before it: a program that
    /// died half-way has failed, whatever it printed until then.
    fn add(&mut self, output: &str, suffix: &str) {
        let (passed_before, failed_before) = (self.passed.len(), self.failed.len());
        for line in output.lines() {
            if let Some(name) = line.strip_prefix("ok ") {
                self.passed.push(format!("{name}{suffix}"));
            } else if let Some(failure) = line.strip_prefix("FAILED ") {
                self.failed.push(format!("{failure}{suffix}"));
            }
        }
        let passed = (self.passed.len() - passed_before) as u64;
        let counted = Tally { passed, failed: (self.failed.len() - failed_before) as u64 };
        let closing = output.lines().last().unwrap_or_default();
        if closing != counted.to_string() || counted == Tally::default() {
            self.failed.push(format!("the program ended early, with \"{closing}\"{suffix}"));
        }
    }
}

/// Runs a program against a fresh server, stops the server, starts it again on the same
/// data and has the program check what it left.
pub fn run_combination(
    binary: &Path,
    program: &Program,
    combination: Combination,
    folder: &Path,
) -> Result<Outcome> {
    let Combination { sdk, scheme, partitions } = combination;
    let data = folder.join(format!("{}-{scheme}-{partitions}", sdk.folder()));
    let package = program.package.clone();
    let mut outcome = Outcome { combination, package, passed: Vec::new(), failed: Vec::new() };
    for (mode, suffix) in [("write", ""), ("verify", " (restarted)")] {
        let server = Server::start(binary, &data)?;
        let output = run_program(program, &server, combination, mode)?;
        outcome.add(&output, suffix);
        server.stop().with_context(|| format!("after {mode}"))?;
    }
    Ok(outcome)
}

fn run_program(
    program: &Program,
    server: &Server,
    combination: Combination,
    mode: &str,
) -> Result<String> {
    let certificate = server.export_certificate()?;
    let trust = Trust::new(combination.sdk, &certificate)?;
    let mut command = program.conformance(&trust);
    command
        .arg(server.endpoint(combination.scheme))
        .arg(server.key())
        .arg(combination.partitions.to_string())
        .arg(mode);
    let log = server.folder.join(format!("{mode}.log"));
    run::bounded(&mut command, &log, Duration::from_secs(PROGRAM_SECS_MAX))
}

/// Runs every combination of an SDK and prints one line for each.
pub fn run_all(
    binary: &Path,
    program: &Program,
    sdk: Sdk,
    folder: &Path,
    mut say: impl FnMut(String),
) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for combination in Combination::all(sdk) {
        let watch = Stopwatch::start();
        let outcome =
            run_combination(binary, program, combination, folder).unwrap_or_else(|error| Outcome {
                combination,
                package: program.package.clone(),
                passed: Vec::new(),
                failed: vec![format!("{error:#}")],
            });
        for failure in &outcome.failed {
            say(format!("    FAILED {failure}"));
        }
        let seconds = watch.elapsed().as_secs_f64();
        say(format!("    {combination}: {} in {seconds:.1} s", outcome.tally()));
        outcomes.push(outcome);
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        let combination = Combination { sdk: Sdk::Node, scheme: Scheme::Https, partitions: 5 };
        let package = "sdk 1.0".to_owned();
        Outcome { combination, package, passed: Vec::new(), failed: Vec::new() }
    }

    #[test]
    fn cases_are_counted_by_their_lines() {
        let mut outcome = outcome();
        outcome.add("noise\nok create\nFAILED read: 404\n1 passed, 1 failed\n", "");
        outcome.add("ok verify\n1 passed, 0 failed\n", " (restarted)");
        assert_eq!(outcome.passed, ["create", "verify (restarted)"]);
        assert_eq!(outcome.failed, ["read: 404"]);
        assert_eq!(outcome.tally(), Tally { passed: 2, failed: 1 });
    }

    #[test]
    fn a_program_that_dies_has_failed() {
        for output in ["", "ok create\n", "ok create\n2 passed, 0 failed\n", "0 passed, 0 failed"] {
            let mut outcome = outcome();
            outcome.add(output, "");
            assert_eq!(outcome.failed.len(), 1, "{output:?}");
        }
    }

    #[test]
    fn every_sdk_runs_in_four_combinations() {
        let all: Vec<String> =
            Combination::all(Sdk::Node).iter().map(ToString::to_string).collect();
        let expected = [
            "JavaScript, http, 1 partition",
            "JavaScript, http, 5 partitions",
            "JavaScript, https, 1 partition",
            "JavaScript, https, 5 partitions",
        ];
        assert_eq!(all, expected);
    }
}
