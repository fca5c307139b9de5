//! What does a partition cost on top of the storage door: durable creates and point reads?
//!
//! Both sides write the same keys to stores of the same settings and take turns
//! within one run. 64 writers share one partition, or one session, under a lock and
//! wait for the disk outside of it. A document has 1 KB and the default index.
//! `cargo bench -p partition`.
#![allow(clippy::unwrap_used, reason = "a bench stops at the first error")]
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

#[allow(dead_code, reason = "shared with the tests, only a part is used")]
#[path = "../tests/common/fixture.rs"]
mod fixture;
#[allow(dead_code, reason = "shared with the tests, only a part is used")]
#[path = "../tests/common/gate.rs"]
mod gate;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use fixture::{Backend, Container, EPOCH_MILLIS, Home};
use gate::Gate;
use model::limits::Limits;
use model::partition_key::Location;
use model::position::Timestamp;
use partition::{Command, Document, Operation, Partition, PartitionConfig, Reader};
use runtime::{Clock, Random, RealClock, Runtime, SeededRandom, TaskHandle};
use storage::local::LocalConfig;
use storage::{CommitStatus, Counters, Store, WriteBatch, WriteSession, memory};

const WRITERS: usize = 64;
const ROUNDS: usize = 5;
const CREATES_PER_ROUND: usize = 6_000;
const READS_PER_ROUND: u64 = 60_000;
const BUCKETS: u32 = 8;
const DOCUMENT_BYTES: usize = 1_024;
const NOW: u64 = EPOCH_MILLIS;

fn main() {
    let config = Arc::new(Container::keyed("/pk").config(BUCKETS));
    let total = ROUNDS * CREATES_PER_ROUND;
    let commands: Arc<Vec<Command>> = Arc::new((0..total).map(|at| create(&config, at)).collect());
    let batches = Arc::new(dry_run(&config, &commands));
    let ours = Home::with_config(Backend::Local, LocalConfig::default());
    let theirs = Home::with_config(Backend::Local, LocalConfig::default());
    let partition = Partition::open(Arc::clone(&config), Arc::clone(&ours.store)).unwrap();
    let partition = Arc::new(Mutex::new(partition));
    let session = Arc::new(Mutex::new(theirs.store.write_session()));
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let first = round * CREATES_PER_ROUND;
        let applied = write_round(first, through_partition(&partition, &commands));
        let submitted = write_round(first, through_door(&session, &batches));
        println!("round {round}: creates/s partition {applied:.0} door {submitted:.0}");
        writes.push((applied, submitted));
        let written = &commands[..first + CREATES_PER_ROUND];
        let read = read_round(written, |command| find(&config, ours.store.as_ref(), command));
        let keys = &item_keys(&batches)[..written.len()];
        let got = read_round(keys, |key| get(theirs.store.as_ref(), key));
        println!("round {round}: reads/s   partition {read:.0} door {got:.0}");
        reads.push((read, got));
    }
    report("durable creates/s", &writes);
    report("point reads/s", &reads);
    println!("partition: {}", syncs(&ours.store.counters()));
    println!("door:      {}", syncs(&theirs.store.counters()));
}

