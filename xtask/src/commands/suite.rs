//! `cargo xtask suite`: a vendor's own tests of an SDK against our server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Result, ensure};

use super::conformance::{Scratch, target_folder};
use crate::conformance::server::{self, Server};
use crate::results;
use crate::run::{Stopwatch, step};
use crate::suite::python::{Suite, Target};
use crate::suite::{Ended, Expected, Verdict, judge};

/// Where the results are kept.
pub const RESULTS: &str = "suite-python";

/// The suites that there are.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Which {
    Python,
}

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    suite: Which,
    /// Test files, such as `test_crud`; all of the plan when left out
    files: Vec<String>,
    /// Runs against a server that implements nothing, and records which tests pass all the
    /// same
    #[arg(long, conflicts_with = "files")]
    stub: bool,
}

pub fn run(root: &Path, options: &Options) -> Result<()> {
    let Which::Python = options.suite;
    let target = target_folder()?;
    let suite = step("fetch the suite", || Suite::prepare(root, &target))?;
    let expected = suite.expected()?;
    let files = chosen(&expected, &options.files);
    let scratch = Scratch::new(&target)?;
    if options.stub {
        let stub = Target::Stub(suite.start_stub(&scratch.0)?);
        let passed = passed(&run_files(&suite, &stub, &expected, &files)?);
        println!("{} tests pass against a server that knows nothing", passed.len());
        return suite.record_vacuous(&passed);
    }
    let binary = step("build the server", || server::build(root))?;
    let server = Target::Orrery(Server::start(&binary, &scratch.0)?);
    let results = run_files(&suite, &server, &expected, &files)?;
    let verdict = judge(&expected, &files, &results);
    report(&verdict);
    if options.files.is_empty() {
        results::write(&target, RESULTS, &(suite.package, &verdict))?;
    }
    ensure!(verdict.complaints.is_empty(), "{} complaints", verdict.complaints.len());
    Ok(())
}

/// The files to run: those that were named, or the plan's.
fn chosen(expected: &Expected, named: &[String]) -> Vec<String> {
    let planned = expected.plan.features.iter().flat_map(|feature| &feature.files);
    let bare = |name: &String| name.trim_end_matches(".py").to_owned();
    if named.is_empty() { planned.cloned().collect() } else { named.iter().map(bare).collect() }
}

fn run_files(
    suite: &Suite,
    target: &Target,
    expected: &Expected,
    files: &[String],
) -> Result<BTreeMap<String, Ended>> {
    let excluded: BTreeSet<String> =
        expected.plan.excluded.iter().flat_map(|reasoned| reasoned.tests.clone()).collect();
    let mut results = BTreeMap::new();
    for file in files {
        let watch = Stopwatch::start();
        let of_file = suite.run_file(target, file, &excluded)?;
        let count = |ended| of_file.values().filter(|each| **each == ended).count();
        println!(
            "    {file}: {} passed, {} failed, {} skipped in {:.1} s",
            count(Ended::Passed),
            count(Ended::Failed),
            count(Ended::Skipped),
            watch.elapsed().as_secs_f64()
        );
        results.extend(of_file);
    }
    Ok(results)
}

fn passed(results: &BTreeMap<String, Ended>) -> BTreeSet<String> {
    let passed = results.iter().filter(|(_, ended)| **ended == Ended::Passed);
    passed.map(|(test, _)| test.clone()).collect()
}

fn report(verdict: &Verdict) {
    for cause in &verdict.failures {
        println!("known: {} ({})", cause.reason, cause.tests.len());
    }
    for complaint in &verdict.complaints {
        println!("{complaint}");
    }
    let total = verdict.total();
    let excluded: usize = verdict.excluded.iter().map(|reasoned| reasoned.tests.len()).sum();
    println!(
        "besides: {} skipped by themselves, {excluded} excluded, {} passed but prove nothing",
        total.skipped, total.vacuous
    );
    println!("{} passed, {} failed", total.passed, total.failed);
}
