//! `cargo xtask planner-diff`: random queries put to our planner and to Microsoft's.
//!
//! The queries, the judge and the known differences live with the language
//! (`crates/query/tests/planner`), whose tests ask a few of them every time.

use std::path::Path;

use anyhow::Result;

use crate::run::{Cargo, step};

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Queries to ask, or calls of each function
    #[arg(long, default_value_t = 100_000)]
    count: u64,
    /// Repeats an earlier run: the same seed makes the same queries
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Tests what functions return for constants instead: 1,000 calls of each are many
    #[arg(long)]
    functions: bool,
}

pub fn run(root: &Path, options: &Options) -> Result<()> {
    let (count, seed) = (options.count.to_string(), options.seed.to_string());
    let mut args = vec!["run", "--quiet", "-p", "query", "--example", "planner_diff", "--"];
    args.extend([count.as_str(), seed.as_str()]);
    args.extend(options.functions.then_some("functions"));
    step("planner-diff", || Cargo::new(root, &args).run())
}
