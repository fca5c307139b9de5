//! Scripts that run on every backend; any difference between them fails.
//!
//! Commands:
//! - `container pk=PATH[,PATH] [version=1] [unique=PATH,…]… [ttl=N] [indexing=JSON] [buckets=N]
//!   [owns=N] [floor=LSN] [item_bytes=N] [operations=N] [ordinals=FROM..TO] [retention=MINUTES]`
//!   opens an empty container in a partition that owns the first N buckets;
//!   `replace_container [ttl=N] [indexing=JSON] [retention=MINUTES]` changes its policies;
//!   `allocate FROM..TO`.
//! - `create DOC`, `upsert DOC`, `replace DOC [id=ID]`, `delete KEY ID`, `patch KEY ID PATCH`,
//!   each with `[if-match=ETAG]`, and `peek KEY ID` (a read by the sequencer); `batch KEY STEP…`
//!   with steps such as `'delete ID'`. `key=KEY` overrides the key of a document. `save=NAME`
//!   keeps the etag for a later ETAG.
//! - `read KEY ID [if-none-match=ETAG]`, `list [KEY-PREFIX] [page=N]`, `prefix KEY TEXT
//!   [after=ID]`, `stats KEY`, `heads`, `dump [GROUP]`, `check`: what clients and operators see.
//! - `versions [KEY-PREFIX] [after=LSN] [page=N]`: one page of the change feed of all versions and
//!   deletes, from now without a position.
//! - `expire` and `trim` remove expired items and old records of the history.
//! - `advance N` moves the clock by seconds, also back; `reopen` restarts.
//!
//! Tags: `[ops]` shows the keys written, `[full]` the whole text, `[work]` the work counted.
//! A KEY is a header such as `["a",1]`, or plain text for one string, or `none`.
//! Update with `UPDATE_GOLDENFILES=1`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[allow(dead_code, reason = "shared between tests, each uses a part")]
mod common {
    pub(crate) mod fixture;
    pub(crate) mod gate;
}

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use common::fixture::{self, Backend, Container, EPOCH_MILLIS, Home, json};
use common::gate::Gate;
use goldenscript::{Argument, Context};
use model::charge::{Tariff, Work, Written};
use model::epk::Epk;
use model::epk::EpkRange;
use model::json::Raw;
use model::limits::Limits;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use model::position::{Lsn, Timestamp};
use model::system_properties::SystemProperties;
use partition::{
    Changes, Command, Document, Effect, EtagMatch, History, HistoryRecord, Operation, Partition,
    PartitionConfig, PartitionError, Passed, Patch, Reader, VersionMark, describe_key,
};
use storage::{CommitStatus, Store, View, Write};

type Answer = Result<String, Box<dyn Error>>;

#[test]
fn scripts() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
    let mut scripts: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    for script in scripts {
        goldenscript::run(&mut Mirror::new(), &script)
            .unwrap_or_else(|error| panic!("{}: {error}", script.display()));
    }
}

/// Runs every command on all backends.
struct Mirror {
    worlds: Vec<World>,
}

impl Mirror {
    fn new() -> Mirror {
        Mirror { worlds: Backend::ALL.into_iter().map(World::new).collect() }
    }
}

impl goldenscript::Runner for Mirror {
    type Command = goldenscript::Command;

    fn run(&mut self, command: &Self::Command, context: &Context) -> Answer {
        let mut answers = self.worlds.iter_mut().map(|world| {
            let answer = world.run(command, context).map_err(|error| error.to_string());
            (world.backend, answer)
        });
        let (first_backend, first) = answers.next().ok_or("no backend")?;
        for (backend, answer) in answers {
            assert_eq!(answer, first, "{backend:?} differs from {first_backend:?} at {command}");
        }
        Ok(first?)
    }

    fn end_script(&mut self) -> Result<(), Box<dyn Error>> {
        self.worlds.iter_mut().for_each(World::finish);
        Ok(())
    }
}

/// One backend, and the container that the script has opened on it.
struct World {
    backend: Backend,
    home: Home,
    now_millis: u64,
    container: Container,
    open: Option<Open>,
    etags: BTreeMap<String, String>,
}

struct Open {
    config: Arc<PartitionConfig>,
    gate: Arc<Gate>,
    partition: Partition,
    /// Keys that were used, by their EPK, to show instead of it.
    keys: BTreeMap<String, PartitionKey>,
    /// Documents that were written, to find the names of paths.
    texts: Vec<Bytes>,
}

