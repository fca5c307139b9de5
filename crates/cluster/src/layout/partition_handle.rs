//! The handle of one partition: closed until it is first used, closed again when something
//! went wrong, paused while the layout changes, and retired when its container is dropped
//! or it is replaced.
//!
//! A request that was routed here needs nothing else: it is admitted, executed and charged
//! at the partition's handle.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use model::charge::Charge;
use model::position::{Lsn, Timestamp};
use partition::{
    Application, Command, Head, Partition, PartitionConfig, PartitionError, Purpose, Reader, Size,
};
use storage::{StorageError, Store, Ticket, View};
use tokio::sync::watch;

use crate::error::ClusterError;
use crate::layout::map::{FinalPosition, PartitionId};
use crate::throughput::budget::Caller;
use crate::throughput::{PartitionThrottle, Permit};

/// A partition that could not be split is considered again when it has grown by this
/// fraction.
const POSTPONE_PART: u64 = 16;

/// One partition, shared between its executor and its readers.
#[derive(Debug)]
pub struct PartitionHandle {
    id: PartitionId,
    store: Arc<dyn Store>,
    throttle: Arc<PartitionThrottle>,
    /// Which executor applies its commands.
    lane: usize,
    /// Apart from the partition, so that readers never wait for a command.
    config: RwLock<Arc<PartitionConfig>>,
    sequencer: Mutex<Sequencer>,
    /// The state that readers and waiting commands see. Changes together with the
    /// sequencer.
    serving_state: watch::Sender<ServingState>,
    durable: Durable,
    /// Whether `durable` was set from the disk.
    opened_once: AtomicBool,
    /// Items and their bytes after the last command.
    items: AtomicU64,
    bytes: AtomicU64,
    /// From this size on the partition is due to be split.
    due_at: AtomicU64,
}

#[derive(Debug)]
enum Sequencer {
    Closed,
    Open(Box<Partition>),
    /// Takes no commands for a moment, until its successors are known.
    Paused(Box<Partition>),
    /// Nothing may be written here any more.
    Retired,
}

/// Whether a partition serves requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServingState {
    Serving,
    /// Its layout is being switched: commands wait.
    Switching,
    /// It was replaced, or its container was dropped.
    Gone,
}

/// Where a partition stood when it took its last command.
#[derive(Debug)]
pub(crate) struct Paused {
    pub(crate) final_position: FinalPosition,
    /// The configuration it had then.
    pub(crate) config: Arc<PartitionConfig>,
    /// Resolves when everything that it took is durable.
    pub(crate) drained: Ticket,
}

/// Why a handle refused a command without applying it.
#[derive(Debug)]
pub(crate) enum NotServing {
    /// Ask again when the switch is over.
    Switching,
    Partition(PartitionError),
}

impl From<PartitionError> for NotServing {
    fn from(problem: PartitionError) -> NotServing {
        NotServing::Partition(problem)
    }
}

/// The LSN up to which everything is durable. Read before a view is taken, so
/// what it promises is in the view.
///
/// Apart from the handle, because tickets hold it: the store must not hold what holds the
/// store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durable(Arc<AtomicU64>);

impl Durable {
    pub(crate) fn raise(&self, lsn: Lsn) {
        self.0.fetch_max(lsn.get(), Ordering::AcqRel);
    }

    pub(crate) fn lsn(&self) -> Lsn {
        Lsn::from_u64(self.0.load(Ordering::Acquire))
    }
}

impl PartitionHandle {
    pub(crate) fn new(
        id: PartitionId,
        config: Arc<PartitionConfig>,
        store: Arc<dyn Store>,
        throttle: Arc<PartitionThrottle>,
    ) -> PartitionHandle {
        let due_at = config.limits.physical_partition_bytes_max;
        PartitionHandle {
            id,
            store,
            throttle,
            // Distributes the partitions of one container over the executors, and the first
            // ones of many containers.
            lane: usize::try_from(config.container.0.wrapping_add(id.0)).unwrap_or_default(),
            config: RwLock::new(config),
            sequencer: Mutex::new(Sequencer::Closed),
            serving_state: watch::Sender::new(ServingState::Serving),
            durable: Durable::default(),
            opened_once: AtomicBool::new(false),
            items: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            due_at: AtomicU64::new(due_at),
        }
    }

    #[must_use]
    pub fn id(&self) -> PartitionId {
        self.id
    }

