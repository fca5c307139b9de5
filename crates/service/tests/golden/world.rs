//! One service with its own store and clock, driven by the commands of a script.

mod item;
mod resource;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use goldenscript::{ArgumentConsumer, Command};
use model::json::{self, Object, Value};
use model::limits::{Limits, Profile};
use model::partition_key::PartitionKey;
use partition::EtagMatch;
use runtime::{Runtime, SimulatedClock};
use service::{
    Conditions, EffectKind, Failure, Link, Principal, Request, ResourceRest, Response, Service,
    ServiceError, ThroughputRules, Verb,
};
use storage::local::{self, LocalConfig};
use storage::{Store, memory};
use tempfile::TempDir;

/// What all worlds draw their randomness from.
const SEED: u64 = 7;

pub(crate) struct World {
    /// What `ru=any` means here.
    pub(crate) ru: u32,
    folder: Option<TempDir>,
    clock: Arc<SimulatedClock>,
    runtime: Runtime,
    limits: Limits,
    rules: ThroughputRules,
    reactor: tokio::runtime::Runtime,
    service: Option<Service>,
    principal: Principal,
    container: Link,
    last_etag: Option<String>,
    etags: BTreeMap<String, String>,
}

type Answer = Result<String, Box<dyn Error>>;

impl World {
    pub(crate) fn memory(ru: u32) -> World {
        World::new(ru, None, memory::create())
    }

    pub(crate) fn local(ru: u32) -> World {
        let folder = tempfile::tempdir().unwrap();
        let store = local::create(folder.path(), LocalConfig::default(), &Runtime::real());
        World::new(ru, Some(folder), store.unwrap())
    }

    fn new(ru: u32, folder: Option<TempDir>, store: Arc<dyn Store>) -> World {
        let clock = Arc::new(SimulatedClock::new());
        let runtime = Runtime::simulated_at(Arc::clone(&clock), SEED);
        let reactor = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let service = Service::open(store, runtime.clone(), Limits::default()).unwrap();
        World {
            ru,
            folder,
            clock,
            runtime,
            limits: Limits::default(),
            rules: ThroughputRules::UNLIMITED,
            reactor,
            service: Some(service),
            principal: Principal::Account,
            container: Link::default(),
            last_etag: None,
            etags: BTreeMap::new(),
        }
    }

    /// Errors come as text, so that worlds can be compared.
    pub(crate) fn run(
        &mut self,
        command: &Command,
        tags: &BTreeSet<String>,
    ) -> Result<String, String> {
        let mut args = command.consume_args();
        let answer = match command.name.as_str() {
            "use" => self.choose(&mut args),
            "as" => self.impersonate(&mut args),
            "save" => self.save(&mut args),
            "advance" => self.advance(&mut args),
            "sweep" => self.sweep(),
            "check" => self.check(),
            "scale" => self.scale(),
            "reopen" => self.reopen(&mut args),
            "ranges" | "items" | "batch" | "bulk" => self.item_command(command, tags),
            name if name.starts_with("item.") => self.item_command(command, tags),
            _ => self.resource_command(command),
        };
        answer.map_err(|error| error.to_string())
    }

    fn choose(&mut self, args: &mut ArgumentConsumer<'_>) -> Answer {
        self.container = link(args.next_pos())?;
        Ok(String::new())
    }

    fn impersonate(&mut self, args: &mut ArgumentConsumer<'_>) -> Answer {
        self.principal = match args.next_pos() {
            Some("anonymous") => Principal::Anonymous,
            Some("reader") => Principal::Reader,
            Some("account") => Principal::Account,
            other => return Err(format!("who is {other:?}?").into()),
        };
        Ok(String::new())
    }

    fn save(&mut self, args: &mut ArgumentConsumer<'_>) -> Answer {
        let name = args.next_pos().ok_or("under which name?")?;
        let etag = self.last_etag.clone().ok_or("nothing had an etag")?;
        self.etags.insert(name.to_owned(), etag);
        Ok(String::new())
    }

    fn advance(&mut self, args: &mut ArgumentConsumer<'_>) -> Answer {
        let seconds = args.next_pos().ok_or("how far?")?.parse()?;
        self.clock.advance(Duration::from_secs(seconds));
        Ok(String::new())
    }

    fn sweep(&mut self) -> Answer {
        let swept = self.reactor.block_on(self.service().maintenance().sweep())?;
        // Keys differ with the number of buckets, so only their absence is shown.
        assert_eq!(
            self.reactor.block_on(self.service().maintenance().sweep())?,
            service::Swept::default()
        );
        Ok(format!("{} resources, {} containers\n", swept.resources, swept.containers))
    }

    fn check(&mut self) -> Answer {
        let mut names = Vec::new();
        let report = self
            .service()
            .operator(Principal::Account)
            .check(|name| names.push(name.to_owned()))?;
        if !report.is_clean() {
            return Err(format!("not clean: {report:?}").into());
        }
        let (items, keys) = (report.total.items, report.total.logical_partitions);
        Ok(format!("clean: {}; {items} items in {keys} logical partitions\n", names.join(", ")))
    }