impl World {
    fn new(backend: Backend) -> World {
        World {
            backend,
            home: Home::new(backend),
            now_millis: EPOCH_MILLIS,
            container: Container::default(),
            open: None,
            etags: BTreeMap::new(),
        }
    }

    fn run(&mut self, command: &goldenscript::Command, context: &Context) -> Answer {
        let args = Args::new(command, &self.etags);
        let now = self.now();
        match command.name.as_str() {
            "container" => self.create_container(&args),
            "replace_container" => self.replace_container(&args),
            "allocate" => self.allocate(&args),
            "create" | "upsert" | "replace" | "delete" | "patch" | "peek" | "batch" => {
                self.write(&command.name, &args, context)
            }
            "read" => self.read(&args, context),
            "list" => self.open()?.list(&args, now),
            "prefix" => self.open()?.list_prefix(&args),
            "stats" => self.open()?.statistics(&args),
            "heads" => self.open()?.heads(),
            "versions" => self.open()?.versions(&args, context),
            "expire" => self.open()?.expire(now, context),
            "trim" => self.open()?.trim(now),
            "dump" => self.open()?.dump(&args),
            "check" => self.open()?.check(),
            "advance" => self.advance(&args),
            "reopen" => self.reopen(),
            name => Err(format!("unknown command {name}").into()),
        }
    }

    fn create_container(&mut self, args: &Args) -> Answer {
        self.container = Container {
            key_paths: args.list("pk").into_iter().flatten().collect(),
            hash_version: args.number("version")?,
            unique: args.lists("unique"),
            default_ttl: args.number("ttl")?,
            indexing: args.key("indexing").map(json),
            retention: args.number("retention")?,
        };
        let mut config = self.container.config(args.number("buckets")?.unwrap_or(1));
        let mut limits = Limits::default();
        if let Some(bytes) = args.number("item_bytes")? {
            limits.item_bytes_max = bytes;
        }
        if let Some(count) = args.number("operations")? {
            limits.batch_operations_max = count;
        }
        config.limits = Arc::new(limits);
        config.buckets.truncate(args.number("owns")?.unwrap_or(usize::MAX));
        config.lsn_floor = Lsn::from_u64(args.number("floor")?.unwrap_or(0));
        if let Some(ordinals) = args.key("ordinals") {
            config.ordinal_blocks = vec![parse_range(ordinals)?];
        }
        self.finish();
        self.home = Home::new(self.backend);
        self.open = Some(Open::new(config, &self.home)?);
        Ok(String::new())
    }

    /// Whatever a script did, the store must be consistent at its end.
    fn finish(&mut self) {
        if let Some(open) = self.open.take() {
            fixture::assert_clean(&open.config, open.gate.as_ref());
        }
    }

    fn replace_container(&mut self, args: &Args) -> Answer {
        self.container.default_ttl = args.number("ttl")?;
        self.container.indexing = args.key("indexing").map(json);
        self.container.retention = args.number("retention")?;
        let container = self.container.clone();
        let open = self.open()?;
        open.reconfigure(container.reconfigured(&open.config));
        Ok(String::new())
    }

    fn allocate(&mut self, args: &Args) -> Answer {
        let block = parse_range(args.position(0)?)?;
        let open = self.open()?;
        let mut config = PartitionConfig::clone(&open.config);
        config.ordinal_blocks.push(block);
        open.reconfigure(config);
        Ok(String::new())
    }

    fn write(&mut self, name: &str, args: &Args, context: &Context) -> Answer {
        let now = self.now();
        let save = args.key("save").map(str::to_owned);
        let open = self.open()?;
        let command = match open.parse_command(name, args) {
            Ok(command) => command,
            Err(error) => return Ok(format!("bad request: {error}\n")),
        };
        open.gate.take_seen();
        let application = open.partition.apply(now, &command);
        assert_eq!(application.ticket.wait(), CommitStatus::Durable);
        let mut output = String::new();
        match application.result {
            Err(error) => {
                writeln!(output, "error: {error} → {:?}", error.problem.remedy())?;
                if context.tags.contains("work") {
                    output.push_str(&show_work(&error.work));
                }
            }
            Ok(outcome) => {
                for effect in &outcome.effects {
                    output.push_str(&show_effect(effect, context));
                }
                open.texts.extend(outcome.effects.iter().filter_map(shown));
                if context.tags.contains("work") {
                    output.extend(outcome.effects.iter().map(|effect| show_work(&effect.work)));
                }
                let etag = outcome.effects.last().and_then(|effect| effect.etag().cloned());
                let saved = save.zip(etag).map(|(name, etag)| (name, etag.to_string()));
                self.etags.extend(saved);
            }
        }
        let open = self.open()?;
        if context.tags.contains("ops") {
            output.push_str(&open.show_writes());
        }
        Ok(output)
    }

