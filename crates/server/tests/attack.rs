//! Hostile queries from 64 clients: everyone else is answered, and a stop stops.
//!
//! `ORRERY_ATTACK_SECONDS` sets for how long; only then is time asserted, so that a test
//! run on a busy machine checks outcomes alone.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "serve/client.rs"]
mod client;
#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "serve/program.rs"]
mod program;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use runtime::{Clock as _, RealClock};
use rustix::process::Signal;
use wire_cosmos::EMULATOR_KEY;

use client::{Reply, Signed, connect, create_database, get, send_signed, try_send};
use program::Program;

/// Enough to see that everyone is answered; `cargo xtask soak` asks for more, and asserts
/// times.
const SECONDS_DEFAULT: u64 = 3;

const ATTACKERS: usize = 64;

/// Everyone else is answered within this time in a soak.
const PATIENCE: Duration = Duration::from_secs(1);

const DOCS: &str = "/dbs/d/colls/c/docs";

#[test]
fn hostile_queries_hold_nobody_up() {
    let asked = std::env::var("ORRERY_ATTACK_SECONDS").ok();
    let seconds = asked.as_ref().map_or(SECONDS_DEFAULT, |text| text.parse().unwrap());
    let program = Program::in_memory();
    let address = program.address();
    let token = prepare(address);
    let (clock, ends) = (RealClock::new(), AtomicBool::new(false));
    let (attacks, plans) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut worst = Worst::default();
    std::thread::scope(|scope| {
        for number in 0..ATTACKERS {
            let (token, ends) = (&token, &ends);
            let count = if number.is_multiple_of(2) { &plans } else { &attacks };
            scope.spawn(move || attack(address, token, number, (ends, count)));
        }
        let began = clock.monotonic();
        while clock.monotonic() - began < Duration::from_secs(seconds) {
            worst.measure(&clock, address);
        }
        let stopping = clock.monotonic();
        program.signal(Signal::TERM);
        let (status, errors) = program.wait();
        worst.stop = clock.monotonic() - stopping;
        ends.store(true, Ordering::Relaxed);
        assert!(status.success(), "{errors}");
        assert!(asked.is_none() || !errors.contains("cut off"), "{errors}");
    });
    println!(
        "{} plans and {} queries of {ATTACKERS} attackers in {seconds} s; at the worst, health took \
         {:?}, a read {:?}, a small query {:?}, the stop {:?}, over {} rounds",
        plans.load(Ordering::Relaxed),
        attacks.load(Ordering::Relaxed),
        worst.health,
        worst.read,
        worst.query,
        worst.stop,
        worst.rounds,
    );
    assert!(worst.rounds > 0 && plans.load(Ordering::Relaxed) > 0);
    if asked.is_some() {
        for took in [worst.health, worst.read, worst.query, worst.stop] {
            assert!(took < PATIENCE, "somebody waited for {took:?}");
        }
    }
}

/// The longest that each kind of request took.
#[derive(Debug, Default)]
struct Worst {
    health: Duration,
    read: Duration,
    query: Duration,
    stop: Duration,
    rounds: u64,
}

impl Worst {
    fn measure(&mut self, clock: &RealClock, address: SocketAddr) {
        let timed = |ask: &dyn Fn() -> Reply| {
            let began = clock.monotonic();
            let reply = ask();
            assert_eq!(reply.status, 200, "{}", reply.body);
            clock.monotonic() - began
        };
        let health = timed(&|| get(&mut connect(address), "/_orrery/health"));
        let read = timed(&|| {
            let link = "dbs/d/colls/c/docs/1";
            let path = format!("/{link}");
            let request = Signed { method: "GET", path: &path, kind: "docs", link };
            send_signed(&mut connect(address), EMULATOR_KEY, request, KEY, "")
        });
        let query = timed(&|| {
            let request =
                Signed { method: "POST", path: DOCS, kind: "docs", link: "dbs/d/colls/c" };
            let headers = format!("{KEY}{QUERY}");
            let body = r#"{"query":"SELECT * FROM c WHERE c.id = '1'"}"#;
            send_signed(&mut connect(address), EMULATOR_KEY, request, &headers, body)
        });
        self.health = self.health.max(health);
        self.read = self.read.max(read);
        self.query = self.query.max(query);
        self.rounds += 1;
    }
}

const KEY: &str = "x-ms-documentdb-partitionkey: [\"k\"]\r\n";
const QUERY: &str = "content-type: application/query+json\r\nx-ms-documentdb-isquery: True\r\n";

/// Makes a container with an item; returns a token that may read it.
fn prepare(address: SocketAddr) -> String {
    let stream = &mut connect(address);
    let mut create = |path: &str, kind: &str, link: &str, headers: &str, body: &str| {
        let request = Signed { method: "POST", path, kind, link };
        let reply = send_signed(stream, EMULATOR_KEY, request, headers, body);
        assert_eq!(reply.status, 201, "{path}: {}", reply.body);
        reply
    };
    assert_eq!(create_database(&mut connect(address), "d").status, 201);
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash"}}"#;
    create("/dbs/d/colls", "colls", "dbs/d", "", container);
    create(DOCS, "docs", "dbs/d/colls/c", KEY, r#"{"id":"1","pk":"k"}"#);
    create("/dbs/d/users", "users", "dbs/d", "", r#"{"id":"u"}"#);
    let permission = r#"{"id":"p","permissionMode":"Read","resource":"dbs/d/colls/c"}"#;
    let reply =
        create("/dbs/d/users/u/permissions", "permissions", "dbs/d/users/u", "", permission);
    reply.json()["_token"].as_str().unwrap().to_owned()
}

/// Asks for a plan or a page that would take minutes, again and again; some leave early.
fn attack(
    address: SocketAddr,
    token: &str,
    number: usize,
    (ends, count): (&AtomicBool, &AtomicU64),
) {
    // Half of the texts have a state for every byte, the others for each of the 200 before it.
    let noise = |n: usize| if n.wrapping_mul(0x9E37_79B9) >> 7 & 1 == 0 { 'a' } else { 'b' };
    let (text, pattern) = match number % 4 {
        0 | 1 => ("a".repeat(2_000_000), "a{0,5000}b"),
        _ => ((0..2_000_000).map(noise).collect(), "[ab]*a[ab]{200}c"),
    };
    let body = format!(
        r#"{{"query":"SELECT VALUE RegexMatch(@s,@p) FROM c","parameters":[{{"name":"@s","value":"{text}"}},{{"name":"@p","value":"{pattern}"}}]}}"#
    );
    let plan = "x-ms-cosmos-is-query-plan-request: True\r\n";
    let headers = format!(
        "authorization: {}\r\nx-ms-date: Mon, 01 Jan 2024 00:00:00 GMT\r\n{QUERY}{}\
         x-ms-documentdb-query-enablecrosspartition: True\r\n",
        token.replace('=', "%3d").replace('&', "%26"),
        if number.is_multiple_of(2) { plan } else { "" },
    );
    while !ends.load(Ordering::Relaxed) {
        let Ok(mut stream) = std::net::TcpStream::connect(address) else { return };
        let patience = if number % 8 < 4 { 60_000 } else { 100 };
        stream.set_read_timeout(Some(Duration::from_millis(patience))).unwrap();
        // An impatient client leaves without an answer, as all do at the end.
        if let Ok(reply) = try_send(&mut stream, "POST", DOCS, &headers, &body) {
            assert!([200, 400, 408, 429, 503].contains(&reply.status), "{}", reply.body);
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}
