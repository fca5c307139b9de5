//! Writes through the door with many writers until it is killed, and says on its
//! output what it tries and what was acknowledged.
//!
//! Started by tests; see `testkit::crash` for who reads the lines.
#![allow(clippy::print_stderr, reason = "figures that are not part of the protocol")]

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use clap::Parser;
use runtime::Runtime;
use service::{Service, Stage};
use storage::local::LocalConfig;
use testkit::crash::{self, Line, Writer};

/// Writes until it is killed, or until enough is done
#[derive(Clone, Debug, Parser)]
struct Cli {
    /// The data folder; made when there is none
    folder: PathBuf,
    /// Number of this run on the folder: higher than all before
    #[arg(long, default_value_t = 1)]
    run: u64,
    /// Seed of what the writers do
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value_t = 32)]
    writers: usize,
    /// Stops cleanly after so many acknowledged operations; never when left out
    #[arg(long)]
    stop_after: Option<u64>,
    /// Size of memtables, for a new folder; small ones make tables early
    #[arg(long, default_value_t = LocalConfig::default().memtable_bytes)]
    memtable_bytes: u64,
    /// Changes the layout all the time, and dies at this stage of a transition
    #[arg(long, value_parser = parse_stage)]
    die_at: Option<Stage>,
    /// At which time of coming to that stage
    #[arg(long, default_value_t = 1)]
    die_time: u64,
}

fn parse_stage(name: &str) -> Result<Stage, String> {
    let found = Stage::ALL.into_iter().find(|stage| format!("{stage:?}") == name);
    found.ok_or_else(|| format!("the stages are {:?}", Stage::ALL))
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let config = LocalConfig { memtable_bytes: cli.memtable_bytes, ..LocalConfig::default() };
    let mut service = crash::open_or_create(&cli.folder, config)?;
    if let Some(fatal) = cli.die_at {
        let left = AtomicU64::new(cli.die_time);
        service = service.observed_by(move |stage| {
            if stage == fatal && left.fetch_sub(1, Ordering::Relaxed) == 1 {
                // Nothing is tidied up, as with a kill from outside.
                std::process::abort();
            }
        });
    }
    let service = Arc::new(service);
    let left = Arc::new(AtomicU64::new(cli.stop_after.unwrap_or(u64::MAX)));
    let mut threads = Vec::new();
    for number in 0..cli.writers {
        let (service, left) = (Arc::clone(&service), Arc::clone(&left));
        let mut writer = Writer::new(cli.run, number, cli.seed);
        let body = move || {
            write(&service, &left, number, &mut writer).expect("every answer is clear");
        };
        let name = format!("writer-{number}");
        threads.push(Runtime::real().tasks.spawn(&name, Box::new(body))?);
    }
    if cli.die_at.is_some() {
        let (service, seed) = (Arc::clone(&service), cli.seed);
        let body = move || {
            crash::change_layouts(&service, seed).expect("layouts can be changed");
        };
        threads.push(Runtime::real().tasks.spawn("restless", Box::new(body))?);
    }
    for thread in threads {
        thread.join().context("a writer failed")?;
    }
    let counters = service.store().counters();
    service.store().close()?;
    eprintln!("{} batches durable, {} syncs", counters.batches_durable, counters.syncs);
    Ok(())
}

fn write(service: &Service, left: &AtomicU64, number: usize, writer: &mut Writer) -> Result<()> {
    let take = |left: u64| left.checked_sub(1);
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
        let attempt = writer.draw();
        say(&Line::Try { writer: number, attempt: attempt.clone() })?;
        let done = attempt.perform(service)?;
        say(&if done { Line::Done { writer: number } } else { Line::Refused { writer: number } })?;
    }
    Ok(())
}

/// One line in one write: it is out, or it is not.
fn say(line: &Line) -> Result<()> {
    std::io::stdout().lock().write_all(format!("{line}\n").as_bytes())?;
    Ok(())
}
