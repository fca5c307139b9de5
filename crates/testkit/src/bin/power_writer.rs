//! Writes through the storage door while everything it does to files is recorded: see
//! `testkit::power`. Creates a store where there is none.

#![allow(clippy::print_stdout, reason = "what is said is recorded")]

use std::collections::VecDeque;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, ensure};
use clap::Parser;
use runtime::Runtime;
use storage::local::{self, LocalConfig};
use storage::{CommitStatus, Durability, KeyRange, Store};
use testkit::power::{Promise, history};

/// Small, so that tables are written and merged all the time.
const TABLE_BYTES: u64 = 64 << 10;
/// With large values tables are large as well.
const LARGE_TABLE_BYTES: u64 = 4 << 20;
/// Batches in flight at the same time, so that some share a commit.
const UNDER_WAY_MAX: usize = 6;
const DISCARD_EVERY: u64 = 70;
const COMPACT_EVERY: u64 = 110;

#[derive(Parser, Debug)]
struct Cli {
    folder: PathBuf,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    batches: u64,
    /// Durability `os`
    #[arg(long)]
    relaxed: bool,
    /// Batches of a megabyte
    #[arg(long)]
    large: bool,
    /// Ends without closing, with batches in flight
    #[arg(long)]
    abort: bool,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let durability = if cli.relaxed { Durability::Os } else { Durability::Full };
    let store = open(&cli, durability)?;
    let first = history::newest(store.as_ref())?;
    say("opened", first, durability)?;
    let (mut session, mut under_way) = (store.write_session(), VecDeque::new());
    let last = first + cli.batches;
    for number in first + 1..=last {
        say("try", number, durability)?;
        under_way.push_back((number, session.submit(history::batch(cli.seed, number, cli.large))));
        while under_way.len() > UNDER_WAY_MAX {
            let (number, ticket) = under_way.pop_front().expect("it is not empty");
            ensure!(ticket.wait() == CommitStatus::Durable, "batch {number} did not last");
            say("done", number, durability)?;
        }
        if number.is_multiple_of(DISCARD_EVERY) {
            store.discard(&KeyRange::prefix(history::GARBAGE.as_bytes()))?;
        }
        if number.is_multiple_of(COMPACT_EVERY) {
            store.compact()?;
        }
    }
    if cli.abort {
        std::process::abort();
    }
    for (number, ticket) in under_way {
        ensure!(ticket.wait() == CommitStatus::Durable, "batch {number} did not last");
        say("done", number, durability)?;
    }
    store.close()?;
    say("closed", last, durability)
}

fn open(cli: &Cli, durability: Durability) -> Result<Arc<dyn Store>> {
    let bytes = if cli.large { LARGE_TABLE_BYTES } else { TABLE_BYTES };
    let config = LocalConfig {
        durability,
        memtable_bytes: bytes,
        table_bytes: bytes,
        ..LocalConfig::default()
    };
    let exists = Path::new(&cli.folder).join("FORMAT").exists();
    let open = if exists { local::open } else { local::create };
    Ok(open(&cli.folder, config, &Runtime::real())?)
}

/// One line in one write.
fn say(verb: &str, number: u64, durability: Durability) -> Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(Promise::line(verb, number, durability).as_bytes())?;
    Ok(output.flush()?)
}
