//! `cargo xtask fuzz`: the seeded fuzzer, on the stable compiler.
//!
//! The bodies live in `lab`; with cargo-fuzz and a nightly compiler the same
//! bodies run under coverage guidance from `fuzz/`.

use std::path::Path;

use anyhow::Result;

use crate::run::{Cargo, step};

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The body to run; all of them, one after another, when left out
    target: Option<String>,
    /// How long each body runs
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Repeats an earlier run: the same seed makes the same inputs
    #[arg(long)]
    seed: Option<u64>,
}

pub fn run(root: &Path, options: &Options) -> Result<()> {
    let seconds = options.seconds.to_string();
    let seed = options.seed.map(|seed| seed.to_string());
    let mut args = vec!["run", "--release", "-p", "lab", "--bin", "fuzz", "--"];
    args.extend(options.target.as_deref());
    args.extend(["--seconds", &seconds, "--corpus", "fuzz/corpus"]);
    args.extend(seed.iter().flat_map(|seed| ["--seed", seed.as_str()]));
    step("fuzz", || Cargo::new(root, &args).run())
}
