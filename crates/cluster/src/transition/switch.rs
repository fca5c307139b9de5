//! The switch: the moment in which one layout replaces another.
//!
//! Pause → drain → commit → adopt. The partitions concerned take no commands until it is
//! over, however much data they hold: nothing is copied, and what is waited for is the
//! disk, twice. Requests by key wait and are then routed to the new owner; reads continue
//! on views all the time.
//!
//! The stored map alone decides. A failure, a crash or a dropped future before it is
//! written leaves the old layout; after it, the new one.

use std::sync::Arc;
use std::time::Duration;

use partition::{Partition, PartitionConfig, PartitionError, Purpose};
use storage::{CommitStatus, Ticket};

use crate::cluster::{ATTEMPTS_MAX, Cluster};
use crate::error::ClusterError;
use crate::layout::container::Container;
use crate::layout::map::{ContainerMap, FinalPosition, LayoutError, PartitionId};
use crate::layout::partition_handle::{NotServing, PartitionHandle, Paused};
use crate::layout::stored_map::Unstored;
use crate::system::SystemWrite;

/// The steps of a transition, in their order. An observer is called at each: a test stops
/// the process there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransitionStep {
    /// A bucket has been given its move targets in the stored map.
    MovePlanned,
    /// From here on commands write to the move targets as well.
    DoubleWriting,
    /// Some items have been copied, maybe not all.
    Copying,
    /// The move targets hold as much as the moving bucket.
    Verified,
    /// The partitions take no commands.
    Paused,
    /// Everything that they took is durable.
    Drained,
    /// The new map is durable, and not in force yet.
    Committed,
    /// The new layout is in force.
    Switched,
    /// The keys of a bucket that was moved have been removed.
    Swept,
}

impl TransitionStep {
    pub const ALL: [TransitionStep; 9] = [
        TransitionStep::MovePlanned,
        TransitionStep::DoubleWriting,
        TransitionStep::Copying,
        TransitionStep::Verified,
        TransitionStep::Paused,
        TransitionStep::Drained,
        TransitionStep::Committed,
        TransitionStep::Switched,
        TransitionStep::Swept,
    ];
}

/// The observer of transitions, if there is one.
#[derive(Default)]
pub(crate) struct Observer(pub(crate) Option<Box<dyn Fn(TransitionStep) + Send + Sync>>);

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

/// One partition's part in a switch: its range, and the last work of its sequencer.
pub(crate) struct Part {
    pub(crate) range: PartitionId,
    pub(crate) last: Last,
}

type Last = Box<dyn FnOnce(&mut Partition) -> Result<(), PartitionError> + Send>;

impl Part {
    pub(crate) fn of(range: PartitionId) -> Part {
        Part { range, last: Box::new(|_| Ok(())) }
    }
}

impl Cluster {
    /// Puts the layout that `change` makes of the present one in force, together with
    /// `catalogue`. Computed again if the map changes concurrently.
    pub(crate) async fn switch(
        &self,
        container: &Container,
        parts: Vec<Part>,
        change: impl Fn(
            &ContainerMap,
            &[(PartitionId, FinalPosition)],
        ) -> Result<ContainerMap, LayoutError>,
        catalogue: Vec<SystemWrite>,
    ) -> Result<Switched, ClusterError> {
        let started = self.monotonic();
        let mut held = self.pause(container, parts).await?;
        for _ in 0..ATTEMPTS_MAX {
            let layout = container.layout();
            let final_positions: Vec<_> =
                held.iter().map(|one| one.final_position_under(layout.map())).collect();
            let map = change(layout.map(), &final_positions)?;
            held.iter_mut().for_each(|one| one.ending = Ending::Unknown);
            let stored = self.store_map(&layout, map, catalogue.clone(), Purpose::Any).await;
            let ending = match &stored {
                Ok(_) => Ending::Replace,
                Err(Unstored::Conflict | Unstored::Surely(_)) => Ending::Resume,
                Err(Unstored::Superseded | Unstored::Unknown) => Ending::Unknown,
            };
            held.iter_mut().for_each(|one| one.ending = ending);
            if let Err(Unstored::Conflict | Unstored::Superseded) = stored {
                self.catch_up(container)?;
                // Those that the newest map has replaced cannot be resumed.
                held.iter_mut().for_each(|one| one.ending = Ending::Resume);
                continue;
            }
            let stored = stored?;
            let map = Arc::new(stored.map.clone());
            self.observe(TransitionStep::Committed);
            container.adopt(stored);
            self.observe(TransitionStep::Switched);
            return Ok(Switched { map, pause: self.monotonic().saturating_sub(started) });
        }
        Err(ClusterError::Busy)
    }

    /// Pauses the partitions and waits until everything they took is durable.
    async fn pause(
        &self,
        container: &Container,
        parts: Vec<Part>,
    ) -> Result<Vec<Held>, ClusterError> {
        let mut held = Vec::new();
        for Part { range, last } in parts {
            let handle = container.partition(range)?;
            let stopped = self.executors().call(handle.lane(), move || Held::stop(handle, last));
            held.push(stopped.await?.map_err(|refusal| refusal.of(range))?);
        }
        self.observe(TransitionStep::Paused);
        for one in &mut held {
            let drained = one.drained.take().ok_or(ClusterError::Internal)?;
            if drained.await != CommitStatus::Durable {
                // The partition reads the disk again with its next command.
                return Err(ClusterError::Busy);
            }
        }
        self.observe(TransitionStep::Drained);
        Ok(held)
    }
}

/// A paused partition. However the switch ends, also when its future is dropped, this
/// decides what happens to it.
#[derive(Debug)]
struct Held {
    handle: Arc<PartitionHandle>,
    final_position: FinalPosition,
    /// The configuration it had when it took its last command.
    config: Arc<PartitionConfig>,
    /// Resolves when everything that the partition took is durable.
    drained: Option<Ticket>,
    ending: Ending,
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    /// Nothing has changed.
    Resume,
    /// It was replaced.
    Replace,
    /// No command may be taken before it is known which map counts. A restart reads it.
    Unknown,
}

impl Held {
    fn stop(handle: Arc<PartitionHandle>, last: Last) -> Result<Held, NotServing> {
        let Paused { final_position, config, drained } = handle.pause(last)?;
        Ok(Held { handle, final_position, config, drained: Some(drained), ending: Ending::Resume })
    }

    /// Its final position, relative to a map: ordinals that were allocated to it since are
    /// left, too.
    fn final_position_under(&self, map: &ContainerMap) -> (PartitionId, FinalPosition) {
        let mut final_position = self.final_position.clone();
        let allocated =
            map.range(self.handle.id()).map_or(&[][..], |record| &record.ordinal_blocks);
        let since = allocated.iter().filter(|block| !self.config.ordinal_blocks.contains(block));
        final_position.ordinal_blocks.extend(since.cloned());
        (self.handle.id(), final_position)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        match self.ending {
            Ending::Resume => self.handle.resume(),
            Ending::Replace => {}
            Ending::Unknown => {
                tracing::error!("it is not known which layout counts: restart to find out");
                self.handle.replace();
            }
        }
    }
}

impl NotServing {
    pub(crate) fn of(self, range: PartitionId) -> ClusterError {
        match self {
            NotServing::Switching => ClusterError::Switching(range),
            NotServing::Partition(problem) => ClusterError::Read(problem),
        }
    }
}
