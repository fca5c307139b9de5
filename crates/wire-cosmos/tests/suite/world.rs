//! A gateway in front of an empty database, and requests signed as SDKs sign them.
//!
//! The signing is implemented again here, so that the server's reading of the rule is
//! checked against a second one.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, Mac};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use model::limits::Limits;
use runtime::{Runtime, SimulatedClock};
use service::identity::{AccountKey, AccountKeyKind, AccountKeys};
use service::{ScriptLimits, Service, ServiceError};
use sha2::Sha256;
use wire_cosmos::{BODY_BYTES_MAX, EMULATOR_KEY, Gateway, GatewayConfig, HttpHead};

use crate::{hybrid, provider};

/// A key that may only read.
pub(crate) const READ_KEY: &str = "cmVhZC1vbmx5LWtleS1vZi10aGUtdGVzdHM=";
/// A key that is not the account's.
pub(crate) const WRONG_KEY: &str = "d3Jvbmcta2V5LXdyb25nLWtleS13cm9uZw==";

/// A feed inside a resource, and what is inside its resources.
struct Feed {
    segment: &'static str,
    name: &'static str,
    inside: &'static [Feed],
}

const fn feed(segment: &'static str, name: &'static str, inside: &'static [Feed]) -> Feed {
    Feed { segment, name, inside }
}

const CONTAINER: [Feed; 5] = [
    feed("docs", "Documents", &[]),
    feed("pkranges", "PartitionKeyRanges", &[]),
    feed("sprocs", "StoredProcedures", &[]),
    feed("triggers", "Triggers", &[]),
    feed("udfs", "UserDefinedFunctions", &[]),
];
const USER: [Feed; 1] = [feed("permissions", "Permissions", &[])];
const DATABASE: [Feed; 2] =
    [feed("colls", "DocumentCollections", &CONTAINER), feed("users", "Users", &USER)];

pub(crate) struct World {
    pub(crate) gateway: Gateway,
    /// What the gateway stands in front of.
    pub(crate) service: Arc<Service>,
    /// Those that the gateway accepts.
    pub(crate) keys: Arc<AccountKeys>,
    pub(crate) runtime: Runtime,
    pub(crate) clock: Arc<SimulatedClock>,
    pub(crate) tokio: tokio::runtime::Runtime,
    /// Values kept from earlier answers, substituted for `{name}`.
    pub(crate) kept: BTreeMap<String, String>,
    /// Whether batches are sent in HybridRow, wherever a script has them in JSON.
    pub(crate) hybrid: bool,
}

impl World {
    pub(crate) fn new() -> World {
        let clock = Arc::new(SimulatedClock::new());
        World::at(Runtime::simulated_at(Arc::clone(&clock), 1), clock)
    }

    /// One in which time passes.
    pub(crate) fn real() -> World {
        World::at(Runtime::real(), Arc::new(SimulatedClock::new()))
    }

    fn at(runtime: Runtime, clock: Arc<SimulatedClock>) -> World {
        let service = Service::open(storage::memory::create(), runtime.clone(), Limits::default());
        let service = Arc::new(service.unwrap());
        // The clock may stand still, so only this ends a script that loops for ever.
        service.limit_scripts(ScriptLimits { ticks_max: 500, ..ScriptLimits::default() });
        let key = |text| AccountKey::parse(text).unwrap();
        let keys = AccountKeys::new(key(EMULATOR_KEY));
        let keys = Arc::new(keys.with(AccountKeyKind::PrimaryReadOnly, key(READ_KEY)));
        World {
            gateway: gateway(&service, &runtime, &keys, false),
            service,
            keys,
            tokio: tokio::runtime::Builder::new_current_thread().build().unwrap(),
            runtime,
            clock,
            kept: BTreeMap::new(),
            hybrid: false,
        }
    }

    /// Offers direct mode from now on.
    pub(crate) fn offer_direct(&mut self) {
        self.gateway = gateway(&self.service, &self.runtime, &self.keys, true);
    }

