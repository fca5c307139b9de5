//! Clients that make the server hold as much as it can, in turns: half-sent bodies, HTTP/2
//! connections that read nothing, queries that keep much, large batches.
//!
//! In every run the server's own counters must stay within their parts of `--memory`, and
//! another client must be served meanwhile. With `ORRERY_ATTACKS` set (`cargo xtask soak`)
//! that continues for as many rounds, and the resident memory of the process is compared
//! with the budget.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "serve/client.rs"]
mod client;
#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "serve/frames.rs"]
mod frames;
#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "serve/program.rs"]
mod program;

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use runtime::{Clock as _, RealClock};
use serde_json::Value;
use wire_cosmos::EMULATOR_KEY;

use client::{Reply, Signed, connect, create_database, send, send_signed};
use frames::{END_HEADERS, END_STREAM, HEADERS, Line, PREFACE, SETTINGS, frame};
use program::{Program, folder};

const BUDGET_MIB: usize = 256;

/// Bytes above which an attack counts as effective.
const FELT_BYTES: u64 = 1 << 20;

/// Only an attack that never takes effect reaches it.
const PATIENCE: Duration = Duration::from_secs(180);

const FEED: Signed<'_> =
    Signed { method: "GET", path: "/dbs/db/colls/c/docs", kind: "docs", link: "dbs/db/colls/c" };
const WRITE: Signed<'_> = Signed { method: "POST", ..FEED };
const KEY: &str = "x-ms-documentdb-partitionkey: [\"p\"]\r\n";
const IN_PLACE: &str = "x-ms-documentdb-isquery: true\r\ncontent-type: application/query+json\r\n";

/// How much is done.
#[derive(Clone, Copy, Debug)]
struct Effort {
    rounds: u64,
    documents: usize,
    readers: usize,
    queries: usize,
    /// Whether the resident memory is checked.
    weighs: bool,
}

impl Effort {
    fn asked_for() -> Effort {
        match std::env::var("ORRERY_ATTACKS").ok().and_then(|text| text.parse().ok()) {
            Some(rounds) => {
                Effort { rounds, documents: 400, readers: 20, queries: 64, weighs: true }
            }
            None => Effort { rounds: 1, documents: 60, readers: 5, queries: 8, weighs: false },
        }
    }
}

/// About ten kilobytes each, most of them brackets: the tree of such a text is large.
fn document(number: usize) -> String {
    let nested = format!("{}{number}", "[],".repeat(1_000));
    let text = format!("{number}-{}", "x".repeat(6_000));
    format!(r#"{{"id":"{number}","pk":"p","n":{number},"a":[{nested}],"t":"{text}"}}"#)
}

fn prepare(address: SocketAddr, documents: usize) {
    let mut stream = connect(address);
    assert_eq!(create_database(&mut stream, "db").status, 201);
    let create = Signed { method: "POST", path: "/dbs/db/colls", kind: "colls", link: "dbs/db" };
    let definition = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash"},
        "indexingPolicy":{"indexingMode":"consistent","includedPaths":[{"path":"/n/?"}],
        "excludedPaths":[{"path":"/*"}]}}"#;
    assert_eq!(send_signed(&mut stream, EMULATOR_KEY, create, "", definition).status, 201);
    for number in 0..documents {
        let reply = send_signed(&mut stream, EMULATOR_KEY, WRITE, KEY, &document(number));
        assert_eq!(reply.status, 201, "{}", reply.body);
    }
}

fn counters(address: SocketAddr) -> Value {
    let key = format!("authorization: Bearer {EMULATOR_KEY}\r\n");
    send(&mut connect(address), "GET", "/_orrery/counters", &key, "").json()["memory"].clone()
}

/// Waits until an attack has reached the memory it is after, however busy the machine.
fn await_attack(address: SocketAddr, part: &str) {
    let (clock, mut memory) = (RealClock::new(), counters(address));
    let from = clock.monotonic();
    while memory[part]["highBytes"].as_u64() <= Some(FELT_BYTES) {
        assert!(clock.monotonic() - from < PATIENCE, "{part} was spared: {memory}");
        clock.sleep(Duration::from_millis(10));
        memory = counters(address);
    }
}