    fn scale(&mut self) -> Answer {
        Ok(format!("{} splits\n", self.reactor.block_on(self.service().maintenance().scale())?))
    }

    /// Memory cannot be reopened, so there only the service is new.
    fn reopen(&mut self, args: &mut ArgumentConsumer<'_>) -> Answer {
        if let Some(profile) = args.take_key("profile") {
            self.limits = profile.parse::<Profile>()?.limits();
        }
        if let Some(factor) = args.take_key("scale") {
            self.limits = self.limits.clone().scaled(factor.parse()?);
        }
        if let Some(throttle) = args.take_key("throttle") {
            self.rules.throttle = throttle.parse()?;
        }
        if let Some(serverless) = args.take_key("serverless") {
            self.rules.serverless = serverless.parse()?;
        }
        args.reject_next()?;
        let service = self.service.take().ok_or("no service")?;
        let mut store = Arc::clone(service.store());
        drop(service);
        if let Some(folder) = &self.folder {
            store.close()?;
            drop(store);
            store = local::open(folder.path(), LocalConfig::default(), &Runtime::real())?;
        }
        let (limits, runtime) = (self.limits.clone(), self.runtime.clone());
        self.service = Some(Service::open_with(store, runtime, limits, self.rules)?);
        Ok(String::new())
    }

    fn service(&self) -> &Service {
        self.service.as_ref().expect("it is taken only while it is reopened")
    }

    fn execute<V: Verb>(&mut self, verb: V) -> Result<Response<V::Reply>, Failure> {
        let request = Request::new(self.principal.clone(), verb);
        self.reactor.block_on(self.service().execute(request))
    }

    fn conditions(&self, args: &mut ArgumentConsumer<'_>) -> Result<Conditions, Box<dyn Error>> {
        let mut etag = |name| args.take_key(name).map(|saved| self.etag(saved)).transpose();
        let (if_match, if_none_match) = (etag("match")?, etag("none-match")?);
        Ok(Conditions { if_match, if_none_match })
    }

    fn etag(&self, saved: &str) -> Result<EtagMatch, Box<dyn Error>> {
        if saved == "any" {
            return Ok(EtagMatch("*".to_owned()));
        }
        let etag = self.etags.get(saved).ok_or_else(|| format!("no etag {saved} was saved"))?;
        Ok(EtagMatch(etag.clone()))
    }
}

fn link(text: Option<&str>) -> Result<Link, Box<dyn Error>> {
    let text = text.ok_or("which link?")?;
    if text == "account" {
        return Ok(Link::default());
    }
    Link::parse(text).ok_or_else(|| format!("'{text}' is not a link").into())
}

fn value(text: Option<&str>) -> Result<Value, Box<dyn Error>> {
    Ok(json::parse(text.ok_or("which body?")?.as_bytes())?)
}

fn key(args: &mut ArgumentConsumer<'_>) -> Result<Option<PartitionKey>, Box<dyn Error>> {
    Ok(args
        .take_key("key")
        .map(PartitionKey::parse_json)
        .transpose()
        .map_err(ServiceError::from)?)
}

fn next_body<'a>(args: &mut ArgumentConsumer<'a>) -> Result<&'a str, Box<dyn Error>> {
    Ok(args.next_pos().ok_or("which body?")?)
}

/// A name or id that is too long to be written in a script: `LONG` stands for 2,000 letters.
fn stretched(text: &str) -> String {
    text.replace("LONG", &"x".repeat(2_000))
}

/// A batch names the operation that failed before its reason.
fn failure(error: ServiceError) -> Box<dyn Error> {
    if let ServiceError::Batch { at, error } = error {
        return format!("operation {at}: {error}").into();
    }
    error.into()
}

/// The effect, and the body without what the database added to it.
fn show_result(kind: EffectKind, body: Option<&Bytes>, system: bool) -> String {
    let body = body.map(|body| shown(body, system)).unwrap_or_default();
    format!("{kind:?}{}{body}\n", if body.is_empty() { "" } else { " " })
}

fn shown(body: &[u8], system: bool) -> String {
    let text = std::str::from_utf8(body).unwrap();
    if system {
        return text.to_owned();
    }
    let Value::Object(object) = json::parse(body).unwrap() else { return text.to_owned() };
    let own = object.into_iter().filter(|(name, _)| !name.starts_with('_'));
    Value::Object(own.collect::<Object>()).to_string()
}

fn show_feed(bodies: &[bytes::Bytes], rest: Option<&ResourceRest>, system: bool) -> String {
    let mut output = String::new();
    for body in bodies {
        writeln!(output, "{}", shown(body, system)).unwrap();
    }
    match rest {
        None => output.push_str("end\n"),
        Some(ResourceRest::AfterName(name)) => writeln!(output, "rest after {name}").unwrap(),
        Some(ResourceRest::AfterRows(count)) => {
            writeln!(output, "rest after {count} rows").unwrap()
        }
    }
    output
}
