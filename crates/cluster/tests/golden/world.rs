//! One backend, and the process that runs on it.

use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use cluster::{
    ClusterError, ContainerMap, Halve, PageBounds, PageQuery, PartitionId, QueryFailure,
    TransitionStep,
};
use goldenscript::{Argument, Command};
use model::epk::EpkRange;
use model::json::Raw;
use model::limits::Limits;
use model::position::{Lsn, Timestamp};
use partition::{
    Approach, Changes, Command as Write, ContainerNumber, Document, Operation, container_prefix,
};
use query::{Parameters, Query};
use runtime::{Clock, Runtime, SimulatedClock, on_async_worker};
use storage::local::{self, LocalConfig};
use storage::{Durability, Store, memory};
use tempfile::TempDir;
use testkit::wait::block_on;

use crate::process::{CONTAINER, Process, name_of};
use crate::{Answer, common, show};

/// Items of one page of a list.
const PAGE: usize = 16;

/// Names that a line has room for.
const NAMES_MAX: usize = 12;

/// Names that are shown of the beginning and of the end of a longer list.
const NAMES_SHOWN: usize = 4;

pub(crate) struct World {
    folder: Option<TempDir>,
    store: Arc<dyn Store>,
    process: Option<Process>,
}

impl World {
    pub(crate) fn memory() -> World {
        World { folder: None, store: memory::create(), process: None }
    }

    pub(crate) fn local() -> World {
        let folder = tempfile::tempdir().unwrap();
        let store = local::create(folder.path(), config(), &Runtime::real()).unwrap();
        World { folder: Some(folder), store, process: None }
    }

    pub(crate) fn run(&mut self, command: &Command) -> Answer {
        let args = Args(&command.args);
        match command.name.as_str() {
            "container" => self.create_container(&args),
            "crash" => self.crash(),
            "map" => self.show_map(),
            "disk" => Ok(show::disk(self.store.as_ref(), ContainerNumber(CONTAINER))),
            name => {
                let process = self.process.as_mut().ok_or("no container")?;
                match name {
                    "split" | "merge" | "relieve" | "go_on" => process.change(name, &args),
                    "hold" | "release" => process.change_disk(name),
                    "start" | "waits" | "answer" => process.write_slowly(name, &args),
                    "upsert" | "delete" => Ok(block_on(process.write(name, &args)?)),
                    "fill" => process.fill(&args),
                    "read" => process.read(&args),
                    "list" => process.list(),
                    "query" => process.query(args.position(0)?),
                    "changes" => process.changes(&args),
                    "layout" => process.layout(),
                    "retired" => process.retired(),
                    "sweep" => process.sweep(),
                    "check" => process.check(),
                    name => Err(format!("unknown command {name}").into()),
                }
            }
        }
    }

    fn create_container(&mut self, args: &Args<'_>) -> Answer {
        self.finish()?;
        *self = if self.folder.is_some() { World::local() } else { World::memory() };
        let process = Process::new(&self.store);
        process.create_container(args.number("partitions")?.unwrap_or(1))?;
        self.process = Some(process);
        Ok(String::new())
    }

    /// Ends a process that has nothing under way, and checks what it leaves.
    pub(crate) fn finish(&mut self) -> Result<(), Box<dyn Error>> {
        let Some(process) = self.process.take() else { return Ok(()) };
        process.check()?;
        process.crash();
        Ok(())
    }

    fn crash(&mut self) -> Answer {
        let output = self.process.take().ok_or("no container")?.crash();
        if let Some(folder) = &self.folder {
            self.store.close()?;
            self.store = local::open(folder.path(), config(), &Runtime::real())?;
        }
        let process = Process::new(&self.store);
        process.attach()?;
        self.process = Some(process);
        Ok(output)
    }

    fn show_map(&self) -> Answer {
        let process = self.process.as_ref().ok_or("no container")?;
        let item = process.cluster.read_system(&format!("map:{CONTAINER}"))?.ok_or("no map")?;
        Ok(show::map(&ContainerMap::parse(CONTAINER, item.json())?))
    }
}

/// A store that does not wait for the disk: scripts do not cut the power.
fn config() -> LocalConfig {
    LocalConfig { durability: Durability::Os, ..LocalConfig::default() }
}

impl Process {
    fn change(&mut self, name: &str, args: &Args<'_>) -> Answer {
        let stop = args.step("stop")?;
        match name {
            "split" => {
                let range = args.partition(0)?;
                let halve = match args.key("halve") {
                    Some("bytes") => Halve::Bytes,
                    None => Halve::Hashes,
                    Some(halve) => return Err(format!("halve {halve}?").into()),
                };
                self.begin(stop, move |cluster, container| async move {
                    Ok(vec![cluster.split(&container, range, halve).await?])
                })
            }
            "merge" => {
                let ranges = args.partitions()?;
                self.begin(stop, move |cluster, container| async move {
                    Ok(vec![cluster.merge(&container, &ranges).await?])
                })
            }
            "relieve" => {
                self.begin(stop, |cluster, _| async move { cluster.relieve(|_| true).await })
            }
            _ => self.go_on(stop),
        }
    }

