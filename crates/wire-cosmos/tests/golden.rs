//! Transcripts of the protocol: one request and its whole answer at a time.
//!
//! Requests are signed as the SDKs sign them, by code of our own here, so that
//! the server's reading of the rule is held against a second one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, Mac};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use model::limits::Limits;
use runtime::Runtime;
use service::Service;
use sha2::Sha256;
use wire_cosmos::{AccountKeys, EMULATOR_KEY, Gateway, GatewayConfig, HttpRequest};

/// A key that may only read.
const READ_KEY: &str = "cmVhZC1vbmx5LWtleS1vZi10aGUtdGVzdHM=";
/// Headers that say nothing about the request at hand.
const QUIET: [&str; 7] = [
    "x-ms-activity-id",
    "x-ms-request-duration-ms",
    "x-ms-gatewayversion",
    "x-ms-serviceversion",
    "date",
    "content-type",
    "x-ms-request-charge",
];

struct World {
    gateway: Gateway,
    runtime: Runtime,
    tokio: tokio::runtime::Runtime,
    /// Values kept from earlier answers, put in for `{name}`.
    kept: BTreeMap<String, String>,
}

impl World {
    fn new() -> World {
        let runtime = Runtime::simulated(1);
        let service = Service::open(storage::memory::create(), runtime.clone(), Limits::default());
        let config = GatewayConfig {
            keys: AccountKeys::new(&[EMULATOR_KEY], &[READ_KEY]).unwrap(),
            skew_secs_max: 900,
        };
        World {
            gateway: Gateway::new(Arc::new(service.unwrap()), runtime.clone(), config),
            tokio: tokio::runtime::Builder::new_current_thread().build().unwrap(),
            runtime,
            kept: BTreeMap::new(),
        }
    }

    fn date(&self, offset_secs: i64) -> String {
        let now = self.runtime.clock.now().as_unix_seconds();
        let secs = now.saturating_add_signed(offset_secs);
        httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_secs(secs))
    }

    fn fill(&self, text: &str) -> String {
        let fill = |text: String, (name, value): (&String, &String)| {
            text.replace(&format!("{{{name}}}"), value)
        };
        self.kept.iter().fold(text.to_owned(), fill)
    }
}

impl goldenscript::Runner for World {
    type Command = goldenscript::Command;

    /// `METHOD /path [body] [header=value …] [key=…] [sign=…] [date=±secs] [keep=name:property]`
    fn run(
        &mut self,
        command: &goldenscript::Command,
        _: &goldenscript::Context,
    ) -> Result<String, Box<dyn Error>> {
        let method = Method::from_bytes(command.name.as_bytes())?;
        let mut args = command.consume_args();
        let path = self.fill(args.next_pos().ok_or("a path")?);
        let body = args.next_pos().map(|argument| self.fill(argument)).unwrap_or_default();
        let key = match args.take_key("key") {
            None => Some(EMULATOR_KEY),
            Some("none") => None,
            Some("read") => Some(READ_KEY),
            Some("wrong") => Some("d3Jvbmcta2V5LXdyb25nLWtleS13cm9uZw=="),
            Some(other) => return Err(format!("unknown key {other}").into()),
        };
        let signed = args.take_key("sign").map(str::to_owned);
        let date = self.date(args.take_key("date").map_or(Ok(0), str::parse)?);
        let keep = args.take_key("keep").map(str::to_owned);
        let mut headers = HeaderMap::new();
        while let Some((name, value)) = args.next_key() {
            headers.insert(HeaderName::try_from(name)?, HeaderValue::from_str(&self.fill(value))?);
        }
        args.reject_next()?;
        headers.insert("x-ms-date", HeaderValue::from_str(&date)?);
        headers.insert("host", HeaderValue::from_static("localhost:8081"));
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
        let request =
            HttpRequest { method, path, headers, body: Some(Bytes::from(body)), scheme: "http" };
        let response = self.tokio.block_on(self.gateway.answer(request));
        if let Some((name, property)) = keep.as_deref().and_then(|keep| keep.split_once(':')) {
            let json: serde_json::Value = serde_json::from_slice(response.body())?;
            let value =
                json.get(property).and_then(|value| value.as_str()).ok_or("nothing to keep")?;
            self.kept.insert(name.to_owned(), value.to_owned());
        }
        Ok(shown(&response))
    }
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

/// What an SDK signs for a path.
fn claimed(method: &Method, path: &str) -> (String, String, String) {
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
            out.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap_or(b'?'));
        } else {
            out.push(byte);
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn sign(key: &str, verb: &str, resource: &str, link: &str, date: &str) -> String {
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

#[test]
fn transcripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        goldenscript::run(&mut World::new(), &path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        count += 1;
    }
    assert!(count > 0, "there are no scripts");
}
