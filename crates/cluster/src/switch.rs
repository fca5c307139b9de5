//! The switch: the moment in which one layout takes the place of another.
//!
//! Pause → drain → commit → adopt. The partitions concerned take no commands
//! until it is over, however much data they hold: nothing is copied, and what is
//! waited for is the disk, twice. Requests by key wait and go to whoever owns the
//! key then; reads go on from views all the time.
//!
//! The stored map alone decides. Before it is written, a failure, a crash or a
//! dropped future leaves everything as it was; after it, as it will be.

use std::sync::Arc;
use std::time::Duration;

use partition::{ContainerNumber, Partition, Problem};
use storage::{Outcome as Fate, Ticket};

use crate::cluster::{Cluster, map_id};
use crate::container::Container;
use crate::error::ClusterError;
use crate::map::{Closing, ContainerMap, LayoutError, RangeId};
use crate::slot::{Slot, Unserved};
use crate::system::SystemWrite;

/// The moments of a transition, in their order. Whoever observes a cluster is
/// told of each: a test stops the process there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// A bucket has been given its second homes in the stored map.
    MovePlanned,
    /// From here on commands write to both homes.
    DoubleWriting,
    /// Some items have been copied, maybe not all.
    Copying,
    /// The second homes hold as much as the first.
    Verified,
    /// The partitions take no commands.
    Paused,
    /// All that they took is on the disk.
    Drained,
    /// The new map is on the disk, and not in force yet.
    Committed,
    /// The new layout serves.
    Switched,
    /// The keys of a bucket that was moved have been removed.
    Swept,
}

impl Stage {
    pub const ALL: [Stage; 9] = [
        Stage::MovePlanned,
        Stage::DoubleWriting,
        Stage::Copying,
        Stage::Verified,
        Stage::Paused,
        Stage::Drained,
        Stage::Committed,
        Stage::Switched,
        Stage::Swept,
    ];
}

/// Whoever wants to know how far transitions have come.
#[derive(Default)]
pub(crate) struct Observer(pub(crate) Option<Box<dyn Fn(Stage) + Send + Sync>>);

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Observer").field(&self.0.is_some()).finish()
    }
}

/// A layout as it came into force.
#[derive(Clone, Debug)]
pub struct Switched {
    pub map: Arc<ContainerMap>,
    /// How long commands had to wait.
    pub pause: Duration,
}

/// One partition's part in a switch: its range, and what its sequencer does last.
pub(crate) struct Part {
    pub(crate) range: RangeId,
    pub(crate) last: Last,
}

type Last = Box<dyn FnOnce(&mut Partition) -> Result<(), Problem> + Send>;

impl Part {
    pub(crate) fn of(range: RangeId) -> Part {
        Part { range, last: Box::new(|_| Ok(())) }
    }
}

impl Cluster {
    /// Puts the layout that `change` makes of the present one in force, together
    /// with `catalogue`. The caller holds the lock on map changes.
    pub(crate) async fn switch(
        &self,
        container: &Container,
        parts: Vec<Part>,
        change: impl FnOnce(&ContainerMap, &[(RangeId, Closing)]) -> Result<ContainerMap, LayoutError>,
        catalogue: Vec<SystemWrite>,
    ) -> Result<Switched, ClusterError> {
        let started = self.monotonic();
        let mut held = self.pause(container, parts).await?;
        let closings: Vec<_> =
            held.iter().map(|one| (one.slot.id(), one.closing.clone())).collect();
        let map = change(&container.map(), &closings)?;
        held.iter_mut().for_each(|one| one.ending = Ending::Unknown);
        let stored = self.store_map(container.number(), &map, catalogue).await;
        let ending = match &stored {
            Ok(()) => Ending::Replace,
            Err(Unstored::Surely(_)) => Ending::Resume,
            Err(Unstored::Unknown) => Ending::Unknown,
        };
        held.iter_mut().for_each(|one| one.ending = ending);
        stored?;
        self.observe(Stage::Committed);
        container.adopt(map);
        self.observe(Stage::Switched);
        Ok(Switched { map: container.map(), pause: self.monotonic().saturating_sub(started) })
    }

    /// Stops the partitions and waits until all they took is on the disk.
    async fn pause(
        &self,
        container: &Container,
        parts: Vec<Part>,
    ) -> Result<Vec<Held>, ClusterError> {
        let mut held = Vec::new();
        for Part { range, last } in parts {
            let slot = container.partition(range)?;
            let stopped = self.executors().call(slot.lane(), move || Held::stop(slot, last));
            held.push(stopped.await?.map_err(|unserved| unserved.of(range))?);
        }
        self.observe(Stage::Paused);
        for one in &mut held {
            let drained = one.drained.take().ok_or(ClusterError::Internal)?;
            if drained.await != Fate::Durable {
                // The partition reads the disk again with its next command.
                return Err(ClusterError::Busy);
            }
        }
        self.observe(Stage::Drained);
        Ok(held)
    }

    async fn store_map(
        &self,
        number: ContainerNumber,
        map: &ContainerMap,
        mut catalogue: Vec<SystemWrite>,
    ) -> Result<(), Unstored> {
        let (id, body) = (map_id(number), map.to_object());
        catalogue.push(SystemWrite::Replace { id, body, if_match: None });
        match self.write_system(catalogue).await {
            Ok(_) => Ok(()),
            Err(ClusterError::Unknown) => match self.stored_map(number) {
                Ok(stored) if stored == *map => Ok(()),
                Ok(_) => Err(Unstored::Surely(ClusterError::Unknown)),
                Err(_) => Err(Unstored::Unknown),
            },
            Err(error) => Err(Unstored::Surely(error)),
        }
    }
}

/// The new map was not stored, or it is not known whether it was.
enum Unstored {
    Surely(ClusterError),
    Unknown,
}

impl From<Unstored> for ClusterError {
    fn from(unstored: Unstored) -> ClusterError {
        match unstored {
            Unstored::Surely(error) => error,
            Unstored::Unknown => ClusterError::Unknown,
        }
    }
}

/// A partition that stands still. However the switch ends, also when nobody waits
/// for its end any more, this decides what becomes of it.
#[derive(Debug)]
struct Held {
    slot: Arc<Slot>,
    closing: Closing,
    /// Resolves when all that the partition took is on the disk.
    drained: Option<Ticket>,
    ending: Ending,
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    /// Nothing has changed.
    Resume,
    /// Others have taken its place.
    Replace,
    /// Nobody may write before it is known which map counts. A restart reads it.
    Unknown,
}

impl Held {
    fn stop(slot: Arc<Slot>, last: Last) -> Result<Held, Unserved> {
        let (closing, ticket) = slot.pause(last)?;
        Ok(Held { slot, closing, drained: Some(ticket), ending: Ending::Resume })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        match self.ending {
            Ending::Resume => self.slot.resume(),
            Ending::Replace => {}
            Ending::Unknown => {
                tracing::error!("it is not known which layout counts: restart to find out");
                self.slot.replace();
            }
        }
    }
}

impl Unserved {
    pub(crate) fn of(self, range: RangeId) -> ClusterError {
        match self {
            Unserved::Switching => ClusterError::Switching(range),
            Unserved::Problem(problem) => ClusterError::Read(problem),
        }
    }
}
