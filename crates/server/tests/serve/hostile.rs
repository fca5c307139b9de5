//! Clients that are broken, slow or malicious.

use std::io::Write as _;
use std::net::Shutdown;

use wire_cosmos::{BODY_BYTES_MAX, EMULATOR_KEY};

use crate::client::{
    CREATE_DATABASE, READ_ACCOUNT, Signed, connect, create_database, exchange, get, read_database,
    read_reply, read_to_end, send, send_signed, wait_until_parked,
};
use crate::program::Program;

const OTHER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

#[test]
fn wrong_keys_stay_outside() {
    let program =
        Program::start(&std::env::temp_dir(), &["--in-memory", "--read-only-key", OTHER_KEY]);
    let mut stream = connect(program.address());
    let wrong = OTHER_KEY.replace('A', "B");
    assert_eq!(send_signed(&mut stream, &wrong, READ_ACCOUNT, "", "").status, 401);
    assert_eq!(get(&mut stream, "/").status, 401);
    assert_eq!(send_signed(&mut stream, OTHER_KEY, READ_ACCOUNT, "", "").status, 200);
    let write = send_signed(&mut stream, OTHER_KEY, CREATE_DATABASE, "", r#"{"id":"db"}"#);
    assert_eq!(write.status, 403);
    assert_eq!(read_database(&mut stream, "db").status, 404);
}

#[test]
fn garbage_gets_400_and_the_door() {
    let program = Program::in_memory();
    let garbage: [&[u8]; 9] = [
        b"\r\n\r\n\0\0\0\0",
        b"hello\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\na: \x01\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"\xFF\xFE\xFD\xFC\r\n\r\n",
    ];
    for bytes in garbage {
        let replies = exchange(program.address(), bytes);
        assert!(replies.starts_with("HTTP/1.1 400 "), "{bytes:?}: {replies}");
        assert_eq!(replies.matches("HTTP/1.1 ").count(), 1, "{bytes:?}: {replies}");
    }
    assert_eq!(get(&mut connect(program.address()), "/_orrery/ready").status, 200);
}

#[test]
fn garbage_after_a_request_does_not_harm_the_request() {
    let program = Program::in_memory();
    let request = b"GET /_orrery/health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let replies = exchange(program.address(), &[&request[..], b"\0\0garbage\r\n\r\n"].concat());
    assert!(replies.starts_with("HTTP/1.1 200 "), "{replies}");
    assert!(replies.contains("HTTP/1.1 400 "), "{replies}");
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let program = Program::in_memory();
    let one = "GET /_orrery/health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let two = "GET /_orrery/nothing HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let replies = exchange(program.address(), format!("{one}{two}").repeat(50).as_bytes());
    let statuses: Vec<&str> = replies.split("HTTP/1.1 ").skip(1).collect();
    assert_eq!(statuses.len(), 100);
    assert!(
        statuses.chunks(2).all(|pair| pair[0].starts_with("200") && pair[1].starts_with("401"))
    );
}

#[test]
fn heads_are_bounded() {
    let program = Program::in_memory();
    let long_path = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(40_000));
    let long_header = format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "x".repeat(40_000));
    let many_headers = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(101));
    let endless = "GET / HTTP/1.1\r\na: ".to_owned() + &"x".repeat(10_000_000);
    for (name, bytes, statuses) in [
        ("path", long_path, ["414", "431"]),
        ("header", long_header, ["431", "431"]),
        ("headers", many_headers, ["431", "431"]),
        ("endless", endless, ["431", "431"]),
    ] {
        let reply = exchange(program.address(), bytes.as_bytes());
        // A client that is still sending may be cut off before it reads the status.
        let status = reply.get(9..12);
        let heard = status.is_none_or(|status| statuses.contains(&status));
        assert!(heard && (status.is_some() || name == "endless"), "{name}: {reply}");
    }
    let padding = format!("x-padding: {}\r\n", "x".repeat(20_000));
    let mut stream = connect(program.address());
    assert_eq!(send(&mut stream, "GET", "/_orrery/health", &padding, "").status, 200);
}

