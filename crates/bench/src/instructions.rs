//! `instructions`: what an operation executes and allocates, counted by callgrind.
//!
//! Instructions repeat to a percent whatever else the machine does, so they show changes
//! that times do not. A server runs under valgrind twice, with `n` operations and with twice
//! as many; the difference has neither its start nor the documents that were loaded first.
//! Kernel and disk are not in it, and callgrind has no SHA instructions: a signature costs
//! some 16,000 instructions more than it does outside.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::callgrind::Counts;
use crate::document::Documents;
use crate::load::count;
use crate::measure::{Figures, Phase};
use crate::operation::{Operation, Selection};
use crate::report::{Column, Measured, Report};
use crate::server::Binary;
use crate::target::ServerOptions;

const COLUMNS: [Column; 2] =
    [("instructions", "instr k", 1e3, 1), ("allocations", "allocs", 1.0, 1)];

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Documents to load first
    #[arg(long, default_value = "500", value_parser = count)]
    documents: u64,
    /// What to count, as for `load`
    #[arg(long, default_value = "items,query", value_delimiter = ',')]
    only: Vec<Selection>,
    /// Connections: more than one shows what operations share
    #[arg(long, default_value_t = 1)]
    connections: usize,
    /// Operations that are counted
    #[arg(long, default_value = "200", value_parser = count)]
    count: u64,
    #[command(flatten)]
    servers: ServerOptions,
    /// Also writes all figures to this file
    #[arg(long)]
    json: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut valgrind = Command::new("valgrind");
    let found = valgrind.arg("--version").stdout(Stdio::null()).status();
    ensure!(found.is_ok_and(|status| status.success()), "valgrind is not installed");
    let mut report = Report::new(&COLUMNS);
    let documents = Documents::new(options.documents);
    options.servers.circumstances(documents).into_iter().for_each(|line| report.say(line));
    report.say(format!("{} operations, counted by callgrind", options.count));
    report.begin_table("per operation; instr k: thousand instructions");
    for selection in &options.only {
        for operation in &selection.0 {
            report.add(options.measure(*operation)?);
        }
    }
    options.json.as_deref().map_or(Ok(()), |path| report.write_json(path))
}

impl Options {
    fn measure(&self, operation: Operation) -> Result<Measured> {
        let mut targets = Vec::new();
        for binary in self.servers.binaries()? {
            let figures = self.difference(&binary, operation).map_err(|why| format!("{why:#}"));
            targets.push((binary.name, figures));
        }
        let (operation, connections) = (operation.to_string(), self.connections);
        Ok(Measured { operation, connections, targets })
    }

    fn difference(&self, binary: &Binary, operation: Operation) -> Result<Figures> {
        let once = self.counted(binary, operation, self.count)?;
        let twice = self.counted(binary, operation, 2 * self.count)?;
        let count = self.count.max(1) as f64;
        let each = |more: u64, less: u64| more.saturating_sub(less) as f64 / count;
        let figures = [
            ("instructions", each(twice.instructions, once.instructions)),
            ("allocations", each(twice.allocations, once.allocations)),
        ];
        let mut figures: Figures =
            figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        // An allocator whose names are not known looks as if it was never called.
        figures.retain(|name, value| name != "allocations" || *value > 0.0);
        Ok(figures)
    }

    /// Everything from the start of a server to its end, with this many operations.
    fn counted(&self, binary: &Binary, operation: Operation, count: u64) -> Result<Counts> {
        let folder = tempfile::TempDir::with_prefix_in("orrery-bench-", self.servers.folder())?;
        let out = folder.path().join("callgrind.out");
        let before = valgrind(&out, &folder.path().join("valgrind.log"));
        let documents = Documents::new(self.documents);
        let mut target = self.servers.start(binary, documents, &before)?;
        for (operation, count) in [(Operation::Create, self.documents), (operation, count)] {
            let connections = self.connections;
            let (seconds, system_calls, progress) = (None, false, None);
            target.measure(Phase {
                operation,
                connections,
                count,
                seconds,
                system_calls,
                progress,
            })?;
        }
        target.end()?;
        let text = std::fs::read(&out).context("callgrind leaves a file")?;
        Counts::parse(&String::from_utf8_lossy(&text))
    }
}

fn valgrind(out: &Path, log: &Path) -> Vec<String> {
    vec![
        "valgrind".to_owned(),
        "--tool=callgrind".to_owned(),
        format!("--callgrind-out-file={}", out.display()),
        format!("--log-file={}", log.display()),
    ]
}
