//! `cargo xtask check`: the quick checks for the inner loop.
//!
//! Rules, lints and documentation, then the quick tests: those inside the crates and the
//! golden scripts. `cargo xtask test` adds the slow ones.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::tidy;
use crate::run::{Cargo, step};

/// None of the quick tests takes a minute.
const SILENCE_MAX: Duration = Duration::from_secs(300);

pub fn run(root: &Path) -> Result<()> {
    step("tidy", || tidy::run(root))?;
    lints(root)?;
    let args = ["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--test", "golden"];
    let tally = step("quick tests", || Cargo::new(root, &args).run_tests(SILENCE_MAX))?;
    println!("{tally}");
    ensure!(tally.failed == 0, "{} of the quick tests failed", tally.failed);
    Ok(())
}

/// Format, clippy and documentation, warnings as errors.
pub fn lints(root: &Path) -> Result<()> {
    step("format", || Cargo::new(root, &["fmt", "--all", "--check"]).run())?;
    step("clippy", || {
        let args = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        Cargo::new(root, &args).run()
    })?;
    step("docs", || {
        let args = ["doc", "--workspace", "--no-deps"];
        Cargo::new(root, &args).env("RUSTDOCFLAGS", "-D warnings").run()
    })
}
