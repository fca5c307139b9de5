//! What do scripts cost: calls, functions in queries, memory, and those who work beside them?
//!
//! - Calls of a procedure that creates documents, beside batches that create the same.
//! - A query that calls a function for each of its items, beside one that computes the same.
//! - The memory of a server before and after it has run 1,000 different scripts.
//! - Reads and writes beside 64 clients whose scripts run for 5 seconds each, under other keys of
//!   the same physical partition and in other ones; beside 64 clients with plain batches, and
//!   alone. The p99 beside scripts may be three times that beside batches.
//!
//! What is compared takes turns within each round. On: signatures and indexing, as usual. Off:
//! throttling, TLS and the disk. `cargo xtask bench scripts`.
#![allow(clippy::unwrap_used, reason = "a bench stops at the first error")]
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

#[allow(dead_code, reason = "other benches use more of it")]
#[path = "http/client.rs"]
mod client;
#[path = "http/load.rs"]
mod load;
#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "../tests/serve/program.rs"]
mod program;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use runtime::{TaskHandle, Tasks as _, ThreadTasks};
use tokio::time::{Instant, MissedTickBehavior, interval};

use client::{Client, Document};
use load::{Latencies, Pace};
use program::Program;

const ROUNDS: usize = 5;
/// How long one of those that take turns has its turn.
const STRETCH: Duration = Duration::from_millis(1_500);
/// Clients of calls and batches.
const CALLERS: u64 = 4;
/// Documents that a call or a batch creates.
const DOCUMENTS: [u64; 2] = [1, 20];

const CREATE: &str = "function (items) { \
    items.forEach(function (item) { __.createDocument(__.getSelfLink(), item, function (e) { if (e) throw e; }); }); \
    __.response.setBody(items.length); }";

/// Items of the query that calls functions, and how often it is asked in a turn.
const QUERIED: u64 = 5_000;
const QUERIES: u32 = 10;

/// Scripts whose memory is measured.
const CACHED: u64 = 1_000;

/// A script that uses all the time that it has.
const ENDLESS: &str = "function () { for (;;); }";
const LOADERS: u64 = 64;
const BATCH: u64 = 20;
/// Longer than a script takes.
const BESIDE: Duration = Duration::from_secs(12);
const OTHERS: u64 = 4;
const PACE: Duration = Duration::from_millis(10);

fn main() {
    load::run(measure());
}

async fn measure() {
    let program = Program::start(&std::env::temp_dir(), &["--in-memory", "--throttle", "never"]);
    let address = program.address();
    let mut client = Client::connect(address).await;
    client.prepare_with("x-ms-offer-throughput: 30000\r\n").await;
    for documents in DOCUMENTS {
        tell_calls(address, documents).await;
    }
    tell_functions(&mut client).await;
    tell_memory(&program, &mut client).await;
    tell_beside(address).await;
}

async fn store(client: &mut Client, kind: &str, id: &str, text: &str) {
    let stored = client.store_script(kind, id, text).await;
    assert!([200, 201].contains(&stored), "{id}: {stored}");
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Procedure,
    Batch,
}

async fn tell_calls(address: SocketAddr, documents: u64) {
    store(&mut Client::connect(address).await, "sprocs", "create", CREATE).await;
    let next_group = Arc::new(AtomicU64::new(documents << 32));
    let (mut calls, mut batches) = (0, 0);
    for _ in 0..ROUNDS {
        calls += create_for_a_while(address, Form::Procedure, documents, &next_group).await;
        batches += create_for_a_while(address, Form::Batch, documents, &next_group).await;
    }
    let seconds = STRETCH.as_secs_f64() * ROUNDS as f64;
    let (calls, batches) = (calls as f64 / seconds, batches as f64 / seconds);
    println!(
        "create {documents:>2}   {calls:>7.0} calls/s, {batches:>7.0} batches/s; batches / calls: {:.1}",
        batches / calls
    );
}

/// Returns how often it was done.
async fn create_for_a_while(
    address: SocketAddr,
    form: Form,
    documents: u64,
    next_group: &Arc<AtomicU64>,
) -> u64 {
    let end = Instant::now() + STRETCH;
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let next_group = Arc::clone(next_group);
            tokio::spawn(async move {
                let (mut client, mut done) = (Client::connect(address).await, 0);
                while Instant::now() < end {
                    let group = next_group.fetch_add(1, Ordering::Relaxed);
                    create(&mut client, form, group, documents).await;
                    done += 1;
                }
                done
            })
        })
        .collect();
    let mut done = 0;
    for caller in callers {
        done += caller.await.unwrap();
    }
    done
}

