//! A client that costs as little as possible: it shares the machine with the servers.

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use runtime::{Clock as _, RealClock};
use sha2::Sha256;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use wire_cosmos::EMULATOR_KEY;

const CONTAINER: &str = "dbs/bench/colls/items";

/// Bytes of text that make a document one kilobyte.
const TEXT_BYTES: usize = 800;

/// Bytes of a body that are read at once.
const PIECE_BYTES: usize = 64 << 10;

/// A typical document: a few short fields and a text. It barely compresses, or a gigabyte
/// would not be one.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) id: String,
    pub(crate) key: String,
    pub(crate) body: String,
}

impl Document {
    pub(crate) fn new(group: u64, number: u64) -> Document {
        let (id, key) = (format!("{group}-{number}"), format!("key-{group}"));
        let text = text(group << 32 | number);
        let body = format!(
            r#"{{"id":"{id}","pk":"{key}","number":{number},"price":{number}.25,"open":true,"tags":["new","blue"],"address":{{"city":"Ulm","zip":"{group:05}"}},"text":"{text}"}}"#
        );
        Document { id, key, body }
    }

    /// One that costs as little as possible.
    pub(crate) fn small(group: u64, number: u64) -> Document {
        let (id, key) = (format!("{number}"), format!("key-{group}"));
        let body = format!(r#"{{"id":"{id}","pk":"{key}"}}"#);
        Document { id, key, body }
    }
}

fn text(seed: u64) -> String {
    const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(LETTERS[usize::try_from(state >> 58).unwrap()])
    };
    (0..TEXT_BYTES).map(|_| next()).collect()
}

