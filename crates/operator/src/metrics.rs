//! `/_orrery/metrics`: how long requests take, how containers are used, what is held of the
//! memory, in the text format of OpenMetrics.
//!
//! Durations are accumulated from request to request, by verb and status: both are few, and
//! known beforehand. Everything else is read on scrape.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use runtime::MemoryUsage;
use service::{ContainerUsage, CountedScript, PartitionInfo, ScriptTotals, Usage};

use crate::process::{ProcessFigures, TaskFigures};
use crate::scripts;

pub(crate) const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds in seconds: from a point read in memory to what a query may take at most.
const BOUNDS: [f64; 16] = [
    0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

/// How long requests took.
#[derive(Debug)]
pub struct RequestDurations {
    registry: Registry,
    requests: Family<Labels, Histogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    verb: &'static str,
    status: u16,
}

impl Default for RequestDurations {
    fn default() -> RequestDurations {
        let mut registry = Registry::default();
        let requests = Family::<Labels, Histogram>::new_with_constructor(|| Histogram::new(BOUNDS));
        registry.register_with_unit(
            "orrery_request_duration",
            "How long requests took, from their last byte to the answer",
            Unit::Seconds,
            requests.clone(),
        );
        RequestDurations { registry, requests }
    }
}

impl RequestDurations {
    /// Records how long a request of a protocol took. Verbs must be few and known
    /// beforehand: each has a histogram for each of its statuses.
    pub fn record(&self, verb: &'static str, status: u16, elapsed: Duration) {
        self.requests.get_or_create(&Labels { verb, status }).observe(elapsed.as_secs_f64());
    }
}

/// What is read on scrape.
#[derive(Debug)]
pub(crate) struct Readings {
    pub(crate) containers: Vec<ContainerUsage>,
    pub(crate) scripts: Vec<CountedScript>,
    pub(crate) process: ProcessFigures,
}

/// All metrics as one text.
pub(crate) fn encode(durations: &RequestDurations, readings: Readings) -> String {
    let mut read = Registry::default();
    read.register_collector(Box::new(readings));
    let mut text = String::new();
    let written = encode_registry(&mut text, &durations.registry)
        .and_then(|()| encode_registry(&mut text, &read))
        .and_then(|()| encode_eof(&mut text));
    // A text takes whatever is written to it.
    debug_assert!(written.is_ok());
    text
}

/// What a metric says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    /// Only ever grows.
    Count(u64),
    /// The same, in parts.
    Sum(f64),
    Level(u64),
    Ratio(f64),
}

impl Figure {
    fn encode(self, encoder: MetricEncoder<'_>) -> fmt::Result {
        match self {
            Figure::Count(count) => ConstCounter::new(count).encode(encoder),
            Figure::Sum(sum) => ConstCounter::new(sum).encode(encoder),
            Figure::Level(level) => {
                ConstGauge::new(i64::try_from(level).unwrap_or(i64::MAX)).encode(encoder)
            }
            Figure::Ratio(ratio) => ConstGauge::new(ratio).encode(encoder),
        }
    }
}

/// One metric: its name, its kind, what it means, and where to read it.
struct Metric<T> {
    name: &'static str,
    kind: MetricType,
    help: &'static str,
    read: fn(&T) -> Option<Figure>,
}

