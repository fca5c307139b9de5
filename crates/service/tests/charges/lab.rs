//! A service in memory, of which only the charges are tested.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use model::charge::Charge;
use model::json;
use model::limits::Limits;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use runtime::{Runtime, SimulatedClock};
use service::{
    Approach, Batch, Bulk, BulkOperation, BulkPace, BulkResult, ChangeList, ChangeStart,
    ContainerVerb, Cursor, EtagMatch, Failure, InContainer, ItemAction, ItemOperation, ItemQuery,
    Kind, Link, ListItems, Principal, QueryRows, Request, ResourceAction, Response, Scope, Service,
    Throughput,
};
use storage::{Store, memory};
use testkit::faulty::FaultyStore;
use testkit::wait::block_on;

const CONTAINER: &str = "dbs/d/colls/c";

/// Rows of a page, for clients that do not say how many.
const PAGE_ROWS: usize = 100;

/// Requests at a time while data is loaded.
const IN_FLIGHT: usize = 64;

/// One container, most often with the key `/pk` and items of the key `key`.
pub(crate) struct Lab {
    service: Service,
    store: Arc<FaultyStore>,
    clock: Arc<SimulatedClock>,
    pause_ms: Cell<u64>,
}

impl Lab {
    /// With the default indexing policy.
    pub(crate) fn new(seed: u64) -> Lab {
        Lab::with_definition(seed, "/pk", "")
    }

    /// With more members in the container's definition.
    pub(crate) fn with_definition(seed: u64, key: &str, members: &str) -> Lab {
        Lab::open(seed, key, members, None)
    }

    /// On this many physical partitions.
    pub(crate) fn with_partitions(seed: u64, partitions: u32) -> Lab {
        let each = Limits::default().partition_throughput_at_creation;
        Lab::open(seed, "/pk", "", Some(Throughput::Manual(partitions * each)))
    }

