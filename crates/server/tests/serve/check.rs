//! `orrery check` reads and never writes.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::limits::Limits;
use runtime::{Clock as _, RealClock, Runtime, SimulatedClock};
use service::{Kind, Link, Principal, Request, ResourceAction, Service};
use storage::local::{self, LocalConfig};
use testkit::wait::block_on;

use crate::client::{connect, create_database, read_database};
use crate::program::{Program, command, folder, run, text};

/// Every file with its bytes and its time.
fn state(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let bytes = if path.is_dir() {
            found.extend(state(&path));
            Vec::new()
        } else {
            fs::read(&path).unwrap()
        };
        found.insert(path, (bytes, modified));
    }
    found
}

#[test]
fn a_check_changes_nothing_even_after_a_kill() {
    let (folder, data) = folder();
    let place = data.display().to_string();
    let program = Program::start(folder.path(), &["--data", &place]);
    assert_eq!(create_database(&mut connect(program.address()), "d").status, 201);
    let in_use = run(command(folder.path()).args(["check", "--data", &place]));
    assert!(!in_use.status.success());
    assert!(text(&in_use.stderr).contains("is open elsewhere"), "{}", text(&in_use.stderr));
    program.kill();
    let before = state(&data);
    let checked = run(command(folder.path()).args(["check", "--data", &place]));
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    assert!(text(&checked.stdout).contains("everything agrees"), "{}", text(&checked.stdout));
    assert!(state(&data) == before, "something changed");
    let program = Program::start(folder.path(), &["--data", &place]);
    assert_eq!(create_database(&mut connect(program.address()), "d").status, 409);
}

/// A data folder whose last write was made ten years from now.
fn write_in_ten_years(data: &Path) {
    let clock = Arc::new(SimulatedClock::new());
    clock.set(RealClock::new().now().plus(Duration::from_secs(10 * 365 * 24 * 3_600)));
    let runtime = Runtime::simulated_at(clock, 1);
    fs::create_dir(data).unwrap();
    fs::write(data.join("LOCK"), "").unwrap();
    let config = LocalConfig { contents: service::upgrade::CONTENTS, ..LocalConfig::default() };
    let store = local::create(&data.join("store"), config, &runtime).unwrap();
    let service = Service::open(store, runtime, Limits::default()).unwrap();
    let (parent, body) = (Link::default(), model::json::parse(br#"{"id":"d"}"#).unwrap());
    let action = ResourceAction::Create {
        parent,
        kind: Kind::Database,
        body,
        throughput: None,
        offer_type: None,
    };
    let request = Request::new(Principal::Account, action);
    block_on(service.execute(request)).unwrap();
    service.store().close().unwrap();
}

#[test]
fn a_clock_that_was_wrong_is_told_and_times_are_set_back() {
    let (folder, data) = folder();
    let place = data.display().to_string();
    write_in_ten_years(&data);
    let program = Program::start(folder.path(), &["--data", &place]);
    let mut stream = connect(program.address());
    let refused = create_database(&mut stream, "e");
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.body.contains("orrery check --reset-time"), "{}", refused.body);
    assert_eq!(read_database(&mut stream, "d").status, 200);
    program.kill();
    let checked = run(command(folder.path()).args(["check", "--data", &place]));
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    assert!(text(&checked.stdout).contains("seconds ahead"), "{}", text(&checked.stdout));
    let reset = run(command(folder.path()).args(["check", "--reset-time", "--data", &place]));
    assert!(reset.status.success(), "{}", text(&reset.stderr));
    assert!(text(&reset.stdout).contains("1 partitions and 2 items"), "{}", text(&reset.stdout));
    let program = Program::start(folder.path(), &["--data", &place]);
    let mut stream = connect(program.address());
    assert_eq!(create_database(&mut stream, "e").status, 201);
    assert_eq!(read_database(&mut stream, "d").status, 200);
}
