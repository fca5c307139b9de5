//! `raw`: the same documents put straight through each storey of the database, without HTTP.
//!
//! Each storey is called by as many threads as there would be connections, and each of them
//! waits until its write is durable. What a storey costs is the difference to the one below:
//!
//! - *service*: the door below every protocol, with authorisation, routing and executors;
//! - *partition*: one partition that owns the container, under a lock;
//! - *storage*: the batches that the partition wrote, submitted to the store;
//! - *engine*: the same batches, inserted into the engine, which one thread syncs for all.
//!
//! All storeys have stores of their own in one process and take turns.

mod engine;
pub(crate) mod partitions;
pub(crate) mod recorder;
mod services;
mod stores;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use runtime::{Clock as _, Random as _, RealClock, SeededRandom};
use tempfile::TempDir;

use crate::disk;
use crate::document::Documents;
use crate::latency::Latencies;
use crate::load::{EXPLANATION, count};
use crate::measure::Taken;
use crate::process::Usage;
use crate::report::{COLUMNS, Measured, Report};
use crate::target;

use engine::EngineStorey;
use partitions::PartitionStorey;
use recorder::{Recorded, Recorder};
use services::ServiceStorey;
use stores::StoreStorey;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Documents to create; all that they write is kept in memory, for the lower storeys
    #[arg(long, default_value = "30000", value_parser = count)]
    documents: u64,
    /// Threads that write and read
    #[arg(long, default_value_t = 32)]
    writers: usize,
    /// Point reads in each round
    #[arg(long, default_value = "30000", value_parser = count)]
    reads: u64,
    /// Slices of the load and rounds of reads, in which storeys take turns
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// The storeys; the first is the one that the others are compared with
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "engine,storage,partition,service"
    )]
    only: Vec<Name>,
    /// Milliseconds without work after which a slice of the load counts as settled; 0 waits for nothing
    #[arg(long, default_value_t = 1_200)]
    quiet_ms: u64,
    /// Keeps the data in memory; leaves out the engine
    #[arg(long)]
    in_memory: bool,
    /// Where temporary data goes [default: the system's folder]
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Also writes all figures to this file
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Name {
    Engine,
    Storage,
    Partition,
    Service,
}

/// One storey. Called by several threads.
trait Storey: Send + Sync {
    /// Creates a document and waits until it is durable.
    fn create(&self, documents: Documents, number: u64, recorded: &Recorded) -> Result<()>;

    /// Reads a document that was created. Returns its length.
    fn read(&self, documents: Documents, number: u64, recorded: &Recorded) -> Result<usize>;
}

struct Measuring {
    name: Name,
    storey: Box<dyn Storey>,
    folder: TempDir,
    created: Taken,
    read: Taken,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut report = Report::new(&COLUMNS);
    let documents = Documents::new(options.documents);
    let mut recorder = Recorder::new()?;
    let mut storeys = options.open()?;
    for round in 0..options.rounds.max(1) {
        let first = options.documents * round / options.rounds;
        let end = options.documents * (round + 1) / options.rounds;
        recorder.record(documents, first..end)?;
        for measuring in &mut storeys {
            measuring.create(options, documents, &recorder, first..end)?;
            measuring.read(options, documents, &recorder, end)?;
        }
    }
    options.heading(documents, &recorder).into_iter().for_each(|line| report.say(line));
    report.begin_table(EXPLANATION);
    for (operation, taken) in
        [("create", (|of| &of.created) as fn(&Measuring) -> &Taken), ("read", |of| &of.read)]
    {
        let figures = |of: &Measuring| {
            let mut figures = taken(of).figures();
            // All storeys share this process, which is also the client.
            for shared in ["rss_mib", "peak_rss_mib", "client_cpu_us", "received_bytes"] {
                figures.remove(shared);
            }
            (format!("{:?}", of.name).to_lowercase(), Ok(figures))
        };
        let targets = storeys.iter().map(figures).collect();
        let operation = operation.to_owned();
        report.add(Measured { operation, connections: options.writers, targets });
    }
    options.json.as_deref().map_or(Ok(()), |path| report.write_json(path))
}

