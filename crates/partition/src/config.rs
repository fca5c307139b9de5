//! The configuration of a partition, which comes from the map and the catalogue.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use index::{IndexPlan, PathHash, is_of_members};
use model::epk::{Epk, EpkRange};
use model::json::Raw;
use model::limits::{Growth, Limits};
use model::partition_key::PartitionKey;
use model::policy::{ChangeFeedPolicy, ContainerDefinition, expires_at};
use model::position::{Lsn, Timestamp};
use model::rid::ContainerRid;
use model::system_properties::SystemProperties;

use crate::key::{BucketNumber, ContainerNumber, Keys};
use crate::record::{Item, RecordError};

/// The system properties that indexing policies apply to.
static INDEXED: LazyLock<SystemProperties> = LazyLock::new(SystemProperties::indexed);

/// A hash range of the container with its own keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub number: BucketNumber,
    pub range: EpkRange,
}

/// A bucket whose keys are being moved to other buckets, which divide its range. Until the
/// map replaces it by those, every write to it goes to them as well (dual write).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    pub from: BucketNumber,
    /// Consecutive; together they have the range of the moving bucket.
    pub into: Vec<Bucket>,
}

/// The configuration of one partition. Plain data: to change it, the partition is given
/// another one.
#[derive(Clone, Debug)]
pub struct PartitionConfig {
    pub container: ContainerNumber,
    pub container_rid: ContainerRid,
    pub definition: Arc<ContainerDefinition>,
    /// Version of the indexing policy that new writes follow.
    pub policy_version: u32,
    /// The index plan of each policy version that stored items may still have.
    pub plans: BTreeMap<u32, Arc<IndexPlan>>,
    /// Consecutive, in the order of their ranges.
    pub buckets: Vec<Bucket>,
    /// Those of the buckets that are moving.
    pub moves: Vec<Move>,
    /// The partition's LSN never is below this.
    pub lsn_floor: Lsn,
    /// Blocks of ordinals that the map allocated to it.
    pub ordinal_blocks: Vec<Range<u64>>,
    /// Whether the partition can be split when it is full.
    pub growth: Growth,
    pub limits: Arc<Limits>,
}

impl PartitionConfig {
    /// The bucket of this partition that owns a key, if there is one.
    pub(crate) fn bucket_of(&self, epk: &Epk) -> Option<&Bucket> {
        owner(&self.buckets, epk)
    }

    /// The bucket that a key is moving to, if it is moving.
    pub(crate) fn move_target_of(&self, epk: &Epk) -> Option<&Bucket> {
        self.moves.iter().find_map(|moving| owner(&moving.into, epk))
    }

    /// All buckets that this partition writes to.
    pub fn written_buckets(&self) -> impl Iterator<Item = &Bucket> {
        self.buckets.iter().chain(self.moves.iter().flat_map(|moving| &moving.into))
    }

    pub(crate) fn keys(&self, bucket: &Bucket) -> Keys {
        self.keys_of(bucket.number)
    }

    pub(crate) fn keys_of(&self, bucket: BucketNumber) -> Keys {
        Keys::new(self.container, bucket)
    }

    /// Calls `sink` with each index entry of an item, under the policy it was written
    /// with, and whether it is a term, for which clients pay: one about a value that
    /// they chose. `id`, partition key and time are in every item, and only the time
    /// changes, with the clock.
    pub(crate) fn index_terms(
        &self,
        item: &Item,
        mut sink: impl FnMut(&[u8], bool),
    ) -> Result<(), RecordError> {
        let plan = self.plan(item)?;
        let named = ["id", "_ts"].map(|name| plan.property_path([name]).to_bytes());
        let keys = self.definition.partition_key().paths().iter();
        let keys = keys.map(|path| plan.property_path(path.names().iter().map(String::as_str)));
        let free: Vec<[u8; 8]> = keys.map(PathHash::to_bytes).chain(named).collect();
        let added = self.indexed_properties(item);
        plan.entries(&[item.json(), Raw::trusted(&added)], &mut |entry| {
            let is_free = is_of_members(entry) || free.iter().any(|path| entry.starts_with(path));
            sink(entry, !is_free);
        });
        Ok(())
    }

    /// The system properties that policies apply to, as an object.
    pub(crate) fn indexed_properties(&self, item: &Item) -> String {
        let mut out = String::new();
        INDEXED.write(&item.stamp(self.container_rid), &mut out);
        out
    }

    fn plan(&self, item: &Item) -> Result<&IndexPlan, RecordError> {
        let version = item.policy_version;
        self.plans.get(&version).map(AsRef::as_ref).ok_or(RecordError::Policy { version })
    }

    /// Whether the partition key of an item has this prefix, if one is required. Checked
    /// for each item: the range of a prefix also contains other keys, with the same hashes.
    pub(crate) fn has_prefix(&self, item: &Item, prefix: Option<&PartitionKey>) -> bool {
        let key = self.definition.partition_key();
        prefix.is_none_or(|prefix| key.begins_with(item.json(), prefix))
    }

    /// Whether operations are recorded for the change feed of all versions and deletes.
    pub(crate) fn keeps_history(&self) -> bool {
        self.retention_minutes() > 0
    }

    fn retention_minutes(&self) -> u32 {
        self.definition.change_feed().map_or(0, ChangeFeedPolicy::retention_minutes)
    }

    /// Whether the history loses a record of this time, in a bucket whose last commit was at
    /// `latest`: it is too old, or from before the time was set back.
    pub(crate) fn is_outdated(&self, ts: Timestamp, latest: Timestamp, now: Timestamp) -> bool {
        let retention_ms = u64::from(self.retention_minutes()) * 60_000;
        ts > latest || ts.millis().saturating_add(retention_ms) <= now.millis()
    }

    pub(crate) fn is_moving(&self, bucket: BucketNumber) -> bool {
        self.moves.iter().any(|moving| moving.from == bucket)
    }

    pub(crate) fn is_expired(&self, item: &Item, now: Timestamp) -> bool {
        expires_at(item.ts.secs(), item.own_ttl, self.definition.ttl())
            .is_some_and(|at| at <= now.secs())
    }
}

fn owner<'a>(buckets: &'a [Bucket], epk: &Epk) -> Option<&'a Bucket> {
    let after = buckets.partition_point(|bucket| bucket.range.min <= *epk);
    buckets.get(after.checked_sub(1)?).filter(|bucket| bucket.range.contains(epk))
}
