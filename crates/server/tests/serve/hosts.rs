//! The names and addresses under which the server can be reached.

use std::net::SocketAddr;

use wire_cosmos::EMULATOR_KEY;

use crate::client::{READ_ACCOUNT, connect, exchange, get, send_signed};
use crate::frames::{END_HEADERS, END_STREAM, Frame, HEADERS, Line, frame};
use crate::program::{Program, command, folder};

const OWN_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// What a request with this target and these header lines is answered.
fn answer(program: &Program, target: &str, headers: &str) -> String {
    let request = format!("GET {target} HTTP/1.1\r\n{headers}\r\n");
    exchange(program.address(), request.as_bytes())
}

fn is_served(program: &Program, host: &str) -> bool {
    let reply = answer(program, "/_orrery/health", &format!("host: {host}\r\n"));
    let status = reply.get(9..12).expect("a status line");
    assert!(["200", "421"].contains(&status), "{reply}");
    status == "200"
}

#[test]
fn a_page_under_a_name_of_its_own_gets_nothing() {
    let program = Program::in_memory();
    for host in ["localhost", "localhost:8081", "db.localhost", "127.0.0.1:1", "[::1]:8081"] {
        assert!(is_served(&program, host), "{host}");
    }
    assert!(!is_served(&program, "example.org:8081"));
    for path in ["/", "/dbs", "/_orrery/version", "/_explorer/emulator.pem"] {
        let signed = READ_ACCOUNT.headers(EMULATOR_KEY);
        let reply = answer(&program, path, &format!("host: example.org\r\n{signed}"));
        assert!(reply.starts_with("HTTP/1.1 421 "), "{reply}");
        let way_out = "--host-name example.org (or ORRERY_HOST_NAME=example.org)";
        assert!(reply.contains(way_out), "{reply}");
    }
}

#[test]
fn no_name_in_the_request_is_overlooked() {
    let program = Program::in_memory();
    let refused = |target: &str, headers: &str| {
        let reply = answer(&program, target, headers);
        assert!(reply.starts_with("HTTP/1.1 421 "), "{target} {headers} {reply}");
    };
    refused("http://example.org/_orrery/health", "host: localhost\r\n");
    refused("http://localhost/_orrery/health", "host: example.org\r\n");
    refused("/_orrery/health", "host: localhost\r\nhost: example.org\r\n");
    refused("/_orrery/health", "host: localhost@example.org\r\n");
    let mut line = Line::open(program.address());
    let health = b"/_orrery/health";
    let head = [&[0x82, 0x86, 0x04, 15][..], health, &[0x01, 11], b"example.org"].concat();
    line.send(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &head));
    let body = line.read_until(|frame: &Frame| frame.stream == 1 && frame.kind == 0);
    let body = String::from_utf8(body.expect("an answer").payload).unwrap();
    assert!(body.contains("--host-name example.org"), "{body}");
}

#[test]
fn names_can_be_allowed() {
    let (folder, _) = folder();
    let program =
        |arguments: &[&str]| Program::start(folder.path(), &[&["--in-memory"], arguments].concat());
    let two = program(&["--host-name", "cosmosdb", "--host-name=db.test"]);
    assert!(is_served(&two, "cosmosdb:8081") && is_served(&two, "DB.test"));
    assert!(!is_served(&two, "cosmosdb.test"));
    assert!(is_served(&program(&["--host-name", "*"]), "example.org"));
    // With a secret key there is nothing to guard.
    assert!(is_served(&program(&["--key", OWN_KEY]), "example.org"));
    let mut command = command(folder.path());
    command.args(["--json", "--in-memory", "--listen", "127.0.0.1:0"]);
    let by_variable = Program::start_as(command.env("ORRERY_HOST_NAME", "cosmosdb,other"));
    assert!(is_served(&by_variable, "other") && !is_served(&by_variable, "third"));
}

#[test]
fn localhost_is_both_addresses_where_there_are_two() {
    let (folder, _) = folder();
    let start = |listen: &str| {
        let mut command = command(folder.path());
        Program::start_as(command.args(["--json", "--in-memory", "--listen", listen]))
    };
    let program = start("localhost:0");
    let listening: Vec<SocketAddr> =
        serde_json::from_value(program.ready["listening"].clone()).unwrap();
    assert_eq!(listening[0], program.address());
    if let [_, v6] = listening[..] {
        assert_eq!(v6.to_string(), format!("[::1]:{}", listening[0].port()));
    } else {
        println!("left out: this machine has no ::1, or the port was taken there");
        assert_eq!(listening.len(), 1);
    }
    for address in listening {
        let mut stream = connect(address);
        assert_eq!(get(&mut stream, "/_orrery/ready").status, 200, "{address}");
        assert_eq!(send_signed(&mut stream, EMULATOR_KEY, READ_ACCOUNT, "", "").status, 200);
    }
    assert_eq!(start("127.0.0.1:0").ready["listening"].as_array().unwrap().len(), 1);
}

#[test]
fn the_banner_says_where_and_by_which_names() {
    use std::io::{BufRead as _, BufReader};
    let (folder, _) = folder();
    let mut command = command(folder.path());
    command.args(["--in-memory", "--listen", "127.0.0.1:0", "--host-name", "cosmosdb"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.map_while(Result::ok).find(|line| line.contains("Listens on"));
    child.kill().unwrap();
    child.wait().unwrap();
    let line = line.unwrap();
    assert!(line.contains("127.0.0.1:") && line.contains("as localhost, cosmosdb;"), "{line}");
}
