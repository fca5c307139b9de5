//! What a partition is told about itself by the map and the catalogue.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use index::IndexPlan;
use model::epk::{Epk, EpkRange};
use model::limits::Limits;
use model::policy::{ContainerDefinition, expires_at};
use model::position::{Lsn, Timestamp};
use model::rid::ContainerRid;

use crate::key::{BucketNumber, ContainerNumber, Keys};
use crate::record::{Item, RecordError};

/// A hash range of the container with its own keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub number: BucketNumber,
    pub range: EpkRange,
}

/// The configuration of one partition. Plain data: changing it means handing
/// the partition another one.
#[derive(Clone, Debug)]
pub struct Setup {
    pub container: ContainerNumber,
    pub container_rid: ContainerRid,
    pub definition: Arc<ContainerDefinition>,
    /// Version of the indexing policy that new writes follow.
    pub policy_version: u32,
    /// How to index under each version that stored items may still have.
    pub plans: BTreeMap<u32, Arc<IndexPlan>>,
    /// Consecutive, in the order of their ranges.
    pub buckets: Vec<Bucket>,
    /// The partition's LSN never is below this.
    pub lsn_floor: Lsn,
    /// Blocks of item numbers granted by the map.
    pub numbers: Vec<Range<u64>>,
    pub limits: Arc<Limits>,
}

impl Setup {
    /// The position of the bucket that owns a key, if it is one of ours.
    pub(crate) fn bucket_of(&self, epk: &Epk) -> Option<usize> {
        let after = self.buckets.partition_point(|bucket| bucket.range.min <= *epk);
        let at = after.checked_sub(1)?;
        self.buckets.get(at).filter(|bucket| bucket.range.contains(epk)).map(|_| at)
    }

    pub(crate) fn keys(&self, bucket: &Bucket) -> Keys {
        Keys::new(self.container, bucket.number)
    }

    /// Calls `sink` with each index entry of an item, under the policy it was written with.
    pub(crate) fn index_entries(
        &self,
        item: &Item,
        mut sink: impl FnMut(&[u8]),
    ) -> Result<(), RecordError> {
        let version = item.policy_version;
        let plan = self.plans.get(&version).ok_or(RecordError::Policy { version })?;
        plan.entries(item.json(), &mut sink);
        Ok(())
    }

    pub(crate) fn is_expired(&self, item: &Item, now: Timestamp) -> bool {
        expires_at(item.ts.secs(), item.own_ttl, self.definition.ttl())
            .is_some_and(|at| at <= now.secs())
    }
}
