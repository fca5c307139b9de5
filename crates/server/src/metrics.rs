//! `/_orrery/metrics`: how containers are used, in the text format of Prometheus.

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use service::{ContainerUsage, PartitionInfo, ServiceError, Usage};

use crate::front::Answer;
use crate::memory::MemoryReport;

/// One metric: its name, its kind, what it means, and where to read it.
struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    read: fn(&PartitionInfo, &Usage) -> Option<f64>,
}

const METRICS: &[Metric] = &[
    Metric {
        name: "orrery_request_units_total",
        kind: "counter",
        help: "Request units charged since this process serves the physical partition.",
        read: |_, usage| Some(usage.totals.charge.request_units()),
    },
    Metric {
        name: "orrery_requests_total",
        kind: "counter",
        help: "Requests that the physical partition took.",
        read: |_, usage| Some(number(usage.totals.requests)),
    },
    Metric {
        name: "orrery_throttled_requests_total",
        kind: "counter",
        help: "Requests that were refused with 429 as the throughput was used up.",
        read: |_, usage| Some(number(usage.totals.throttled)),
    },
    Metric {
        name: "orrery_normalized_ru_consumption_ratio",
        kind: "gauge",
        help: "The busiest second of the last minute, as a part of what a second provides.",
        read: |_, usage| Some(usage.normalised),
    },
    Metric {
        name: "orrery_provisioned_throughput",
        kind: "gauge",
        help: "Request units per second that the physical partition serves at most; absent if that is not limited.",
        read: |_, usage| usage.throughput,
    },
    Metric {
        name: "orrery_items",
        kind: "gauge",
        help: "Items in the physical partition.",
        read: |partition, _| Some(number(partition.items)),
    },
    Metric {
        name: "orrery_storage_bytes",
        kind: "gauge",
        help: "Bytes of the items in the physical partition.",
        read: |partition, _| Some(number(partition.bytes)),
    },
];

pub(crate) fn answer(
    usage: Result<Vec<ContainerUsage>, ServiceError>,
    memory: &MemoryReport,
) -> Answer {
    let mut text = match usage {
        Ok(usage) => render(&usage),
        // Whoever collects metrics wants those that there are.
        Err(error) => format!("# what the containers hold cannot be read: {error}\n"),
    };
    text.push_str(&memory.to_metrics());
    let mut answer = Response::new(Bytes::from(text));
    let format = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, format);
    answer
}

fn render(containers: &[ContainerUsage]) -> String {
    let mut out = String::new();
    for Metric { name, kind, help, read } in METRICS {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for container in containers {
            let link = escaped(&container.link);
            for (partition, usage) in &container.partitions {
                if let Some(value) = read(partition, usage) {
                    let range = partition.id;
                    let _ =
                        writeln!(out, "{name}{{container=\"{link}\",range=\"{range}\"}} {value}");
                }
            }
        }
    }
    out
}

/// Names may be anything; in a label three characters have to be escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[expect(clippy::cast_precision_loss, reason = "the format has doubles only")]
fn number(count: u64) -> f64 {
    count as f64
}
