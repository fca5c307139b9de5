//! TLS on the same port, with a certificate that can be trusted.

use std::net::TcpStream;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use wire_cosmos::EMULATOR_KEY;

use crate::client::{
    READ_ACCOUNT, connect, create_database, exchange, get, read_database, send_signed,
};
use crate::frames::Line;
use crate::program::{Program, command, folder, run, text};

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

fn over_tls(program: &Program, pem: &str, name: &str) -> TlsStream {
    offering(&[], program, pem, name)
}

/// With the protocols that the client can speak.
fn offering(protocols: &[&str], program: &Program, pem: &str, name: &str) -> TlsStream {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).expect("it is PEM");
    roots.add(certificate).expect("it is a certificate");
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider knows them")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = ServerName::try_from(name.to_owned()).expect("it is a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("it is set up");
    StreamOwned::new(connection, connect(program.address()))
}

fn served_pem(program: &Program) -> String {
    let reply = get(&mut connect(program.address()), "/_explorer/emulator.pem");
    assert_eq!(reply.status, 200);
    reply.body
}

#[test]
fn one_port_speaks_both() {
    let program = Program::in_memory();
    let pem = served_pem(&program);
    assert!(!pem.contains("PRIVATE"));
    for name in ["localhost", "127.0.0.1", "::1"] {
        let mut stream = over_tls(&program, &pem, name);
        assert_eq!(get(&mut stream, "/_orrery/ready").status, 200, "{name}");
    }
    let mut secret = over_tls(&program, &pem, "localhost");
    let mut plain = connect(program.address());
    assert_eq!(create_database(&mut secret, "shared").status, 201);
    assert_eq!(read_database(&mut plain, "shared").status, 200);
    let endpoint = |reply: crate::client::Reply| {
        reply.json()["writableLocations"][0]["databaseAccountEndpoint"].clone()
    };
    let account = send_signed(&mut secret, EMULATOR_KEY, READ_ACCOUNT, "", "");
    assert_eq!(endpoint(account), "https://localhost/");
    let account = send_signed(&mut plain, EMULATOR_KEY, READ_ACCOUNT, "", "");
    assert_eq!(endpoint(account), "http://localhost/");
}

#[test]
fn the_newer_protocol_is_agreed_on_where_both_know_it() {
    let program = Program::in_memory();
    let pem = served_pem(&program);
    for offer in [&["h2"][..], &["http/1.1", "h2"]] {
        let mut line = Line::begin(offering(offer, &program, &pem, "localhost"));
        line.ask_health(1);
        line.ask_health(3);
        assert_eq!(line.stream.conn.alpn_protocol(), Some(&b"h2"[..]));
    }
    for offer in [&["http/1.1"][..], &[]] {
        let mut stream = offering(offer, &program, &pem, "localhost");
        assert_eq!(get(&mut stream, "/_orrery/ready").status, 200);
        assert_eq!(stream.conn.alpn_protocol(), offer.first().map(|name| name.as_bytes()));
    }
}

#[test]
fn large_bodies_go_through_tls() {
    let program = Program::in_memory();
    let mut stream = over_tls(&program, &served_pem(&program), "localhost");
    let body = format!(r#"{{"id":"{}"}}"#, "x".repeat(1 << 20));
    let reply = send_signed(&mut stream, EMULATOR_KEY, crate::client::CREATE_DATABASE, "", &body);
    assert_eq!(reply.status, 400);
    assert_eq!(get(&mut stream, "/_orrery/health").status, 200);
}

#[test]
fn the_certificate_is_made_once_and_kept() {
    let (folder, data) = folder();
    let cert = || {
        let output = run(command(folder.path()).args(["cert", "--data"]).arg(&data));
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let before = cert();
    let data_text = data.display().to_string();
    let program = Program::start(folder.path(), &["--data", &data_text]);
    assert_eq!(served_pem(&program), before);
    assert_eq!(cert(), before, "exporting works while the server runs");
    program.kill();
    let program = Program::start(folder.path(), &["--data", &data_text]);
    let mut stream = over_tls(&program, &before, "localhost");
    assert_eq!(get(&mut stream, "/_orrery/ready").status, 200);
    let to = folder.path().join("exported.pem");
    let output =
        run(command(folder.path()).args(["cert", "--data", &data_text, "--output"]).arg(&to));
    assert!(output.status.success() && output.stdout.is_empty());
    assert_eq!(std::fs::read_to_string(to).unwrap(), before);
}

#[test]
fn a_broken_handshake_harms_nobody() {
    let program = Program::in_memory();
    exchange(program.address(), b"\x16\x03\x01\xFF\xFF garbage");
    exchange(program.address(), b"\x16");
    exchange(program.address(), &[0x16; 100_000]);
    let mut stream = over_tls(&program, &served_pem(&program), "localhost");
    assert_eq!(get(&mut stream, "/_orrery/ready").status, 200);
}
