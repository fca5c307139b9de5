//! How long does opening take, empty and full, after a clean stop and after a kill, and how much memory does an idle store use?
//!
//! Every step is a process of its own, so that memory and caches of one do not flatter the
//! next. `ORRERY_BENCH_MB` sets the size of the full store, 1,024 by default.
#![allow(clippy::unwrap_used, reason = "a bench stops at the first error")]
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use runtime::{Clock, Random, RealClock, Runtime, SeededRandom};
use storage::local::{self, LocalConfig};
use storage::{CommitStatus, Durability, Store, WriteBatch};

const DOCUMENT_BYTES: usize = 1_024;
const DOCUMENTS_PER_BATCH: u64 = 50;
const INDEX_KEYS: u64 = 21;

/// What a child process is to do: `<step> <folder>`.
const STEP: &str = "ORRERY_OPEN_STEP";

/// Written without a stop before the kill.
const FRESH_BATCHES: u64 = 400;

fn main() {
    if let Ok(step) = std::env::var(STEP) {
        let (step, folder) = step.split_once(' ').unwrap();
        return run_step(step, Path::new(folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let steps = ["create", "open", "fill", "open", "write-and-die", "open", "open"];
    for step in steps {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let output = child.env(STEP, format!("{step} {}", folder.path().display())).output();
        let output = output.unwrap();
        print!("{step}: {}", String::from_utf8_lossy(&output.stdout));
        let died = output.status.code().is_none();
        assert!(output.status.success() || died, "{}", String::from_utf8_lossy(&output.stderr));
    }
}

fn run_step(step: &str, folder: &Path) {
    let clock = RealClock::new();
    let config = LocalConfig { durability: Durability::Os, ..LocalConfig::default() };
    let store = match step {
        "create" => local::create(folder, config, &Runtime::real()).unwrap(),
        _ => local::open(folder, config, &Runtime::real()).unwrap(),
    };
    let opened = clock.monotonic();
    match step {
        "fill" => fill(&store, &clock),
        "write-and-die" => die(&store),
        _ => print!("ready after {}, idle at {}; ", show(opened), resident()),
    }
    let before = clock.monotonic();
    store.close().unwrap();
    println!("closed in {}, {} on disk", show(clock.monotonic() - before), disk(folder));
}

fn fill(store: &Arc<dyn Store>, clock: &RealClock) {
    let megabytes = std::env::var("ORRERY_BENCH_MB").map_or(1_024, |text| text.parse().unwrap());
    let mut written = 0;
    let mut batches = 0;
    let started = clock.monotonic();
    while written < megabytes << 20 {
        written += write(store, batches);
        batches += 1;
    }
    let elapsed = show(clock.monotonic() - started);
    print!("{} documents in {elapsed}, then at {}; ", batches * DOCUMENTS_PER_BATCH, resident());
}

fn die(store: &Arc<dyn Store>) -> ! {
    for batch in 0..FRESH_BATCHES {
        write(store, u64::from(u32::MAX) + batch);
    }
    println!("{} documents, then killed", FRESH_BATCHES * DOCUMENTS_PER_BATCH);
    std::process::abort();
}

fn write(store: &Arc<dyn Store>, number: u64) -> usize {
    let mut batch = WriteBatch::new();
    let random = SeededRandom::new(number);
    for document in 0..DOCUMENTS_PER_BATCH {
        let id = (number * DOCUMENTS_PER_BATCH + document).to_be_bytes();
        let mut text = vec![0; DOCUMENT_BYTES / 2];
        random.fill(&mut text);
        let hex: String = text.iter().map(|byte| format!("{byte:02x}")).collect();
        let place = random.next_u64().to_be_bytes();
        batch.put([b"\0\0\0\x01i".as_slice(), &place, &id].concat(), hex);
        for path in 0..INDEX_KEYS {
            let value = (random.next_u64() % 10_000).to_be_bytes();
            let path = path.to_be_bytes();
            batch.put([b"\0\0\0\x01x".as_slice(), &path, &value, &id].concat(), "");
        }
    }
    let bytes = batch.bytes();
    assert_eq!(store.write_session().submit(batch).wait(), CommitStatus::Durable);
    bytes
}

fn show(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1_000.0)
}

/// Resident memory, where the system reports it.
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.map_or("unknown".to_owned(), |line| line.trim().to_owned())
}

fn disk(folder: &Path) -> String {
    fn sum(folder: &Path) -> u64 {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        entries
            .map(|entry| match entry.file_type().unwrap().is_dir() {
                true => sum(&entry.path()),
                false => entry.metadata().unwrap().len(),
            })
            .sum()
    }
    format!("{} MB", sum(folder) >> 20)
}
