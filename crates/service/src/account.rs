//! What a request cost, from the work that was counted while it was done.
//!
//! The rules are the published ones for small items: reading costs 20/21 RU and
//! 1/21 for each KB, writing 5 RU, 0.2 for each index entry that changes and the
//! reading of what it replaces. They are deterministic; how well they meet the
//! service's numbers for large items is the business of throughput control.

use bytes::Bytes;
use model::charge::Charge;
use partition::{EffectKind, Work};

use crate::error::ServiceError;
use crate::receipt::Receipt;
use crate::response::{Failure, Reply, Response};

const READ_BASE: f64 = 20.0 / 21.0;
const READ_PER_KB: f64 = 1.0 / 21.0;
const WRITE_BASE: f64 = 5.0;
const WRITE_PER_ENTRY: f64 = 0.2;
const BYTES_PER_KB: f64 = 1024.0;

/// The last step of every request, done or not: its receipt goes with the answer.
/// Faults of ours are logged here, once.
pub(crate) fn account(
    done: Result<Reply, ServiceError>,
    receipt: Receipt,
) -> Result<Response, Failure> {
    match done {
        Ok(reply) => Ok(Response { reply, receipt }),
        Err(error) => {
            if let ServiceError::Internal { source } = &error {
                tracing::error!(%error, source = %source, "request failed");
            }
            Err(Failure { error, receipt: Box::new(receipt) })
        }
    }
}

/// What a request on the catalogue counts as: reading or writing one record. What
/// else it takes is our affair. One that was refused has looked for something.
pub(crate) fn catalogue_work(reply: Option<&Reply>) -> Work {
    let (kind, bytes) = match reply {
        Some(Reply::One { kind, body, .. }) => (*kind, body.as_ref().map_or(0, Bytes::len)),
        Some(Reply::Feed { bodies, .. }) => (EffectKind::Read, bodies.iter().map(Bytes::len).sum()),
        Some(Reply::Batch { .. } | Reply::Bulk { .. } | Reply::Ranges { .. }) | None => {
            (EffectKind::Read, 0)
        }
    };
    let bytes = bytes as u64;
    match kind {
        EffectKind::Read | EffectKind::NotModified => {
            Work { item_bytes_read: bytes, ..Work::default() }
        }
        EffectKind::Created | EffectKind::Replaced | EffectKind::Deleted => {
            Work { item_bytes_written: bytes, keys_written: 1, ..Work::default() }
        }
    }
}

/// The charge for what one partition has done.
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
        assert_eq!(charge(&work).units(), 21);
        assert_eq!(charge(&Work { item_bytes_read: 4 * 1024, ..work }).units(), 24);
    }

    #[test]
    fn a_write_costs_by_what_changes() {
        let create = Work { keys_written: 10, index_entries_written: 10, ..Work::default() };
        assert_eq!(charge(&create).units(), 7 * 21);
        let replace = Work { item_bytes_read: 1024, index_entries_deleted: 1, ..create };
        assert_eq!(charge(&replace).units(), 172);
    }
}
