//! Kills a process that writes through the door and checks what it left.
//!
//! The process prints which batches were acknowledged. After the kill every one of them
//! must be there completely, and no batch may be there in part. It also discards a range
//! and compacts the store all the time, which must not harm the rest. `ORRERY_KILLS` sets
//! how often, `ORRERY_SEED` after how long.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]
#![allow(clippy::print_stdout, reason = "the writer reports on its output")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use runtime::{Random, Runtime, SeededRandom};
use storage::local::{self, LocalConfig};
use storage::{CommitStatus, Direction, KeyRange, ScanLimit, Store, WriteBatch};

const KILLS_DEFAULT: u64 = 12;
const SEED_DEFAULT: u64 = 20_260_402;
const WRITERS: u64 = 32;
const KEYS_PER_BATCH: u64 = 9;

/// Written and discarded again and again, between the keys of the writers.
const GARBAGE: &str = "15/x/";
const GARBAGE_BYTES: u64 = 512 << 10;

/// Printed each time that is done.
const RECLAIMED: &str = "reclaimed";

/// Set in the process that writes until it is killed.
const WRITER: &str = "ORRERY_CRASH_WRITER";

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    if let Ok(folder) = std::env::var(WRITER) {
        write_until_killed(Path::new(&folder));
    }
    let number = |name, default| {
        std::env::var(name).map_or(default, |text: String| text.parse().expect("a number"))
    };
    let (kills, seed) =
        (number("ORRERY_KILLS", KILLS_DEFAULT), number("ORRERY_SEED", SEED_DEFAULT));
    println!("{kills} kills; repeat with ORRERY_KILLS={kills} ORRERY_SEED={seed}");
    let random = SeededRandom::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let config = LocalConfig {
        memtable_bytes: 256 << 10,
        table_bytes: GARBAGE_BYTES / 8,
        ..LocalConfig::default()
    };
    local::create(folder.path(), config, &Runtime::real()).unwrap().close().unwrap();
    let (mut acknowledged, mut reclaimed) = (BTreeMap::new(), 0);
    for kill in 0..kills {
        // By what was printed, not by the clock: the same on every machine. Half of them
        // are killed in what follows the first time that space was given back.
        let enough = (1 + random.next_u64() % 400, kill % 2);
        let mut child = start_writer(folder.path());
        let reports = BufReader::new(child.stdout.take().unwrap());
        let mut seen = (0, 0);
        for line in reports.lines() {
            let line = line.unwrap();
            if let Some((writer, round)) = parse(&line) {
                acknowledged.insert(writer, round);
                seen.0 += 1;
            }
            seen.1 += u64::from(line == RECLAIMED);
            if seen.0 >= enough.0 && seen.1 >= enough.1 {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(seen.0 >= enough.0 && seen.1 >= enough.1, "the writer ended by itself");
        reclaimed += seen.1;
        check(folder.path(), &mut acknowledged, kill);
    }
    println!("{} acknowledged, {reclaimed} times reclaimed", acknowledged.values().sum::<u64>());
}

fn start_writer(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "nothing_acknowledged_is_lost_when_the_process_is_killed"])
        .arg("--nocapture")
        .env(WRITER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn parse(line: &str) -> Option<(u64, u64)> {
    let (writer, round) = line.strip_prefix("acknowledged ")?.split_once(' ')?;
    Some((writer.parse().ok()?, round.parse().ok()?))
}

/// Every writer rewrites its own keys with the number of the round.
fn write_until_killed(folder: &Path) -> ! {
    let store = open(folder);
    let reclaimer = {
        let store = Arc::clone(&store);
        let body = move || reclaim_until_killed(store.as_ref());
        Runtime::real().tasks.spawn("reclaimer", Box::new(body)).unwrap()
    };
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = Arc::clone(&store);
            let body = move || {
                let mut session = store.write_session();
                let first = last_round(store.as_ref(), writer) + 1;
                for round in first.. {
                    let mut batch = WriteBatch::new();
                    for key in 0..KEYS_PER_BATCH {
                        batch.put(format!("{writer:02}/{key}"), format!("{round:0>40}"));
                    }
                    assert_eq!(session.submit(batch).wait(), CommitStatus::Durable);
                    say(&format!("acknowledged {writer} {round}"));
                }
            };
            Runtime::real().tasks.spawn("writer", Box::new(body)).unwrap()
        })
        .collect();
    writers.into_iter().chain([reclaimer]).for_each(|thread| thread.join().unwrap());
    unreachable!("writers go on until the process is killed");
}

fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").unwrap();
    output.flush().unwrap();
}

/// Meets the kill while tables are dropped and merged.
fn reclaim_until_killed(store: &dyn Store) {
    let range = KeyRange::prefix(GARBAGE.as_bytes());
    let value = Bytes::from(vec![b'x'; 4 << 10]);
    for round in 0_u64.. {
        for half in 0..2 {
            let mut batch = WriteBatch::new();
            for key in 0..GARBAGE_BYTES / 2 / value.len() as u64 {
                batch.put(format!("{GARBAGE}{half}{key:04}"), value.clone());
            }
            assert_eq!(store.write_session().submit(batch).wait(), CommitStatus::Durable);
        }
        store.discard(&range).unwrap();
        let all = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
        let left = store.view().unwrap().scan(&range, Direction::Forward, all).unwrap();
        let mut batch = WriteBatch::new();
        left.rows.into_iter().for_each(|(key, _)| batch.delete(key));
        assert_eq!(store.write_session().submit(batch).wait(), CommitStatus::Durable);
        let left = store.view().unwrap().scan(&range, Direction::Forward, all).unwrap();
        assert!(left.rows.is_empty(), "deleted for good");
        if round.is_multiple_of(2) {
            store.compact().unwrap();
        }
        say(RECLAIMED);
    }
}

/// What was found counts as acknowledged from now on: a reader has seen it.
fn check(folder: &Path, acknowledged: &mut BTreeMap<u64, u64>, kill: u64) {
    let store = open(folder);
    for writer in 0..WRITERS {
        let found = last_round(store.as_ref(), writer);
        let acknowledged = acknowledged.insert(writer, found).unwrap_or(0);
        assert!(
            found >= acknowledged,
            "kill {kill}: writer {writer} had {acknowledged} acknowledged, {found} is there"
        );
        assert!(
            found <= acknowledged + 1,
            "kill {kill}: writer {writer} has {found} of {acknowledged} acknowledged"
        );
    }
    store.verify().unwrap();
    // Half of the time the next writer finds a store that was only dropped open.
    if kill.is_multiple_of(2) {
        store.close().unwrap();
    }
}

/// The round that a writer's keys are at: all of them at the same one.
fn last_round(store: &dyn Store, writer: u64) -> u64 {
    let range = KeyRange::new(format!("{writer:02}/0"), format!("{writer:02}/:"));
    let view = store.view().unwrap();
    let chunk = view.scan(&range, Direction::Forward, ScanLimit::default()).unwrap();
    let round = |value: &Bytes| std::str::from_utf8(value).unwrap().parse::<u64>().unwrap();
    let rounds: Vec<u64> = chunk.rows.iter().map(|(_, value)| round(value)).collect();
    match rounds.as_slice() {
        [] => 0,
        [first, rest @ ..] => {
            assert_eq!(rounds.len() as u64, KEYS_PER_BATCH, "half a batch of writer {writer}");
            assert!(rest.iter().all(|other| other == first), "half a batch of writer {writer}");
            *first
        }
    }
}

fn open(folder: &Path) -> Arc<dyn Store> {
    local::open(folder, LocalConfig::default(), &Runtime::real()).unwrap()
}
