//! Transcripts of the protocol: one request and its whole answer at a time.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use goldenscript::ArgumentConsumer;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use runtime::{Clock as _, Millis};
use wire_cosmos::{EMULATOR_KEY, HttpHead};

use crate::provider;
use crate::world::{READ_KEY, WRONG_KEY, World, claimed, sign};

/// Headers that are irrelevant to the request at hand.
const QUIET: [&str; 14] = [
    "x-ms-activity-id",
    "x-ms-request-duration-ms",
    "x-ms-gatewayversion",
    "x-ms-serviceversion",
    "date",
    "content-type",
    "x-ms-request-charge",
    "x-ms-schemaversion",
    "x-ms-version",
    // The same position by its other names; see the test of headers.
    "x-ms-cosmos-item-llsn",
    "x-ms-cosmos-llsn",
    "x-ms-cosmos-quorum-acked-llsn",
    "x-ms-global-committed-lsn",
    "x-ms-quorum-acked-lsn",
];

impl goldenscript::Runner for World {
    type Command = goldenscript::Command;

    /// `METHOD /path [body] [header=value …] [key=…] [sign=…] [date=±secs] [keep=name:property]`,
    /// and `refuse` before it for a request that must change nothing. What is kept is a
    /// property of the body or, by a name that begins with `x-ms-`, a header. `wait 5`
    /// lets five seconds pass, `wait -5` sets the clock back; `scale` makes the splits that
    /// offers wait for, `direct` offers direct mode, `tidy` removes expired items and old history; `assign WHO ROLE SCOPE`
    /// gives a role, and `aad=WHO` presents a token of theirs; `rights` prints who may do what.
    /// `script`, `run` and `items` are in `procedures.rs`.
    fn run(
        &mut self,
        command: &goldenscript::Command,
        _: &goldenscript::Context,
    ) -> Result<String, Box<dyn Error>> {
        let mut args = command.consume_args();
        if command.name == "wait" {
            let secs: i64 = args.next_pos().ok_or("seconds")?.parse()?;
            let step = Duration::from_secs(secs.unsigned_abs());
            if secs < 0 {
                let back = self.clock.now().as_unix_ms() - secs.unsigned_abs() * 1_000;
                self.clock.set(Millis::from_unix_ms(back));
            } else {
                self.clock.advance(step);
            }
            return Ok(String::new());
        }
        if command.name == "rights" {
            return Ok(World::rights());
        }
        if command.name == "assign" {
            let mut next =
                || args.next_pos().map(str::to_owned).ok_or("a principal, a role, a scope");
            let (who, role, scope) = (next()?, next()?, next()?);
            self.assign(&who, &role, &scope)?;
            return Ok(String::new());
        }
        if let Some(output) = self.run_procedure_command(command)? {
            return Ok(output);
        }
        if command.name == "direct" {
            args.reject_next()?;
            self.offer_direct();
            return Ok(String::new());
        }
        if command.name == "scale" {
            args.reject_next()?;
            return Ok(format!("{} splits", self.scale()?));
        }
        if command.name == "tidy" {
            args.reject_next()?;
            return Ok(self.tidy()?);
        }
        if command.name != "refuse" {
            let method = Method::from_bytes(command.name.as_bytes())?;
            return Ok(shown(&self.exchange(method, args)?));
        }
        let method = Method::from_bytes(args.next_pos().ok_or("a method")?.as_bytes())?;
        let before = self.dump();
        let response = self.exchange(method, args)?;
        let status = response.status();
        let refused = status.is_client_error() || status == StatusCode::SERVICE_UNAVAILABLE;
        if !refused || self.dump() != before {
            return Err(format!("not refused: {response:?}").into());
        }
        Ok(refusal(&response))
    }
}

