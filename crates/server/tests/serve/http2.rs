//! HTTP/2 on the same port: plain with prior knowledge, and agreed on within TLS.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use wire_cosmos::{BODY_BYTES_MAX, EMULATOR_KEY};

use crate::client::{CREATE_DATABASE, READ_ACCOUNT, Signed, connect, read_database};
use crate::program::Program;

type Sender = SendRequest<Full<Bytes>>;

/// Runs a client on this thread.
fn run<T>(client: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("there is room for a runtime").block_on(client)
}

async fn open(program: &Program) -> Sender {
    let tcp = TcpStream::connect(program.address()).await.expect("the server listens");
    // As every client does: otherwise each window of a body waits for a timer.
    tcp.set_nodelay(true).expect("it can be set");
    let (sender, connection) =
        handshake(TokioExecutor::new(), TokioIo::new(tcp)).await.expect("the server speaks it");
    tokio::spawn(connection);
    sender
}

fn request(program: &Program, method: &str, path: &str, body: String) -> Request<Full<Bytes>> {
    let uri = format!("http://localhost:{}{path}", program.address().port());
    Request::builder()
        .method(method)
        .uri(uri)
        .body(Full::new(Bytes::from(body)))
        .expect("a request")
}

fn signed(program: &Program, what: Signed<'_>, body: String) -> Request<Full<Bytes>> {
    let mut request = request(program, what.method, what.path, body);
    for line in what.headers(EMULATOR_KEY).lines() {
        let (name, value) = line.split_once(": ").expect("a header");
        let name: http::HeaderName = name.parse().expect("a name");
        request.headers_mut().insert(name, value.parse().expect("a value"));
    }
    request
}

async fn send(sender: &mut Sender, request: Request<Full<Bytes>>) -> (StatusCode, String) {
    let answer = sender.send_request(request).await.expect("the server answers");
    let status = answer.status();
    let body = answer.into_body().collect().await.expect("the answer is whole").to_bytes();
    (status, String::from_utf8(body.to_vec()).expect("bodies are text"))
}

#[test]
fn a_client_that_knows_is_served() {
    let program = Program::in_memory();
    run(async {
        let mut sender = open(&program).await;
        let health = send(&mut sender, request(&program, "GET", "/_orrery/health", String::new()));
        assert_eq!(health.await.0, 200);
        let create = signed(&program, CREATE_DATABASE, r#"{"id":"two"}"#.to_owned());
        assert_eq!(send(&mut sender, create).await.0, 201);
        let (status, body) = send(&mut sender, signed(&program, READ_ACCOUNT, String::new())).await;
        let endpoint = format!("http://localhost:{}/", program.address().port());
        assert!(status == 200 && body.contains(&endpoint), "{body}");
        let unsigned = request(&program, "GET", "/dbs", String::new());
        assert_eq!(send(&mut sender, unsigned).await.0, 401);
    });
    assert_eq!(read_database(&mut connect(program.address()), "two").status, 200);
}

#[test]
fn many_requests_share_a_connection() {
    let program = Program::in_memory();
    run(async {
        let sender = open(&program).await;
        // More at a time than the server allows: the client waits, and none is refused.
        let requests = (0..1000).map(|number| {
            let body = format!(r#"{{"id":"db{}"}}"#, number % 10);
            let request = signed(&program, CREATE_DATABASE, body);
            let mut sender = sender.clone();
            tokio::spawn(async move {
                sender.ready().await.expect("the connection lives");
                send(&mut sender, request).await.0
            })
        });
        let mut created = 0;
        for answer in requests.collect::<Vec<_>>() {
            match answer.await.unwrap() {
                StatusCode::CREATED => created += 1,
                status => assert_eq!(status, StatusCode::CONFLICT),
            }
        }
        assert_eq!(created, 10);
    });
}

#[test]
fn bodies_are_bounded_here_as_well() {
    let program = Program::in_memory();
    let body = |len: usize| format!(r#"{{"id":"db","padding":"{}"}}"#, "x".repeat(len - 24));
    run(async {
        let mut sender = open(&program).await;
        for len in [BODY_BYTES_MAX + 1, 20 << 20] {
            let large = signed(&program, CREATE_DATABASE, body(len));
            assert_eq!(send(&mut sender, large).await.0, 413, "{len}");
        }
        let allowed = signed(&program, CREATE_DATABASE, body(BODY_BYTES_MAX));
        assert_ne!(send(&mut sender, allowed).await.0, 413);
        // Finished requests gave their memory back: more than the budget goes through.
        for _ in 0..70 {
            let large = request(&program, "POST", "/dbs", body(BODY_BYTES_MAX));
            assert_eq!(send(&mut sender, large).await.0, 401);
        }
    });
}

#[test]
fn heads_are_bounded_here_as_well() {
    let program = Program::in_memory();
    run(async {
        let mut sender = open(&program).await;
        let with_padding = |len: usize| {
            let mut request = request(&program, "GET", "/_orrery/health", String::new());
            request.headers_mut().insert("x-padding", "x".repeat(len).parse().unwrap());
            request
        };
        assert_eq!(send(&mut sender, with_padding(20_000)).await.0, 200);
        assert_eq!(send(&mut sender, with_padding(40_000)).await.0, 431);
        assert_eq!(send(&mut sender, with_padding(1)).await.0, 200, "the connection goes on");
    });
}

#[test]
fn odd_methods_are_refused() {
    let program = Program::in_memory();
    run(async {
        let mut sender = open(&program).await;
        let mut connect = request(&program, "GET", "/", String::new());
        *connect.method_mut() = Method::CONNECT;
        assert!(send(&mut sender, connect).await.0.is_client_error());
        let odd = request(&program, "BREW", "/_orrery/health", String::new());
        assert_eq!(send(&mut sender, odd).await.0, 405);
    });
}

#[cfg(unix)]
mod stopping {
    use rustix::process::Signal;

    use super::*;
    use crate::frames::{Frame, GOAWAY, HEADERS, Line, NO_ERROR, PING, frame};

    #[test]
    fn idle_connections_are_told_to_go() {
        let program = Program::in_memory();
        let mut line = Line::open(program.address());
        line.ask_health(1);
        program.signal(Signal::TERM);
        assert_eq!(line.read_goaway(), Some(NO_ERROR));
        // This client answers no pings and does not close: the server does not wait for it.
        assert_eq!(program.wait().0.code(), Some(0));
        assert_eq!(line.read_until(|frame| ![GOAWAY, PING].contains(&frame.kind)), None);
    }

    #[test]
    fn a_stream_that_was_begun_is_finished() {
        let program = Program::in_memory();
        let mut line = Line::open(program.address());
        let head = crate::frames::get_block("/dbs");
        let with_length = [&head[..], &[0x0F, 0x0D, 1], b"2"].concat();
        line.send(&frame(HEADERS, crate::frames::END_HEADERS, 1, &with_length));
        line.ask_health(3);
        program.signal(Signal::TERM);
        assert_eq!(line.read_goaway(), Some(NO_ERROR));
        line.send(&frame(crate::frames::DATA, crate::frames::END_STREAM, 1, b"{}"));
        let answer = |frame: &Frame| frame.stream == 1 && frame.kind == HEADERS;
        assert!(line.read_until(answer).is_some());
        assert_eq!(program.wait().0.code(), Some(0));
    }
}
