//! Queries on items: from a text or a tree to a page of rows.

use std::sync::Arc;
use std::time::Duration;

use cluster::{
    Caller, ClusterError, FunctionTimes, OwnerSnapshot, PageBounds, PageQuery, PartitionId, Permit,
    Point, QueryFailure, QueryPage, QueryTimes, Turn,
};
use model::charge::Work;
use model::epk::{Epk, EpkRange};
use model::json::Value;
use model::position::Timestamp;
use query::syntax::Select;
use query::{
    Advice, Bound, Context, Features, KeyRanges, KeyShape, Parameters, Path, PathStep, Plan, Query,
    QueryError, QueryLimits, StepMeter, UserFunctions,
};

use crate::error::ServiceError;
use crate::identity::roles::DataAction;
use crate::items::{check_session, named, scope_prefix};
use crate::pipeline::admission::AdmissionGuard;
use crate::pipeline::limits::PAGE_ITEMS_MAX;
use crate::pipeline::meta::ResponseMeta;
use crate::pipeline::resolve::ResolvedContainer;
use crate::request::{ItemQuery, PlanQuery, QuerySource, ResumeFilter, Scope};
use crate::response::{QueryPlan, QueryRows};
use crate::scripts::functions::{ContainerFunctions, mentions_functions};
use crate::service::Service;
use crate::verb::{ContainerVerb, ItemFacts, Reach};

/// Where a query looks.
struct QueryTarget {
    /// In order and disjoint.
    within: Vec<EpkRange>,
    /// The position of the logical partition, if it is only one.
    key: Option<Epk>,
}

/// How a query could be written to cost less. Nothing for a query that is wrong, or so deep
/// that only query threads have the stack for it.
#[must_use]
pub fn advice_on(text: &str) -> Vec<Advice> {
    Query::parse(text).map(|query| query.advice()).unwrap_or_default()
}

impl QuerySource {
    fn parse(&self) -> Result<Query, ServiceError> {
        let limits = QueryLimits::service();
        let parsed = match self {
            QuerySource::Text(text) => Query::parse_within(text, limits),
            QuerySource::Tree(select) => Query::from_tree(Select::clone(select), limits),
        };
        parsed.map_err(|error| refused(&error, self.text()))
    }

    /// What errors refer to. A tree has no text before it is known to be valid.
    fn text(&self) -> &str {
        match self {
            QuerySource::Text(text) => text,
            QuerySource::Tree(_) => "",
        }
    }
}

impl ContainerVerb for ItemQuery {
    type Reply = QueryRows;

    fn facts(&self) -> ItemFacts<'_> {
        let reach = Reach::of(self.scope.key.as_ref());
        let names_partitions = self.scope.range.is_some();
        let facts = ItemFacts { names_partitions, ..ItemFacts::reading(reach) };
        facts.allowed_by(DataAction::ExecuteQuery)
    }

    async fn perform(
        self,
        service: &Service,
        container: &ResolvedContainer,
        meta: &mut ResponseMeta,
    ) -> Result<QueryRows, ServiceError> {
        service.query_items(container, self, meta).await
    }
}

impl ContainerVerb for PlanQuery {
    type Reply = QueryPlan;

    fn facts(&self) -> ItemFacts<'_> {
        ItemFacts::reading(Reach::Nothing).allowed_by(DataAction::ExecuteQuery)
    }

    async fn perform(
        self,
        service: &Service,
        container: &ResolvedContainer,
        meta: &mut ResponseMeta,
    ) -> Result<QueryPlan, ServiceError> {
        service.plan_query(container, self, meta).await
    }
}

