//! How does the cost of a query grow with what is stored?
//!
//! The same container is asked the same things at several sizes, on one and on five
//! physical partitions: what an index answers must not grow with items that it does
//! not touch, and a scan must cost the same for each item. Besides: what indexing
//! costs on the way in, and on the disk.
//!
//! Asked when the engine has merged what was loaded.
//!
//! On: indexing (but where it says otherwise), an fsync before each acknowledgement.
//! Off: HTTP, signatures, throttling.
//!
//! `ORRERY_BENCH_ITEMS` sets the sizes (`10000,100000`). `cargo xtask bench query`.
#![allow(clippy::unwrap_used, reason = "a bench stops at the first error")]
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use model::json::{self, Value};
use model::limits::Limits;
use runtime::{Clock, RealClock, Runtime};
use service::{
    Action, Approach, CatalogueAction, ContainerAction, ItemQuery, Kind, Link, Principal, Reply,
    Request, Response, Scope, Service, Throughput,
};
use storage::local::{self, LocalConfig};
use testkit::files::bytes_in;

const SIZES: &str = "10000,100000";
const LAYOUTS: [(&str, u32); 2] = [("one", 400), ("five", 30_000)];
const IN_FLIGHT: u64 = 64;
const DOCUMENT_BYTES: usize = 1_024;
/// Each query is asked so often with other values; the median counts.
const ASKED: u64 = 51;
/// So many items share a value of `team`, at every size.
const GROUP_ITEMS: u64 = 10;

/// What is asked; `@n` is a number below the number of items.
const QUERIES: [(&str, &str); 5] = [
    ("equality", "SELECT * FROM c WHERE c.team = @team"),
    ("range TOP 10", "SELECT TOP 10 * FROM c WHERE c.number >= @n"),
    ("ORDER BY TOP 10", "SELECT TOP 10 * FROM c ORDER BY c.number DESC"),
    ("COUNT with filter", "SELECT VALUE COUNT(1) FROM c WHERE c.team = @team"),
    ("newest of a key", "SELECT TOP 10 * FROM c WHERE c.pk = @pk ORDER BY c.number DESC"),
];

fn main() {
    let sizes = std::env::var("ORRERY_BENCH_ITEMS").unwrap_or_else(|_| SIZES.to_owned());
    let sizes: Vec<u64> = sizes.split(',').map(|size| size.trim().parse().unwrap()).collect();
    for (name, throughput) in LAYOUTS {
        let folder = tempfile::tempdir().unwrap();
        let lab = Lab::create(folder.path(), throughput, "consistent");
        let mut stored = 0;
        for size in &sizes {
            let rate = lab.fill(stored, *size);
            stored = *size;
            println!("{name} partition(s), {size} items: {rate:.0} creates/s");
            // What is asked while the engine still sorts what was loaded says more about
            // the load than about the queries.
            lab.service.store().compact().unwrap();
            for (what, text) in QUERIES {
                let (median, access) = lab.median(text, *size);
                println!("  {what:18} {:9.3} ms   {access}", median.as_secs_f64() * 1e3);
            }
            let (each, items) = lab.scan();
            println!("  {:18} {:9.3} µs an item, {items} items", "scan", each.as_secs_f64() * 1e6);
        }
        lab.service.store().close().unwrap();
    }
    cost_of_indexing(sizes.iter().copied().min().unwrap_or_default());
}

/// Loads the same documents with and without an index.
fn cost_of_indexing(size: u64) {
    let mut figures = Vec::new();
    for mode in ["consistent", "none"] {
        let folder = tempfile::tempdir().unwrap();
        let lab = Lab::create(folder.path(), 400, mode);
        let rate = lab.fill(0, size);
        lab.service.store().close().unwrap();
        drop(lab);
        figures.push((rate, bytes_in(folder.path())));
    }
    let [(rate, bytes), (rate_without, bytes_without)] = figures.as_slice() else { return };
    let ratio = rate / rate_without;
    println!("indexing: {rate:.0} creates/s, without {rate_without:.0}: {ratio:.2} of it");
    let documents = size * DOCUMENT_BYTES as u64;
    let index = bytes.saturating_sub(*bytes_without) as f64 / documents as f64;
    println!("on disk: {bytes} bytes, without {bytes_without}; {index:.2} index bytes a byte");
}

struct Lab {
    service: Service,
    clock: RealClock,
}

