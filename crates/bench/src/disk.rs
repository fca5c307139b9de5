//! The disk itself: what an fsync takes on it, and what is on it.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use runtime::{Clock as _, RealClock};

use crate::latency::Latencies;

/// Bytes appended before each fsync: about what a small group of commits writes.
const APPENDED: [u8; 4096] = [0x5a; 4096];

/// Appends and syncs a file of its own, as a journal does, `count` times.
pub(crate) fn sync_often(folder: &Path, count: u64) -> Result<Latencies> {
    let (clock, mut latencies) = (RealClock::new(), Latencies::default());
    // Without a name, as others may be measuring in the same folder.
    let mut file = tempfile::tempfile_in(folder)?;
    for _ in 0..count {
        let began = clock.monotonic();
        file.write_all(&APPENDED)?;
        file.sync_data()?;
        latencies.add(clock.monotonic() - began);
    }
    Ok(latencies)
}

/// Bytes that the files of a folder take on the disk: preallocated space that nothing was
/// written to does not count. Some may be removed while they are counted.
pub(crate) fn bytes_on_disk(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_on_disk(&entry.path()),
        Ok(found) => found.blocks() * 512,
        Err(_gone) => 0,
    };
    entries.map(bytes).sum()
}

/// The p50, the p99.9 and the maximum of an fsync, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawSync {
    pub(crate) p50: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

impl RawSync {
    pub(crate) fn of(latencies: Latencies) -> RawSync {
        let [p50, p999, max] = latencies.micros_at([50_000, 99_900, 100_000]);
        RawSync { p50, p999, max }
    }
}

/// Waits, as a person would.
pub(crate) fn pause(duration: Duration) {
    RealClock::new().sleep(duration);
}
