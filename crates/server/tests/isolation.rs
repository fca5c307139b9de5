//! Batches, procedures, triggers and queries of many clients on the same lists, with
//! `kill -9` in between: what the clients have seen is a history of snapshot isolation.
//!
//! `ORRERY_TRANSACTIONS` sets how many, `ORRERY_SEED` of which. `lab::histories` judges.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[path = "serve/buffered.rs"]
mod buffered;
#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "serve/client.rs"]
mod client;
#[path = "isolation/plan.rs"]
mod plan;
#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "serve/program.rs"]
mod program;
#[path = "isolation/scripts.rs"]
mod scripts;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use lab::histories::{
    Contradiction, CycleKind, History, Outcome, Step, TransactionId, Verdict, check,
};
use runtime::{Random, Runtime, SeededRandom};
use wire_cosmos::EMULATOR_KEY;

use buffered::Connection;
use client::{Signed, create_database, send_signed};
use plan::{CONTAINER, LISTS, Plan};
use program::{Program, command, run, text};

/// Enough for every form to meet every other one; `cargo xtask soak` asks for more.
const TRANSACTIONS_DEFAULT: u64 = 900;
const SEED_DEFAULT: u64 = 20_260_406;

const CLIENTS: u64 = 12;
/// Transactions between two kills.
const ROUND: u64 = 450;
/// Logical partitions at a time, so that some clients meet in each.
const PARTITIONS: u64 = 3;
/// Transactions after which clients turn to other logical partitions: lists stay short.
const GENERATION: u64 = 300;

/// Histories of the logical partitions of a round, by their keys.
#[derive(Debug, Default)]
struct Round {
    number: u64,
    histories: Mutex<BTreeMap<String, History>>,
    transactions: AtomicU64,
    values: AtomicU64,
}

impl Round {
    fn begin(&self, key: &str, plan: &Plan) -> TransactionId {
        let mut histories = self.histories.lock().unwrap();
        histories.entry(key.to_owned()).or_default().begin(plan.appends())
    }

    fn end(&self, key: &str, id: TransactionId, (outcome, steps): (Outcome, Vec<Step>)) {
        self.histories.lock().unwrap().get_mut(key).unwrap().end(id, outcome, steps);
    }

    /// A logical partition for the next transaction.
    fn key(&self, random: &SeededRandom) -> String {
        let generation = self.transactions.fetch_add(1, Ordering::Relaxed) / GENERATION;
        format!("{}-{generation}-{}", self.number, random.next_u64() % PARTITIONS)
    }

    /// Transactions one after another until the server is gone.
    fn work(&self, address: SocketAddr, random: &SeededRandom, done: &SyncSender<()>) {
        let mut connection = Connection::open(address);
        loop {
            let plan = Plan::draw(random, || self.values.fetch_add(1, Ordering::Relaxed));
            let key = self.key(random);
            let id = self.begin(&key, &plan);
            let Ok(answer) = plan.perform(&mut connection, &key) else { return };
            self.end(&key, id, answer);
            done.send(()).unwrap();
        }
    }

    /// Reads all lists once more, and judges.
    fn judge(&self, address: SocketAddr) -> Verdict {
        let mut connection = Connection::open(address);
        let keys: Vec<String> = self.histories.lock().unwrap().keys().cloned().collect();
        for key in keys {
            let plan = Plan::read_all();
            let id = self.begin(&key, &plan);
            let answer = plan.perform(&mut connection, &key).unwrap();
            assert_eq!(answer.0, Outcome::Committed);
            self.end(&key, id, answer);
        }
        let histories = self.histories.lock().unwrap();
        histories.values().map(check).fold(Verdict::default(), Verdict::and)
    }
}

#[test]
fn no_history_shows_more_than_snapshot_isolation_allows() {
    let setting = |name, default| {
        std::env::var(name).map_or(default, |text: String| text.parse().expect("a number"))
    };
    let (transactions, seed) = (
        setting("ORRERY_TRANSACTIONS", TRANSACTIONS_DEFAULT),
        setting("ORRERY_SEED", SEED_DEFAULT),
    );
    println!("repeat with ORRERY_TRANSACTIONS={transactions} ORRERY_SEED={seed}");
    let clock = Runtime::real().clock;
    let random = SeededRandom::new(seed);
    let (folder, data) = program::folder();
    let start = || {
        let data = data.display().to_string();
        Program::start(folder.path(), &["--data", &data, "--throttle", "never"])
    };
    let mut server = start();
    create_all(server.address());
    let (mut total, mut kills) = (Verdict::default(), 0);
    while (total.committed + total.aborted) as u64 <= transactions {
        kills += 1;
        let round = Arc::new(Round { number: kills, ..Round::default() });
        work_until_killed(server, &round, random.next_u64());
        server = start();
        let verdict = round.judge(server.address());
        assert!(verdict.is_clean(), "round {kills}: {verdict:?}");
        total = total.and(verdict);
    }
    server.kill();
    check_store(folder.path(), &data);
    let Verdict { committed, aborted, unknown, write_skews, .. } = total;
    println!(
        "{committed} transactions committed, {aborted} aborted, {unknown} without an answer, \
         {kills} kills: {write_skews} write skews and nothing else, {:.1} s",
        clock.monotonic().as_secs_f64()
    );
    assert!(aborted > 0 && write_skews > 0, "the clients hardly met");
}

