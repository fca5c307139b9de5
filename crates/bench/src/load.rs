//! `load`: documents over HTTP, then every operation on what was loaded.
//!
//! The load itself is one of the figures, twice: until its last answer, and until the server
//! has nothing left to do, since an engine that puts off its compactions has not avoided
//! them. With several targets the load is cut into slices and each other operation into
//! rounds, and targets take turns.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::disk::{self, RawSync};
use crate::document::Documents;
use crate::latency::Latencies;
use crate::measure::{self, Figures, Phase, Taken};
use crate::operation::{Operation, Selection};
use crate::report::{COLUMNS, Measured, Progress, Report};
use crate::server::{Endpoint, Server};
use crate::system_calls;
use crate::target::{BRIEFLY, ServerOptions, Target};

/// Bulk requests in flight: the queue of a partition takes 1,024 operations, and what it
/// refuses a client would have to send again.
const BULK_CONNECTIONS_MAX: usize = 8;

/// What the columns mean.
pub(crate) const EXPLANATION: &str = "per operation; upkeep: cpu µs of flush and compaction; vol, invol: context switches; \
     calls: system calls; KB wr: written to disk; RSS, peak, disk: MiB";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Documents to load, such as 200000, 1e6 or 1e7
    #[arg(long, default_value = "100000", value_parser = count)]
    documents: u64,
    /// What to measure after the load: all, none, items, query, ycsb, or names such as
    /// read,create,query-count,ycsb-a. A wrong name lists them all
    #[arg(long, default_value = "all", value_delimiter = ',')]
    only: Vec<Selection>,
    /// Connections, each with one request in flight; several numbers measure with each
    #[arg(long, default_value = "32", value_delimiter = ',')]
    connections: Vec<usize>,
    /// Connections while documents are loaded
    #[arg(long, default_value_t = 32)]
    load_connections: usize,
    /// Connections that ask the six queries
    #[arg(long, default_value = "1", value_delimiter = ',')]
    query_connections: Vec<usize>,
    /// Seconds for each operation
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Ends an operation after this many, too
    #[arg(long, value_parser = count)]
    count: Option<u64>,
    /// Rounds of each operation [default: 1; 3 for several targets]
    #[arg(long)]
    rounds: Option<u64>,
    #[command(flatten)]
    servers: ServerOptions,
    /// Another server that speaks Cosmos DB's REST over plain HTTP: NAME=URL, or NAME=URL@PID to
    /// read what its process takes. Its database `bench` is dropped
    #[arg(long)]
    against: Vec<Endpoint>,
    /// Raw fsyncs before and after the load
    #[arg(long, default_value_t = 2_000)]
    fsyncs: u64,
    /// Milliseconds without work after which a load counts as settled; 0 waits for nothing
    #[arg(long, default_value_t = 1_200)]
    quiet_ms: u64,
    /// The same after which nothing more is tidied up, before anything else is measured; 0
    /// waits for nothing
    #[arg(long, default_value_t = 12_000)]
    tidy_ms: u64,
    /// Counts system calls, with perf
    #[arg(long)]
    system_calls: bool,
    /// Also writes all figures to this file
    #[arg(long)]
    json: Option<PathBuf>,
}

