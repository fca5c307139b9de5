//! The figures as a table for people and as JSON for programs.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::measure::{Figures, THREAD};
use crate::process;

/// A column of the table: the figure, its heading, what it is divided by, its decimals.
pub(crate) type Column = (&'static str, &'static str, f64, usize);

/// The columns of what runs at full speed.
pub(crate) const COLUMNS: [Column; 14] = [
    ("rate_per_s", "ops/s", 1.0, 0),
    ("p50_us", "p50 µs", 1.0, 0),
    ("p99_us", "p99 µs", 1.0, 0),
    ("p999_us", "p99.9 µs", 1.0, 0),
    ("max_us", "max µs", 1.0, 0),
    ("cpu_us", "cpu µs", 1.0, 1),
    ("upkeep_cpu_us", "upkeep", 1.0, 1),
    ("voluntary_switches", "vol", 1.0, 2),
    ("involuntary_switches", "invol", 1.0, 2),
    ("system_calls", "calls", 1.0, 2),
    ("written_bytes", "KB wr", 1e3, 2),
    ("rss_mib", "RSS", 1.0, 0),
    ("peak_rss_mib", "peak", 1.0, 0),
    ("disk_mib", "disk", 1.0, 0),
];

const WIDTH: usize = 9;

/// What was measured on each target, the first of which is what the others are compared with.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) operation: String,
    pub(crate) connections: usize,
    /// The target's name and its figures, or why there are none.
    pub(crate) targets: Vec<(String, Result<Figures, String>)>,
}

/// Collects what is printed.
#[derive(Debug)]
pub(crate) struct Report {
    columns: &'static [Column],
    heading: Vec<String>,
    measured: Vec<Measured>,
}

impl Report {
    pub(crate) fn new(columns: &'static [Column]) -> Report {
        Report { columns, heading: Vec::new(), measured: Vec::new() }
    }

    /// A line about the circumstances.
    pub(crate) fn say(&mut self, line: String) {
        println!("{line}");
        self.heading.push(line);
    }

    /// The names of the columns, below a line that explains them.
    pub(crate) fn begin_table(&self, explanation: &str) {
        println!("\n{explanation}");
        let headings = self.columns.iter().map(|(_, heading, _, _)| format!("{heading:>WIDTH$}"));
        let headings: String = headings.collect();
        println!("{:<24}{:>5} {:<10}{headings}", "operation", "conns", "target");
    }

    pub(crate) fn add(&mut self, measured: Measured) {
        print!("{}", measured.table(self.columns));
        // A person watches.
        let _flushed = std::io::stdout().flush();
        self.measured.push(measured);
    }

    pub(crate) fn figures(&self, operation: &str, target: &str) -> Option<&Figures> {
        let measured = self.measured.iter().find(|measured| measured.operation == operation)?;
        let (_, figures) = measured.targets.iter().find(|(name, _)| name == target)?;
        figures.as_ref().ok()
    }

