//! How much of everything: the published numbers of the service.
//!
//! The constants bound what parsers accept and what stored formats hold, so they
//! are the same everywhere. Everything else is a field of [`Limits`], so that a
//! test can run a whole life (create, split by throughput, split by size, full
//! key, merge) in seconds with the code that runs in production.

/// Levels of a hierarchical partition key.
pub const KEY_LEVELS_MAX: usize = 3;
/// Bytes of one partition key value. Version 1 containers take as many, but tell
/// keys apart by their first 101 bytes only.
pub const KEY_BYTES_MAX: usize = 2_048;
/// Bytes of an item's id.
pub const ITEM_ID_BYTES_MAX: usize = 1_023;
/// Characters of the name of any other resource.
pub const NAME_CHARS_MAX: usize = 255;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The adjustable limits; the default is what the service published for 2026.
///
/// Throughput is in request units per second (RU/s).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of an item as UTF-8 JSON; larger writes are refused with 413.
    pub item_bytes_max: u64,
    /// Bytes of a request body, and so of a whole batch.
    pub request_bytes_max: u64,
    /// Bytes of a response; a page ends before it.
    pub response_bytes_max: u64,
    /// Time for one operation, script or query page.
    pub operation_ms_max: u64,
    /// Operations of a transactional batch.
    pub batch_operations_max: usize,
    /// Operations of one patch.
    pub patch_operations_max: usize,

    /// Data and index that one logical partition may hold; beyond it only writes
    /// that add data are refused (403).
    pub logical_partition_bytes_max: u64,
    /// Data and index that one physical partition may hold; beyond it it splits.
    pub physical_partition_bytes_max: u64,
    /// What a physical partition serves, and therefore any one key. Raising
    /// throughput above this times the number of partitions splits some.
    pub partition_throughput_max: u32,
    /// What the service plans for each physical partition when a container with
    /// manual throughput is created: below the maximum, so that the first
    /// raise is instant.
    pub partition_throughput_at_creation: u32,
    /// The serverless counterpart of `partition_throughput_max`.
    pub serverless_partition_throughput_max: u32,
    /// Physical partitions merge when they have less than this on average…
    pub merge_throughput_below: u32,
    /// …and hold less than this on average.
    pub merge_bytes_below: u64,

    /// The smallest manual throughput of a container or database.
    pub throughput_min: u32,
    /// The largest throughput, manual or autoscale.
    pub throughput_max: u32,
    /// The largest throughput of a container without a partition key.
    pub keyless_throughput_max: u32,
    /// Manual throughput comes in steps of this.
    pub throughput_step: u32,
    /// The smallest autoscale maximum.
    pub autoscale_throughput_min: u32,
    /// Autoscale maxima come in steps of this.
    pub autoscale_throughput_step: u32,
    /// Throughput that every stored GB asks for at least.
    pub throughput_per_gib_min: u32,
    /// The minimum is at least the highest throughput ever set divided by this.
    pub throughput_highest_divisor: u32,
    /// Containers of a shared-throughput database that its minimum covers.
    pub shared_database_containers_max: usize,

    /// Databases and containers of an account together.
    pub databases_and_containers_max: usize,
    /// Stored procedures of a container.
    pub stored_procedures_max: usize,
    /// Triggers of a container. No number is published; as many as procedures.
    pub triggers_max: usize,
    /// User-defined functions of a container.
    pub user_defined_functions_max: usize,

    /// Life of a resource token.
    pub resource_token_secs: std::ops::RangeInclusive<u64>,
    /// How far the clock of a signed request may be off.
    pub signature_skew_secs_max: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            item_bytes_max: 2 * MIB,
            request_bytes_max: 2 * MIB,
            response_bytes_max: 4 * MIB,
            operation_ms_max: 5_000,
            batch_operations_max: 100,
            patch_operations_max: 10,
            logical_partition_bytes_max: 20 * GIB,
            physical_partition_bytes_max: 50 * GIB,
            partition_throughput_max: 10_000,
            partition_throughput_at_creation: 6_000,
            serverless_partition_throughput_max: 5_000,
            merge_throughput_below: 3_000,
            merge_bytes_below: 20 * GIB,
            throughput_min: 400,
            throughput_max: 1_000_000,
            keyless_throughput_max: 10_000,
            throughput_step: 100,
            autoscale_throughput_min: 1_000,
            autoscale_throughput_step: 1_000,
            throughput_per_gib_min: 1,
            throughput_highest_divisor: 100,
            shared_database_containers_max: 25,
            databases_and_containers_max: 500,
            stored_procedures_max: 100,
            triggers_max: 100,
            user_defined_functions_max: 50,
            resource_token_secs: 600..=86_400,
            signature_skew_secs_max: 900,
        }
    }
}

/// What throughput a container is created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provisioned {
    /// A fixed rate.
    Manual(u32),
    /// A rate that follows the load up to this maximum.
    Autoscale(u32),
    /// The container takes part in its database's throughput of this size.
    Shared(u32),
    /// Paid by use.
    Serverless,
}

impl Limits {
    /// How many physical partitions a container gets when it is created.
    #[must_use]
    pub fn ranges_at_creation(&self, provisioned: Provisioned) -> u32 {
        let (rate, share) = match provisioned {
            Provisioned::Manual(rate) => (rate, self.partition_throughput_at_creation),
            Provisioned::Autoscale(rate) | Provisioned::Shared(rate) => {
                (rate, self.partition_throughput_max)
            }
            Provisioned::Serverless => (0, self.serverless_partition_throughput_max),
        };
        rate.div_ceil(share.max(1)).max(1)
    }

    /// How many physical partitions a throughput needs that is set later. Raising
    /// it above what they carry splits some; lowering it merges none by itself.
    #[must_use]
    pub fn ranges_for_scaling(&self, rate: u32) -> u32 {
        rate.div_ceil(self.partition_throughput_max.max(1)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_the_throughput() {
        let limits = Limits::default();
        for (throughput, ranges) in [
            (Provisioned::Manual(400), 1),
            (Provisioned::Manual(6_000), 1),
            (Provisioned::Manual(10_000), 2),
            (Provisioned::Manual(20_000), 4),
            (Provisioned::Autoscale(10_000), 1),
            (Provisioned::Autoscale(11_000), 2),
            (Provisioned::Shared(20_000), 2),
            (Provisioned::Serverless, 1),
        ] {
            assert_eq!(limits.ranges_at_creation(throughput), ranges, "{throughput:?}");
        }
        assert_eq!(limits.ranges_for_scaling(10_000), 1);
        assert_eq!(limits.ranges_for_scaling(10_100), 2);
    }

    #[test]
    fn a_test_may_shrink_every_limit() {
        let tiny = Limits {
            partition_throughput_max: 100,
            partition_throughput_at_creation: 50,
            ..Limits::default()
        };
        assert_eq!(tiny.ranges_at_creation(Provisioned::Manual(400)), 8);
        assert_eq!(tiny.ranges_for_scaling(400), 4);
        let none = Limits { partition_throughput_at_creation: 0, ..tiny };
        assert_eq!(none.ranges_at_creation(Provisioned::Manual(3)), 3);
    }
}
