//! `cargo xtask ru`: what requests cost here, beside what the service is known to charge.
//!
//! The table is printed by a test, which also asserts the limits on errors: what is shown
//! and what is asserted cannot differ.

use std::path::Path;

use anyhow::Result;

use crate::run::Cargo;

pub fn run(root: &Path) -> Result<()> {
    let test = ["test", "--quiet", "-p", "service", "--test", "charges"];
    let shown = ["--", "--nocapture", "--exact", "published_charges_are_met"];
    Cargo::new(root, &[test.as_slice(), shown.as_slice()].concat()).run()
}