    pub(crate) fn date(&self, offset_secs: i64) -> String {
        let now = self.runtime.clock.now().as_unix_seconds();
        let secs = now.saturating_add_signed(offset_secs);
        httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_secs(secs))
    }

    /// A request that is signed as an SDK would, unless a header says otherwise.
    pub(crate) fn request(
        &self,
        method: Method,
        path: &str,
        body: impl AsRef<[u8]>,
        given: &[(&str, &str)],
    ) -> (HttpHead, Bytes) {
        let date = self.date(0);
        let (verb, resource, link) = claimed(&method, path);
        let token = sign(EMULATOR_KEY, &verb, &resource, &link, &date);
        let signed = [("x-ms-date", date.as_str()), ("authorization", token.as_str())];
        let mut headers = HeaderMap::new();
        for (name, value) in signed.iter().chain(given) {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let path = path.to_owned();
        let head = HttpHead { method, path, query: None, headers, scheme: "http" };
        (head, Bytes::copy_from_slice(body.as_ref()))
    }

    /// As the server does it: first the head, then the body, unless that is too large.
    pub(crate) fn ask(&self, head: HttpHead, body: Bytes) -> http::Response<Bytes> {
        let is_batch = head.headers.get("x-ms-cosmos-is-batch-request").is_some();
        if let Some(body) = hybrid::translate(&body).filter(|_| self.hybrid && is_batch) {
            return hybrid::translate_back(self.ask_as_it_is(head, body));
        }
        self.ask_as_it_is(head, body)
    }

    fn ask_as_it_is(&self, head: HttpHead, body: Bytes) -> http::Response<Bytes> {
        let body = Some(body).filter(|body| body.len() <= BODY_BYTES_MAX);
        match self.gateway.let_in(head) {
            Ok(request) => self.tokio.block_on(self.gateway.answer(request, body)),
            Err(refusal) => *refusal,
        }
    }

    /// Sends it.
    pub(crate) fn send(
        &self,
        method: Method,
        path: &str,
        body: impl AsRef<[u8]>,
        given: &[(&str, &str)],
    ) -> http::Response<Bytes> {
        let (head, body) = self.request(method, path, body, given);
        self.ask(head, body)
    }

    /// Carries out changes of throughput that wait for splits, as the background task does.
    pub(crate) fn scale(&self) -> Result<usize, ServiceError> {
        self.tokio.block_on(self.service.maintenance().scale())
    }

    /// Removes what has expired and what is too old, as background tasks do.
    pub(crate) fn tidy(&self) -> Result<String, ServiceError> {
        let maintenance = self.service.maintenance();
        let expired = self.tokio.block_on(maintenance.expire())?;
        let trimmed = self.tokio.block_on(maintenance.trim_history())?;
        Ok(format!("{expired} expired, {trimmed} trimmed"))
    }

    /// Everything that is there, as the account's owner reads it.
    pub(crate) fn dump(&self) -> String {
        let mut out = String::new();
        self.dump_feed("offers", "Offers", &[], &mut out);
        self.dump_feed("dbs", "Databases", &DATABASE, &mut out);
        out
    }

    /// One feed, and the feeds inside each of its resources.
    fn dump_feed(&self, path: &str, name: &str, inside: &[Feed], out: &mut String) {
        let answer =
            self.send(Method::GET, &format!("/{path}"), "", &[("x-ms-max-item-count", "1000")]);
        assert_eq!(answer.status(), http::StatusCode::OK, "{path}: {:?}", answer.body());
        let feed: serde_json::Value = serde_json::from_slice(answer.body()).unwrap();
        for resource in feed[name].as_array().unwrap() {
            out.push_str(&format!("{resource}\n"));
            let link = resource["_self"].as_str().unwrap_or_default();
            for Feed { segment, name, inside } in inside {
                self.dump_feed(&format!("{link}{segment}"), name, inside, out);
            }
        }
    }

    /// The signature of a read-only key.
    pub(crate) fn signed_to_read(&self, method: &Method, path: &str) -> String {
        let (verb, resource, link) = claimed(method, path);
        sign(READ_KEY, &verb, &resource, &link, &self.date(0))
    }

    /// Substitutes what was kept, and for `<<TEXT*NUMBER>>` that many repetitions of the
    /// text.
    pub(crate) fn fill(&self, text: &str) -> String {
        let fill = |text: String, (name, value): (&String, &String)| {
            text.replace(&format!("{{{name}}}"), value)
        };
        let mut text = self.kept.iter().fold(text.to_owned(), fill);
        while let Some((before, many, after)) = repetition(&text) {
            text = format!("{before}{many}{after}");
        }
        text
    }
}

fn gateway(
    service: &Arc<Service>,
    runtime: &Runtime,
    keys: &Arc<AccountKeys>,
    direct: bool,
) -> Gateway {
    let config = GatewayConfig {
        keys: Arc::clone(keys),
        issuers: provider::issuers(),
        tokens_with_keys: true,
        region: "South Central US".to_owned(),
        direct,
        skew_secs_max: 900,
        slow_after: None,
    };
    Gateway::new(Arc::clone(service), runtime.clone(), config)
}

/// The first `<<TEXT*NUMBER>>` of a text: what precedes it, its replacement, and what
/// follows it.
fn repetition(text: &str) -> Option<(&str, String, &str)> {
    let (before, rest) = text.split_once("<<")?;
    let (inner, after) = rest.split_once(">>")?;
    let (unit, number) = inner.rsplit_once('*')?;
    Some((before, unit.repeat(number.parse().ok()?), after))
}

/// What an SDK signs for a path.
pub(crate) fn claimed(method: &Method, path: &str) -> (String, String, String) {
    // An operation on a container is signed as the container.
    let path = path.strip_suffix("/operations/partitionkeydelete").unwrap_or(path);
    let decoded = percent_decoded(path.trim_matches('/'));
    let segments: Vec<&str> = decoded.split('/').filter(|segment| !segment.is_empty()).collect();
    let (resource, link) = if segments.len() % 2 == 1 {
        (segments[segments.len() - 1], segments[..segments.len() - 1].join("/"))
    } else if segments.is_empty() {
        ("", String::new())
    } else {
        (segments[segments.len() - 2], segments.join("/"))
    };
    let link = if segments.first() == Some(&"offers") && segments.len() == 2 {
        segments[1].to_lowercase()
    } else {
        link
    };
    (method.as_str().to_owned(), resource.to_owned(), link)
}

fn percent_decoded(text: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits: Vec<u8> = bytes.by_ref().take(2).collect();
            let digits = String::from_utf8_lossy(&digits).into_owned();
            out.push(u8::from_str_radix(&digits, 16).unwrap_or(b'?'));
        } else {
            out.push(byte);
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

pub(crate) fn sign(key: &str, verb: &str, resource: &str, link: &str, date: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(key).unwrap()).unwrap();
    let date = date.to_lowercase();
    mac.update(
        format!("{}\n{}\n{link}\n{date}\n\n", verb.to_lowercase(), resource.to_lowercase())
            .as_bytes(),
    );
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    let token = format!("type=master&ver=1.0&sig={signature}");
    token.replace('=', "%3D").replace('&', "%26").replace('+', "%2B").replace('/', "%2F")
}
