//! A service in memory with one database, driven by short calls.

use std::sync::Arc;
use std::time::Duration;

use model::json;
use model::limits::Limits;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use partition::Position;
use runtime::{Runtime, SimulatedClock};
use service::{
    Action, Caller, CatalogueAction, Conditions, ContainerAction, ItemOperation, ItemTarget, Kind,
    Link, Principal, RangeInfo, Reply, Request, Response, Scope, Service, ServiceError, Throughput,
    ThroughputRules,
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

    /// One that holds its clients to these rules.
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
    ) -> Result<Response, ServiceError> {
        self.create_with(parent, kind, body, None)
    }

    pub(crate) fn create_with(
        &self,
        parent: &str,
        kind: Kind,
        body: &str,
        throughput: Option<Throughput>,
    ) -> Result<Response, ServiceError> {
        let (parent, body) = (Link::parse(parent).unwrap(), json::parse(body.as_bytes())?);
        let action = CatalogueAction::Create { parent, kind, body, throughput, offer_type: None };
        self.execute(Action::Catalogue(action))
    }

    pub(crate) fn create_container(&self, name: &str, version: u32, throughput: Throughput) {
        let key = format!(r#"{{"paths":["/pk"],"version":{version}}}"#);
        let body = format!(r#"{{"id":"{name}","partitionKey":{key}}}"#);
        self.create_with("dbs/d", Kind::Container, &body, Some(throughput)).unwrap();
    }

    pub(crate) fn delete(&self, link: &str) {
        let (link, conditions) = (Link::parse(link).unwrap(), Conditions::default());
        self.execute(Action::Catalogue(CatalogueAction::Delete { link, conditions })).unwrap();
    }

    pub(crate) fn create_item(
        &self,
        container: &str,
        body: String,
    ) -> Result<Response, ServiceError> {
        self.within(container, ContainerAction::CreateItem { key: None, body: body.into() })
    }

    pub(crate) fn patch(
        &self,
        container: &str,
        id: &str,
        body: &str,
    ) -> Result<Response, ServiceError> {
        let key = Some(PartitionKey::new(["x"]));
        let target = ItemTarget { key, id: ItemId::parse(id).unwrap() };
        let (body, conditions) = (body.to_owned().into(), Conditions::default());
        self.within(container, ContainerAction::PatchItem { target, body, conditions })
    }

    pub(crate) fn batch(
        &self,
        container: &str,
        bodies: Vec<String>,
    ) -> Result<Response, ServiceError> {
        let create = |body: String| ItemOperation::Create { body: body.into() };
        let operations = bodies.into_iter().map(create).collect();
        let key = PartitionKey::new(["x"]);
        self.within(container, ContainerAction::Batch { key, operations, session: None })
    }

    pub(crate) fn page(&self, container: &str, after: Option<Position>, items_max: usize) -> Reply {
        let action =
            ContainerAction::ListItems { scope: Scope::default(), session: None, after, items_max };
        self.within(container, action).unwrap().reply
    }

    pub(crate) fn ranges(&self, container: &str) -> Vec<RangeInfo> {
        let response = self.within(container, ContainerAction::ReadRanges).unwrap();
        let Reply::Ranges { ranges, .. } = response.reply else { panic!("ranges are asked for") };
        ranges
    }

    pub(crate) fn logical_partitions(&self) -> u64 {
        let report = self.service.operator(Principal::Account).check(|_| {}).unwrap();
        assert!(report.is_clean(), "{report:?}");
        report.total.logical_partitions
    }

    pub(crate) fn advance(&self, duration: Duration) {
        self.clock.advance(duration);
    }

    pub(crate) fn within(
        &self,
        container: &str,
        action: ContainerAction,
    ) -> Result<Response, ServiceError> {
        self.within_as(container, action, Caller::default())
    }

    pub(crate) fn within_as(
        &self,
        container: &str,
        action: ContainerAction,
        caller: Caller,
    ) -> Result<Response, ServiceError> {
        let container = Link::parse(&format!("dbs/d/colls/{container}")).unwrap();
        let action = Action::Container { container, intended_rid: None, merge_aware: true, action };
        let request = Request { caller, ..Request::new(Principal::Account, action) };
        Ok(block_on(self.service.execute(request))?)
    }

    pub(crate) fn execute(&self, action: Action) -> Result<Response, ServiceError> {
        Ok(block_on(self.service.execute(Request::new(Principal::Account, action)))?)
    }
}
