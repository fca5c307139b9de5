//! Runs fuzz bodies on a stable compiler, from a seed, for a given time.
//!
//! `cargo xtask fuzz` runs it.
#![allow(clippy::print_stdout, reason = "a command-line tool talks on standard output")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use lab::fuzz::{self, Body, Crash, Mutator};
use runtime::{Clock, Random, RealClock, RealRandom};

/// Feeds mutated inputs to a fuzz body until it breaks or time is up
#[derive(Debug, Parser)]
struct Cli {
    /// The body to run; all of them, one after another, when left out
    target: Option<String>,
    /// How long each body runs
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The same seed makes the same inputs; drawn and printed when left out
    #[arg(long)]
    seed: Option<u64>,
    /// Inputs to start from, in one folder per body
    #[arg(long, default_value = "fuzz/corpus")]
    corpus: PathBuf,
    /// Where inputs that break a body are kept, in one folder per body
    #[arg(long, default_value = "fuzz/artifacts")]
    artifacts: PathBuf,
    /// Runs the target once, with this file as its input
    #[arg(long, requires = "target")]
    repeat: Option<PathBuf>,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let targets = targets(cli.target.as_deref())?;
    if let Some(file) = &cli.repeat {
        return repeat(&targets, file);
    }
    let seed = cli.seed.unwrap_or_else(|| RealRandom.next_u64());
    for (name, body) in targets {
        fuzz_one(&cli, name, body, seed)?;
    }
    Ok(())
}

fn targets(wanted: Option<&str>) -> Result<Vec<(&str, Body)>> {
    let Some(name) = wanted else { return Ok(fuzz::BODIES.to_vec()) };
    let Some(body) = fuzz::body(name) else {
        let known: Vec<&str> = fuzz::BODIES.iter().map(|(name, _)| *name).collect();
        bail!("there is no body `{name}`; there are: {}", known.join(", "));
    };
    Ok(vec![(name, body)])
}

fn repeat(targets: &[(&str, Body)], file: &Path) -> Result<()> {
    let input = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    for (name, body) in targets {
        body(&input);
        println!("{name}: {} bytes, nothing broke", input.len());
    }
    Ok(())
}

fn fuzz_one(cli: &Cli, name: &str, body: Body, seed: u64) -> Result<()> {
    let corpus = fuzz::read_corpus(&cli.corpus.join(name)).context("cannot read the corpus")?;
    println!("{name}: seed {seed}, {} inputs to start from, {} s", corpus.len(), cli.seconds);
    let clock = RealClock::new();
    let limit = Duration::from_secs(cli.seconds);
    let mut mutator = Mutator::new(corpus, seed);
    match fuzz::run(body, &mut mutator, |_| clock.monotonic() < limit) {
        Ok(runs) => println!("{name}: {runs} inputs, nothing broke"),
        Err(crash) => return Err(keep(&cli.artifacts.join(name), name, seed, &crash)?),
    }
    Ok(())
}

/// Saves the input and prints how to repeat it.
fn keep(folder: &Path, name: &str, seed: u64, crash: &Crash) -> Result<anyhow::Error> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let path = folder.join(format!("crash-{seed}-{}", crash.run));
    std::fs::write(&path, &crash.input)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let path = path.display();
    println!("{name}: broken by input {} of seed {seed}, kept in {path}", crash.run);
    println!("repeat with: cargo run --release -p lab --bin fuzz -- {name} --repeat {path}");
    println!("once it is fixed, move the file to fuzz/corpus/{name}/");
    Ok(anyhow::Error::new(crash.clone()))
}
