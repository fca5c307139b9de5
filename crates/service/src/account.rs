//! What a request cost, from the work that was counted while it was done.
//!
//! The rules are the published ones for small items: reading costs 20/21 RU and
//! 1/21 for each KB, writing 5 RU, 0.2 for each index entry that changes and the
//! reading of what it replaces. They are deterministic; how well they meet the
//! service's numbers for large items is the business of throughput control.

use model::charge::Charge;
use partition::Work;

const READ_BASE: f64 = 20.0 / 21.0;
const READ_PER_KB: f64 = 1.0 / 21.0;
const WRITE_BASE: f64 = 5.0;
const WRITE_PER_ENTRY: f64 = 0.2;
const BYTES_PER_KB: f64 = 1024.0;

/// The charge for work that was done.
pub(crate) fn charge(work: &Work) -> Charge {
    let kilobytes = number(work.item_bytes_read) / BYTES_PER_KB;
    let read = READ_BASE + READ_PER_KB * kilobytes.max(1.0);
    if work.keys_written == 0 {
        return Charge::new(read);
    }
    let entries = number(work.index_entries_written + work.index_entries_deleted);
    let replaced = if work.item_bytes_read > 0 { read } else { 0.0 };
    Charge::new(WRITE_BASE + WRITE_PER_ENTRY * entries + replaced)
}

#[expect(clippy::cast_precision_loss, reason = "counts of one request are far below 2^53")]
fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_read_costs_one() {
        let work = Work { item_bytes_read: 1024, ..Work::default() };
        assert_eq!(charge(&work).to_string(), "1");
        assert_eq!(charge(&Work { item_bytes_read: 4 * 1024, ..work }).to_string(), "1.14");
    }

    #[test]
    fn a_write_costs_by_what_changes() {
        let create = Work { keys_written: 10, index_entries_written: 10, ..Work::default() };
        assert_eq!(charge(&create).to_string(), "7");
        let replace = Work { item_bytes_read: 1024, index_entries_deleted: 1, ..create };
        assert_eq!(charge(&replace).to_string(), "8.2");
    }
}
