//! A cluster whose containers are all alike: a key at `/pk`, default policies.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use cluster::{Cluster, ClusterReport, Container, ContainerSpec, SystemWrite, TransitionStep};
use model::epk::Epk;
use model::json::{self, Value};
use model::limits::{Growth, Limits};
use model::name::ItemId;
use model::partition_key::{PartitionKey, PartitionKeyDefinition};
use model::policy::ContainerDefinition;
use model::rid::{ContainerRid, DatabaseRid};
use partition::{Command, ContainerNumber, Document, Operation};
use runtime::{Runtime, SimulatedClock};
use storage::Store;
use testkit::wait::block_on;

pub(crate) struct Fixture {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) cluster: Cluster,
    attached: Vec<u32>,
}

impl Fixture {
    pub(crate) fn new(store: Arc<dyn Store>) -> Fixture {
        let cluster = Cluster::open(store.clone(), Runtime::simulated(1), Arc::default()).unwrap();
        Fixture { store, cluster, attached: Vec::new() }
    }

    /// With other limits than the published ones.
    pub(crate) fn limited(store: Arc<dyn Store>, limits: Limits) -> Fixture {
        let cluster = Cluster::open(store.clone(), Runtime::simulated(1), limits.into()).unwrap();
        Fixture { store, cluster, attached: Vec::new() }
    }

    /// With other limits and a clock that the test moves.
    pub(crate) fn timed(
        store: Arc<dyn Store>,
        limits: Limits,
        clock: Arc<SimulatedClock>,
    ) -> Fixture {
        let runtime = Runtime::simulated_at(clock, 1);
        let cluster = Cluster::open(store.clone(), runtime, limits.into()).unwrap();
        Fixture { store, cluster, attached: Vec::new() }
    }

    /// A container whose key has two levels, `/tenant` and `/user`.
    pub(crate) fn create_hierarchical(&mut self, number: u32) -> Arc<Container> {
        let body = r#"{"id":"h","partitionKey":{"paths":["/tenant","/user"],"kind":"MultiHash","version":2}}"#;
        let definition =
            ContainerDefinition::parse(&json::parse(body.as_bytes()).unwrap()).unwrap();
        let spec = ContainerSpec { definition: Arc::new(definition), ..spec(number) };
        block_on(self.cluster.create_container(spec, 1, Vec::new())).unwrap()
    }

    /// A container whose items live for `secs` seconds.
    pub(crate) fn create_expiring(&mut self, number: u32, secs: u32) {
        let body = format!(
            r#"{{"id":"e","partitionKey":{{"paths":["/pk"],"version":2}},"defaultTtl":{secs}}}"#
        );
        let definition =
            ContainerDefinition::parse(&json::parse(body.as_bytes()).unwrap()).unwrap();
        let spec = ContainerSpec { definition: Arc::new(definition), ..spec(number) };
        block_on(self.cluster.create_container(spec, 1, Vec::new())).unwrap();
    }

    /// With an observer of every step of every transition.
    pub(crate) fn observed(
        store: Arc<dyn Store>,
        observer: impl Fn(TransitionStep) + Send + Sync + 'static,
    ) -> Fixture {
        let Fixture { store, cluster, attached } = Fixture::new(store);
        Fixture { store, cluster: cluster.observed_by(observer), attached }
    }

    pub(crate) fn attached(store: Arc<dyn Store>, numbers: &[u32]) -> Fixture {
        let mut fixture = Fixture::new(store);
        fixture.attached = numbers.to_vec();
        fixture.reopen();
        fixture
    }

    pub(crate) fn create_container(&mut self, number: u32, ranges: u32) {
        block_on(self.cluster.create_container(spec(number), ranges, Vec::new())).unwrap();
        self.attached.push(number);
    }

    /// Reads the map of a container again.
    pub(crate) fn attach(&self, number: u32) {
        self.cluster.attach(spec(number)).unwrap();
    }

    pub(crate) async fn drop_container(&mut self, number: u32) {
        self.cluster.drop_containers(&[ContainerNumber(number)], Vec::new()).await.unwrap();
        self.attached.retain(|attached| *attached != number);
    }

    pub(crate) fn container(&self, number: u32) -> Arc<Container> {
        self.cluster.container(ContainerNumber(number)).unwrap()
    }

    /// Forgets everything in memory and attaches the containers again.
    pub(crate) fn reopen(&mut self) {
        let runtime = Runtime::simulated(1);
        self.cluster = Cluster::open(self.store.clone(), runtime, Arc::default()).unwrap();
        for number in &self.attached {
            self.cluster.attach(spec(*number)).unwrap();
        }
    }

    pub(crate) fn check(&self) -> ClusterReport {
        self.cluster.check(&[], |_| {}).unwrap()
    }

    /// Changes the text of a stored map.
    pub(crate) fn rewrite_map(&self, number: u32, from: &str, to: &str) {
        let id = format!("map:{number}");
        let stored = self.cluster.read_system(&id).unwrap().unwrap();
        let text = stored.json().text().replace(from, to);
        assert_ne!(text, stored.json().text(), "{from} is not in {text}");
        let Value::Object(mut body) = json::parse(text.as_bytes()).unwrap() else { panic!() };
        body.remove("id");
        let write = SystemWrite::Replace { id, body, if_match: None };
        block_on(self.cluster.write_system(vec![write])).unwrap();
    }
}

pub(crate) fn number(number: u32) -> ContainerNumber {
    ContainerNumber(number)
}

/// The number of the container that keeps all versions and deletes.
pub(crate) const WITH_HISTORY: u32 = 77;

pub(crate) fn spec(number: u32) -> ContainerSpec {
    let retention = if number == WITH_HISTORY { 10 } else { 0 };
    let body = format!(
        r#"{{"id":"c{number}","partitionKey":{{"paths":["/pk"],"version":2}},
            "changeFeedPolicy":{{"retentionDuration":{retention}}}}}"#
    );
    let definition = ContainerDefinition::parse(&json::parse(body.as_bytes()).unwrap()).unwrap();
    let database = DatabaseRid::new(1).unwrap();
    ContainerSpec {
        number: ContainerNumber(number),
        rid: ContainerRid::new(database, number).unwrap(),
        policies: BTreeMap::from([(0, definition.indexing().clone())]),
        definition: Arc::new(definition),
        index_seed: 1,
        growth: Growth::Unlimited,
    }
}

pub(crate) fn position(key: &str) -> Epk {
    let definition = PartitionKeyDefinition::hash(["/pk"]).unwrap();
    definition.locate(&PartitionKey::new([key])).unwrap()
}

pub(crate) fn id(text: &str) -> ItemId {
    ItemId::parse(text).unwrap()
}

pub(crate) fn create(key: &str, id: &ItemId) -> Command {
    let body = Bytes::from(format!(r#"{{"id":"{id}","pk":"{key}","n":1}}"#));
    let document = Document::parse(body, &Limits::default()).unwrap();
    Command { position: position(key), operations: vec![Operation::Create { document }] }
}

pub(crate) fn read_op(name: &str) -> Operation {
    Operation::Read { id: id(name), if_none_match: None }
}