/// No part exceeds its budget, and another client is served.
fn assert_bounded_and_served(address: SocketAddr) {
    let memory = counters(address);
    for part in ["bodies", "answers", "queries"] {
        let bytes = |name: &str| memory[part][name].as_u64().unwrap();
        assert!(bytes("highBytes") <= bytes("limitBytes"), "{part}: {memory}");
    }
    let one = Signed {
        method: "GET",
        path: "/dbs/db/colls/c/docs/7",
        kind: "docs",
        link: "dbs/db/colls/c/docs/7",
    };
    let read = send_signed(&mut connect(address), EMULATOR_KEY, one, KEY, "");
    assert_eq!(read.status, 200, "{}", read.body);
    let body = document(7);
    let upsert = format!("{KEY}x-ms-documentdb-is-upsert: true\r\n");
    let written = send_signed(&mut connect(address), EMULATOR_KEY, WRITE, &upsert, &body);
    assert_eq!(written.status, 200, "{}", written.body);
}

/// Bodies that are never completed, authorised and not.
fn half_sent(address: SocketAddr) -> Vec<TcpStream> {
    let signed = format!("{}{KEY}", WRITE.headers(EMULATOR_KEY));
    let half = "x".repeat(300_000);
    (0..90)
        .map(|number| {
            let headers = if number % 3 == 0 { &signed } else { "" };
            let mut stream = connect(address);
            let head = format!(
                "POST {} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2000000\r\n{headers}\r\n",
                WRITE.path
            );
            stream.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
            // Unauthorised clients are disconnected while they send; others wait for
            // memory.
            let _sent =
                stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(half.as_bytes()));
            stream
        })
        .collect()
}

/// Headers of a request in HTTP/2, with nothing compressed.
fn block(request: Signed<'_>, more: &str) -> Vec<u8> {
    let literal = |name: &str, value: &str| {
        let len = |text: &str| {
            let len = u8::try_from(text.len().min(127)).unwrap();
            match text.len().checked_sub(127) {
                None => vec![len],
                Some(rest) => {
                    let (low, high) = (rest % 128, rest / 128);
                    let byte = |part: usize| u8::try_from(part).unwrap();
                    vec![127, byte(low) | 0x80, byte(high)]
                }
            }
        };
        [vec![0], len(name), name.as_bytes().to_vec(), len(value), value.as_bytes().to_vec()]
            .concat()
    };
    let mut block = [0x82_u8, 0x86].to_vec();
    block.extend(literal(":path", request.path));
    block.extend(literal(":authority", "localhost"));
    let headers = format!("{}{more}", request.headers(EMULATOR_KEY));
    for (name, value) in headers.lines().filter_map(|line| line.split_once(": ")) {
        block.extend(literal(name, value));
    }
    block
}

/// Connections that ask for a hundred pages each and do not read a byte.
fn deaf(address: SocketAddr, count: usize) -> Vec<Line<TcpStream>> {
    let ask = block(FEED, "x-ms-max-item-count: 1000\r\n");
    let begin = |_| {
        let mut line = Line { stream: connect(address) };
        let mut bytes = [PREFACE, &frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])].concat();
        for number in 0..100 {
            bytes.extend(frame(HEADERS, END_STREAM | END_HEADERS, number * 2 + 1, &ask));
        }
        line.send(&bytes);
        line
    };
    (0..count).map(begin).collect()
}

/// Queries at the same time, each of which keeps as much as it may.
fn greedy(address: SocketAddr, count: usize) -> Vec<u16> {
    let texts = [
        "SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a",
        "SELECT VALUE MAKELIST(c.a) FROM c",
        "SELECT DISTINCT VALUE c.t FROM c",
        "SELECT * FROM c ORDER BY c.t",
        "SELECT x.n, y.n AS m, MAX(x.t) AS t FROM c JOIN x IN ARRAY(SELECT VALUE c) \
         JOIN y IN ARRAY(SELECT VALUE c) GROUP BY x.n, y.n",
    ];
    std::thread::scope(|scope| {
        let ask = |number: usize| {
            let body = serde_json::json!({ "query": texts[number % texts.len()] }).to_string();
            let headers = format!("{KEY}{IN_PLACE}");
            send_signed(&mut connect(address), EMULATOR_KEY, WRITE, &headers, &body).status
        };
        let asked: Vec<_> = (0..count).map(|number| scope.spawn(move || ask(number))).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    })
}

