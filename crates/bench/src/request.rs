//! Signed requests to one container.

use anyhow::{Context as _, Result};
use model::epk::{Epk, EpkRange};
use model::partition_key::{PartitionKey, PartitionKeyDefinition};

use crate::document::Documents;
use crate::sign::Signer;

/// Operations in a batch and in a bulk request: as many as the service allows.
pub(crate) const BATCH: u64 = 100;

/// Items on a page of a query, and of the change feed.
const QUERY_PAGE: u64 = 1_000;
const FEED_PAGE: u64 = 100;

const DATABASE: &str = "bench";
const CONTAINER: &str = "dbs/bench/colls/items";

/// Writes requests into buffers. All of them use the same container.
#[derive(Debug)]
pub(crate) struct Requests {
    signer: Signer,
    documents: Documents,
    /// The one physical partition that bulk requests and the feed are sent to.
    range: (String, EpkRange),
    definition: PartitionKeyDefinition,
    body: String,
}

impl Requests {
    pub(crate) fn new(key: &str, documents: Documents) -> Result<Requests> {
        let range = ("0".to_owned(), EpkRange::full());
        let definition = PartitionKeyDefinition::hash(["/pk"]).context("a path of one name")?;
        let body = String::new();
        Ok(Requests { signer: Signer::new(key)?, documents, range, definition, body })
    }

    pub(crate) fn documents(&self) -> Documents {
        self.documents
    }

    /// Takes the first of the physical partitions that a server has listed. Returns how many
    /// there are.
    pub(crate) fn use_ranges(&mut self, listed: &[u8]) -> Result<usize> {
        let listed: serde_json::Value = serde_json::from_slice(listed)?;
        let ranges = listed["PartitionKeyRanges"].as_array().context("a list of ranges")?;
        let first = ranges.first().context("a container has a partition")?;
        let text = |name: &str| first[name].as_str().context("a range has bounds and an id");
        let range = EpkRange::new(
            Epk::from_hex(text("minInclusive")?)?,
            Epk::from_hex(text("maxExclusive")?)?,
        );
        self.range = (text("id")?.to_owned(), range);
        Ok(ranges.len())
    }

    fn in_range(&self, number: u64) -> bool {
        let key = PartitionKey::new([self.documents.key(number).as_str()]);
        self.definition.locate(&key).is_ok_and(|epk| self.range.1.contains(&epk))
    }