    fn read(&mut self, args: &Args, context: &Context) -> Answer {
        let now = self.now();
        let open = self.open()?;
        let (position, id) = (open.locate(&parse_key(args.position(0)?)?)?, args.position(1)?);
        let (view, id) = (open.view()?, ItemId::parse(id)?);
        let condition = args.etag("if-none-match");
        let read = open.reader().read(view.as_ref(), now, (&position, &id), condition.as_ref());
        match read {
            Ok(effect) => Ok(show_effect(&effect, context)),
            Err(problem) => Ok(format!("error: {problem}\n")),
        }
    }

    fn advance(&mut self, args: &Args) -> Answer {
        let millis = args.position(0)?.parse::<i64>()? * 1000;
        self.now_millis = self.now_millis.checked_add_signed(millis).ok_or("out of time")?;
        Ok(String::new())
    }

    fn reopen(&mut self) -> Answer {
        let old = self.open.take().ok_or("no container")?;
        let Open { config, gate, partition, keys, texts } = old;
        drop((gate, partition));
        self.home.reopen();
        let new = Open::new(PartitionConfig::clone(&config), &self.home)?;
        self.open = Some(Open { keys, texts, ..new });
        Ok(String::new())
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now_millis)
    }

    fn open(&mut self) -> Result<&mut Open, Box<dyn Error>> {
        self.open.as_mut().ok_or_else(|| "no container".into())
    }
}

impl Open {
    fn new(config: PartitionConfig, home: &Home) -> Result<Open, PartitionError> {
        let (config, gate) = (Arc::new(config), Gate::new(Arc::clone(&home.store)));
        let store: Arc<dyn Store> = Arc::<Gate>::clone(&gate);
        let partition = Partition::open(Arc::clone(&config), store)?;
        Ok(Open { config, gate, partition, keys: BTreeMap::new(), texts: Vec::new() })
    }

    fn reconfigure(&mut self, config: PartitionConfig) {
        self.config = Arc::new(config);
        self.partition.reconfigure(Arc::clone(&self.config));
    }

    fn locate(&mut self, key: &PartitionKey) -> Result<Epk, Box<dyn Error>> {
        let position = self.config.definition.partition_key().locate(key)?;
        self.keys.insert(position.to_string(), key.clone());
        Ok(position)
    }

    /// The error is what a client receives for an unacceptable request.
    fn parse_command(&mut self, name: &str, args: &Args) -> Result<Command, Box<dyn Error>> {
        let (key, operations) = match name {
            "batch" => (Some(args.position(0)?), self.parse_batch(args)?),
            "create" | "upsert" | "replace" => {
                let words = [args.position(0)?];
                (args.key("key"), vec![self.parse_operation(name, &words, args)?])
            }
            _ => {
                let words: Vec<&str> = args.positions().skip(1).collect();
                (Some(args.position(0)?), vec![self.parse_operation(name, &words, args)?])
            }
        };
        let key = match (key, operations.as_slice()) {
            (Some(key), _) => parse_key(key)?,
            (None, operations) => self.key_of(operations)?,
        };
        Ok(Command { position: self.locate(&key)?, operations })
    }

    /// The key in the document of a single write.
    fn key_of(&self, operations: &[Operation]) -> Result<PartitionKey, Box<dyn Error>> {
        let [
            Operation::Create { document }
            | Operation::Upsert { document, .. }
            | Operation::Replace { document, .. },
        ] = operations
        else {
            return Err("which key?".into());
        };
        Ok(self.config.definition.partition_key().extract(document.json())?)
    }

    fn parse_batch(&self, args: &Args) -> Result<Vec<Operation>, Box<dyn Error>> {
        let step = |step: &str| {
            let (name, rest) = step.split_once(' ').ok_or("a step has a verb and its words")?;
            let words: Vec<&str> = match name {
                "patch" => rest.splitn(2, ' ').collect(),
                _ => vec![rest],
            };
            self.parse_operation(name, &words, &Args::default())
        };
        args.positions().skip(1).map(step).collect()
    }

