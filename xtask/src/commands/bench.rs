//! `cargo xtask bench`: the benchmarks, each of which answers a question.
//!
//! Those under `crates/*/benches` ask about one crate. The tool in `crates/bench` measures a
//! built server, or the storeys below it, and takes options of its own.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::repo::{self, RepoFile};
use crate::run::{Cargo, step};

/// The commands of the tool.
const TOOL: [(&str, &str); 4] = [
    ("load", "What does each operation cost a server, and a whole load of documents?"),
    ("instructions", "How many instructions and allocations does each operation take?"),
    ("raw", "What does each storey cost: service, partition, storage, engine?"),
    ("index-designs", "What do other layouts of index entries cost to write and to query?"),
];

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The benchmark to run, and options for it; a list of all when left out
    ///
    /// `load --help` explains what it measures and how to compare binaries and other servers.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

pub fn run(root: &Path, options: &Options) -> Result<()> {
    let files = repo::read(root)?;
    let benches = benches(&files);
    let Some((name, rest)) = options.words.split_first() else {
        list(&benches);
        return Ok(());
    };
    if TOOL.iter().any(|(command, _)| command == name) {
        return run_tool(root, &options.words);
    }
    let wanted: Vec<&Bench> = benches.iter().filter(|bench| bench.name == *name).collect();
    ensure!(!wanted.is_empty(), "there is no benchmark `{name}`: `cargo xtask bench` lists them");
    ensure!(rest.is_empty(), "`{name}` takes no options");
    for Bench { package, name, .. } in wanted {
        step(&format!("{package}::{name}"), || {
            Cargo::new(root, &["bench", "-p", package, "--bench", name]).run()
        })?;
    }
    Ok(())
}

/// Builds the server beside the tool, which looks for it there, if it needs one.
fn run_tool(root: &Path, words: &[String]) -> Result<()> {
    let without = ["raw", "index-designs", "--help", "-h", "--binaries"];
    if !words.iter().any(|word| without.contains(&word.as_str())) {
        Cargo::new(root, &["build", "--release", "--quiet", "-p", "server"]).run()?;
    }
    let mut args = vec!["run", "--release", "--quiet", "-p", "bench", "--"];
    args.extend(words.iter().map(String::as_str));
    Cargo::new(root, &args).run().context("the measurement failed")
}

fn list(benches: &[Bench]) {
    for (name, question) in TOOL {
        println!("{name:<13} {question}");
    }
    for Bench { package, name, question } in benches {
        println!("{name:<13} {question} ({package})");
    }
}

/// A benchmark of one crate.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bench {
    package: String,
    name: String,
    /// The first line of its documentation.
    question: String,
}

/// Each `crates/*/benches/*.rs`.
fn benches(files: &[RepoFile]) -> Vec<Bench> {
    let bench = |file: &RepoFile| {
        let (package, name) = file.path.strip_prefix("crates/")?.split_once("/benches/")?;
        let name = name.strip_suffix(".rs").filter(|name| !name.contains('/'))?;
        let first = file.text.as_deref().and_then(|text| text.lines().next()).unwrap_or_default();
        let question = first.trim_start_matches("//!").trim();
        let [package, name, question] = [package, name, question].map(str::to_owned);
        Some(Bench { package, name, question })
    };
    files.iter().filter_map(bench).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benches_are_found_by_folder() {
        let files = [
            RepoFile::made_up("crates/storage/benches/door.rs", "//! What does it cost?\n"),
            RepoFile::made_up("crates/storage/benches/door/load.rs", ""),
        ];
        let [package, name, question] =
            ["storage", "door", "What does it cost?"].map(str::to_owned);
        assert_eq!(benches(&files), [Bench { package, name, question }]);
    }
}