/// A batch that writes much and reads it a hundred times over.
fn batch(address: SocketAddr) -> Reply {
    let mut operations = vec![format!(
        r#"{{"operationType":"Upsert","resourceBody":{{"id":"large","pk":"p","t":"{}"}}}}"#,
        "x".repeat(1_500_000)
    )];
    operations.resize(90, r#"{"operationType":"Read","id":"large"}"#.to_owned());
    let headers =
        format!("{KEY}x-ms-cosmos-is-batch-request: true\r\nx-ms-cosmos-batch-atomic: true\r\n");
    let body = format!("[{}]", operations.join(","));
    send_signed(&mut connect(address), EMULATOR_KEY, WRITE, &headers, &body)
}

#[test]
fn attacks_on_memory_stay_within_the_budget() {
    let effort = Effort::asked_for();
    let (folder, data) = folder();
    let memory = format!("{BUDGET_MIB}MiB");
    let arguments = ["--data", data.to_str().unwrap(), "--memory", &memory];
    let program = Program::start(folder.path(), &arguments);
    let address = program.address();
    prepare(address, effort.documents);
    let scale = Scale::of(&program, effort.weighs);
    let idle = scale.weigh("idle");
    for round in 0..effort.rounds {
        let bodies = half_sent(address);
        await_attack(address, "bodies");
        assert_bounded_and_served(address);
        scale.weigh(&format!("round {round}, half-sent bodies"));
        drop(bodies);
        let lines = deaf(address, effort.readers);
        await_attack(address, "answers");
        assert_bounded_and_served(address);
        scale.weigh(&format!("round {round}, unread answers"));
        drop(lines);
        let statuses = greedy(address, effort.queries);
        let known = |status: &u16| matches!(status, 200 | 400 | 429 | 503);
        assert!(statuses.iter().all(known), "{statuses:?}");
        assert_bounded_and_served(address);
        scale.weigh(&format!("round {round}, queries {:?}", tally(&statuses)));
        let status = batch(address).status;
        assert!(matches!(status, 207 | 413), "{status}");
        assert_bounded_and_served(address);
        scale.weigh(&format!("round {round}, batches"));
    }
    await_attack(address, "queries");
    if effort.weighs {
        RealClock::new().sleep(Duration::from_secs(15));
        println!("{}", counters(address));
        scale.finish(idle);
    }
}

/// Watches the resident memory of a process, where Linux reports it. The peak since the
/// last look is the kernel's own record of it, so nothing is missed between two looks.
struct Scale {
    id: Option<u32>,
}

impl Scale {
    fn of(program: &Program, weighs: bool) -> Scale {
        Scale { id: (weighs && cfg!(target_os = "linux")).then(|| program.id()) }
    }

    fn read(&self, name: &str) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id?)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        Some(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10)
    }

    /// MiB now; prints the peak since the last time, and fails if that was too much.
    #[expect(clippy::print_stdout, reason = "figures are the point of a soak")]
    fn weigh(&self, when: &str) -> Option<u64> {
        let (now, peak) = (self.read("VmRSS:")?, self.read("VmHWM:")?);
        println!("{when}: {now} MiB resident, {peak} MiB at most");
        std::fs::write(format!("/proc/{}/clear_refs", self.id?), "5").unwrap();
        let limit = BUDGET_MIB as u64 * 12 / 10;
        assert!(peak <= limit, "{peak} MiB with a budget of {BUDGET_MIB} MiB");
        Some(now)
    }

    /// What was freed is the system's again: what is left is what the store has, and a
    /// little more.
    fn finish(&self, idle: Option<u64>) {
        let after = self.weigh("afterwards");
        let left = after.zip(idle).map_or(0, |(after, idle)| after.saturating_sub(idle));
        assert!(left <= BUDGET_MIB as u64 / 4, "{left} MiB more than before");
    }
}

fn tally(statuses: &[u16]) -> std::collections::BTreeMap<u16, usize> {
    statuses.iter().fold(std::collections::BTreeMap::new(), |mut tally, status| {
        *tally.entry(*status).or_default() += 1;
        tally
    })
}