/// A document of about 1 KB with 20 properties of its own.
fn document(at: usize) -> String {
    let random = SeededRandom::new(at as u64);
    let mut text = format!(r#"{{"id":"item{at}","pk":"tenant{}""#, random.next_u64() % 5_000);
    for property in 0..17 {
        let value = random.next_u64();
        match property % 3 {
            0 => text.push_str(&format!(r#","number{property}":{}"#, value % 10_000)),
            1 => text.push_str(&format!(r#","text{property}":"value {value:020}""#)),
            _ => text.push_str(&format!(r#","flag{property}":{}"#, value.is_multiple_of(2))),
        }
    }
    let filler = DOCUMENT_BYTES.saturating_sub(text.len() + r#","note":""}"#.len());
    text + &format!(r#","note":"{}"}}"#, "x".repeat(filler))
}

fn create(config: &PartitionConfig, at: usize) -> Command {
    let document = Document::parse(Bytes::from(document(at)), &Limits::default()).unwrap();
    let definition = config.definition.partition_key();
    let key = definition.extract(document.json()).unwrap();
    let location: Location = definition.locate(&key).unwrap();
    Command { location, operations: vec![Operation::Create { document }] }
}

/// Applies everything to memory, to learn what is written and what applying
/// alone takes.
fn dry_run(config: &Arc<PartitionConfig>, commands: &[Command]) -> Vec<WriteBatch> {
    let gate = Gate::new(memory::create());
    let store: Arc<dyn Store> = Arc::<Gate>::clone(&gate);
    let mut partition = Partition::open(Arc::clone(config), store).unwrap();
    let elapsed = timed(|| {
        for command in commands {
            apply(&mut partition, command).result.unwrap();
        }
    });
    let (count, batches) = (commands.len() as f64, gate.take_seen());
    println!(
        "a document of {DOCUMENT_BYTES} bytes writes {:.1} keys and {:.0} bytes",
        batches.iter().map(WriteBatch::len).sum::<usize>() as f64 / count,
        batches.iter().map(WriteBatch::bytes).sum::<usize>() as f64 / count
    );
    println!("one thread, memory: {:.0} creates/s", count / elapsed.as_secs_f64());
    batches
}

fn apply(partition: &mut Partition, command: &Command) -> partition::Application {
    partition.apply(Timestamp::from_millis(NOW), command)
}

fn through_partition(
    partition: &Arc<Mutex<Partition>>,
    commands: &Arc<Vec<Command>>,
) -> impl Fn(usize) + Clone + Send + 'static {
    let (partition, commands) = (Arc::clone(partition), Arc::clone(commands));
    move |at| {
        let application = apply(&mut partition.lock().unwrap(), &commands[at]);
        assert!(application.result.is_ok());
        assert_eq!(application.ticket.wait(), CommitStatus::Durable);
    }
}

fn through_door(
    session: &Arc<Mutex<Box<dyn WriteSession>>>,
    batches: &Arc<Vec<WriteBatch>>,
) -> impl Fn(usize) + Clone + Send + 'static {
    let (session, batches) = (Arc::clone(session), Arc::clone(batches));
    move |at| {
        let batch = batches[at].clone();
        let ticket = session.lock().unwrap().submit(batch);
        assert_eq!(ticket.wait(), CommitStatus::Durable);
    }
}

fn write_round(first: usize, write: impl Fn(usize) + Clone + Send + 'static) -> f64 {
    let next = Arc::new(AtomicUsize::new(first));
    let end = first + CREATES_PER_ROUND;
    let elapsed = timed(|| {
        let writers: Vec<TaskHandle> = (0..WRITERS)
            .map(|_| {
                let (write, next) = (write.clone(), Arc::clone(&next));
                let body = move || {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        if at >= end {
                            break;
                        }
                        write(at);
                    }
                };
                Runtime::real().tasks.spawn("writer", Box::new(body)).unwrap()
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
    CREATES_PER_ROUND as f64 / elapsed.as_secs_f64()
}

/// Reads random items among those that were written.
fn read_round<T>(among: &[T], read: impl Fn(&T) -> usize) -> f64 {
    let random = SeededRandom::new(among.len() as u64);
    let elapsed = timed(|| {
        for _ in 0..READS_PER_ROUND {
            let at = usize::try_from(random.next_u64() % among.len() as u64).unwrap();
            assert!(read(&among[at]) > DOCUMENT_BYTES);
        }
    });
    READS_PER_ROUND as f64 / elapsed.as_secs_f64()
}

fn find(config: &Arc<PartitionConfig>, store: &dyn Store, command: &Command) -> usize {
    let (view, now) = (store.view().unwrap(), Timestamp::from_millis(NOW));
    let id = command.operations[0].id().as_str();
    let reader = Reader::new(Arc::clone(config));
    let item = reader.find(view.as_ref(), now, &command.location.position, id).unwrap().unwrap();
    item.text.len()
}

fn get(store: &dyn Store, key: &Bytes) -> usize {
    store.view().unwrap().get(key).unwrap().unwrap().len()
}

/// The key of the largest value in each batch, which is the item.
fn item_keys(batches: &[WriteBatch]) -> Vec<Bytes> {
    let item = |batch: &WriteBatch| {
        let largest = batch.iter().max_by_key(|write| write.value().map_or(0, Bytes::len));
        largest.unwrap().key().clone()
    };
    batches.iter().map(item).collect()
}

fn timed(work: impl FnOnce()) -> Duration {
    let clock = RealClock::new();
    work();
    clock.monotonic()
}

fn report(what: &str, figures: &[(f64, f64)]) {
    let median = |pick: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = figures.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (ours, theirs) = (median(|pair| pair.0), median(|pair| pair.1));
    let ratio = median(|pair| pair.0 / pair.1);
    println!("{what}: partition {ours:.0}, door {theirs:.0}, median ratio {ratio:.2}");
}

fn syncs(counters: &Counters) -> String {
    let per_sync = counters.batches_durable as f64 / counters.syncs as f64;
    format!("{} batches, {per_sync:.1} per sync", counters.batches_durable)
}
