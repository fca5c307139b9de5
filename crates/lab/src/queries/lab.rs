//! A service with one container, queried by every access path and approach.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::json::{self, Object, Value};
use model::limits::Limits;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use runtime::{Runtime, SimulatedClock};
use service::{
    Approach, Conditions, ContainerVerb, Cursor, Features, Feed, Halve, InContainer, ItemAction,
    ItemOperation, ItemQuery, Kind, Link, ListItems, PartitionId, PlanQuery, Principal, QueryPlan,
    QueryReport, QueryRows, RangeInfo, ReadRanges, Request, ResourceAction, Response, ResumeFilter,
    Scope, Service, ServiceError, ThroughputRules, Verb,
};
use storage::local::{self, LocalConfig};
use storage::{Store, memory};

use super::rows;
use crate::system_properties;
use testkit::wait::block_on;

/// Items of the largest pages.
pub const PAGE_ALL: usize = 1_000;

/// Pages after which a query counts as endless.
const PAGES_MAX: usize = 10_000;

/// Bytes of a cursor, so that it is at most a kilobyte in base 64.
const CURSOR_BYTES_MAX: usize = 768;

/// A service with one container.
#[derive(Debug)]
pub struct Lab {
    service: Option<Service>,
    clock: Arc<SimulatedClock>,
    runtime: Runtime,
    limits: Limits,
    folder: Option<PathBuf>,
    /// Whether partitions are reached through serialised bytes.
    through_bytes: bool,
}

/// A query with its arguments.
#[derive(Clone, Debug)]
pub struct Ask {
    pub text: String,
    /// The client's list of names and values; null for none.
    pub parameters: Value,
    pub scope: Scope,
    /// Where in its order a client resumes it.
    pub resume: Option<ResumeFilter>,
}

impl Ask {
    pub fn new(text: impl Into<String>) -> Ask {
        Ask { text: text.into(), parameters: Value::Null, scope: Scope::default(), resume: None }
    }
}

/// How many partitions were asked, and how many there are.
pub type PartitionsAsked = (usize, usize);

/// All rows of a query.
#[derive(Clone, Debug)]
pub struct Answer {
    pub rows: Vec<Value>,
    pub pages: usize,
    /// Of the first page.
    pub report: QueryReport,
    pub asked: PartitionsAsked,
}

impl Lab {
    #[must_use]
    pub fn memory() -> Lab {
        Lab::open(memory::create(), None, Limits::default())
    }

    /// One whose pages end after `items_max` items, whether they give rows or not.
    #[must_use]
    pub fn of_short_pages(items_max: u64) -> Lab {
        let limits = Limits { query_page_items_max: items_max, ..Limits::default() };
        Lab::open(memory::create(), None, limits)
    }

    /// One that keeps its data in an empty folder.
    #[must_use]
    pub fn local(folder: &Path) -> Lab {
        let store = local::create(folder, LocalConfig::default(), &Runtime::real());
        Lab::open(store.expect("an empty folder"), Some(folder.to_owned()), Limits::default())
    }

    fn open(store: Arc<dyn Store>, folder: Option<PathBuf>, limits: Limits) -> Lab {
        let clock = Arc::new(SimulatedClock::new());
        let runtime = Runtime::simulated_at(Arc::clone(&clock), 1);
        let service = Some(serve(store, &runtime, limits.clone()));
        Lab { service, clock, runtime, limits, folder, through_bytes: false }
    }

    /// The same, with everything that queries ask of partitions and get from them
    /// serialised and parsed again.
    #[must_use]
    pub fn through_bytes(mut self) -> Lab {
        self.through_bytes = true;
        self.service().query_through_bytes();
        self
    }

    /// Closes the service and opens it again, with the data that are on disk.
    pub fn reopen(&mut self) {
        let service = self.service.take().expect("a service");
        let mut store = Arc::clone(service.store());
        drop(service);
        if let Some(folder) = &self.folder {
            store.close().expect("the store closes");
            drop(store);
            let opened = local::open(folder, LocalConfig::default(), &Runtime::real());
            store = opened.expect("the store opens again");
        }
        self.service = Some(serve(store, &self.runtime, self.limits.clone()));
        if self.through_bytes {
            self.service().query_through_bytes();
        }
    }

