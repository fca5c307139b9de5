//! `index-designs`: the same index terms, laid out in several ways.
//!
//! A partition in memory says what each document writes; every design stores that in a store
//! of its own, on disk and synced, and is then asked the same questions. All designs get the
//! same groups of documents, each of which is one commit: as many as 32 connections have
//! under way at a time. One thread writes and waits for each commit, so the figures are keys,
//! bytes and processor time, and a rate would say nothing.
//!
//! Designs take turns in slices of the load and in every question. Questions are asked after
//! a full compaction: how many runs a load leaves in the first level is an accident.

mod change;
mod chunks;
mod deferred;
mod design;
mod entries;
mod queries;
mod term_store;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum as _;
use index::IndexPlan;
use runtime::{Random as _, Runtime, SeededRandom};
use storage::local::{self, LocalConfig};
use storage::{CommitStatus, Counters, Store, WriteBatch, WriteSession};
use tempfile::TempDir;

use self::change::Change;
use self::design::{Design, Name};
use self::queries::Question;
use self::term_store::Reading;
use crate::disk;
use crate::document::Documents;
use crate::load::count;
use crate::measure::{Figures, THREAD, Taken};
use crate::raw::partitions::{PartitionStorey, index_plan};
use crate::raw::recorder::Recorder;
use crate::raw::timed;
use crate::report::{Column, Measured, Report};
use crate::target;

const COLUMNS: [Column; 10] = [
    ("door_keys", "keys", 1.0, 1),
    ("door_bytes", "bytes", 1.0, 0),
    ("written_bytes", "KB wr", 1e3, 2),
    ("cpu_us", "cpu µs", 1.0, 1),
    ("upkeep_cpu_us", "upkeep", 1.0, 1),
    ("p50_us", "p50 µs", 1.0, 0),
    ("read_keys", "keys rd", 1.0, 1),
    ("read_bytes", "bytes rd", 1.0, 0),
    ("disk_mib", "disk", 1.0, 0),
    ("compact_mib", "compact", 1.0, 0),
];

const EXPLANATION: &str = "per document or question; keys, bytes: at the door of storage; KB wr: written to disk until settled; \
     upkeep: cpu µs of flush and compaction;\np50 of a commit, or of a question; rd: read; disk, compact: MiB, \
     settled and after a full compaction";

/// Steps between the documents that are updated or deleted, one after the other.
const STRIDE: u64 = 7_919;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Documents to create
    #[arg(long, default_value = "30000", value_parser = count)]
    documents: u64,
    /// Documents in one commit
    #[arg(long, default_value_t = 16)]
    group: usize,
    /// Slices of the load, in which designs take turns
    #[arg(long, default_value_t = 4)]
    slices: u64,
    /// Divides memtables and tables: as many flushes and merges as this many times the documents
    /// would cause. How many merges a load just misses is an accident that this evens out
    #[arg(long, default_value_t = 1)]
    miniature: u64,
    /// Point queries; other questions are asked less often
    #[arg(long, default_value = "4000", value_parser = count)]
    questions: u64,
    /// The designs; the first is the one that the others are compared with [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Name>,
    /// Milliseconds without work after which a slice of the load counts as settled
    #[arg(long, default_value_t = 700)]
    quiet_ms: u64,
    /// Where temporary data goes [default: the system's folder]
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Also writes all figures to this file
    #[arg(long)]
    json: Option<PathBuf>,
}

/// A design with a store of its own.
struct Target {
    name: String,
    store: Arc<dyn Store>,
    writer: Mutex<(Design, Box<dyn WriteSession>)>,
    folder: TempDir,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut report = Report::new(&COLUMNS);
    let documents = Documents::new(options.documents);
    let mut recorder = Recorder::new()?;
    let targets = options.open()?;
    report.say(format!(
        "{} documents of {} bytes, {} in each commit, an fsync for each commit; miniature: {}",
        options.documents,
        documents.text(0, 0).len(),
        options.group,
        options.miniature
    ));
    report.begin_table(EXPLANATION);
    report.add(options.load(documents, &mut recorder, &targets)?);
    let plan = index_plan()?;
    for (question, name) in Question::ALL {
        report.add(options.ask(documents, &plan, &targets, question, name)?);
    }
    report.add(options.measured("open again, in all", &targets, Target::reopen));
    let (updates, deletes) = (options.documents / 10, options.documents / 20);
    let some = |count| (0..count).map(|at: u64| at.wrapping_mul(STRIDE) % options.documents);
    let updated = watch(&mut recorder, |partition| {
        some(updates).try_for_each(|number| partition.upsert(documents.text(number, 1)))
    })?;
    report.add(options.measured("update", &targets, |target| options.write(target, &updated)));
    let deleted = watch(&mut recorder, |partition| {
        some(deletes).try_for_each(|number| partition.delete(documents.text(number, 0)))
    })?;
    report.add(options.measured("delete", &targets, |target| options.write(target, &deleted)));
    options.json.as_deref().map_or(Ok(()), |path| report.write_json(path))
}

