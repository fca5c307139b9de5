//! Admission to one physical partition: checked before the work, paid for after it.
//!
//! What a request costs is known once it is done, and the partition that did the work is
//! the one whose throughput pays. So every access to a partition goes through here; there
//! is no other check of throughput.

use cluster::{ClusterError, PartitionHandle, Permit};
use model::charge::{Charge, Tariff};
use model::epk::Epk;

use crate::pipeline::meta::ResponseMeta;

/// A request that a partition has admitted and that has not paid yet.
#[must_use = "an admitted request has to pay"]
pub(crate) struct AdmissionGuard {
    permit: Permit,
    /// The charge of the request when it was admitted.
    before: Charge,
}

impl AdmissionGuard {
    /// Asks the partition that the request was routed to. Being throttled is charged, too.
    pub(crate) fn admit(
        partition: &PartitionHandle,
        meta: &mut ResponseMeta,
    ) -> Result<AdmissionGuard, ClusterError> {
        match partition.admit(meta.caller) {
            Ok(permit) => Ok(AdmissionGuard::admitted(permit, meta)),
            Err(error) => Err(AdmissionGuard::refused(error, meta)),
        }
    }

    /// For a request that was admitted on another thread.
    pub(crate) fn admitted(permit: Permit, meta: &ResponseMeta) -> AdmissionGuard {
        AdmissionGuard { permit, before: meta.charge }
    }

    /// Records the charge of being throttled.
    pub(crate) fn refused(error: ClusterError, meta: &mut ResponseMeta) -> ClusterError {
        if matches!(error, ClusterError::Throttled { .. }) {
            meta.charge += Tariff::YEAR_2026.rejection();
        }
        error
    }

    /// Pays what the request was charged since. `key` is its logical partition, if it was
    /// only about one.
    pub(crate) fn pay(self, key: Option<&Epk>, meta: &ResponseMeta) {
        let units = meta.charge.units().saturating_sub(self.before.units());
        self.permit.pay(key, Charge::from_units(units));
    }
}
