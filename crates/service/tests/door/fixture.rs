//! A service in memory with one database, driven by short calls.

use std::sync::Arc;
use std::time::Duration;

use model::json;
use model::limits::Limits;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use runtime::{Runtime, SimulatedClock};
use service::{
    Batch, Caller, Conditions, ContainerVerb, Cursor, Feed, InContainer, ItemAction, ItemOperation,
    ItemResult, Kind, Link, ListItems, Principal, RangeInfo, ReadRanges, Request, ResourceAction,
    ResourceReply, Response, Scope, Service, ServiceError, Throughput, ThroughputRules, Verb,
};
use storage::{Store, memory};
use testkit::wait::block_on;

pub(crate) struct Fixture {
    pub(crate) service: Service,
    clock: Arc<SimulatedClock>,
}

impl Fixture {
    pub(crate) fn new() -> Fixture {
        Fixture::with_limits(Limits::default())
    }

    pub(crate) fn with_limits(limits: Limits) -> Fixture {
        Fixture::open(limits, ThroughputRules::UNLIMITED)
    }

    /// One that enforces these rules.
    pub(crate) fn throttled(rules: ThroughputRules) -> Fixture {
        Fixture::open(Limits::default(), rules)
    }

    fn open(limits: Limits, rules: ThroughputRules) -> Fixture {
        let fixture = Fixture::over(memory::create(), limits, rules);
        fixture.create("", Kind::Database, r#"{"id":"d"}"#).unwrap();
        fixture
    }

    /// Another service of the same data, with the limits of [`Fixture::new`].
    pub(crate) fn restarted(self) -> Fixture {
        let store = Arc::clone(self.service.store());
        drop(self);
        Fixture::over(store, Limits::default(), ThroughputRules::UNLIMITED)
    }

    /// One that serves what a store holds.
    pub(crate) fn over(store: Arc<dyn Store>, limits: Limits, rules: ThroughputRules) -> Fixture {
        let clock = Arc::new(SimulatedClock::new());
        let runtime = Runtime::simulated_at(Arc::clone(&clock), 1);
        let service = Service::open_with(store, runtime, limits, rules).unwrap();
        Fixture { service, clock }
    }

    pub(crate) fn create(
        &self,
        parent: &str,
        kind: Kind,
        body: &str,
    ) -> Result<Response<ResourceReply>, ServiceError> {
        self.create_with(parent, kind, body, None)
    }

    pub(crate) fn create_with(
        &self,
        parent: &str,
        kind: Kind,
        body: &str,
        throughput: Option<Throughput>,
    ) -> Result<Response<ResourceReply>, ServiceError> {
        let (parent, body) = (Link::parse(parent).unwrap(), json::parse(body.as_bytes())?);
        self.execute(ResourceAction::Create { parent, kind, body, throughput, offer_type: None })
    }

    pub(crate) fn create_container(&self, name: &str, version: u32, throughput: Throughput) {
        let key = format!(r#"{{"paths":["/pk"],"version":{version}}}"#);
        let body = format!(r#"{{"id":"{name}","partitionKey":{key}}}"#);
        self.create_with("dbs/d", Kind::Container, &body, Some(throughput)).unwrap();
    }

    pub(crate) fn delete(&self, link: &str) {
        let (link, conditions) = (Link::parse(link).unwrap(), Conditions::default());
        self.execute(ResourceAction::Delete { link, conditions }).unwrap();
    }

    pub(crate) fn create_item(
        &self,
        container: &str,
        body: String,
    ) -> Result<Response<ItemResult>, ServiceError> {
        let create = ItemOperation::Create { body: body.into() };
        self.within(container, ItemAction::new(None, create))
    }

    pub(crate) fn patch(
        &self,
        container: &str,
        id: &str,
        body: &str,
    ) -> Result<Response<ItemResult>, ServiceError> {
        let key = Some(PartitionKey::new(["x"]));
        let (id, body) = (ItemId::parse(id).unwrap(), body.to_owned().into());
        let patch = ItemOperation::Patch { id, body, if_match: None };
        self.within(container, ItemAction::new(key, patch))
    }

    pub(crate) fn batch(
        &self,
        container: &str,
        bodies: Vec<String>,
    ) -> Result<Response<Vec<ItemResult>>, ServiceError> {
        let create = |body: String| ItemOperation::Create { body: body.into() };
        let operations = bodies.into_iter().map(create).collect();
        let key = PartitionKey::new(["x"]);
        self.within(container, Batch { key, operations, session: None })
    }

    pub(crate) fn page(
        &self,
        container: &str,
        after: Option<Cursor>,
        items_max: usize,
    ) -> Feed<Cursor> {
        let (scope, session, system) = (Scope::default(), None, None);
        let list = ListItems { scope, session, after, items_max, system };
        self.within(container, list).unwrap().reply
    }

    pub(crate) fn ranges(&self, container: &str) -> Vec<RangeInfo> {
        self.within(container, ReadRanges).unwrap().reply.ranges
    }

    pub(crate) fn logical_partitions(&self) -> u64 {
        let report = self.service.operator(Principal::Account).check(|_| {}).unwrap();
        assert!(report.is_clean(), "{report:?}");
        report.total.logical_partitions
    }

    pub(crate) fn advance(&self, duration: Duration) {
        self.clock.advance(duration);
    }

    pub(crate) fn within<V: ContainerVerb>(
        &self,
        container: &str,
        verb: V,
    ) -> Result<Response<V::Reply>, ServiceError> {
        self.within_as(container, verb, Caller::default())
    }

    pub(crate) fn within_as<V: ContainerVerb>(
        &self,
        container: &str,
        verb: V,
        caller: Caller,
    ) -> Result<Response<V::Reply>, ServiceError> {
        let container = Link::parse(&format!("dbs/d/colls/{container}")).unwrap();
        let verb = InContainer::new(container, verb);
        let request = Request { caller, ..Request::new(Principal::Account, verb) };
        Ok(block_on(self.service.execute(request))?)
    }

    pub(crate) fn execute<V: Verb>(&self, verb: V) -> Result<Response<V::Reply>, ServiceError> {
        Ok(block_on(self.service.execute(Request::new(Principal::Account, verb)))?)
    }
}