async fn create(client: &mut Client, form: Form, group: u64, documents: u64) {
    let documents: Vec<_> = (0..documents).map(|number| Document::small(group, number)).collect();
    match form {
        Form::Batch => client.create_all(&documents).await,
        Form::Procedure => {
            let bodies: Vec<&str> = documents.iter().map(|one| one.body.as_str()).collect();
            let arguments = format!("[[{}]]", bodies.join(","));
            assert_eq!(client.execute("create", &documents[0].key, &arguments).await, 200);
        }
    }
}

async fn tell_functions(client: &mut Client) {
    store(client, "udfs", "even", "function (n) { return n % 2 === 0; }").await;
    for group in 0..QUERIED / 100 {
        let number = |number| group * 100 + number;
        let documents: Vec<_> = (0..100).map(|one| numbered(number(one))).collect();
        client.create_all(&documents).await;
    }
    let key = numbered(0).key;
    let filters = ["c.n % 2 = 0", "udf.even(c.n)"];
    let mut taken = [Duration::ZERO; 2];
    for _ in 0..ROUNDS {
        for (taken, filter) in taken.iter_mut().zip(filters) {
            let text = format!("SELECT VALUE COUNT(1) FROM c WHERE {filter}");
            let began = Instant::now();
            for _ in 0..QUERIES {
                assert_eq!(client.query(&key, &text).await, 200);
            }
            *taken += began.elapsed();
        }
    }
    let queries = QUERIES * u32::try_from(ROUNDS).unwrap();
    let [plain, calling] = taken.map(|taken| taken / queries);
    let rate = QUERIED as f64 / calling.as_secs_f64();
    println!(
        "functions   {QUERIED} items: {plain:.1?} without, {calling:.1?} with a call for each, {rate:.0} calls/s"
    );
}

fn numbered(n: u64) -> Document {
    let body = format!(r#"{{"id":"{n}","pk":"numbered","n":{n}}}"#);
    Document { id: n.to_string(), key: "numbered".to_owned(), body }
}

/// Each is stored under the same name: scripts are cached by name and text.
async fn tell_memory(program: &Program, client: &mut Client) {
    let script = |number| {
        let padding = "x".repeat(200);
        format!(
            "function () {{ var text = '{padding}'; __.response.setBody({number} + text.length); }}"
        )
    };
    let mut run = async |number| {
        store(client, "sprocs", "cached", &script(number)).await;
        assert_eq!(client.execute("cached", "k", "[]").await, 200);
    };
    // What the first runs need is not for each.
    for number in 0..CACHED / 10 {
        run(number).await;
    }
    let before = resident_kib(program);
    for number in CACHED..2 * CACHED {
        run(number).await;
    }
    let after = resident_kib(program);
    println!(
        "memory      {} KiB resident, {} KiB after {CACHED} further scripts of {} bytes",
        before,
        after,
        script(CACHED).len()
    );
}

fn resident_kib(program: &Program) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", program.id()));
    let status = status.unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse().unwrap())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    Batches,
    Scripts,
}

/// The key of the load, another one of the same physical partition, and one of another.
struct Keys {
    load: String,
    same: String,
    other: String,
}

async fn tell_beside(address: SocketAddr) {
    let mut client = Client::connect(address).await;
    store(&mut client, "sprocs", "endless", ENDLESS).await;
    let keys = Arc::new(find_keys(&mut client).await);
    let besides = [Beside::Nothing, Beside::Batches, Beside::Scripts];
    let mut taken: [[Vec<Duration>; 2]; 3] = Default::default();
    for round in 0..ROUNDS as u64 {
        for (beside, taken) in besides.into_iter().zip(&mut taken) {
            let load = Arc::new(Load::default());
            let running = (beside != Beside::Nothing)
                .then(|| run_load(address, beside, Arc::clone(&keys), Arc::clone(&load)));
            let seed = round << 40 | (beside as u64) << 36;
            let same = tokio::spawn(work_for_a_while(address, keys.same.clone(), seed));
            let other = work_for_a_while(address, keys.other.clone(), seed | 1 << 32).await;
            taken[0].extend(same.await.unwrap());
            taken[1].extend(other);
            load.ends.store(true, Ordering::Relaxed);
            running.map(TaskHandle::join).transpose().unwrap();
            let (done, refused) = (&load.done, &load.refused);
            let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
            println!("beside {beside:?}: {} done, {} refused", count(done), count(refused));
        }
    }
    let latencies = taken.map(|places| places.map(Latencies::new));
    for (at, place) in ["same partition, other keys", "other partition"].iter().enumerate() {
        for (beside, latencies) in besides.iter().zip(&latencies) {
            tell(place, *beside, &latencies[at]);
        }
        let p99 = |beside: usize| latencies[beside][at].per_mille(990).as_secs_f64();
        println!("        p99 beside scripts / beside batches: {:.2}", p99(2) / p99(1));
    }
}