impl Service {
    /// Answers one page of a query. Everything from parsing on runs on a query thread: even
    /// a short query can take long to bind.
    pub(crate) async fn query_items(
        &self,
        entry: &ResolvedContainer,
        query: ItemQuery,
        meta: &mut ResponseMeta,
    ) -> Result<QueryRows, ServiceError> {
        let (now, bounds) = (self.now(), self.page_bounds(query.items_max));
        let functions = self.functions_of(entry, &query.source)?;
        let compiler = self.compiler(entry).calling(functions.clone());
        let (covered, caller) = (self.scope_range(entry, &query.scope)?, meta.caller);
        let session = query.session.clone();
        let done = self.cluster.take_turns(move |turn| {
            let meter = query.is_timed.then(|| turn.function_times());
            let compiler = compiler.watched(turn, meter.clone());
            let Prepared { page, key, start, mut times } =
                compiler.prepare(query, &covered, bounds, turn)?;
            let container = &compiler.entry.container;
            let admitted = compiler.entry.route(&start).and_then(|owner| owner.admit(caller));
            let permit = admitted.map_err(Unanswered::NotLetIn)?;
            let (text, page) = page;
            let page = turn.answer(container, now, page);
            let page = page.map_err(|failure| failed(&compiler.entry, failure, &text));
            if let Some(meter) = meter {
                (times.system_functions, times.user_functions) = (meter.system(), meter.user());
            }
            Ok::<_, Unanswered>(Answered { page, permit, key, times })
        });
        let answered = done.await.map_err(|error| named(entry, error))?;
        let answered = answered.map_err(|unanswered| unanswered.noted(meta))?;
        let guard = AdmissionGuard::admitted(answered.permit, meta);
        if let Some(functions) = functions {
            meta.worked(&functions.work());
        }
        let QueryPage { rows, rest, served, mut report } = answered.page?;
        let mut guard = Some(guard);
        for part in served {
            let (range, work) = (part.range, Work::Query(part.value));
            meta.saw(range, part.lsn);
            meta.worked(&work);
            match guard.take() {
                Some(guard) => guard.pay(answered.key.as_ref(), meta),
                None => bill(entry, range, meta.caller, &work),
            }
            check_session(entry, session.as_ref(), meta)?;
        }
        if let Some(guard) = guard {
            // No partition was involved.
            meta.worked(&Work::Probe);
            guard.pay(None, meta);
        }
        report.times = whole(answered.times, report.times);
        let (owner_rid, report) = (entry.rid.to_string(), Box::new(report));
        Ok(QueryRows { owner_rid, rows, rest, report })
    }

    /// The functions that a query may call, if it calls any.
    fn functions_of(
        &self,
        entry: &ResolvedContainer,
        source: &QuerySource,
    ) -> Result<Option<Arc<ContainerFunctions>>, ServiceError> {
        let calls = match source {
            QuerySource::Text(text) => mentions_functions(text),
            QuerySource::Tree(_) => true,
        };
        calls.then(|| self.functions(entry)).transpose()
    }

    pub(crate) fn page_bounds(&self, items_max: usize) -> PageBounds {
        PageBounds {
            rows: items_max.clamp(1, PAGE_ITEMS_MAX),
            bytes: usize::try_from(self.limits.response_bytes_max).unwrap_or(usize::MAX),
            time: Duration::from_millis(self.limits.operation_ms_max),
            scanned: self.limits.query_page_items_max,
        }
    }

    /// The plan by which a client runs a query on each partition itself.
    pub(crate) async fn plan_query(
        &self,
        entry: &ResolvedContainer,
        PlanQuery { text, parameters, features }: PlanQuery,
        meta: &mut ResponseMeta,
    ) -> Result<QueryPlan, ServiceError> {
        meta.worked(&Work::Probe);
        let compiler = self.compiler(entry);
        let plan = self.cluster.take_turns(move |turn| {
            compiler.watched(turn, None).client_plan(&text, &parameters, &features)
        });
        plan.await.map_err(|error| named(entry, error))?
    }

    /// The context of a query: the time and its container.
    pub(crate) fn compiler(&self, entry: &ResolvedContainer) -> Compiler {
        let spec = entry.layout.spec();
        let context = Context {
            now_ticks: self.runtime.clock.now_ticks(),
            seed: self.runtime.random.next_u64(),
            spatial: spec.definition.geospatial(),
            computed: spec.definition.computed_properties().properties().to_vec(),
            functions: None,
            watch: None,
            meter: None,
        };
        Compiler { entry: entry.clone(), context: Arc::new(context) }
    }
}

impl Service {
    /// Has queries reach partitions through serialised bytes. For tests.
    pub fn query_through_bytes(&self) {
        self.cluster.query_through_bytes();
    }
}

