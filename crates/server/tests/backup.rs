//! Backups of a server under 32 writers and splits: what is restored is a state that
//! existed, and `orrery check` finds nothing.
//!
//! `ORRERY_BACKUPS` sets how many are taken, one after the other, while the writers go on.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "serve/client.rs"]
mod client;
#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "serve/program.rs"]
mod program;

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use runtime::{Clock as _, RealClock, Runtime, TaskHandle};
use serde_json::{Value, json};
use wire_cosmos::EMULATOR_KEY;

use client::{Reply, Signed, connect, create_database, send, send_signed};
use program::{Program, command, run, text};

/// Enough for every test run; `cargo xtask soak` asks for more.
const BACKUPS_DEFAULT: u64 = 1;

const WRITERS: usize = 32;

/// Between the two items of a pair it is moved to and fro, so their sum stays.
const TOTAL: u64 = 1_000;

/// Items that a writer goes round in, one for each step.
const ROUND: u64 = 20;

/// Partitions are split up to this number, and merged again.
const RANGES_MAX: usize = 6;

const LINK: &str = "dbs/d/colls/c";

/// The progress of each writer.
#[derive(Debug, Default)]
struct Ledger {
    begun: Vec<AtomicU64>,
    acknowledged: Vec<AtomicU64>,
    splits: AtomicU64,
    stop: AtomicBool,
}

impl Ledger {
    fn new() -> Ledger {
        let zeros = || (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
        Ledger { begun: zeros(), acknowledged: zeros(), ..Ledger::default() }
    }

    fn read(numbers: &[AtomicU64]) -> Vec<u64> {
        numbers.iter().map(|number| number.load(Ordering::SeqCst)).collect()
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::SeqCst)
    }
}

fn key(writer: usize, which: &str) -> String {
    format!("{which}-{writer}")
}

fn upsert(stream: &mut TcpStream, key: &str, headers: &str, body: &Value) -> Reply {
    let path = format!("/{LINK}/docs");
    let signed = Signed { method: "POST", path: &path, kind: "docs", link: LINK };
    let headers = format!("x-ms-documentdb-partitionkey: [\"{key}\"]\r\n{headers}");
    send_signed(stream, EMULATOR_KEY, signed, &headers, &body.to_string())
}

/// Step after step: first a batch in one logical partition, then an item of another one.
fn write(address: SocketAddr, writer: usize, ledger: &Ledger) {
    let mut stream = connect(address);
    stream.set_nodelay(true).unwrap();
    let (pair, mark) = (key(writer, "pair"), key(writer, "mark"));
    for step in 1.. {
        ledger.begun[writer].store(step, Ordering::SeqCst);
        let item = |id: String, value: u64| {
            let body = json!({ "id": id, "pk": pair, "step": step, "value": value });
            json!({ "operationType": "Upsert", "resourceBody": body })
        };
        let moved = step * 37 % TOTAL;
        let batch = json!([
            item("left".to_owned(), moved),
            item("right".to_owned(), TOTAL - moved),
            item(format!("round-{}", step % ROUND), step),
        ]);
        let atomic = "x-ms-cosmos-is-batch-request: True\r\nx-ms-cosmos-batch-atomic: True\r\n";
        let last = json!({ "id": "mark", "pk": mark, "step": step });
        let single = "x-ms-documentdb-is-upsert: True\r\n";
        for (key, headers, body) in [(&pair, atomic, &batch), (&mark, single, &last)] {
            loop {
                if !ledger.goes_on() {
                    return;
                }
                let reply = upsert(&mut stream, key, headers, body);
                match reply.status {
                    200 | 201 => break,
                    // What may have happened is repeated.
                    408 | 410 | 429 | 449 | 503 => {}
                    _ => panic!("{} {}", reply.head, reply.body),
                }
            }
        }
        ledger.acknowledged[writer].store(step, Ordering::SeqCst);
    }
}

