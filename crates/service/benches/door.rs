//! What does the service cost above the storage door: durable creates, point reads, memory, opening?
//!
//! Both sides take turns in one run. The bare store gets as many keys of as many bytes for
//! each document as the service wrote, and waits for the disk likewise. What the store
//! costs above its engine: `cargo bench -p storage`.
//!
//! `ORRERY_BENCH_GB` sets how much there is to open. `cargo bench -p service`.
#![allow(clippy::unwrap_used, reason = "a bench stops at the first error")]
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use lab::crash;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use runtime::{Clock, Random, RealClock, Runtime, SeededRandom};
use service::{ItemAction, ItemOperation, Service};
use storage::local::{self, LocalConfig};
use storage::{CommitStatus, Counters, Durability, Store, WriteBatch};

const IN_FLIGHT: u64 = 64;
const ROUNDS: u64 = 5;
const CREATES_PER_ROUND: u64 = 6_000;
const READS_PER_ROUND: u64 = 60_000;
const DOCUMENT_BYTES: usize = 1_024;
const GB_DEFAULT: f64 = 0.02;

/// Set in the process that opens a folder, writes to it and dies.
const DYING: &str = "ORRERY_BENCH_DYING";
/// Set in the process that opens a folder and prints how long that took.
const OPENING: &str = "ORRERY_BENCH_OPENING";

fn main() {
    if let Ok(folder) = std::env::var(OPENING) {
        return tell_opening(Path::new(&folder));
    }
    if let Ok(folder) = std::env::var(DYING) {
        write_and_die(Path::new(&folder));
    }
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let ours = Ours::create(folders[0].path());
    let bare = Bare::create(folders[1].path(), ours.cost_of_one());
    let (mut creates, mut reads) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let first = 1 + round * CREATES_PER_ROUND;
        creates.push((ours.create_round(first), bare.create_round(first)));
        let written = first + CREATES_PER_ROUND;
        reads.push((ours.read_round(written), bare.read_round(written)));
    }
    report("durable creates/s", &creates);
    report("point reads/s", &reads);
    let counters = ours.service.store().counters();
    let per_sync = counters.batches_durable as f64 / counters.syncs.max(1) as f64;
    println!("batches per sync: {per_sync:.1}");
    drop((ours, bare));
    measure_opening();
}

fn report(what: &str, figures: &[(f64, f64)]) {
    for (round, (ours, bare)) in figures.iter().enumerate() {
        println!("round {round}: {what} service {ours:.0} bare store {bare:.0}");
    }
    let median = |pick: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = figures.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (ours, bare) = (median(|pair| pair.0), median(|pair| pair.1));
    let ratio = median(|pair| pair.0 / pair.1);
    println!("{what}: service {ours:.0}, bare store {bare:.0}, median ratio {ratio:.2}");
}

/// Runs `each` for all numbers, a few at a time, and returns the rate per second.
fn rate<F: Future<Output = ()>>(count: u64, each: impl Fn(u64) -> F) -> f64 {
    let reactor = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (clock, next) = (RealClock::new(), Cell::new(0));
    let lane = async || {
        while next.get() < count {
            let number = next.replace(next.get() + 1);
            each(number).await;
        }
    };
    reactor.block_on(join_all((0..IN_FLIGHT).map(|_| lane())));
    count as f64 / clock.monotonic().as_secs_f64()
}

/// The service, with the default indexing policy.
struct Ours {
    service: Service,
}

/// The container with five partitions.
const CONTAINER: usize = 1;

impl Ours {
    fn create(folder: &Path) -> Ours {
        Ours { service: crash::open_or_create(folder, LocalConfig::default()).unwrap() }
    }

    /// Keys and bytes that creating one document writes.
    fn cost_of_one(&self) -> Counters {
        let before = self.service.store().counters();
        let action = ItemAction::new(None, ItemOperation::Create { body: document(0) });
        crash::execute(&self.service, CONTAINER, action).unwrap();
        let after = self.service.store().counters();
        let (keys, bytes) = (after.keys - before.keys, after.bytes - before.bytes);
        println!("a document of 1 KB: {keys} keys, {bytes} bytes");
        Counters { keys, bytes, ..Counters::default() }
    }

    fn create_round(&self, first: u64) -> f64 {
        rate(CREATES_PER_ROUND, |number| async move {
            let body = document(first + number);
            let action = ItemAction::new(None, ItemOperation::Create { body });
            self.service.execute(crash::request(CONTAINER, action)).await.unwrap();
        })
    }

    fn read_round(&self, written: u64) -> f64 {
        let random = SeededRandom::new(written);
        rate(READS_PER_ROUND, |_| {
            let number = random.next_u64() % written;
            let key = Some(PartitionKey::new([key(number).as_str()]));
            let id = ItemId::parse(&number.to_string()).unwrap();
            let action = ItemAction::new(key, ItemOperation::Read { id, if_none_match: None });
            async { drop(self.service.execute(crash::request(CONTAINER, action)).await.unwrap()) }
        })
    }
}

/// The store alone, with keys and values of the same size.
struct Bare {
    store: Arc<dyn Store>,
    keys: u64,
    value_bytes: usize,
}

impl Bare {
    fn create(folder: &Path, cost: Counters) -> Bare {
        let store = local::create(folder, LocalConfig::default(), &Runtime::real()).unwrap();
        let keys_bytes = cost.keys * Bare::key(0, 0).len() as u64;
        let value_bytes = cost.bytes.saturating_sub(keys_bytes);
        let value_bytes = usize::try_from(value_bytes).unwrap();
        let bare = Bare { store, keys: cost.keys, value_bytes };
        assert_eq!(bare.store.write_session().submit(bare.batch(0)).wait(), CommitStatus::Durable);
        bare
    }