/// A query that is ready to run.
struct Prepared {
    /// The text, for errors, and what to run.
    page: (String, PageQuery),
    /// The logical partition, if it is only one.
    key: Option<Epk>,
    /// The position whose partition admits it.
    start: Epk,
    /// How long that took.
    times: QueryTimes,
}

/// The result of an admitted query.
struct Answered {
    page: Result<QueryPage, ServiceError>,
    permit: Permit,
    key: Option<Epk>,
    /// Where time went besides the page.
    times: QueryTimes,
}

/// Why a query was not begun.
enum Unanswered {
    /// Its text cannot be run.
    Text(ServiceError),
    /// It cannot be asked like this.
    Refused(ServiceError),
    NotLetIn(ClusterError),
}

impl From<ServiceError> for Unanswered {
    fn from(error: ServiceError) -> Unanswered {
        Unanswered::Refused(error)
    }
}

impl Unanswered {
    fn reason(self) -> ServiceError {
        match self {
            Unanswered::Text(error) | Unanswered::Refused(error) => error,
            Unanswered::NotLetIn(error) => error.into(),
        }
    }

    /// The error, after its charge was recorded.
    fn noted(self, meta: &mut ResponseMeta) -> ServiceError {
        match self {
            Unanswered::Text(error) => {
                meta.worked(&crate::pipeline::account::refused(&error, Work::Probe));
                error
            }
            Unanswered::Refused(error) => error,
            Unanswered::NotLetIn(error) => AdmissionGuard::refused(error, meta).into(),
        }
    }
}

/// Compiles queries on a container.
#[derive(Clone)]
pub(crate) struct Compiler {
    entry: ResolvedContainer,
    context: Arc<Context>,
}

impl Compiler {
    /// The same for queries that may call these functions.
    pub(crate) fn calling(self, functions: Option<Arc<ContainerFunctions>>) -> Compiler {
        let Some(functions) = functions else { return self };
        let functions = Some(functions as Arc<dyn UserFunctions>);
        let context = Context { functions, ..(*self.context).clone() };
        Compiler { context: Arc::new(context), ..self }
    }

    /// The same, on a thread that is shared in time slices.
    fn watched(&self, turn: &Arc<Turn>, meter: Option<Arc<FunctionTimes>>) -> Compiler {
        let meter = meter.map(|meter| meter as Arc<dyn StepMeter>);
        let context = Context { watch: Some(turn.watch()), meter, ..(*self.context).clone() };
        Compiler { entry: self.entry.clone(), context: Arc::new(context) }
    }

    /// Answers a page of a query on one logical partition, on a snapshot of it.
    pub(crate) fn answer_on(
        &self,
        snapshot: &OwnerSnapshot,
        (now, bounds): (Timestamp, PageBounds),
        query: ItemQuery,
        turn: &Arc<Turn>,
    ) -> Result<QueryPage, ServiceError> {
        let watched = self.watched(turn, None);
        let covered = query.scope.within.clone();
        let Prepared { page: (text, page), .. } =
            watched.prepare(query, &covered, bounds, turn).map_err(Unanswered::reason)?;
        let page = turn.answer_on(snapshot, now, page);
        page.map_err(|failure| failed(&self.entry, failure, &text))
    }