fn ask(stream: &mut TcpStream, method: &str, path: &str, body: &Value) -> Reply {
    let bearer = format!("authorization: Bearer {EMULATOR_KEY}\r\n");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    send(stream, method, path, &bearer, &body)
}

/// Splits and merges as long as the writers write.
fn split(address: SocketAddr, ledger: &Ledger) {
    let (mut stream, clock) = (connect(address), RealClock::new());
    for attempt in 0_usize.. {
        if !ledger.goes_on() {
            return;
        }
        let path = format!("/_orrery/partitions?container={LINK}");
        let found = ask(&mut stream, "GET", &path, &Value::Null).json();
        let partitions = found["partitions"].as_array().unwrap();
        let ids: Vec<&Value> = partitions.iter().map(|partition| &partition["id"]).collect();
        let merges = ids.len() == RANGES_MAX || (ids.len() > 1 && attempt % 5 == 4);
        let done = if merges {
            let first = attempt % (ids.len() - 1);
            let body = json!({ "container": LINK, "ranges": ids[first..first + 2] });
            ask(&mut stream, "POST", "/_orrery/merge", &body)
        } else {
            let range = ids[attempt % ids.len()];
            let body = json!({ "container": LINK, "range": range, "halve": "bytes" });
            ask(&mut stream, "POST", "/_orrery/split", &body)
        };
        match done.status {
            200 => drop(ledger.splits.fetch_add(1, Ordering::SeqCst)),
            // Nothing to divide, or another change was quicker.
            _ => clock.sleep(Duration::from_millis(5)),
        }
    }
}

/// Item by item what a restored server holds of a writer: the step of its batches and
/// that of its marks.
fn steps_of(stream: &mut TcpStream, writer: usize) -> (u64, u64) {
    let mut read = |key: &str, id: &str| {
        let link = format!("{LINK}/docs/{id}");
        let path = format!("/{link}");
        let signed = Signed { method: "GET", path: &path, kind: "docs", link: &link };
        let header = format!("x-ms-documentdb-partitionkey: [\"{key}\"]\r\n");
        let reply = send_signed(stream, EMULATOR_KEY, signed, &header, "");
        match reply.status {
            200 => {
                let item = reply.json();
                let number = |name: &str| item[name].as_u64().unwrap_or_default();
                Some((number("step"), number("value")))
            }
            status => {
                assert_eq!(status, 404, "{}", reply.body);
                None
            }
        }
    };
    let pair = key(writer, "pair");
    let (left, right) = (read(&pair, "left"), read(&pair, "right"));
    let (step, moved) = left.unwrap_or((0, 0));
    match right {
        Some((same, rest)) => assert_eq!((same, moved + rest), (step, TOTAL), "a torn batch"),
        None => assert_eq!(left, None, "a torn batch"),
    }
    for at in 0..ROUND {
        let expected = (1..=step).rev().find(|step| step % ROUND == at).map(|step| (step, step));
        assert_eq!(read(&pair, &format!("round-{at}")), expected, "at step {step}");
    }
    (step, read(&key(writer, "mark"), "mark").map_or(0, |(step, _)| step))
}

/// How many items there are; nothing but what writers wrote.
fn count(stream: &mut TcpStream, steps: &[(u64, u64)]) -> usize {
    let expected = |&(pair, mark): &(u64, u64)| {
        let pairs = if pair == 0 { 0 } else { 2 + pair.min(ROUND) };
        pairs + u64::from(mark > 0)
    };
    let expected: u64 = steps.iter().map(expected).sum();
    let path = format!("/_orrery/partitions?container={LINK}");
    let found = ask(stream, "GET", &path, &Value::Null).json();
    let partitions = found["partitions"].as_array().unwrap();
    let items: u64 = partitions.iter().map(|partition| partition["items"].as_u64().unwrap()).sum();
    assert_eq!(items, expected, "something was there that was never written, or missing");
    partitions.len()
}