/// Lets clients work, and kills the server once they have done enough.
fn work_until_killed(server: Program, round: &Arc<Round>, seed: u64) {
    let address = server.address();
    let (done, heard) = sync_channel(1);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (round, done) = (Arc::clone(round), done.clone());
            let body = move || round.work(address, &SeededRandom::new(seed ^ client), &done);
            Runtime::real().tasks.spawn(&format!("client-{client}"), Box::new(body)).unwrap()
        })
        .collect();
    drop(done);
    let mut server = Some(server);
    for (count, ()) in (1..).zip(heard) {
        if count >= ROUND
            && let Some(server) = server.take()
        {
            server.kill();
        }
    }
    clients.into_iter().for_each(|client| client.join().expect("every answer is clear"));
    assert!(server.is_none(), "the clients gave up before the server was killed");
}

fn create_all(address: SocketAddr) {
    let mut connection = Connection::open(address);
    assert_eq!(create_database(&mut connection, "d").status, 201);
    let mut create = |path: &str, kind, link, headers: &str, body: &str| {
        let signed = Signed { method: "POST", path, kind, link };
        let reply = send_signed(&mut connection, EMULATOR_KEY, signed, headers, body);
        assert_eq!(reply.status, 201, "{}", reply.body);
    };
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#;
    let five = "x-ms-offer-throughput: 30000\r\n";
    create("/dbs/d/colls", "colls", "dbs/d", five, container);
    for (kind, definition) in scripts::all() {
        let path = format!("/{CONTAINER}/{kind}");
        create(&path, kind, CONTAINER, "", &definition.to_string());
    }
}

fn check_store(folder: &Path, data: &Path) {
    let checked = run(command(folder).args(["check", "--data"]).arg(data));
    assert!(checked.status.success(), "{}", text(&checked.stdout));
}

/// Clients that do in several requests what should be one transaction: the checker finds out.
struct Careless {
    server: Program,
    connection: Connection,
    history: History,
}

impl Careless {
    fn new() -> Careless {
        let server = Program::start(&std::env::temp_dir(), &["--in-memory"]);
        create_all(server.address());
        let connection = Connection::open(server.address());
        Careless { server, connection, history: History::default() }
    }

    fn read(&mut self) -> Vec<Step> {
        Plan::read_all().perform(&mut self.connection, "k").unwrap().1
    }

    /// Replaces a list by what was read of it and one value more, whatever it is by now.
    fn replace(&mut self, read: &[Step], value: u64) -> Step {
        let [Step::Read { list, found }, ..] = read else { panic!("a list was read") };
        let list_of = found.iter().chain([&value]).collect::<Vec<_>>();
        let body = serde_json::json!({"id": plan::name(*list), "pk": "k", "list": list_of});
        let path = format!("/{CONTAINER}/docs");
        let signed = Signed { method: "POST", path: &path, kind: "docs", link: CONTAINER };
        let headers =
            "x-ms-documentdb-is-upsert: True\r\nx-ms-documentdb-partitionkey: [\"k\"]\r\n";
        let body = body.to_string();
        let reply = send_signed(&mut self.connection, EMULATOR_KEY, signed, headers, &body);
        assert!([200, 201].contains(&reply.status), "{}", reply.body);
        Step::Append { list: *list, value }
    }

    fn judge(mut self) -> Verdict {
        let id = self.history.begin(Vec::new());
        let last = self.read();
        self.history.end(id, Outcome::Committed, last);
        let verdict = check(&self.history);
        self.server.kill();
        verdict
    }
}

/// Without the etag that a procedure's writes are committed with.
#[test]
fn a_lost_update_is_found_out() {
    let mut clients = Careless::new();
    let (one, two) = (clients.history.begin(Vec::new()), clients.history.begin(Vec::new()));
    let (mut of_one, mut of_two) = (clients.read(), clients.read());
    let written = clients.replace(&of_one, 1);
    of_one.push(written);
    let written = clients.replace(&of_two, 2);
    of_two.push(written);
    clients.history.end(one, Outcome::Committed, of_one);
    clients.history.end(two, Outcome::Committed, of_two);
    let verdict = clients.judge();
    assert_eq!(verdict.contradictions, []);
    assert!(verdict.cycles.iter().any(|cycle| cycle.kind() == CycleKind::ReadSkew));
}

/// Without the one commit of a batch.
#[test]
fn a_torn_batch_is_found_out() {
    let mut clients = Careless::new();
    let append = |at: usize, value| Step::Append { list: LISTS[at], value };
    let batch = clients.history.begin(vec![append(0, 1), append(1, 2)]);
    let before = clients.read();
    clients.replace(&before, 1);
    let reader = clients.history.begin(Vec::new());
    let between = clients.read();
    clients.history.end(reader, Outcome::Committed, between.clone());
    clients.replace(&between[1..], 2);
    clients.history.end(batch, Outcome::Committed, vec![append(0, 1), append(1, 2)]);
    let verdict = clients.judge();
    assert_eq!(verdict.contradictions, []);
    assert!(verdict.cycles.iter().any(|cycle| cycle.kind() == CycleKind::ReadSkew));
}

/// Without the rollback of what has failed.
#[test]
fn what_a_failure_leaves_is_found_out() {
    let mut clients = Careless::new();
    let append = Step::Append { list: LISTS[0], value: 1 };
    let failed = clients.history.begin(vec![append.clone()]);
    let before = clients.read();
    clients.replace(&before, 1);
    clients.history.end(failed, Outcome::Aborted, vec![append]);
    let expected = Contradiction::AbortedRead { writer: failed, list: LISTS[0], value: 1 };
    assert_eq!(clients.judge().contradictions, [expected]);
}
