//! Automatic merges of cold neighbours.
//!
//! Nothing merges by itself unless the operator has configured after which quiet time it
//! may. The conditions for a merge are far from those for a split (hysteresis): a range
//! must be small together with its neighbour, unused, and the last change of the layout
//! long ago. So a pause in the load does not undo the splits that the load has caused.

use std::sync::Arc;
use std::time::Duration;

use partition::Head;

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::layout::Layout;
use crate::layout::container::Container;
use crate::layout::map::PartitionId;
use crate::layout::partition_handle::PartitionHandle;
use crate::transition::Transition;

/// Two neighbours are cold if no second of the last minute cost them more than this
/// fraction of what a partition that may be merged has.
const COLD_PART: f64 = 0.1;

/// When neighbours may be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeRule {
    /// Time since the last change of the layout.
    pub quiet: Duration,
    /// Ranges that the container's throughput needs.
    pub ranges_min: u32,
}

impl Cluster {
    /// Merges two neighbours if the rule allows it: those that hold least.
    pub async fn merge_cold(
        &self,
        container: &Container,
        rule: &MergeRule,
    ) -> Result<Option<Transition>, ClusterError> {
        let quiet = self.steady().saturating_sub(container.changed_at());
        let needed = usize::try_from(rule.ranges_min).unwrap_or(usize::MAX).max(1);
        let layout = container.layout();
        if quiet < rule.quiet || layout.map().ranges().len() <= needed {
            return Ok(None);
        }
        let (_, sizes) = self.sizes(Arc::clone(&layout)).await?;
        match self.coldest(&layout, &sizes) {
            Some(pair) => self.merge(container, &pair).await.map(Some),
            None => Ok(None),
        }
    }

    /// The two neighbours that hold least, if they are small and cold.
    fn coldest(&self, layout: &Layout, sizes: &[Head]) -> Option<[PartitionId; 2]> {
        let limits = self.limits();
        // Half of the limit at most, or the next writes would split them again.
        let small = limits.merge_bytes_below.min(limits.physical_partition_bytes_max / 2);
        let pairs = layout.partitions.windows(2).zip(sizes.windows(2));
        let together = pairs.filter_map(|(partitions, sizes)| match (partitions, sizes) {
            ([left, right], [a, b]) => Some((a.bytes.saturating_add(b.bytes), [left, right])),
            _ => None,
        });
        let coldest = together
            .filter(|(bytes, pair)| *bytes < small && self.is_cold(*pair))
            .min_by_key(|(bytes, _)| *bytes);
        coldest.map(|(_, pair)| pair.map(|partition| partition.id()))
    }

    fn is_cold(&self, pair: [&Arc<PartitionHandle>; 2]) -> bool {
        let limits = self.limits();
        let busiest = pair.map(|partition| {
            partition.throttle().meter().busiest_second(self.steady()).request_units()
        });
        let rate = f64::from(limits.merge_throughput_below) / f64::from(limits.scale.max(1));
        busiest.iter().sum::<f64>() < COLD_PART * rate
    }
}