/// The position after all changes of a writer's pair.
fn changes(stream: &mut TcpStream, position: &str) -> Reply {
    let path = format!("/{LINK}/docs");
    let signed = Signed { method: "GET", path: &path, kind: "docs", link: LINK };
    let key = key(0, "pair");
    let headers = format!(
        "a-im: Incremental Feed\r\nif-none-match: {position}\r\nx-ms-documentdb-partitionkey: [\"{key}\"]\r\n"
    );
    send_signed(stream, EMULATOR_KEY, signed, &headers, "")
}

fn create_container(address: SocketAddr) {
    let mut stream = connect(address);
    assert_eq!(create_database(&mut stream, "d").status, 201);
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#;
    let signed = Signed { method: "POST", path: "/dbs/d/colls", kind: "colls", link: "dbs/d" };
    assert_eq!(send_signed(&mut stream, EMULATOR_KEY, signed, "", body).status, 201);
}

fn start_all(address: SocketAddr, ledger: &Arc<Ledger>) -> Vec<TaskHandle> {
    let tasks = Runtime::real().tasks;
    let spawn = |name: String, body: Box<dyn FnOnce() + Send>| tasks.spawn(&name, body).unwrap();
    let splitter = Arc::clone(ledger);
    let mut all = vec![spawn("splitter".to_owned(), Box::new(move || split(address, &splitter)))];
    all.extend((0..WRITERS).map(|writer| {
        let ledger = Arc::clone(ledger);
        spawn(format!("writer-{writer}"), Box::new(move || write(address, writer, &ledger)))
    }));
    all
}

fn succeed(folder: &Path, arguments: &[&str]) -> String {
    let done = run(command(folder).args(arguments));
    assert!(done.status.success(), "{arguments:?}: {}{}", text(&done.stdout), text(&done.stderr));
    text(&done.stdout)
}

/// Takes a backup, restores it, and compares it with what the writers know.
fn back_up_and_judge(folder: &Path, server: &Program, ledger: &Ledger) -> (u64, usize) {
    let (backup, copy) = (folder.join("backup"), folder.join("copy"));
    let (backup, copy) = (backup.to_str().unwrap(), copy.to_str().unwrap());
    let before = Ledger::read(&ledger.acknowledged);
    succeed(folder, &["backup", backup, "--server", &server.address().to_string()]);
    let after = Ledger::read(&ledger.begun);
    // A client of the original continues, and later asks the copy.
    let clock = RealClock::new();
    while ledger.acknowledged[0].load(Ordering::SeqCst) <= after[0] {
        clock.sleep(Duration::from_millis(1));
    }
    let position = changes(&mut connect(server.address()), "*");
    let position = position.header("etag").unwrap();

    succeed(folder, &["restore", backup, "--data", copy]);
    assert!(succeed(folder, &["check", "--data", copy]).contains("everything agrees"));
    let restored = Program::start(folder, &["--data", copy]);
    let mut stream = connect(restored.address());
    let steps: Vec<_> = (0..WRITERS).map(|writer| steps_of(&mut stream, writer)).collect();
    for (writer, &(pair, mark)) in steps.iter().enumerate() {
        let (least, most) = (before[writer], after[writer]);
        assert!(least <= mark && pair <= most, "{writer}: {least} <= {mark}, {pair} <= {most}");
        assert!(pair == mark || pair == mark + 1, "{writer}: not one moment: {pair} and {mark}");
    }
    let partitions = count(&mut stream, &steps);
    let refused = changes(&mut stream, position);
    assert_eq!(refused.status, 410, "{} {}", refused.head, refused.body);
    assert_eq!(changes(&mut stream, "*").status, 304);
    restored.kill();
    std::fs::remove_dir_all(backup).unwrap();
    std::fs::remove_dir_all(copy).unwrap();
    (steps.iter().map(|(pair, mark)| pair + mark).sum(), partitions)
}