    pub(crate) fn write_json(&self, path: &Path) -> Result<()> {
        let measured: Vec<Value> = self.measured.iter().flat_map(Measured::json).collect();
        let all = json!({"heading": self.heading, "measured": measured});
        let text = serde_json::to_string_pretty(&all)?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Measured {
    fn table(&self, columns: &[Column]) -> String {
        let mut text = String::new();
        let first = self.targets.first().and_then(|(_, figures)| figures.as_ref().ok());
        for (at, (target, figures)) in self.targets.iter().enumerate() {
            let start = format!("{:<24}{:>5} {target:<10}", self.operation, self.connections);
            match figures {
                Ok(figures) => {
                    let cells: String =
                        columns.iter().map(|column| cell(figures, *column)).collect();
                    let _written = writeln!(text, "{start}{cells}");
                    if let Some(details) = details(figures) {
                        let _written = writeln!(text, "    {details}");
                    }
                    if let Some(first) = first.filter(|_| at > 0) {
                        let ratios: String =
                            columns.iter().map(|column| ratio(figures, first, *column)).collect();
                        let what = "    ratio to the first";
                        let _written = writeln!(text, "{what:<24}{:>5} {target:<10}{ratios}", "");
                    }
                }
                Err(why) => {
                    let _written = writeln!(text, "{start}  left out: {why}");
                }
            }
        }
        text
    }

    fn json(&self) -> Vec<Value> {
        let one = |(target, figures): &(String, Result<Figures, String>)| {
            let mut value = json!({
                "operation": self.operation, "connections": self.connections, "target": target,
            });
            match figures {
                Ok(figures) => value["figures"] = json!(figures),
                Err(why) => value["left_out"] = json!(why),
            }
            value
        };
        self.targets.iter().map(one).collect()
    }
}

fn cell(figures: &Figures, (name, _, divisor, decimals): Column) -> String {
    match figures.get(name) {
        Some(value) => format!("{:>WIDTH$.decimals$}", value / divisor),
        None => format!("{:>WIDTH$}", "-"),
    }
}

fn ratio(figures: &Figures, first: &Figures, (name, _, _, _): Column) -> String {
    match figures.get(name).zip(first.get(name)) {
        Some((value, first)) if *first > 0.0 => format!("{:>WIDTH$.3}", value / first),
        _ => format!("{:>WIDTH$}", "-"),
    }
}

/// The figures that have no column: processor time by thread, rows of queries.
fn details(figures: &Figures) -> Option<String> {
    let threads =
        figures.iter().filter_map(|(name, value)| Some((name.strip_prefix(THREAD)?, *value)));
    let (upkeep, requests): (Vec<_>, Vec<_>) =
        threads.filter(|(_, cpu)| *cpu >= 0.05).partition(|(name, _)| process::is_upkeep(name));
    let mut parts = Vec::new();
    if !requests.is_empty() {
        parts.push(format!("cpu µs: {}", by_thread(requests)));
    }
    if !upkeep.is_empty() {
        parts.push(format!("upkeep: {}", by_thread(upkeep)));
    }
    if let Some(cpu) = figures.get("client_cpu_us") {
        parts.push(format!("client {cpu:.1}"));
    }
    if let Some((rows, pages)) = figures.get("rows").zip(figures.get("pages")) {
        parts.push(format!("{rows:.1} rows on {pages:.1} pages"));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The busiest first.
fn by_thread(mut threads: Vec<(&str, f64)>) -> String {
    threads.sort_by(|a, b| b.1.total_cmp(&a.1));
    let all: Vec<String> = threads.iter().map(|(name, cpu)| format!("{name} {cpu:.1}")).collect();
    all.join(", ")
}

/// Shows how far a load is: on a terminal in one line every second, elsewhere in a line of
/// its own every ten.
#[derive(Debug)]
pub(crate) struct Progress {
    what: String,
    total: u64,
    shown: Duration,
    every: Duration,
    is_terminal: bool,
}

impl Progress {
    pub(crate) fn new(what: &str, total: u64) -> Progress {
        let is_terminal = std::io::stderr().is_terminal();
        let every = Duration::from_secs(if is_terminal { 1 } else { 10 });
        Progress { what: what.to_owned(), total, shown: Duration::ZERO, every, is_terminal }
    }

    pub(crate) fn show(&mut self, done: u64, elapsed: Duration) {
        if elapsed < self.shown + self.every {
            return;
        }
        self.shown = elapsed;
        let rate = done as f64 / elapsed.as_secs_f64();
        let left = (self.total.saturating_sub(done)) as f64 / rate.max(1.0);
        let line =
            format!("{}: {done} of {}, {rate:.0}/s, {left:.0} s left", self.what, self.total);
        if self.is_terminal { eprint!("\r{line}\x1b[K") } else { eprintln!("{line}") }
    }

    pub(crate) fn end(&self) {
        if self.is_terminal && self.shown > Duration::ZERO {
            eprint!("\r\x1b[K");
        }
    }
}
