//! The door of storage: recorded batches, submitted in one session.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use runtime::Runtime;
use storage::local::{self, LocalConfig};
use storage::{CommitStatus, Store, WriteSession, memory};

use super::Storey;
use super::recorder::Recorded;
use crate::document::Documents;

pub(super) fn open(folder: &Path, in_memory: bool) -> Result<Arc<dyn Store>> {
    if in_memory {
        return Ok(memory::create());
    }
    Ok(local::create(folder, LocalConfig::default(), &Runtime::real())?)
}

pub(super) struct StoreStorey {
    store: Arc<dyn Store>,
    session: Mutex<Box<dyn WriteSession>>,
}

impl StoreStorey {
    pub(super) fn new(store: Arc<dyn Store>) -> StoreStorey {
        let session = Mutex::new(store.write_session());
        StoreStorey { store, session }
    }
}

impl Storey for StoreStorey {
    fn create(&self, _: Documents, number: u64, recorded: &Recorded) -> Result<()> {
        let batch = recorded.batch(number)?.clone();
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let ticket = session.submit(batch);
        drop(session);
        ensure!(ticket.wait() == CommitStatus::Durable, "a batch is not durable");
        Ok(())
    }

    fn read(&self, _: Documents, number: u64, recorded: &Recorded) -> Result<usize> {
        let found = self.store.view()?.get(recorded.key(number)?)?;
        Ok(found.context("the document is there")?.len())
    }
}
