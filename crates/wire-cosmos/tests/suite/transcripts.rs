//! Transcripts of the protocol: one request and its whole answer at a time.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use wire_cosmos::{EMULATOR_KEY, HttpRequest};

use crate::world::{READ_KEY, WRONG_KEY, World, claimed, sign};

/// Headers that say nothing about the request at hand.
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
            Some("wrong") => Some(WRONG_KEY),
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
