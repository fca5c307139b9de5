//! `orrery bench`: what does the core do on this machine and this disk?
//!
//! Writers create documents of a given size, indexed as usual, each waiting for its answer;
//! then the same number of readers read them back by key and id. Everything goes through
//! the same service that the protocols use.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use model::json::{Object, Value};
use model::name::ItemId;
use model::partition_key::{KeyComponent, PartitionKey};
use runtime::{Clock, RealClock};
use service::{
    InContainer, ItemAction, ItemOperation, Kind, Link, Principal, Request, ResourceAction,
    Service, Throughput,
};

use crate::data_dir::{self, DurabilitySetting, say};

/// Throughput of the container: five physical partitions.
const THROUGHPUT: u32 = 30_000;
/// Logical partitions that the documents are spread over.
const KEYS: u64 = 1_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A new folder to work in, which is left there. Without it, one is made and removed.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// When a write is answered: after an fsync, or once the operating system has it.
    #[arg(long, value_enum, default_value_t = DurabilitySetting::Full)]
    durability: DurabilitySetting,
    /// Requests in flight at any time.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    clients: u32,
    /// Bytes of each document.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(64..=1_000_000))]
    bytes: u32,
    /// Length of each of the two phases.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
    let made = arguments.data.is_none();
    let folder = match &arguments.data {
        Some(folder) => folder.clone(),
        None => std::env::temp_dir().join(format!("orrery-bench-{}", std::process::id())),
    };
    let outcome = runtime.block_on(measure(arguments, &folder));
    if made {
        std::fs::remove_dir_all(&folder)
            .with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    outcome?;
    Ok(ExitCode::SUCCESS)
}

async fn measure(arguments: &Arguments, folder: &std::path::Path) -> anyhow::Result<()> {
    let durability = arguments.durability.to_storage();
    let config = data_dir::config(durability);
    let service = Arc::new(data_dir::create(folder, config)?);
    let container = prepare(&service).await?;
    let bench = Arc::new(Bench {
        service,
        container,
        padding: "x".repeat(usize::try_from(arguments.bytes)?.saturating_sub(60)),
        clock: RealClock::new(),
        next: AtomicU64::new(0),
        done: AtomicU64::new(0),
    });
    let before = bench.service.store().counters();
    let writes = bench.phase(arguments, Phase::Write).await?;
    let after = bench.service.store().counters();
    let syncs = after.syncs - before.syncs;
    say(&format!(
        "{} clients, documents of {} bytes, durability {:?}, default indexing, no authentication or throttling at this door",
        arguments.clients, arguments.bytes, durability
    ));
    say(&format!("creates      {writes}"));
    say(&format!(
        "fsyncs       {syncs} ({:.1} creates each)",
        ratio(bench.next.load(Ordering::Relaxed), syncs)
    ));
    let reads = bench.phase(arguments, Phase::Read).await?;
    say(&format!("point reads  {reads}"));
    bench.service.store().close()?;
    Ok(())
}

async fn prepare(service: &Service) -> anyhow::Result<Link> {
    let database = Link::parse("dbs/bench").context("a valid link")?;
    let create = |parent: Link, kind, body, throughput| async move {
        let action = ResourceAction::Create { parent, kind, body, throughput, offer_type: None };
        service.execute(Request::new(Principal::Account, action)).await
    };
    let named = |id: &str| Object::from_iter([("id", id)]);
    create(Link::default(), Kind::Database, named("bench").into(), None).await?;
    let mut definition = named("items");
    let paths = Value::from(vec!["/pk"]);
    let key = [("paths", paths), ("kind", "Hash".into()), ("version", 2_i64.into())];
    definition.insert("partitionKey", Object::from_iter(key));
    let throughput = Some(Throughput::Manual(THROUGHPUT));
    create(database.clone(), Kind::Container, definition.into(), throughput).await?;
    database.child(Kind::Container, "items").context("a valid link")
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Write,
    Read,
}

#[derive(Debug)]
struct Bench {
    service: Arc<Service>,
    container: Link,
    padding: String,
    clock: RealClock,
    /// The next document to be written.
    next: AtomicU64,
    /// Requests answered in the current phase.
    done: AtomicU64,
}

impl Bench {
    async fn phase(
        self: &Arc<Bench>,
        arguments: &Arguments,
        phase: Phase,
    ) -> anyhow::Result<String> {
        self.done.store(0, Ordering::Relaxed);
        let start = self.clock.monotonic();
        let end = start + Duration::from_secs(arguments.seconds);
        let clients: Vec<_> = (0..arguments.clients)
            .map(|client| tokio::spawn(Arc::clone(self).client(phase, end, client)))
            .collect();
        let mut latencies: Vec<Duration> = Vec::new();
        for client in clients {
            latencies.extend(client.await??);
        }
        let elapsed = (self.clock.monotonic() - start).as_secs_f64();
        latencies.sort_unstable();
        let at = |per_mille: usize| {
            latencies.get(latencies.len() * per_mille / 1000).copied().unwrap_or_default()
        };
        let rate = ratio(self.done.load(Ordering::Relaxed), 1) / elapsed;
        Ok(format!("{rate:>10.0}/s   p50 {:>9.1?}   p99 {:>9.1?}", at(500), at(990)))
    }

    async fn client(
        self: Arc<Bench>,
        phase: Phase,
        end: Duration,
        client: u32,
    ) -> anyhow::Result<Vec<Duration>> {
        let mut latencies = Vec::new();
        let mut number = u64::from(client);
        loop {
            let start = self.clock.monotonic();
            if start >= end {
                return Ok(latencies);
            }
            let action = match phase {
                Phase::Write => self.create(self.next.fetch_add(1, Ordering::Relaxed)),
                Phase::Read => {
                    // A multiplicative permutation of what was written: spread out, the
                    // same in each run.
                    number = number
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    self.read((number >> 16) % self.next.load(Ordering::Relaxed).max(1))?
                }
            };
            let action = InContainer::new(self.container.clone(), action);
            self.service.execute(Request::new(Principal::Account, action)).await?;
            self.done.fetch_add(1, Ordering::Relaxed);
            latencies.push(self.clock.monotonic() - start);
        }
    }

    fn create(&self, number: u64) -> ItemAction {
        let pk = number % KEYS;
        let body = format!(
            r#"{{"id":"{number:012}","pk":"key-{pk:04}","n":{number},"padding":"{}"}}"#,
            self.padding
        );
        ItemAction::new(None, ItemOperation::Create { body: Bytes::from(body) })
    }

    fn read(&self, number: u64) -> anyhow::Result<ItemAction> {
        ensure!(self.next.load(Ordering::Relaxed) > 0, "nothing was written");
        let key = PartitionKey::new([KeyComponent::String(format!("key-{:04}", number % KEYS))]);
        let id = ItemId::parse(&format!("{number:012}"))?;
        Ok(ItemAction::new(Some(key), ItemOperation::Read { id, if_none_match: None }))
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn ratio(count: u64, of: u64) -> f64 {
    count as f64 / of.max(1) as f64
}
