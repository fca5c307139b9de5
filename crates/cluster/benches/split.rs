//! How long do writes wait for a split, and does it depend on the size of the partition?
//!
//! A partition is filled, then split and merged ten times while four clients keep writing,
//! each write waiting for its fsync. Printed are the pause as the switch measures it, and
//! the longest that any write took meanwhile.
#![allow(clippy::print_stdout, reason = "benchmarks talk to people")]
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot work ends")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cluster::{Cluster, Container, ContainerSpec, Halve, PartitionId};
use model::json;
use model::limits::{Growth, Limits};
use model::partition_key::{PartitionKey, PartitionKeyDefinition};
use model::policy::ContainerDefinition;
use model::rid::{ContainerRid, DatabaseRid};
use partition::{Command, ContainerNumber, Document, Operation};
use runtime::Runtime;
use storage::Durability;
use storage::local::{self, LocalConfig};
use testkit::wait::block_on;

/// Sizes of the partition.
const MEGABYTES: [u64; 2] = [10, 1024];

/// Bytes of the documents that fill it.
const FILL_BYTES: usize = 64 << 10;

/// Threads that fill it, and clients that write during the splits.
const FILLERS: u64 = 16;
const CLIENTS: u64 = 4;

const ROUNDS: usize = 10;

fn main() {
    for megabytes in MEGABYTES {
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path(), megabytes);
        measure(folder.path(), megabytes);
    }
}

fn fill(folder: &Path, megabytes: u64) {
    let runtime = Runtime::real();
    let config = LocalConfig { durability: Durability::Os, ..LocalConfig::default() };
    let store = local::create(folder, config, &runtime).unwrap();
    let cluster = Cluster::open(Arc::clone(&store), runtime, Arc::default()).unwrap();
    let container = block_on(cluster.create_container(spec(), 1, Vec::new())).unwrap();
    let (next, all) = (AtomicU64::new(0), (megabytes << 20) / FILL_BYTES as u64);
    let padding = "x".repeat(FILL_BYTES - 100);
    std::thread::scope(|scope| {
        for _ in 0..FILLERS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= all {
                        return;
                    }
                    write(&cluster, &container, number, &padding);
                }
            });
        }
    });
    store.close().unwrap();
}

fn measure(folder: &Path, megabytes: u64) {
    let runtime = Runtime::real();
    let store = local::open(folder, LocalConfig::default(), &runtime).unwrap();
    let cluster = Cluster::open(Arc::clone(&store), runtime.clone(), Arc::default()).unwrap();
    let container = cluster.attach(spec()).unwrap();
    let (stop, longest) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut pauses, mut waits) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        for client in 1..=CLIENTS {
            let (cluster, container, clock) = (&cluster, &container, &runtime.clock);
            let (stop, longest) = (&stop, &longest);
            scope.spawn(move || {
                let mut number = client << 40;
                while !stop.load(Ordering::Relaxed) {
                    number += 1;
                    let start = clock.monotonic();
                    write(cluster, container, number, "small");
                    let took = (clock.monotonic() - start).as_micros();
                    longest.fetch_max(u64::try_from(took).unwrap(), Ordering::Relaxed);
                }
            });
        }
        for _ in 0..ROUNDS {
            runtime.clock.sleep(Duration::from_millis(200));
            longest.store(0, Ordering::Relaxed);
            let only = container.map().ranges()[0].id;
            let split = block_on(cluster.split(&container, only, Halve::Hashes)).unwrap();
            runtime.clock.sleep(Duration::from_millis(50));
            waits.push(Duration::from_micros(longest.load(Ordering::Relaxed)));
            pauses.push(split.pause);
            let both: Vec<PartitionId> = split.into;
            block_on(cluster.merge(&container, &both)).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    store.close().unwrap();
    println!("partition of {megabytes} MB, {ROUNDS} splits under {CLIENTS} writers:");
    println!("  pause of the switch       {}", summary(pauses));
    println!("  longest write meanwhile   {}", summary(waits));
}

fn summary(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let (median, last) = (times[times.len() / 2], times[times.len() - 1]);
    format!("median {:.1} ms, longest {:.1} ms", millis(median), millis(last))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn write(cluster: &Cluster, container: &Container, number: u64, padding: &str) {
    let key = format!("key-{}", number % 1_000);
    let body = format!(r#"{{"id":"{number}","pk":"{key}","padding":"{padding}"}}"#);
    let document = Document::parse(Bytes::from(body), &Limits::default()).unwrap();
    let definition = PartitionKeyDefinition::hash(["/pk"]).unwrap();
    let position = definition.locate(&PartitionKey::new([key.as_str()])).unwrap();
    let command = Command { position, operations: vec![Operation::Create { document }] };
    block_on(cluster.apply(container, command)).unwrap();
}

fn spec() -> ContainerSpec {
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#;
    let definition = ContainerDefinition::parse(&json::parse(body.as_bytes()).unwrap()).unwrap();
    ContainerSpec {
        number: ContainerNumber(1),
        rid: ContainerRid::new(DatabaseRid::new(1).unwrap(), 1).unwrap(),
        policies: BTreeMap::from([(0, definition.indexing().clone())]),
        definition: Arc::new(definition),
        index_seed: 1,
        growth: Growth::Unlimited,
    }
}
