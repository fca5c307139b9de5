//! Queries on items: from a text to a page of rows.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use cluster::{PageBounds, PageQuery, QueryFailure, QueryPage};
use model::charge::Work;
use model::epk::{Epk, EpkRange};
use model::json::Value;
use model::partition_key::{KeyError, PartitionKey, PartitionKeyDefinition};
use model::position::Ordinal;
use query::{Advice, Bound, Context, Features, KeyRanges, KeyShape, Parameters, Query, QueryError};

use crate::admit::PAGE_ITEMS_MAX;
use crate::catalogue::ContainerEntry;
use crate::error::ServiceError;
use crate::items::{check_session, named};
use crate::receipt::Receipt;
use crate::request::{ItemQuery, Scope};
use crate::response::Reply;
use crate::service::Service;
use crate::visit::Visit;

/// Ticks of the language's clock in a millisecond.
const TICKS_PER_MILLI: i64 = 10_000;

const EVERY_ORDINAL: Range<u64> = 0..u64::MAX;

/// Where a query looks.
struct Aim {
    /// In order and apart from each other.
    within: Vec<EpkRange>,
    /// The ordinals that items there can have.
    ordinals: Range<u64>,
    /// The logical partition, if it is only one.
    key: Option<Epk>,
}

/// How a query could be written to cost less. Nothing is said about one that is wrong.
#[must_use]
pub fn advice_on(text: &str) -> Vec<Advice> {
    Query::parse(text).map(|query| query.advice()).unwrap_or_default()
}

impl Service {
    /// Answers one page of a query.
    pub(crate) async fn query_items(
        &self,
        entry: &ContainerEntry,
        query: ItemQuery,
        receipt: &mut Receipt,
    ) -> Result<Reply, ServiceError> {
        let began = self.runtime.clock.monotonic();
        let refused = |error: &QueryError| ServiceError::query(error, &query.text);
        let bound = self.bind(entry, &query.text, &query.parameters);
        let bound = receipt.paid_if_refused(bound.map_err(|e| refused(&e)), Work::Probe)?;
        let aim = self.aim(entry, &query, &bound)?;
        self.check_merge(entry, &query, &bound)?;
        let compiling = self.runtime.clock.monotonic().saturating_sub(began);
        let start = query.after.as_ref().and_then(|after| after.position());
        let start = start.filter(|start| EpkRange::full().contains(start));
        let start = start.or(aim.within.first().map(|first| &first.min)).cloned();
        let visit = Visit::begin(entry, &start.unwrap_or(Epk::MIN), receipt)?;
        let page = PageQuery {
            bound: Arc::new(bound),
            fingerprint: fingerprint(&query),
            within: aim.within,
            ordinals: aim.ordinals,
            after: query.after,
            bounds: self.page_bounds(query.items_max),
            approach: query.approach,
        };
        let page = self.cluster.query(&entry.container, page).await;
        let page = page.map_err(|failure| failed(entry, failure, &query.text));
        let QueryPage { rows, rest, served, mut report } = page?;
        let mut visit = Some(visit);
        for part in served {
            let (range, work) = (part.range, Work::Query(part.value));
            receipt.saw(range, part.lsn);
            receipt.worked(&work);
            match visit.take() {
                Some(visit) => visit.end(aim.key.as_ref(), receipt),
                None => entry.container.bill(range, receipt.payer, crate::account::charge(&work)),
            }
            check_session(entry, query.session.as_ref(), receipt)?;
        }
        if let Some(visit) = visit {
            // No partition had anything to do with it.
            receipt.worked(&Work::Probe);
            visit.end(None, receipt);
        }
        report.times.compiling = compiling;
        let (owner_rid, report) = (entry.rid.to_string(), Box::new(report));
        Ok(Reply::Rows { owner_rid, rows, rest, report })
    }

    fn page_bounds(&self, items_max: usize) -> PageBounds {
        PageBounds {
            rows: items_max.clamp(1, PAGE_ITEMS_MAX),
            bytes: usize::try_from(self.limits.response_bytes_max).unwrap_or(usize::MAX),
            time: Duration::from_millis(self.limits.operation_ms_max),
            met: self.limits.query_page_items_max,
        }
    }

    /// Says how a client runs a query on each partition by itself.
    pub(crate) fn plan_query(
        &self,
        entry: &ContainerEntry,
        (text, parameters): (&str, &Value),
        features: &Features,
        receipt: &mut Receipt,
    ) -> Result<Reply, ServiceError> {
        receipt.worked(&Work::Probe);
        let plan = self.client_plan(entry, text, parameters, features)?;
        Ok(Reply::QueryPlan { plan })
    }

    fn client_plan(
        &self,
        entry: &ContainerEntry,
        text: &str,
        parameters: &Value,
        features: &Features,
    ) -> Result<Value, ServiceError> {
        let spec = entry.container.spec();
        let definition = spec.definition.partition_key();
        let plan = || -> Result<_, QueryError> {
            let (parameters, context) = (parse_parameters(parameters)?, self.context(entry));
            Query::parse(text)?.plan(&parameters, &context, &KeyShape::from(definition), features)
        };
        let plan = plan().map_err(|error| ServiceError::query(&error, text))?;
        Ok(plan.to_value(definition))
    }

