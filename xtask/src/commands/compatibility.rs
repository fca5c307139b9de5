//! `cargo xtask compatibility`: writes the page about the results of the SDKs.

use std::path::Path;

use anyhow::{Result, ensure};

use super::{conformance, suite};
use crate::compatibility::{PATH, Seen, render};
use crate::conformance::{Outcome, Sdk};
use crate::results;

/// Needs the results of every SDK and of the suite: a page with gaps would hide them.
pub fn run(root: &Path) -> Result<()> {
    let target = conformance::target_folder()?;
    let mut seen = Seen::default();
    for sdk in Sdk::ALL {
        let outcomes: Option<Vec<Outcome>> = results::read(&target, sdk.folder())?;
        let name = sdk.folder();
        ensure!(outcomes.is_some(), "no results: run `cargo xtask conformance {name}` first");
        seen.outcomes.extend(outcomes.into_iter().flatten());
    }
    seen.suite = results::read(&target, suite::RESULTS)?;
    ensure!(seen.suite.is_some(), "no results: run `cargo xtask suite python` first");
    std::fs::write(root.join(PATH), render(&seen))?;
    println!("wrote {PATH}");
    Ok(())
}