const OF_PARTITIONS: &[Metric<(PartitionInfo, Usage)>] = &[
    Metric {
        name: "orrery_request_units",
        kind: MetricType::Counter,
        help: "Request units charged since this process serves the physical partition.",
        read: |(_, usage)| Some(Figure::Sum(usage.totals.charge.request_units())),
    },
    Metric {
        name: "orrery_requests",
        kind: MetricType::Counter,
        help: "Requests that the physical partition took.",
        read: |(_, usage)| Some(Figure::Count(usage.totals.requests)),
    },
    Metric {
        name: "orrery_throttled_requests",
        kind: MetricType::Counter,
        help: "Requests that were refused with 429 as the throughput was used up.",
        read: |(_, usage)| Some(Figure::Count(usage.totals.throttled)),
    },
    Metric {
        name: "orrery_normalized_ru_consumption_ratio",
        kind: MetricType::Gauge,
        help: "The busiest second of the last minute, as a part of what a second provides.",
        read: |(_, usage)| Some(Figure::Ratio(usage.normalised)),
    },
    Metric {
        name: "orrery_provisioned_throughput",
        kind: MetricType::Gauge,
        help: "Request units per second that the physical partition serves at most; absent if that is not limited.",
        read: |(_, usage)| usage.throughput.map(Figure::Ratio),
    },
    Metric {
        name: "orrery_items",
        kind: MetricType::Gauge,
        help: "Items in the physical partition.",
        read: |(partition, _)| Some(Figure::Level(partition.items)),
    },
    Metric {
        name: "orrery_storage_bytes",
        kind: MetricType::Gauge,
        help: "Bytes of the items in the physical partition.",
        read: |(partition, _)| Some(Figure::Level(partition.bytes)),
    },
];

const OF_MEMORY: &[Metric<MemoryUsage>] = &[
    Metric {
        name: "orrery_memory_limit_bytes",
        kind: MetricType::Gauge,
        help: "Memory set aside for a purpose.",
        read: |usage| Some(Figure::Level(usage.limit as u64)),
    },
    Metric {
        name: "orrery_memory_held_bytes",
        kind: MetricType::Gauge,
        help: "How much of it is in use.",
        read: |usage| Some(Figure::Level(usage.held as u64)),
    },
    Metric {
        name: "orrery_memory_high_bytes",
        kind: MetricType::Gauge,
        help: "The most that was in use at once.",
        read: |usage| Some(Figure::Level(usage.high as u64)),
    },
    Metric {
        name: "orrery_memory_refused",
        kind: MetricType::Counter,
        help: "How often there was not enough of it left.",
        read: |usage| Some(Figure::Count(usage.refused)),
    },
];

const OF_SCRIPTS: &[Metric<ScriptTotals>] = &[
    Metric {
        name: "orrery_script_runs",
        kind: MetricType::Counter,
        help: "Runs of a script, and calls of a function.",
        read: |totals| Some(Figure::Count(totals.runs)),
    },
    Metric {
        name: "orrery_script_failures",
        kind: MetricType::Counter,
        help: "Runs of a script that ended with an error.",
        read: |totals| Some(Figure::Count(totals.failures)),
    },
    Metric {
        name: "orrery_script_request_units",
        kind: MetricType::Counter,
        help: "Request units that the runs and their operations cost, committed or not.",
        read: |totals| Some(Figure::Sum(totals.charge.request_units())),
    },
    Metric {
        name: "orrery_script_seconds",
        kind: MetricType::Counter,
        help: "How long a script ran, without waiting for its turn or its commit.",
        read: |totals| Some(Figure::Sum(totals.time.as_secs_f64())),
    },
];

const OF_TASKS: &[Metric<TaskFigures>] = &[
    Metric {
        name: "orrery_background_rounds",
        kind: MetricType::Counter,
        help: "Rounds of a background task that were begun.",
        read: |task| Some(Figure::Count(task.rounds)),
    },
    Metric {
        name: "orrery_background_failures",
        kind: MetricType::Counter,
        help: "Rounds of a background task that ended with an error or a panic.",
        read: |task| Some(Figure::Count(task.failures)),
    },
];

