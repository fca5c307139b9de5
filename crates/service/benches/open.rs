//! How soon does a service answer that is opened, and how much memory does it use then?
//!
//! Empty, full, and full after a kill, each in a process of its own. `ORRERY_BENCH_GB` sets
//! how much there is to open. `cargo xtask bench open`.
#![allow(clippy::unwrap_used, reason = "a bench stops at the first error")]
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use lab::crash;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use runtime::{Clock, RealClock};
use service::{ItemAction, ItemOperation};
use storage::Durability;
use storage::local::LocalConfig;

const IN_FLIGHT: u64 = 64;
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
    measure_opening();
}

/// Runs `each` for all numbers, a few at a time.
fn run_all<F: Future<Output = ()>>(count: u64, each: impl Fn(u64) -> F) {
    let reactor = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let next = Cell::new(0);
    let lane = async || {
        while next.get() < count {
            let number = next.replace(next.get() + 1);
            each(number).await;
        }
    };
    reactor.block_on(join_all((0..IN_FLIGHT).map(|_| lane())));
}

/// The container with five partitions.
const CONTAINER: usize = 1;

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
    let service = crash::open_or_create(folder, config).unwrap();
    let mut items = 0;
    while (stored_bytes(folder) as f64) < gigabytes * 1e9 {
        run_all(STEP, |number| {
            let body = document(items + number);
            let action = ItemAction::new(None, ItemOperation::Create { body });
            let request = crash::request(CONTAINER, action);
            async { drop(service.execute(request).await.unwrap()) }
        });
        items += STEP;
    }
    service.store().close().unwrap();
    items
}

/// What the files take on the disk: preallocated space does not count.
fn stored_bytes(folder: &Path) -> u64 {
    let files = testkit::damage::list_files(folder).unwrap();
    let tables = files.iter().filter(|file| file.starts_with("tree"));
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
    let service = crash::open_or_create(folder, LocalConfig::default()).unwrap();
    run_all(5_000, |number| {
        let body = document((1 << 40) + number);
        let action = ItemAction::new(None, ItemOperation::Create { body });
        let request = crash::request(CONTAINER, action);
        async { drop(service.execute(request).await.unwrap()) }
    });
    std::process::abort();
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}
