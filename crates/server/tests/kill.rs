//! `kill -9` under 16 HTTP clients: every write that was answered is there when the
//! server is started again, no batch is torn, and `orrery check` finds nothing.
//!
//! `ORRERY_KILLS` sets how often, `ORRERY_SEED` after how much. What writers do and
//! how they are judged is the same as below the wire (`lab::crash`).
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[path = "serve/buffered.rs"]
mod buffered;
#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "serve/client.rs"]
mod client;
#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "serve/program.rs"]
mod program;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};

use lab::crash::{
    self, Attempt, CONTAINERS, Found, HOT_ID, HOT_KEY, HOT_PATCH, Ledger, Line, LogicalPartition,
    Verdict, Writer,
};
use runtime::{Random, Runtime, SeededRandom};
use wire_cosmos::EMULATOR_KEY;

use buffered::Connection;
use client::{Reply, Signed, create_database, try_send};
use program::{Program, command, run, text};

/// Enough for every test run; `cargo xtask soak` asks for more.
const KILLS_DEFAULT: u64 = 6;
const SEED_DEFAULT: u64 = 20_260_404;

const WRITERS: usize = 16;

/// Lines after which the server is killed at the latest.
const LINES_MAX: u64 = 1_500;

/// A request for items or one item.
struct Request {
    method: &'static str,
    path: String,
    /// What is signed.
    link: String,
    headers: String,
    body: String,
}

fn container_link(container: usize) -> String {
    format!("dbs/d/colls/{}", CONTAINERS[container].0)
}

impl Request {
    fn send(&self, connection: &mut Connection) -> std::io::Result<Reply> {
        let Request { method, path, link, headers, body } = self;
        let signed = Signed { method, path, kind: "docs", link };
        let headers = format!("{}{headers}", signed.headers(EMULATOR_KEY));
        try_send(connection, method, path, &headers, body)
    }

    fn on_items(partition: &LogicalPartition, headers: &str, body: String) -> Request {
        let link = container_link(partition.container);
        let headers = format!("{}{headers}", key_header(&partition.key));
        Request { method: "POST", path: format!("/{link}/docs"), link, headers, body }
    }

    fn on_item(
        method: &'static str,
        partition: &LogicalPartition,
        id: &str,
        body: String,
    ) -> Request {
        let link = format!("{}/docs/{id}", container_link(partition.container));
        Request {
            method,
            path: format!("/{link}"),
            link,
            headers: key_header(&partition.key),
            body,
        }
    }

    /// The request that tries it.
    fn of(attempt: &Attempt) -> Request {
        let item = |partition: &LogicalPartition, id: &str, version| {
            crash::item_body(&partition.key, id, version)
        };
        match attempt {
            Attempt::Create { partition, id, version } => {
                Request::on_items(partition, "", item(partition, id, *version))
            }
            Attempt::Upsert { partition, id, version } => {
                let upsert = "x-ms-documentdb-is-upsert: True\r\n";
                Request::on_items(partition, upsert, item(partition, id, *version))
            }
            Attempt::Replace { partition, id, version } => {
                Request::on_item("PUT", partition, id, item(partition, id, *version))
            }
            Attempt::Patch { partition, id, version } => {
                Request::on_item("PATCH", partition, id, crash::patch_body(*version))
            }
            Attempt::Delete { partition, id } => {
                Request::on_item("DELETE", partition, id, String::new())
            }
            Attempt::Batch { partition, size, version } => {
                let operation = |id: String| {
                    let item = item(partition, &id, *version);
                    format!(r#"{{"operationType":"Upsert","resourceBody":{item}}}"#)
                };
                let operations: Vec<String> = Attempt::family(*size).map(operation).collect();
                let batch =
                    "x-ms-cosmos-is-batch-request: True\r\nx-ms-cosmos-batch-atomic: True\r\n";
                Request::on_items(partition, batch, format!("[{}]", operations.join(",")))
            }
            Attempt::Increment { container } => {
                let partition = LogicalPartition { container: *container, key: HOT_KEY.to_owned() };
                Request::on_item("PATCH", &partition, HOT_ID, HOT_PATCH.to_owned())
            }
        }
    }
}

fn key_header(key: &str) -> String {
    format!("x-ms-documentdb-partitionkey: [\"{key}\"]\r\n")
}

#[test]
fn nothing_answered_is_lost_when_the_server_is_killed() {
    let setting = |name, default| {
        std::env::var(name).map_or(default, |text: String| text.parse().expect("a number"))
    };
    let (kills, seed) =
        (setting("ORRERY_KILLS", KILLS_DEFAULT), setting("ORRERY_SEED", SEED_DEFAULT));
    println!("{kills} kills over HTTP; repeat with ORRERY_KILLS={kills} ORRERY_SEED={seed}");
    let clock = Runtime::real().clock;
    let random = SeededRandom::new(seed);
    let (folder, data) = program::folder();
    let start = || Program::start(folder.path(), &["--data", &data.display().to_string()]);
    let mut server = start();
    create_all(server.address());
    let (mut ledger, mut total) = (Ledger::default(), Verdict::default());
    for number in 1..=kills {
        let lines = 2 + random.next_u64() % LINES_MAX;
        write_until_killed(server, (number, random.next_u64(), lines), &mut ledger);
        // Now and then a check comes first, which leaves everything to the server.
        if random.next_u64().is_multiple_of(4) {
            check(folder.path(), &data);
        }
        server = start();
        // Now and then writers go on at once.
        if number < kills && random.next_u64().is_multiple_of(3) {
            continue;
        }
        let verdict = verify(server.address(), &mut ledger);
        assert_eq!(verdict.strange, Vec::<String>::new(), "round {number}");
        total.items = verdict.items;
        total.lost.extend(verdict.lost);
        total.torn.extend(verdict.torn);
    }
    server.kill();
    check(folder.path(), &data);
    println!(
        "{kills} kills over HTTP, {} acknowledged, {} lost, {} torn batches, {} items left, {:.1} s",
        ledger.acknowledged,
        total.lost.len(),
        total.torn.len(),
        total.items,
        clock.monotonic().as_secs_f64()
    );
    assert!(ledger.acknowledged > kills, "hardly anything was written");
    assert!(total.is_clean(), "{total:?}");
}

fn create_all(address: SocketAddr) {
    let mut connection = Connection::open(address);
    assert_eq!(create_database(&mut connection, "d").status, 201);
    for (container, (name, throughput)) in CONTAINERS.into_iter().enumerate() {
        let body = format!(r#"{{"id":"{name}","partitionKey":{{"paths":["/pk"],"version":2}}}}"#);
        let signed = Signed { method: "POST", path: "/dbs/d/colls", kind: "colls", link: "dbs/d" };
        let throughput = format!("x-ms-offer-throughput: {throughput}\r\n");
        let reply = client::send_signed(&mut connection, EMULATOR_KEY, signed, &throughput, &body);
        assert_eq!(reply.status, 201, "{}", reply.body);
        let partition = LogicalPartition { container, key: HOT_KEY.to_owned() };
        let hot = Request::on_items(&partition, "", crash::item_body(HOT_KEY, HOT_ID, 0));
        assert_eq!(hot.send(&mut connection).unwrap().status, 201);
    }
}

/// Lets all writers write, kills the server once they have printed `lines` lines, and
/// collects all of them.
fn write_until_killed(
    server: Program,
    (number, seed, lines): (u64, u64, u64),
    ledger: &mut Ledger,
) {
    let address = server.address();
    let (said, heard) = sync_channel(WRITERS);
    let tasks = Runtime::real().tasks;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let said = said.clone();
            let body = move || write(address, writer, Writer::new(number, writer, seed), &said);
            tasks.spawn(&format!("writer-{writer}"), Box::new(body)).unwrap()
        })
        .collect();
    drop(said);
    let mut server = Some(server);
    for (count, line) in (1..).zip(heard) {
        ledger.hear(line);
        if count >= lines
            && let Some(server) = server.take()
        {
            server.kill();
        }
    }
    for writer in writers {
        writer.join().expect("every answer is clear");
    }
    assert!(server.is_none(), "the writers gave up before the server was killed");
    ledger.writers_died();
}

