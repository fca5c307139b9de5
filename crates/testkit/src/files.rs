//! Disk usage of folders.

use std::path::Path;

/// Bytes of all files in a folder and below it. Some may be removed while they are counted.
#[must_use]
pub fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_in(&entry.path()),
        Ok(found) => found.len(),
        Err(_gone) => 0,
    };
    entries.map(bytes).sum()
}