const OF_PROCESS: &[Metric<ProcessFigures>] = &[
    Metric {
        name: "orrery_answers_ok",
        kind: MetricType::Counter,
        help: "Answers to requests that succeeded.",
        read: |process| Some(Figure::Count(process.answers.ok)),
    },
    Metric {
        name: "orrery_answers_client_error",
        kind: MetricType::Counter,
        help: "Answers that say that the client is wrong.",
        read: |process| Some(Figure::Count(process.answers.client_error)),
    },
    Metric {
        name: "orrery_answers_server_error",
        kind: MetricType::Counter,
        help: "Answers that say that the server is wrong or overloaded.",
        read: |process| Some(Figure::Count(process.answers.server_error)),
    },
    Metric {
        name: "orrery_connections_opened",
        kind: MetricType::Counter,
        help: "Connections that were let in.",
        read: |process| Some(Figure::Count(process.connections.opened)),
    },
    Metric {
        name: "orrery_connections_refused",
        kind: MetricType::Counter,
        help: "Connections beyond the limit.",
        read: |process| Some(Figure::Count(process.connections.refused)),
    },
    Metric {
        name: "orrery_connections_open",
        kind: MetricType::Gauge,
        help: "Connections that are open.",
        read: |process| Some(Figure::Level(process.connections.open)),
    },
    Metric {
        name: "orrery_connections_parked",
        kind: MetricType::Gauge,
        help: "Open connections of which nothing but the socket is held.",
        read: |process| Some(Figure::Level(process.connections.parked)),
    },
];

impl Collector for Readings {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut partitions = Vec::new();
        for container in &self.containers {
            for partition in &container.partitions {
                partitions.push((container.link.as_ref(), partition.0.id.to_string(), partition));
            }
        }
        let partitions = partitions.iter().map(|(container, range, partition)| {
            ([("container", *container), ("range", range.as_str())], *partition)
        });
        encode_table(&mut encoder, OF_PARTITIONS, partitions)?;
        let scripts = self.scripts.iter().map(|script| {
            let container = script.container.as_deref().unwrap_or_default();
            let (kind, name) = (scripts::word(script.kind), script.name.as_str());
            ([("container", container), ("kind", kind), ("script", name)], &script.totals)
        });
        encode_table(&mut encoder, OF_SCRIPTS, scripts)?;
        let parts = &self.process.memory.parts;
        let parts = parts.iter().map(|(purpose, usage)| ([("purpose", *purpose)], usage));
        encode_table(&mut encoder, OF_MEMORY, parts)?;
        let tasks = self.process.tasks.iter().map(|task| ([("task", task.name)], task));
        encode_table(&mut encoder, OF_TASKS, tasks)?;
        for metric in OF_PROCESS {
            let value = encoder.encode_descriptor(metric.name, metric.help, None, metric.kind)?;
            (metric.read)(&self.process).map_or(Ok(()), |figure| figure.encode(value))?;
        }
        Ok(())
    }
}

/// Writes each metric of a table for every subject, distinguished by their labels.
fn encode_table<'a, T: 'a, L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder<'_>,
    table: &[Metric<T>],
    rows: impl Iterator<Item = (L, &'a T)> + Clone,
) -> fmt::Result {
    for metric in table {
        let mut family = encoder.encode_descriptor(metric.name, metric.help, None, metric.kind)?;
        for (labels, row) in rows.clone() {
            if let Some(figure) = (metric.read)(row) {
                figure.encode(family.encode_family(&labels)?)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_kept_by_verb_and_status_and_by_nothing_else() {
        let durations = RequestDurations::default();
        for status in [200, 200, 404] {
            durations.record("read_item", status, Duration::from_micros(300));
        }
        durations.record("query_items", 200, Duration::from_secs(60));
        let mut text = String::new();
        encode_registry(&mut text, &durations.registry).unwrap();
        let name = "orrery_request_duration_seconds";
        for line in [
            format!("# TYPE {name} histogram\n"),
            format!("{name}_count{{verb=\"read_item\",status=\"200\"}} 2\n"),
            format!("{name}_bucket{{le=\"0.00025\",verb=\"read_item\",status=\"200\"}} 0\n"),
            format!("{name}_bucket{{le=\"0.0005\",verb=\"read_item\",status=\"404\"}} 1\n"),
            format!("{name}_bucket{{le=\"10.0\",verb=\"query_items\",status=\"200\"}} 0\n"),
            format!("{name}_bucket{{le=\"+Inf\",verb=\"query_items\",status=\"200\"}} 1\n"),
        ] {
            assert!(text.contains(&line), "{line}{text}");
        }
    }
}