    fn parse_operation(
        &self,
        name: &str,
        words: &[&str],
        args: &Args,
    ) -> Result<Operation, Box<dyn Error>> {
        let limits = &self.config.limits;
        let (if_match, if_none_match) = (args.etag("if-match"), args.etag("if-none-match"));
        let first = *words.first().ok_or("which item?")?;
        if matches!(name, "create" | "upsert" | "replace") {
            let document = Document::parse(Bytes::from(first.to_owned()), limits)?;
            let id = args.key("id").map_or(Ok(document.id().clone()), ItemId::parse)?;
            return Ok(match name {
                "create" => Operation::Create { document },
                "upsert" => Operation::Upsert { document, if_match },
                _ => Operation::Replace { id, document, if_match },
            });
        }
        let id = ItemId::parse(first)?;
        Ok(match name {
            "delete" => Operation::Delete { id, if_match },
            "peek" | "read" => Operation::Read { id, if_none_match },
            "patch" => {
                let request = json(words.get(1).ok_or("which patch?")?);
                Operation::Patch { id, patch: Patch::parse(&request, limits)?, if_match }
            }
            name => return Err(format!("unknown step {name}").into()),
        })
    }

    fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.config))
    }

    fn view(&self) -> Result<Box<dyn View>, PartitionError> {
        Ok(self.gate.view()?)
    }

    fn list(&mut self, args: &Args, now: Timestamp) -> Answer {
        let definition = Arc::clone(&self.config.definition);
        let key = args.positions().next().map(parse_key).transpose()?;
        let range = match &key {
            Some(key) => definition.partition_key().prefix_range(key)?,
            None => EpkRange::full(),
        };
        let prefix = key.filter(|key| definition.partition_key().is_prefix(key));
        let (view, items_max) = (self.view()?, args.number("page")?.unwrap_or(100));
        let mut output = String::new();
        let mut after = None;
        loop {
            let page = self.reader().list(
                view.as_ref(),
                now,
                (&range, prefix.as_ref()),
                after.as_ref(),
                (items_max, u64::MAX),
            )?;
            for item in &page.items {
                writeln!(output, "{}", item.json().text())?;
            }
            match page.rest {
                None => return Ok(output + "end\n"),
                Some(rest) => after = Some(rest),
            }
            writeln!(output, "page of {}", page.items.len())?;
        }
    }

    fn versions(&mut self, args: &Args, context: &Context) -> Answer {
        let definition = Arc::clone(&self.config.definition);
        let key = args.positions().next().map(parse_key).transpose()?;
        let within = match &key {
            Some(key) => definition.partition_key().prefix_range(key)?,
            None => EpkRange::full(),
        };
        let history = History(Changes {
            within,
            prefix: key.filter(|key| definition.partition_key().is_prefix(key)),
            after: args.number("after")?.map(Lsn::from_u64),
            since: None,
            items_max: args.number("page")?.unwrap_or(100),
            bytes_max: u64::MAX,
        });
        let page = self.reader().list_history(self.view()?.as_ref(), &history, &mut || true)?;
        let mut output: String = page.records.iter().map(show_record).collect();
        let cut = page.cut.map_or("end".to_owned(), |cut| format!("cut at {cut}"));
        writeln!(output, "{cut}")?;
        if context.tags.contains("work") {
            writeln!(output, "  passed {}", page.passed)?;
        }
        Ok(output)
    }

    fn expire(&mut self, now: Timestamp, context: &Context) -> Answer {
        self.gate.take_seen();
        let mut items = 0;
        for bucket in self.config.buckets.clone() {
            let (view, mut passed) = (self.view()?, Passed::default());
            let from = (view.as_ref(), now);
            let names = self.reader().expired(from, bucket.number, &mut passed, usize::MAX)?;
            let expired = self.partition.expire(now, &names)?;
            assert_eq!(expired.ticket.wait(), CommitStatus::Durable);
            items += expired.items;
        }
        let writes = context.tags.contains("ops").then(|| self.show_writes());
        Ok(format!("expired {items}\n{}", writes.unwrap_or_default()))
    }

    fn trim(&mut self, now: Timestamp) -> Answer {
        let mut records = 0;
        for bucket in self.config.buckets.clone() {
            let view = self.view()?;
            let from = (view.as_ref(), now);
            let outdated = self.reader().outdated_history(from, bucket.number, usize::MAX)?;
            let ticket = self.partition.trim_history(bucket.number, &outdated)?;
            assert_eq!(ticket.wait(), CommitStatus::Durable);
            records += outdated.len();
        }
        Ok(format!("trimmed {records}\n"))
    }

    fn list_prefix(&mut self, args: &Args) -> Answer {
        let position = self.locate(&parse_key(args.position(0)?)?)?;
        let (view, after) = (self.view()?, args.key("after"));
        let items_max = args.number("page")?.unwrap_or(100);
        let text = args.positions().nth(1).unwrap_or_default();
        let (of, room) = ((&position, text), (items_max, u64::MAX));
        let (items, _) = self.reader().list_prefix(view.as_ref(), of, after, room)?;
        Ok(items.iter().map(|item| item.json().text().to_owned() + "\n").collect())
    }

    fn statistics(&mut self, args: &Args) -> Answer {
        let position = self.locate(&parse_key(args.position(0)?)?)?;
        let statistics = self.reader().key_statistics(self.view()?.as_ref(), &position)?;
        Ok(format!("items {} bytes {}\n", statistics.items, statistics.bytes))
    }

    fn heads(&mut self) -> Answer {
        let mut output = format!("partition lsn {}\n", self.partition.lsn());
        for bucket in &self.config.buckets {
            let alone = PartitionConfig {
                buckets: vec![bucket.clone()],
                ..PartitionConfig::clone(&self.config)
            };
            let head = Reader::new(Arc::new(alone)).size(self.view()?.as_ref())?;
            let seconds = head.ts_millis.saturating_sub(EPOCH_MILLIS) / 1000;
            let bucket = bucket.number.0;
            writeln!(
                output,
                "bucket {bucket}: lsn {} time +{seconds} items {} bytes {}",
                head.lsn, head.items, head.bytes
            )?;
        }
        Ok(output)
    }

    fn dump(&mut self, args: &Args) -> Answer {
        let group = args.positions().next().map(|group| format!(" {group}"));
        let mut output = String::new();
        for (key, _) in fixture::dump(self.gate.as_ref()) {
            if group.as_ref().is_none_or(|group| describe_key(&key).contains(group)) {
                writeln!(output, "{}", self.show_key(&key))?;
            }
        }
        Ok(output)
    }

    fn check(&mut self) -> Answer {
        let report = fixture::check(&self.config, self.gate.as_ref());
        let mut output = format!(
            "items {} bytes {} keys {} index entries {}\n",
            report.items, report.bytes, report.logical_partitions, report.index_entries
        );
        for finding in &report.findings {
            writeln!(output, "{finding}")?;
        }
        Ok(output)
    }

    fn show_writes(&self) -> String {
        let mut output = String::new();
        for batch in self.gate.take_seen() {
            for write in batch.iter() {
                let verb = match write {
                    Write::Put { .. } => "put",
                    Write::Delete { .. } => "delete",
                };
                writeln!(output, "  {verb} {}", self.show_key(write.key())).unwrap();
            }
        }
        if output.is_empty() { "  nothing written\n".to_owned() } else { output }
    }

    /// A key as text, with partition keys for EPKs and names for paths.
    fn show_key(&self, key: &[u8]) -> String {
        let mut words = describe_key(key);
        for (epk, key) in self.keys.iter().filter(|(epk, _)| !epk.is_empty()) {
            words = words.replace(epk, &key.to_string());
        }
        match words.split_once(" index ") {
            None => words,
            Some((bucket, entry)) => {
                let ordinal = entry.rsplit(' ').next().unwrap_or_default();
                format!("{bucket} index {} {ordinal}", self.explain(&key[9..key.len() - 8]))
            }
        }
    }

    fn explain(&self, entry: &[u8]) -> String {
        let mut meaning = String::new();
        let plans = self.config.plans.values();
        for (plan, text) in plans.flat_map(|plan| self.texts.iter().map(move |text| (plan, text))) {
            meaning =
                plan.explain(Raw::trusted(std::str::from_utf8(text).unwrap()), entry).unwrap();
            if !meaning.starts_with("path ") {
                break;
            }
        }
        meaning
    }
}