    /// Its budget and its meter.
    #[must_use]
    pub fn throttle(&self) -> &Arc<PartitionThrottle> {
        &self.throttle
    }

    /// Admits a request, or refuses it with the time to wait.
    pub fn admit(&self, caller: Caller) -> Result<Permit, ClusterError> {
        let refused = |refusal| ClusterError::Throttled { range: self.id, refusal };
        self.throttle.admit(caller).map_err(refused)
    }

    /// Charges the partition's budget for work that was done here without admission.
    pub fn bill(&self, caller: Caller, charge: Charge) {
        self.throttle.permit(caller).pay(None, charge);
    }

    /// Which executor applies its commands, always the same.
    pub(crate) fn lane(&self) -> usize {
        self.lane
    }

    /// A snapshot of what is durable.
    pub(crate) fn view(&self) -> Result<Box<dyn View>, StorageError> {
        self.store.view()
    }

    /// Applies a command. Only the handle's executor calls this.
    pub(crate) fn apply(
        &self,
        now: Timestamp,
        command: &Command,
        purpose: Purpose,
    ) -> Result<Application, NotServing> {
        let mut sequencer = self.sequencer();
        let partition = self.opened(&mut sequencer)?;
        let application = partition.apply_as(now, command, purpose);
        self.note_size(partition.size());
        Ok(application)
    }

    /// The size after the last command, if the partition has been used. Costs nothing.
    #[must_use]
    pub fn size(&self) -> Size {
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Size { items: of(&self.items), bytes: of(&self.bytes) }
    }

    fn note_size(&self, size: Size) {
        self.items.store(size.items, Ordering::Relaxed);
        self.bytes.store(size.bytes, Ordering::Relaxed);
    }

    /// Whether the partition has outgrown its limit and is to be split.
    pub(crate) fn is_due(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.due_at.load(Ordering::Relaxed)
    }

