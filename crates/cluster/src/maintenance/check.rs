//! The consistency check of a whole store: reads everything and reports what does not
//! agree.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use partition::{BucketNumber, ContainerNumber, Report, check_bucket};
use storage::{Direction, KeyRange, ScanLimit};

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::layout::container::Container;
use crate::maintenance::retired::RetiredPrefix;

/// What a check of the whole store has seen.
#[derive(Clone, Debug, Default)]
pub struct ClusterReport {
    pub containers: u64,
    pub partitions: u64,
    pub buckets: u64,
    pub rows: u64,
    pub total: Report,
    /// Prefixes with keys that have no owner and are not being removed.
    pub strays: Vec<RetiredPrefix>,
}

impl ClusterReport {
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.total.is_clean() && self.strays.is_empty()
    }
}

impl Cluster {
    /// Checks the system container and every attached one; `leaving` are containers that
    /// are no longer attached and still to be dropped. `progress` is called with the name
    /// of each container before it is read.
    pub fn check(
        &self,
        leaving: &[ContainerNumber],
        mut progress: impl FnMut(&str),
    ) -> Result<ClusterReport, ClusterError> {
        let mut report =
            ClusterReport { rows: self.store().verify()?.rows, ..ClusterReport::default() };
        self.check_container(self.system(), &mut progress, &mut report)?;
        for container in self.containers() {
            self.check_container(&container, &mut progress, &mut report)?;
        }
        report.strays = self.strays(leaving)?;
        Ok(report)
    }

    fn check_container(
        &self,
        container: &Container,
        progress: &mut impl FnMut(&str),
        report: &mut ClusterReport,
    ) -> Result<(), ClusterError> {
        let layout = container.layout();
        progress(layout.spec().definition.id().as_str());
        report.containers += 1;
        for handle in &layout.partitions {
            report.partitions += 1;
            let config = handle.config();
            for bucket in config.written_buckets() {
                let view = handle.view()?;
                report.buckets += 1;
                report.total.merge(check_bucket(&config, bucket, view.as_ref())?);
            }
        }
        Ok(())
    }

    /// Skips from prefix to prefix, so the cost is a seek for each bucket.
    fn strays(&self, leaving: &[ContainerNumber]) -> Result<Vec<RetiredPrefix>, ClusterError> {
        let mut known = self.known_buckets()?;
        known.retired.extend(leaving.iter().copied().map(RetiredPrefix::Container));
        let mut strays = BTreeSet::new();
        let mut range = KeyRange::all();
        loop {
            let limit = ScanLimit { rows: 1, ..ScanLimit::default() };
            let chunk = self.store().view()?.scan(&range, Direction::Forward, limit)?;
            let Some((key, _)) = chunk.rows.first() else { return Ok(Vec::from_iter(strays)) };
            let mut prefix = [u8::MAX; 8];
            prefix.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
            let prefix = u64::from_be_bytes(prefix);
            strays.extend(known.stray(prefix));
            let Some(next) = prefix.checked_add(1) else { return Ok(Vec::from_iter(strays)) };
            range.start = next.to_be_bytes().to_vec().into();
        }
    }

    fn known_buckets(&self) -> Result<Known, ClusterError> {
        let mut known = Known { containers: BTreeMap::new(), retired: self.retired_blocking()? };
        for container in [Arc::clone(self.system())].into_iter().chain(self.containers()) {
            let layout = container.layout();
            let configs = layout.partitions.iter().map(|handle| handle.config());
            let numbers = configs
                .flat_map(|config| config.written_buckets().map(|b| b.number).collect::<Vec<_>>());
            known.containers.insert(container.number(), numbers.collect());
        }
        Ok(known)
    }
}

/// Everything that may have keys.
struct Known {
    containers: BTreeMap<ContainerNumber, BTreeSet<BucketNumber>>,
    retired: Vec<RetiredPrefix>,
}

impl Known {
    /// The owner that these keys would have, if no known one has them.
    fn stray(&self, prefix: u64) -> Option<RetiredPrefix> {
        let [a, b, c, d, e, f, g, h] = prefix.to_be_bytes();
        let container = ContainerNumber(u32::from_be_bytes([a, b, c, d]));
        let bucket = BucketNumber(u32::from_be_bytes([e, f, g, h]));
        let (whole, part) =
            (RetiredPrefix::Container(container), RetiredPrefix::Bucket(container, bucket));
        let is_retired = |prefix| self.retired.contains(&prefix);
        match self.containers.get(&container) {
            Some(buckets) if buckets.contains(&bucket) || is_retired(part) => None,
            Some(_) => Some(part),
            None if is_retired(whole) || is_retired(part) => None,
            None => Some(whole),
        }
    }
}