    fn prepare(
        &self,
        query: ItemQuery,
        covered: &EpkRange,
        bounds: PageBounds,
        turn: &Turn,
    ) -> Result<Prepared, Unanswered> {
        let mut times = QueryTimes::default();
        let begun = turn.elapsed();
        let parsed = query.source.parse().map_err(Unanswered::Text)?;
        let text = parsed.text().to_owned();
        let wrong = |error: QueryError| Unanswered::Text(refused(&error, &text));
        times.parsing = turn.elapsed().saturating_sub(begun);
        let begun = turn.elapsed();
        let bound = self.bind(&parsed, &query.parameters).map_err(wrong)?;
        times.binding = turn.elapsed().saturating_sub(begun);
        let begun = turn.elapsed();
        let target = self.target(&query, &bound, covered)?;
        self.check_merge(&query, &text, &bound)?;
        let bound = if makes_rows_elsewhere(&bound, &query.scope, &target.within) {
            bound.over_no_rows()
        } else {
            bound
        };
        let resume =
            query.resume.as_ref().map(|filter| resume_point(filter, &bound)).transpose()?;
        times.aiming = turn.elapsed().saturating_sub(begun);
        let start = query.after.as_ref().and_then(|after| after.position());
        let start = start.filter(|start| EpkRange::full().contains(start));
        let start = start.or(target.within.first().map(|first| &first.min)).cloned();
        let page = PageQuery {
            fingerprint: fingerprint(&self.entry, (&text, &query.parameters), &bound),
            bound: Arc::new(bound),
            scope: covered.clone(),
            within: target.within,
            prefix: scope_prefix(&self.entry, &query.scope).map(Arc::new),
            after: query.after,
            resume,
            bounds,
            approach: query.approach,
            is_timed: query.is_timed,
            system: query.system,
            names_indexes: query.names_indexes,
        };
        let (page, start) = ((text, page), start.unwrap_or(Epk::MIN));
        Ok(Prepared { page, key: target.key, start, times })
    }

    fn client_plan(
        &self,
        text: &str,
        parameters: &Value,
        features: &Features,
    ) -> Result<QueryPlan, ServiceError> {
        let definition = self.entry.key_definition();
        let plan = || -> Result<_, QueryError> {
            let parameters = parse_parameters(parameters)?;
            let shape = KeyShape::from(definition);
            let query = Query::parse_within(text, QueryLimits::service())?;
            query.plan(&parameters, &self.context, &shape, features)
        };
        let Plan { info, ranges } = plan().map_err(|error| refused(&error, text))?;
        Ok(QueryPlan { info, ranges: ranges.on_ring(definition) })
    }

    /// Refuses what the service's gateway leaves to its clients, and returns the plan for
    /// it. Neither the number of partitions nor a filter on the key matters there: whether
    /// a program works must not depend on how much data it has.
    fn check_merge(
        &self,
        query: &ItemQuery,
        text: &str,
        bound: &Bound,
    ) -> Result<(), ServiceError> {
        let is_partitioned = !self.entry.key_definition().paths().is_empty();
        let is_across = query.across_partitions && is_partitioned && !is_routed(&query.scope);
        if query.merges || !is_across || !needs_merge(bound) {
            return Ok(());
        }
        let plan = self.client_plan(text, &query.parameters, &Features::all())?;
        Err(ServiceError::NeedsMerge { plan: Box::new(plan) })
    }

    fn bind(&self, query: &Query, parameters: &Value) -> Result<Bound, QueryError> {
        query.bind_in(&parse_parameters(parameters)?, &self.context)
    }

