//! `cargo xtask partitioning`: proves the articles' statements and writes the table.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::partitioning::{Proof, ROWS, TABLE, parse_rows, render};
use crate::run::Cargo;

pub fn run(root: &Path) -> Result<()> {
    let rows = parse_rows(&std::fs::read_to_string(root.join(ROWS))?)?;
    let args = ["test", "-p", "server", "--test", "articles", "--no-fail-fast"];
    let output = Cargo::new(root, &args).output()?;
    let proofs: Vec<Proof> = output.lines().filter_map(Proof::from_line).collect();
    ensure!(!proofs.is_empty(), "no test ran:\n{output}");
    std::fs::write(root.join(TABLE), render(&rows, &proofs)?)?;
    let failed: Vec<&str> =
        proofs.iter().filter(|proof| !proof.passed).map(|proof| proof.name.as_str()).collect();
    println!("wrote {TABLE}: {} tests, {} failed", proofs.len(), failed.len());
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}