/// `LSN.step kind @ordinal after LSN.step: text`.
fn show_record(record: &HistoryRecord) -> String {
    let version = |mark: &VersionMark| format!("{}.{}", mark.lsn, mark.step);
    let seconds = record.mark.ts.millis().saturating_sub(EPOCH_MILLIS) / 1000;
    let before = record.before.map_or(String::new(), |mark| format!(" after {}", version(&mark)));
    let (kind, ordinal) = (format!("{:?}", record.kind).to_lowercase(), record.ordinal.as_u64());
    let names = if record.image().is_some() { "" } else { "only " };
    let text = record.json().text();
    format!("{} +{seconds} {kind} @{ordinal}{before}: {names}{text}\n", version(&record.mark))
}

fn parse_key(text: &str) -> Result<PartitionKey, Box<dyn Error>> {
    match text {
        "none" => Ok(PartitionKey::NONE),
        _ if text.starts_with('[') => Ok(PartitionKey::parse_json(text)?),
        _ => Ok(PartitionKey::new([text])),
    }
}

fn parse_range(text: &str) -> Result<std::ops::Range<u64>, Box<dyn Error>> {
    let (from, to) = text.split_once("..").ok_or("a range is FROM..TO")?;
    Ok(from.parse()?..to.parse()?)
}

