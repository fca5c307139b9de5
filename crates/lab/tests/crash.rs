//! `kill -9` under 32 writers: nothing acknowledged is lost, no batch is torn, and
//! everything that is stored is consistent.
//!
//! `ORRERY_KILLS` sets how often, `ORRERY_SEED` after how much.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::path::Path;

use lab::crash::{self, CONTAINERS, Ending, Halt, Ledger, Run, Verdict};
use model::epk::EpkRange;
use runtime::{Random, Runtime, SeededRandom};
use service::{Link, Principal, Service};
use storage::local::LocalConfig;
use testkit::wait::block_on;

/// Enough for kills to meet commits, flushes and compactions, in well under a minute.
const KILLS_DEFAULT: u64 = 20;
const SEED_DEFAULT: u64 = 20_260_403;

/// Lines after which a process is killed at the latest.
const LINES_MAX: u64 = 1_500;

/// Small enough that tables are written and merged between and during kills.
const MEMTABLE_BYTES: u64 = 256 << 10;

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let setting = |name, default| {
        std::env::var(name).map_or(default, |text: String| text.parse().expect("a number"))
    };
    let (kills, seed) =
        (setting("ORRERY_KILLS", KILLS_DEFAULT), setting("ORRERY_SEED", SEED_DEFAULT));
    println!("{kills} kills; repeat with ORRERY_KILLS={kills} ORRERY_SEED={seed}");
    let clock = Runtime::real().clock;
    let random = SeededRandom::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let (mut ledger, mut total) = (Ledger::default(), Verdict::default());
    for number in 1..=kills {
        let ending = Ending::Killed { lines: 2 + random.next_u64() % LINES_MAX };
        let run = Run {
            program: env!("CARGO_BIN_EXE_crash_writer"),
            folder: folder.path(),
            number,
            seed: random.next_u64(),
            memtable_bytes: MEMTABLE_BYTES,
            ending,
        };
        run.perform(&mut ledger).unwrap();
        // Sometimes a killed process is followed by the next one at once.
        if number < kills && random.next_u64().is_multiple_of(3) {
            continue;
        }
        let verdict = verify(folder.path(), &mut ledger);
        assert_eq!(verdict.strange, Vec::<String>::new(), "run {number}");
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

/// `kill -9` from outside in every step of a split, merge and re-bucketing, under writers:
/// the process stops in that step and waits. Interrupted transitions continue afterwards.
#[test]
fn a_transition_that_is_killed_is_completed_resumed_or_undone() {
    let seed = std::env::var("ORRERY_SEED")
        .map_or(SEED_DEFAULT, |text: String| text.parse().expect("a number"));
    println!("repeat with ORRERY_SEED={seed}");
    let random = SeededRandom::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let (mut ledger, mut moving, mut number) = (Ledger::default(), 0, 0);
    for at in Halt::all() {
        number += 1;
        let run = Run {
            program: env!("CARGO_BIN_EXE_crash_writer"),
            folder: folder.path(),
            number,
            seed: random.next_u64(),
            memtable_bytes: MEMTABLE_BYTES,
            ending: Ending::Halted { at, time: 1 + random.next_u64() % 2 },
        };
        run.perform(&mut ledger).unwrap();
        let verdict = verify(folder.path(), &mut ledger);
        assert!(verdict.is_clean() && verdict.strange.is_empty(), "{at}: {verdict:?}");
        moving += resume(folder.path());
        let verdict = verify(folder.path(), &mut ledger);
        assert!(verdict.is_clean() && verdict.strange.is_empty(), "{at}: {verdict:?}");
    }
    println!("{number} kills, {} acknowledged, {moving} moves resumed", ledger.acknowledged);
    assert!(moving > 0, "some were killed while a bucket moved");
}

/// Continues interrupted transitions. Returns how many buckets were moving.
fn resume(folder: &Path) -> usize {
    let service = crash::open_or_create(folder, LocalConfig::default()).unwrap();
    let moves = |service: &Service| -> usize {
        links().iter().map(|link| service.operator(Principal::Account).moves(link).unwrap()).sum()
    };
    let before = moves(&service);
    block_on(service.maintenance().relieve()).unwrap();
    assert_eq!(moves(&service), 0);
    block_on(service.maintenance().sweep()).unwrap();
    service.store().close().unwrap();
    before
}

fn links() -> [Link; CONTAINERS.len()] {
    CONTAINERS.map(|(name, _)| Link::parse(&format!("dbs/d/colls/{name}")).unwrap())
}

/// The ranges follow each other from one end of the hashes to the other.
fn assert_tiles(service: &Service, link: &Link) {
    let (ranges, full) = (
        block_on(service.operator(Principal::Account).partitions(link)).unwrap(),
        EpkRange::full(),
    );
    let starts = ranges.iter().map(|one| &one.range.min).chain([&full.max]);
    let ends = [&full.min].into_iter().chain(ranges.iter().map(|one| &one.range.max));
    assert!(starts.eq(ends), "{ranges:?}");
}

fn verify(folder: &Path, ledger: &mut Ledger) -> Verdict {
    let service = crash::open_or_create(folder, LocalConfig::default()).unwrap();
    let report = service.operator(Principal::Account).check(|_| {}).unwrap();
    assert!(report.is_clean(), "{report:?}");
    links().iter().for_each(|link| assert_tiles(&service, link));
    let verdict = crash::verify(&service, ledger).unwrap();
    service.store().close().unwrap();
    verdict
}
