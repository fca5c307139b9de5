//! How the memory of the process is divided.
//!
//! One number, `--memory`, bounds what clients can make the process hold. It is divided
//! into parts that do not borrow from each other: using one up does not take the others
//! away. Work that needs a part waits or is refused when it is used up; see
//! `docs/design/memory.md`, which also says what is not counted.

use std::str::FromStr;

use model::limits::parse_number;
use serde::Deserialize;
use storage::local::LocalConfig;

/// What the process may take by default: enough for tests with large data, and little for a
/// laptop.
const DEFAULT_BYTES: u64 = 512 << 20;

/// With less, a part could not hold a few of the largest bodies and answers.
const MIN_BYTES: u64 = 128 << 20;

/// Memtables that the store keeps under load.
const MEMTABLES: u64 = 2;

/// How much memory the process may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct MemorySize(u64);

#[derive(Debug, thiserror::Error)]
#[error("'{0}' is not a size like 512MiB, of at least 128MiB")]
pub(crate) struct InvalidSize(String);

impl Default for MemorySize {
    fn default() -> MemorySize {
        MemorySize(DEFAULT_BYTES)
    }
}

impl FromStr for MemorySize {
    type Err = InvalidSize;

    fn from_str(text: &str) -> Result<MemorySize, InvalidSize> {
        let bytes = parse_number(text.trim()).filter(|bytes| *bytes >= MIN_BYTES);
        bytes.map(MemorySize).ok_or_else(|| InvalidSize(text.to_owned()))
    }
}

impl TryFrom<String> for MemorySize {
    type Error = InvalidSize;

    fn try_from(text: String) -> Result<MemorySize, InvalidSize> {
        text.parse()
    }
}

/// The parts. The rest is for the program itself, for connections, and for what processing
/// a request takes besides its body and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryPlan {
    pub(crate) total: u64,
    /// Blocks that were read from the disk.
    pub(crate) cache: u64,
    /// Each of up to two memtables. A row counts with all that it takes.
    pub(crate) memtable: u64,
    /// Bodies that are being received or processed.
    pub(crate) bodies: usize,
    /// Bodies that may be received beyond that at a time.
    pub(crate) bodies_overflow: usize,
    /// Answers that clients have not read yet.
    pub(crate) answers: usize,
    /// What queries keep while they run: groups, rows to sort and to compare.
    pub(crate) queries: usize,
}

impl MemoryPlan {
    pub(crate) fn of(MemorySize(total): MemorySize) -> MemoryPlan {
        let part = |divisor: u64| usize::try_from(total / divisor).unwrap_or(usize::MAX);
        let own = LocalConfig::default();
        MemoryPlan {
            total,
            cache: own.cache_bytes.min(total / 16),
            memtable: own.memtable_bytes.min(total / 10),
            bodies: part(16),
            bodies_overflow: part(64 << 20).clamp(2, 8),
            answers: part(8),
            queries: part(4),
        }
    }

    /// What all memtables together may take.
    pub(crate) fn memtables(&self) -> u64 {
        MEMTABLES * self.memtable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_with_units_and_have_a_minimum() {
        let size = |text: &str| text.parse::<MemorySize>().map(|MemorySize(bytes)| bytes).ok();
        assert_eq!(size("512MiB"), Some(512 << 20));
        assert_eq!(size(" 2 GiB"), Some(2 << 30));
        assert_eq!(size("134_217_728"), Some(MIN_BYTES));
        for text in ["", "much", "127MiB", "1", "-1", "512MB"] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn the_parts_leave_something_of_the_whole() {
        for text in ["128MiB", "512MiB", "16GiB"] {
            let plan = MemoryPlan::of(text.parse().unwrap());
            let lanes = plan.bodies_overflow * wire_cosmos::BODY_BYTES_MAX;
            let counted = plan.bodies + lanes + plan.answers + plan.queries;
            let store = plan.cache + plan.memtables();
            let left = plan.total - store - u64::try_from(counted).unwrap();
            assert!(left >= plan.total / 4, "{text}: {left}");
        }
    }
}