    /// Refuses what the service leaves to its clients, and gives the plan for it:
    /// aggregates of everything, DISTINCT and ORDER BY. Neither the number of
    /// partitions nor a filter that names the key matters there.
    fn check_merge(
        &self,
        entry: &ContainerEntry,
        query: &ItemQuery,
        bound: &Bound,
    ) -> Result<(), ServiceError> {
        let is_across = query.across_partitions && !is_routed(&query.scope);
        let in_order = !bound.order().is_empty();
        let merges = in_order || bound.is_distinct() || !bound.aggregates().is_empty();
        if query.merges || !is_across || !merges {
            return Ok(());
        }
        let plan = self.client_plan(entry, &query.text, &query.parameters, &Features::all())?;
        Err(ServiceError::NeedsMerge { plan })
    }

    fn bind(
        &self,
        entry: &ContainerEntry,
        text: &str,
        parameters: &Value,
    ) -> Result<Bound, QueryError> {
        let parameters = parse_parameters(parameters)?;
        Query::parse(text)?.bind_in(&parameters, &self.context(entry))
    }

    /// What a query may know of the world and of its container.
    fn context(&self, entry: &ContainerEntry) -> Arc<Context> {
        let spec = entry.container.spec();
        let millis = self.runtime.clock.now().as_unix_ms();
        Arc::new(Context {
            now_ticks: i64::try_from(millis).unwrap_or(i64::MAX).saturating_mul(TICKS_PER_MILLI),
            seed: self.runtime.random.next_u64(),
            spatial: spec.definition.geospatial(),
            computed: spec.definition.computed_properties().properties().to_vec(),
            functions: None,
        })
    }

    /// What the client says about partitions and what the filter says about keys,
    /// together.
    fn aim(
        &self,
        entry: &ContainerEntry,
        query: &ItemQuery,
        bound: &Bound,
    ) -> Result<Aim, ServiceError> {
        let scope = &query.scope;
        let spec = entry.container.spec();
        let definition = spec.definition.partition_key();
        let covered = self.scope_range(entry, scope)?;
        let keys = bound.key_ranges(&KeyShape::from(definition));
        let within = match &keys {
            KeyRanges::Nothing if bound.reads_documents() => Vec::new(),
            KeyRanges::Nothing | KeyRanges::Everything => vec![covered],
            KeyRanges::Some(_) => {
                let ring = keys.on_ring(definition).into_iter().map(|range| {
                    if range.max_inclusive {
                        EpkRange::of(range.min)
                    } else {
                        EpkRange::new(range.min, range.max)
                    }
                });
                ring.filter_map(|range| range.intersect(&covered)).collect()
            }
        };
        let within: Vec<EpkRange> = within.into_iter().filter(|range| !range.is_empty()).collect();
        let one_key = match within.as_slice() {
            [range] => range.position().cloned(),
            _ => None,
        };
        let is_routed = is_routed(scope) || keys.is_one_key(definition.paths().len());
        if !is_routed && !query.across_partitions && !definition.paths().is_empty() {
            return Err(ServiceError::AcrossPartitions);
        }
        let ordinals = match scope.key.clone().or_else(|| one_of(&keys)) {
            Some(key) => ordinals_of(definition, &key).unwrap_or(EVERY_ORDINAL),
            None => EVERY_ORDINAL,
        };
        Ok(Aim { within, ordinals, key: one_key })
    }
}

/// Whether the client says where to look.
fn is_routed(scope: &Scope) -> bool {
    scope.key.is_some() || scope.range.is_some() || scope.within != EpkRange::full()
}

/// The key, or beginning of keys, that a filter is about, if it is one.
fn one_of(keys: &KeyRanges) -> Option<PartitionKey> {
    let KeyRanges::Some(ranges) = keys else { return None };
    let [range] = ranges.as_slice() else { return None };
    range.key()
}

fn ordinals_of(
    definition: &PartitionKeyDefinition,
    key: &PartitionKey,
) -> Result<Range<u64>, KeyError> {
    let (first, last) = definition.prefix_places(key)?;
    let bound = |place: u32| u64::from(place) << Ordinal::NUMBER_BITS;
    Ok(bound(first.get())..bound(last.get().saturating_add(1)))
}

pub(crate) fn parse_parameters(parameters: &Value) -> Result<Parameters, QueryError> {
    if parameters.is_null() { Ok(Parameters::none()) } else { Parameters::from_list(parameters) }
}

/// What the pages of a query have in common.
fn fingerprint(query: &ItemQuery) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(query.text.as_bytes());
    hasher.update(query.parameters.to_string().as_bytes());
    hasher.finalize()
}

fn failed(entry: &ContainerEntry, failure: QueryFailure, text: &str) -> ServiceError {
    match failure {
        QueryFailure::Query(error) => ServiceError::query(&error, text),
        QueryFailure::Order(error) => ServiceError::query_refused(&error.to_string()),
        QueryFailure::Cursor(_) => ServiceError::invalid("The continuation token is malformed."),
        QueryFailure::TimedOut => ServiceError::TimedOut,
        QueryFailure::Cluster(error) => named(entry, error),
    }
}