    fn open(seed: u64, key: &str, members: &str, throughput: Option<Throughput>) -> Lab {
        let clock = Arc::new(SimulatedClock::new());
        let runtime = Runtime::simulated_at(Arc::<SimulatedClock>::clone(&clock), seed);
        let store = FaultyStore::new(memory::create());
        let opened: Arc<dyn Store> = Arc::<FaultyStore>::clone(&store);
        let service = Service::open(opened, runtime, Limits::default()).unwrap();
        let lab = Lab { service, store, clock, pause_ms: Cell::new(0) };
        lab.create_resource("", Kind::Database, r#"{"id":"d"}"#, None);
        let key = format!(r#"{{"paths":["{key}"],"version":2}}"#);
        let container = format!(r#"{{"id":"c","partitionKey":{key}{members}}}"#);
        lab.create_resource("dbs/d", Kind::Container, &container, throughput);
        lab
    }

    /// Advances the clock before each request.
    pub(crate) fn sleep_between_requests(&self, millis: u64) {
        self.pause_ms.set(millis);
    }

    pub(crate) fn create(&self, body: &str) -> Charge {
        charge(self.execute(create(body)))
    }

    pub(crate) fn create_all(&self, bodies: Vec<String>) -> Vec<Charge> {
        self.execute_all(bodies.iter().map(|body| create(body)).collect())
    }

    /// Creates them all, ignoring the charges.
    pub(crate) fn load(&self, bodies: &[String]) {
        for bodies in bodies.chunks(IN_FLIGHT) {
            let creates = bodies.iter().map(|body| self.service.execute(request(create(body))));
            block_on(join_all(creates)).into_iter().for_each(|done| drop(done.unwrap()));
        }
    }

    pub(crate) fn upsert(&self, body: &str) -> Charge {
        let upsert = ItemOperation::Upsert { body: body.to_owned().into(), if_match: None };
        charge(self.execute(ItemAction::new(None, upsert)))
    }

    pub(crate) fn read(&self, id: &str) -> Charge {
        charge(self.execute(read(id, None)))
    }

    pub(crate) fn read_of(&self, key: &str, id: &str) -> Charge {
        let (key, id) = (Some(PartitionKey::new([key])), ItemId::parse(id).unwrap());
        let read = ItemOperation::Read { id, if_none_match: None };
        charge(self.execute(ItemAction::new(key, read)))
    }

    pub(crate) fn read_all(&self, ids: Vec<String>) -> Vec<Charge> {
        self.execute_all(ids.iter().map(|id| read(id, None)).collect())
    }

    pub(crate) fn read_unless(&self, id: &str, etag: &str) -> Charge {
        charge(self.execute(read(id, Some(EtagMatch(etag.to_owned())))))
    }

    pub(crate) fn replace(&self, id: &str, body: &str) -> Charge {
        self.replace_with(id, body, None)
    }

    pub(crate) fn replace_if_match(&self, id: &str, body: &str, etag: &str) -> Charge {
        self.replace_with(id, body, Some(EtagMatch(etag.to_owned())))
    }

    fn replace_with(&self, id: &str, body: &str, if_match: Option<EtagMatch>) -> Charge {
        let (id, body) = (ItemId::parse(id).unwrap(), body.to_owned().into());
        charge(self.execute(keyed(ItemOperation::Replace { id, body, if_match })))
    }

    pub(crate) fn patch(&self, id: &str, body: &str) -> Charge {
        let (id, body) = (ItemId::parse(id).unwrap(), body.to_owned().into());
        charge(self.execute(keyed(ItemOperation::Patch { id, body, if_match: None })))
    }

    pub(crate) fn delete(&self, id: &str) -> Charge {
        let id = ItemId::parse(id).unwrap();
        charge(self.execute(keyed(ItemOperation::Delete { id, if_match: None })))
    }

    pub(crate) fn list(&self) -> Charge {
        let (scope, session, after) = (Scope::default(), None, None);
        let list = ListItems { scope, session, after, items_max: 100, system: None };
        charge(self.execute(list))
    }

    /// A page of the changes of a key's items.
    pub(crate) fn list_changes(&self, key: &str, start: ChangeStart) -> Charge {
        let scope = Scope { key: Some(PartitionKey::new([key])), ..Scope::default() };
        let (session, since) = (None, None);
        charge(self.execute(ChangeList { scope, session, start, since, items_max: 100 }))
    }

    /// All pages of a query. It must be one that can be answered.
    pub(crate) fn query(&self, text: &str) -> Answer {
        let (mut all, mut rest) = self.page(text, None);
        while rest.is_some() {
            let page;
            (page, rest) = self.page(text, rest);
            all.rows += page.rows;
            all.charge += page.charge;
        }
        all
    }

    /// Number of keys that the store is asked for by all pages of a query.
    pub(crate) fn keys_read(&self, text: &str) -> u64 {
        let before = self.store.keys_read();
        self.query(text);
        self.store.keys_read() - before
    }

    pub(crate) fn first_page(&self, text: &str) -> Answer {
        self.page(text, None).0
    }

    fn page(&self, text: &str, after: Option<Cursor>) -> (Answer, Option<Cursor>) {
        let query = ItemQuery {
            source: text.into(),
            parameters: json::Value::Null,
            scope: Scope::default(),
            across_partitions: true,
            merges: true,
            session: None,
            after,
            resume: None,
            items_max: PAGE_ROWS,
            approach: Approach::Index,
            system: None,
            is_timed: false,
            names_indexes: false,
        };
        let response = self.execute(query).unwrap();
        let QueryRows { rows, rest, report, .. } = response.reply;
        let (rows, charge) = (rows.len(), response.meta.charge);
        (Answer { charge, rows, access: report.access }, rest)
    }

    /// The charge of a batch of creates, and of each of them.
    pub(crate) fn batch(&self, bodies: &[&str]) -> (Charge, Vec<Charge>) {
        let create = |body: &&str| ItemOperation::Create { body: (*body).to_owned().into() };
        let operations = bodies.iter().map(create).collect();
        let response = self.execute(Batch { key: key(), operations, session: None }).unwrap();
        (response.meta.charge, response.reply.iter().map(|result| result.charge).collect())
    }

    /// The same, independently.
    pub(crate) fn bulk(&self, bodies: &[&str]) -> (Charge, Vec<Charge>) {
        let create = |body: &&str| BulkOperation {
            key: key(),
            operation: ItemOperation::Create { body: (*body).to_owned().into() },
        };
        let operations = bodies.iter().map(create).collect();
        let bulk = Bulk { range: None, operations, pace: BulkPace::All };
        let response = self.execute(bulk).unwrap();
        let each = |BulkResult { charge, .. }: &BulkResult| *charge;
        (response.meta.charge, response.reply.iter().map(each).collect())
    }

    fn execute_all(&self, actions: Vec<ItemAction>) -> Vec<Charge> {
        let requests = actions.into_iter().map(|action| self.service.execute(request(action)));
        block_on(join_all(requests)).into_iter().map(charge).collect()
    }

    fn execute<V: ContainerVerb>(&self, action: V) -> Result<Response<V::Reply>, Failure> {
        self.clock.advance(Duration::from_millis(self.pause_ms.get()));
        block_on(self.service.execute(request(action)))
    }

    fn create_resource(&self, parent: &str, kind: Kind, body: &str, own: Option<Throughput>) {
        let (parent, body) = (Link::parse(parent).unwrap(), json::parse(body.as_bytes()).unwrap());
        let action =
            ResourceAction::Create { parent, kind, body, throughput: own, offer_type: None };
        let request = Request::new(Principal::Account, action);
        block_on(self.service.execute(request)).unwrap();
    }
}

/// The result of a query.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) charge: Charge,
    pub(crate) rows: usize,
    /// The access path of the first page, in readable form.
    pub(crate) access: String,
}

/// An item of id, key and one string that has `bytes` bytes as it is sent.
pub(crate) fn item(bytes: usize) -> String {
    item_with("", bytes)
}

/// The same with more members before the string, each followed by a comma.
pub(crate) fn item_with(members: &str, bytes: usize) -> String {
    item_named("item", members, bytes)
}

pub(crate) fn item_named(id: &str, members: &str, bytes: usize) -> String {
    let empty = format!(r#"{{"id":"{id}","pk":"key",{members}"text":""}}"#);
    let text = "t".repeat(bytes.checked_sub(empty.len()).expect("the item is larger than that"));
    empty.replace(r#""text":"""#, &format!(r#""text":"{text}""#))
}

fn charge<R>(done: Result<Response<R>, Failure>) -> Charge {
    done.map_or_else(|failure| failure.meta.charge, |response| response.meta.charge)
}

fn create(body: &str) -> ItemAction {
    ItemAction::new(None, ItemOperation::Create { body: body.to_owned().into() })
}

fn read(id: &str, if_none_match: Option<EtagMatch>) -> ItemAction {
    keyed(ItemOperation::Read { id: ItemId::parse(id).unwrap(), if_none_match })
}

fn keyed(operation: ItemOperation) -> ItemAction {
    ItemAction::new(Some(key()), operation)
}

fn key() -> PartitionKey {
    PartitionKey::new(["key"])
}

fn request<V>(verb: V) -> Request<InContainer<V>> {
    Request::new(Principal::Account, InContainer::new(Link::parse(CONTAINER).unwrap(), verb))
}
