//! The place of one partition in this process: closed until it is first used,
//! closed again when something went wrong.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::position::{Lsn, Timestamp};
use partition::{Application, Command, Partition, Problem, Reader, Setup};
use storage::Store;

/// One partition, shared between its executor and its readers.
#[derive(Debug)]
pub(crate) struct Slot {
    store: Arc<dyn Store>,
    state: Mutex<State>,
    /// The LSN up to which everything is durable. Read before a view is taken,
    /// so what it promises is in the view.
    durable: AtomicU64,
}

#[derive(Debug)]
struct State {
    setup: Arc<Setup>,
    partition: Option<Partition>,
}

impl Slot {
    pub(crate) fn new(setup: Arc<Setup>, store: Arc<dyn Store>) -> Slot {
        Slot {
            store,
            state: Mutex::new(State { setup, partition: None }),
            durable: AtomicU64::new(0),
        }
    }

    /// Applies a command. Only the slot's executor calls this.
    pub(crate) fn apply(&self, now: Timestamp, command: &Command) -> Result<Application, Problem> {
        let mut state = self.state();
        self.opened(&mut state).map(|partition| partition.apply(now, command))
    }

    pub(crate) fn reconfigure(&self, setup: Arc<Setup>) {
        let mut state = self.state();
        if let Some(partition) = &mut state.partition {
            partition.reconfigure(Arc::clone(&setup));
        }
        state.setup = setup;
    }

    /// Forgets what is in memory: the next command reads it from the disk again.
    pub(crate) fn close(&self) {
        self.state().partition = None;
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.state().setup))
    }

    pub(crate) fn setup(&self) -> Arc<Setup> {
        Arc::clone(&self.state().setup)
    }

    /// The position that readers may rely on.
    pub(crate) fn durable_lsn(&self) -> Result<Lsn, Problem> {
        if self.durable.load(Ordering::Acquire) == 0 {
            self.opened(&mut self.state())?;
        }
        Ok(Lsn::from_u64(self.durable.load(Ordering::Acquire)))
    }

    pub(crate) fn made_durable(&self, lsn: Lsn) {
        self.durable.fetch_max(lsn.get(), Ordering::AcqRel);
    }

    fn opened<'a>(&self, state: &'a mut State) -> Result<&'a mut Partition, Problem> {
        if state.partition.is_none() {
            let partition = Partition::open(Arc::clone(&state.setup), Arc::clone(&self.store))?;
            // Nothing is pending right after opening: all there is came from the disk.
            self.made_durable(partition.lsn());
            state.partition = Some(partition);
        }
        Ok(state.partition.as_mut().expect("it was just opened"))
    }

    /// A panic while a command was worked out leaves the state unused: the
    /// executor closes the slot, and the next use reads the disk.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