    /// Creates the container, on one partition.
    pub fn create_container(&self, definition: &Object) -> Result<(), ServiceError> {
        let mut definition = definition.clone();
        definition.insert("id", "c");
        let database = Object::from_iter([("id", "d")]);
        self.create(Link::default(), Kind::Database, database)?;
        self.create(Link::parse("dbs/d").expect("a link"), Kind::Container, definition)
    }

    /// Stores a user-defined function.
    pub fn create_function(&self, name: &str, text: &str) -> Result<(), ServiceError> {
        let body = Object::from_iter([("id", name), ("body", text)]);
        self.create(container(), Kind::UserDefinedFunction, body)
    }

    /// Replaces the container's definition, and with it perhaps its indexing policy.
    pub fn replace_container(&self, definition: &Object) -> Result<(), ServiceError> {
        let mut definition = definition.clone();
        definition.insert("id", "c");
        let (link, body, conditions) = (container(), definition.into(), Conditions::default());
        self.execute(ResourceAction::Replace { link, body, conditions }).map(|_| ())
    }

    /// Indexes all items by the policy in force.
    pub fn reindex(&self) {
        block_on(self.service().maintenance().reindex()).expect("items can be indexed");
    }

    fn create(&self, parent: Link, kind: Kind, body: Object) -> Result<(), ServiceError> {
        let (body, throughput) = (body.into(), None);
        let action = ResourceAction::Create { parent, kind, body, throughput, offer_type: None };
        self.execute(action).map(|_| ())
    }

    pub fn put(&self, item: &str) -> Result<(), ServiceError> {
        let upsert = ItemOperation::Upsert { body: item.to_owned().into(), if_match: None };
        self.within(ItemAction::new(None, upsert)).map(|_| ())
    }

    pub fn remove(&self, id: &str, key: PartitionKey) -> Result<(), ServiceError> {
        let delete = ItemOperation::Delete { id: ItemId::parse(id)?, if_match: None };
        self.within(ItemAction::new(Some(key), delete)).map(|_| ())
    }

    /// Splits partitions, the first ones first, until there are `partitions`.
    pub fn divide(&self, partitions: usize) {
        loop {
            let ranges = self.ranges();
            if ranges.len() >= partitions {
                return;
            }
            let oldest = ranges.iter().map(|range| range.id).min().expect("a range");
            self.split(oldest).expect("hashes can be halved a few times");
        }
    }

    /// Splits a partition, unless it has too few hashes left.
    pub fn split(&self, range: service::PartitionId) -> Result<(), ServiceError> {
        let container = container();
        block_on(self.service().operator(Principal::Account).split(
            &container,
            range,
            Halve::Hashes,
        ))
        .map(|_| ())
    }

    /// Merges the first two partitions.
    pub fn merge(&self) {
        let ids: Vec<_> = self.ranges().iter().map(|range| range.id).take(2).collect();
        block_on(self.service().operator(Principal::Account).merge(&container(), &ids))
            .expect("neighbours can be merged");
    }

    pub fn advance(&self, duration: Duration) {
        self.clock.advance(duration);
    }

    /// Lets this much time pass between two looks at the clock.
    pub fn slow_down(&self, per_look: Duration) {
        self.clock.slow_down(per_look);
    }

    #[must_use]
    pub fn ranges(&self) -> Vec<RangeInfo> {
        self.within(ReadRanges).expect("ranges can be read").reply.ranges
    }

    /// All items, by listing them.
    #[must_use]
    pub fn items(&self) -> Vec<String> {
        let (mut items, mut after) = (Vec::new(), None);
        loop {
            let (scope, session, items_max) = (Scope::default(), None, PAGE_ALL);
            let system = Some(system_properties());
            let list = ListItems { scope, session, after, items_max, system };
            let Feed { bodies, rest, .. } = self.within(list).expect("a list").reply;
            items.extend(bodies.iter().map(|body| String::from_utf8_lossy(body).into_owned()));
            let Some(position) = rest else { return items };
            after = Some(position);
        }
    }