impl Lab {
    fn create(folder: &Path, throughput: u32, mode: &str) -> Lab {
        let runtime = Runtime::real();
        let store = local::create(folder, LocalConfig::default(), &runtime).unwrap();
        let service = Service::open(store, runtime, Limits::default()).unwrap();
        let lab = Lab { service, clock: RealClock::new() };
        lab.create_resource("", Kind::Database, r#"{"id":"d"}"#, None);
        let policy = match mode {
            "none" => r#"{"indexingMode":"none","automatic":false}"#,
            _ => r#"{"indexingMode":"consistent"}"#,
        };
        let body = format!(
            r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"version":2}},"indexingPolicy":{policy}}}"#
        );
        lab.create_resource("dbs/d", Kind::Container, &body, Some(Throughput::Manual(throughput)));
        lab
    }

    fn create_resource(&self, parent: &str, kind: Kind, body: &str, own: Option<Throughput>) {
        let (parent, body) = (Link::parse(parent).unwrap(), json::parse(body.as_bytes()).unwrap());
        let create = CatalogueAction::Create { parent, kind, body, throughput: own };
        block_on(self.execute(Action::Catalogue(create)));
    }

    /// Creates the items from one number to another. Says how many per second.
    fn fill(&self, from: u64, to: u64) -> f64 {
        let (began, next) = (self.clock.monotonic(), Cell::new(from));
        let lane = async || {
            while next.get() < to {
                let number = next.replace(next.get() + 1);
                let body = document(number).into();
                self.within(ContainerAction::CreateItem { key: None, body }).await;
            }
        };
        block_on(join_all((0..IN_FLIGHT).map(|_| lane())));
        (to - from) as f64 / (self.clock.monotonic() - began).as_secs_f64()
    }

    fn median(&self, text: &str, size: u64) -> (Duration, String) {
        let mut times = Vec::new();
        let mut access = String::new();
        for asked in 0..ASKED {
            let number = size / (ASKED + 1) * asked;
            let parameters = format!(
                r#"[{{"name":"@n","value":{number}}},{{"name":"@team","value":"g{}"}},{{"name":"@pk","value":"{}"}}]"#,
                number / GROUP_ITEMS,
                key(number),
            );
            let began = self.clock.monotonic();
            let (rows, report) = self.page(text, &parameters, None, Approach::Index);
            times.push(self.clock.monotonic() - began);
            assert!(!rows.is_empty(), "{text} at {number}");
            access = report;
        }
        times.sort();
        (times[times.len() / 2], access)
    }

    /// Time per item of a query that no index helps.
    fn scan(&self) -> (Duration, u64) {
        let text = "SELECT VALUE COUNT(1) FROM c WHERE LENGTH(c.text) > 10";
        let began = self.clock.monotonic();
        let (rows, _) = self.page(text, "[]", None, Approach::Index);
        let items: u64 = rows[0].parse().unwrap();
        ((self.clock.monotonic() - began) / u32::try_from(items).unwrap(), items)
    }

    fn page(
        &self,
        text: &str,
        parameters: &str,
        after: Option<service::Cursor>,
        approach: Approach,
    ) -> (Vec<String>, String) {
        let query = ItemQuery {
            text: text.to_owned(),
            parameters: json::parse(parameters.as_bytes()).unwrap_or(Value::Null),
            scope: Scope::default(),
            across_partitions: true,
            merges: true,
            session: None,
            after,
            items_max: 1_000,
            approach,
        };
        let response = block_on(self.within(ContainerAction::QueryItems(Box::new(query))));
        let Reply::Rows { rows, report, .. } = response.reply else { panic!("rows are asked for") };
        let text = |row: &bytes::Bytes| String::from_utf8_lossy(row).into_owned();
        (rows.iter().map(text).collect(), report.access)
    }

    async fn within(&self, action: ContainerAction) -> Response {
        let container = Link::parse("dbs/d/colls/c").unwrap();
        let action = Action::Container { container, intended_rid: None, merge_aware: true, action };
        self.execute(action).await
    }

    async fn execute(&self, action: Action) -> Response {
        self.service.execute(Request::new(Principal::Account, action)).await.unwrap()
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn key(number: u64) -> String {
    format!("key{}", number % 1_000)
}

/// A document with some properties and a text that fills it up.
fn document(number: u64) -> String {
    let (pk, group) = (key(number), number / GROUP_ITEMS);
    let start = format!(
        r#"{{"id":"{number}","pk":"{pk}","team":"g{group}","number":{number},"flags":{{"a":{},"b":{}}},"tags":["t{}","t{}"],"text":""#,
        number.is_multiple_of(2),
        number.is_multiple_of(3),
        number % 10,
        number % 100,
    );
    let text = "x".repeat(DOCUMENT_BYTES.saturating_sub(start.len() + 2));
    start + &text + r#""}"#
}