#[test]
fn a_backup_under_writers_and_splits_is_a_state_that_was() {
    let backups = std::env::var("ORRERY_BACKUPS")
        .map_or(BACKUPS_DEFAULT, |text| text.parse().expect("a number"));
    let (folder, data) = program::folder();
    let server = Program::start(folder.path(), &["--data", data.to_str().unwrap()]);
    create_container(server.address());
    let (ledger, clock) = (Arc::new(Ledger::new()), RealClock::new());
    let all = start_all(server.address(), &ledger);
    let (mut layouts, mut writes) = (BTreeSet::new(), 0);
    // There must have been writes and splits.
    while ledger.splits.load(Ordering::SeqCst) == 0
        || Ledger::read(&ledger.acknowledged).contains(&0)
    {
        clock.sleep(Duration::from_millis(1));
    }
    for _ in 0..backups {
        let (found, partitions) = back_up_and_judge(folder.path(), &server, &ledger);
        assert!(found > writes, "the writers stand still");
        writes = found;
        layouts.insert(partitions);
    }
    ledger.stop.store(true, Ordering::SeqCst);
    for one in all {
        one.join().expect("every answer is clear");
    }
    println!(
        "{backups} backups, {writes} writes in the last one, {} splits and merges, {layouts:?} partitions, {:.1} s",
        ledger.splits.load(Ordering::SeqCst),
        clock.monotonic().as_secs_f64()
    );
}

#[test]
fn a_backup_is_refused_where_it_cannot_be() {
    let (folder, data) = program::folder();
    let place = data.to_str().unwrap();
    let server = Program::start(folder.path(), &["--data", place]);
    create_container(server.address());
    let mut stream = connect(server.address());
    let none = ask(&mut stream, "GET", "/_orrery/backup", &Value::Null);
    assert_eq!((none.status, none.json()["state"].as_str()), (200, Some("none")));
    for (wanted, status) in [
        (json!({ "folder": "relative" }), 400),
        (json!({ "folder": place }), 409),
        (json!({ "place": "/x" }), 400),
    ] {
        let refused = ask(&mut stream, "POST", "/_orrery/backup", &wanted);
        assert_eq!(refused.status, status, "{wanted}: {}", refused.body);
    }
    let unauthorised = send(&mut stream, "POST", "/_orrery/backup", "", "{}");
    assert_eq!(unauthorised.status, 401);
    let address = server.address().to_string();
    let nowhere = folder.path().join("missing/backup");
    let failed =
        run(command(folder.path()).arg("backup").arg(&nowhere).args(["--server", &address]));
    assert!(!failed.status.success());
    assert!(text(&failed.stderr).contains("could not create"), "{}", text(&failed.stderr));
    assert_eq!(ask(&mut stream, "GET", "/_orrery/backup", &Value::Null).json()["state"], "failed");
}

#[test]
fn a_data_folder_that_nobody_serves_is_backed_up_and_restored() {
    let (folder, data) = program::folder();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let place = data.to_str().unwrap();
    let server = Program::start(folder.path(), &["--data", place]);
    create_container(server.address());
    let body = json!({ "id": "1", "pk": "a" });
    assert_eq!(upsert(&mut connect(server.address()), "a", "", &body).status, 201);
    server.kill();
    let (backup, copy) = (at("backup"), at("copy"));
    succeed(folder.path(), &["backup", &backup, "--data", place]);
    succeed(folder.path(), &["restore", &backup, "--data", &copy]);
    let again = run(command(folder.path()).args(["restore", &backup, "--data", &copy]));
    assert!(text(&again.stderr).contains("is there already"), "{}", text(&again.stderr));
    let restored = Program::start(folder.path(), &["--data", &copy]);
    assert_eq!(upsert(&mut connect(restored.address()), "a", "", &body).status, 409);

    let file = Path::new(&backup).join("rows");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let other = at("other");
    let damaged = run(command(folder.path()).args(["restore", &backup, "--data", &other]));
    assert!(!damaged.status.success());
    assert!(text(&damaged.stderr).contains("cannot be used"), "{}", text(&damaged.stderr));
    let left: BTreeSet<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(left, ["backup", "copy", "data"].map(str::to_owned).into());
}
