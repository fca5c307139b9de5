//! A point lookup does not read more from the disk as rows around it grow.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::path::Path;

use runtime::Runtime;
use storage::local::{self, LocalConfig};
use storage::{CommitStatus, WriteBatch};

const ROWS: u64 = 400_000;
const ROWS_PER_BATCH: u64 = 10_000;
const LOOKUPS: u64 = 200;

/// What one memtable becomes is far smaller: a larger table is one of the second level.
const MERGED_BYTES_MIN: u64 = 2_000_000;

/// A few blocks of filter, index and rows. A filter of all rows alone has 500 KB.
const LOOKUP_BYTES_MAX: u64 = 64 << 10;

#[test]
fn a_lookup_reads_a_few_blocks() {
    let folder = tempfile::tempdir().unwrap();
    // Nothing stays in so small a cache.
    let config = LocalConfig { cache_bytes: 1, memtable_bytes: 2 << 20, ..LocalConfig::default() };
    let store = local::create(folder.path(), config.clone(), &Runtime::real()).unwrap();
    let mut session = store.write_session();
    for first in (0..ROWS).step_by(usize::try_from(ROWS_PER_BATCH).unwrap()) {
        let mut batch = WriteBatch::new();
        for row in first..first + ROWS_PER_BATCH {
            batch.put(key(row), "value");
        }
        assert_eq!(session.submit(batch).wait(), CommitStatus::Durable);
    }
    drop(session);
    // The engine would get around to it, sooner or later.
    store.compact().unwrap();
    store.close().unwrap();
    drop(store);
    let store = local::open(folder.path(), config, &Runtime::real()).unwrap();
    assert!(largest_table(folder.path()) > MERGED_BYTES_MIN, "tables were put together");
    let view = store.view().unwrap();
    let before = bytes_read();
    for row in (0..ROWS).step_by(usize::try_from(ROWS / LOOKUPS).unwrap()) {
        assert!(view.get(key(row).as_bytes()).unwrap().is_some());
        assert!(view.get(format!("{}, not there", key(row)).as_bytes()).unwrap().is_none());
    }
    let each = (bytes_read() - before) / (2 * LOOKUPS);
    assert!(0 < each && each < LOOKUP_BYTES_MAX, "{each} bytes each");
}

fn largest_table(folder: &Path) -> u64 {
    let tables = std::fs::read_dir(folder.join("tree/tables")).unwrap();
    tables.map(|table| table.unwrap().metadata().unwrap().len()).max().unwrap_or_default()
}

fn key(row: u64) -> String {
    format!("a key with a long beginning {row:016}")
}

/// What this thread has read from files so far.
fn bytes_read() -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let line = told.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.unwrap().parse().unwrap()
}
