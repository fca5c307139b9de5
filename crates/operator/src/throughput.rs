//! Throughput: `/_orrery/throughput`.
//!
//! A GET shows how a container's throughput is divided between its physical partitions, a
//! POST redistributes it or sets its throughput buckets.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use service::{
    Operator, PartitionId, Redistribution, Throughput, ThroughputBucket, ThroughputInfo,
};

use crate::error::OperatorError;
use crate::request::{container, link, parameter, parse, range, ranges};

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

/// How the throughput of the container in the query is divided.
pub(crate) async fn show(operator: Operator<'_>, query: &str) -> Result<Value, OperatorError> {
    let named = parameter(query, "ranges");
    let ids = named.as_deref().map(|named| ranges(named.split(','))).transpose()?;
    describe(&operator, &container(query)?, ids.as_deref()).await
}

/// Does what the body says, and shows the result.
pub(crate) async fn redistribute(
    operator: Operator<'_>,
    body: &Bytes,
) -> Result<Value, OperatorError> {
    let wanted: Wanted = parse(body, EXAMPLE)?;
    let container = link(&wanted.container)?;
    if let Some(buckets) = &wanted.buckets {
        let bucket = |bucket: &Bucket| ThroughputBucket {
            id: bucket.id,
            percent_max: bucket.max_throughput_percentage,
        };
        let buckets = buckets.iter().map(bucket).collect();
        operator.set_throughput_buckets(&container, buckets).await?;
    }
    match (wanted.policy, &wanted.buckets) {
        (Some(policy), _) => operator.redistribute(&container, &wanted.plan(policy)?).await?,
        (None, Some(_)) => {}
        (None, None) => {
            return Err(OperatorError::malformed(format!("Nothing is to be done. Try {EXAMPLE}")));
        }
    }
    describe(&operator, &wanted.container, None).await
}

impl Wanted {
    fn plan(&self, policy: Policy) -> Result<Redistribution, OperatorError> {
        let targets = self.targets.iter().map(|(id, rate)| Ok((range(id)?, *rate)));
        let targets = targets.collect::<Result<Vec<_>, OperatorError>>()?;
        let sources = ranges(self.sources.iter().map(String::as_str))?;
        match policy {
            Policy::Custom => Ok(Redistribution::Custom { targets, sources }),
            Policy::Equal if targets.is_empty() && sources.is_empty() => Ok(Redistribution::Equal),
            Policy::Equal => {
                Err(OperatorError::malformed("With the policy 'equal' no partitions are named."))
            }
        }
    }
}

async fn describe(
    operator: &Operator<'_>,
    container: &str,
    ranges: Option<&[PartitionId]>,
) -> Result<Value, OperatorError> {
    let info = operator.throughput(&link(container)?, ranges).await?;
    let ThroughputInfo { throughput, minimum, pending, custom, enforced, buckets, ranges } = info;
    let bucket = |bucket: &ThroughputBucket| json!({ "id": bucket.id, "maxThroughputPercentage": bucket.percent_max });
    let range =
        |(id, rate): &(PartitionId, f64)| json!({ "id": id.to_string(), "throughput": rate });
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
