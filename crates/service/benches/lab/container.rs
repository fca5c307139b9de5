//! One container of a service on disk, for benches.
//!
//! On: indexing (unless a policy says otherwise), an fsync before each acknowledgement.
//! Off: HTTP, signatures, throttling.

use std::cell::Cell;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use model::json;
use model::limits::Limits;
use runtime::{Clock, RealClock, Runtime};
use service::{
    ContainerVerb, InContainer, ItemAction, ItemOperation, Kind, Link, Principal, Request,
    ResourceAction, Service, Throughput, Verb,
};
use storage::local::{self, LocalConfig};

/// Creates in flight at the same time.
const IN_FLIGHT: u64 = 64;

pub(crate) struct Lab {
    service: Service,
    clock: RealClock,
}

impl Lab {
    /// With the key `/pk`.
    pub(crate) fn create(folder: &Path, limits: Limits, throughput: u32, policy: &str) -> Lab {
        let runtime = Runtime::real();
        let store = local::create(folder, LocalConfig::default(), &runtime).unwrap();
        let service = Service::open(store, runtime, limits).unwrap();
        let lab = Lab { service, clock: RealClock::new() };
        lab.create_resource("", Kind::Database, r#"{"id":"d"}"#, None);
        let key = r#"{"paths":["/pk"],"version":2}"#;
        let body = format!(r#"{{"id":"c","partitionKey":{key},"indexingPolicy":{policy}}}"#);
        lab.create_resource("dbs/d", Kind::Container, &body, Some(Throughput::Manual(throughput)));
        lab
    }

    fn create_resource(&self, parent: &str, kind: Kind, body: &str, own: Option<Throughput>) {
        let (parent, body) = (Link::parse(parent).unwrap(), json::parse(body.as_bytes()).unwrap());
        let create =
            ResourceAction::Create { parent, kind, body, throughput: own, offer_type: None };
        block_on(self.execute(create));
    }

    /// Creates the documents with these numbers. Returns the rate per second.
    pub(crate) fn fill(&self, numbers: Range<u64>, document: impl Fn(u64) -> String) -> f64 {
        let (count, next) = (numbers.end - numbers.start, Cell::new(numbers.start));
        let lane = async || {
            while next.get() < numbers.end {
                let number = next.replace(next.get() + 1);
                let body = document(number).into();
                self.within(ItemAction::new(None, ItemOperation::Create { body })).await;
            }
        };
        let all = || block_on(join_all((0..IN_FLIGHT).map(|_| lane())));
        let (_, time) = self.timed(all);
        count as f64 / time.as_secs_f64()
    }

    /// Waits until the engine has compacted what was loaded. Queries before that measure
    /// the load rather than the query.
    pub(crate) fn settle(&self) {
        self.service.store().compact().unwrap();
    }

    pub(crate) fn close(self) {
        self.service.store().close().unwrap();
    }

    pub(crate) fn timed<T>(&self, run: impl FnOnce() -> T) -> (T, Duration) {
        let began = self.clock.monotonic();
        let done = run();
        (done, self.clock.monotonic() - began)
    }

    pub(crate) fn ask<V: ContainerVerb>(&self, verb: V) -> V::Reply {
        block_on(self.within(verb))
    }

    async fn within<V: ContainerVerb>(&self, verb: V) -> V::Reply {
        let container = Link::parse("dbs/d/colls/c").unwrap();
        self.execute(InContainer::new(container, verb)).await
    }

    async fn execute<V: Verb>(&self, verb: V) -> V::Reply {
        self.service.execute(Request::new(Principal::Account, verb)).await.unwrap().reply
    }
}

/// The median.
pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