fn tell(place: &str, beside: Beside, taken: &Latencies) {
    let beside = format!("{beside:?}");
    println!(
        "{place:<26} beside {beside:<8} {:>6} requests  p50 {:>8.1?}  p99 {:>8.1?}  max {:>8.1?}",
        taken.len(),
        taken.per_mille(500),
        taken.per_mille(990),
        taken.max()
    );
}

async fn find_keys(client: &mut Client) -> Keys {
    let mut keys = Vec::new();
    for group in 0..100 {
        let document = Document::small(7 << 50 | group, 0);
        assert_eq!(client.create(&document).await, 201);
        keys.push((client.range().unwrap(), document.key));
    }
    let (first, load) = keys.swap_remove(0);
    let mut find = |same| {
        let at = keys.iter().position(|(range, _)| (*range == first) == same).unwrap();
        keys.swap_remove(at).1
    };
    Keys { load, same: find(true), other: find(false) }
}

/// What runs beside, and how often it completed.
#[derive(Default)]
struct Load {
    ends: AtomicBool,
    done: AtomicU64,
    refused: AtomicU64,
}

/// Clients on a thread of their own until the load ends.
fn run_load(address: SocketAddr, beside: Beside, keys: Arc<Keys>, load: Arc<Load>) -> TaskHandle {
    let body = move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(async {
            let clients: Vec<_> = (0..LOADERS)
                .map(|number| {
                    let (keys, load) = (Arc::clone(&keys), Arc::clone(&load));
                    tokio::spawn(
                        async move { run_one(address, beside, &keys, &load, number).await },
                    )
                })
                .collect();
            for client in clients {
                client.await.unwrap();
            }
        });
    };
    ThreadTasks.spawn("load", Box::new(body)).unwrap()
}

async fn run_one(address: SocketAddr, beside: Beside, keys: &Keys, load: &Load, number: u64) {
    let mut client = Client::connect(address).await;
    while !load.ends.load(Ordering::Relaxed) {
        let status = match beside {
            Beside::Scripts => client.execute("endless", &keys.load, "[]").await,
            Beside::Batches | Beside::Nothing => {
                let ids = (0..BATCH).map(|at| number * BATCH + at);
                let operation = |id| {
                    let item = format!(r#"{{"id":"batch-{id}","pk":"{}"}}"#, keys.load);
                    format!(r#"{{"operationType":"Upsert","resourceBody":{item}}}"#)
                };
                let operations: Vec<String> = ids.map(operation).collect();
                let body = format!("[{}]", operations.join(","));
                client.send_batch(&keys.load, body.as_bytes()).await
            }
        };
        let counter = match status {
            // A script that was stopped after its time has run.
            200 | 408 => &load.done,
            429 => &load.refused,
            other => panic!("{beside:?}: {other}"),
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Writes documents and reads them again, at a steady pace.
async fn work_for_a_while(address: SocketAddr, key: String, seed: u64) -> Vec<Duration> {
    let workers: Vec<_> = (0..OTHERS)
        .map(|worker| tokio::spawn(work(address, key.clone(), seed | worker << 24)))
        .collect();
    let mut taken = Vec::new();
    for worker in workers {
        taken.extend(worker.await.unwrap());
    }
    taken
}

async fn work(address: SocketAddr, key: String, seed: u64) -> Vec<Duration> {
    let mut client = Client::connect(address).await;
    let (mut ticks, mut taken, mut number) = (interval(PACE), Vec::new(), seed);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut pace = Pace { ticks, end: Instant::now() + BESIDE };
    while let Some(began) = pace.next().await {
        let id = format!("beside-{number}");
        let body = format!(r#"{{"id":"{id}","pk":"{key}"}}"#);
        let document = Document { id, key: key.clone(), body };
        assert_eq!(client.create(&document).await, 201);
        taken.push(began.elapsed());
        let began = Instant::now();
        assert_eq!(client.read(&document).await, 200);
        taken.push(began.elapsed());
        number += 1;
    }
    taken
}