    /// The intersection of what the client says about partitions and what the filter says
    /// about keys.
    fn target(
        &self,
        query: &ItemQuery,
        bound: &Bound,
        covered: &EpkRange,
    ) -> Result<QueryTarget, ServiceError> {
        let scope = &query.scope;
        let definition = self.entry.key_definition();
        let keys = bound.key_ranges(&KeyShape::from(definition));
        let within = match &keys {
            KeyRanges::Nothing if bound.reads_documents() => Vec::new(),
            KeyRanges::Nothing | KeyRanges::Everything => vec![covered.clone()],
            KeyRanges::Some(_) => {
                let ranges = keys.positions(definition).into_iter();
                ranges.filter_map(|range| range.intersect(covered)).collect()
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
        Ok(QueryTarget { within, key: one_key })
    }
}

/// Charges a partition for its part of a page that another one admitted.
fn bill(entry: &ResolvedContainer, range: PartitionId, caller: Caller, work: &Work) {
    // It may have been replaced: then there is no budget left to charge.
    if let Ok(partition) = entry.layout_of(range).partition(range) {
        partition.bill(caller, crate::pipeline::account::charge(work));
    }
}

/// A query that was stopped has not failed: its client has gone, or the server is stopping.
pub(crate) fn refused(error: &QueryError, text: &str) -> ServiceError {
    if *error == QueryError::Stopped {
        return ServiceError::Stopping;
    }
    if *error == QueryError::OutOfMemory {
        return ServiceError::OutOfMemory;
    }
    ServiceError::query(error, text)
}

/// Whether the concatenated rows of several partitions are not yet the answer.
fn needs_merge(bound: &Bound) -> bool {
    const NO_WINDOW: (usize, usize) = (0, usize::MAX);
    let puts_together = !bound.order().is_empty()
        || bound.is_distinct()
        || bound.is_aggregated()
        || bound.window() != NO_WINDOW;
    puts_together && bound.reads_documents()
}

/// Whether the client routes.
fn is_routed(scope: &Scope) -> bool {
    scope.key.is_some() || scope.range.is_some() || scope.within != EpkRange::full()
}

/// Whether rows that depend on no item are left to another partition: all would return the
/// same, so the first one does. A client that names a key asks only once.
fn makes_rows_elsewhere(bound: &Bound, scope: &Scope, within: &[EpkRange]) -> bool {
    let has_first = || within.iter().any(|range| range.contains(&Epk::MIN));
    bound.makes_rows_of_nothing() && scope.key.is_none() && !has_first()
}

pub(crate) fn parse_parameters(parameters: &Value) -> Result<Parameters, QueryError> {
    if parameters.is_null() { Ok(Parameters::none()) } else { Parameters::from_list(parameters) }
}

/// The times of a page, and of what was done for it before.
fn whole(before: QueryTimes, page: QueryTimes) -> QueryTimes {
    let QueryTimes { parsing, binding, aiming, system_functions, user_functions, .. } = before;
    QueryTimes { parsing, binding, aiming, system_functions, user_functions, ..page }
}

/// The point in a query's order that a client names.
fn resume_point(filter: &ResumeFilter, bound: &Bound) -> Result<Point, ServiceError> {
    let order = bound.order();
    if order.is_empty() || bound.is_aggregated() || filter.keys.len() != order.len() {
        let text = "The resume filter does not have one value for each ORDER BY item.";
        return Err(ServiceError::invalid(text));
    }
    let descends = order.iter().map(|key| key.descending);
    let keys: Vec<_> = filter.keys.iter().cloned().zip(descends).collect();
    Ok(Point::of_keys(&keys, filter.item, filter.exclude))
}

/// What cursors of a query are bound to. A point in an order means the same whatever the
/// filter: clients narrow it when they resume. Everything else is a position on an access
/// path that depends on the whole text.
fn fingerprint(
    entry: &ResolvedContainer,
    (text, parameters): (&str, &Value),
    bound: &Bound,
) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(entry.rid.to_string().as_bytes());
    let Some(order) = lasting_order(bound) else {
        hasher.update(text.as_bytes());
        hasher.update(parameters.to_string().as_bytes());
        return hasher.finalize();
    };
    hasher.update(&[u8::from(bound.is_distinct()) | u8::from(bound.is_aggregated()) << 1]);
    for (path, descending) in order {
        for step in path.steps() {
            match step {
                PathStep::Name(name) => hasher.update(&[name.as_bytes(), &[0xFF]].concat()),
                PathStep::Index(index) => hasher.update(&index.to_be_bytes()),
                PathStep::Each => hasher.update(&[0xFE]),
            }
        }
        hasher.update(&[u8::from(descending)]);
    }
    hasher.finalize()
}

/// The order that a query asks for, of rows or of groups, if it is by paths of items.
fn lasting_order(bound: &Bound) -> Option<Vec<(Path, bool)>> {
    if bound.orders_groups() {
        let values = bound.value_order()?.into_iter();
        return values.map(|key| Some((key.path?, key.descending))).collect();
    }
    let order = bound.order().into_iter().map(|key| (key.path.clone(), key.descending));
    Some(order.collect()).filter(|order: &Vec<_>| !order.is_empty() && !bound.is_aggregated())
}

pub(super) fn failed(entry: &ResolvedContainer, failure: QueryFailure, text: &str) -> ServiceError {
    match failure {
        QueryFailure::Query(error) => refused(&error, text),
        QueryFailure::Order(error) => ServiceError::query_refused(&error.to_string()),
        QueryFailure::Cursor(_) => ServiceError::bad_continuation(),
        QueryFailure::TimedOut => ServiceError::TimedOut,
        QueryFailure::Cluster(error) => named(entry, error),
    }
}
