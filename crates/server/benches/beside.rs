//! How long do point reads take beside lists of a full page and queries on 10,000 resources
//! of the catalogue?
//!
//! Both run in a loop on a connection of their own, each as large as it may be, while
//! others read single documents at a steady pace; in between, those read alone. What is
//! compared is their p99, which may at most double. `cargo xtask bench beside`.
//!
//! The clients of the load have a thread of their own, and bodies are read and not looked at:
//! no read waits for them in this process, only for a core like everything else.
#![allow(clippy::unwrap_used, reason = "a bench stops at the first error")]
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

#[allow(dead_code, reason = "the bench of throughput uses more of it")]
#[path = "http/client.rs"]
mod client;
#[allow(dead_code, reason = "other benches use more of it")]
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

/// As many as a query on the catalogue covers.
const ROWS: u64 = 10_000;
/// As many as a list has on one page.
const PAGE: u64 = 1_000;
/// Documents that one batch creates.
const BATCH: u64 = 100;
const READERS: u64 = 4;
const PACE: Duration = Duration::from_millis(4);
/// Reads alone and beside the load take turns within a round: what else the machine has to do
/// changes from one moment to the next, and is to meet both.
const STRETCH: Duration = Duration::from_millis(1_500);
const STRETCHES: usize = 10;
const ROUNDS: usize = 5;

fn main() {
    load::run(measure());
}

async fn measure() {
    let program = Program::start(&std::env::temp_dir(), &["--in-memory"]);
    let address = program.address();
    fill(&mut Client::connect(address).await).await;
    for _ in 0..ROUNDS {
        let (mut alone, mut beside, load) = (Vec::new(), Vec::new(), Arc::new(Load::default()));
        for _ in 0..STRETCHES {
            alone.extend(read_for_a_while(address).await);
            load.ends.store(false, Ordering::Relaxed);
            let running = run_beside(address, Arc::clone(&load));
            beside.extend(read_for_a_while(address).await);
            load.ends.store(true, Ordering::Relaxed);
            running.join().unwrap();
        }
        let (alone, beside) = (Latencies::new(alone), Latencies::new(beside));
        tell("alone", &alone);
        tell("beside", &beside);
        let done = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let ratio = beside.per_mille(990).as_secs_f64() / alone.per_mille(990).as_secs_f64();
        println!(
            "        {} lists and {} queries; p99 beside / alone: {ratio:.2}",
            done(&load.lists),
            done(&load.queries),
        );
    }
}

async fn fill(client: &mut Client) {
    client.prepare().await;
    for group in 0..ROWS / BATCH {
        let documents: Vec<_> = (0..BATCH).map(|number| Document::small(group, number)).collect();
        client.create_all(&documents).await;
    }
    for number in 0..ROWS {
        assert_eq!(client.create_user(&format!("user-{number:05}")).await, 201);
    }
}

/// What runs beside the reads, and how often it completed.
#[derive(Default)]
struct Load {
    ends: AtomicBool,
    lists: AtomicU64,
    queries: AtomicU64,
}

/// Lists and queries on a thread of their own until the load ends.
fn run_beside(address: SocketAddr, load: Arc<Load>) -> TaskHandle {
    let body = move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(async { tokio::join!(list(address, &load), query(address, &load)) });
    };
    ThreadTasks.spawn("load", Box::new(body)).unwrap()
}

async fn list(address: SocketAddr, load: &Load) {
    let mut client = Client::connect(address).await;
    while !load.ends.load(Ordering::Relaxed) {
        assert_eq!(client.list().await, 200);
        assert_eq!(client.item_count(), Some(PAGE), "as long as pages get");
        load.lists.fetch_add(1, Ordering::Relaxed);
    }
}

async fn query(address: SocketAddr, load: &Load) {
    let mut client = Client::connect(address).await;
    while !load.ends.load(Ordering::Relaxed) {
        assert_eq!(client.query_users().await, 200);
        load.queries.fetch_add(1, Ordering::Relaxed);
    }
}

async fn read_for_a_while(address: SocketAddr) -> Vec<Duration> {
    let readers: Vec<_> = (0..READERS).map(|number| tokio::spawn(read(address, number))).collect();
    let mut taken = Vec::new();
    for reader in readers {
        taken.extend(reader.await.unwrap());
    }
    taken
}

async fn read(address: SocketAddr, number: u64) -> Vec<Duration> {
    let mut client = Client::connect(address).await;
    let (mut ticks, mut taken, mut at) = (interval(PACE), Vec::new(), number);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut pace = Pace { ticks, end: Instant::now() + STRETCH };
    while let Some(began) = pace.next().await {
        at = (at * 31 + 7) % ROWS;
        let document = Document::small(at / BATCH, at % BATCH);
        assert_eq!(client.read(&document).await, 200);
        taken.push(began.elapsed());
    }
    taken
}

fn tell(name: &str, taken: &Latencies) {
    let (p50, p99, max) = (taken.per_mille(500), taken.per_mille(990), taken.max());
    println!(
        "{name:<7} {:>6} reads  p50 {p50:>8.1?}  p99 {p99:>8.1?}  max {max:>8.1?}",
        taken.len()
    );
}
