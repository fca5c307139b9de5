//! How much of everything: the published numbers of the service.
//!
//! The constants bound what parsers accept and what stored formats hold, so they are the
//! same everywhere. Everything else is a field of [`Limits`], so that a test can run the
//! whole lifecycle (create, split by throughput, split by size, full key, merge) in seconds
//! with the code that runs in production. A [`Profile`] is a set of such values: the rules
//! of another year.

mod named;
mod profile;

use named::{LimitValue, limits};

pub use named::{LimitError, parse_number};
pub use profile::{Profile, ProfileError};

/// Levels of a hierarchical partition key.
pub const KEY_LEVELS_MAX: usize = 3;
/// Bytes of one partition key value. Version 1 containers accept as many, but distinguish
/// keys by their first 101 bytes only.
pub const KEY_BYTES_MAX: usize = 2_048;
/// Bytes of an item's id.
pub const ITEM_ID_BYTES_MAX: usize = 1_023;
/// Characters of the name of any other resource.
pub const NAME_CHARS_MAX: usize = 255;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

limits! {
    /// Bytes of an item as UTF-8 JSON; larger writes are refused with 413.
    item_bytes_max: u64 = 2 * MIB;
    /// Bytes of a request body, and so of a whole batch.
    request_bytes_max: u64 = 2 * MIB;
    /// Bytes of a response; a page ends before it.
    response_bytes_max: u64 = 4 * MIB;
    /// Time for one operation, script or query page.
    operation_ms_max: u64 = 5_000;
    /// Items that one page of a query scans before it ends: a page of a scan costs a few
    /// thousand request units at most. No number is published.
    query_page_items_max: u64 = 50_000;
    /// Operations of a transactional batch.
    batch_operations_max: usize = 100;
    /// Operations of one patch.
    patch_operations_max: usize = 10;

    /// Data and index that one logical partition may hold; beyond it only writes
    /// that add data are refused (403).
    logical_partition_bytes_max: u64 = 20 * GIB;
    /// Data and index that one physical partition may hold; beyond it it splits.
    physical_partition_bytes_max: u64 = 50 * GIB;
    /// Data and index of a whole container. No number is published for today.
    container_bytes_max: u64 = u64::MAX;
    /// What a physical partition serves, and therefore any one key. Raising throughput
    /// above this times the number of partitions splits some.
    partition_throughput_max: u32 = 10_000;
    /// What the service plans for each physical partition when a container with
    /// manual throughput is created: below the maximum, so that the first
    /// raise is instant.
    partition_throughput_at_creation: u32 = 6_000;
    /// The serverless counterpart of `partition_throughput_max`.
    serverless_partition_throughput_max: u32 = 5_000;
    /// Physical partitions merge when they have less than this on average…
    merge_throughput_below: u32 = 3_000;
    /// …and hold less than this on average.
    merge_bytes_below: u64 = 20 * GIB;

    /// The smallest manual throughput of a container or database.
    throughput_min: u32 = 400;
    /// The largest throughput, manual or autoscale.
    throughput_max: u32 = 1_000_000;
    /// The smallest throughput of a container that can have more than one physical
    /// partition. One that is created with less is fixed: it never splits.
    unlimited_throughput_min: u32 = 400;
    /// The largest throughput of a fixed container, and of one without a key.
    fixed_throughput_max: u32 = 10_000;
    /// Manual throughput comes in steps of this.
    throughput_step: u32 = 100;
    /// Manual throughput that every stored GB asks for at least.
    throughput_per_gib_min: u32 = 1;
    /// The manual minimum is at least the highest throughput ever set, divided by this.
    throughput_highest_divisor: u32 = 100;
    /// The smallest autoscale maximum.
    autoscale_throughput_min: u32 = 1_000;
    /// Autoscale maxima come in steps of this.
    autoscale_throughput_step: u32 = 1_000;
    /// Autoscale maximum that every stored GB asks for at least.
    autoscale_per_gib_min: u32 = 10;
    /// The smallest autoscale maximum is at least the highest ever set, divided by
    /// this; and an autoscale container is never below its maximum divided by this.
    autoscale_highest_divisor: u32 = 10;
    /// Containers of a shared-throughput database that its minimum covers.
    shared_database_containers_max: usize = 25;
    /// What each further container adds to the minimum of a manual database.
    shared_container_throughput: u32 = 100;
    /// What each further container adds to the minimum of an autoscale database.
    shared_container_autoscale_throughput: u32 = 1_000;

    /// Seconds of unused throughput that a physical partition saves for bursts.
    burst_secs_max: u32 = 300;
    /// How fast it spends what it saved. Partitions with as much throughput do not save.
    burst_throughput_max: u32 = 3_000;
    /// Throughput buckets of a container: their ids are 1 to this.
    throughput_buckets_max: u32 = 5;
    /// Time between two changes of a container's throughput buckets.
    throughput_bucket_change_secs_min: u64 = 600;
    /// Physical partitions that one redistribution may take from, and give to.
    redistribution_ranges_max: usize = 20;
    /// Redistributions of a container in one minute.
    redistributions_per_minute_max: usize = 5;
    /// Physical partitions whose throughput one request reads.
    throughput_reads_max: usize = 50;
    /// What a redistribution may give to one physical partition; beyond what it
    /// can serve it is split.
    redistribution_throughput_max: u32 = 20_000;

    /// Databases and containers of an account together.
    databases_and_containers_max: usize = 500;
    /// Stored procedures of a container.
    stored_procedures_max: usize = 100;
    /// Triggers of a container. No number is published; as many as procedures.
    triggers_max: usize = 100;
    /// User-defined functions of a container.
    user_defined_functions_max: usize = 50;

    /// Users of an account.
    users_max: usize = 500_000;
    /// Permissions of an account.
    permissions_max: usize = 2_000_000;

    /// The shortest life of a resource token.
    resource_token_secs_min: u64 = 600;
    /// The longest life of a resource token.
    resource_token_secs_max: u64 = 86_400;
    /// How far the clock of a signed request may be off.
    signature_skew_secs_max: u64 = 900;

    /// The factor of a scale model: stored bytes count this many times, and throughput
    /// budgets refill this many times slower. See [`Limits::scaled`].
    scale: u32 = 1;
}