/// What a partition changes while `work` uses it.
fn watch(
    recorder: &mut Recorder,
    work: impl FnOnce(&PartitionStorey) -> Result<()>,
) -> Result<Vec<Change>> {
    recorder.watch(work)?.iter().map(Change::of).collect()
}

impl Options {
    fn open(&self) -> Result<Vec<Target>> {
        let parent = self.folder.clone().unwrap_or_else(std::env::temp_dir);
        let all = Name::value_variants();
        let names = if self.only.is_empty() { all } else { &self.only };
        names.iter().map(|name| Target::open(*name, &parent, self.miniature)).collect()
    }

    /// Creates all documents.
    fn load(
        &self,
        documents: Documents,
        recorder: &mut Recorder,
        targets: &[Target],
    ) -> Result<Measured> {
        let mut taken: BTreeMap<&str, (Taken, Counters)> = BTreeMap::new();
        let slices = self.slices.max(1);
        for slice in 0..slices {
            let bound = |slice: u64| self.documents * slice / slices;
            let changes = watch(recorder, |partition| {
                let mut numbers = bound(slice)..bound(slice + 1);
                numbers.try_for_each(|number| partition.create(documents.text(number, 0)))
            })?;
            for target in targets {
                let sum = taken.entry(&target.name).or_default();
                sum.0.merge(self.write_settled(target, &changes)?);
                sum.1 = target.store.counters();
            }
        }
        Ok(self.measured("load", targets, |target| {
            let (taken, counters) = taken.get(target.name.as_str()).context("it was loaded")?;
            let mut figures = written(taken, *counters);
            target.store.compact()?;
            target::settle(std::process::id(), self.quiet())?;
            let bytes = disk::bytes_on_disk(target.folder.path());
            figures.insert("compact_mib".to_owned(), bytes as f64 / f64::from(1 << 20));
            Ok(figures)
        }))
    }

    fn write(&self, target: &Target, changes: &[Change]) -> Result<Figures> {
        let before = target.store.counters();
        let taken = self.write_settled(target, changes)?;
        let mut counters = target.store.counters();
        counters.keys -= before.keys;
        counters.bytes -= before.bytes;
        Ok(written(&taken, counters))
    }

    fn write_settled(&self, target: &Target, changes: &[Change]) -> Result<Taken> {
        let groups = Mutex::new(changes.chunks(self.group.max(1)));
        let mut taken = timed(1, || {
            let group = groups.lock().unwrap_or_else(PoisonError::into_inner).next();
            group.map_or(Ok(false), |group| target.write(group).map(|()| true))
        })?;
        taken.operations = changes.len() as u64;
        let settled = target::settle(std::process::id(), self.quiet())?;
        taken.merge(Taken { elapsed: Duration::ZERO, ..settled });
        taken.disk_bytes = Some(disk::bytes_on_disk(target.folder.path()));
        Ok(taken)
    }

    fn ask(
        &self,
        documents: Documents,
        plan: &IndexPlan,
        targets: &[Target],
        question: Question,
        name: &str,
    ) -> Result<Measured> {
        let times = self.questions.div_ceil(question.rarity());
        let mut rows = None;
        let mut figures = BTreeMap::new();
        for target in targets {
            let (found, taken) = target.ask(documents, plan, question, times)?;
            ensure!(*rows.get_or_insert(found) == found, "{} finds other rows", target.name);
            figures.insert(target.name.clone(), taken);
        }
        Ok(self
            .measured(name, targets, |target| figures.remove(&target.name).context("it was asked")))
    }

    fn measured(
        &self,
        operation: &str,
        targets: &[Target],
        mut of: impl FnMut(&Target) -> Result<Figures>,
    ) -> Measured {
        let figures =
            |target: &Target| (target.name.clone(), of(target).map_err(|why| format!("{why:#}")));
        let targets = targets.iter().map(figures).collect();
        Measured { operation: operation.to_owned(), connections: 1, targets }
    }

    fn quiet(&self) -> Duration {
        Duration::from_millis(self.quiet_ms)
    }
}

