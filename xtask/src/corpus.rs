//! `cargo xtask corpus FOLDER`: how much of a folder of query corpora the language gets
//! right, as counts per file.
//!
//! The judge lives with the language (`crates/query/examples/corpus.rs`), whose
//! tests hold it against the recorded folder; this starts it for any other.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xtask::run::{Cargo, step};

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// A folder in the form of the conformance data for queries
    folder: PathBuf,
    /// Shows every row that is wrong, too
    #[arg(long)]
    wrong: bool,
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let folder = std::path::absolute(&options.folder).context("the folder has no path")?;
    let folder = folder.to_string_lossy();
    let mut args = vec!["run", "--quiet", "-p", "query", "--example", "corpus", "--"];
    args.push(&folder);
    if options.wrong {
        args.push("--wrong");
    }
    step("corpus", || Cargo::new(root, &args).run())
}