#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    key: Hmac<Sha256>,
    clock: RealClock,
    /// The head of the last answer, and what came with it.
    answer: Vec<u8>,
    /// The rest is read into this, again and again, and never looked at.
    discarded: Box<[u8]>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let key = Hmac::new_from_slice(&STANDARD.decode(EMULATOR_KEY).unwrap()).unwrap();
        let discarded = vec![0; PIECE_BYTES].into();
        Client { stream, key, clock: RealClock::new(), answer: Vec::new(), discarded }
    }

    /// Creates the database and the container. No throughput is requested, so none is
    /// enforced.
    pub(crate) async fn prepare(&mut self) {
        self.prepare_with("").await;
    }

    /// Creates the database and the container, with these headers.
    pub(crate) async fn prepare_with(&mut self, headers: &str) {
        let database = self.send("POST", "dbs", "", "", r#"{"id":"bench"}"#).await;
        let container =
            r#"{"id":"items","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
        let container = self.send("POST", "colls", "dbs/bench", headers, container).await;
        let made = |status| [200, 201].contains(&status);
        assert!(made(database) && made(container), "{database} {container}");
    }

    pub(crate) async fn create(&mut self, document: &Document) -> u16 {
        self.send("POST", "docs", CONTAINER, &key_header(&document.key), &document.body).await
    }

    pub(crate) async fn read(&mut self, document: &Document) -> u16 {
        let link = format!("{CONTAINER}/docs/{}", document.id);
        self.send("GET", "docs", &link, &key_header(&document.key), "").await
    }

    /// Creates documents of one key atomically.
    pub(crate) async fn create_all(&mut self, documents: &[Document]) {
        assert_eq!(self.try_create_all(documents).await, 200);
    }

    pub(crate) async fn try_create_all(&mut self, documents: &[Document]) -> u16 {
        let operation = |document: &Document| {
            format!(r#"{{"operationType":"Create","resourceBody":{}}}"#, document.body)
        };
        self.batch(documents, operation).await
    }

    /// Reads documents of one key at once.
    pub(crate) async fn read_all(&mut self, documents: &[Document]) -> u16 {
        let operation =
            |document: &Document| format!(r#"{{"operationType":"Read","id":"{}"}}"#, document.id);
        self.batch(documents, operation).await
    }

    /// A page of documents of maximal length.
    pub(crate) async fn list(&mut self) -> u16 {
        let path = format!("{CONTAINER}/docs");
        let headers = "x-ms-max-item-count: 10000\r\n";
        self.exchange(("GET", &path), "docs", CONTAINER, headers, b"").await
    }

    pub(crate) async fn create_user(&mut self, name: &str) -> u16 {
        self.send("POST", "users", "dbs/bench", "", &format!(r#"{{"id":"{name}"}}"#)).await
    }

    /// Asks all users, as many as one query covers.
    pub(crate) async fn query_users(&mut self) -> u16 {
        let headers = "x-ms-documentdb-isquery: True\r\n";
        let body = r#"{"query":"SELECT COUNT(1) AS n FROM c WHERE CONTAINS(c.id, '9')"}"#;
        self.send("POST", "users", "dbs/bench", headers, body).await
    }

    /// Stores a script, or replaces the one of that name.
    pub(crate) async fn store_script(&mut self, kind: &str, id: &str, text: &str) -> u16 {
        let body = serde_json::json!({ "id": id, "body": text }).to_string();
        let upsert = "x-ms-documentdb-is-upsert: True\r\n";
        self.send("POST", kind, CONTAINER, upsert, &body).await
    }

    /// Runs a stored procedure with a JSON array of arguments.
    pub(crate) async fn execute(&mut self, name: &str, key: &str, arguments: &str) -> u16 {
        let link = format!("{CONTAINER}/sprocs/{name}");
        let (headers, body) = (key_header(key), arguments.as_bytes());
        self.exchange(("POST", &link), "sprocs", &link, &headers, body).await
    }

    /// Asks the documents of a key.
    pub(crate) async fn query(&mut self, key: &str, text: &str) -> u16 {
        let headers = format!("{}x-ms-documentdb-isquery: True\r\n", key_header(key));
        let body = serde_json::json!({ "query": text }).to_string();
        self.send("POST", "docs", CONTAINER, &headers, &body).await
    }

    /// The physical partition that gave the last answer.
    pub(crate) fn range(&self) -> Option<String> {
        let head = String::from_utf8_lossy(&self.answer);
        let range = head
            .lines()
            .find_map(|line| line.strip_prefix("x-ms-documentdb-partitionkeyrangeid: "));
        range.map(str::to_owned)
    }

    /// How many resources the last answer had, if it said so.
    pub(crate) fn item_count(&self) -> Option<u64> {
        let head = String::from_utf8_lossy(&self.answer);
        let count = head.lines().find_map(|line| line.strip_prefix("x-ms-item-count: "));
        count?.parse().ok()
    }

    /// The charge of the last answer.
    pub(crate) fn charge(&self) -> f64 {
        let head = String::from_utf8_lossy(&self.answer);
        let charge = head.lines().find_map(|line| line.strip_prefix("x-ms-request-charge: "));
        charge.unwrap().parse().unwrap()
    }

    async fn batch(
        &mut self,
        documents: &[Document],
        operation: impl Fn(&Document) -> String,
    ) -> u16 {
        let operations: Vec<String> = documents.iter().map(operation).collect();
        let body = format!("[{}]", operations.join(","));
        self.send_batch(&documents[0].key, body.as_bytes()).await
    }

    /// Operations on documents of one key, in either form.
    pub(crate) async fn send_batch(&mut self, key: &str, body: &[u8]) -> u16 {
        let batch = "x-ms-cosmos-is-batch-request: True\r\nx-ms-cosmos-batch-atomic: True\r\n";
        let headers = format!("{}{batch}", key_header(key));
        self.send_bytes("POST", "docs", CONTAINER, &headers, body).await
    }

    /// Sends a signed request to a feed (`POST`) or a resource and reads the answer.
    async fn send(
        &mut self,
        method: &str,
        kind: &str,
        link: &str,
        headers: &str,
        body: &str,
    ) -> u16 {
        self.send_bytes(method, kind, link, headers, body.as_bytes()).await
    }

    async fn send_bytes(
        &mut self,
        method: &str,
        kind: &str,
        link: &str,
        headers: &str,
        body: &[u8],
    ) -> u16 {
        let path = if method == "POST" { format!("{link}/{kind}") } else { link.to_owned() };
        self.exchange((method, &path), kind, link, headers, body).await
    }

    async fn exchange(
        &mut self,
        (method, path): (&str, &str),
        kind: &str,
        link: &str,
        headers: &str,
        body: &[u8],
    ) -> u16 {
        let (path, len, signed) =
            (path.trim_start_matches('/'), body.len(), self.sign(method, kind, link));
        let request = format!(
            "{method} /{path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {len}\r\nx-ms-version: 2020-07-15\r\n{signed}{headers}\r\n"
        );
        self.stream.write_all(&[request.as_bytes(), body].concat()).await.unwrap();
        self.receive().await
    }

    fn sign(&self, method: &str, kind: &str, link: &str) -> String {
        let now = Duration::from_secs(self.clock.now().as_unix_seconds());
        let date = httpdate::fmt_http_date(std::time::UNIX_EPOCH + now);
        let (method, lower) = (method.to_ascii_lowercase(), date.to_ascii_lowercase());
        let mut mac = self.key.clone();
        mac.update(format!("{method}\n{kind}\n{link}\n{lower}\n\n").as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        format!(
            "authorization: type%3Dmaster%26ver%3D1.0%26sig%3D{signature}\r\nx-ms-date: {date}\r\n"
        )
    }

    async fn receive(&mut self) -> u16 {
        self.answer.clear();
        loop {
            let read = self.stream.read_buf(&mut self.answer).await.unwrap();
            assert!(read > 0, "the server closed");
            let end = self.answer.windows(4).position(|window| window == b"\r\n\r\n");
            let Some(end) = end else { continue };
            let head = std::str::from_utf8(&self.answer[..end]).unwrap();
            let len = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>())
            });
            let status = head[9..12].parse().unwrap();
            let whole = end + 4 + len.map_or(0, |len| len.unwrap());
            let mut rest = whole - self.answer.len();
            while rest > 0 {
                let piece = rest.min(PIECE_BYTES);
                let read = self.stream.read(&mut self.discarded[..piece]).await.unwrap();
                assert!(read > 0, "the server closed");
                rest -= read;
            }
            return status;
        }
    }
}

fn key_header(key: &str) -> String {
    format!("x-ms-documentdb-partitionkey: [\"{key}\"]\r\n")
}