/// Figures of a phase that wrote, for each document.
fn written(taken: &Taken, counters: Counters) -> Figures {
    let mut figures = taken.figures();
    let documents = taken.operations.max(1) as f64;
    figures.insert("door_keys".to_owned(), counters.keys as f64 / documents);
    figures.insert("door_bytes".to_owned(), counters.bytes as f64 / documents);
    figures.remove("client_cpu_us");
    figures
}

/// Figures of a phase in which one thread read. The processor time of a process is known in
/// hundredths of a second only, that of a thread exactly.
fn of_one_thread(mut figures: Figures) -> Figures {
    let cpu = figures.get(&format!("{THREAD}writer")).copied();
    figures.retain(|name, _| !name.starts_with(THREAD));
    figures.extend(cpu.map(|cpu| ("cpu_us".to_owned(), cpu)));
    for unsuited in ["client_cpu_us", "written_bytes", "upkeep_cpu_us"] {
        figures.remove(unsuited);
    }
    figures
}

impl Target {
    fn open(name: Name, parent: &Path, miniature: u64) -> Result<Target> {
        let folder = TempDir::with_prefix_in("orrery-bench-", parent)?;
        let mut config = LocalConfig::default();
        config.memtable_bytes /= miniature.max(1);
        config.table_bytes /= miniature.max(1);
        let store = local::create(&folder.path().join("data"), config, &Runtime::real())?;
        let writer = Mutex::new((Design::new(name), store.write_session()));
        let name = name.to_possible_value().context("a design has a name")?.get_name().to_owned();
        Ok(Target { name, store, writer, folder })
    }

    /// Commits a group of changes, and then what is due to be folded.
    fn write(&self, group: &[Change]) -> Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let (design, session) = &mut *writer;
        let mut commit = |batch: WriteBatch| {
            ensure!(session.submit(batch).wait() == CommitStatus::Durable, "a commit is lost");
            Ok(())
        };
        let view = self.store.view()?;
        commit(design.write(&Reading::new(view.as_ref()), group)?)?;
        loop {
            let view = self.store.view()?;
            match design.terms.fold(&Reading::new(view.as_ref()))? {
                Some(batch) => commit(batch)?,
                None => return Ok(()),
            }
        }
    }

    /// Reads again what the design keeps in memory. Returns what that takes in all.
    fn reopen(&self) -> Result<Figures> {
        let view = self.store.view()?;
        let (done, read) = (AtomicBool::new(false), [0; 2].map(AtomicU64::new));
        let taken = timed(1, || {
            if done.swap(true, Ordering::Relaxed) {
                return Ok(false);
            }
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            let reading = Reading::new(view.as_ref());
            writer.0.terms.reopen(&reading)?;
            read[0].store(reading.keys.get(), Ordering::Relaxed);
            read[1].store(reading.bytes.get(), Ordering::Relaxed);
            Ok(true)
        })?;
        let mut figures = of_one_thread(taken.figures());
        for (name, sum) in ["read_keys", "read_bytes"].into_iter().zip(read) {
            figures.insert(name.to_owned(), sum.into_inner() as f64);
        }
        Ok(figures)
    }

    /// Asks about random documents. Returns the number of rows and what one question takes.
    fn ask(
        &self,
        documents: Documents,
        plan: &IndexPlan,
        question: Question,
        times: u64,
    ) -> Result<(u64, Figures)> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let terms = writer.0.terms.as_ref();
        let (random, asked) = (SeededRandom::new(times), AtomicU64::new(0));
        let [rows, keys, bytes] = [0; 3].map(AtomicU64::new);
        let taken = timed(1, || {
            if asked.fetch_add(1, Ordering::Relaxed) >= times {
                return Ok(false);
            }
            let number = random.next_u64() % documents.loaded();
            let view = self.store.view()?;
            let reading = Reading::new(view.as_ref());
            let found = question.ask(terms, &reading, plan, documents, number)?;
            rows.fetch_add(found, Ordering::Relaxed);
            keys.fetch_add(reading.keys.get(), Ordering::Relaxed);
            bytes.fetch_add(reading.bytes.get(), Ordering::Relaxed);
            Ok(true)
        })?;
        let mut figures = taken.figures();
        let mut put = |name: &str, sum: &AtomicU64| {
            let each = sum.load(Ordering::Relaxed) as f64 / times.max(1) as f64;
            figures.insert(name.to_owned(), each);
        };
        put("read_keys", &keys);
        put("read_bytes", &bytes);
        Ok((rows.into_inner(), of_one_thread(figures)))
    }
}
