//! The stored maps, and changing them by compare-and-set.
//!
//! A container's map is an item of the system partition. A change names the version that it
//! was computed from; on a conflict nothing is written, the newer map is put in force here
//! as well, and the change is computed again. So no lock is held while a map changes:
//! containers do not wait for each other, and concurrent changes of one map cannot undo
//! each other, whichever process makes them.

use model::etag::Etag;
use model::position::{Lsn, Timestamp};
use partition::{ContainerNumber, Effect, EtagMatch, PartitionError, Purpose};

use crate::cluster::{ATTEMPTS_MAX, Cluster};
use crate::error::ClusterError;
use crate::layout::Layout;
use crate::layout::container::Container;
use crate::layout::map::ContainerMap;
use crate::system::SystemWrite;

/// One version of a stored map: the commit that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MapVersion {
    lsn: Lsn,
    etag: Etag,
}

impl MapVersion {
    /// Of a map that is a constant and never stored.
    pub(crate) fn constant() -> MapVersion {
        MapVersion::new(Lsn::ZERO, Etag::new(Lsn::ZERO, 0, Timestamp::from_millis(0)))
    }

    pub(crate) fn new(lsn: Lsn, etag: Etag) -> MapVersion {
        MapVersion { lsn, etag }
    }

    /// Whether it came after another version of the same map.
    pub(crate) fn is_newer_than(&self, other: &MapVersion) -> bool {
        self.lsn > other.lsn
    }
}

/// A map as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredMap {
    pub(crate) map: ContainerMap,
    pub(crate) version: MapVersion,
}

/// A map was not stored, or it is not known whether it was.
#[derive(Debug)]
pub(crate) enum Unstored {
    /// It was changed concurrently.
    Conflict,
    Surely(ClusterError),
    /// It is not known whether it was, and another change has been stored since: the map
    /// that is stored now decides.
    Superseded,
    Unknown,
}

impl From<Unstored> for ClusterError {
    fn from(unstored: Unstored) -> ClusterError {
        match unstored {
            Unstored::Conflict => ClusterError::Busy,
            Unstored::Surely(error) => error,
            Unstored::Superseded | Unstored::Unknown => ClusterError::Unknown,
        }
    }
}

impl Cluster {
    /// The map of a container and its version, as stored now.
    pub(crate) fn stored_map(&self, number: ContainerNumber) -> Result<StoredMap, ClusterError> {
        let item = self.read_system(&map_id(number))?.ok_or(ClusterError::NoContainer(number.0))?;
        let map = ContainerMap::parse(number.0, item.json())?;
        Ok(StoredMap { map, version: MapVersion::new(item.lsn, item.etag()) })
    }

    /// Stores the first map of a container, together with `catalogue`.
    pub(crate) async fn store_first_map(
        &self,
        number: ContainerNumber,
        map: ContainerMap,
        mut catalogue: Vec<SystemWrite>,
    ) -> Result<StoredMap, ClusterError> {
        catalogue.push(SystemWrite::Create { id: map_id(number), body: map.to_object() });
        let written = self.write_system(catalogue).await?;
        stored(map, written.effects.last())
    }

    /// Stores a map that was made of the one of a layout, together with `catalogue`.
    pub(crate) async fn store_map(
        &self,
        from: &Layout,
        map: ContainerMap,
        mut catalogue: Vec<SystemWrite>,
        purpose: Purpose,
    ) -> Result<StoredMap, Unstored> {
        let (number, at) = (from.spec().number, catalogue.len());
        let if_match = Some(EtagMatch(from.version.etag.to_string()));
        let (id, body) = (map_id(number), map.to_object());
        catalogue.push(SystemWrite::Replace { id, body, if_match });
        match self.write_system_as(catalogue, purpose).await {
            Ok(written) => stored(map, written.effects.last()).map_err(Unstored::Surely),
            Err(ClusterError::Command { error, .. })
                if error.at == at && matches!(error.problem, PartitionError::Precondition) =>
            {
                Err(Unstored::Conflict)
            }
            Err(ClusterError::Command { error, .. })
                if error.at == at && matches!(error.problem, PartitionError::NotFound) =>
            {
                Err(Unstored::Surely(ClusterError::NoContainer(number.0)))
            }
            Err(ClusterError::Unknown) => match self.stored_map(number) {
                Ok(stored) if stored.map == map => Ok(stored),
                Ok(stored) if stored.version == from.version => {
                    Err(Unstored::Surely(ClusterError::Unknown))
                }
                Ok(_) => Err(Unstored::Superseded),
                Err(_) => Err(Unstored::Unknown),
            },
            Err(error) => Err(Unstored::Surely(error)),
        }
    }

    /// Stores what `change` makes of the map of a container, if it makes something of it,
    /// and returns it; it is not in force yet. Computed again after a conflict.
    pub(crate) async fn change_map(
        &self,
        container: &Container,
        purpose: Purpose,
        change: impl Fn(&ContainerMap) -> Result<Option<ContainerMap>, ClusterError>,
    ) -> Result<Option<StoredMap>, ClusterError> {
        for _ in 0..ATTEMPTS_MAX {
            let layout = container.layout();
            let Some(map) = change(layout.map())? else { return Ok(None) };
            match self.store_map(&layout, map, Vec::new(), purpose).await {
                Ok(stored) => return Ok(Some(stored)),
                Err(Unstored::Conflict | Unstored::Superseded) => self.catch_up(container)?,
                Err(unstored @ (Unstored::Surely(_) | Unstored::Unknown)) => {
                    return Err(unstored.into());
                }
            }
        }
        Err(ClusterError::Busy)
    }

    /// Puts a map in force that a concurrent change has stored, and may be about to put in
    /// force itself.
    pub(crate) fn catch_up(&self, container: &Container) -> Result<(), ClusterError> {
        container.adopt(self.stored_map(container.number())?);
        Ok(())
    }
}

/// A map that was written.
fn stored(map: ContainerMap, effect: Option<&Effect>) -> Result<StoredMap, ClusterError> {
    let written = effect.and_then(|effect| Some((effect.lsn, effect.etag()?.clone())));
    let (lsn, etag) = written.ok_or(ClusterError::Internal)?;
    Ok(StoredMap { map, version: MapVersion::new(lsn, etag) })
}

pub(crate) fn map_id(number: ContainerNumber) -> String {
    format!("map:{}", number.0)
}
