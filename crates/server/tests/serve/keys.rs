//! Keys that are replaced while the server runs.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::net::TcpStream;
use std::path::Path;

use wire_cosmos::EMULATOR_KEY;

use crate::client::{CREATE_DATABASE, READ_ACCOUNT, Signed, connect, send, send_signed};
use crate::program::{Program, command, folder, run, text};

const READ_KEY: &str = "cmVhZC1vbmx5LWtleS1vZi10aGUtdGVzdHM=";

fn reads(stream: &mut TcpStream, key: &str) -> u16 {
    send_signed(stream, key, READ_ACCOUNT, "", "").status
}

/// As a user does it at the command line.
fn rotate(folder: &Path, program: &Program, kind: &str, key: &str) -> String {
    let server = program.address().to_string();
    let arguments = ["key", "rotate", kind, "--server", &server];
    let done = run(command(folder).args(arguments).env("ORRERY_KEY", key));
    assert!(done.status.success(), "{}", text(&done.stderr));
    text(&done.stdout).trim().to_owned()
}

/// Makes a permission for a database that is there, and returns its token for a header.
fn token(stream: &mut TcpStream, key: &str) -> String {
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#;
    let permission = r#"{"id":"p","permissionMode":"Read","resource":"dbs/d/colls/c"}"#;
    for (path, link, body) in [
        ("/dbs", "", r#"{"id":"d"}"#),
        ("/dbs/d/colls", "dbs/d", container),
        ("/dbs/d/users", "dbs/d", r#"{"id":"u"}"#),
    ] {
        let kind = path.rsplit('/').next().unwrap();
        let request = Signed { method: "POST", path, kind, link };
        assert_eq!(send_signed(stream, key, request, "", body).status, 201, "{path}");
    }
    let (path, link) = ("/dbs/d/users/u/permissions", "dbs/d/users/u");
    let request = Signed { method: "POST", path, kind: "permissions", link };
    let created = send_signed(stream, key, request, "", permission);
    let token = created.json()["_token"].as_str().unwrap().to_owned();
    format!("authorization: {}\r\n", token.replace('=', "%3d").replace('&', "%26"))
}

#[test]
fn a_replaced_key_is_dead_at_once_on_every_connection() {
    let (folder, _) = folder();
    let program = Program::start(folder.path(), &["--in-memory", "--read-only-key", READ_KEY]);
    let [mut one, mut two] = [(); 2].map(|()| connect(program.address()));
    let token = token(&mut one, EMULATOR_KEY);
    let holder = |stream: &mut TcpStream| send(stream, "GET", "/dbs/d/colls/c", &token, "").status;
    assert_eq!((reads(&mut one, EMULATOR_KEY), reads(&mut two, READ_KEY)), (200, 200));
    assert_eq!(holder(&mut two), 200);

    // Clients are moved to the second key; then the first one is replaced.
    let second = rotate(folder.path(), &program, "secondary", EMULATOR_KEY);
    assert_eq!((reads(&mut one, EMULATOR_KEY), reads(&mut two, &second)), (200, 200));
    assert_eq!(holder(&mut two), 200);
    let first = rotate(folder.path(), &program, "primary", &second);
    for stream in [&mut one, &mut two] {
        assert_eq!(reads(stream, EMULATOR_KEY), 401);
        assert_eq!(holder(stream), 401, "the token of a key that is no more");
        let old = format!("authorization: Bearer {EMULATOR_KEY}\r\n");
        assert_eq!(send(stream, "GET", "/_orrery/version", &old, "").status, 401);
        assert_eq!((reads(stream, &first), reads(stream, &second)), (200, 200));
    }

    let reader = rotate(folder.path(), &program, "primary-read-only", &first);
    assert_eq!((reads(&mut one, READ_KEY), reads(&mut two, &reader)), (401, 200));
    let write = send_signed(&mut two, &reader, CREATE_DATABASE, "", r#"{"id":"e"}"#);
    assert_eq!(write.status, 403, "{}", write.body);
    assert!(write.body.contains("Insufficient permissions provided"), "{}", write.body);

    let server = program.address().to_string();
    let arguments = ["key", "list", "--server", &server];
    let list = run(command(folder.path()).args(arguments).env("ORRERY_KEY", &first));
    let shown = text(&list.stdout);
    assert!(shown.contains("secondaryReadonly  none"), "{shown}");
    assert!(![first, second, reader].iter().any(|key| shown.contains(key.as_str())), "{shown}");
}

#[test]
fn a_replaced_key_stays_dead_and_its_successor_alive() {
    let (folder, data) = folder();
    let data = data.display().to_string();
    let start = |key: Option<&str>| {
        let mut command = command(folder.path());
        command.args(["--json", "--listen", "127.0.0.1:0", "--data", &data]);
        Program::start_as(command.envs(key.map(|key| ("ORRERY_KEY", key))))
    };
    let program = start(None);
    let first = rotate(folder.path(), &program, "primary", EMULATOR_KEY);
    program.kill();
    for setting in [None, Some(EMULATOR_KEY)] {
        let program = start(setting);
        let mut stream = connect(program.address());
        assert_eq!((reads(&mut stream, EMULATOR_KEY), reads(&mut stream, &first)), (401, 200));
        assert_eq!(program.ready["key"], first.as_str());
    }
    // A key of one's own takes its place like at the first start.
    let program = start(Some(READ_KEY));
    let mut stream = connect(program.address());
    assert_eq!((reads(&mut stream, &first), reads(&mut stream, READ_KEY)), (401, 200));
    drop(program);

    let path = folder.path().join("data/KEYS");
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(!kept.contains(EMULATOR_KEY), "only fingerprints of what was replaced");
    std::fs::write(&path, kept.replace("primary", "secondary")).unwrap();
    let refused = run(command(folder.path()).args(["--listen", "127.0.0.1:0", "--data", &data]));
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("KEYS is damaged"), "{}", text(&refused.stderr));
}
