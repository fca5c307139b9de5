//! Reads everything there is and says what does not agree.

use partition::{ContainerNumber, Report, check_bucket};
use storage::{Direction, KeyRange, ScanLimit};

use crate::cluster::Cluster;
use crate::container::Container;
use crate::error::ClusterError;
use crate::system::SYSTEM;

/// What a check of the whole store has seen.
#[derive(Clone, Debug, Default)]
pub struct ClusterReport {
    pub containers: u64,
    pub partitions: u64,
    pub buckets: u64,
    pub rows: u64,
    pub total: Report,
    /// Prefixes with keys that belong to no container and are not being removed.
    pub strays: Vec<u32>,
}

impl ClusterReport {
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.total.is_clean() && self.strays.is_empty()
    }
}

impl Cluster {
    /// Checks the system container and every attached one. `progress` is told
    /// the name of each container before it is read.
    pub fn check(&self, mut progress: impl FnMut(&str)) -> Result<ClusterReport, ClusterError> {
        let mut report =
            ClusterReport { rows: self.store().verify()?.rows, ..ClusterReport::default() };
        self.check_container(self.system(), &mut progress, &mut report)?;
        for container in self.containers() {
            self.check_container(&container, &mut progress, &mut report)?;
        }
        report.strays = self.strays()?;
        Ok(report)
    }

    fn check_container(
        &self,
        container: &Container,
        progress: &mut impl FnMut(&str),
        report: &mut ClusterReport,
    ) -> Result<(), ClusterError> {
        progress(container.spec().definition.id().as_str());
        report.containers += 1;
        for slot in container.slots() {
            report.partitions += 1;
            let setup = slot.setup();
            for bucket in &setup.buckets {
                let view = container.store().view()?;
                report.buckets += 1;
                report.total.merge(check_bucket(&setup, bucket, view.as_ref())?);
            }
        }
        Ok(())
    }

    /// Hops from prefix to prefix, so the cost is a seek for each container.
    fn strays(&self) -> Result<Vec<u32>, ClusterError> {
        let retired = self.retired()?;
        let known = |number: u32| {
            let number = ContainerNumber(number);
            number == SYSTEM || retired.contains(&number) || self.container(number).is_ok()
        };
        let mut strays = Vec::new();
        let mut range = KeyRange::all();
        loop {
            let view = self.store().view()?;
            let chunk = view.scan(
                &range,
                Direction::Forward,
                ScanLimit { rows: 1, ..ScanLimit::default() },
            )?;
            let Some((key, _)) = chunk.rows.first() else { return Ok(strays) };
            let Some((prefix, _)) = key.split_first_chunk::<4>() else {
                strays.push(u32::MAX);
                return Ok(strays);
            };
            let number = u32::from_be_bytes(*prefix);
            if !known(number) {
                strays.push(number);
            }
            let Some(next) = number.checked_add(1) else { return Ok(strays) };
            range.start = next.to_be_bytes().to_vec().into();
        }
    }
}