#[test]
fn bodies_are_bounded() {
    let program = Program::in_memory();
    let mut stream = connect(program.address());
    let body = |len: usize| format!(r#"{{"id":"db","padding":"{}"}}"#, "x".repeat(len - 24));
    let mut create =
        |body: &str| send_signed(&mut stream, EMULATOR_KEY, CREATE_DATABASE, "", body).status;
    assert_eq!(create(&body(BODY_BYTES_MAX + 1)), 413);
    assert_eq!(create(&body(20 << 20)), 413);
    // As .NET sends it: the answer is read when all of it was sent.
    assert_eq!(create(&body(48 << 20)), 413);
    assert_eq!(read_database(&mut stream, "db").status, 404, "the connection goes on");
    assert_ne!(
        send_signed(&mut stream, EMULATOR_KEY, CREATE_DATABASE, "", &body(BODY_BYTES_MAX)).status,
        413
    );
}

#[test]
fn what_is_far_too_large_is_refused_before_it_is_sent() {
    let program = Program::in_memory();
    for extra in ["", "expect: 100-continue\r\n"] {
        let mut stream = connect(program.address());
        let head = format!(
            "POST /dbs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000000000\r\n{extra}{}\r\n",
            CREATE_DATABASE.headers(EMULATOR_KEY)
        );
        stream.write_all(head.as_bytes()).unwrap();
        let reply = read_reply(&mut stream);
        assert_eq!(reply.status, 413);
        assert_eq!(read_to_end(&mut stream), "");
    }
}

#[test]
fn chunks_count_as_they_come() {
    let program = Program::in_memory();
    let chunked = |chunks: usize| {
        let mut stream = connect(program.address());
        let head = format!(
            "POST /dbs HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n{}\r\n",
            CREATE_DATABASE.headers(EMULATOR_KEY)
        );
        stream.write_all(head.as_bytes()).unwrap();
        let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
        for _ in 0..chunks {
            stream.write_all(chunk.as_bytes()).unwrap();
        }
        stream.write_all(b"b\r\n{\"id\":\"db\"}\r\n0\r\n\r\n").unwrap();
        read_reply(&mut stream).status
    };
    assert_eq!(chunked(40), 413);
    assert_eq!(chunked(3), 201);
    let nonsense = format!(
        "POST /dbs HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n{}\r\nnonsense\r\n",
        CREATE_DATABASE.headers(EMULATOR_KEY)
    );
    assert!(exchange(program.address(), nonsense.as_bytes()).starts_with("HTTP/1.1 400 "));
}

/// They used to wait for the body until it timed out, and hold memory for it.
#[test]
fn strangers_are_refused_before_their_bodies_are_read() {
    let program = Program::in_memory();
    let half = format!(
        "POST /dbs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2000000\r\n\r\n{}",
        "x".repeat(100_000)
    );
    let mut strangers: Vec<_> = (0..90)
        .map(|_| {
            let mut stream = connect(program.address());
            stream.write_all(half.as_bytes()).unwrap();
            stream
        })
        .collect();
    for stranger in &mut strangers {
        let reply = read_reply(stranger);
        assert_eq!((reply.status, reply.header("connection")), (401, Some("close")));
    }
    let mut stream = connect(program.address());
    let body = format!(r#"{{"id":"db","padding":"{}"}}"#, "x".repeat(1 << 20));
    let large = send_signed(&mut stream, EMULATOR_KEY, CREATE_DATABASE, "", &body);
    assert_eq!(large.status, 201);
    let key = format!("authorization: Bearer {EMULATOR_KEY}\r\n");
    let counters = send(&mut stream, "GET", "/_orrery/counters", &key, "").json();
    assert_eq!(counters["memory"]["bodies"]["waited"], 0, "{counters}");
    assert!(counters["memory"]["bodies"]["highBytes"].as_u64() < Some(3 << 20), "{counters}");
}

#[test]
fn a_refusal_leaves_the_connection_to_those_who_send_everything() {
    let program = Program::in_memory();
    let mut stream = connect(program.address());
    for _ in 0..2 {
        assert_eq!(send(&mut stream, "POST", "/dbs", "", r#"{"id":"db"}"#).status, 401);
    }
    assert_eq!(create_database(&mut stream, "db").status, 201);
}

#[test]
fn a_client_that_only_listens_gets_its_answer() {
    let program = Program::in_memory();
    let mut stream = connect(program.address());
    let signed = CREATE_DATABASE.headers(EMULATOR_KEY);
    let request = format!(
        "POST /dbs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 11\r\n{signed}\r\n{{\"id\":\"db\"}}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(read_to_end(&mut stream).starts_with("HTTP/1.1 201 "));
}

#[test]
fn a_client_that_leaves_in_the_middle_changes_nothing() {
    let program = Program::in_memory();
    let signed = CREATE_DATABASE.headers(EMULATOR_KEY);
    let request = format!(
        "POST /dbs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 12\r\n{signed}\r\n{{\"id\":\"db\"}}"
    );
    for len in [1, 20, request.len() - 5, request.len()] {
        exchange(program.address(), &request.as_bytes()[..len]);
    }
    let mut stream = connect(program.address());
    assert_eq!(read_database(&mut stream, "db").status, 404);
}

/// Takes as long as the server's limit for a head, which is ten seconds.
#[test]
fn slow_clients_are_shown_out_while_others_are_served() {
    let program = Program::in_memory();
    let address = program.address();
    let mut slow: Vec<_> = (0..100)
        .map(|_| {
            let mut stream = connect(address);
            stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nx-slow: ").unwrap();
            stream
        })
        .collect();
    let mut second = connect(address);
    let health = "GET /_orrery/health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    second.write_all(format!("{health}GET / HT").as_bytes()).unwrap();
    assert_eq!(read_reply(&mut second).status, 200);
    let mut half_tls = connect(address);
    half_tls.write_all(b"\x16\x03\x01").unwrap();
    let mut other = connect(address);
    assert_eq!(create_database(&mut other, "db").status, 201);
    for stream in slow.iter_mut().chain([&mut second, &mut half_tls]) {
        assert_eq!(read_to_end(stream), "");
    }
    assert_eq!(read_database(&mut other, "db").status, 200, "an idle connection is left alone");
}

#[test]
fn a_parked_connection_is_as_good_as_new() {
    let program = Program::in_memory();
    let mut stream = connect(program.address());
    assert_eq!(create_database(&mut stream, "db").status, 201);
    let read = Signed { method: "GET", path: "/dbs/db", kind: "dbs", link: "dbs/db" };
    for _ in 0..3 {
        wait_until_parked(program.address(), 1);
        assert_eq!(send_signed(&mut stream, EMULATOR_KEY, read, "", "").status, 200);
    }
}
