//! Throughput over HTTP, for whoever runs the server: `/_orrery/throughput`.
//!
//! A GET shows how a container's throughput is divided between its physical
//! partitions, a POST divides it anew or sets its throughput buckets.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use service::{
    Principal, RangeId, Redistribution, Service, Throughput, ThroughputBucket, ThroughputInfo,
};

use crate::layout::{self, Refusal};

const EXAMPLE: &str = r#"{"container":"dbs/D/colls/C","policy":"custom","targets":{"0":5000},"sources":["1"]}, {"container":"dbs/D/colls/C","policy":"equal"} or {"container":"dbs/D/colls/C","buckets":[{"id":1,"maxThroughputPercentage":50}]}"#;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    container: String,
    policy: Option<Policy>,
    #[serde(default)]
    targets: BTreeMap<String, u32>,
    #[serde(default)]
    sources: Vec<String>,
    buckets: Option<Vec<Bucket>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Policy {
    Equal,
    Custom,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Bucket {
    id: u32,
    max_throughput_percentage: u32,
}

/// How the throughput of the container is divided that the query names.
pub(crate) async fn show(service: &Service, query: &str) -> Result<Value, Refusal> {
    let ranges = layout::parameter(query, "ranges");
    let ids = ranges.as_deref().map(|ranges| ids(ranges.split(','))).transpose()?;
    describe(service, &layout::container(query)?, ids.as_deref()).await
}

/// Does what the body says, and shows what it has come to.
pub(crate) async fn redistribute(service: &Service, body: &Bytes) -> Result<Value, Refusal> {
    let wanted: Wanted = layout::parse(body, EXAMPLE)?;
    let container = layout::link(&wanted.container)?;
    if let Some(buckets) = &wanted.buckets {
        let bucket = |bucket: &Bucket| ThroughputBucket {
            id: bucket.id,
            percent_max: bucket.max_throughput_percentage,
        };
        let buckets = buckets.iter().map(bucket).collect();
        service.operator(Principal::Account).set_throughput_buckets(&container, buckets).await?;
    }
    match (wanted.policy, &wanted.buckets) {
        (Some(policy), _) => {
            service
                .operator(Principal::Account)
                .redistribute(&container, &wanted.plan(policy)?)
                .await?
        }
        (None, Some(_)) => {}
        (None, None) => {
            return Err(Refusal::malformed(format!("Nothing is to be done. Try {EXAMPLE}")));
        }
    }
    describe(service, &wanted.container, None).await
}

impl Wanted {
    fn plan(&self, policy: Policy) -> Result<Redistribution, Refusal> {
        let targets = self.targets.iter().map(|(id, rate)| Ok((layout::range(id)?, *rate)));
        let targets = targets.collect::<Result<Vec<_>, Refusal>>()?;
        let sources = ids(self.sources.iter().map(String::as_str))?;
        match policy {
            Policy::Custom => Ok(Redistribution::Custom { targets, sources }),
            Policy::Equal if targets.is_empty() && sources.is_empty() => Ok(Redistribution::Equal),
            Policy::Equal => {
                Err(Refusal::malformed("With the policy 'equal' no partitions are named."))
            }
        }
    }
}

fn ids<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Vec<RangeId>, Refusal> {
    texts.map(|text| layout::range(text.trim())).collect()
}

async fn describe(
    service: &Service,
    container: &str,
    ranges: Option<&[RangeId]>,
) -> Result<Value, Refusal> {
    let info =
        service.operator(Principal::Account).throughput(&layout::link(container)?, ranges).await?;
    let ThroughputInfo { throughput, minimum, pending, custom, enforced, buckets, ranges } = info;
    let bucket = |bucket: &ThroughputBucket| json!({ "id": bucket.id, "maxThroughputPercentage": bucket.percent_max });
    let range = |(id, rate): &(RangeId, f64)| json!({ "id": id.to_string(), "throughput": rate });
    Ok(json!({
        "container": container,
        "throughput": throughput.rate(),
        "autoscale": matches!(throughput, Throughput::Autoscale { .. }),
        "minimumThroughput": minimum,
        "policy": if custom { "custom" } else { "equal" },
        "pending": pending,
        "enforced": enforced,
        "buckets": buckets.iter().map(bucket).collect::<Vec<_>>(),
        "partitions": ranges.iter().map(range).collect::<Vec<_>>(),
    }))
}
