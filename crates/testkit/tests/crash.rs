//! `kill -9` under 32 writers: nothing acknowledged is lost, no batch is torn, and
//! everything that is stored agrees with itself.
//!
//! `ORRERY_KILLS` sets how often, `ORRERY_SEED` after how much.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use runtime::{Random, Runtime, SeededRandom};
use storage::local::LocalConfig;
use testkit::crash::{self, Ledger, Line, Verdict};

/// Enough for kills to meet commits, flushes and compactions, in well under a minute.
const KILLS_DEFAULT: u64 = 20;
const SEED_DEFAULT: u64 = 20_260_403;

/// Lines after which a process is killed at the latest.
const LINES_MAX: u64 = 1_500;

/// Small enough that tables are written and merged between and during kills.
const MEMTABLE_BYTES: u64 = 256 << 10;

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let number = |name, default| {
        std::env::var(name).map_or(default, |text: String| text.parse().expect("a number"))
    };
    let (kills, seed) =
        (number("ORRERY_KILLS", KILLS_DEFAULT), number("ORRERY_SEED", SEED_DEFAULT));
    println!("{kills} kills; repeat with ORRERY_KILLS={kills} ORRERY_SEED={seed}");
    let clock = Runtime::real().clock;
    let random = SeededRandom::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let (mut ledger, mut total) = (Ledger::default(), Verdict::default());
    for run in 1..=kills {
        // By what was said, not by the clock: the same on every machine.
        let lines = 2 + random.next_u64() % LINES_MAX;
        write_and_kill(folder.path(), run, random.next_u64(), lines, &mut ledger);
        // Now and then a killed process is followed by the next one at once.
        if run < kills && random.next_u64().is_multiple_of(3) {
            continue;
        }
        let verdict = verify(folder.path(), &mut ledger);
        assert_eq!(verdict.strange, Vec::<String>::new(), "run {run}");
        total.items = verdict.items;
        total.lost.extend(verdict.lost);
        total.torn.extend(verdict.torn);
    }
    println!(
        "{kills} kills, {} acknowledged, {} lost, {} torn batches, {} items left, {:.1} s",
        ledger.acknowledged,
        total.lost.len(),
        total.torn.len(),
        total.items,
        clock.monotonic().as_secs_f64()
    );
    assert!(total.is_clean(), "{total:?}");
}

/// Lets a process write until it has said enough, and kills it.
fn write_and_kill(folder: &Path, run: u64, seed: u64, lines: u64, ledger: &mut Ledger) {
    let mut writer = start(folder, run, seed);
    let mut output = BufReader::new(writer.stdout.take().unwrap());
    let (mut heard, mut line) = (0, String::new());
    while output.read_line(&mut line).unwrap() > 0 {
        // The last line may be cut off; then the operation is simply under way.
        if let Some(line) = Line::parse(line.trim_end_matches('\n')) {
            ledger.hear(line);
        }
        heard += 1;
        if heard == lines {
            writer.kill().unwrap();
        }
        line.clear();
    }
    writer.wait().unwrap();
    assert!(heard >= lines, "run {run} ended by itself after {heard} lines");
    ledger.writers_died();
}

fn start(folder: &Path, run: u64, seed: u64) -> Child {
    Command::new(env!("CARGO_BIN_EXE_crash_writer"))
        .arg(folder)
        .args(["--run", &run.to_string(), "--seed", &seed.to_string()])
        .args(["--memtable-bytes", &MEMTABLE_BYTES.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn verify(folder: &Path, ledger: &mut Ledger) -> Verdict {
    let service = crash::open_or_create(folder, LocalConfig::default()).unwrap();
    let report = service.check(|_| {}).unwrap();
    assert!(report.is_clean(), "{report:?}");
    let verdict = crash::verify(&service, ledger).unwrap();
    service.store().close().unwrap();
    verdict
}