    /// One page. The cursor is given as bytes, as by a client.
    pub fn page(
        &self,
        ask: &Ask,
        approach: Approach,
        after: Option<&[u8]>,
        items_max: usize,
    ) -> Result<Page, ServiceError> {
        let after = after.map(|bytes| Cursor::from_bytes(bytes).expect("a cursor of ours"));
        let (rows, rest, report) = self.raw_page(ask, approach, after, items_max)?;
        assert!(rows.len() <= items_max, "more rows than asked for");
        let rest = rest.map(|rest| rest.to_bytes());
        let bytes = rest.as_ref().map_or(0, Vec::len);
        assert!(bytes <= CURSOR_BYTES_MAX, "a cursor of {bytes} bytes");
        Ok(Page { rows: rows::parsed(&rows), rest, report })
    }

    /// One page, unprocessed.
    pub fn raw_page(
        &self,
        ask: &Ask,
        approach: Approach,
        after: Option<Cursor>,
        items_max: usize,
    ) -> Result<(Vec<Bytes>, Option<Cursor>, QueryReport), ServiceError> {
        let query = ItemQuery {
            source: ask.text.as_str().into(),
            parameters: ask.parameters.clone(),
            scope: ask.scope.clone(),
            across_partitions: true,
            merges: true,
            session: None,
            after,
            resume: ask.resume.clone(),
            items_max,
            approach,
            system: Some(system_properties()),
            is_timed: false,
            names_indexes: true,
        };
        let QueryRows { rows, rest, report, .. } = self.within(query)?.reply;
        Ok((rows, rest, *report))
    }

    /// All rows, in pages of `rows_max`. `between` is called after each page.
    pub fn all(
        &self,
        ask: &Ask,
        approach: Approach,
        items_max: usize,
        mut between: impl FnMut(usize),
    ) -> Result<Answer, ServiceError> {
        let mut page = self.page(ask, approach, None, items_max)?;
        let partitions = self.ranges().len();
        let mut asked: BTreeSet<PartitionId> = page.report.partitions.iter().copied().collect();
        let mut answer = Answer { rows: page.rows, pages: 1, report: page.report, asked: (0, 0) };
        while let Some(rest) = page.rest {
            between(answer.pages);
            page = self.page(ask, approach, Some(&rest), items_max)?;
            answer.rows.append(&mut page.rows);
            asked.extend(page.report.partitions);
            answer.pages += 1;
            assert!(answer.pages < PAGES_MAX, "the pages of {} do not end", ask.text);
        }
        answer.asked = (asked.len(), partitions);
        Ok(answer)
    }

    /// The plan for clients with all features.
    pub fn plan(&self, ask: &Ask) -> Result<QueryPlan, ServiceError> {
        let (text, parameters) = (ask.text.clone(), ask.parameters.clone());
        let features = Features::all();
        Ok(self.within(PlanQuery { text, parameters, features })?.reply)
    }

    pub fn within<V: ContainerVerb>(&self, verb: V) -> Result<Response<V::Reply>, ServiceError> {
        self.execute(InContainer::new(container(), verb))
    }

    #[must_use]
    pub fn service(&self) -> &Service {
        self.service.as_ref().expect("it is taken only while it is reopened")
    }

    fn execute<V: Verb>(&self, verb: V) -> Result<Response<V::Reply>, ServiceError> {
        Ok(block_on(self.service().execute(Request::new(Principal::Account, verb)))?)
    }
}

/// One page of rows.
#[derive(Clone, Debug)]
pub struct Page {
    pub rows: Vec<Value>,
    pub rest: Option<Vec<u8>>,
    pub report: QueryReport,
}

fn serve(store: Arc<dyn Store>, runtime: &Runtime, limits: Limits) -> Service {
    let rules = ThroughputRules::UNLIMITED;
    Service::open_with(store, runtime.clone(), limits, rules).expect("the store can be served")
}

fn container() -> Link {
    Link::parse("dbs/d/colls/c").expect("a link")
}

/// A definition from text.
#[must_use]
pub fn definition(text: &str) -> Object {
    match json::parse(text.as_bytes()) {
        Ok(Value::Object(object)) => object,
        other => panic!("a definition is an object, not {other:?}"),
    }
}
