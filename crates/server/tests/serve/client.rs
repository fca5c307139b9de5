//! A small HTTP client that can also misbehave.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use runtime::{Clock as _, RealClock};
use sha2::Sha256;
use wire_cosmos::EMULATOR_KEY;

/// Longer than any limit of the server, even on a busy machine: only a hanging server
/// reaches it.
const PATIENCE: Duration = Duration::from_secs(300);

/// Between two looks at what another process does.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// Waits until `connections` connections are parked. The caller's is not among them.
pub(crate) fn wait_until_parked(address: SocketAddr, connections: u64) {
    let (mut stream, clock) = (connect(address), RealClock::new());
    let key = format!("authorization: Bearer {EMULATOR_KEY}\r\n");
    let mut parked = || {
        let counters = send(&mut stream, "GET", "/_orrery/counters", &key, "").json();
        counters["connections"]["parked"].as_u64().expect("a number")
    };
    while parked() < connections {
        assert!(clock.monotonic() < PATIENCE, "{} of {connections} are parked", parked());
        clock.sleep(PAUSE);
    }
}

/// Sends a request without a body and reads the answer.
pub(crate) fn get(stream: &mut impl Stream, path: &str) -> Reply {
    send(stream, "GET", path, "", "")
}

pub(crate) fn send(
    stream: &mut impl Stream,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Reply {
    try_send(stream, method, path, headers, body).expect("the server answers in time")
}

/// Like [`send`], for servers that may die meanwhile.
pub(crate) fn try_send(
    stream: &mut impl Stream,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> io::Result<Reply> {
    let len = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    try_read_reply(stream)
}

/// Like [`send`], signed with a key for a resource.
pub(crate) fn send_signed(
    stream: &mut impl Stream,
    key: &str,
    request: Signed<'_>,
    headers: &str,
    body: &str,
) -> Reply {
    let headers = format!("{}{headers}", request.headers(key));
    send(stream, request.method, request.path, &headers, body)
}

/// A request and what is signed of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signed<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) link: &'a str,
}

impl Signed<'_> {
    pub(crate) fn headers(self, key: &str) -> String {
        let now = Duration::from_secs(RealClock::new().now().as_unix_seconds());
        let date = httpdate::fmt_http_date(std::time::UNIX_EPOCH + now);
        let text = format!(
            "{}\n{}\n{}\n{}\n\n",
            self.method.to_ascii_lowercase(),
            self.kind,
            self.link,
            date.to_ascii_lowercase()
        );
        let key = STANDARD.decode(key).expect("keys are base64");
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any length will do");
        mac.update(text.as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        format!(
            "authorization: type%3Dmaster%26ver%3D1.0%26sig%3D{signature}\r\nx-ms-date: {date}\r\n"
        )
    }
}

pub(crate) const CREATE_DATABASE: Signed<'_> =
    Signed { method: "POST", path: "/dbs", kind: "dbs", link: "" };
pub(crate) const READ_ACCOUNT: Signed<'_> = Signed { method: "GET", path: "/", kind: "", link: "" };

pub(crate) fn create_database(stream: &mut impl Stream, id: &str) -> Reply {
    send_signed(stream, EMULATOR_KEY, CREATE_DATABASE, "", &format!(r#"{{"id":"{id}"}}"#))
}

pub(crate) fn read_database(stream: &mut impl Stream, id: &str) -> Reply {
    let path = format!("/dbs/{id}");
    let link = format!("dbs/{id}");
    let request = Signed { method: "GET", path: &path, kind: "dbs", link: &link };
    send_signed(stream, EMULATOR_KEY, request, "", "")
}

/// Reads one answer, and not a byte more.
pub(crate) fn read_reply(stream: &mut impl Stream) -> Reply {
    try_read_reply(stream).expect("the server answers in time")
}

fn try_read_reply(stream: &mut impl Stream) -> io::Result<Reply> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let head = String::from_utf8(head).expect("heads are text");
    let status = head.get(9..12).and_then(|status| status.parse().ok()).expect("a status line");
    let mut reply = Reply { status, head, body: String::new() };
    let len: usize = reply.header("content-length").map_or(0, |len| len.parse().expect("a number"));
    let mut body = vec![0; len];
    stream.read_exact(&mut body)?;
    reply.body = String::from_utf8(body).expect("bodies are text");
    Ok(reply)
}

/// Reads until the server closes. A reset counts as closing.
pub(crate) fn read_to_end(stream: &mut impl Stream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the server neither answered nor closed: {error}"),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends raw bytes, says that there are no more, and reads all answers.
pub(crate) fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = connect(address);
    // The server may have answered and closed before everything was sent.
    let _sent = stream.write_all(bytes);
    let _closed = stream.shutdown(Shutdown::Write);
    read_to_end(&mut stream)
}
