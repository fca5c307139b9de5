//! Tokens of identity providers, with keys from a file and from a server on this machine.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use runtime::{Clock as _, RealClock, Tasks as _, ThreadTasks};
use serde_json::json;
use wire_cosmos::EMULATOR_KEY;

use crate::client::{CREATE_DATABASE, connect, create_database, send};
use crate::program::{Program, command, folder, run, text};

const CONTRIBUTOR: &str = "00000000-0000-0000-0000-000000000002";
const OWN_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn new_key() -> EcdsaKeyPair {
    let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap()
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn key_set(key: &EcdsaKeyPair) -> String {
    let (x, y) = key.public_key().as_ref()[1..].split_at(32);
    let key = json!({ "kty": "EC", "crv": "P-256", "kid": "k", "x": encode(x), "y": encode(y) });
    json!({ "keys": [key] }).to_string()
}

fn claims() -> String {
    let now = RealClock::new().now().as_unix_seconds();
    json!({ "iss": "https://i.test", "aud": "https://a.test", "oid": "ada", "exp": now + 600 })
        .to_string()
}

fn header(key: &EcdsaKeyPair) -> String {
    let text = format!("{}.{}", encode(r#"{"alg":"ES256","kid":"k"}"#), encode(claims()));
    let signature = key.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
    format!("authorization: type=aad&ver=1.0&sig={text}.{}\r\n", encode(signature))
}

/// As the official SDKs' tests make it.
fn header_with(key: &str) -> String {
    let text = format!("{}.{}", encode(r#"{"alg":"RS256"}"#), encode(claims()));
    format!("authorization: type=aad&ver=1.0&sig={text}.{}\r\n", encode(key))
}

fn issuer(keys: &str) -> String {
    format!("iss=https://i.test,audience=https://a.test,keys={keys}")
}

fn assign(stream: &mut TcpStream) {
    let bearer = format!("authorization: Bearer {EMULATOR_KEY}\r\n");
    let body = json!({
        "assign": { "principalId": "ada", "roleDefinitionId": CONTRIBUTOR, "scope": "/dbs/d" },
    });
    let reply = send(stream, "POST", "/_orrery/roles", &bearer, &body.to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
}

fn read_database(stream: &mut TcpStream, headers: &str) -> u16 {
    send(stream, "GET", "/dbs/d", headers, "").status
}

#[test]
fn roles_and_their_bearers_survive_a_restart() {
    let (folder, data) = folder();
    let (keys, data) = (folder.path().join("keys.json"), data.display().to_string());
    let (key, other) = (new_key(), new_key());
    std::fs::write(&keys, key_set(&key)).unwrap();
    let issuer = issuer(&keys.display().to_string());
    let start = || Program::start(folder.path(), &["--data", &data, "--issuer", &issuer]);
    let program = start();
    let mut stream = connect(program.address());
    assert_eq!(create_database(&mut stream, "d").status, 201);
    assert_eq!(read_database(&mut stream, &header(&key)), 403);
    assign(&mut stream);
    assert_eq!(read_database(&mut stream, &header(&key)), 200);
    assert_eq!(read_database(&mut stream, &header(&other)), 401);
    let create = send(&mut stream, CREATE_DATABASE.method, "/dbs", &header(&key), r#"{"id":"e"}"#);
    assert_eq!((create.status, create.header("x-ms-substatus")), (403, Some("5300")));
    program.kill();
    let program = start();
    assert_eq!(read_database(&mut connect(program.address()), &header(&key)), 200);
    program.kill();
    let checked = run(command(folder.path()).args(["check", "--data", &data]));
    assert!(checked.status.success(), "{}", text(&checked.stdout));
}

#[test]
fn an_issuer_without_keys_is_refused_at_the_start() {
    let (folder, _) = folder();
    let refusal = |issuer: &str| {
        let mut command = command(folder.path());
        let output =
            run(command.args(["--in-memory", "--listen", "127.0.0.1:0", "--issuer", issuer]));
        assert!(!output.status.success());
        text(&output.stderr)
    };
    assert!(refusal(&issuer("nowhere.json")).contains("nowhere.json cannot be read"));
    std::fs::write(folder.path().join("empty.json"), r#"{"keys":[]}"#).unwrap();
    assert!(refusal(&issuer("empty.json")).contains("it has no key"));
    assert!(refusal(&issuer("https://i.test/keys")).contains("put the keys into a file"));
    assert!(refusal("iss=x").contains("lacks audience="));
}

/// Answers one request after the other with the same body.
fn serve(body: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 1_024];
            let read = stream.read(&mut head).unwrap_or_default();
            assert!(head[..read].starts_with(b"GET /keys HTTP/1.1\r\n"));
            let length = body.len();
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
            let _sent = stream.write_all(answer.as_bytes());
        }
    };
    ThreadTasks.spawn("keys", Box::new(serving)).unwrap();
    address
}

#[test]
fn keys_may_come_from_a_server_on_this_machine() {
    let key = new_key();
    let keys = format!("http://{}/keys", serve(key_set(&key)));
    let program = Program::start(Path::new("."), &["--in-memory", "--issuer", &issuer(&keys)]);
    let mut stream = connect(program.address());
    assert_eq!(create_database(&mut stream, "d").status, 201);
    assign(&mut stream);
    // The first look is at the start, and not waited for.
    let clock = RealClock::new();
    while read_database(&mut stream, &header(&key)) != 200 {
        assert!(clock.monotonic() < Duration::from_secs(300), "the keys are never fetched");
        clock.sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_token_with_the_key_in_it_stays_on_this_machine() {
    let program = Program::in_memory();
    let mut stream = connect(program.address());
    assert_eq!(create_database(&mut stream, "d").status, 201);
    assert_eq!(read_database(&mut stream, &header_with(EMULATOR_KEY)), 200);
    assert_eq!(read_database(&mut stream, &header_with(OWN_KEY)), 401);

    let mut command = command(Path::new("."));
    command.args(["--in-memory", "--json", "--listen", "0.0.0.0:0"]).env("ORRERY_KEY", OWN_KEY);
    let program = Program::start_as(&mut command);
    assert_eq!(read_database(&mut connect(program.address()), &header_with(OWN_KEY)), 401);
}

/// Whatever is logged at the most talkative level.
#[cfg(unix)]
#[test]
fn no_credential_reaches_the_log() {
    let (folder, _) = folder();
    let keys = folder.path().join("keys.json");
    let key = new_key();
    std::fs::write(&keys, key_set(&key)).unwrap();
    let issuer = issuer(&keys.display().to_string());
    let arguments = ["--in-memory", "--log", "trace", "--slow-after", "0", "--issuer", &issuer];
    let mut command = command(folder.path());
    command.args(["--json", "--listen", "127.0.0.1:0"]).args(arguments).env("ORRERY_KEY", OWN_KEY);
    let program = Program::start_as(&mut command);
    let mut stream = connect(program.address());
    let bearer = format!("authorization: Bearer {OWN_KEY}\r\n");
    let rotated = r#"{"rotate":"secondary"}"#;
    let new = send(&mut stream, "POST", "/_orrery/keys", &bearer, rotated).json();
    let new = new["key"].as_str().unwrap().to_owned();
    let (good, wrong, with_key) = (header(&key), header(&new_key()), header_with(&new));
    for headers in [&good, &wrong, &with_key] {
        read_database(&mut stream, headers);
    }
    program.signal(rustix::process::Signal::TERM);
    let (status, log) = program.wait();
    assert!(status.success(), "{log}");
    assert!(log.contains("slow request"), "the requests are not logged at all: {log}");
    let secrets =
        [&good, &wrong, &with_key].map(|header| header.rsplit('.').next().unwrap().trim());
    for secret in secrets.into_iter().chain([OWN_KEY, new.as_str()]) {
        assert!(!log.contains(secret), "{log}");
    }
}
