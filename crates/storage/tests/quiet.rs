//! What a load leaves in small tables is merged when nothing is written for a while.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use runtime::{Clock as _, Random as _, RealClock, Runtime, SeededRandom};
use storage::local::{self, LocalConfig};
use storage::{CommitStatus, Direction, Durability, KeyRange, ScanLimit, Store, WriteBatch};

/// Too few for a compaction to be due, on a short disk as well.
const MEMTABLES: usize = 3;
const MEMTABLE_BYTES: u64 = 128 << 10;
const ROW_BYTES: usize = 1_000;
/// Ends only what hangs.
const PATIENCE: Duration = Duration::from_mins(2);
const LOOK: Duration = Duration::from_millis(20);

fn create(folder: &Path, quiet: Duration) -> std::sync::Arc<dyn Store> {
    let config = LocalConfig {
        durability: Durability::Os,
        memtable_bytes: MEMTABLE_BYTES,
        quiet,
        ..LocalConfig::default()
    };
    local::create(folder, config, &Runtime::real()).unwrap()
}

/// Writes until there are this many tables. The rows of each are all over the keys.
fn fill(store: &dyn Store, folder: &Path, tables: usize) {
    let random = SeededRandom::new(20_261_118);
    let mut session = store.write_session();
    for row in 0_u64.. {
        if table_files(folder) >= tables {
            return;
        }
        let mut value = vec![0; ROW_BYTES];
        random.fill(&mut value);
        let mut batch = WriteBatch::new();
        batch.put(format!("{:08x}", (row * 0x9E37_79B1) & 0xFFFF_FFFF), value);
        assert_eq!(session.submit(batch).wait(), CommitStatus::Durable);
    }
}

/// Tables of the store, whichever folder it keeps them in.
fn table_files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let folders = entries.filter(|entry| entry.path().is_dir());
    folders
        .map(|entry| match entry.file_name() == "tables" {
            true => std::fs::read_dir(entry.path()).into_iter().flatten().count(),
            false => table_files(&entry.path()),
        })
        .sum()
}

fn rows(store: &dyn Store) -> Vec<(Bytes, Bytes)> {
    let all = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
    let everything = KeyRange::prefix(b"");
    store.view().unwrap().scan(&everything, Direction::Forward, all).unwrap().rows
}

#[test]
fn small_tables_are_merged_in_a_quiet_while() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(folder.path(), LOOK);
    // Merged already while it is filled, if that takes a while.
    fill(&*store, folder.path(), MEMTABLES - 1);
    let before = rows(&*store);
    let mut waited = Duration::ZERO;
    while table_files(folder.path()) > 1 {
        assert!(waited < PATIENCE, "{} tables", table_files(folder.path()));
        RealClock::default().sleep(LOOK);
        waited += LOOK;
    }
    assert_eq!(rows(&*store), before);
}

#[test]
fn they_are_left_alone_while_much_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(folder.path(), PATIENCE * 60);
    fill(&*store, folder.path(), MEMTABLES);
    assert_eq!(table_files(folder.path()), MEMTABLES);
}