    pub(crate) fn create_database(&mut self, out: &mut Vec<u8>) {
        self.body = format!(r#"{{"id":"{DATABASE}"}}"#);
        self.post("dbs", "", "", out);
    }

    pub(crate) fn drop_database(&mut self, out: &mut Vec<u8>) {
        self.body.clear();
        let link = format!("dbs/{DATABASE}");
        self.send("DELETE", &link, "dbs", &link, "", out);
    }

    /// With the throughput, if one is given; otherwise with what the server gives.
    pub(crate) fn create_container(&mut self, throughput: Option<u32>, out: &mut Vec<u8>) {
        let key = r#"{"paths":["/pk"],"kind":"Hash","version":2}"#;
        self.body = format!(r#"{{"id":"items","partitionKey":{key}}}"#);
        let header = throughput.map(|units| format!("x-ms-offer-throughput: {units}\r\n"));
        self.post("colls", &format!("dbs/{DATABASE}"), &header.unwrap_or_default(), out);
    }

    pub(crate) fn list_ranges(&mut self, out: &mut Vec<u8>) {
        self.body.clear();
        self.send("GET", &format!("{CONTAINER}/pkranges"), "pkranges", CONTAINER, "", out);
    }

    pub(crate) fn create(&mut self, number: u64, out: &mut Vec<u8>) {
        self.write_document(number, 0, "", out);
    }

    pub(crate) fn upsert(&mut self, number: u64, version: u64, out: &mut Vec<u8>) {
        self.write_document(number, version, "x-ms-documentdb-is-upsert: True\r\n", out);
    }

    fn write_document(&mut self, number: u64, version: u64, headers: &str, out: &mut Vec<u8>) {
        self.body.clear();
        self.documents.write(number, version, &mut self.body);
        let headers = format!("{}{headers}", self.key_header(number));
        self.post("docs", CONTAINER, &headers, out);
    }

    pub(crate) fn replace(&mut self, number: u64, version: u64, out: &mut Vec<u8>) {
        self.body.clear();
        self.documents.write(number, version, &mut self.body);
        self.send_to_item("PUT", number, out);
    }

    pub(crate) fn read(&mut self, number: u64, out: &mut Vec<u8>) {
        self.body.clear();
        self.send_to_item("GET", number, out);
    }

    pub(crate) fn patch(&mut self, number: u64, out: &mut Vec<u8>) {
        let increment = r#"{"op":"incr","path":"/v","value":1}"#;
        self.body = format!(r#"{{"operations":[{increment}]}}"#);
        self.send_to_item("PATCH", number, out);
    }

    /// Creates documents of one key atomically. The key is theirs alone.
    pub(crate) fn batch(&mut self, first: u64, out: &mut Vec<u8>) {
        let key = format!("b{first}");
        self.write_operations(first..first + BATCH, |documents, number, body| {
            documents.write_keyed(&key, number, 0, body);
        });
        let flags = "x-ms-cosmos-is-batch-request: True\r\nx-ms-cosmos-batch-atomic: True\r\n";
        self.post("docs", CONTAINER, &format!("{}{flags}", key_header(&key)), out);
    }

    /// Creates documents of many keys of one physical partition. Returns the number after the
    /// last of them.
    pub(crate) fn bulk(&mut self, first: u64, out: &mut Vec<u8>) -> u64 {
        let numbers = (first..).filter(|number| self.in_range(*number));
        let numbers: Vec<u64> = numbers.zip(0..BATCH).map(|(number, _)| number).collect();
        let next = numbers.last().map_or(first, |last| last + 1);
        self.write_operations(numbers.into_iter(), |documents, number, body| {
            documents.write(number, 0, body);
            body.push_str(&format!(r#","partitionKey":"[\"{}\"]""#, documents.key(number)));
        });
        let headers = format!(
            "x-ms-cosmos-is-batch-request: True\r\nx-ms-cosmos-batch-atomic: False\r\n\
             x-ms-cosmos-batch-continue-on-error: True\r\nx-ms-documentdb-partitionkeyrangeid: {}\r\n",
            self.range.0
        );
        self.post("docs", CONTAINER, &headers, out);
        next
    }

    fn write_operations(
        &mut self,
        numbers: impl Iterator<Item = u64>,
        write: impl Fn(Documents, u64, &mut String),
    ) {
        self.body.clear();
        for number in numbers {
            self.body.push(if self.body.is_empty() { '[' } else { ',' });
            self.body.push_str(r#"{"operationType":"Create","resourceBody":"#);
            write(self.documents, number, &mut self.body);
            self.body.push('}');
        }
        self.body.push(']');
    }

    /// A page of changes after an etag, or the first one.
    pub(crate) fn feed(&mut self, after: &[u8], out: &mut Vec<u8>) {
        self.body.clear();
        let mut headers = format!(
            "a-im: Incremental feed\r\nx-ms-max-item-count: {FEED_PAGE}\r\n\
             x-ms-documentdb-partitionkeyrangeid: {}\r\n",
            self.range.0
        );
        if !after.is_empty() {
            headers.push_str(&format!("if-none-match: {}\r\n", String::from_utf8_lossy(after)));
        }
        self.send("GET", &format!("{CONTAINER}/docs"), "docs", CONTAINER, &headers, out);
    }

    /// A page of a query, with a key if it is on one.
    pub(crate) fn query(
        &mut self,
        text: &str,
        key: Option<&str>,
        after: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) {
        self.body = format!(r#"{{"query":{},"parameters":[]}}"#, serde_json::Value::from(text));
        // Ours merges the answers of partitions on request; others know no such header.
        let scope = "x-ms-documentdb-query-enablecrosspartition: True\r\n\
                     x-orrery-query-merge: True\r\n";
        let mut headers = key.map_or_else(|| scope.to_owned(), key_header);
        headers.push_str(&format!(
            "x-ms-documentdb-isquery: True\r\nx-ms-max-item-count: {QUERY_PAGE}\r\n"
        ));
        if let Some(after) = after {
            let after = String::from_utf8_lossy(after);
            headers.push_str(&format!("x-ms-continuation: {after}\r\n"));
        }
        let path = format!("{CONTAINER}/docs");
        let kind = "content-type: application/query+json\r\n";
        self.send_as(kind, ("POST", &path), ("docs", CONTAINER), &headers, out);
    }

    fn key_header(&self, number: u64) -> String {
        key_header(&self.documents.key(number))
    }

    fn send_to_item(&mut self, method: &'static str, number: u64, out: &mut Vec<u8>) {
        let link = format!("{CONTAINER}/docs/i{number}");
        let headers = self.key_header(number);
        self.send(method, &link, "docs", &link, &headers, out);
    }

    fn post(&mut self, kind: &str, parent: &str, headers: &str, out: &mut Vec<u8>) {
        let path = if parent.is_empty() { kind.to_owned() } else { format!("{parent}/{kind}") };
        self.send("POST", &path, kind, parent, headers, out);
    }

    fn send(
        &mut self,
        method: &'static str,
        path: &str,
        kind: &str,
        link: &str,
        headers: &str,
        out: &mut Vec<u8>,
    ) {
        let json = "content-type: application/json\r\n";
        self.send_as(json, (method, path), (kind, link), headers, out);
    }

    fn send_as(
        &mut self,
        content: &str,
        (method, path): (&'static str, &str),
        (kind, link): (&str, &str),
        headers: &str,
        out: &mut Vec<u8>,
    ) {
        let length = self.body.len().to_string();
        let parts = [
            method,
            " /",
            path,
            " HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\nx-ms-version: 2020-07-15\r\ncontent-length: ",
            &length,
            "\r\n",
            content,
            headers,
        ];
        parts.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
        self.signer.write(method, kind, link, out);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.body.as_bytes());
    }
}

fn key_header(key: &str) -> String {
    format!("x-ms-documentdb-partitionkey: [\"{key}\"]\r\n")
}
