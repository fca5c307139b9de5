//! `cargo xtask tidy`: prints what breaks a rule of the house.

use std::path::Path;

use anyhow::{Result, bail};

use crate::tidy;

pub fn run(root: &Path) -> Result<()> {
    let verdict = tidy::check_repository(root)?;
    println!("{} production files, {}", verdict.production_files, verdict.functions);
    for finding in &verdict.findings {
        println!("{finding}");
    }
    match verdict.findings.len() {
        0 => Ok(()),
        count => bail!("{count} findings"),
    }
}
