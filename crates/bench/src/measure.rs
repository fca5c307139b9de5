//! One phase: an operation on one server, with everything that it took.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;

use crate::client::{self, Limits, Run};
use crate::driver::{Driver, Stock};
use crate::latency::Latencies;
use crate::operation::Operation;
use crate::process::{self, Usage};
use crate::request::Requests;
use crate::server::Server;
use crate::system_calls::Counting;

/// Figures by name. A unit ends the name; what is per operation says nothing else.
pub(crate) type Figures = BTreeMap<String, f64>;

/// What a phase does.
pub(crate) struct Phase<'a> {
    pub(crate) operation: Operation,
    pub(crate) connections: usize,
    pub(crate) count: u64,
    pub(crate) seconds: Option<u64>,
    pub(crate) system_calls: bool,
    /// Gets the number of complete operations now and then.
    pub(crate) progress: Option<&'a mut dyn FnMut(u64, Duration)>,
}

/// What one phase took, or several.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) operations: u64,
    pub(crate) elapsed: Duration,
    pub(crate) latencies: Latencies,
    pub(crate) received_bytes: u64,
    pub(crate) rows: u64,
    pub(crate) pages: u64,
    pub(crate) usage: Option<Usage>,
    pub(crate) client: Duration,
    pub(crate) system_calls: Option<u64>,
    pub(crate) disk_bytes: Option<u64>,
}

pub(crate) fn measure(
    server: &Server,
    requests: &mut Requests,
    stock: &mut Stock,
    phase: Phase<'_>,
) -> Result<Taken> {
    let Phase { operation, connections, count, seconds, .. } = phase;
    let mut driver = Driver::new(operation, requests, stock, connections, count);
    let counting = match server.process().filter(|_| phase.system_calls) {
        Some(process) => Some(Counting::start(process)?),
        None => None,
    };
    let (before, client) = (server.usage()?, Usage::read(std::process::id())?);
    let limits = Limits { connections, seconds, progress: phase.progress };
    let Run { elapsed, latencies, bytes_received } =
        client::run(server.address, &mut driver, limits)?;
    let (rows, pages) = (driver.rows, driver.pages);
    let usage = server.usage()?.zip(before).map(|(after, before)| after.since(&before));
    let client = Usage::read(std::process::id())?.since(&client).cpu;
    Ok(Taken {
        operations: latencies.count(),
        elapsed,
        latencies,
        received_bytes: bytes_received,
        rows,
        pages,
        usage,
        client,
        system_calls: counting.map(Counting::end).transpose()?.flatten(),
        disk_bytes: server.bytes_on_disk(),
    })
}

impl Taken {
    pub(crate) fn merge(&mut self, other: Taken) {
        self.operations += other.operations;
        self.elapsed += other.elapsed;
        self.latencies.merge(other.latencies);
        self.received_bytes += other.received_bytes;
        self.rows += other.rows;
        self.pages += other.pages;
        self.client += other.client;
        self.system_calls = sum(self.system_calls, other.system_calls);
        self.disk_bytes = other.disk_bytes;
        self.usage = match (self.usage.take(), other.usage) {
            (Some(usage), Some(other)) => Some(usage.plus(&other)),
            (None, other) => other,
            (usage, None) => usage,
        };
    }

    pub(crate) fn figures(&self) -> Figures {
        let mut figures = Figures::new();
        let operations = self.operations.max(1) as f64;
        let mut put = |name: &str, value: f64| figures.insert(name.to_owned(), value);
        put("operations", self.operations as f64);
        put("elapsed_s", self.elapsed.as_secs_f64());
        put("rate_per_s", self.operations as f64 / self.elapsed.as_secs_f64().max(1e-9));
        if self.latencies.count() > 0 {
            let [p50, p99, p999, max] =
                self.latencies.clone().micros_at([50_000, 99_000, 99_900, 100_000]);
            put("p50_us", p50);
            put("p99_us", p99);
            put("p999_us", p999);
            put("max_us", max);
        }
        put("client_cpu_us", micros(self.client) / operations);
        put("received_bytes", self.received_bytes as f64 / operations);
        if self.pages > 0 {
            put("rows", self.rows as f64 / operations);
            put("pages", self.pages as f64 / operations);
        }
        if let Some(calls) = self.system_calls {
            put("system_calls", calls as f64 / operations);
        }
        if let Some(bytes) = self.disk_bytes {
            put("disk_mib", mib(bytes));
        }
        if let Some(usage) = &self.usage {
            figures.extend(usage_figures(usage, operations));
        }
        figures
    }
}

fn usage_figures(usage: &Usage, operations: f64) -> Figures {
    let groups = usage.by_group();
    let upkeep = groups.iter().filter(|(name, _)| process::is_upkeep(name));
    let upkeep: Duration = upkeep.map(|(_, cpu)| *cpu).sum();
    let (voluntary, involuntary) = usage.switches();
    let figures = [
        ("cpu_us", micros(usage.cpu) / operations),
        ("upkeep_cpu_us", micros(upkeep) / operations),
        ("request_cpu_us", micros(usage.cpu.saturating_sub(upkeep)) / operations),
        ("voluntary_switches", voluntary as f64 / operations),
        ("involuntary_switches", involuntary as f64 / operations),
        ("written_bytes", usage.written_bytes as f64 / operations),
        ("rss_mib", mib(usage.rss_bytes)),
        ("peak_rss_mib", mib(usage.peak_rss_bytes)),
    ];
    let figures = figures.map(|(name, value)| (name.to_owned(), value));
    let threads =
        groups.iter().map(|(name, cpu)| (format!("{THREAD}{name}"), micros(*cpu) / operations));
    figures.into_iter().chain(threads).collect()
}

/// Begins the names of figures of one group of threads.
pub(crate) const THREAD: &str = "cpu_us of ";

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.zip(other).map(|(one, other)| one + other).or(one).or(other)
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The median of each figure over rounds; the worst maximum.
pub(crate) fn median(rounds: &[Figures]) -> Figures {
    let names: std::collections::BTreeSet<&String> =
        rounds.iter().flat_map(|figures| figures.keys()).collect();
    let median = |name: &String| {
        let mut values: Vec<f64> =
            rounds.iter().filter_map(|figures| figures.get(name)).copied().collect();
        values.sort_by(f64::total_cmp);
        let at = if name == "max_us" { values.len() - 1 } else { values.len() / 2 };
        (name.clone(), values.get(at).copied().unwrap_or_default())
    };
    names.into_iter().map(median).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_become_their_median() {
        let round = |rate, max| {
            Figures::from([("rate_per_s".to_owned(), rate), ("max_us".to_owned(), max)])
        };
        let median = median(&[round(3.0, 7.0), round(1.0, 9.0), round(2.0, 8.0)]);
        assert_eq!(median, round(2.0, 9.0));
    }
}