/// Writes until the server is gone.
fn write(address: SocketAddr, writer: usize, mut work: Writer, said: &SyncSender<Line>) {
    let mut connection = Connection::open(address);
    loop {
        let attempt = work.draw();
        let request = Request::of(&attempt);
        said.send(Line::Try { writer, attempt }).unwrap();
        let Ok(reply) = request.send(&mut connection) else { return };
        said.send(match reply.status {
            200 | 201 | 204 => Line::Done { writer },
            404 | 409 | 429 => Line::Refused { writer },
            _ => panic!("{} {}: {}", request.method, request.path, reply.head),
        })
        .unwrap();
    }
}

/// Reads every item by its key, and all items of each container page by page.
fn verify(address: SocketAddr, ledger: &mut Ledger) -> Verdict {
    let mut connection = Connection::open(address);
    let (mut found, mut verdict) = (Found::new(), Verdict::default());
    for (partition, id) in ledger.items() {
        let read = Request::on_item("GET", &partition, &id, String::new());
        let reply = read.send(&mut connection).unwrap();
        match reply.status {
            200 => {
                let body = reply.body.as_bytes();
                crash::add_item(partition.container, body, &mut found, &mut verdict).unwrap();
            }
            status => assert_eq!(status, 404, "{partition:?} {id}: {}", reply.body),
        }
    }
    let mut listed = Found::new();
    for container in 0..CONTAINERS.len() {
        list(&mut connection, container, &mut listed, &mut verdict);
    }
    assert_eq!(listed, found, "a list and point reads disagree");
    crash::judge(found, ledger, &mut verdict);
    verdict
}

fn list(connection: &mut Connection, container: usize, found: &mut Found, verdict: &mut Verdict) {
    let link = container_link(container);
    let mut continuation = String::new();
    loop {
        let headers = format!("x-ms-max-item-count: 500\r\n{continuation}");
        let path = format!("/{link}/docs");
        let request =
            Request { method: "GET", path, link: link.clone(), headers, body: String::new() };
        let reply = request.send(connection).unwrap();
        assert_eq!(reply.status, 200, "{}", reply.body);
        for item in reply.json()["Documents"].as_array().unwrap() {
            crash::add_item(container, item.to_string().as_bytes(), found, verdict).unwrap();
        }
        match reply.header("x-ms-continuation") {
            Some(next) => continuation = format!("x-ms-continuation: {next}\r\n"),
            None => return,
        }
    }
}

fn check(folder: &Path, data: &Path) {
    let checked = run(command(folder).args(["check", "--data"]).arg(data));
    assert!(checked.status.success(), "{}", text(&checked.stdout));
}