    fn change_disk(&self, name: &str) -> Answer {
        match name {
            "hold" => {
                self.gate.hold_tickets_of(container_prefix(ContainerNumber(CONTAINER)).to_vec())
            }
            _ => self.gate.release(),
        }
        Ok(String::new())
    }

    fn write_slowly(&mut self, verb: &str, args: &Args<'_>) -> Answer {
        let name = args.position(0)?;
        match verb {
            "start" => {
                let (verb, rest) = (args.position(1)?, Args(args.0.get(2..).unwrap_or_default()));
                let write = self.write(verb, &rest)?;
                let held = self.gate.held();
                self.start(name, Box::pin(on_async_worker(write)))?;
                if self.gate.is_holding() {
                    self.gate.await_held(held + 1);
                }
                Ok(String::new())
            }
            "waits" => self.waits(name),
            _ => self.answer(name),
        }
    }

    /// A write that reports where it was done.
    fn write(
        &self,
        verb: &str,
        args: &Args<'_>,
    ) -> Result<impl Future<Output = String> + Send + use<>, Box<dyn Error>> {
        let (key, id) = (args.position(0)?, args.position(1)?);
        let command = command(verb, (key, id), args.number("n")?.unwrap_or(1))?;
        let (cluster, container) = (Arc::clone(&self.cluster), self.container()?);
        Ok(async move { told(cluster.apply(&container, command).await) })
    }

    fn fill(&self, args: &Args<'_>) -> Answer {
        let (count, n) = (args.position(0)?.parse::<usize>()?, args.number("n")?.unwrap_or(1));
        let (container, bucket) = (self.container()?, args.number::<u32>("bucket")?);
        let map = container.map();
        let is_wanted = |key: &String| {
            let position = common::position(key);
            let owner = map.range_of(&position).map(|record| map.buckets_of(record));
            let found = owner.iter().flatten().find(|bucket| bucket.range.contains(&position));
            bucket.is_none_or(|wanted| found.is_some_and(|found| found.number.0 == wanted))
        };
        for key in (0..).map(|number| format!("k{number}")).filter(is_wanted).take(count) {
            block_on(self.cluster.apply(&container, command("upsert", (&key, "1"), n)?))?;
        }
        Ok(String::new())
    }

    fn read(&self, args: &Args<'_>) -> Answer {
        let (epk, id) = (common::position(args.position(0)?), common::id(args.position(1)?));
        let read = block_on(self.cluster.read(self.container()?.as_ref(), (&epk, &id), None))?;
        let text = match &read.value {
            Ok(effect) => {
                name(Raw::trusted(std::str::from_utf8(effect.text.as_ref().ok_or("no text")?)?))
            }
            Err(problem) => problem.to_string(),
        };
        Ok(format!("{text} from partition {} at lsn {}\n", read.range, read.lsn.get()))
    }

    fn list(&self) -> Answer {
        let (container, full) = (self.container()?, EpkRange::full());
        let (mut names, mut after) = (Vec::new(), None);
        loop {
            let asked = ((&full, None), after.as_ref(), (PAGE, u64::MAX));
            let listing = self.cluster.list(&container, asked.0, asked.1, asked.2);
            let Some(page) = block_on(listing)? else { break };
            names.extend(page.value.items.iter().map(|item| name(item.json())));
            after = page.value.rest;
            if after.is_none() {
                break;
            }
        }
        Ok(listed(&names))
    }

    fn query(&self, text: &str) -> Answer {
        let (container, text) = (self.container()?, text.to_owned());
        let work = self.cluster.take_turns(move |turn| {
            let bound = Query::parse(&text)?.bind(&Parameters::none())?;
            turn.answer(&container, Timestamp::from_millis(now()), page_of(bound))
        });
        let page = block_on(work)?.map_err(|error: QueryFailure| error.to_string())?;
        let rows: Vec<_> = page.rows.iter().map(|row| String::from_utf8_lossy(row)).collect();
        let mut asked: Vec<_> = page.served.iter().map(|part| part.range.to_string()).collect();
        asked.sort();
        Ok(format!("{} from partitions {}\n", rows.join(" "), asked.join(" ")))
    }

    fn changes(&self, args: &Args<'_>) -> Answer {
        let container = self.container()?;
        let within = self.cluster.range(&container, args.partition(0)?)?;
        let after = Some(Lsn::from_u64(args.number("after")?.unwrap_or(0)));
        let changes = Changes {
            within,
            prefix: None,
            after,
            since: None,
            items_max: usize::MAX,
            bytes_max: u64::MAX,
        };
        let page = block_on(self.cluster.list_changes(&container, changes, Duration::MAX))?;
        let change = |item: &partition::Item| format!("{} {}", item.lsn.get(), name(item.json()));
        let changes: Vec<String> = page.value.items.iter().map(change).collect();
        Ok(format!("{}up to lsn {}\n", listed(&changes), page.lsn.get()))
    }