/// A whole number, perhaps as `1e6`.
pub(crate) fn count(text: &str) -> Result<u64> {
    let plain = text.replace('_', "");
    let (digits, zeros) = plain.split_once('e').unwrap_or((&plain, "0"));
    let (digits, zeros): (u64, u32) = (digits.parse()?, zeros.parse()?);
    let scale = 10_u64.checked_pow(zeros).context("a number of documents")?;
    digits.checked_mul(scale).context("a number of documents")
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut report = Report::new(&COLUMNS);
    let folder = options.servers.folder();
    let mut targets = options.start()?;
    let counts_calls = options.system_calls && system_calls::is_possible();
    options.heading(&targets, counts_calls).into_iter().for_each(|line| report.say(line));
    let options = &Options { system_calls: counts_calls, ..options.clone() };
    let before = disk::sync_often(&folder, options.fsyncs)?;
    report.begin_table(EXPLANATION);
    options.load(&mut targets, &mut report)?;
    let after = disk::sync_often(&folder, options.fsyncs)?;
    report_stalls(&targets, before, after, &mut report);
    if options.tidy_ms > 0 && !options.operations().is_empty() {
        report.add(options.tidy(&targets)?);
    }
    for operation in options.operations() {
        for connections in options.connections_for(operation) {
            let measured = options.compare(&mut targets, operation, connections)?;
            report.add(measured);
        }
    }
    for target in &mut targets {
        target.end()?;
    }
    options.json.as_deref().map_or(Ok(()), |path| report.write_json(path))
}

impl Options {
    fn operations(&self) -> Vec<Operation> {
        self.only.iter().flat_map(|selection| selection.0.iter().copied()).collect()
    }

    fn connections_for(&self, operation: Operation) -> Vec<usize> {
        let is_query = matches!(operation, Operation::Query(_));
        let all = if is_query { &self.query_connections } else { &self.connections };
        let max = if operation == Operation::Bulk { BULK_CONNECTIONS_MAX } else { usize::MAX };
        let mut all: Vec<usize> = all.iter().map(|connections| *connections.min(&max)).collect();
        all.dedup();
        all
    }

    fn quiet(&self) -> Duration {
        Duration::from_millis(self.quiet_ms)
    }

    fn rounds(&self, targets: &[Target]) -> u64 {
        self.rounds.unwrap_or(if targets.len() > 1 { 3 } else { 1 }).max(1)
    }

    fn start(&self) -> Result<Vec<Target>> {
        let documents = Documents::new(self.documents);
        let mut targets = Vec::new();
        for binary in self.servers.binaries()? {
            targets.push(self.servers.start(&binary, documents, &[])?);
        }
        for endpoint in &self.against {
            targets.push(self.servers.use_endpoint(endpoint, documents)?);
        }
        Ok(targets)
    }

    /// What is measured, on what.
    fn heading(&self, targets: &[Target], counts_calls: bool) -> Vec<String> {
        let mut lines = self.servers.circumstances(Documents::new(self.documents));
        for Target { server, partitions, .. } in targets {
            let Server { name, origin, .. } = server;
            let foreign = ", which decides by itself on durability, index and signatures";
            let foreign = if server.is_ours() { "" } else { foreign };
            lines.push(format!("{name}: {origin}, partitions: {partitions}{foreign}"));
        }
        match (self.system_calls, counts_calls) {
            (_, true) => {}
            (true, false) => {
                lines.push("left out: system calls, which perf cannot count".to_owned())
            }
            (false, false) => lines.push("left out: system calls (see --system-calls)".to_owned()),
        }
        lines
    }

    fn load(&self, targets: &mut [Target], report: &mut Report) -> Result<()> {
        let mut all: Vec<(Taken, Taken)> = Vec::new();
        // One after the other, not in turns: a server that is left alone tidies up.
        for target in targets.iter_mut() {
            let loaded = self.load_one(target)?;
            all.push((loaded, target.settle(self.quiet())?));
        }
        let names = targets.iter().map(|target| target.server.name.clone());
        let mut measured = [Vec::new(), Vec::new()];
        for (name, (loaded, settled)) in names.zip(all) {
            let [until_answered, until_settled] = &mut measured;
            until_answered.push((name.clone(), Ok(loaded.figures())));
            let mut whole = loaded;
            whole.merge(settled);
            until_settled.push((name, Ok(whole.figures())));
        }
        for (operation, targets) in ["load", "load until settled"].into_iter().zip(measured) {
            let operation = operation.to_owned();
            report.add(Measured { operation, connections: self.load_connections, targets });
        }
        Ok(())
    }

