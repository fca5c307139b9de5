//! The place of one partition in this process: closed until it is first used,
//! closed again when something went wrong, retired when its container is dropped.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use model::position::{Lsn, Timestamp};
use partition::{Application, Command, Partition, Problem, Reader, Setup};
use storage::{Store, Ticket};

/// One partition, shared between its executor and its readers.
#[derive(Debug)]
pub(crate) struct Slot {
    store: Arc<dyn Store>,
    /// Apart from the partition, so that readers never wait for a command.
    setup: RwLock<Arc<Setup>>,
    sequencer: Mutex<Sequencer>,
    durable: Durable,
    /// Whether `durable` was set from the disk.
    opened_once: AtomicBool,
}

#[derive(Debug)]
enum Sequencer {
    Closed,
    Open(Box<Partition>),
    /// The container was dropped: nothing may be written any more.
    Retired,
}

/// The LSN up to which everything is durable. Read before a view is taken, so
/// what it promises is in the view.
///
/// Apart from the slot, because tickets hold it, and the store must not hold
/// what holds the store.
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

impl Slot {
    pub(crate) fn new(setup: Arc<Setup>, store: Arc<dyn Store>) -> Slot {
        Slot {
            store,
            setup: RwLock::new(setup),
            sequencer: Mutex::new(Sequencer::Closed),
            durable: Durable::default(),
            opened_once: AtomicBool::new(false),
        }
    }

    /// Applies a command. Only the slot's executor calls this.
    pub(crate) fn apply(&self, now: Timestamp, command: &Command) -> Result<Application, Problem> {
        Ok(self.opened(&mut self.sequencer())?.apply(now, command))
    }

    /// Takes a setup with the same buckets. Commands after this one follow it.
    pub(crate) fn reconfigure(&self, setup: Arc<Setup>) {
        let mut sequencer = self.sequencer();
        if let Sequencer::Open(partition) = &mut *sequencer {
            partition.reconfigure(Arc::clone(&setup));
        }
        *self.setup.write().unwrap_or_else(PoisonError::into_inner) = setup;
    }

    /// Forgets what is in memory: the next command reads it from the disk again.
    /// Blocks until all that was submitted has its fate, as the disk does not
    /// tell the truth before. Only the slot's executor calls this.
    pub(crate) fn close(&self) {
        let mut sequencer = self.sequencer();
        if let Sequencer::Open(partition) = &mut *sequencer {
            let _ = partition.barrier().wait();
            *sequencer = Sequencer::Closed;
        }
    }

    /// Takes no more commands. The ticket resolves when the last one has its fate.
    pub(crate) fn retire(&self) -> Option<Ticket> {
        match std::mem::replace(&mut *self.sequencer(), Sequencer::Retired) {
            Sequencer::Open(mut partition) => Some(partition.barrier()),
            Sequencer::Closed | Sequencer::Retired => None,
        }
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::new(self.setup())
    }

    pub(crate) fn setup(&self) -> Arc<Setup> {
        Arc::clone(&self.setup.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn durable(&self) -> Durable {
        self.durable.clone()
    }

    /// The position that readers may rely on.
    pub(crate) fn durable_lsn(&self) -> Result<Lsn, Problem> {
        if !self.opened_once.load(Ordering::Acquire) {
            self.opened(&mut self.sequencer())?;
        }
        Ok(self.durable.lsn())
    }

    fn opened<'a>(&self, sequencer: &'a mut Sequencer) -> Result<&'a mut Partition, Problem> {
        if matches!(sequencer, Sequencer::Closed) {
            let partition = Partition::open(self.setup(), Arc::clone(&self.store))?;
            // Nothing is pending right after opening: all there is came from the disk.
            self.durable.raise(partition.lsn());
            self.opened_once.store(true, Ordering::Release);
            *sequencer = Sequencer::Open(Box::new(partition));
        }
        match sequencer {
            Sequencer::Open(partition) => Ok(partition),
            Sequencer::Closed | Sequencer::Retired => Err(Problem::Gone),
        }
    }

    /// A panic while a command was worked out leaves the state unused: the
    /// executor closes the slot, and the next use reads the disk.
    fn sequencer(&self) -> MutexGuard<'_, Sequencer> {
        self.sequencer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