fn show_effect(effect: &Effect, context: &Context) -> String {
    let mut output = format!("{:?}", effect.kind).to_lowercase();
    if let Some(etag) = effect.etag() {
        write!(output, " {}", short_etag(etag.as_str())).unwrap();
    }
    if let Some(text) = &effect.text {
        let text = if context.tags.contains("full") { shown(effect) } else { Some(text.clone()) };
        write!(output, " {}", std::str::from_utf8(&text.unwrap()).unwrap()).unwrap();
    }
    output + "\n"
}

/// The text of an item with the system properties that policies apply to.
fn shown(effect: &Effect) -> Option<Bytes> {
    let (text, stamp) = effect.text.as_ref().zip(effect.stamp.as_ref())?;
    let text = std::str::from_utf8(text).unwrap();
    Some(SystemProperties::indexed().shown(text, stamp).into())
}

/// `LSN.step` of an etag.
fn short_etag(etag: &str) -> String {
    let mut parts = etag.trim_matches('"').split('-');
    let mut number = || u64::from_str_radix(parts.next().unwrap_or_default(), 16).unwrap_or(0);
    let (low, high, step) = (number(), number(), number());
    format!("{}.{step}", Lsn::from_u64(high << 32 | low))
}

fn show_work(work: &Work) -> String {
    let units = Tariff::default().charge(work).units();
    let shown =
        if let Work::Write(written) = work { show_written(written) } else { format!("{work:?}") };
    format!("  {shown} = {units}/21 RU\n")
}

fn show_written(written: &Written) -> String {
    let Written { removed, added, terms_removed, terms_added, patched } = written;
    let bytes = |bytes: &Option<u64>| bytes.map_or("none".to_owned(), |bytes| bytes.to_string());
    format!(
        "{} → {} bytes, terms +{terms_added} -{terms_removed}, {patched} patched",
        bytes(removed),
        bytes(added)
    )
}

/// The arguments of a command, with saved etags put in.
#[derive(Default)]
struct Args {
    args: Vec<Argument>,
}

impl Args {
    fn new(command: &goldenscript::Command, etags: &BTreeMap<String, String>) -> Args {
        let mut args = command.args.clone();
        for arg in &mut args {
            if let Argument::KeyValue(name, value) = arg
                && name.ends_with("match")
                && let Some(saved) = etags.get(value)
            {
                *value = saved.clone();
            }
        }
        Args { args }
    }

    fn positions(&self) -> impl Iterator<Item = &str> {
        self.args.iter().filter_map(|arg| {
            if let Argument::Positional(text) = arg { Some(text.as_str()) } else { None }
        })
    }

    fn position(&self, at: usize) -> Result<&str, Box<dyn Error>> {
        self.positions().nth(at).ok_or_else(|| format!("argument {at} is missing").into())
    }

    fn keys(&self, name: &str) -> impl Iterator<Item = &str> {
        let pairs = self.args.iter().filter_map(|arg| {
            if let Argument::KeyValue(key, value) = arg { Some((key, value)) } else { None }
        });
        pairs.filter(move |(key, _)| *key == name).map(|(_, value)| value.as_str())
    }

    fn key(&self, name: &str) -> Option<&str> {
        self.keys(name).next()
    }

    fn lists(&self, name: &str) -> Vec<Vec<String>> {
        self.keys(name).map(|value| value.split(',').map(str::to_owned).collect()).collect()
    }

    fn list(&self, name: &str) -> Option<Vec<String>> {
        self.lists(name).into_iter().next()
    }

    fn number<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>, Box<dyn Error>> {
        let bad = || Box::<dyn Error>::from(format!("{name} must be a number"));
        self.key(name).map(|value| value.parse().map_err(|_| bad())).transpose()
    }

    fn etag(&self, name: &str) -> Option<EtagMatch> {
        self.key(name).map(|value| EtagMatch(value.to_owned()))
    }
}