    /// Considers it again only when it has grown: a partition that cannot be split now can
    /// be once it holds other keys.
    pub(crate) fn postpone(&self) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        self.due_at.fetch_max(bytes + bytes / POSTPONE_PART, Ordering::Relaxed);
    }

    /// Runs a closure on the sequencer instead of a command. Only the handle's executor
    /// calls this.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&mut Partition) -> Result<T, PartitionError>,
    ) -> Result<T, NotServing> {
        Ok(work(self.opened(&mut self.sequencer())?)?)
    }

    /// Takes a configuration with the same buckets. Readers follow it at once, commands
    /// that begin after this as well: the sequencer checks for it before each. This does
    /// not wait for the sequencer, which may itself be waiting for the disk.
    pub(crate) fn reconfigure(&self, config: Arc<PartitionConfig>) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    /// Forgets what is in memory: the next command reads it from the disk again. Blocks
    /// until all submissions have their status, as the disk is not up to date before. Only
    /// the handle's executor calls this.
    pub(crate) fn close(&self) {
        let mut sequencer = self.sequencer();
        if let Sequencer::Open(partition) = &mut *sequencer {
            let _ = partition.barrier().wait();
            *sequencer = Sequencer::Closed;
        }
    }

    /// Takes no commands until resumed. Runs `last` before. Returns the partition's final
    /// position, which counts once the ticket has resolved. Only the handle's executor
    /// calls this.
    pub(crate) fn pause(
        &self,
        last: impl FnOnce(&mut Partition) -> Result<(), PartitionError>,
    ) -> Result<Paused, NotServing> {
        let mut sequencer = self.sequencer();
        let partition = self.opened(&mut sequencer)?;
        last(partition)?;
        let final_position =
            FinalPosition { lsn: partition.lsn(), ordinal_blocks: partition.unused_ordinals() };
        let (config, drained) = (Arc::clone(partition.config()), partition.barrier());
        if let Sequencer::Open(partition) = std::mem::replace(&mut *sequencer, Sequencer::Closed) {
            *sequencer = Sequencer::Paused(partition);
        }
        self.serving_state.send_replace(ServingState::Switching);
        Ok(Paused { final_position, config, drained })
    }

    /// Takes commands again after a pause.
    pub(crate) fn resume(&self) {
        let mut sequencer = self.paused();
        match std::mem::replace(&mut *sequencer, Sequencer::Closed) {
            Sequencer::Paused(partition) => {
                *sequencer = Sequencer::Open(partition);
                self.serving_state.send_replace(ServingState::Serving);
            }
            other @ (Sequencer::Closed | Sequencer::Open(_) | Sequencer::Retired) => {
                *sequencer = other;
            }
        }
    }

    /// Takes no more commands after a pause, as it was replaced.
    pub(crate) fn replace(&self) {
        *self.paused() = Sequencer::Retired;
        self.serving_state.send_replace(ServingState::Gone);
    }

    /// Takes no more commands. The ticket resolves when the last one has its status. Only
    /// the handle's executor calls this.
    pub(crate) fn retire(&self) -> Option<Ticket> {
        let mut sequencer = self.sequencer();
        let last = std::mem::replace(&mut *sequencer, Sequencer::Retired);
        self.serving_state.send_replace(ServingState::Gone);
        match last {
            Sequencer::Open(mut partition) | Sequencer::Paused(mut partition) => {
                Some(partition.barrier())
            }
            Sequencer::Closed | Sequencer::Retired => None,
        }
    }

    pub(crate) fn serving_state(&self) -> ServingState {
        *self.serving_state.borrow()
    }

    /// Waits until a switch is over. It always ends: its submissions do.
    pub(crate) async fn settled(&self) {
        let mut serving_state = self.serving_state.subscribe();
        // The handle owns the sender, so waiting cannot fail.
        let _ =
            serving_state.wait_for(|serving_state| *serving_state != ServingState::Switching).await;
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::new(self.config())
    }

    pub(crate) fn config(&self) -> Arc<PartitionConfig> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn durable(&self) -> Durable {
        self.durable.clone()
    }

    /// The position that readers may rely on. Reads the heads of all buckets the first time,
    /// however many those are: on an async worker [`PartitionHandle::known_lsn`] comes first.
    pub(crate) fn durable_lsn(&self) -> Result<Lsn, PartitionError> {
        match self.known_lsn() {
            Some(lsn) => Ok(lsn),
            None => self.look_up(),
        }
    }

    /// The position that readers may rely on, if it was looked up before.
    pub(crate) fn known_lsn(&self) -> Option<Lsn> {
        self.opened_once.load(Ordering::Acquire).then(|| self.durable.lsn())
    }

    /// Reads the partition's LSN and size from what is durable: a reader does not wait for
    /// the sequencer, which may be waiting for the disk.
    fn look_up(&self) -> Result<Lsn, PartitionError> {
        runtime::may_wait();
        let (reader, view) = (self.reader(), self.store.view()?);
        self.durable.raise(reader.lsn(view.as_ref())?);
        let Head { items, bytes, .. } = reader.size(view.as_ref())?;
        // The sequencer may have newer values by now.
        for (known, found) in [(&self.items, items), (&self.bytes, bytes)] {
            let _ = known.compare_exchange(0, found, Ordering::Relaxed, Ordering::Relaxed);
        }
        self.opened_once.store(true, Ordering::Release);
        Ok(self.durable.lsn())
    }

    fn opened<'a>(&self, sequencer: &'a mut Sequencer) -> Result<&'a mut Partition, NotServing> {
        if matches!(sequencer, Sequencer::Closed) {
            let partition = Partition::open(self.config(), Arc::clone(&self.store))?;
            // Nothing is pending right after opening: everything came from the disk.
            self.durable.raise(partition.lsn());
            self.note_size(partition.size());
            self.opened_once.store(true, Ordering::Release);
            *sequencer = Sequencer::Open(Box::new(partition));
        }
        match sequencer {
            Sequencer::Open(partition) => {
                let config = self.config();
                if !Arc::ptr_eq(partition.config(), &config) {
                    partition.reconfigure(config);
                }
                Ok(partition)
            }
            Sequencer::Paused(_) => Err(NotServing::Switching),
            Sequencer::Closed | Sequencer::Retired => Err(PartitionError::Gone.into()),
        }
    }

    /// The sequencer, which its executor may keep while it waits for the store's queue.
    fn sequencer(&self) -> MutexGuard<'_, Sequencer> {
        runtime::may_wait();
        self.paused()
    }

    /// The sequencer of a paused partition: its lock is held no longer than it takes to
    /// refuse a command.
    ///
    /// A panic during a command leaves the state unused: the executor closes the handle,
    /// and the next use reads the disk.
    fn paused(&self) -> MutexGuard<'_, Sequencer> {
        self.sequencer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
