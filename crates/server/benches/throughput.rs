//! Does provisioned throughput hold, no more and no less?
//!
//! 18,000 RU/s are three physical partitions of 6,000. Clients that never retry ask
//! for more than there is, at a steady pace, in requests of more than 20 RU each (a
//! batch of point reads), for 20 seconds at a time:
//! 1. spread over all keys: nearly all of the 18,000 is served;
//! 2. one hot key beside modest ones elsewhere: it is capped at one partition's 6,000, and
//!    the others are not affected;
//! 3. two hot keys of one partition: they share its 6,000.
//!
//! Fails when one of them does not hold. `cargo xtask bench throughput`.
#![allow(clippy::unwrap_used, reason = "a bench stops at the first error")]
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

#[allow(dead_code, reason = "the bench of `http` uses more of it")]
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
use std::time::Duration;

use model::partition_key::{PartitionKey, PartitionKeyDefinition};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use client::{Client, Document};
use load::Pace;
use program::Program;

const THROUGHPUT: f64 = 18_000.0;
const RANGES: u32 = 3;
const SHARE: f64 = 6_000.0;

/// Keys, and items of each: a batch reads them all.
const KEYS: u64 = 300;
const ITEMS: u64 = 24;
/// What such a batch costs: 1 RU for each item.
const BATCH_RU: f64 = 24.0;

const CONNECTIONS: u32 = 16;
const WARM_UP: Duration = Duration::from_secs(3);
const MEASURED: Duration = Duration::from_secs(20);

fn main() {
    load::run(measure());
}

async fn measure() {
    let program = Program::start(&std::env::temp_dir(), &["--in-memory"]);
    let address = program.address();
    let mut client = Client::connect(address).await;
    client.prepare_with("x-ms-offer-throughput: 18000\r\n").await;
    fill(&mut client).await;
    let places = places();

    let all = Load { keys: (0..KEYS).collect(), wanted: 1.5 * THROUGHPUT };
    let [uniform] = run(address, [all]).await;
    uniform.print("uniform", THROUGHPUT);
    assert!(uniform.rate >= 0.95 * THROUGHPUT && uniform.rate <= 1.01 * THROUGHPUT);

    let hot = Load { keys: vec![places[0][0]], wanted: 2.0 * SHARE };
    let others = [&places[1][..], &places[2][..]].concat();
    let cool = Load { keys: others, wanted: 0.8 * 2.0 * SHARE };
    let [hot, cool] = run(address, [hot, cool]).await;
    hot.print("one hot key", SHARE);
    cool.print("all others", 0.8 * 2.0 * SHARE);
    assert!(hot.rate >= 0.95 * SHARE && hot.rate <= 1.01 * SHARE);
    assert!(cool.refused == 0 && cool.rate >= 0.95 * 0.8 * 2.0 * SHARE);

    let two = Load { keys: places[1][..2].to_vec(), wanted: 2.0 * SHARE };
    let [two] = run(address, [two]).await;
    two.print("two keys of one partition", SHARE);
    assert!(two.rate >= 0.95 * SHARE && two.rate <= 1.01 * SHARE);
}

/// Writes honour retry-after: filling is not what is measured.
async fn fill(client: &mut Client) {
    for key in 0..KEYS {
        let documents = documents(key);
        while client.try_create_all(&documents).await == 429 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn documents(key: u64) -> Vec<Document> {
    (0..ITEMS).map(|number| Document::small(key, number)).collect()
}

/// The keys of each physical partition.
fn places() -> Vec<Vec<u64>> {
    let definition = PartitionKeyDefinition::hash(["/pk"]).unwrap();
    let ranges = definition.boundaries(RANGES);
    let mut places = vec![Vec::new(); ranges.len()];
    for key in 0..KEYS {
        let name = PartitionKey::new([Document::small(key, 0).key.as_str()]);
        let epk = definition.locate(&name).unwrap();
        let place = ranges.iter().position(|range| range.contains(&epk)).unwrap();
        places[place].push(key);
    }
    places
}

/// Keys that are read in turn, and the requested RU/s.
struct Load {
    keys: Vec<u64>,
    wanted: f64,
}

/// The result of a load.
#[derive(Default)]
struct Figures {
    /// RU/s that were served.
    rate: f64,
    served: u64,
    refused: u64,
}

impl Figures {
    fn print(&self, name: &str, provided: f64) {
        let Figures { rate, served, refused } = self;
        let percent = 100.0 * rate / provided;
        println!(
            "{name:<25}  {rate:>7.0} RU/s of {provided:>5.0} = {percent:>5.1} %  \
             {served:>6} served, {refused:>6} refused"
        );
    }
}

/// Runs loads beside each other.
async fn run<const N: usize>(address: SocketAddr, loads: [Load; N]) -> [Figures; N] {
    let start = Instant::now() + WARM_UP;
    let begun = loads.map(|load| {
        let keys = Arc::new(load.keys);
        let pace = Duration::from_secs_f64(f64::from(CONNECTIONS) * BATCH_RU / load.wanted);
        let drive = |number| tokio::spawn(drive(address, Arc::clone(&keys), number, pace, start));
        (0..CONNECTIONS).map(drive).collect::<Vec<_>>()
    });
    let mut figures = std::array::from_fn(|_| Figures::default());
    for (connections, figures) in begun.into_iter().zip(&mut figures) {
        for connection in connections {
            let (charge, served, refused) = connection.await.unwrap();
            figures.rate += charge / MEASURED.as_secs_f64();
            figures.served += served;
            figures.refused += refused;
        }
    }
    figures
}

/// One connection: a request at every tick, without retries.
async fn drive(
    address: SocketAddr,
    keys: Arc<Vec<u64>>,
    number: u32,
    pace: Duration,
    start: Instant,
) -> (f64, u64, u64) {
    let mut client = Client::connect(address).await;
    let first = Instant::now() + pace * number / CONNECTIONS;
    let mut ticks = interval_at(first, pace);
    // A delayed connection catches up: the pace is kept on average.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut charge, mut served, mut refused) = (0.0, 0, 0);
    let begin = usize::try_from(number).unwrap() * 7;
    let mut pace = Pace { ticks, end: start + MEASURED };
    for key in keys.iter().cycle().skip(begin % keys.len()) {
        let Some(now) = pace.next().await else { break };
        match client.read_all(&documents(*key)).await {
            200 if now >= start => {
                charge += client.charge();
                served += 1;
            }
            429 if now >= start => refused += 1,
            200 | 429 => {}
            other => panic!("status {other}"),
        }
    }
    (charge, served, refused)
}