    /// About as long as an index key: prefix, path hash, value, ordinal.
    fn key(part: u64, number: u64) -> Bytes {
        let hash = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Bytes::from(format!("{part:08}{hash:016x}{number:016x}"))
    }

    /// One long value, as the document, and small keys, as its index entries.
    fn batch(&self, number: u64) -> WriteBatch {
        let mut batch = WriteBatch::new();
        let mut value = document(number).to_vec();
        value.resize(self.value_bytes, b' ');
        batch.put(Bare::key(0, number), value);
        (1..self.keys).for_each(|part| batch.put(Bare::key(part, number), Bytes::new()));
        batch
    }

    fn create_round(&self, first: u64) -> f64 {
        rate(CREATES_PER_ROUND, |number| {
            let ticket = self.store.write_session().submit(self.batch(first + number));
            async { assert_eq!(ticket.await, CommitStatus::Durable) }
        })
    }

    fn read_round(&self, written: u64) -> f64 {
        let random = SeededRandom::new(written);
        rate(READS_PER_ROUND, |_| async {
            let key = Bare::key(0, random.next_u64() % written);
            assert!(self.store.view().unwrap().get(&key).unwrap().is_some());
        })
    }
}

fn key(number: u64) -> String {
    format!("device-{}", number % 997)
}

/// 1 KB with fifteen properties of different types.
fn document(number: u64) -> Bytes {
    let key = key(number);
    let mut text = format!(
        r#"{{"id":"{number}","pk":"{key}","kind":"reading","unit":"Fahrenheit","value":{number}.5,"#
    );
    text.push_str(&format!(
        r#""ok":{},"at":{},"#,
        number.is_multiple_of(2),
        1_700_000_000 + number
    ));
    text.push_str(r#""tags":["a","b"],"place":{"city":"Oslo","lat":59.9,"lon":10.7},"#);
    text.push_str(&format!(r#""batch":{},"note":""#, number / 64));
    let padding = DOCUMENT_BYTES.saturating_sub(text.len() + 2);
    text.extend("The quick brown fox ".chars().cycle().take(padding));
    text.push_str("\"}");
    Bytes::from(text)
}

fn measure_opening() {
    let setting = std::env::var("ORRERY_BENCH_GB").ok();
    let gigabytes: f64 = setting.map_or(GB_DEFAULT, |text| text.parse().expect("a number"));
    let folder = tempfile::tempdir().unwrap();
    let service = crash::open_or_create(folder.path(), LocalConfig::default()).unwrap();
    service.store().close().unwrap();
    drop(service);
    println!("empty: {}", open_in_child(folder.path()));
    let items = fill(folder.path(), gigabytes);
    let stored = stored_bytes(folder.path()) as f64 / 1e9;
    println!("{items} documents, {stored:.2} GB, clean: {}", open_in_child(folder.path()));
    run_self(DYING, folder.path());
    println!("the same after a kill: {}", open_in_child(folder.path()));
}

/// Without syncs, as only the size matters here.
fn fill(folder: &Path, gigabytes: f64) -> u64 {
    const STEP: u64 = 4_096;
    let config = LocalConfig { durability: Durability::Os, ..LocalConfig::default() };
    let ours = Ours { service: crash::open_or_create(folder, config).unwrap() };
    let mut items = 0;
    while (stored_bytes(folder) as f64) < gigabytes * 1e9 {
        rate(STEP, |number| {
            let body = document(items + number);
            let action = ItemAction::new(None, ItemOperation::Create { body });
            let request = crash::request(CONTAINER, action);
            async { drop(ours.service.execute(request).await.unwrap()) }
        });
        items += STEP;
    }
    ours.service.store().close().unwrap();
    items
}

/// What the files take on the disk: preallocated space does not count.
fn stored_bytes(folder: &Path) -> u64 {
    let files = testkit::damage::list_files(folder).unwrap();
    let tables = files.iter().filter(|file| file.starts_with("keyspaces"));
    tables.filter_map(|file| std::fs::metadata(folder.join(file)).ok()).map(|data| data.len()).sum()
}

fn run_self(role: &str, folder: &Path) -> String {
    let program = std::env::current_exe().unwrap();
    let output = std::process::Command::new(program).env(role, folder).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn open_in_child(folder: &Path) -> String {
    run_self(OPENING, folder)
}

fn tell_opening(folder: &Path) {
    let clock = RealClock::new();
    let service = crash::open_or_create(folder, LocalConfig::default()).unwrap();
    let opened = clock.monotonic();
    let key = Some(PartitionKey::new([crash::HOT_KEY]));
    let id = ItemId::parse(crash::HOT_ID).unwrap();
    let action = ItemAction::new(key, ItemOperation::Read { id, if_none_match: None });
    crash::execute(&service, CONTAINER, action).unwrap();
    let answered = clock.monotonic();
    clock.sleep(Duration::from_millis(200));
    println!(
        "open {:.1} ms, first answer {:.1} ms, {} MiB idle",
        opened.as_secs_f64() * 1e3,
        answered.as_secs_f64() * 1e3,
        resident_mib()
    );
    // What is measured is opening, even of a folder that was not closed.
    std::process::abort();
}

/// Writes as much as one memtable holds, and ends without closing anything.
fn write_and_die(folder: &Path) -> ! {
    let ours = Ours { service: crash::open_or_create(folder, LocalConfig::default()).unwrap() };
    rate(5_000, |number| {
        let body = document((1 << 40) + number);
        let action = ItemAction::new(None, ItemOperation::Create { body });
        let request = crash::request(CONTAINER, action);
        async { drop(ours.service.execute(request).await.unwrap()) }
    });
    std::process::abort();
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}
