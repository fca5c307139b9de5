//! The layout of one container at one moment: its definition, its map, and the handles of
//! its partitions.
//!
//! A request takes one layout when its container is resolved, and uses it to the end:
//! routing, admission, execution and the check of session tokens then all refer to the same
//! moment. Only a partition that reports that it was replaced sends a request to a newer
//! layout.

pub(crate) mod container;
pub(crate) mod map;
pub(crate) mod partition_handle;
pub(crate) mod stored_map;

use std::sync::Arc;

use model::epk::Epk;

use crate::error::ClusterError;
use crate::layout::container::ContainerSpec;
use crate::layout::map::{ContainerMap, PartitionId};
use crate::layout::partition_handle::PartitionHandle;
use crate::layout::stored_map::MapVersion;

/// What a container looked like at one moment.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(crate) spec: Arc<ContainerSpec>,
    pub(crate) map: Arc<ContainerMap>,
    /// The version of the stored map.
    pub(crate) version: MapVersion,
    /// One for each range of the map, in its order.
    pub(crate) partitions: Vec<Arc<PartitionHandle>>,
    /// Whether the container was dropped: no request is routed any more.
    pub(crate) dropped: bool,
}

impl Layout {
    #[must_use]
    pub fn spec(&self) -> &Arc<ContainerSpec> {
        &self.spec
    }

    #[must_use]
    pub fn map(&self) -> &Arc<ContainerMap> {
        &self.map
    }

    /// The partition that owns a key.
    pub fn route(&self, epk: &Epk) -> Result<&Arc<PartitionHandle>, ClusterError> {
        let missing = ClusterError::NoContainer(self.spec.number.0);
        let index = self.map.index_of(epk).filter(|_| !self.dropped);
        index.and_then(|index| self.partitions.get(index)).ok_or(missing)
    }

    /// The partition with that id.
    pub fn partition(&self, id: PartitionId) -> Result<&Arc<PartitionHandle>, ClusterError> {
        if self.dropped {
            return Err(ClusterError::NoContainer(self.spec.number.0));
        }
        self.find(id).ok_or(ClusterError::NoRange(id))
    }

    /// The partition with that id, also after a drop.
    pub(crate) fn find(&self, id: PartitionId) -> Option<&Arc<PartitionHandle>> {
        self.partitions.iter().find(|partition| partition.id() == id)
    }
}
