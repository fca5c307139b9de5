//! `cargo xtask golden`: re-records the golden scripts.
//!
//! The new transcripts are what the code does, not what it should do: review the change
//! like code before committing it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::layers::{Manifest, Workspace};
use crate::repo;
use crate::run::{Cargo, step};

/// Test libraries that can rewrite what they expect.
const RECORDERS: [&str; 2] = ["goldenscript", "expect-test"];

/// Records the named crates, or all that have something to record.
pub fn run(root: &Path, wanted: &[String]) -> Result<()> {
    let workspace = Workspace::read(&repo::read(root)?)?;
    let crates = recordable(&workspace.manifests, wanted)?;
    let packages = crates.iter().flat_map(|name| ["-p", name.as_str()]);
    let args: Vec<&str> = ["test", "--no-fail-fast"].into_iter().chain(packages).collect();
    let tally = step("record", || {
        let cargo = Cargo::new(root, &args);
        cargo.env("UPDATE_GOLDENFILES", "1").env("UPDATE_EXPECT", "1").run_tests(Duration::MAX)
    })?;
    println!("{tally}");
    show_changes(root)?;
    ensure!(
        tally.failed == 0,
        "{} tests fail for another reason than their transcript",
        tally.failed
    );
    Ok(())
}

fn recordable(manifests: &[Manifest], wanted: &[String]) -> Result<Vec<String>> {
    let records = |manifest: &&Manifest| RECORDERS.iter().any(|name| manifest.depends_on(name));
    let all: Vec<String> =
        manifests.iter().filter(records).map(|manifest| manifest.name.clone()).collect();
    for name in wanted {
        ensure!(
            all.contains(name),
            "crate `{name}` has nothing to record; these have: {}",
            all.join(", ")
        );
    }
    ensure!(!all.is_empty(), "no crate has golden scripts");
    Ok(if wanted.is_empty() { all } else { wanted.to_vec() })
}

/// Shows what differs from the last commit, new files included.
fn show_changes(root: &Path) -> Result<()> {
    println!("changed since the last commit; read it like code:");
    for args in [["diff", "--stat"], ["status", "--short"]] {
        let status =
            Command::new("git").args(args).arg("--").arg("crates").current_dir(root).status();
        ensure!(status.context("cannot start git")?.success(), "git {} failed", args.join(" "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::RepoFile;

    fn manifests() -> Vec<Manifest> {
        let files = [
            RepoFile::made_up("Cargo.toml", ""),
            RepoFile::made_up(
                "crates/a/Cargo.toml",
                "[package]\nname = \"a\"\n[dev-dependencies]\ngoldenscript.workspace = true\n",
            ),
            RepoFile::made_up("crates/b/Cargo.toml", "[package]\nname = \"b\"\n"),
        ];
        Workspace::read(&files).unwrap().manifests
    }

    #[test]
    fn crates_with_transcripts_are_found() {
        assert_eq!(recordable(&manifests(), &[]).unwrap(), ["a"]);
    }

    #[test]
    fn a_crate_without_transcripts_is_refused() {
        let error = recordable(&manifests(), &["b".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "crate `b` has nothing to record; these have: a");
    }
}
