//! `cargo xtask check`: format, lints and documentation, warnings as errors.

use std::path::Path;

use anyhow::Result;

use crate::run::{Cargo, step};

pub fn run(root: &Path) -> Result<()> {
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
