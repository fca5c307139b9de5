//! What does a request cost over HTTP, and how soon is the first one answered?
//!
//! One client with 32 kept-alive connections drives several servers in turn, so that
//! their figures can be compared: ours on disk and in memory, a hyper server that
//! answers every request with the same bytes (what HTTP alone costs here), and
//! `@vercel/cosmosdb-server`, where npm can fetch it. Then ours is started on folders
//! of several kinds and timed until a signed point read is answered.
//!
//! On in ours: signatures, indexing, and on disk an fsync before each answer. Off:
//! throttling and TLS. The other two check no signature and write to no disk.
//!
//! `ORRERY_BENCH_GB` sets how much there is to open. `ORRERY_BENCH_BINARIES=old:new` compares
//! these binaries of ours with the first of them instead, in memory and in more rounds.
//! `cargo xtask bench http`.
#![allow(clippy::unwrap_used, reason = "a bench stops at the first error")]
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

#[allow(dead_code, reason = "the bench of throughput uses more of it")]
#[path = "http/client.rs"]
mod client;
#[path = "http/cpu.rs"]
mod cpu;
#[allow(dead_code, reason = "other benches use more of it")]
#[path = "http/load.rs"]
mod load;
#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "../tests/serve/program.rs"]
mod program;
#[path = "http/start.rs"]
mod start;
#[path = "http/target.rs"]
mod target;

use std::net::SocketAddr;
use std::time::Duration;

use runtime::{Clock as _, RealClock};

use client::{Client, Document};
use load::Latencies;
use target::Target;

const CONNECTIONS: u64 = 32;
/// The servers take turns, so that a busy moment of the machine does not hit one alone.
const ROUNDS: u64 = 3;
/// For small differences between binaries.
const BINARY_ROUNDS: u64 = 15;
const PHASE: Duration = Duration::from_secs(3);

fn main() {
    if std::env::var(target::CONSTANT).is_ok() {
        return load::run(target::serve_constant());
    }
    load::run(async {
        if let Some(targets) = target::start_named() {
            return compare(targets, BINARY_ROUNDS).await;
        }
        let (targets, left_out) = target::start_all();
        for why in left_out {
            println!("left out: {why}");
        }
        compare(targets, ROUNDS).await;
        start::report().await;
    });
}

async fn compare(targets: Vec<Target>, rounds: u64) {
    println!("{CONNECTIONS} connections, documents of {} bytes", Document::new(0, 0).body.len());
    println!("compared with {}:", targets[0].name);
    let mut figures = vec![(Vec::new(), Vec::new()); targets.len()];
    for target in &targets {
        Client::connect(target.address).await.prepare().await;
    }
    for round in 0..rounds {
        for (target, (creates, reads)) in targets.iter().zip(&mut figures) {
            let (figures, written) = phase(target, Verb::Create, round, &[]).await;
            creates.push(figures);
            reads.push(phase(target, Verb::Read, round, &written).await.0);
        }
    }
    let (creates, reads): (Vec<_>, Vec<_>) = figures.into_iter().unzip();
    for (verb, figures) in [("creates", creates), ("point reads", reads)] {
        let all: Vec<Figures> = figures.iter().map(|rounds| summary(rounds)).collect();
        for (target, figures) in targets.iter().zip(&all) {
            println!("{verb:<11}  {:<23}  {}", target.name, figures.against(&all[0]));
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    Create,
    Read,
}

/// The results of one phase on one server.
#[derive(Clone, Debug)]
struct Figures {
    per_second: f64,
    p50: Duration,
    p99: Duration,
    /// Processor time that the server took for a request, where the system reports it.
    cpu: Option<Duration>,
}

impl Figures {
    fn against(&self, first: &Figures) -> String {
        let Figures { per_second, p50, p99, cpu } = self;
        let share = per_second / first.per_second;
        let cpu = cpu.zip(first.cpu).map_or_else(String::new, |(cpu, first)| {
            let share = cpu.as_secs_f64() / first.as_secs_f64();
            format!("  cpu {cpu:>8.1?} each = {share:>5.3}")
        });
        format!("{per_second:>8.0}/s = {share:>5.3}  p50 {p50:>8.1?}  p99 {p99:>8.1?}{cpu}")
    }
}

/// The median round, with the processor time of the cheapest one: other load on the machine
/// can only add to that.
fn summary(rounds: &[Figures]) -> Figures {
    let cpu = rounds.iter().filter_map(|figures| figures.cpu).min();
    let mut rounds = rounds.to_vec();
    rounds.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
    Figures { cpu, ..rounds.swap_remove(rounds.len() / 2) }
}

/// Also returns how many requests each connection made. `written` says how many documents
/// each connection finds.
async fn phase(target: &Target, verb: Verb, round: u64, written: &[u64]) -> (Figures, Vec<u64>) {
    let clock = RealClock::new();
    let (start, cpu) = (clock.monotonic(), target.cpu());
    let connections: Vec<_> = (0..CONNECTIONS)
        .map(|number| {
            // Each connection and round has documents of its own.
            let group = round * CONNECTIONS + number;
            let written = written.get(usize::try_from(number).unwrap()).copied();
            tokio::spawn(drive(target.address, verb, group, written.unwrap_or_default()))
        })
        .collect();
    let (mut latencies, mut counts) = (Vec::new(), Vec::new());
    for connection in connections {
        let taken = connection.await.unwrap();
        counts.push(taken.len() as u64);
        latencies.extend(taken);
    }
    let elapsed = clock.monotonic() - start;
    let latencies = Latencies::new(latencies);
    let count = u32::try_from(latencies.len()).unwrap();
    let cpu = target.cpu().zip(cpu).map(|(after, before)| (after - before) / count);
    let per_second = f64::from(count) / elapsed.as_secs_f64();
    (
        Figures { per_second, p50: latencies.per_mille(500), p99: latencies.per_mille(990), cpu },
        counts,
    )
}

/// One connection: one request after the other until the phase is over. Returns how long
/// each took.
async fn drive(address: SocketAddr, verb: Verb, group: u64, written: u64) -> Vec<Duration> {
    let clock = RealClock::new();
    let mut client = Client::connect(address).await;
    let mut latencies = Vec::new();
    while clock.monotonic() < PHASE {
        let number = latencies.len() as u64;
        let start = clock.monotonic();
        let status = match verb {
            Verb::Create => client.create(&Document::new(group, number)).await,
            Verb::Read => client.read(&Document::new(group, spread(number) % written)).await,
        };
        assert!([200, 201].contains(&status), "{verb:?} of {group}-{number}: {status}");
        latencies.push(clock.monotonic() - start);
    }
    latencies
}

/// A permutation of all numbers that is the same in each run.
fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
}