impl World {
    fn exchange(
        &mut self,
        method: Method,
        mut args: ArgumentConsumer<'_>,
    ) -> Result<http::Response<Bytes>, Box<dyn Error>> {
        let path = self.fill(args.next_pos().ok_or("a path")?);
        let body = args.next_pos().map(|argument| self.fill(argument)).unwrap_or_default();
        let key = match args.take_key("key") {
            None => Some(EMULATOR_KEY),
            Some("none") => None,
            Some("read") => Some(READ_KEY),
            Some("wrong") => Some(WRONG_KEY),
            Some(other) => return Err(format!("unknown key {other}").into()),
        };
        let signed = args.take_key("sign").map(str::to_owned);
        let date = self.date(args.take_key("date").map_or(Ok(0), str::parse)?);
        let bearer = args.take_key("aad").map(str::to_owned);
        let keep = args.take_key("keep").map(str::to_owned);
        let mut headers = HeaderMap::new();
        while let Some((name, value)) = args.next_key() {
            let value = self.fill(value);
            headers.insert(HeaderName::try_from(name)?, HeaderValue::from_bytes(value.as_bytes())?);
        }
        args.reject_next()?;
        headers.insert("x-ms-date", HeaderValue::from_str(&date)?);
        headers.entry("host").or_insert(HeaderValue::from_static("localhost:8081"));
        if let Some(who) = bearer {
            let token = provider::signed(&provider::claims(self, &who));
            headers.insert("authorization", HeaderValue::from_str(&token)?);
        }
        if let Some(key) = key {
            let (verb, resource, link) = match &signed {
                None => claimed(&method, &path),
                Some(text) => {
                    let mut parts = text.splitn(3, ' ').map(str::to_owned);
                    let mut part = || parts.next().unwrap_or_default();
                    (part(), part(), part())
                }
            };
            let token = sign(key, &verb, &resource, &link, &date);
            headers.entry("authorization").or_insert(HeaderValue::from_str(&token)?);
        }
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
            None => (path, None),
        };
        let head = HttpHead { method, path, query, headers, scheme: "http" };
        let response = self.ask(head, Bytes::from(body));
        if let Some((name, property)) = keep.as_deref().and_then(|keep| keep.split_once(':')) {
            self.kept.insert(name.to_owned(), kept(&response, property)?);
        }
        Ok(response)
    }
}

/// A property of the body, or a header.
fn kept(response: &http::Response<Bytes>, name: &str) -> Result<String, Box<dyn Error>> {
    if name.starts_with("x-ms-") {
        let value = response.headers().get(name).ok_or("nothing to keep")?;
        return Ok(value.to_str()?.to_owned());
    }
    let json: serde_json::Value = serde_json::from_slice(response.body())?;
    let value = json.get(name).and_then(|value| value.as_str()).ok_or("nothing to keep")?;
    Ok(value.to_owned())
}

/// Status, sub-status and message in one line.
pub(crate) fn refusal(response: &http::Response<Bytes>) -> String {
    let body: serde_json::Value = serde_json::from_slice(response.body()).unwrap_or_default();
    let message = body["message"].as_str().unwrap_or("(no message)");
    let message = message.split("\r\nActivityId: ").next().unwrap_or_default();
    let message = message.strip_prefix("Message: {\"Errors\":[\"").unwrap_or(message);
    let message = message.strip_suffix("\"]}").unwrap_or(message);
    let substatus = response.headers().get("x-ms-substatus");
    let substatus = substatus.map(|value| format!("/{}", value.to_str().unwrap()));
    format!("{}{} {message}\n", response.status().as_u16(), substatus.unwrap_or_default())
}

fn shown(response: &http::Response<Bytes>) -> String {
    let mut out = format!("{}\n", response.status());
    let mut lines: Vec<String> = response
        .headers()
        .iter()
        .filter(|(name, _)| !QUIET.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap_or("(bytes)")))
        .collect();
    lines.sort();
    for line in lines {
        writeln!(out, "{line}").unwrap();
    }
    let body = String::from_utf8_lossy(response.body());
    // The activity id in error texts is random by design.
    let body = body.split("\\r\\nActivityId: ").next().unwrap_or_default();
    if !body.is_empty() {
        writeln!(out, "{body}").unwrap();
    }
    out
}

#[test]
fn transcripts() {
    let count = run(World::new, |_| true);
    assert!(count > 0, "there are no scripts");
}

/// The form of a batch makes no difference to its result.
#[test]
fn transcripts_with_batches_in_hybrid_row() {
    let world = || World { hybrid: true, ..World::new() };
    let count = run(world, |text| text.contains("x-ms-cosmos-is-batch-request"));
    assert!(count > 0, "there are no scripts with batches");
}

/// Runs the scripts whose text is wanted, each in a world of its own.
fn run(world: impl Fn() -> World, wanted: impl Fn(&str) -> bool) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let paths: Vec<_> =
        paths.filter(|path| wanted(&std::fs::read_to_string(path).unwrap())).collect();
    for path in &paths {
        goldenscript::run(&mut world(), path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    paths.len()
}