    fn load_one(&self, target: &mut Target) -> Result<Taken> {
        let count = self.documents;
        let mut progress = Progress::new(&format!("load {}", target.server.name), count);
        let phase = Phase {
            operation: Operation::Create,
            connections: self.load_connections,
            count,
            seconds: None,
            system_calls: self.system_calls,
            progress: Some(&mut |done, elapsed| progress.show(done, elapsed)),
        };
        let taken = target.measure(phase)?;
        progress.end();
        Ok(taken)
    }

    /// What servers do when they are left alone after the load, by document.
    fn tidy(&self, targets: &[Target]) -> Result<Measured> {
        let before = targets.iter().map(Target::usage).collect::<Result<Vec<_>>>()?;
        let mut figures = Vec::new();
        // While one is waited for, the others may be at it.
        for (target, before) in targets.iter().zip(before) {
            let taken = target.settle(Duration::from_millis(self.tidy_ms))?;
            let usage = target.usage()?.zip(before).map(|(now, before)| now.since(&before));
            let taken = Taken { operations: self.documents, usage, ..taken };
            figures.push((target.server.name.clone(), Ok(taken.figures())));
        }
        let (operation, connections) = ("left alone".to_owned(), 0);
        Ok(Measured { operation, connections, targets: figures })
    }

    fn phase(&self, operation: Operation, connections: usize) -> Phase<'static> {
        Phase {
            operation,
            connections,
            count: self.count.unwrap_or(u64::MAX),
            seconds: Some(self.seconds),
            system_calls: self.system_calls,
            progress: None,
        }
    }

    /// Rounds of one operation on all targets in turn.
    fn compare(
        &self,
        targets: &mut [Target],
        operation: Operation,
        connections: usize,
    ) -> Result<Measured> {
        let mut rounds: Vec<Result<Vec<Figures>, String>> = vec![Ok(Vec::new()); targets.len()];
        for _ in 0..self.rounds(targets) {
            for (target, rounds) in targets.iter_mut().zip(&mut rounds) {
                let Ok(done) = rounds else { continue };
                match target.measure(self.phase(operation, connections)) {
                    Ok(taken) => done.push(taken.figures()),
                    Err(why) => *rounds = Err(format!("{why:#}")),
                }
                if operation.writes() {
                    target.settle(self.quiet().min(BRIEFLY))?;
                }
            }
        }
        let names = targets.iter().map(|target| target.server.name.clone());
        let figures =
            rounds.into_iter().map(|rounds| rounds.map(|rounds| measure::median(&rounds)));
        let targets = names.zip(figures).collect();
        Ok(Measured { operation: operation.to_string(), connections, targets })
    }
}

/// How long the slowest creates of the load took, in terms of the disk.
fn report_stalls(targets: &[Target], before: Latencies, after: Latencies, report: &mut Report) {
    let mut both = before.clone();
    both.merge(after.clone());
    // Where they differ, the machine was busy with something else.
    for (when, latencies) in [("before", before), ("after", after)] {
        let RawSync { p50, p999, max } = RawSync::of(latencies);
        report.say(format!(
            "raw fsync of 4 KB {when} the load: p50 {p50:.0} µs, p99.9 {p999:.0} µs, max {max:.0} µs"
        ));
    }
    let raw = RawSync::of(both);
    for target in targets {
        let name = &target.server.name;
        let Some(figures) = report.figures("load", name) else { continue };
        let times = |figure: &str| figures.get(figure).copied().unwrap_or_default() / raw.p999;
        let line = format!(
            "{name}: creates of the load took p99.9 {:.1} times and at most {:.1} times the p99.9 of both",
            times("p999_us"),
            times("max_us")
        );
        report.say(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_may_have_an_exponent() {
        assert_eq!(
            ["1e6", "200_000", "7"].map(|text| count(text).unwrap()),
            [1_000_000, 200_000, 7]
        );
        assert!(count("1e").is_err());
    }
}
