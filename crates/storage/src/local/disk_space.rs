//! Free disk space, and a little that is held in reserve.
//!
//! Only a flush gives the journal's space back, and only a compaction that of old versions;
//! both write first. So free space is checked before anything is written, and what they need
//! is never given to writers.
//!
//! Other programs use the disk as well. Against those there is the *reserve*, a file with
//! allocated blocks: given up when a start, a drop or a compaction needs the space, and
//! recreated when there is space.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::StorageError;

/// The file that holds the reserve. It is not part of the store's data.
pub const RESERVE: &str = "RESERVE";

/// The reserve takes at most one part in sixteen of a disk, so that a small disk is not
/// spent on it.
const RESERVE_PART: u64 = 16;

/// Free bytes below which a compaction is aborted: what is left is for the lists of tables
/// and a group of commits in flight.
pub(super) const BRAKE_BYTES: u64 = 2 << 20;

/// Free bytes that even relief writes leave: their batch, the journal around it and a new
/// list of tables.
pub(super) const RELIEF_BYTES: u64 = 4 << 20;

/// Free bytes that all other writes leave beyond what the engine needs to clean up: a group
/// of commits in journal and memtable.
pub(super) const FLOOR_BYTES: u64 = 8 << 20;

/// The most that one compaction writes before it releases its input. The engine takes the
/// smallest compaction that is due: some tables of 64 MiB with the ten below each, or all
/// of the first level with the second. A smaller store is compacted as a whole.
pub(super) const MERGE_BYTES_MAX: u64 = 1 << 30;

#[derive(Debug)]
pub(super) struct DiskSpace {
    folder: PathBuf,
    /// Bytes that the store may use, for tests that cannot have a small disk.
    quota: Option<u64>,
    reserve_bytes: u64,
    reserved: AtomicBool,
}

impl DiskSpace {
    pub(super) fn new(folder: &Path, quota: Option<u64>, reserve_bytes: u64) -> DiskSpace {
        let reserved = AtomicBool::new(folder.join(RESERVE).exists());
        DiskSpace { folder: folder.to_owned(), quota, reserve_bytes, reserved }
    }

    /// Bytes that can be written now. Unlimited where the system cannot tell.
    pub(super) fn free(&self) -> u64 {
        let disk = disk(&self.folder).map_or(u64::MAX, |disk| disk.free);
        let quota = self.quota.map_or(u64::MAX, |max| max.saturating_sub(used(&self.folder)));
        disk.min(quota)
    }

    /// Gives up the reserve. Returns whether there was one.
    pub(super) fn give_up_reserve(&self) -> bool {
        let had = self.reserved.swap(false, Ordering::AcqRel);
        had && std::fs::remove_file(self.folder.join(RESERVE)).is_ok()
    }

    /// Recreates the reserve when there is none and `spare` bytes are free for it.
    pub(super) fn restore_reserve(&self, spare: u64) {
        if self.reserve_bytes == 0 || self.reserved.load(Ordering::Acquire) {
            return;
        }
        let total = disk(&self.folder).map_or(u64::MAX, |disk| disk.total);
        let bytes =
            self.reserve_bytes.min(total.min(self.quota.unwrap_or(u64::MAX)) / RESERVE_PART);
        // Twice, so that what was just given up is not taken back at once.
        if spare < 2 * bytes {
            return;
        }
        let path = self.folder.join(RESERVE);
        match allocate(&path, bytes) {
            Ok(()) => self.reserved.store(true, Ordering::Release),
            Err(error) => {
                tracing::warn!(%error, "no space could be reserved");
                // A partial one holds less than it should.
                let _not_there = std::fs::remove_file(&path);
            }
        }
    }

    pub(super) fn full(&self, needed: u64) -> StorageError {
        let detail = format!(
            "{} has {} bytes free, {needed} are needed",
            self.folder.display(),
            self.free()
        );
        StorageError::Full { detail }
    }
}

struct Disk {
    free: u64,
    total: u64,
}

#[cfg(unix)]
fn disk(folder: &Path) -> Option<Disk> {
    let found = rustix::fs::statvfs(folder).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Some(Disk { free: bytes(found.f_bavail), total: bytes(found.f_blocks) })
}

#[cfg(not(unix))]
fn disk(_folder: &Path) -> Option<Disk> {
    None
}

/// Creates a file with allocated blocks, not a hole.
fn allocate(path: &Path, bytes: u64) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    fill(&file, bytes)?;
    file.sync_all()
}

#[cfg(unix)]
fn fill(file: &File, bytes: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP) => write_zeros(file, bytes),
        other => Ok(other?),
    }
}

#[cfg(not(unix))]
fn fill(file: &File, bytes: u64) -> io::Result<()> {
    write_zeros(file, bytes)
}

fn write_zeros(mut file: &File, bytes: u64) -> io::Result<()> {
    io::copy(&mut io::Read::take(io::repeat(0), bytes), &mut file).map(drop)
}

/// Bytes that a folder takes on the disk. Files may be removed while they are counted.
pub(super) fn used(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.metadata().map_or(0, |found| used_by(&entry.path(), &found))).sum()
}

fn used_by(path: &Path, found: &std::fs::Metadata) -> u64 {
    if found.is_dir() { used(path) } else { allocated(found) }
}

/// Bytes that a file takes on the disk, without holes.
#[cfg(unix)]
pub(super) fn allocated(file: &std::fs::Metadata) -> u64 {
    const BLOCK_BYTES: u64 = 512;
    std::os::unix::fs::MetadataExt::blocks(file) * BLOCK_BYTES
}

#[cfg(not(unix))]
pub(super) fn allocated(file: &std::fs::Metadata) -> u64 {
    file.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_takes_real_space_and_gives_it_back() {
        let folder = tempfile::tempdir().unwrap();
        let disk = DiskSpace::new(folder.path(), Some(64 << 20), 2 << 20);
        let before = disk.free();
        disk.restore_reserve(3 << 20);
        assert_eq!(disk.free(), before, "not when it would be missed");
        disk.restore_reserve(4 << 20);
        assert_eq!(before - disk.free(), 2 << 20);
        assert!(
            DiskSpace::new(folder.path(), None, 2 << 20).give_up_reserve(),
            "found by the next start"
        );
        let disk = DiskSpace::new(folder.path(), Some(64 << 20), 2 << 20);
        assert_eq!(disk.free(), before);
        assert!(!disk.give_up_reserve());
    }

    #[test]
    fn a_small_disk_is_not_spent_on_the_reserve() {
        let folder = tempfile::tempdir().unwrap();
        let disk = DiskSpace::new(folder.path(), Some(16 << 20), 64 << 20);
        disk.restore_reserve(u64::MAX);
        assert_eq!(std::fs::metadata(folder.path().join(RESERVE)).unwrap().len(), 1 << 20);
    }
}