/// What throughput a container is created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provisioned {
    /// A fixed rate.
    Manual(u32),
    /// A rate that follows the load up to this maximum.
    Autoscale(u32),
    /// The container shares its database's throughput of this size.
    Shared(u32),
    /// Paid by use.
    Serverless,
}

/// Whether a container can ever have more than one physical partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// One physical partition for ever: no key to divide by, or created too small
    /// under the rules of an earlier year.
    Fixed,
    /// Splits as throughput and storage need it.
    Unlimited,
}

impl Limits {
    /// Bytes that the operations of one request may return together. Clients may have asked
    /// to omit some of them, so that is more than a response can have.
    #[must_use]
    pub fn effects_bytes_max(&self) -> usize {
        usize::try_from(self.response_bytes_max.saturating_mul(4)).unwrap_or(usize::MAX)
    }

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

    /// How many physical partitions are needed for a throughput that is set later. Raising
    /// it above what they serve splits some; lowering it merges none by itself.
    #[must_use]
    pub fn ranges_for_scaling(&self, rate: u32) -> u32 {
        rate.div_ceil(self.partition_throughput_max.max(1)).max(1)
    }

    /// Whether a container that is created like this will ever split. A container that
    /// shares its database's throughput has none of its own to decide by.
    #[must_use]
    pub fn growth_at_creation(&self, keyless: bool, provisioned: Provisioned) -> Growth {
        let enough = match provisioned {
            Provisioned::Manual(rate) | Provisioned::Autoscale(rate) => {
                rate >= self.unlimited_throughput_min
            }
            Provisioned::Shared(_) | Provisioned::Serverless => true,
        };
        if enough && !keyless { Growth::Unlimited } else { Growth::Fixed }
    }

    /// Whether containers that never split can still be created: with little throughput, or
    /// without a key. That was so as long as unlimited ones required more.
    #[must_use]
    pub fn has_fixed_containers(&self) -> bool {
        self.unlimited_throughput_min > Limits::default().unlimited_throughput_min
    }

    /// Data and index that a container may hold in one physical partition before writes
    /// that add data are refused. Containers that can grow split instead.
    #[must_use]
    pub fn partition_bytes_max(&self, growth: Growth) -> u64 {
        match growth {
            Growth::Fixed => self.physical_partition_bytes_max.min(self.container_bytes_max),
            Growth::Unlimited => u64::MAX,
        }
    }

    /// A scale model: stored bytes count `factor` times and throughput refills `factor`
    /// times slower, so that a whole lifecycle fits into seconds. Everything that clients
    /// send or see stays as it is: offers, charges, minima, item sizes, messages.
    #[must_use]
    pub fn scaled(self, factor: u32) -> Limits {
        let factor = factor.max(1);
        let smaller =
            |bytes: u64| if bytes == u64::MAX { bytes } else { bytes / u64::from(factor) };
        Limits {
            logical_partition_bytes_max: smaller(self.logical_partition_bytes_max),
            physical_partition_bytes_max: smaller(self.physical_partition_bytes_max),
            container_bytes_max: smaller(self.container_bytes_max),
            merge_bytes_below: smaller(self.merge_bytes_below),
            scale: self.scale.saturating_mul(factor),
            ..self
        }
    }

    /// A size in GB as clients see it: unscaled and rounded to the nearest.
    #[must_use]
    pub fn gib_unscaled(&self, bytes: u64) -> u64 {
        let told = self.bytes_unscaled(bytes);
        told.saturating_add(GIB / 2) / GIB
    }

    /// What `bytes` stored bytes stand for.
    #[must_use]
    pub(crate) fn bytes_unscaled(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(u64::from(self.scale.max(1)))
    }
}

#[cfg(test)]
mod tests;
