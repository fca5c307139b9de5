//! What does the door cost: durable batches and point reads, through it and without it?
//!
//! Both sides use the same engine settings, keys and machine, and take turns within
//! one run. A batch is one document of 1 KB and 21 small index keys; 64 writers each
//! wait for the disk before they write the next one. `cargo bench -p storage`.
#![allow(clippy::unwrap_used, reason = "a bench stops at the first error")]
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use runtime::{Clock, Random, RealClock, Runtime, SeededRandom, TaskHandle};
use storage::local::{self, LocalConfig};
use storage::{CommitStatus, Counters, Store, WriteBatch};

const WRITERS: u64 = 64;
const ROUNDS: usize = 5;
const BATCHES_PER_ROUND: u64 = 8_000;
const READS_PER_ROUND: u64 = 60_000;
const INDEX_KEYS: u64 = 21;
const DOCUMENT_BYTES: usize = 1_024;

fn main() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let door = Door::create(folders[0].path());
    let engine = Engine::create(folders[1].path());
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let first = round as u64 * BATCHES_PER_ROUND;
        let ours = write_round(&door, first);
        let theirs = write_round(&engine, first);
        println!("round {round}: writes/s door {ours:.0} engine {theirs:.0}");
        writes.push((ours, theirs));
        let written = first + BATCHES_PER_ROUND;
        let ours = read_round(&door, written);
        let theirs = read_round(&engine, written);
        println!("round {round}: reads/s  door {ours:.0} engine {theirs:.0}");
        reads.push((ours, theirs));
    }
    report("durable batches/s", &writes);
    report("random gets/s", &reads);
    show_counters(&door.store.counters());
    door.store.close().unwrap();
}

fn report(what: &str, figures: &[(f64, f64)]) {
    let median = |pick: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = figures.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (ours, theirs) = (median(|pair| pair.0), median(|pair| pair.1));
    let ratio = median(|pair| pair.0 / pair.1);
    println!("{what}: door {ours:.0}, engine {theirs:.0}, median ratio {ratio:.2}");
}

fn show_counters(counters: &Counters) {
    let batches = counters.batches_durable as f64;
    println!(
        "{} batches, {:.1} per sync, {:.1} keys and {:.0} bytes per batch",
        counters.batches_durable,
        batches / counters.syncs as f64,
        counters.keys as f64 / batches,
        counters.bytes as f64 / batches,
    );
}

/// One side of the comparison.
trait Side: Clone + Send + 'static {
    type Writer: FnMut(u64) + Send;

    fn writer(&self) -> Self::Writer;
    fn read(&self, key: &[u8]) -> usize;
}

fn write_round<S: Side>(side: &S, first: u64) -> f64 {
    let next = Arc::new(AtomicU64::new(first));
    let end = first + BATCHES_PER_ROUND;
    let elapsed = timed(|| {
        let writers: Vec<TaskHandle> = (0..WRITERS)
            .map(|_| {
                let (mut write, next) = (side.writer(), Arc::clone(&next));
                let body = move || {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= end {
                            break;
                        }
                        write(number);
                    }
                };
                Runtime::real().tasks.spawn("writer", Box::new(body)).unwrap()
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
    BATCHES_PER_ROUND as f64 / elapsed.as_secs_f64()
}

fn read_round<S: Side>(side: &S, written: u64) -> f64 {
    let random = SeededRandom::new(written);
    let elapsed = timed(|| {
        for _ in 0..READS_PER_ROUND {
            let key = document_key(random.next_u64() % written);
            assert_eq!(side.read(&key), DOCUMENT_BYTES);
        }
    });
    READS_PER_ROUND as f64 / elapsed.as_secs_f64()
}

fn timed(work: impl FnOnce()) -> Duration {
    let clock = RealClock::new();
    work();
    clock.monotonic()
}

/// Documents arrive in random key order, as hashed partition keys do.
fn document_key(number: u64) -> Vec<u8> {
    let place = SeededRandom::new(number).next_u64();
    [b"\0\0\0\x01i".as_slice(), &place.to_be_bytes(), &number.to_be_bytes()].concat()
}

fn index_key(number: u64, path: u64) -> Vec<u8> {
    let value = SeededRandom::new(number * INDEX_KEYS + path).next_u64() % 10_000;
    let (path, value) = (path.to_be_bytes(), value.to_be_bytes());
    [b"\0\0\0\x01x".as_slice(), &path, &value, &number.to_be_bytes()].concat()
}

/// Text that compresses about as well as JSON does.
fn document(number: u64) -> Vec<u8> {
    let random = SeededRandom::new(number);
    let mut text = Vec::new();
    while text.len() < DOCUMENT_BYTES {
        let field = format!("\"field{}\":{},", text.len() % 7, random.next_u64());
        text.extend_from_slice(field.as_bytes());
    }
    text.truncate(DOCUMENT_BYTES);
    text
}

#[derive(Clone)]
struct Door {
    store: Arc<dyn Store>,
}

impl Door {
    fn create(folder: &Path) -> Door {
        let store = local::create(folder, LocalConfig::default(), &Runtime::real()).unwrap();
        Door { store }
    }
}

impl Side for Door {
    type Writer = Box<dyn FnMut(u64) + Send>;

    fn writer(&self) -> Self::Writer {
        let mut session = self.store.write_session();
        Box::new(move |number| {
            let mut batch = WriteBatch::new();
            batch.put(document_key(number), document(number));
            (0..INDEX_KEYS).for_each(|path| batch.put(index_key(number, path), ""));
            assert_eq!(session.submit(batch).wait(), CommitStatus::Durable);
        })
    }

    fn read(&self, key: &[u8]) -> usize {
        self.store.view().unwrap().get(key).unwrap().unwrap().len()
    }
}

/// The engine alone, at its best: every writer commits its own batch, then one of them
/// syncs for all that have committed by then. (A sync per batch is far slower. Unlike with
/// the door, readers see batches before they are durable.)
#[derive(Clone)]
struct Engine {
    database: Database,
    data: Keyspace,
    committed: Arc<AtomicU64>,
    synced: Arc<Mutex<u64>>,
}

impl Engine {
    fn create(folder: &Path) -> Engine {
        let config = LocalConfig::default();
        let database = Database::builder(folder)
            .cache_size(config.cache_bytes)
            .worker_threads(config.worker_threads)
            .open()
            .unwrap();
        let options = || KeyspaceCreateOptions::default().max_memtable_size(config.memtable_bytes);
        let data = database.keyspace("data", options).unwrap();
        Engine { database, data, committed: Arc::default(), synced: Arc::default() }
    }

    fn commit(&self, number: u64) {
        let mut batch = self.database.batch();
        batch.insert(&self.data, document_key(number), document(number));
        for path in 0..INDEX_KEYS {
            batch.insert(&self.data, index_key(number, path), "");
        }
        batch.commit().unwrap();
    }

    fn sync(&self) {
        let mine = self.committed.fetch_add(1, Ordering::SeqCst) + 1;
        let mut synced = self.synced.lock().unwrap();
        if *synced < mine {
            let committed = self.committed.load(Ordering::SeqCst);
            self.database.persist(PersistMode::SyncData).unwrap();
            *synced = committed;
        }
    }
}

impl Side for Engine {
    type Writer = Box<dyn FnMut(u64) + Send>;

    fn writer(&self) -> Self::Writer {
        let engine = self.clone();
        Box::new(move |number| {
            engine.commit(number);
            engine.sync();
        })
    }

    fn read(&self, key: &[u8]) -> usize {
        self.data.get(key).unwrap().unwrap().len()
    }
}
