//! A request's visit to one physical partition: let in before, paid for after.
//!
//! What a request costs is known when its receipt says so, and the partition that
//! did the work is the one whose budget pays. So every way into a partition goes
//! through here; there is no other check of throughput.

use cluster::{ClusterError, PartitionHandle, Permit};
use model::charge::{Charge, Tariff};
use model::epk::Epk;

use crate::receipt::Receipt;

/// A visit that was let in.
#[must_use = "whoever was let in pays"]
pub(crate) struct Visit {
    permit: Permit,
    /// What the receipt said when it began.
    before: Charge,
}

impl Visit {
    /// Asks the partition that the request was routed to. Being turned away is charged, too.
    pub(crate) fn begin(
        partition: &PartitionHandle,
        receipt: &mut Receipt,
    ) -> Result<Visit, ClusterError> {
        match partition.admit(receipt.payer) {
            Ok(permit) => Ok(Visit::of(permit, receipt)),
            Err(error) => Err(Visit::refused(error, receipt)),
        }
    }

    /// The visit of a request that was let in on another thread.
    pub(crate) fn of(permit: Permit, receipt: &Receipt) -> Visit {
        Visit { permit, before: receipt.charge }
    }

    /// Takes down what being turned away costs.
    pub(crate) fn refused(error: ClusterError, receipt: &mut Receipt) -> ClusterError {
        if matches!(error, ClusterError::Throttled { .. }) {
            receipt.charge += Tariff::YEAR_2026.rejection();
        }
        error
    }

    /// Pays what the receipt has taken down since. `key` is the logical partition
    /// that it was all about, if it was about one.
    pub(crate) fn end(self, key: Option<&Epk>, receipt: &Receipt) {
        let units = receipt.charge.units().saturating_sub(self.before.units());
        self.permit.pay(key, Charge::from_units(units));
    }
}
