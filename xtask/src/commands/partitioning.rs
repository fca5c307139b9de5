//! `cargo xtask partitioning`: proves the articles' statements and writes the table.

use std::path::Path;

use anyhow::{Result, bail, ensure};

use crate::commands::conformance::{Scratch, target_folder};
use crate::conformance::server::{self, Scheme};
use crate::conformance::{self, Combination, Readiness, Sdk};
use crate::partitioning::{Proof, ROWS, TABLE, parse_rows, render};
use crate::run::Cargo;

/// The SDKs whose programs prove what is said of clients.
const PROVING: [Sdk; 2] = [Sdk::Java, Sdk::Node];

pub fn run(root: &Path) -> Result<()> {
    let rows = parse_rows(&std::fs::read_to_string(root.join(ROWS))?)?;
    let mut proofs = tests(root)?;
    let binary = server::build(root)?;
    for sdk in PROVING {
        proofs.extend(cases(root, &binary, sdk)?);
    }
    // Tests end in any order; the table has one.
    proofs.sort_by(|a, b| a.name.cmp(&b.name));
    std::fs::write(root.join(TABLE), render(&rows, &proofs)?)?;
    let failed: Vec<&str> =
        proofs.iter().filter(|proof| !proof.passed).map(|proof| proof.name.as_str()).collect();
    println!("wrote {TABLE}: {} tests, {} failed", proofs.len(), failed.len());
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

fn tests(root: &Path) -> Result<Vec<Proof>> {
    let args = ["test", "-p", "server", "--test", "articles", "--no-fail-fast"];
    let output = Cargo::new(root, &args).output()?;
    let proofs: Vec<Proof> = output.lines().filter_map(Proof::from_line).collect();
    ensure!(!proofs.is_empty(), "no test ran:\n{output}");
    Ok(proofs)
}

/// The cases of an SDK's program that name rows. Without the SDK there is no table: it
/// would report fewer rows as proved.
fn cases(root: &Path, binary: &Path, sdk: Sdk) -> Result<Vec<Proof>> {
    let target = target_folder()?;
    let program = match conformance::prepare(sdk, root, &target) {
        Readiness::Ready(program) => program,
        Readiness::LeftOut(why) => bail!("{why}"),
    };
    let combination = Combination { sdk, scheme: Scheme::Http, partitions: 5 };
    let scratch = Scratch::new(&target)?;
    let outcome = conformance::run_combination(binary, &program, combination, &scratch.0)?;
    Ok(Proof::of_cases(&outcome))
}
