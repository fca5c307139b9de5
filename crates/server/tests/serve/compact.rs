//! Space that the disk gets back: by itself after a drop, and by hand.

use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use runtime::{Clock as _, Random as _, RealClock, SeededRandom};
use testkit::files::bytes_in;
use wire_cosmos::EMULATOR_KEY;

use crate::client::{Reply, Signed, connect, create_database, send_signed};
use crate::program::{Program, command, folder, run, text};

/// Items of 100 KB each: a few megabytes.
const ITEMS: usize = 40;
const FILL_BYTES: usize = 100_000;
const SEED: u64 = 20_261_116;

fn create_container(stream: &mut TcpStream, name: &str) {
    let create = Signed { method: "POST", path: "/dbs/d/colls", kind: "colls", link: "dbs/d" };
    let body = format!(r#"{{"id":"{name}","partitionKey":{{"paths":["/id"],"version":2}}}}"#);
    assert_eq!(send_signed(stream, EMULATOR_KEY, create, "", &body).status, 201);
}

fn create_item(stream: &mut TcpStream, container: &str, id: &str, fill: &str) -> Reply {
    let (path, link) =
        (format!("/dbs/d/colls/{container}/docs"), format!("dbs/d/colls/{container}"));
    let create = Signed { method: "POST", path: &path, kind: "docs", link: &link };
    let key = format!("x-ms-documentdb-partitionkey: [\"{id}\"]\r\n");
    let body = format!(r#"{{"id":"{id}","fill":"{fill}"}}"#);
    send_signed(stream, EMULATOR_KEY, create, &key, &body)
}

fn drop_container(stream: &mut TcpStream, name: &str) {
    let (path, link) = (format!("/dbs/d/colls/{name}"), format!("dbs/d/colls/{name}"));
    let delete = Signed { method: "DELETE", path: &path, kind: "colls", link: &link };
    assert_eq!(send_signed(stream, EMULATOR_KEY, delete, "", "").status, 204);
}

/// Fills a container, and leaves a second one with one item.
fn filled(folder: &Path, data: &str) -> (Program, TcpStream) {
    let program = Program::start(folder, &["--data", data]);
    let mut stream = connect(program.address());
    assert_eq!(create_database(&mut stream, "d").status, 201);
    create_container(&mut stream, "large");
    create_container(&mut stream, "small");
    let random = SeededRandom::new(SEED);
    for id in 0..ITEMS {
        let words = (0..FILL_BYTES / 16).map(|_| format!("{:016x}", random.next_u64()));
        let fill: String = words.collect();
        assert_eq!(create_item(&mut stream, "large", &id.to_string(), &fill).status, 201);
    }
    assert_eq!(create_item(&mut stream, "small", "1", "stays").status, 201);
    (program, stream)
}

#[test]
fn compacting_a_folder_tells_how_much_it_gave_back() {
    let (folder, data) = folder();
    let place = data.display().to_string();
    let (program, mut stream) = filled(folder.path(), &place);
    drop_container(&mut stream, "large");
    program.kill();
    let filled = bytes_in(&data.join("store"));
    assert!(filled > (ITEMS * FILL_BYTES / 2) as u64, "{filled} bytes");
    let compacted = run(command(folder.path()).args(["compact", "--data", &place]));
    assert!(compacted.status.success(), "{}", text(&compacted.stderr));
    assert!(
        text(&compacted.stderr).contains("removed 1 containers"),
        "{}",
        text(&compacted.stderr)
    );
    let shown = text(&compacted.stdout);
    assert!(shown.contains("MB before, 0.0 MB now"), "{shown}");
    let reserve = std::fs::metadata(data.join("store/RESERVE")).map_or(0, |found| found.len());
    let store = bytes_in(&data.join("store")) - reserve;
    assert!(store < 100_000, "{store} bytes");
    let checked = run(command(folder.path()).args(["check", "--data", &place]));
    assert!(checked.status.success(), "{}", text(&checked.stdout));
    let program = Program::start(folder.path(), &["--data", &place]);
    let again = create_item(&mut connect(program.address()), "small", "1", "stays");
    assert_eq!(again.status, 409, "what was not dropped is there");
    let in_use = run(command(folder.path()).args(["compact", "--data", &place]));
    assert!(!in_use.status.success());
    assert!(text(&in_use.stderr).contains("is open elsewhere"), "{}", text(&in_use.stderr));
}

/// Without a command: the server sweeps, and compacts its store.
#[test]
fn a_running_server_gives_back_what_was_dropped() {
    let (folder, data) = folder();
    let (_program, mut stream) = filled(folder.path(), &data.display().to_string());
    let tables = data.join("store/tree/tables");
    drop_container(&mut stream, "large");
    let clock = RealClock::new();
    // All of it was in memory; compacting leaves a table with what is left.
    while std::fs::read_dir(&tables).unwrap().count() == 0 || bytes_in(&tables) > 100_000 {
        clock.sleep(Duration::from_millis(20));
    }
    assert_eq!(create_item(&mut stream, "small", "1", "stays").status, 409);
}