impl Options {
    fn open(&self) -> Result<Vec<Measuring>> {
        let parent = self.folder.clone().unwrap_or_else(std::env::temp_dir);
        let mut storeys = Vec::new();
        for name in self.only.iter().copied() {
            if self.in_memory && name == Name::Engine {
                continue;
            }
            let folder = TempDir::with_prefix_in("orrery-bench-", &parent)?;
            let store = || stores::open(&folder.path().join("data"), self.in_memory);
            let storey: Box<dyn Storey> = match name {
                Name::Engine => Box::new(EngineStorey::open(&folder.path().join("data"))?),
                Name::Storage => Box::new(StoreStorey::new(store()?)),
                Name::Partition => Box::new(PartitionStorey::open(store()?)?),
                Name::Service => Box::new(ServiceStorey::open(store()?)?),
            };
            let (created, read) = Default::default();
            storeys.push(Measuring { name, storey, folder, created, read });
        }
        Ok(storeys)
    }

    fn heading(&self, documents: Documents, recorder: &Recorder) -> Vec<String> {
        let bytes = documents.text(0, 0).len();
        let durable = if self.in_memory { "data in memory" } else { "an fsync for each group" };
        let (keys, written) = recorder.per_document();
        vec![
            format!("{} documents of {bytes} bytes, {} threads", self.documents, self.writers),
            format!(
                "a document becomes {keys:.1} keys with {written:.0} bytes at the door of storage"
            ),
            format!("on: default index, {durable}; off: HTTP, signatures, throttling"),
            "left out: memory, as all storeys share one process; system calls".to_owned(),
        ]
    }
}

impl Measuring {
    fn create(
        &mut self,
        options: &Options,
        documents: Documents,
        recorder: &Recorder,
        numbers: std::ops::Range<u64>,
    ) -> Result<()> {
        let next = AtomicU64::new(numbers.start);
        let mut taken = timed(options.writers, || {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end {
                return Ok(false);
            }
            self.storey.create(documents, number, recorder.recorded()).map(|()| true)
        })?;
        // What is left to flush and compact counts, but nothing waits for it.
        let (elapsed, quiet) = (Duration::ZERO, Duration::from_millis(options.quiet_ms));
        taken.merge(Taken { elapsed, ..target::settle(std::process::id(), quiet)? });
        taken.disk_bytes = Some(disk::bytes_on_disk(self.folder.path()));
        self.created.merge(taken);
        Ok(())
    }

    /// Reads random ones of those that were created.
    fn read(
        &mut self,
        options: &Options,
        documents: Documents,
        recorder: &Recorder,
        created: u64,
    ) -> Result<()> {
        let (left, random) = (AtomicU64::new(options.reads), SeededRandom::new(created));
        let taken = timed(options.writers, || {
            let more =
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            if more.is_err() {
                return Ok(false);
            }
            let number = random.next_u64() % created;
            let read = self.storey.read(documents, number, recorder.recorded())?;
            anyhow::ensure!(read > 0, "document {number} is empty");
            Ok(true)
        })?;
        self.read.merge(taken);
        Ok(())
    }
}

/// Has threads do something until it says that there is no more.
pub(crate) fn timed(threads: usize, work: impl Fn() -> Result<bool> + Sync) -> Result<Taken> {
    let (clock, before) = (RealClock::new(), Usage::read(std::process::id())?);
    let all = Mutex::new((Latencies::default(), Vec::new()));
    // Threads take their figures with them when they end, so they end after the reading.
    let (done, seen) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    let body = || {
        let mut latencies = Latencies::default();
        let outcome = loop {
            let began = clock.monotonic();
            match work() {
                Ok(true) => latencies.add(clock.monotonic() - began),
                Ok(false) => break None,
                Err(why) => break Some(why),
            }
        };
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.0.merge(latencies);
        all.1.extend(outcome);
        drop(all);
        done.wait();
        seen.wait();
    };
    let (elapsed, usage) = std::thread::scope(|scope| {
        for _ in 0..threads {
            std::thread::Builder::new().name("writer".to_owned()).spawn_scoped(scope, body)?;
        }
        done.wait();
        let read = (clock.monotonic(), Usage::read(std::process::id()));
        seen.wait();
        anyhow::Ok(read)
    })?;
    let (latencies, failed) = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(why) = failed.into_iter().next() {
        return Err(why).context("a storey failed");
    }
    let usage = Some(usage?.since(&before));
    Ok(Taken { operations: latencies.count(), elapsed, latencies, usage, ..Taken::default() })
}
