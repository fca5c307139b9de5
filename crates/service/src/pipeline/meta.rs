//! What accompanies every answer, success or failure: where it came from and what it cost.
//!
//! One value goes through all steps of a request and is filled in along the way. So a
//! request that fails half-way is accounted for like any other, and its client learns of
//! the partition that refused it.

use std::sync::Arc;

use cluster::{Caller, ClusterError, PartitionId, Served};
use model::charge::{Charge, Work};
use model::position::Lsn;
use model::session::{RangeToken, SessionToken};

use crate::error::ServiceError;
use crate::pipeline::account;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseMeta {
    /// Priority and throughput bucket: some callers are throttled before others.
    pub(crate) caller: Caller,
    /// What the resource in question belongs to, once that was found.
    pub owner: Option<Owner>,
    /// The physical partitions that took part, each with the position that the
    /// client has now seen. The last one gave the answer.
    seen: Vec<(PartitionId, Lsn)>,
    /// Whether a container was created that has no throughput but its database's.
    pub shares_throughput: bool,
    /// What exists beside the item or script in question.
    pub holding: Option<Holding>,
    /// The position of the last write of the one item in question.
    pub item_lsn: Option<Lsn>,
    /// The charge of all operations together. Zero for a request that was refused before
    /// anything was looked up.
    pub charge: Charge,
}

/// How much of something there is, and how much there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// The items of the physical partition that answered.
    Items { count: u64, bytes: u64, bytes_max: u64, item_bytes_max: u64 },
    /// The scripts of a container.
    Scripts { procedures: Amount, triggers: Amount, functions: Amount },
}

/// How many there are, and how many there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    pub count: usize,
    pub max: usize,
}

/// A database, container or user by both of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub rid: Arc<str>,
    /// `dbs/NAME/colls/NAME`.
    pub link: Arc<str>,
}

impl ResponseMeta {
    /// For a request, or a part of one, before anything was done.
    pub(crate) fn of(caller: Caller) -> ResponseMeta {
        ResponseMeta { caller, ..ResponseMeta::default() }
    }

    /// The physical partition that gave the answer, and its position.
    #[must_use]
    pub fn served_by(&self) -> Option<(PartitionId, Lsn)> {
        self.seen.last().copied()
    }

    /// What the client has now seen of the physical partition that gave the answer; `None`
    /// when no partition took part. A page of several partitions has the token of the one
    /// in which it ended, as clients keep one token for each answer.
    #[must_use]
    pub fn session(&self) -> Option<SessionToken> {
        let (range, lsn) = self.served_by()?;
        Some(SessionToken::new(vec![RangeToken::new(range.0, lsn)]))
    }

    pub(crate) fn saw(&mut self, range: PartitionId, lsn: Lsn) {
        let before = self.seen.iter().position(|(seen, _)| *seen == range);
        let before = before.map(|at| self.seen.remove(at).1);
        self.seen.push((range, before.map_or(lsn, |before| before.max(lsn))));
    }

    /// Records what one operation is charged for.
    pub(crate) fn worked(&mut self, work: &Work) {
        self.charged(account::charge(work));
    }

    /// Records the charge of several operations together.
    pub(crate) fn charged(&mut self, charge: Charge) {
        self.charge += charge;
    }

    /// Records the attempt if a check has failed that partitions leave to us.
    pub(crate) fn paid_if_refused<T>(
        &mut self,
        checked: Result<T, ServiceError>,
        attempt: Work,
    ) -> Result<T, ServiceError> {
        checked.inspect_err(|error| self.worked(&account::refused(error, attempt)))
    }

    /// Records where an answer came from, and returns its value.
    pub(crate) fn served<T>(&mut self, Served { range, lsn, value }: Served<T>) -> T {
        self.saw(range, lsn);
        value
    }

    /// Records what a refusal says about its partition.
    pub(crate) fn refused(&mut self, error: ClusterError) -> ClusterError {
        if let ClusterError::Command { range, error } = &error {
            self.saw(*range, error.lsn);
            self.worked(&error.work);
        }
        error
    }

    /// Adds the result of a part of the request, or of another request that belongs to the
    /// answer.
    pub fn add(&mut self, part: &ResponseMeta) {
        for (range, lsn) in &part.seen {
            self.saw(*range, *lsn);
        }
        self.charge += part.charge;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_never_go_back_and_the_last_partition_answers() {
        let mut meta = ResponseMeta::default();
        assert_eq!((meta.session(), meta.served_by()), (None, None));
        for (range, lsn) in [(0, 5), (1, 7), (0, 3)] {
            meta.saw(PartitionId(range), Lsn::from_u64(lsn));
        }
        assert_eq!(meta.session().unwrap().to_string(), "0:-1#5");
        assert_eq!(meta.served_by(), Some((PartitionId(0), Lsn::from_u64(5))));
    }

    #[test]
    fn parts_add_up() {
        let mut whole = ResponseMeta::default();
        let mut part = ResponseMeta::default();
        whole.add(&part);
        assert_eq!(whole, ResponseMeta::default());
        part.worked(&Work::RefusedWrite);
        whole.add(&part);
        whole.add(&part);
        assert_eq!(whole.charge.units(), 2 * 26);
    }
}
