//! Writes through the door with many writers until it is killed, and prints what it tries
//! and what was acknowledged.
//!
//! Started by tests; `lab::crash` reads the lines.
#![allow(clippy::print_stderr, reason = "figures that are not part of the protocol")]

use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use clap::Parser;
use lab::crash::{self, Halt, Line, Writer};
use runtime::Runtime;
use service::Service;
use storage::local::LocalConfig;

/// Writes until it is killed, or until enough is done
#[derive(Clone, Debug, Parser)]
struct Cli {
    /// The data folder; created when there is none
    folder: PathBuf,
    /// Number of this run on the folder: higher than all before
    #[arg(long, default_value_t = 1)]
    run: u64,
    /// Seed of what the writers do
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value_t = 32)]
    writers: usize,
    /// Stops cleanly after this many acknowledged operations; never when left out
    #[arg(long)]
    stop_after: Option<u64>,
    /// Size of memtables and tables, for a new folder; small ones make tables early
    #[arg(long, default_value_t = LocalConfig::default().memtable_bytes)]
    memtable_bytes: u64,
    /// Changes the layout all the time, and at this step of a transition prints that and
    /// waits to be killed, such as `Split-Paused`
    #[arg(long)]
    halt_at: Option<Halt>,
    /// At which visit of that step
    #[arg(long, default_value_t = 1)]
    halt_time: u64,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let config = LocalConfig {
        memtable_bytes: cli.memtable_bytes,
        table_bytes: cli.memtable_bytes,
        ..LocalConfig::default()
    };
    let mut service = crash::open_or_create(&cli.folder, config)?;
    let under_way = Arc::new(Mutex::new(None));
    if let Some(halt) = cli.halt_at {
        let (under_way, left) = (Arc::clone(&under_way), AtomicU64::new(cli.halt_time));
        service = service.observed_by(move |stage| {
            let change = *under_way.lock().expect("no thread panics while holding it");
            let here = change == Some(halt.change) && stage == halt.stage;
            if here && left.fetch_sub(1, Ordering::Relaxed) == 1 {
                say(&halt).expect("the parent process listens");
                loop {
                    std::thread::park();
                }
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
    if cli.halt_at.is_some() {
        let (service, seed) = (Arc::clone(&service), cli.seed);
        let body = move || {
            let begin = |change| {
                *under_way.lock().expect("no thread panics while holding it") = Some(change);
            };
            crash::change_layouts(&service, seed, begin).expect("layouts can be changed");
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
fn say(line: &impl Display) -> Result<()> {
    std::io::stdout().lock().write_all(format!("{line}\n").as_bytes())?;
    Ok(())
}
