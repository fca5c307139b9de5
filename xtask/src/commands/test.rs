//! `cargo xtask test`: everything that must hold before a change is merged.
//!
//! Rules and lints come first because they are cheap. The last line is `N passed, N failed`
//! alone, for people and for machines; before it is what was skipped, if anything was. On a
//! continuous-integration machine (`CI=true`) nothing may be skipped.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::{check, conformance, tidy};
use crate::repo;
use crate::report::Tally;
use crate::run::{Cargo, Stopwatch, is_ci, step};

/// A test that is silent for this long hangs: the slowest takes two minutes on a busy
/// machine.
const SILENCE_MAX: Duration = Duration::from_secs(900);

/// Prints errors itself: nothing may follow the closing line.
pub fn run(root: &Path) -> ExitCode {
    let watch = Stopwatch::start();
    let mut left_out = left_out(repo::shared_data(root).is_dir());
    let outcome = run_steps(root, is_ci(), &mut left_out);
    // What stopped the run before its tests is one failure.
    let tally = outcome.as_ref().copied().unwrap_or(Tally { passed: 0, failed: 1 });
    if let Err(error) = &outcome {
        println!("stopped: {error:#}");
    }
    for what in &left_out {
        println!("left out: {what}");
    }
    println!("all steps took {:.1} s", watch.elapsed().as_secs_f64());
    println!("{tally}");
    if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_steps(root: &Path, ci: bool, left_out: &mut Vec<String>) -> Result<Tally> {
    ensure_complete(ci, left_out)?;
    step("tidy", || tidy::run(root))?;
    check::lints(root)?;
    let args = ["test", "--workspace", "--no-fail-fast"];
    step("build the tests", || Cargo::new(root, &args).arg(Path::new("--no-run")).run())?;
    let mut tally = step("tests", || Cargo::new(root, &args).run_tests(SILENCE_MAX))?;
    let sdks = conformance::run_sdks(root, &conformance::EVERY_TIME)?;
    tally += sdks.tally;
    left_out.extend(sdks.left_out);
    // Here the tests have run: what was skipped is a failure beside their results.
    tally.failed += u64::from(ensure_complete(ci, left_out).is_err());
    Ok(tally)
}

/// What this machine cannot test.
fn left_out(has_shared_data: bool) -> Vec<String> {
    let mut left_out = Vec::new();
    if !has_shared_data {
        left_out.push("tests against the shared conformance data: ../shared is absent".to_owned());
    }
    left_out
}

fn ensure_complete(ci: bool, left_out: &[String]) -> Result<()> {
    ensure!(!ci || left_out.is_empty(), "CI=true and something is left out");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_data_is_said_and_refused_in_ci() {
        let absent = left_out(false);
        assert_eq!(absent.len(), 1);
        assert!(absent[0].contains("../shared"));
        assert!(ensure_complete(false, &absent).is_ok());
        assert!(ensure_complete(true, &absent).is_err());
        assert!(ensure_complete(true, &left_out(true)).is_ok());
    }
}
