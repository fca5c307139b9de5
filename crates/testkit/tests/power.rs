//! Simulated power cuts: whichever part of the unsynced changes a disk holds, the folder
//! opens, nothing that was promised is missing, and what is there is a state that existed
//! at some moment.
//!
//! `ORRERY_POWER_CUTS` sets how many in each durability, `ORRERY_SEED` which.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]
#![allow(clippy::print_stdout, reason = "seeds and figures are for the person who runs it")]

use std::path::Path;

use anyhow::{Context, Result, ensure};
use runtime::{Random, Runtime, SeededRandom};
use storage::Durability::{self, Full, Os};
use storage::local::{self, LocalConfig};
use testkit::power::{Disk, Ending, Event, Promise, Recorder, Run, Trace, history};

/// A few seconds of cuts.
const CUTS_DEFAULT: u64 = 60;
const SEED_DEFAULT: u64 = 20_261_117;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// A process of a recording: its durability, its batches, whether they are large, its end.
type Part = (Durability, u64, bool, Ending);

#[test]
fn nothing_acknowledged_is_lost_with_full_durability() {
    let parts = [
        (Full, 260, false, Ending::Close),
        (Full, 160, false, Ending::Abort),
        (Full, 120, false, Ending::Close),
        (Full, 100, false, Ending::Abort),
    ];
    cut_often("full", &parts, setting("ORRERY_POWER_CUTS", CUTS_DEFAULT));
}

#[test]
fn a_folder_opens_with_a_state_that_was_with_durability_os() {
    let parts = [
        (Os, 260, false, Ending::Close),
        (Os, 160, false, Ending::Abort),
        (Os, 120, false, Ending::Close),
        (Os, 100, false, Ending::Abort),
    ];
    let lost = cut_often("os", &parts, setting("ORRERY_POWER_CUTS", CUTS_DEFAULT));
    assert!(lost > 0, "cuts that cost nothing show nothing");
}

#[test]
fn each_run_has_the_durability_it_was_asked_for() {
    let parts = [
        (Os, 120, false, Ending::Abort),
        (Full, 120, false, Ending::Abort),
        (Os, 120, false, Ending::Close),
        (Full, 60, false, Ending::Close),
        (Os, 60, false, Ending::Abort),
    ];
    cut_often("mixed", &parts, setting("ORRERY_POWER_CUTS", CUTS_DEFAULT) / 2);
}

/// Segments of several megabytes are sealed, succeeded by others and written over. Fewer
/// cuts, as each takes seconds.
#[test]
fn large_segments_are_cut_as_well() {
    let parts = [(Os, 70, true, Ending::Abort), (Os, 40, true, Ending::Close)];
    cut_often("segments", &parts, setting("ORRERY_POWER_CUTS", CUTS_DEFAULT) / 12);
}

/// Records the parts and cuts their power at `cuts` moments. Returns how many acknowledged
/// batches were missing afterwards.
fn cut_often(name: &str, parts: &[Part], cuts: u64) -> u64 {
    let seed = setting("ORRERY_SEED", SEED_DEFAULT);
    println!("{name}: {cuts} cuts; repeat with ORRERY_POWER_CUTS and ORRERY_SEED={seed}");
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let Some(recorder) = Recorder::build(&root).unwrap() else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "a C compiler is needed here");
        println!("left out: power cuts, which take Linux and a C compiler (cc)");
        return 0;
    };
    let trace = record(&root, &recorder, parts, seed);
    let random = SeededRandom::new(seed);
    let mut moments: Vec<usize> = (0..cuts).map(|_| moment(&trace, &random)).collect();
    moments.sort_unstable();
    let (mut disk, mut promise, mut done, mut lost) = (Disk::default(), Promise::default(), 0, 0);
    let mut faults = Vec::new();
    for (number, moment) in moments.into_iter().enumerate() {
        for event in trace.events.get(done..moment).unwrap() {
            disk.apply(event).unwrap();
            if let Event::Said { text } = event {
                promise.hear(text);
            }
        }
        done = moment;
        let target = folder.path().join("cut");
        disk.cut(&random, &target).unwrap();
        match judge(&target, promise, seed) {
            Ok(found) => lost += promise.acknowledged.saturating_sub(found),
            Err(error) => faults.push(format!("cut {number}, event {moment}: {error:#}")),
        }
        std::fs::remove_dir_all(&target).unwrap();
    }
    println!(
        "{name}: {cuts} cuts in {} events, {} faults, {} batches answered, {lost} lost to cuts",
        trace.events.len(),
        faults.len(),
        promise.acknowledged,
    );
    assert!(faults.is_empty(), "{} of {cuts}: {faults:#?}", faults.len());
    lost
}

fn record(root: &Path, recorder: &Recorder, parts: &[Part], seed: u64) -> Trace {
    let (store, log) = (root.join("store"), root.join("log"));
    std::fs::create_dir(&store).unwrap();
    for &(durability, batches, large, ending) in parts {
        let program = env!("CARGO_BIN_EXE_power_writer");
        let folder = store.as_path();
        let run = Run { program, folder, log: &log, seed, durability, batches, large, ending };
        run.perform(recorder).unwrap();
    }
    Trace::read(&log, &store).unwrap()
}

/// A moment at which there is a store; every other one right after a change of a name or a
/// length or the end of a sync, where ordering matters.
fn moment(trace: &Trace, random: &dyn Random) -> usize {
    let created = |event: &Event| matches!(event, Event::Said { text } if text.contains("opened"));
    let first = trace.events.iter().position(created).unwrap() + 1;
    let events = (trace.events.len() - first) as u64;
    let start = first + usize::try_from(random.next_u64() % events).unwrap();
    if random.next_u64().is_multiple_of(2) {
        return start;
    }
    let telling = |event: &Event| {
        let named = matches!(event, Event::Renamed { .. } | Event::Unlinked { .. });
        named || matches!(event, Event::SyncEnded { .. } | Event::Resized { .. })
    };
    let ahead = trace.events.iter().skip(start).position(telling);
    ahead.map_or(start, |ahead| start + ahead + 1)
}

/// Opens a folder after the cut and returns the newest batch in it.
fn judge(folder: &Path, promise: Promise, seed: u64) -> Result<u64> {
    let open = || local::open(folder, LocalConfig::default(), &Runtime::real());
    let store = open().context("it does not open")?;
    let found = history::check(store.as_ref(), seed)?;
    let Promise { at_least, at_most, acknowledged, .. } = promise;
    // Losses that left no trace cannot be counted, but the store reports that there may be
    // some.
    ensure!(found >= acknowledged || store.loss().is_some(), "{acknowledged} was lost in silence");
    ensure!(found >= at_least, "batch {at_least} was to last, and {found} is the newest");
    ensure!(found <= at_most, "batch {found} is there, and {at_most} was the last to be tried");
    store.verify().context("it does not verify")?;
    store.close().context("it does not close")?;
    let again = open().context("it does not open again")?;
    ensure!(history::check(again.as_ref(), seed)? == found, "it changed by being opened again");
    Ok(found)
}
