//! The server's own paths: three are public, the rest requires the account key.

use wire_cosmos::EMULATOR_KEY;

use crate::client::{connect, get, send};
use crate::program::Program;

#[test]
fn health_and_readiness_are_open() {
    let program = Program::in_memory();
    let mut stream = connect(program.address());
    assert_eq!(get(&mut stream, "/_orrery/health").json()["status"], "alive");
    assert_eq!(get(&mut stream, "/_orrery/ready").json()["status"], "ready");
    let refused = send(&mut stream, "POST", "/_orrery/ready", "", "");
    assert_eq!((refused.status, refused.header("allow")), (405, Some("GET, HEAD")));
}

#[test]
fn everything_else_takes_the_account_key() {
    let program = Program::start(
        &std::env::temp_dir(),
        &["--in-memory", "--read-only-key", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="],
    );
    let mut stream = connect(program.address());
    let wrong = [
        String::new(),
        "authorization: Bearer\r\n".to_owned(),
        "authorization: Bearer \r\n".to_owned(),
        format!("authorization: {EMULATOR_KEY}\r\n"),
        format!("authorization: Basic {EMULATOR_KEY}\r\n"),
        format!("authorization: Bearer {EMULATOR_KEY}=\r\n"),
        format!("authorization: Bearer {}\r\n", EMULATOR_KEY.to_lowercase()),
        "authorization: Bearer AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n".to_owned(),
        format!("x-authorization: Bearer {EMULATOR_KEY}\r\n"),
    ];
    let paths = ["/_orrery", "/_orrery/", "/_orrery/version", "/_orrery/counters", "/_orrery/x"];
    for path in paths {
        for headers in &wrong {
            let reply = send(&mut stream, "GET", path, headers, "");
            assert_eq!(reply.status, 401, "{path} {headers}");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"), "{path} {headers}");
        }
    }
    let right = format!("authorization: Bearer {EMULATOR_KEY}\r\n");
    let version = send(&mut stream, "GET", "/_orrery/version", &right, "");
    assert_eq!(version.json()["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(send(&mut stream, "DELETE", "/_orrery/version", &right, "").status, 405);
    assert_eq!(send(&mut stream, "GET", "/_orrery/x", &right, "").status, 404);
    let counters = send(&mut stream, "GET", "/_orrery/counters", &right, "").json();
    let refused = u64::try_from(paths.len() * wrong.len()).unwrap() + 2;
    assert_eq!(counters["answers"]["clientError"], refused);
    assert_eq!(counters["connections"]["open"], 1);
}

#[test]
fn other_spellings_of_these_paths_open_nothing() {
    let program = Program::in_memory();
    let mut stream = connect(program.address());
    for path in [
        "/_orrery/health/",
        "/_orrery//health",
        "/_ORRERY/health",
        "/%5Forrery/version",
        "/_orrery%2Fversion",
        "//_orrery/version",
        "/./_orrery/version",
        "/_orrery/../_orrery/version",
        "/_orreryx",
        "/_explorer/",
        "/_explorer/index.html",
        "/_explorer/emulator.pem/",
    ] {
        let status = get(&mut stream, path).status;
        assert!([400, 401].contains(&status), "{path}: {status}");
    }
}