    fn layout(&self) -> Answer {
        let (map, heads) = block_on(self.cluster.sizes(self.container()?.layout()))?;
        Ok(show::layout(&map, &heads))
    }

    fn retired(&self) -> Answer {
        let mut output = String::new();
        for retired in block_on(self.cluster.retired())? {
            writeln!(output, "{retired}")?;
        }
        Ok(output)
    }

    fn sweep(&self) -> Answer {
        let mut output = String::new();
        for retired in block_on(self.cluster.retired())? {
            let removed = block_on(self.cluster.sweep(retired))?;
            writeln!(output, "{retired}: {} keys removed", removed.keys)?;
        }
        Ok(output)
    }

    fn check(&self) -> Answer {
        let report = self.cluster.check(&[], |_| {})?;
        if !report.is_clean() {
            return Err(format!("{report:?}").into());
        }
        Ok(format!("{} items in {} buckets add up\n", report.total.items, report.buckets))
    }
}

fn now() -> u64 {
    SimulatedClock::new().now().as_unix_ms()
}

fn page_of(bound: query::Bound) -> PageQuery {
    let bounds = PageBounds { rows: 1_000, bytes: 1 << 20, time: Duration::MAX, scanned: u64::MAX };
    PageQuery {
        bound: Arc::new(bound),
        fingerprint: 0,
        scope: EpkRange::full(),
        within: vec![EpkRange::full()],
        prefix: None,
        after: None,
        resume: None,
        bounds,
        approach: Approach::default(),
        system: None,
        is_timed: false,
        names_indexes: false,
    }
}

fn command(verb: &str, (key, id): (&str, &str), n: u64) -> Result<Write, Box<dyn Error>> {
    let operation = match verb {
        "upsert" => {
            let body = format!(r#"{{"id":"{id}","pk":"{key}","n":{n}}}"#);
            let document = Document::parse(body.into(), &Limits::default())?;
            Operation::Upsert { document, if_match: None }
        }
        "delete" => Operation::Delete { id: common::id(id), if_match: None },
        verb => return Err(format!("unknown write {verb}").into()),
    };
    Ok(Write { position: common::position(key), operations: vec![operation] })
}

fn told<T>(answer: Result<cluster::Served<T>, ClusterError>) -> String {
    match answer {
        Ok(served) => format!("partition {} lsn {}\n", served.range, served.lsn.get()),
        Err(error) => format!("error: {error}\n"),
    }
}

/// An item in a few letters: `key/id=n`.
fn name(item: Raw<'_>) -> String {
    let text = |name| item.get(name).and_then(|raw| raw.as_str().map(|text| text.into_owned()));
    let n = item.get("n").map(|raw| raw.text().to_owned());
    format!(
        "{}/{}={}",
        text("pk").unwrap_or_default(),
        text("id").unwrap_or_default(),
        n.unwrap_or_default()
    )
}

fn listed(names: &[String]) -> String {
    match names.len() {
        0 => "none\n".to_owned(),
        1..=NAMES_MAX => format!("{}\n", names.join(" ")),
        count => {
            let (first, last) = (&names[..NAMES_SHOWN], &names[count - NAMES_SHOWN..]);
            format!("{} … {}, {count} in all\n", first.join(" "), last.join(" "))
        }
    }
}

/// The arguments of a command.
struct Args<'a>(&'a [Argument]);

impl Args<'_> {
    fn positions(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|argument| {
            if let Argument::Positional(text) = argument { Some(text.as_str()) } else { None }
        })
    }

    fn position(&self, at: usize) -> Result<&str, Box<dyn Error>> {
        self.positions().nth(at).ok_or_else(|| format!("argument {at} is missing").into())
    }

    fn key(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|argument| {
            let Argument::KeyValue(key, value) = argument else { return None };
            (key == name).then_some(value.as_str())
        })
    }

    fn number<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>, Box<dyn Error>> {
        let bad = || Box::<dyn Error>::from(format!("{name} must be a number"));
        self.key(name).map(|value| value.parse().map_err(|_| bad())).transpose()
    }

    fn partition(&self, at: usize) -> Result<PartitionId, Box<dyn Error>> {
        Ok(PartitionId(self.position(at)?.parse()?))
    }

    fn partitions(&self) -> Result<Vec<PartitionId>, Box<dyn Error>> {
        self.positions().map(|id| Ok(PartitionId(id.parse()?))).collect()
    }

    fn step(&self, name: &str) -> Result<Option<TransitionStep>, Box<dyn Error>> {
        let Some(wanted) = self.key(name) else { return Ok(None) };
        let found = TransitionStep::ALL.into_iter().find(|step| name_of(*step) == wanted);
        found.map(Some).ok_or_else(|| format!("no step is named {wanted}").into())
    }
}
